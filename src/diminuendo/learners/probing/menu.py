"""The menu of a block: the shares that experts draw by, and the probes that public coins place in its rounds.

All of it is public: shares follow from what was published before the block, probes from public numbers and coins.

Experts draw their slate first, in every round. Then one coin below the rounds that are left of the block: if it is
below the number of probes that are left, the round probes, and the coin says which of them. So all ways to place the
probes in the block, and all orders of them, are equally likely. All or nothing: where words run out nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.learners.base import propensity
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.randomness.shares import GuideTable, draw_other, guided
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import EMPTY_SLOT, Ints, Items

SHORT, FULL, INSERTED = range(3)
"""What a probe of a slot and an item shows: the slots before, and the item; the item in that slot, and all others;
the item put into that slot, those from there on moved down, and the last dropped."""

CHANCES: dict[int, Callable[[Ints, Items, propensity.Probes], float]] = {
    SHORT: propensity.ended_by_probes,
    INSERTED: propensity.moved_by_probes,
}
"""The chance of a slate, by what a probe shows. FULL is not here: experts who name the same item draw again, and which
of them did has 2^k cases."""


@dataclass(frozen=True, eq=False)
class ExpertsWithProbes(Menu):
    """Experts draw a slate for each person; in some rounds of the block an item is tried in a slot."""

    kind: ClassVar[str] = "experts with probes"
    shows: int
    """What a probe shows: SHORT, FULL or INSERTED."""
    rounds: int
    """The rounds of the block, from the first of this menu on, in which its probes are made."""
    ends: Ints
    """(N + 1, k) running sums of the experts' shares."""
    probes: NDArray[Any]
    """The probes to be made, in any order: each a cell, slot * N + item, plus any multiple of k N."""

    def __post_init__(self) -> None:
        sound = (
            self.shows in (SHORT, FULL, INSERTED)
            and self.ends.shape == (self.n_items + 1, self.slots)
            and not self.ends[0].any()
            and (np.diff(self.ends, axis=0) > 0).all()
            and self.probes.ndim == 1
            and len(self.probes) <= self.rounds
            and (self.probes >= 0).all()
        )
        if not sound:
            raise InvalidInput("These shares and probes are not those of a block.")

    def chooser(self) -> ChoosesWithProbes:
        """Draws its slates, with probes of its own to cross off."""
        return ChoosesWithProbes(self, self.probes.copy(), np.array([len(self.probes)]))


class ChoosesWithProbes(Chooser):
    """Draws the slates of a block, and crosses off the probes that were made.

    The first left[0] of `probes_to_come` are still to be made. Both arrays are given, and changed in place: a learner
    writes them into its snapshots.
    """

    def __init__(self, menu: ExpertsWithProbes, probes_to_come: NDArray[Any], left: Ints) -> None:
        self.menu: ExpertsWithProbes = menu
        self._guide = guided(menu.ends)
        self._probes_to_come, self._left = probes_to_come, left
        self._last_cell = NO_PROBE  # what the round that was drawn last has probed
        self.count()

    def count(self) -> None:
        """Count the probes that are still to be made, cell by cell."""
        cells = self.menu.slots * self.menu.n_items
        self._counts: NDArray[np.uint8] = np.zeros(cells, dtype=np.uint8)  # MOST_PROBES at most of each
        count_cells(self._probes_to_come, self._left[0], self._counts)

    def draw(
        self, number: int, slates: Items, probes: Items, coins: PublicWords, types: Ints = NOBODY
    ) -> int:
        """Experts' slates, changed where a round probes."""
        to_come = self._probes_to_come, self._counts, self._left, self._rounds_to_come(number)
        drawn = int(draw_rounds(self._guide, self.menu.shows, *to_come, slates, probes, coins))
        if drawn:
            slot, item = int(probes[drawn - 1, 0]), int(probes[drawn - 1, 1])
            self._last_cell = NO_PROBE if slot == NO_PROBE else slot * self.menu.n_items + item
        return drawn

    def propensity(self, number: int, row: Items) -> float | None:
        """Over all that experts and coins might have done in that round, given the probes that were left before it."""
        if self.menu.shows not in CHANCES:
            return None
        left_before = int(self._left[0]) + (self._last_cell != NO_PROBE)
        before = propensity.Probes(self._counts, self._last_cell, left_before, self._rounds_to_come(number))
        return float(CHANCES[self.menu.shows](self._guide.ends.T, row, before))

    def _rounds_to_come(self, number: int) -> int:
        """Rounds of the block from `number` on; of no matter where all probes are made."""
        return max(1, self.menu.first + self.menu.rounds - number)


