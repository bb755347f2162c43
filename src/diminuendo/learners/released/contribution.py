"""One person's contribution on its way into a sum, compiled: what she cares about, by how much, in whole ticks.

For each person in turn a sheet holds the items that can add anything for her, in order, and rows of what each of them
adds. Where a sum has an entry for every slot and item, a row serves all slots before which she was shown the same of
what she cares about: most people want nothing of what they are shown, and have one row. The sheet is clipped as a
whole and added to the batch. The work is in proportion to what she cares about. A sheet that is too narrow for
somebody is made wider, and her turn comes again.
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
"""Items for which a sheet has room at first."""


class Sheet(NamedTuple):
    """Scratch for one person at a time."""

    bag: GainBuffer
    state: Floats
    items: Items
    """(room,) what she cares about, rising"""
    values: Floats
    """(slots * room,) row after row, each of as many numbers as she cares about items"""
    ticks: Ints
    """The same, clipped."""
    until: Ints
    """(slots,) each row serves the slots before this one, and after those of the row before"""
    chosen: Items
    """(room + slots,) items that were chosen for her, or where they stand"""

    def __repr__(self) -> str:
        return "<Sheet>"


def new_sheet(n_items: int, leaves: int, size: int, slots: int, room: int = NARROW) -> Sheet:
    """For people of so many leaves, whose states are of that size, and a sum of so many entries for each item."""
    return Sheet(
        new_gain_buffer(n_items, leaves),
        np.empty(size),
        np.zeros(room, dtype=np.int32),
        np.zeros(slots * room),
        np.zeros(slots * room, dtype=np.int64),
        np.zeros(slots, dtype=np.int64),
        np.zeros(room + slots, dtype=np.int32),
    )


@inline
def care_about(table: Table, person: int, sheet: Sheet) -> int:
    """What she cares about, and what each item adds to nothing, into the bag; how many items, or -1: no room."""
    start(table, person, sheet.state, 0)
    count = gains(table, person, sheet.state, 0, sheet.bag, 0)
    return count if count <= len(sheet.items) else -1


@inline
def in_order(sheet: Sheet, count: int) -> None:
    """From the bag into the first row, items rising."""
    for j in range(count):
        sheet.items[j] = sheet.bag.items[j]
        sheet.values[j] = sheet.bag.gains[j]
    rises = True
    for j in range(1, count):
        rises &= sheet.items[j - 1] < sheet.items[j]
    if not rises:
        _sort(sheet.items, sheet.values, count)


@inline
def begin_with(table: Table, person: int, sheet: Sheet) -> int:
    """What she cares about, and as the first row what each item adds to nothing; how many items, or -1: no room."""
    count = care_about(table, person, sheet)
    if count >= 0:
        in_order(sheet, count)
    return count


@inline
def write_row(table: Table, person: int, sheet: Sheet, count: int, row: int) -> None:
    """What each item adds to the prefix. What adds nothing to nothing never adds anything, and has no column."""
    at = row * count
    for j in range(count):
        sheet.values[at + j] = 0.0
    for j in range(gains(table, person, sheet.state, 0, sheet.bag, 0)):
        where = find(sheet.items, 0, count, sheet.bag.items[j])
        if where >= 0:
            sheet.values[at + where] = sheet.bag.gains[j]


@inline
def stands(sheet: Sheet, count: int, item: int) -> int:
    """Where the item stands among those she cares about, or -1, which is what is to be expected."""
    there = False
    for j in range(count):
        there |= sheet.items[j] == item
    return find(sheet.items, 0, count, item) if there else -1


@inline
def pour(sheet: Sheet, count: int, rows: int, slots: int, into: BatchView) -> None:
    """Clip the sheet, all slots of it, and add it to the batch."""
    if not cannot_exceed(
        into.rule, slots * count
    ):  # else numbers do not depend on each other, and rows will do
        _write_out(sheet, count, rows, slots)
        rows = slots
    clip_row(into.rule, sheet.values, 0, rows * count, sheet.ticks)
    begun = 0
    for row in range(rows):
        until = sheet.until[row] if slots > 1 else 1
        for j in range(count):
            item, ticks = sheet.items[j], sheet.ticks[row * count + j]
            for slot in range(begun, until):
                into.cells[item, slot] += ticks
        begun = until


@inline
def pour_bag(sheet: Sheet, count: int, into: BatchView) -> None:
    """Clip what is in the bag and add it to a batch with one entry for each item.

    Only where the clip can exceed nothing, so that numbers depend neither on each other nor on their order.
    """
    clip_row(into.rule, sheet.bag.gains, 0, count, sheet.ticks)
    for j in range(count):
        into.cells[sheet.bag.items[j], 0] += sheet.ticks[j]


@inline
def _write_out(sheet: Sheet, count: int, rows: int, slots: int) -> None:
    """One row for each slot, from the last to the first, so that none is overwritten before it is read."""
    row = rows - 1
    for slot in range(slots - 1, -1, -1):
        while row > 0 and slot < sheet.until[row - 1]:
            row -= 1
        for j in range(count):
            sheet.values[slot * count + j] = sheet.values[row * count + j]
    for slot in range(slots):
        sheet.until[slot] = slot + 1


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
