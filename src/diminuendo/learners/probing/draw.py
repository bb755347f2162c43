"""One round of a learner with blocks, compiled: the experts' slate, whether it probes, and what is shown.

Experts draw their slate first, in every round. Then one coin below the rounds that are left of the block: if it is
below the number of probes that are left, the round probes, and the coin says which of them. So all ways to place the
probes in the block, and all orders of them, are equally likely. All or nothing: where words run out nothing happened.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.randomness.shares import GuideTable, draw_other
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

SHORT, FULL, INSERTED = range(3)
"""What a probe of a slot and an item shows: the slots before, and the item; the item in that slot, and all others;
the item put into that slot, those from there on moved down, and the last dropped."""


@inline
def _in_row(row: Items, item: int, until: int) -> bool:
    """Whether the item is in one of the slots before `until`."""
    for slot in range(until):
        if row[slot] == item:
            return True
    return False


@inline
def _draw_experts(guide: GuideTable, way: int, row: Items, coins: PublicWords) -> bool:
    """Everybody's item: one after the other among those not taken, or, with FULL, each for himself."""
    for slot in range(len(row)):
        item = draw_other(guide, slot, row, 0 if way == FULL else slot, coins)
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
def _show_probe(way: int, row: Items, slot: int, item: int) -> None:
    """The experts' slate as it is shown where `item` is tried in `slot`."""
    if way == SHORT:
        row[slot] = EMPTY_SLOT if _in_row(row, item, slot) else item
        for later in range(slot + 1, len(row)):
            row[later] = EMPTY_SLOT
    elif way == FULL:
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
def count_cells(deal: NDArray[Any], left: int, counts: NDArray[np.uint8]) -> None:
    """Of each cell, how often it is among the first `left` probes; `counts` begin at 0."""
    for j in range(left):
        counts[deal[j] % len(counts)] += np.uint8(1)


@kernel
def draw_rounds(
    guide: GuideTable,
    way: int,
    deal: NDArray[Any],
    counts: NDArray[np.uint8],
    left: Ints,
    to_come: int,
    slates: Items,
    probes: Items,
    done: int,
    until: int,
    coins: PublicWords,
) -> int:
    """Slates, and probes (slot, item, 0), from `done` on, all in one block; how far it came.

    `deal`: the probes of a block, of which the first left[0] are still to be made, `counts` of each cell; `to_come`:
    rounds of the block, with the first one here.
    """
    slots, n_items = len(guide.shifts), len(guide.ends) - 1
    while done < until:
        begin(coins)
        row = slates[done]
        ready = _draw_experts(guide, way, row, coins)
        coin = left[0]
        if ready and left[0] > 0:
            coin = below(to_come, coins)
            ready = coin != UNFINISHED
        if ready and coin >= left[0] and way == FULL:
            _leave_out_repeats(row)
            ready = _fill(guide, row, coins)
        if not ready:
            undo(coins)
            return done
        probes[done, 0] = probes[done, 1] = probes[done, 2] = NO_PROBE
        if coin < left[0]:
            cell = int(deal[coin]) % (slots * n_items)
            left[0] -= 1
            counts[cell] -= np.uint8(1)
            deal[coin], deal[left[0]] = deal[left[0]], deal[coin]
            probes[done, 0], probes[done, 1], probes[done, 2] = cell // n_items, cell % n_items, 0
            _show_probe(way, row, cell // n_items, cell % n_items)
        to_come -= 1
        done += 1
    return done


@kernel
def payoffs(table: Table, people: Ints, slates: Items, state: Floats, out: Floats) -> None:
    """What each of these people feels about her slate."""
    for j in range(len(people)):
        person = people[j]
        start(table, person, state, 0)
        for item in slates[person]:
            if item != EMPTY_SLOT:
                add(table, person, state, 0, item)
        out[j] = value(table, person, state, 0)
