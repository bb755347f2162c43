"""What one person contributes to boosted: what each item adds to a set, or what the set loses without it.

One public word spells a level z and a set R, each item with probability z x_a. Whether an item is in R is asked only of
items that she cares about, so the work is in proportion to those. `pour_people` adds people to the open batch, one
after the other; `gathered` is the same, slow and obvious, as rows of a matrix.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from diminuendo._numba import inline, kernel
from diminuendo.experts.capped_simplex import ONE
from diminuendo.learners.released.contribution import (
    Sheet,
    care_about,
    in_order,
    pour,
    pour_bag,
    stands,
    write_row,
)
from diminuendo.objectives.family import GainBuffer, Table, add, gain, gains, new_gain_buffer, start
from diminuendo.objectives.person import largest_state
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import cannot_exceed
from diminuendo.types import Floats, Ints, Items


@inline
def _mixed(word: int, index: int) -> np.uint64:
    """Entry `index` of the sequence that SplitMix64 spells from `word`, before the last step, which leaves its 31
    leading bits alone."""
    mixed = np.uint64(word) + np.uint64(index + 1) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


@inline
def _spelled(word: int, index: int) -> float:
    """A number in [0, 1) with 53 bits: entry `index` of that sequence."""
    mixed = _mixed(word, index)
    mixed ^= mixed >> np.uint64(31)
    return float(mixed >> np.uint64(11)) * 2.0**-53


@inline
def _level(word: int) -> float:
    """z, with density in proportion to e^z on [0, 1]."""
    return math.log1p(_spelled(word, 0) * (math.e - 1.0))


@inline
def _in_set(ends: Ints, word: int, level: float, item: int) -> bool:
    """Whether item is in R: with probability level * x_item, independently."""
    return bool(_spelled(word, item + 1) * ONE < level * (ends[item + 1] - ends[item]))


@kernel
def spell(ends: Ints, word: int, out: Floats) -> None:
    """R as zeros and ones."""
    level = _level(word)
    for item in range(len(out)):
        out[item] = 1.0 if _in_set(ends, word, level, item) else 0.0


@inline
def _may_hold(word: int, most: int, items: Items) -> bool:
    """False: none of these is in R, were the level 1 and each as likely as the likeliest, by 31 bits of its number.

    A number n of 53 bits says yes if n * ONE / 2^53 < share, and then its leading bits are at most those of that bound.
    """
    least = ~np.uint64(0)
    for item in items:
        least = min(least, _mixed(word, int(item) + 1))
    return bool(least >> np.uint64(33) <= np.uint64(most) * np.uint64(2**53 // ONE) >> np.uint64(22))


@kernel
def pour_people(
    table: Table, first: int, last: int, ends: Ints, most: int, words: Ints, sheet: Sheet, into: BatchView
) -> int:
    """What these people contribute, into the batch; who comes next when the sheet is wider.

    `most`: the largest share of any item, so that the shares of most items need not be looked up.
    """
    for person in range(first, last):
        count = care_about(table, person, sheet)
        if count < 0:
            return person
        word = words[person - first]
        some = _may_hold(word, most, sheet.bag.items[:count])
        if some or not cannot_exceed(into.rule, count):
            in_order(sheet, count)
            if some:
                _choose(table, person, ends, word, sheet, count)
            pour(sheet, count, 1, 1, into)
        else:  # none of it is in R: what each item adds to nothing, in whatever order
            pour_bag(sheet, count, into)
    return last


@inline
def _choose(table: Table, person: int, ends: Ints, word: int, sheet: Sheet, count: int) -> None:
    """Compare with what is in R, if anything is."""
    level, chosen = _level(word), 0
    for j in range(count):
        if _in_set(ends, word, level, sheet.bag.items[j]):
            sheet.chosen[chosen] = sheet.bag.items[j]
            chosen += 1
    if chosen > 0:
        _compare(table, person, sheet, count, chosen)


@inline
def _compare(table: Table, person: int, sheet: Sheet, count: int, chosen: int) -> None:
    """What each item adds to those that are chosen, or what they lose without it."""
    start(table, person, sheet.state, 0)
    for own in range(chosen):
        add(table, person, sheet.state, 0, sheet.chosen[own])
    write_row(table, person, sheet, count, 0)
    for own in range(chosen):
        start(table, person, sheet.state, 0)
        for other in range(chosen):
            if other != own:
                add(table, person, sheet.state, 0, sheet.chosen[other])
        item = sheet.chosen[own]
        sheet.values[stands(sheet, count, item)] = gain(table, person, sheet.state, 0, item)


def gathered(
    table: Table, first: int, last: int, leaves: int, ends: Ints, words: Ints
) -> scipy.sparse.csr_array:
    """One row per person: what each item adds to her set, or what the set loses without it."""
    n_items = len(ends) - 1
    starts = np.zeros(last - first + 1, dtype=np.int64)
    state, bag = np.empty(largest_state(table, first, last)), new_gain_buffer(n_items, leaves)
    _count(table, first, last, state, bag, starts)
    items, values = np.zeros(starts[-1], dtype=np.int64), np.zeros(starts[-1])
    chosen, where = np.zeros(n_items, dtype=np.int32), np.full(n_items, -1)
    _fill(table, first, last, ends, words, state, bag, chosen, where, starts, items, values)
    rows = scipy.sparse.csr_array((values, items, starts), shape=(last - first, n_items))
    rows.sort_indices()
    return rows


@kernel
def _count(table: Table, first: int, last: int, state: Floats, bag: GainBuffer, starts: Ints) -> None:
    """How many items each person cares about: nothing else ever adds anything."""
    for person in range(first, last):
        start(table, person, state, 0)
        starts[person - first + 1] = starts[person - first] + gains(table, person, state, 0, bag, 0)


@kernel
def _fill(
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
        level = _level(word)
        start(table, person, state, 0)
        for j in range(gains(table, person, state, 0, bag, 0)):
            item = bag.items[j]
            items[at + j], where[item] = item, at + j
            if _in_set(ends, word, level, item):
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
