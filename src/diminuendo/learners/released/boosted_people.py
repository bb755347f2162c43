"""What one person contributes to boosted: what each item adds to a set, or what the set loses without it.

One public word spells a level z and a set R, each item with probability z x_a. Whether an item is in R is asked only of
items that she cares about, so the work is in proportion to those.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo._validate import as_float, as_floats
from diminuendo.experts.capped_simplex import ONE
from diminuendo.learners.released.contribution import (
    Contribution,
    add_bag_to_batch,
    add_to_batch,
    care_about,
    in_order,
    stands,
    write_row,
)
from diminuendo.learners.released.menu import PointMenu
from diminuendo.objectives.family import Table, add, gain, start
from diminuendo.sums.batch import BatchView
from diminuendo.sums.clip import cannot_exceed
from diminuendo.types import Floats, Ints, Items, Objective


class BoostedGains:
    """What items add to a random set of items, each as likely as the menu's point and a level say."""

    def __init__(self, menu: PointMenu) -> None:
        self._ends = menu.ends
        self._largest_share = int(np.diff(menu.ends).max())

    def add_people(
        self,
        table: Table,
        first: int,
        last: int,
        slates: Items,
        words: Ints,
        scratch: Contribution,
        into: BatchView,
    ) -> int:
        """Add what people from `first` on contribute to the open batch; who comes next when there is more scratch."""
        return int(_add_people(table, first, last, self._ends, self._largest_share, words, scratch, into))

    def of_function(self, person: Objective, row: Items, word: int) -> Floats:
        """What one person contributes, whoever she is: value by value."""
        out = np.zeros(len(self._ends) - 1)
        spell(self._ends, word, out)
        chosen = [int(item) for item in np.flatnonzero(out)]
        worth = as_float(person.value(chosen)) if chosen else 0.0
        out = as_floats(person.gains(chosen)).copy()
        for item in chosen:
            out[item] = worth - as_float(person.value([other for other in chosen if other != item]))
        return out


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
def level_of(word: int) -> float:
    """z, with density in proportion to e^z on [0, 1]."""
    return math.log1p(_spelled(word, 0) * (math.e - 1.0))


@inline
def in_set(ends: Ints, word: int, level: float, item: int) -> bool:
    """Whether item is in R: with probability level * x_item, independently."""
    return bool(_spelled(word, item + 1) * ONE < level * (ends[item + 1] - ends[item]))


@kernel
def spell(ends: Ints, word: int, out: Floats) -> None:
    """R as zeros and ones."""
    level = level_of(word)
    for item in range(len(out)):
        out[item] = 1.0 if in_set(ends, word, level, item) else 0.0


@inline
def _may_hold(word: int, largest_share: int, items: Items) -> bool:
    """False: none of these is in R, were the level 1 and each as likely as the likeliest, by 31 bits of its number.

    A number n of 53 bits says yes if n * ONE / 2^53 < share, and then its leading bits are at most those of that bound.
    """
    least = ~np.uint64(0)
    for item in items:
        least = min(least, _mixed(word, int(item) + 1))
    return bool(least >> np.uint64(33) <= np.uint64(largest_share) * np.uint64(2**53 // ONE) >> np.uint64(22))


@kernel
def _add_people(
    table: Table,
    first: int,
    last: int,
    ends: Ints,
    largest_share: int,
    words: Ints,
    scratch: Contribution,
    into: BatchView,
) -> int:
    """`largest_share`: of any item, so that the shares of most items need not be looked up."""
    for person in range(first, last):
        count = care_about(table, person, scratch)
        if count < 0:
            return person
        word = words[person - first]
        some = _may_hold(word, largest_share, scratch.bag.items[:count])
        if some or not cannot_exceed(into.rule, count):
            in_order(scratch, count)
            if some:
                _choose(table, person, ends, word, scratch, count)
            add_to_batch(scratch, count, 1, 1, into)
        else:  # none of it is in R: what each item adds to nothing, in whatever order
            add_bag_to_batch(scratch, count, into)
    return last


@inline
def _choose(table: Table, person: int, ends: Ints, word: int, scratch: Contribution, count: int) -> None:
    """Compare with what is in R, if anything is."""
    level, chosen = level_of(word), 0
    for j in range(count):
        if in_set(ends, word, level, scratch.bag.items[j]):
            scratch.chosen[chosen] = scratch.bag.items[j]
            chosen += 1
    if chosen > 0:
        _compare(table, person, scratch, count, chosen)


@inline
def _compare(table: Table, person: int, scratch: Contribution, count: int, chosen: int) -> None:
    """What each item adds to those that are chosen, or what they lose without it."""
    start(table, person, scratch.state, 0)
    for own in range(chosen):
        add(table, person, scratch.state, 0, scratch.chosen[own])
    write_row(table, person, scratch, count, 0)
    for own in range(chosen):
        start(table, person, scratch.state, 0)
        for other in range(chosen):
            if other != own:
                add(table, person, scratch.state, 0, scratch.chosen[other])
        item = scratch.chosen[own]
        scratch.values[stands(scratch, count, item)] = gain(table, person, scratch.state, 0, item)
