"""Learners that follow one private running sum: people add to it, and slates depend on what was published of it.

What a person contributes is a vector of gains in [0, 1], a function of what she said, of public coins and of what was
published before her slate was chosen. Batches close after so many rounds; between two releases the law of slates does
not change. Slates, and coins, are therefore post-processing of the releases, and every draw is free.

Guarantee  rounded Gaussian noise on one sum, paid for when the learner is made (docs/maths/released.md, Theorem R1).
Assumes    nothing about people: gains are clipped, in whole ticks. One answer per round; what comes after its batch
           has closed has said nothing.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, unless_ctrl_c
from diminuendo.learners.base.feedback import checked_objective
from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.learners.base.one_sum import OneSum
from diminuendo.learners.released.contribution import NARROW, Sheet, new_sheet
from diminuendo.objectives.family import Table
from diminuendo.objectives.person import Person, largest_state
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import Decision, FeedbackKind, Floats, Ints, Items, Objective

TICKS = 1 << 12
"""Whole numbers to one unit of gain."""
STRETCH = 1 << 12
"""So many rounds are replayed in one go: more would let Ctrl-C wait, fewer take longer."""
FAR = 50.0
"""Published numbers are not so many deviations away from what they can be; what is was altered."""


def gain_clip(size: int, longest: float | None) -> Clip:
    """Gains of at most 1 each; of length at most `longest`, or, with None, of whatever length they have."""
    bound = math.sqrt(size) + 1 if longest is None else _validate.positive_float(longest, "clip")
    return Clip("l2", bound=min(bound, math.sqrt(size) + 1), ticks=TICKS)


def noise_level(size: int, clip: Clip, budget: Budget) -> float:
    """The deviation that noise has on a sum that is published once, in people."""
    return math.sqrt(clip.sensitivity_squared(size) / float(budget.limit)) / clip.ticks


class ReleasedSums(OneSum, PrivateLearner):
    """Wires a private sum of `size` entries to the contract of learners."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})
    _sum: PrivateSum
    strategy: ClassVar[str]
    """How batches are combined (sums/strategies.py)."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        epsilon: float,
        delta: float,
        clip: float | None = None,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(
            n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
        )
        self.budget = Budget(epsilon, delta, self.unit, "continuous-gaussian")
        self._clip = gain_clip(self._size, clip)
        self.clip = None if clip is None else float(clip)
        longest = max(1, min(self._batch_length(), math.ceil(self.horizon / 8)))
        self.schedule = equal(self.horizon, math.ceil(self.horizon / longest))
        ends = self.schedule.ends  # after the last batch nobody comes, so it is not released
        self._sum = PrivateSum(
            self._size,
            schedule=Schedule(ends[:-1] or ends),
            cost=self.budget.share(),
            ledger=Ledger(self.budget) if ledger is None else ledger,
            strategy=self.strategy,
            clip=self._clip,
            name=self.name,
            across=self._size // self.n_items,
        )
        self._sheet = new_sheet(self.n_items, 1, 1, self._size // self.n_items, NARROW)
        self._made = np.zeros(1, dtype=np.int64)  # releases
        self._sums: Floats = np.zeros(self._size)  # as published
        self._published: Floats | None = None  # what was, and is not yet in `_sums`
        self._words = np.zeros(
            self._decisions.patience, dtype=np.int64
        )  # public coins of the rounds on the desk
        self._start()

    @property
    @abstractmethod
    def _size(self) -> int:
        """How many entries the sum has."""

    @abstractmethod
    def _batch_length(self) -> int:
        """How many people a batch should have."""

    @abstractmethod
    def _start(self) -> None:
        """Prepare to draw slates before anything is known."""

    @abstractmethod
    def _follow(self, published: Floats) -> None:
        """The running sum was published; go on from it."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """What is proved of the expected regret of the whole run to (1 - 1/e) of the best slate."""

    @abstractmethod
    def _draw_rows(self, slates: Items, done: int, until: int, words: Ints) -> int:
        """Slates, and a public word each, from `done` on; how far it came before it must be resumed."""

    @abstractmethod
    def _pour(
        self, table: Table, first: int, last: int, slates: Items, words: Ints, sheet: Sheet, into: BatchView
    ) -> int:
        """Add what each of these people contributes to the open batch; who comes next when there is a wider sheet."""

    @abstractmethod
    def _asked(self, person: Objective, row: Items, word: int) -> Floats:
        """What one person contributes, whoever she is: the slow way, for those whom nothing can compile."""

    @property
    def noise(self) -> float:
        """The deviation of noise on a sum published once, in people: what batches are measured in."""
        return noise_level(self._size, self._clip, self.budget)

    @property
    def events(self) -> Event:
        """What the whole run costs."""
        return self._sum.event

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        found = ACCOUNTANTS[self.budget.accountant].epsilon(self.events, self.budget.delta, self.visits)
        proof, epsilon = "docs/maths/released.md, Theorem R1", min(found, self.budget.epsilon)
        return Guarantee(epsilon, self.budget.delta, str(self.unit), proof, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "clip": self.clip,
        }

    # Choosing.

    def _draw(self, row: Items, probe: Items) -> bool:
        word = np.zeros(1, dtype=np.int64)
        if self._draw_rows(row[None, :], 0, 1, word) == 0:
            return False
        self._words[self.rounds % self._decisions.patience] = word[0]
        return True

    def _release_due(self) -> None:
        while self._made[0] < min(self.schedule.closed_by(self.rounds), len(self.schedule) - 1):
            with self._guard.defer_interrupt():
                if self._published is None:  # else it was published, and could not be followed
                    self._published = self._sum.release(self._secret)
                self._follow(self._published)
                self._sums[:] = self._published
                self._made[0], self._published = self._made[0] + 1, None

    # Learning.

    def _read(self, decision: Decision, feedback: Any) -> Objective:
        return checked_objective(self, feedback)

    def _learn(self, place: int, answer: Objective) -> None:
        batch = self.schedule.batch_of(self._decisions.round_at(place))
        if batch != self._sum.batch or batch == len(self.schedule) - 1:
            return
        row, word = self._decisions.rows[place], self._words[place]
        try:
            if isinstance(answer, Person):
                self._take_in(answer, answer.index, row[None, :], np.array([word]), batch)
                return
            gains = np.asarray(self._asked(answer, row, int(word)), dtype=np.float64)
        except BaseException as error:  # whatever goes wrong inside, it is what this person said: nothing
            unless_ctrl_c(error)
            return
        if gains.shape == (self._size,):
            self._sum.add(gains, batch=batch)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        batch = self.schedule.batch_of(self.rounds)
        end = min(len(people), done + self.schedule.ends[batch] - self.rounds, done + STRETCH)
        words = np.zeros(end - done, dtype=np.int64)
        drawn = self._draw_rows(slates[done:end], 0, end - done, words)
        if drawn and batch < len(self.schedule) - 1:
            self._take_in(people, done, slates[done : done + drawn], words, batch)
        return done + drawn

    def _take_in(self, people: People | Person, first: int, rows: Items, words: Ints, batch: int) -> None:
        """What people from number `first` on say to these slates, into that batch if it is open."""
        last, done, room = first + len(rows), first, NARROW
        with self._sum.compiled_access(len(rows), batch=batch) as into:
            while into is not None and done < last:
                sheet, here = self._sheet_for(people, room), slice(done - first, None)
                done = self._pour(people.table, done, last, rows[here], words[here], sheet, into)
                room = 2 * len(sheet.items)

    def _sheet_for(self, people: People | Person, room: int) -> Sheet:
        """Scratch for one person after the other, made anew where there is not enough of it."""
        if isinstance(people, Person):
            size = int(largest_state(people.table, people.index, people.index + 1))
        else:
            size = people.largest_state
        leaves, kept = people.family.leaves, self._sheet
        if len(kept.items) < room or len(kept.state) < size or len(kept.bag.items) < leaves * self.n_items:
            self._sheet = new_sheet(self.n_items, leaves, size, self._size // self.n_items, room)
        return self._sheet

    # What a snapshot holds.

    def _state(self) -> Any:
        return self._made, self._sums, self._words

    def _restored(self) -> None:
        super()._restored()
        most = self.horizon + FAR * self._sum.deviation(len(self._sum.schedule))
        sound = (
            self._made[0] == self._sum.batch
            and self._made[0] <= len(self.schedule) - 1
            and (np.abs(self._sums) <= most).all()
            and (self._words >= 0).all()
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
