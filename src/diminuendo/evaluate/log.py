"""A log: the rounds of a learner in the order in which they were chosen.

    log = Log(slots=2)
    decision = learner.choose()
    log.add(decision)                 # at once: which rounds are in the log must not depend on who responds
    log.answer(decision, reward)      # when feedback arrives, if it does; the first one counts

Slates and propensities are public, and so is how many rounds there are. Rewards are not, nor is who has responded.
Whether a user responds may depend on what they were shown, so leaving rounds without a response out would favour
slates to which few respond: such a round earns 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import EMPTY_SLOT, Decision, Floats, Ints, Items, Slate, sound

if TYPE_CHECKING:
    from diminuendo._database import FilePath

COLUMNS = ("round", "slate", "propensity", "reward")
"""The columns of a table. A reward is null where no feedback has arrived."""
INCARNATION = "incarnation"
"""A further column, of decisions: types.Decision.life. Null, or left out, where it is not known."""
MOST_ITEM = 2**31 - 1
"""Items are kept in 32 bits."""


class _Round(NamedTuple):
    slate: Slate
    propensity: float
    reward: float | None
    """None: not answered yet."""


class Log:
    """Logged rounds in the order in which they were chosen: slates, propensities and rewards.

    As private as users' feedback. A slice with public bounds, as `log[:500]`, is a log.

    Parameters
    ----------
    slots : int
        Maximum number of items in a slate.

    Notes
    -----
    Add every round when it is chosen, whether or not its user will respond; which rounds are in the log must not
    depend on who responds. A round without a response earns 0, so what is estimated is reward *and* response
    (Theorem V1 of docs/maths/off-policy.md).

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.evaluate import Log
    >>> setting = dim.Setting(n_items=5, slots=2, rounds=10, feedback="bandit")
    >>> learner, log = dim.make("random", setting, rng=dim.SeededSource(1)), Log(slots=2)
    >>> decision = learner.choose()
    >>> log.add(decision)
    >>> log.answer(decision, 1.0)
    >>> log, log.propensities.tolist(), log.rewards.tolist()
    (<Log: 1 rounds of up to 2 items; rewards are private>, [0.05], [1.0])
    """

    def __init__(self, slots: int) -> None:
        self.slots = _validate.positive_int(slots, "slots")
        self._rounds: dict[tuple[int | None, int], _Round] = {}  # by life and round, in order

    def __len__(self) -> int:
        return len(self._rounds)

    def __getitem__(self, stretch: slice) -> Log:
        """Some of the rounds. Which ones must be public, and known before they are drawn: see docs/evaluating.md."""
        if not isinstance(stretch, slice) or (stretch.step is not None and stretch.step < 1):
            raise InvalidInput(f"Take a stretch of rounds, forwards, as log[:500]; got {stretch!r}.")
        result = Log(self.slots)
        result._rounds = dict(list(self._rounds.items())[stretch])
        return result

    def __repr__(self) -> str:
        return f"<Log: {len(self):,} rounds of up to {self.slots} items; rewards are private>"

    def add(self, decision: Decision, reward: Any = None) -> None:
        """Add a round that was chosen: at once, in the order of `choose`.

        Parameters
        ----------
        decision : Decision
            With a propensity.
        reward : float, optional
            Only if every user responds at once, as in a simulation. Otherwise call `answer` later.

        Raises
        ------
        InvalidInput
            If the decision has no propensity, or the round is out of order.
        """
        decision = sound(decision)
        if decision.propensity is None:
            raise InvalidInput(
                "This decision has no propensity. Its learner draws by secret scores, or by a law that has no simple "
                "formula, or uses an assignment that was made before a restart; without the chance of what was shown "
                "nothing can be said of what was not. Log a learner that draws by what it released, as 'slate-clicks' "
                "does; and leave out the rounds whose decision.propensity is None, with or without feedback."
            )
        self._append(decision.round, decision.slate, decision.propensity, reward, decision.incarnation)

    def answer(self, decision: Decision, reward: Any) -> None:
        """Record the reward of a round. The first one counts; later ones change nothing.

        Parameters
        ----------
        decision : Decision
            As it was added.
        reward : float
            Clipped to [0, 1]; 0 for what is no number.

        Raises
        ------
        InvalidInput
            If the decision was not added.
        """
        decision = sound(decision)
        name = decision.incarnation, decision.round
        logged = self._rounds.get(name)
        if logged is None:
            raise InvalidInput(
                f"Round {decision.round} is not in this log. Add decisions when they are chosen, before they are "
                "answered, and answer to the log that they were added to."
            )
        if logged.slate != decision.slate:  # asked first: what is said must not depend on who answered
            raise InvalidInput(
                f"Round {decision.round} showed another slate. Answer with the decision that was added."
            )
        if logged.reward is None:
            self._rounds[name] = logged._replace(reward=counted(reward))

    def _append(
        self, round_: int, slate: Slate, propensity: float, reward: Any = None, incarnation: int | None = None
    ) -> None:
        whole = all(type(item) is int or isinstance(item, np.integer) for item in slate)
        inside = whole and min(slate, default=0) >= 0 and max(slate, default=0) <= MOST_ITEM
        if not inside or len(slate) > self.slots or len(set(slate)) < len(slate):
            raise InvalidInput(
                f"A slate here has up to {self.slots} different items, whole numbers from 0 on; got {slate}."
            )
        if not 0 < propensity <= 1:
            raise InvalidInput(f"A propensity is above 0 and at most 1; got {propensity!r}.")
        if self._rounds:
            last_incarnation, last = next(reversed(self._rounds))
            # In another life of a learner rounds are counted again from 0.
            same_incarnation = None in (incarnation, last_incarnation) or incarnation == last_incarnation
            if (same_incarnation and round_ <= last) or (incarnation, round_) in self._rounds:
                raise InvalidInput(
                    f"Round {round_} comes after round {last} in this log. Add rounds in the order in which they were "
                    "chosen, and each once, when it is chosen; its answer may come whenever it comes."
                )
        known = None if reward is None else counted(reward)
        self._rounds[incarnation, round_] = _Round(slate, float(propensity), known)

    @classmethod
    def from_arrays(
        cls,
        slates: Any,
        propensities: Any,
        rewards: Any,
        rounds: Sequence[int] | Ints | None = None,
        incarnations: Sequence[int | None] | None = None,
    ) -> Self:
        """Return a log of arrays with one row per round.

        Parameters
        ----------
        slates : array of int, shape (rounds, slots)
            -1 is an empty slot.
        propensities : array of float, shape (rounds,)
            In (0, 1].
        rewards : array of float, shape (rounds,)
            NaN for a round without a response.
        rounds : sequence of int, optional
            Rising numbers of the rounds. By default 0, 1, 2, ...
        incarnations : sequence of int or None, optional
            `Decision.incarnation` of each round.

        Returns
        -------
        Log

        Raises
        ------
        InvalidInput
            If shapes or values do not fit.
        """
        rows = np.asarray(slates)
        numbers = np.arange(len(rows)) if rounds is None else np.asarray(rounds)
        kinds = (rows.dtype, numbers.dtype)
        if rows.ndim != 2 or not all(np.issubdtype(kind, np.integer) for kind in kinds):
            raise InvalidInput(
                "slates must be a table of whole numbers, one row per round, -1 for an empty slot; and rounds must be "
                "whole numbers."
            )
        chances, worths = np.asarray(propensities, dtype=np.float64), _validate.numbers(rewards, "rewards")
        known = [None] * len(rows) if incarnations is None else list(incarnations)
        if not len(rows) == len(numbers) == len(chances) == len(worths) == len(known):
            raise InvalidInput(
                f"Each round has a slate, a propensity and a reward; got {len(rows)} slates, {len(chances)} "
                f"propensities, {len(worths)} rewards and {len(numbers)} rounds."
            )
        result = cls(max(1, rows.shape[1]))
        parts = (numbers.tolist(), rows.tolist(), chances.tolist(), worths.tolist(), known)
        for round_, row, chance, worth, incarnation in zip(*parts, strict=True):
            slate = tuple(item for item in row if item != EMPTY_SLOT)
            result._append(round_, slate, chance, None if np.isnan(worth) else worth, incarnation)
        return result

    def write(self, path: FilePath) -> None:
        """Write a Parquet file, which `Log.read` reads. It is as private as what users said.

        Columns: round, slate (a list of items, -1 for an empty slot), propensity, reward (null if there is no answer
        yet) and life (`types.Decision.incarnation`; null if it is not known).
        """
        from diminuendo._database import copy_parquet  # here: duckdb takes its time to load

        incarnations, rewards = (
            [incarnation for incarnation, _ in self._rounds],
            [row.reward for row in self._rounds.values()],
        )
        columns = {
            "round": self.rounds,
            "propensity": self.propensities,
            "reward": np.ma.masked_invalid(np.array(rewards, dtype=np.float64)),
            INCARNATION: np.ma.masked_array(
                np.array([incarnation or 0 for incarnation in incarnations], dtype=np.int64),
                [incarnation is None for incarnation in incarnations],
            ),
        } | {f"s{slot}": items for slot, items in enumerate(self.slates.T)}
        slate = f"[{', '.join(f's{slot}' for slot in range(self.slots))}]::INTEGER[{self.slots}]"
        copy_parquet(
            path, f"SELECT round, {slate} AS slate, propensity, reward, {INCARNATION} FROM given", columns
        )

    @classmethod
    def read(cls, path: FilePath) -> Self:
        """A log from a Parquet file as `write` writes it; slates may be lists of different lengths."""
        from diminuendo._database import read_parquet  # here: duckdb takes its time to load

        kinds, table = read_parquet(path)
        if missing := [name for name in COLUMNS if name not in kinds]:
            raise InvalidInput(f"A log has the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}.")
        rounds, slates, chances, rewards = ([row[name] for row in table] for name in COLUMNS)
        if not all(slate is not None and all(type(item) is int for item in slate) for slate in slates):
            raise InvalidInput(
                "Some slates are missing, or their items are no whole numbers. A slate in which nothing was shown is "
                "an empty list."
            )
        if not all(type(number) is int for number in rounds):
            raise InvalidInput("Some rounds have no whole number.")
        rows = _padded(slates, max(map(len, slates), default=1))
        worths = [np.nan if reward is None else reward for reward in rewards]
        incarnations = [row[INCARNATION] for row in table] if INCARNATION in kinds else None
        return cls.from_arrays(rows, chances, worths, np.array(rounds, dtype=np.int64), incarnations)

    def shown(self) -> list[Slate]:
        """Return the slates as tuples, without empty slots."""
        return [logged.slate for logged in self._rounds.values()]

    @property
    def slates(self) -> Items:
        """The slates, shape (rounds, slots), -1 for an empty slot."""
        return _padded(self.shown(), self.slots)

    @property
    def rounds(self) -> Ints:
        """The number of each round."""
        return np.array([number for _, number in self._rounds], dtype=np.int64)

    @property
    def propensities(self) -> Floats:
        """The probability with which each slate was shown."""
        return np.array([logged.propensity for logged in self._rounds.values()], dtype=np.float64)

    @property
    def rewards(self) -> Floats:
        """The reward of each round, 0 without a response. Private."""
        return np.array([logged.reward or 0.0 for logged in self._rounds.values()], dtype=np.float64)


def _padded(slates: Sequence[Slate], slots: int) -> Items:
    rows = np.full((len(slates), slots), EMPTY_SLOT, dtype=np.int32)
    for row, slate in zip(rows, slates, strict=True):
        row[: len(slate)] = slate
    return rows


def counted(reward: Any) -> float:
    """What an answer counts as. Nothing is refused: one odd answer must not stop a service, nor weigh more."""
    if not isinstance(reward, (bool, np.bool_, int, float, np.integer, np.floating)) or reward != reward:
        return 0.0
    return float(min(max(reward, 0), 1))  # before it is a float: whole numbers may be too large for one