@inline
def _in_row(row: Items, item: int, until: int) -> bool:
    """Whether the item is in one of the slots before `until`."""
    for slot in range(until):
        if row[slot] == item:
            return True
    return False


@inline
def _draw_experts(guide: GuideTable, shows: int, row: Items, coins: PublicWords) -> bool:
    """Everybody's item: one after the other among those not taken, or, with FULL, each for himself."""
    for slot in range(len(row)):
        item = draw_other(guide, slot, row, 0 if shows == FULL else slot, coins)
        if item == UNFINISHED:
            return False
        row[slot] = item
    return True


@inline
def _leave_out_repeats(row: Items) -> None:
    for slot in range(1, len(row)):
        if row[slot] != EMPTY_SLOT and _in_row(row, row[slot], slot):
            row[slot] = EMPTY_SLOT


@inline
def _fill(guide: GuideTable, row: Items, coins: PublicWords) -> bool:
    """Experts whose item is shown already draw another."""
    for slot in range(len(row)):
        if row[slot] == EMPTY_SLOT:
            item = draw_other(guide, slot, row, len(row), coins)
            if item == UNFINISHED:
                return False
            row[slot] = item
    return True


@inline
def _show_probe(shows: int, row: Items, slot: int, item: int) -> None:
    """The experts' slate as it is shown where `item` is tried in `slot`."""
    if shows == SHORT:
        row[slot] = EMPTY_SLOT if _in_row(row, item, slot) else item
        for later in range(slot + 1, len(row)):
            row[later] = EMPTY_SLOT
    elif shows == FULL:
        row[slot] = item
        _leave_out_repeats(row)
    elif not _in_row(row, item, slot):  # else it is shown, and adds nothing
        last = slot
        while last < len(row) - 1 and row[last] != item:
            last += 1
        while last > slot:
            row[last] = row[last - 1]
            last -= 1
        row[slot] = item


@kernel
def count_cells(probes_to_come: NDArray[Any], left: int, counts: NDArray[np.uint8]) -> None:
    """Of each cell, how often it is among the first `left` probes; `counts` begin at 0."""
    for j in range(left):
        counts[probes_to_come[j] % len(counts)] += np.uint8(1)


@kernel
def draw_rounds(
    guide: GuideTable,
    shows: int,
    probes_to_come: NDArray[Any],
    counts: NDArray[np.uint8],
    left: Ints,
    rounds_to_come: int,
    slates: Items,
    probes: Items,
    coins: PublicWords,
) -> int:
    """Slates, and probes (slot, item, 0), of rounds of one block; how many, before more words are needed.

    Of `probes_to_come` the first left[0] are still to be made, `counts` of each cell; a probe is a cell, which is
    slot * N + item, plus any multiple of k N. `rounds_to_come`: rounds of the block, with the first one here.
    """
    slots, n_items = len(guide.shifts), len(guide.ends) - 1
    for done in range(len(slates)):
        begin(coins)
        row = slates[done]
        ready = _draw_experts(guide, shows, row, coins)
        coin = left[0]
        if ready and left[0] > 0:
            coin = below(rounds_to_come, coins)
            ready = coin != UNFINISHED
        if ready and coin >= left[0] and shows == FULL:
            _leave_out_repeats(row)
            ready = _fill(guide, row, coins)
        if not ready:
            undo(coins)
            return done
        probes[done, 0] = probes[done, 1] = probes[done, 2] = NO_PROBE
        if coin < left[0]:
            cell = int(probes_to_come[coin]) % (slots * n_items)
            left[0] -= 1
            counts[cell] -= np.uint8(1)
            last = left[0]
            probes_to_come[coin], probes_to_come[last] = probes_to_come[last], probes_to_come[coin]
            probes[done, 0], probes[done, 1], probes[done, 2] = cell // n_items, cell % n_items, 0
            _show_probe(shows, row, cell // n_items, cell % n_items)
        rounds_to_come -= 1
    return len(slates)
