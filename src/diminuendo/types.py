"""Shared types. An item is an integer from 0 to n_items - 1. A slate is the items shown to one user, in slot order."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Items: TypeAlias = NDArray[np.int32]
Words: TypeAlias = NDArray[np.uint64]

Slate: TypeAlias = tuple[int, ...]
SlateLike: TypeAlias = Sequence[int] | NDArray[np.integer]

FeedbackKind: TypeAlias = Literal["full", "bandit", "click"]
FEEDBACKS: tuple[FeedbackKind, ...] = ("full", "bandit", "click")
"""What may come back: the user's objective; one number, the reward; which slot was clicked first, or None."""

EMPTY_SLOT = -1
"""In an array of slates, a slot in which nothing is shown."""

NEVER = -1
"""Among how late users answer: this one does not."""

ONE_MINUS_1_OVER_E = 1 - math.exp(-1)
"""What greedy keeps of the best possible, and what the regret of this field is measured against."""

LARGEST_KEPT = 2**53 - 1
"""The largest whole number that JavaScript keeps as it is; beyond it, whatever has floats only rounds."""

OUTSIDE = LARGEST_KEPT
"""In place of a round: the decision is outside of a public sample, of no round, and its answer changes nothing."""

LARGEST_INCARNATION = 2**63 - 1
"""The largest life of a decision."""

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of rounds (or users, or bytes) just finished."""


@runtime_checkable
class Objective(Protocol):
    """What one user feels about every slate: a monotone submodular function.

    Any object with these members is an objective. f(empty slate) = 0, values lie in [0, 1], an item more never
    lowers f, and the gain of an item shrinks as the slate grows (diminishing returns). `diminuendo.check` tests an
    object for it.

    Notes
    -----
    Order within a slate does not change `value`. Learners clip what violates these conditions, so privacy never
    depends on them; regret bounds do.

    Examples
    --------
    >>> import diminuendo as dim
    >>> user = dim.user(dim.NoisyOr(), {0: 0.5, 2: 0.5}, n_items=4)
    >>> isinstance(user, dim.Objective), user.value((0, 2)), user.gains((0,)).tolist()
    (True, 0.75, [0.0, 0.0, 0.25, 0.0])
    """

    @property
    def n_items(self) -> int:
        """The number of items; items are integers from 0 to `n_items` - 1."""
        ...

    def value(self, slate: SlateLike) -> float:
        """Return f(slate).

        Parameters
        ----------
        slate : sequence of int
            Distinct items.

        Returns
        -------
        float
            In [0, 1].
        """
        ...

    def gains(self, prefix: SlateLike) -> Floats:
        """Return the marginal gain f(prefix + a) - f(prefix) of every item a.

        Parameters
        ----------
        prefix : sequence of int
            Distinct items.

        Returns
        -------
        ndarray of float, shape (n_items,)
            0 for the items of the prefix.
        """
        ...


@dataclass(frozen=True, slots=True)
class DecisionId:
    """Names a decision without its slate: the round, and the incarnation of the learner. Public.

    `Decision.id` and `Tokens.read` return it; `observe` takes it in place of a decision.

    Attributes
    ----------
    round : int
        Number of the round, from 0.
    life : int
        Identifies the incarnation of the learner that chose.
    """

    round: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What `Learner.choose` returns: the slate to show, and the identity with which to report feedback.

    Attributes
    ----------
    round : int
        From 0; together with the learner it names this decision. `OUTSIDE` (2**53 - 1) if the decision belongs to
        no round, because its user is outside of a public sample.
    slate : tuple of int
        Distinct items in slot order.
    probe : tuple of (int, int), optional
        (slot, item) if a coin chose this round for exploration; a public fact.
    propensity : float, optional
        Probability with which this slate was shown, given all that was published before and the rounds so far. None
        if it would reveal private state, if exclusions are enabled, or if the assignment was made before a restart.
    life : int, default 0
        Identifies the incarnation of the learner, from its making or restoring on. After a crash rounds are counted
        from the last snapshot, and the number alone would name two users' rounds.
    empty : tuple of int, default ()
        Slots that show nothing, in increasing order.

    Notes
    -----
    Under joint differential privacy (private contexts, exclusions) the slate follows from what only this user may
    know. Then the decision is theirs alone, and so is `to_json`.

    Examples
    --------
    >>> import diminuendo as dim
    >>> setting = dim.Setting(n_items=5, slots=2, rounds=10, feedback="full")
    >>> learner = dim.make("random", setting, rng=dim.SeededSource(1))
    >>> decision = learner.choose()
    >>> decision.round, len(decision.slate), round(decision.propensity * 5 * 4, 6)
    (0, 2, 1.0)
    >>> dim.Decision.from_json(decision.to_json()) == decision
    True

    """

    round: int
    slate: Slate
    probe: tuple[int, int] | None = None
    propensity: float | None = None
    incarnation: int = field(default=0, repr=False)
    empty: tuple[int, ...] = field(default=(), repr=False)

    @property
    def id(self) -> DecisionId:
        """Its round and its incarnation: enough to report feedback with, and public whatever the slate reveals."""
        return DecisionId(self.round, self.incarnation)

    def to_json(self) -> str:
        """Return the decision as JSON text that `from_json` reads, also after JavaScript has.

        Returns
        -------
        str
            No number in it exceeds 2**53 - 1; the incarnation is a text of 16 hexadecimal digits.

        Notes
        -----
        The text is not signed: whoever writes one reports feedback in anybody's name. Sign with `diminuendo.Tokens`
        what travels through other hands.
        """
        kept = _read({name: getattr(self, name) for name in FIELDS}, LARGEST_INCARNATION)
        spec = {"round": kept.round, "slate": kept.slate, "probe": kept.probe, "propensity": kept.propensity}
        empty = {"empty": kept.empty} if kept.empty else {}
        return json.dumps(spec | {"incarnation": f"{kept.incarnation:016x}"} | empty, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Decision:
        """Return the decision of what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes or mapping
            The JSON text, or the object that it stands for.

        Returns
        -------
        Decision

        Raises
        ------
        InvalidInput
            For anything else, including an incarnation that arrived as a number above 2**53 - 1, which JavaScript
            may have rounded. The message repeats nothing of the text.
        """
        result: object = text
        if isinstance(text, (str, bytes)):
            result = None
            with suppress(ValueError, RecursionError):  # what is said of it would repeat it
                result = json.loads(text)
        if not isinstance(result, Mapping):
            raise InvalidInput("A decision as JSON is an object, as Decision.to_json() writes it.")
        return _read(result, LARGEST_KEPT)


def sound(decision: object) -> Decision:
    """A decision at the door: of plain numbers and tuples, whatever it was put together of; or an error.

    What went through `dataclasses.asdict` and some format has lists, perhaps floats. The error repeats nothing of it.
    """
    if not isinstance(decision, Decision):
        raise InvalidInput(f"Give the decision that choose() returned; got {type(decision).__name__}.")
    number, incarnation = decision.round, decision.incarnation
    plain = type(number) is type(incarnation) is int and type(decision.slate) is type(decision.empty) is tuple
    if plain and 0 <= incarnation <= LARGEST_INCARNATION:
        return decision
    return _read({name: getattr(decision, name) for name in FIELDS}, LARGEST_INCARNATION)


FIELDS = ("round", "slate", "probe", "propensity", "incarnation", "empty")
_OPTIONAL = {"probe", "propensity", "empty"}


def _read(record: Mapping[str, Any], largest_incarnation: int) -> Decision:
    """The decision of these fields; a life that is a number is at most `largest_incarnation`."""
    names = set(record)
    if not set(FIELDS) - _OPTIONAL <= names <= set(FIELDS):
        raise InvalidInput(
            f"A decision has the fields {', '.join(FIELDS)}, and no others; only {', '.join(sorted(_OPTIONAL))} may be "
            "left out."
        )
    number = _whole(record["round"], LARGEST_KEPT)
    if number is None:
        raise InvalidInput("The round of a decision is a whole number from 0 on, as choose() returned it.")
    probe = record.get("probe")
    slate, probed = _several(record["slate"]), None if probe is None else _several(probe)
    if slate is None or len(set(slate)) < len(slate):
        raise InvalidInput("The slate of a decision is a list of distinct items, as choose() returned it.")
    if probe is not None and (probed is None or len(probed) != 2):
        raise InvalidInput(
            "The probe of a decision is a slot and an item, or nothing, as choose() returned it."
        )
    empty = _several(record.get("empty", ()))
    if empty is None or list(empty) != sorted(set(empty)):
        raise InvalidInput(
            "The empty slots of a decision are a rising list of slots, as choose() returned it."
        )
    chance = record.get("propensity")
    known = isinstance(chance, (int, float, np.floating)) and not isinstance(chance, bool)
    if not (chance is None or (known and 0 <= chance <= 1)):
        raise InvalidInput(
            "The propensity of a decision is from 0 to 1, or nothing, as choose() returned it."
        )
    return Decision(
        number,
        slate,
        None if probed is None else (probed[0], probed[1]),
        None if chance is None else float(chance),
        _incarnation(record["incarnation"], largest_incarnation),
        empty,
    )


def _incarnation(value: object, largest: int) -> int:
    if isinstance(value, str):
        incarnation = int(value, 16) if re.fullmatch("[0-9a-f]{16}", value) else None
        number = None if incarnation is None or incarnation > LARGEST_INCARNATION else incarnation
    else:
        number = _whole(value, largest)
    if number is None:
        raise InvalidInput(
            "The life of a decision did not come as it was sent. JavaScript, and whatever else has floats only, rounds "
            "numbers beyond 2^53 - 1: send what Decision.to_json() wrote, where it is a text of 16 hexadecimal digits."
        )
    return number


def _whole(value: object, largest: int) -> int | None:
    """The whole number that this is, from 0 to `largest`; None if it is none. A float may be one, where it is exact."""
    if isinstance(value, float) and value.is_integer():
        value, largest = int(value), min(largest, LARGEST_KEPT)
    fits = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value <= largest
    return int(value) if fits else None  # type: ignore[call-overload]  # what fits is a number


def _several(values: object) -> tuple[int, ...] | None:
    """Items, or a slot and an item; None if they are none."""
    if not isinstance(values, (list, tuple)):
        return None
    result = [_whole(value, 2**31 - 1) for value in values]
    return None if None in result else tuple(number for number in result if number is not None)
