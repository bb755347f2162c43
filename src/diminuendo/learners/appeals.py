r"""Appeals: a model of what slates are worth, with one number per item and one per pair of items shown together.

Item a has an *appeal* t_a > 0: shown alone, it satisfies 1 - exp(-t_a) of the people. Two items may please the same
people: of the smaller of two appeals the pair's *overlap* r is lost when both are shown (a negative one is a gain, as
of things that go together). So a slate S has the appeal

    t(S) = sum over a in S of  t_a * product over b in S with a larger appeal of (1 - r_ab)

and pays 1 - exp(-t(S)); within its first i slots people click with the chance 1 - exp(-t(S_i)). Pairs that were never
shown together have no overlap. Values multiply where they must not exceed one, and nothing is assumed that a
Markov chain could not change its mind about (appeal_chain.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo._jit import allocating_kernel, inline
from diminuendo.types import Floats, Ints, Items

NO_PAIR = -1


class Neighbours(NamedTuple):
    """Which items were shown together: those of item a, and the numbers of the pairs, from starts[a] to starts[a+1]."""

    starts: Ints
    items: Ints
    pairs: Ints


class Draws(NamedTuple):
    """What the Markov chain thought possible lately: one row per draw."""

    appeals: Floats
    """(draws, items)."""
    overlaps: Floats
    """(draws, pairs)."""


@inline
def join(
    slate: Items, pairs: Ints, slot: int, appeals: Floats, overlaps: Floats, kept: Floats, appeal: float
) -> float:
    """The appeal of the first slot + 1 items, given that of the first `slot`; `kept`: what each has left of its own.

    pairs[i, j] is the number of the pair of the items in slots i and j, or NO_PAIR.
    """
    own = appeals[slate[slot]]
    left = own
    for j in range(slot):
        pair = pairs[slot, j]
        if pair != NO_PAIR and overlaps[pair] != 0.0:
            theirs = appeals[slate[j]]
            if theirs > own or (theirs == own and slate[j] < slate[slot]):
                left *= 1 - overlaps[pair]
            else:
                appeal -= kept[j] * overlaps[pair]
                kept[j] *= 1 - overlaps[pair]
    kept[slot] = left
    return float(appeal + left)


@inline
def mark(neighbours: Neighbours, item: int, row: Ints) -> None:
    """row[a]: the number of the pair of `item` and a."""
    row[:] = NO_PAIR
    for place in range(neighbours.starts[item], neighbours.starts[item + 1]):
        row[neighbours.items[place]] = neighbours.pairs[place]


@inline
def _worth(
    slate: Items, length: int, draws: Draws, which: Ints, marks: Ints, pairs: Ints, kept: Floats
) -> float:
    """What the first `length` items pay, summed over draws; marks[j] says who was shown with the item in slot j."""
    for i in range(length):
        for j in range(length):
            pairs[i, j] = marks[j, slate[i]]
    total = 0.0
    for draw in which:
        appeal = 0.0
        for i in range(length):
            appeal = join(slate, pairs, i, draws.appeals[draw], draws.overlaps[draw], kept, appeal)
        total += 1 - math.exp(-appeal)
    return total


@allocating_kernel
def best_slate(draws: Draws, which: Ints, neighbours: Neighbours, slate: Items, passes: int) -> None:
    """The slate that pays most on average over some draws: greedily, then by `passes` over its slots to exchange one.

    Each slot is decided by looking at every item, so this takes draws * slots^2 * items steps.
    """
    k, n_items = len(slate), draws.appeals.shape[1]
    marks = np.empty((k, n_items), dtype=np.int64)
    pairs, kept = np.empty((k, k), dtype=np.int64), np.empty(k)
    used = np.zeros(n_items, dtype=np.bool_)
    best = 0.0
    for i in range(k):
        best, found = -1.0, 0
        marks[i] = NO_PAIR
        for item in range(n_items):
            if not used[item]:
                slate[i] = item
                worth = _worth(slate, i + 1, draws, which, marks, pairs, kept)
                if worth > best:
                    best, found = worth, item
        slate[i] = found
        used[found] = True
        mark(neighbours, found, marks[i])
    for _ in range(passes):
        moved = False
        for i in range(k):
            before = found = slate[i]
            for item in range(n_items):
                if not used[item]:
                    slate[i] = item
                    mark_one(neighbours, marks, slate, i)
                    worth = _worth(slate, k, draws, which, marks, pairs, kept)
                    if worth > best * (1 + 1e-9):
                        best, found = worth, item
            slate[i] = found
            mark(neighbours, found, marks[i])
            if found != before:
                used[before], used[found], moved = False, True, True
        if not moved:
            break


@inline
def mark_one(neighbours: Neighbours, marks: Ints, slate: Items, slot: int) -> None:
    """As if marks[slot] were written anew, as far as this slate looks at it."""
    for j in range(len(slate)):
        marks[slot, slate[j]] = marks[j, slate[slot]] if j != slot else NO_PAIR


@allocating_kernel
def chances(slate: Items, draws: Draws, neighbours: Neighbours, out: Floats) -> None:
    """out[d, i]: what the first i + 1 items pay, or how likely a click within them is, in draw d."""
    k = len(slate)
    marks = np.empty(draws.appeals.shape[1], dtype=np.int64)
    pairs, kept = np.empty((k, k), dtype=np.int64), np.empty(k)
    for j in range(k):
        mark(neighbours, slate[j], marks)
        for i in range(k):
            pairs[i, j] = marks[slate[i]]
    for draw in range(out.shape[0]):
        appeal = 0.0
        for i in range(k):
            appeal = join(slate, pairs, i, draws.appeals[draw], draws.overlaps[draw], kept, appeal)
            out[draw, i] = 1 - math.exp(-appeal)
