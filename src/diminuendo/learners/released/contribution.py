"""One person's contribution on its way into a sum, compiled: what she cares about, by how much, in whole ticks.

For each person in turn it holds the items that can add anything for her, in order, and rows of what each of them adds.
Where a sum has an entry for every slot and item, a row serves all slots before which she was shown the same of what she
cares about: most people want nothing of what they are shown, and have one row. All rows are clipped together and added
to the batch. The work is in proportion to what she cares about. Where there is too little room for somebody, more is
made, and her turn comes again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline
from diminuendo.objectives.family import GainBuffer, Table, gains, new_gain_buffer, start
from diminuendo.objectives.rows import find
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import cannot_exceed, clip_row
from diminuendo.types import Floats, Ints, Items

NARROW = 256
"""Items for which a contribution has room at first."""


class Contribution(NamedTuple):
    """Scratch for one person at a time."""

    bag: GainBuffer
    state: Floats
    items: Items
    """(room,) what she cares about, rising"""
    values: Floats
    """(slots * room,) row after row, each of as many numbers as she cares about items"""
    ticks: Ints
    """`values`, clipped."""
    until: Ints
    """(slots,) each row serves the slots before this one, and after those of the row before"""
    chosen: Items
    """(room + slots,) items that were chosen for her, or where they stand"""

    def __repr__(self) -> str:
        return "<Contribution>"


def new_contribution(n_items: int, leaves: int, size: int, slots: int, room: int = NARROW) -> Contribution:
    """For people of `leaves` matrices, whose states are of that size, and a sum of `slots` entries for each item."""
    return Contribution(
        new_gain_buffer(n_items, leaves),
        np.empty(size),
        np.zeros(room, dtype=np.int32),
        np.zeros(slots * room),
        np.zeros(slots * room, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.zeros(room + slots, dtype=np.int32),
    )


@inline
def care_about(table: Table, person: int, scratch: Contribution) -> int:
    """What she cares about, and what each item adds to nothing, into the bag; how many items, or -1: no room."""
    start(table, person, scratch.state, 0)
    count = gains(table, person, scratch.state, 0, scratch.bag, 0)
    return count if count <= len(scratch.items) else -1


@inline
def in_order(scratch: Contribution, count: int) -> None:
    """From the bag into the first row, items rising."""
    for j in range(count):
        scratch.items[j] = scratch.bag.items[j]
        scratch.values[j] = scratch.bag.gains[j]
    rises = True
    for j in range(1, count):
        rises &= scratch.items[j - 1] < scratch.items[j]
    if not rises:
        _sort(scratch.items, scratch.values, count)


@inline
def begin_with(table: Table, person: int, scratch: Contribution) -> int:
    """What she cares about, and as the first row what each item adds to nothing; how many items, or -1: no room."""
    count = care_about(table, person, scratch)
    if count >= 0:
        in_order(scratch, count)
    return count


@inline
def write_row(table: Table, person: int, scratch: Contribution, count: int, row: int) -> None:
    """What each item adds to the prefix. What adds nothing to nothing never adds anything, and has no column."""
    at = row * count
    for j in range(count):
        scratch.values[at + j] = 0.0
    for j in range(gains(table, person, scratch.state, 0, scratch.bag, 0)):
        where = find(scratch.items, 0, count, scratch.bag.items[j])
        if where >= 0:
            scratch.values[at + where] = scratch.bag.gains[j]


@inline
def stands(scratch: Contribution, count: int, item: int) -> int:
    """Where the item stands among those she cares about, or -1, which is what is to be expected."""
    there = False
    for j in range(count):
        there |= scratch.items[j] == item
    return find(scratch.items, 0, count, item) if there else -1


@inline
def add_to_batch(scratch: Contribution, count: int, rows: int, slots: int, into: BatchView) -> None:
    """Clip all rows together, one for each slot, and add them to the batch."""
    if not cannot_exceed(
        into.rule, slots * count
    ):  # else numbers do not depend on each other, and rows will do
        _write_out(scratch, count, rows, slots)
        rows = slots
    clip_row(into.rule, scratch.values, 0, rows * count, scratch.ticks)
    begun = 0
    for row in range(rows):
        until = scratch.until[row] if slots > 1 else 1
        for j in range(count):
            item, ticks = scratch.items[j], scratch.ticks[row * count + j]
            for slot in range(begun, until):
                into.cells[item, slot] += ticks
        begun = until


@inline
def add_bag_to_batch(scratch: Contribution, count: int, into: BatchView) -> None:
    """Clip what is in the bag and add it to a batch with one entry for each item.

    Only where the clip can exceed nothing, so that numbers depend neither on each other nor on their order.
    """
    clip_row(into.rule, scratch.bag.gains, 0, count, scratch.ticks)
    for j in range(count):
        into.cells[scratch.bag.items[j], 0] += scratch.ticks[j]


@inline
def _write_out(scratch: Contribution, count: int, rows: int, slots: int) -> None:
    """One row for each slot, from the last to the first, so that none is overwritten before it is read."""
    row = rows - 1
    for slot in range(slots - 1, -1, -1):
        while row > 0 and slot < scratch.until[row - 1]:
            row -= 1
        for j in range(count):
            scratch.values[slot * count + j] = scratch.values[row * count + j]
    for slot in range(slots):
        scratch.until[slot] = slot + 1


@inline
def _sort(items: Items, values: Floats, count: int) -> None:
    """By item, as a heap: nobody's row takes long, however it was given."""
    for root in range(count // 2 - 1, -1, -1):
        _sink(items, values, root, count)
    for end in range(count - 1, 0, -1):
        _swap(items, values, 0, end)
        _sink(items, values, 0, end)


@inline
def _sink(items: Items, values: Floats, root: int, end: int) -> None:
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and items[child] < items[child + 1]:
            child += 1
        if items[root] >= items[child]:
            return
        _swap(items, values, root, child)
        root = child


@inline
def _swap(items: Items, values: Floats, one: int, other: int) -> None:
    item, value = items[one], values[one]
    items[one], values[one] = items[other], values[other]
    items[other], values[other] = item, value
