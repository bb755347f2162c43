"""Policies to be judged: what another policy would have shown in each logged round.

A policy must be public: fixed beforehand, or a function of what was published before the round. One that was chosen by
the feedback that judges it will look better than it is.

    (3, 1)                          always this slate, in this order
    {(3, 1): 0.5, (1, 0): 0.5}      each of several slates with its probability
    AnyOrder((3, 1))                these items, in whatever order the log shows them
    lambda number: ...              one of the former for each round, by its number
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.evaluate.log import Log
from diminuendo.types import Floats, Slate

CLOSE = 1e-9
"""Probabilities of up to a million slates, each rounded to 2^-53, add up to 1 more closely than this."""


class Policy(ABC):
    """A policy to be judged: what it would have shown in each logged round, with what probability.

    It must be public: fixed beforehand, or a function of what was published before the round.

    See Also
    --------
    Mixture, AnyOrder, ByRound
    """

    @abstractmethod
    def chance(self, number: int, slate: Slate) -> float:
        """Return the probability with which this slate would have been shown in that round."""

    def chances(self, log: Log) -> Floats:
        """Return that probability for every round of a log, an array of shape (rounds,)."""
        shown = zip(log.rounds.tolist(), log.shown(), strict=True)
        return np.array([self.chance(number, slate) for number, slate in shown], dtype=np.float64)

    @abstractmethod
    def sets(self, number: int) -> Mapping[Slate, float]:
        """Return what would have been shown in that round, orders put together: sorted items, and their probability."""


class Mixture(Policy):
    """The policy that shows each of several slates with its probability, in every round.

    Parameters
    ----------
    slates : mapping of slate to float
        Probabilities that add up to 1.

    Raises
    ------
    InvalidInput
        If slates repeat items, or probabilities do not add up to 1.

    Examples
    --------
    >>> from diminuendo.evaluate import Mixture
    >>> Mixture({(3, 1): 0.5, (1, 3): 0.25, (0, 2): 0.25}).sets(0)
    {(1, 3): 0.75, (0, 2): 0.25}
    """

    def __init__(self, slates: Mapping[Any, float]) -> None:
        self._chances = _checked(slates)
        self._sets: dict[Slate, float] = {}
        for slate, chance in self._chances.items():
            items = tuple(sorted(slate))
            self._sets[items] = self._sets.get(items, 0.0) + chance

    def __repr__(self) -> str:
        return f"Mixture({self._chances})"

    def chance(self, number: int, slate: Slate) -> float:
        """Return the probability of this slate, in this order."""
        return self._chances.get(slate, 0.0)

    def sets(self, number: int) -> Mapping[Slate, float]:
        """Return the probabilities, orders put together."""
        return self._sets


class AnyOrder(Policy):
    """The policy that shows one set of items, or several with their probabilities, where order does not change rewards.

    Parameters
    ----------
    items : iterable of int, or mapping of sets to float
        One set, or several with probabilities that add up to 1.

    Raises
    ------
    InvalidInput
        If a set is given twice, or probabilities do not add up to 1.

    Notes
    -----
    Orders are taken nearly as the log shows them, learned from earlier rounds: after random slates k! times as many
    rounds count as for one slate (Lemma V4 of docs/maths/off-policy.md).

    Examples
    --------
    >>> from diminuendo.evaluate import AnyOrder
    >>> AnyOrder((3, 1)).chance(0, (1, 3))
    0.5
    """

    def __init__(self, items: Iterable[int] | Mapping[Any, float]) -> None:
        given = items if isinstance(items, Mapping) else {tuple(items): 1.0}
        sets = {tuple(sorted(some)): chance for some, chance in given.items()}
        if len(sets) < len(given):
            raise InvalidInput(
                "The same items are given twice, in different orders; here orders do not matter."
            )
        self._sets = _checked(sets)

    def __repr__(self) -> str:
        return f"AnyOrder({self._sets})"

    def chance(self, number: int, slate: Slate) -> float:
        """Return the probability of the set, divided by the number of orders."""
        return self._sets.get(tuple(sorted(slate)), 0.0) / math.factorial(len(slate))

    def chances(self, log: Log) -> Floats:
        """Return the probability of what was shown in each round, orders learned from the rounds before."""
        result = np.zeros(len(log))
        orders: Counter[Slate] = Counter()
        sets: Counter[Slate] = Counter()
        for t, slate in enumerate(log.shown()):
            items = tuple(sorted(slate))
            if chance := self._sets.get(items, 0.0):
                result[t] = chance * (1 + orders[slate]) / (math.factorial(len(items)) + sets[items])
                orders[slate] += 1
                sets[items] += 1
        return result

    def sets(self, number: int) -> Mapping[Slate, float]:
        """Return the probabilities of the sets."""
        return self._sets


class ByRound(Policy):
    """A policy that is another one in each round.

    Parameters
    ----------
    choose : callable
        (round) -> a policy, or what stands for one. A public function.

    Examples
    --------
    >>> from diminuendo.evaluate import ByRound
    >>> ByRound(lambda number: (0, 1) if number < 100 else (2, 1)).chance(150, (2, 1))
    1.0
    """

    def __init__(self, choose: Callable[[int], Any]) -> None:
        self._choose = choose
        self._last: tuple[int, Policy] | None = None

    def _in(self, number: int) -> Policy:
        if self._last is None or self._last[0] != number:
            self._last = number, as_policy(self._choose(number))
        return self._last[1]

    def chance(self, number: int, slate: Slate) -> float:
        """Return the probability of this slate under that round's policy."""
        return self._in(number).chance(number, slate)

    def sets(self, number: int) -> Mapping[Slate, float]:
        """Return what that round's policy shows."""
        return self._in(number).sets(number)


def as_policy(given: Any) -> Policy:
    """What may stand for a policy, as one."""
    if isinstance(given, Policy):
        return given
    if isinstance(given, Mapping):
        return Mixture(given)
    if callable(given):
        return ByRound(given)
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return Mixture({tuple(given): 1.0})
    raise InvalidInput(
        f"A policy is a slate, a dict of slates and probabilities, AnyOrder(items), or a function from a round's "
        f"number to one of these; got {given!r}."
    )


def _checked(slates: Mapping[Any, float]) -> dict[Slate, float]:
    """Different items in every slate; probabilities that add up to 1."""
    result: dict[Slate, float] = {}
    for given, chance in slates.items():
        try:
            slate = tuple(operator.index(item) for item in given)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"A slate is a tuple of items, whole numbers; got {given!r}.") from error
        if len(set(slate)) < len(slate) or min(slate, default=0) < 0:
            raise InvalidInput(f"A slate has different items from 0 on; got {slate}.")
        if not 0 <= chance <= 1:
            raise InvalidInput(f"A probability is from 0 to 1; got {chance!r} for {slate}.")
        result[slate] = float(chance)
    if abs(math.fsum(result.values()) - 1) > CLOSE:
        raise InvalidInput(
            f"A policy's probabilities add up to 1; got {math.fsum(result.values()):g}. What is shown otherwise? The "
            "empty slate () is one, too."
        )
    return result
