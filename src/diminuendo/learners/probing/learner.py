r"""Learners that probe in balanced blocks: one number of each probed person, for one slot and item, and a bound.

k ordered Hedge experts draw a slate anew for each person. In a block every slot and item is probed equally often, in
rounds that public coins choose, in an order that they choose; what the probed person says goes to that cell, and nobody
else is heard. When the block closes all k N cells are published, and experts go on from the running sums. A probe falls
on each round of its block with equal chance, and experts draw by the same law throughout: so a cell is, on average,
what the item would have earned in that slot over the whole block, and an expert learns about all items at once.

Guarantee  each person adds at most one unit to one cell, which coins chose: Laplace noise on each block by itself, with
           delta = 0, or rounded Gaussian noise on running sums; docs/maths/blocks.md, Theorem K1.
Assumes    for privacy: nothing about people. One answer per round; what comes after its block has closed has said
           nothing.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base import propensity
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.one_sum import OneSum
from diminuendo.learners.probing.draw import INSERTED, SHORT, count_cells, draw_rounds
from diminuendo.learners.probing.schedule import TICKS, Plan, Theorem
from diminuendo.randomness.shares import guided, softmax
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.people import People
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints, Items

FAR = 50.0
"""Published numbers are not so many deviations away from what they can be; what is was altered."""

CHANCES: dict[int, Callable[[Ints, Items, propensity.Probes], float]] = {
    SHORT: propensity.ended_by_probes,
    INSERTED: propensity.moved_by_probes,
}
"""The chance of a slate, by what a probe shows. FULL is not here: experts who name the same item draw again, and which
of them did has 2^k cases."""


class BlockSum(Protocol):
    """What a learner needs of the sum of its cells: private (sums/private_sum.py), or open (exact.py)."""

    @property
    def batch(self) -> int:
        """The open block."""
        ...

    def add(self, values: Any, indices: Any = None, *, batch: int | None = None) -> None:
        """What one person adds to a cell."""
        ...

    def add_rows(self, rows: Any, *, batch: int | None = None) -> None:
        """What many people add, each to one cell."""
        ...

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the block; the running sum, in units."""
        ...

    def snapshot(self) -> bytes:
        """All that was added."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        ...


def contributions(plan: Plan) -> Schedule:
    """When blocks close, counted in probes: so many contributions a sum has to have room for."""
    return Schedule(tuple(plan.dealt * block for block in range(1, max(2, plan.blocks))))


class Blocks(OneSum):
    """Wires probes, blocks and a sum of k N cells to the contract of learners."""

    theorem: ClassVar[Callable[[int], Theorem]]
    """What is proved, for so many slots."""
    way: ClassVar[int]
    """What a probe shows (draw.py)."""
    ticks: ClassVar[int] = TICKS
    reacting: ClassVar[bool] = False
    """Whether what an expert learns depends on its own draws before; then noise must be new in each block."""

    def _begin(self, plan: Plan, sum_: BlockSum) -> None:
        self.plan, self.schedule, self._sum = plan, plan.schedule, sum_
        self._made = np.zeros(1, dtype=np.int64)  # releases
        self._sums: Floats = np.zeros(self.slots * self.n_items)  # as published
        self._published: Floats | None = None  # what was, and is not yet in `_sums`
        kind = np.int32 if plan.dealt <= np.iinfo(np.int32).max else np.int64
        self._deal: NDArray[Any] = np.arange(
            plan.dealt, dtype=kind
        )  # the probes of a block; those to come first
        self._left = np.array([self._dealt(0)], dtype=np.int64)
        self._count()
        self._before = (
            NO_PROBE,
            0,
        )  # the round that was drawn last: the cell that it probed, and what was left before
        self._move()

    def _dealt(self, block: int) -> int:
        """How many probes a block has: none in the last, after which nobody comes."""
        return self.plan.dealt if block < len(self.schedule) - 1 else 0

    @property
    def bound(self) -> float:
        """What is proved of the expected regret of the whole run to (1 - 1/e) of the best slate."""
        return self.plan.bound(type(self).theorem(self.slots), self._spread(), self.ticks)

    @abstractmethod
    def _spread(self) -> float:
        """How far noise goes: the scale of Laplace noise, or the deviation of Gaussian noise at last, in people."""

    @abstractmethod
    def _worth(self, row: Items, probe: Items, answer: Any) -> float:
        """What the answer says about the item that was probed."""

    @abstractmethod
    def _worths(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        """The same for the people of these rounds, who are asked about the slates that they were shown."""

    # Choosing.

    def _move(self) -> None:
        """Draw by what was published."""
        sums = self._sums.reshape(self.slots, self.n_items)
        scores = self.plan.rate / self.plan.probes * sums
        self._guide = guided(softmax(scores))

    @property
    def _ends(self) -> Ints:
        """(k, N + 1) running sums of everybody's shares."""
        return self._guide.ends.T

    def _count(self) -> None:
        """Count the probes that are left, cell by cell."""
        size = self.slots * self.n_items
        self._counts: NDArray[np.uint8] = np.zeros(
            size, dtype=np.uint8
        )  # of each there are MOST_PROBES at most
        count_cells(self._deal, self._left[0], self._counts)

    def _release_due(self) -> None:
        while self._made[0] < min(self.schedule.closed_by(self.rounds), len(self.schedule) - 1):
            with self._guard.defer_interrupt():
                if self._published is None:
                    self._published = self._sum.release(self._secret)
                self._sums[:] = self._published
                self._move()
                self._made[0] += 1
                self._left[0] = self._dealt(int(self._made[0]))
                self._count()
                self._published = None

    def _draw_rows(self, slates: Items, probes: Items, done: int, until: int) -> int:
        to_come = self.schedule.ends[int(self._made[0])] - self.rounds
        return int(
            draw_rounds(
                self._guide,
                self.way,
                self._deal,
                self._counts,
                self._left,
                to_come,
                slates,
                probes,
                done,
                until,
                self._public.view,
            )
        )

    def _draw(self, row: Items, probe: Items) -> bool:
        left = int(self._left[0])
        if self._draw_rows(row[None, :], probe[None, :], 0, 1) == 0:
            return False
        cell = NO_PROBE if probe[0] == NO_PROBE else int(probe[0]) * self.n_items + int(probe[1])
        self._before = cell, left
        return True

    def _propensity(self, row: Items) -> float | None:
        if self.way not in CHANCES:
            return None
        to_come = max(
            1, self.schedule.ends[int(self._made[0])] - self.rounds
        )  # of no matter where none is left
        return float(
            CHANCES[self.way](self._ends, row, propensity.Probes(self._counts, *self._before, to_come))
        )

    # Learning.

    def _learn(self, place: int, answer: Any) -> None:
        probe = self._decisions.probes[place]
        if probe[0] != NO_PROBE:
            block = self.schedule.closed_by(self._decisions.round_at(place))
            cell = int(probe[0]) * self.n_items + int(probe[1])
            self._sum.add([self._worth(self._decisions.rows[place], probe, answer)], [cell], batch=block)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        block, last = int(self._made[0]), len(self.schedule) - 1
        end = len(people)
        if block < last:
            end = min(end, done + self.schedule.ends[block] - self.rounds)
        probes = np.empty((end - done, 3), dtype=np.int32)
        count = self._draw_rows(slates[done:end], probes, 0, end - done)
        some = np.flatnonzero(probes[:count, 0] != NO_PROBE)
        if len(some):
            rounds, probed = done + some, probes[some]
            cells = probed[:, 0].astype(np.int64) * self.n_items + probed[:, 1]
            worths = self._worths(people, rounds, slates, probed)
            shape = (len(rounds), self.slots * self.n_items)
            rows = scipy.sparse.csr_array((worths, cells, np.arange(len(rounds) + 1)), shape=shape)
            self._sum.add_rows(rows, batch=block)
        return done + count

    # What a snapshot holds.

    def _state(self) -> Any:
        return self._made, self._sums, self._left, self._deal

    def _restored(self) -> None:
        super()._restored()
        made, left, rounds = int(self._made[0]), int(self._left[0]), self.rounds
        most = len(self.schedule) * (self.plan.probes + FAR * self._spread())
        sound = (
            made == self._sum.batch
            and made in (min(closed, len(self.schedule) - 1) for closed in self._closed(rounds))
            and (np.abs(self._sums) <= most).all()
            and 0 <= left <= self._dealt(made)
            and (np.sort(self._deal) == np.arange(self.plan.dealt)).all()
        )
        if sound and self._dealt(made):
            begun = self.schedule.ends[made - 1] if made else 0
            sound = self.plan.dealt - left <= rounds - begun and left <= self.schedule.ends[made] - rounds
        if not sound:
            raise InvalidInput("The snapshot holds blocks that could not have come about; it was altered.")
        self._count()
        self._move()

    def _closed(self, rounds: int) -> tuple[int, int]:
        """How many blocks may have been published after so many rounds: at its end, a block waits for the next."""
        return self.schedule.closed_by(max(0, rounds - 1)), self.schedule.closed_by(rounds)
