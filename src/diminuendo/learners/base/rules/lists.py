"""Lists of what each slot may show, with what is pinned and what is capped: public arrays, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline
from diminuendo.types import EMPTY_SLOT, Ints, Items

NO_ITEMS: Items = np.zeros(0, dtype=np.int32)
NO_SETS: Ints = np.zeros(0, dtype=np.int64)


class Lists(NamedTuple):
    """What each slot may show, by public rules (offline/rules.py)."""

    starts: Ints
    """Where each slot's items begin, and, last, where they all end; or two numbers, where all slots have the same."""
    items: Items
    """Rising, for each slot; without those that are pinned."""
    pinned: Items = NO_ITEMS
    """The item that each slot always shows, or -1; empty where nothing is pinned."""
    inside: Ints = NO_SETS
    """For each item the smallest capped set that it is in, or -1; empty where there are no caps."""
    parents: Ints = NO_SETS
    """For each capped set the smallest one around it, which has a larger number, or -1."""
    most: Ints = NO_SETS
    """How many items of each capped set are shown at most."""


def all_items(row: Items, n_items: int) -> bool:
    """Whether these are numbers of items, or EMPTY_SLOT."""
    return bool(((row >= EMPTY_SLOT) & (row < n_items)).all())


@inline
def bounds(lists: Lists, slot: int) -> tuple[int, int]:
    """Where a slot's list begins and ends."""
    place = slot if len(lists.starts) > 2 else 0
    return lists.starts[place], lists.starts[place + 1]


@inline
def enter(lists: Lists, item: int, change: int, counts: Ints) -> None:
    """One item more, or fewer, in each capped set that it is in."""
    if len(counts) and item != EMPTY_SLOT:
        each = lists.inside[item]
        while each >= 0:
            counts[each] += change
            each = lists.parents[each]


@inline
def fits(lists: Lists, row: Items, item: int, counts: Ints) -> bool:
    """Whether an item is not shown yet, and no cap keeps it away."""
    for slot in range(len(row)):
        if row[slot] == item:
            return False
    if len(counts):
        each = lists.inside[item]
        while each >= 0:
            if counts[each] >= lists.most[each]:
                return False
            each = lists.parents[each]
    return True


@inline
def has(items: Items, low: int, high: int, item: int) -> bool:
    """Whether an item is among those from `low` to `high` - 1, which rise."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < end and items[low] == item
