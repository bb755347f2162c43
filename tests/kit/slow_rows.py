"""What people contribute to learners on released sums, slow and obvious, as rows of a matrix.

The compiled ways, which add to the open batch without such a matrix, are compared with these.
"""

from __future__ import annotations

import numpy as np
import scipy

from diminuendo._numba import kernel
from diminuendo.learners.released.boosted_people import in_set, level_of
from diminuendo.objectives.family import GainBuffer, Table, add, gain, gains, new_gain_buffer, start
from diminuendo.objectives.person import largest_state
from diminuendo.streams.people import shown_before
from diminuendo.types import Floats, Ints, Items


def boosted_rows(
    table: Table, first: int, last: int, leaves: int, ends: Ints, words: Ints
) -> scipy.sparse.csr_array:
    """One row per person: what each item adds to her set, or what the set loses without it."""
    n_items = len(ends) - 1
    starts = np.zeros(last - first + 1, dtype=np.int64)
    state, bag = np.empty(largest_state(table, first, last)), new_gain_buffer(n_items, leaves)
    _count_cared_about(table, first, last, state, bag, starts)
    items, values = np.zeros(starts[-1], dtype=np.int64), np.zeros(starts[-1])
    chosen, where = np.zeros(n_items, dtype=np.int32), np.full(n_items, -1)
    _fill_boosted(table, first, last, ends, words, state, bag, chosen, where, starts, items, values)
    rows = scipy.sparse.csr_array((values, items, starts), shape=(last - first, n_items))
    rows.sort_indices()
    return rows


@kernel
def _count_cared_about(
    table: Table, first: int, last: int, state: Floats, bag: GainBuffer, starts: Ints
) -> None:
    """How many items each person cares about: nothing else ever adds anything."""
    for person in range(first, last):
        start(table, person, state, 0)
        starts[person - first + 1] = starts[person - first] + gains(table, person, state, 0, bag, 0)


@kernel
def _fill_boosted(
    table: Table,
    first: int,
    last: int,
    ends: Ints,
    words: Ints,
    state: Floats,
    bag: GainBuffer,
    chosen: Items,
    where: Ints,
    starts: Ints,
    items: Ints,
    values: Floats,
) -> None:
    """`where`: -1 everywhere, between people too."""
    for person in range(first, last):
        word, count, at = words[person - first], 0, starts[person - first]
        level = level_of(word)
        start(table, person, state, 0)
        for j in range(gains(table, person, state, 0, bag, 0)):
            item = bag.items[j]
            items[at + j], where[item] = item, at + j
            if in_set(ends, word, level, item):
                chosen[count] = item
                count += 1
        start(table, person, state, 0)
        for own in range(count):
            add(table, person, state, 0, chosen[own])
        for j in range(gains(table, person, state, 0, bag, 0)):
            if where[bag.items[j]] >= 0:
                values[where[bag.items[j]]] = bag.gains[j]
        for own in range(count):
            start(table, person, state, 0)
            for other in range(count):
                if other != own:
                    add(table, person, state, 0, chosen[other])
            values[where[chosen[own]]] = gain(table, person, state, 0, chosen[own])
        for j in range(at, starts[person - first + 1]):
            where[items[j]] = -1


def hedge_rows(
    table: Table, first: int, last: int, leaves: int, slates: Items, n_items: int
) -> scipy.sparse.csr_array:
    """One row per person: for every slot what each item would have added to the slots before it."""
    slots = slates.shape[1]
    starts = np.zeros(last - first + 1, dtype=np.int64)
    state, bag = np.empty(largest_state(table, first, last)), new_gain_buffer(n_items, leaves)
    room = _room_for(table, first, last, state, bag) * slots
    items, values = np.zeros(room, dtype=np.int64), np.zeros(room)
    _fill_hedge(table, first, last, slates, n_items, state, bag, starts, items, values)
    used = starts[-1]
    rows = scipy.sparse.csr_array(
        (values[:used], items[:used], starts), shape=(last - first, slots * n_items)
    )
    rows.sort_indices()
    return rows


@kernel
def _room_for(table: Table, first: int, last: int, state: Floats, bag: GainBuffer) -> int:
    """How many items these people care about, together."""
    count = 0
    for person in range(first, last):
        start(table, person, state, 0)
        count += gains(table, person, state, 0, bag, 0)
    return count


@kernel
def _fill_hedge(
    table: Table,
    first: int,
    last: int,
    slates: Items,
    n_items: int,
    state: Floats,
    bag: GainBuffer,
    starts: Ints,
    items: Ints,
    values: Floats,
) -> None:
    at = 0
    for person in range(first, last):
        row = slates[person - first]
        start(table, person, state, 0)
        for slot in range(len(row)):
            for j in range(gains(table, person, state, 0, bag, 0)):
                if not shown_before(row, slot, bag.items[j]) and at < len(items):
                    items[at], values[at] = slot * n_items + bag.items[j], bag.gains[j]
                    at += 1
            add(table, person, state, 0, row[slot])
        starts[person - first + 1] = at
