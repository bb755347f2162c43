r"""Noisy Hedge: k ordered experts, each of which draws by its own sums of gains, published with noise.

Expert i draws the item of slot i in proportion to exp(rate * its published sums), anew for each person, among the items
that are not shown yet. A person contributes, for every slot, what each item would have added to the slots before it:
k N numbers, published together batch by batch in buffered sums, whose noise hardly grows with the number of releases.

Regret     at most `bound`, of order sqrt(k T log N) once batches are short, plus k^(3/2) sqrt(N) log T / epsilon for
           noise, which does not grow like T; for people who do not react to slates (docs/maths/released.md,
           Theorem R3). With `clip` the bound is for people whose gains, all slots together, are no longer than that.
Guarantee  docs/maths/released.md, Theorem R1.
Assumes    for regret: people are monotone submodular, with values in [0, 1]. For privacy: nothing.
References Streeter & Golovin (2008), NIPS 21; Kalai & Vempala (2005), JCSS 71, for noise of which only the law in each
           round matters; Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), FOCS, for buffered sums.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from diminuendo._numba import kernel
from diminuendo.learners.base import propensity
from diminuendo.learners.released.contribution import Sheet, begin_with, pour, stands, write_row
from diminuendo.learners.released.learner import TICKS, ReleasedSums
from diminuendo.objectives.family import Table, add
from diminuendo.randomness.shares import GuideTable, draw_other, guided, softmax
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, undo
from diminuendo.sums.batch import BatchView
from diminuendo.types import Floats, Ints, Items, Objective

WORK = 32
"""A batch has a person for so many entries of the sum: publishing then takes a few dozen numbers a person."""
LEAST = 16
"""So many people at least, since a release takes as long as a few dozen rounds whatever its size."""


def most_releases(rounds: int) -> int:
    """What buffered sums of so many people have room for in 64 bits."""
    return 1 << 16 if rounds <= 1 << 21 else 1 << 12


class NoisyHedge(ReleasedSums):
    """k Hedge experts on noisy sums."""

    name: ClassVar[str] = "noisy-hedge"
    strategy: ClassVar[str] = "blt"
    summary: ClassVar[str] = (
        "one Hedge expert per slot on noisy sums; full information; private; proved, noise costs no power of T"
    )

    @property
    def _size(self) -> int:
        return self.slots * self.n_items

    def _batch_length(self) -> int:
        return math.ceil(max(LEAST, self._size / WORK, self.horizon / most_releases(self.horizon)))

    def _start(self) -> None:
        squares = sum(size**2 for size in self.schedule.sizes)
        self.rate = math.sqrt(2 * self.slots * math.log(max(2, self.n_items)) / squares)
        self.rate = min(1.0, self.rate)
        self._move(self._sums)

    @property
    def bound(self) -> float:
        """Theorem R3."""
        logarithm, sizes = math.log(max(2, self.n_items)), self.schedule.sizes
        step = self.rate * max(sizes)
        curve = (math.expm1(step) - step) / step**2
        noise = self._sum.deviation(len(self._sum.schedule)) * math.sqrt(2 * logarithm)
        rounding = (self.slots + 3 * self.rate) * self.horizon / TICKS
        return float(
            self.slots * (logarithm / self.rate + noise)
            + self.rate * curve * sum(size**2 for size in sizes)
            + rounding
        )

    def _follow(self, published: Floats) -> None:
        self._move(published)

    def _move(self, published: Floats) -> None:
        self._guide = guided(softmax(self.rate * published.reshape(self.slots, self.n_items)))

    @property
    def _ends(self) -> Ints:
        """(k, N + 1) running sums of everybody's shares."""
        return self._guide.ends.T

    def _draw_rows(self, slates: Items, done: int, until: int, words: Ints) -> int:
        return int(_draw_slates(self._guide, slates, done, until, self._public.view))

    def _propensity(self, row: Items) -> float:
        return float(propensity.in_turn(self._ends, row))

    def _pour(
        self, table: Table, first: int, last: int, slates: Items, words: Ints, sheet: Sheet, into: BatchView
    ) -> int:
        return int(_pour(table, first, last, slates, sheet, into))

    def _asked(self, person: Objective, row: Items, word: int) -> Floats:
        out = np.zeros((self.slots, self.n_items))
        for slot in range(self.slots):
            shown = [int(item) for item in row[:slot]]
            out[slot] = person.gains(shown)
            out[slot, shown] = 0.0
        return out.ravel()

    def _restored(self) -> None:
        super()._restored()
        self._move(self._sums)


@kernel
def _draw_slates(guide: GuideTable, slates: Items, done: int, until: int, coins: PublicWords) -> int:
    """Each slot in proportion to its expert's shares, among the items that are not shown yet; how far it came."""
    while done < until:
        begin(coins)
        row = slates[done]
        for slot in range(len(row)):
            item = draw_other(guide, slot, row, slot, coins)
            if item == UNFINISHED:
                undo(coins)
                return done
            row[slot] = item
        done += 1
    return done


@kernel
def _pour(table: Table, first: int, last: int, slates: Items, sheet: Sheet, into: BatchView) -> int:
    """What these people contribute, into the batch; who comes next when the sheet is wider."""
    slots = slates.shape[1]
    for person in range(first, last):
        count, row, seen = begin_with(table, person, sheet), 0, 0
        if count < 0:
            return person
        for slot in range(slots):
            sheet.until[row] = slot + 1
            item = slates[person - first, slot]
            where = stands(sheet, count, item)
            if (
                where >= 0 and slot + 1 < slots
            ):  # for the slots to come it has been shown, and nothing is as before
                sheet.chosen[seen] = where
                seen, row = seen + 1, row + 1
                add(table, person, sheet.state, 0, item)
                write_row(table, person, sheet, count, row)
                for before in range(seen):
                    sheet.values[row * count + sheet.chosen[before]] = 0.0
        pour(sheet, count, row + 1, slots, into)
    return last
