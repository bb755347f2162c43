r"""A model of what slates are worth: an appeal for each item, an overlap for each pair that was shown together. Public.

Item a has an *appeal* t_a > 0: shown alone, it satisfies 1 - exp(-t_a) of the users. Two items may please the same
users: of the smaller of two appeals the pair's *overlap* r is lost when both are shown (a negative one is a gain, as
of things that go together). So a slate S has the appeal

    t(S) = sum over a in S of  t_a * product over b in S with a larger appeal of (1 - r_ab)

and pays 1 - exp(-t(S)); within its first i slots users click with the chance 1 - exp(-t(S_i)). Pairs that were never
shown together have no overlap. Values multiply where they must not exceed one, and nothing is assumed that a
Markov chain could not change its mind about (mcmc.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import allocating_kernel, inline
from diminuendo.types import Floats, Ints, Items

NO_PAIR = -1
"""In the place of a pair's number, where two items were never shown together."""
REWARD_ROUNDING = 1e-9
"""Rewards that are worked out in different orders differ by far less than this."""


class Neighbours(NamedTuple):
    """Which items were shown together: those of item a, and the numbers of the pairs, from starts[a] to starts[a+1]."""

    starts: Ints
    items: Ints
    pairs: Ints


class Draws(NamedTuple):
    """Draws of a Markov chain, one row for each."""

    appeals: Floats
    """(draws, items): the appeal of every item."""
    overlaps: Floats
    """(draws, pairs): the overlap of every pair."""


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
def mark_pairs(neighbours: Neighbours, item: int, row: Ints) -> None:
    """row[a]: the number of the pair of `item` and a."""
    row[:] = NO_PAIR
    for place in range(neighbours.starts[item], neighbours.starts[item + 1]):
        row[neighbours.items[place]] = neighbours.pairs[place]


@inline
def _appeal_with(
    item: int,
    slate: Items,
    skip: int,
    pairs: Ints,
    appeals: Floats,
    overlaps: Floats,
    kept: Floats,
    appeal: float,
) -> float:
    """The appeal of a slate with `item` in the place of slot `skip`; pairs[j]: its pair with the item in slot j."""
    own = appeals[item]
    left = own
    for j in range(len(slate)):
        if j != skip and pairs[j] != NO_PAIR and overlaps[pairs[j]] != 0.0:
            theirs = appeals[slate[j]]
            if theirs > own or (theirs == own and slate[j] < item):
                left *= 1 - overlaps[pairs[j]]
            else:
                appeal -= kept[j] * overlaps[pairs[j]]
    return float(appeal + left)


@inline
def _total_reward(
    item: int,
    slate: Items,
    slot: int,
    pair_of: Ints,
    pairs: Ints,
    draws: Draws,
    which: Ints,
    kept: Floats,
    without: Floats,
) -> float:
    """What a slate pays with that item in `slot`, summed over draws."""
    for j in range(len(slate)):
        pairs[j] = pair_of[j, item] if j != slot else NO_PAIR
    total = 0.0
    for d in range(len(which)):
        appeals, overlaps = draws.appeals[which[d]], draws.overlaps[which[d]]
        total += 1 - math.exp(-_appeal_with(item, slate, slot, pairs, appeals, overlaps, kept[d], without[d]))
    return total


@inline
def _count_beside(neighbours: Neighbours, item: int, by: int, beside: Ints) -> None:
    """An item joins the slate (`by` is 1), or leaves it (-1); beside[a]: with how many of the slate a was shown."""
    for place in range(neighbours.starts[item], neighbours.starts[item + 1]):
        beside[neighbours.items[place]] += by


@allocating_kernel
def best_for_slot(
    slot: int,
    length: int,
    slate: Items,
    used: NDArray[np.bool_],
    draws: Draws,
    which: Ints,
    pair_of: Ints,
    beside: Ints,
    most: Floats,
) -> tuple[int, float]:
    """Which item of those that are not used pays most in `slot` of a slate of that length, summed over draws.

    An item that was shown with none of the others adds at most its appeal, times exp(-appeal) of the others. That is a
    product to each draw and no exponential, and for nearly all items it is less than what the best of them pays.
    """
    k, n_items = length, draws.appeals.shape[1]
    others = slate[:k]
    kept, pairs, between = (
        np.ones((len(which), k)),
        np.empty(k, dtype=np.int64),
        np.empty((k, k), dtype=np.int64),
    )
    without, order = np.empty(len(which)), np.empty(k, dtype=np.int32)
    count = 0
    for i in range(k):
        if i != slot:
            order[count] = i
            count += 1
    for i in range(count):
        for j in range(count):
            between[i, j] = pair_of[order[j], others[order[i]]]
    rest, spare = others[order[:count]], np.empty(k)
    for d in range(len(which)):
        appeal = 0.0
        for i in range(count):
            appeal = join(rest, between, i, draws.appeals[which[d]], draws.overlaps[which[d]], spare, appeal)
        without[d] = appeal
        for i in range(count):
            kept[d, order[i]] = spare[i]
    most[:] = len(which) * REWARD_ROUNDING
    for d in range(len(which)):
        appeals, others_leave = draws.appeals[which[d]], math.exp(-without[d])
        most += 1 - others_leave
        for item in range(n_items):
            most[item] += others_leave * appeals[item]
    first = 0
    for item in range(n_items):
        if not used[item] and (used[first] or most[item] > most[first]):
            first = item
    enough = _total_reward(first, others, slot, pair_of, pairs, draws, which, kept, without)
    best, result = -1.0, 0
    for item in range(n_items):
        if used[item] or (most[item] < enough and beside[item] == 0):
            continue
        total = _total_reward(item, others, slot, pair_of, pairs, draws, which, kept, without)
        if total > best:
            best, result = total, item
    return result, best


@allocating_kernel
def best_slate(draws: Draws, which: Ints, neighbours: Neighbours, slate: Items, passes: int) -> None:
    """The slate that pays most on average over some draws: greedily, then by `passes` over its slots to exchange one.

    Each slot is decided by looking at every item, which takes draws * slots * items steps.
    """
    k, n_items = len(slate), draws.appeals.shape[1]
    pair_of, used = np.empty((k, n_items), dtype=np.int64), np.zeros(n_items, dtype=np.bool_)
    beside, most, best = np.zeros(n_items, dtype=np.int64), np.empty(n_items), 0.0
    for i in range(k):
        slate[i], best = best_for_slot(i, i + 1, slate, used, draws, which, pair_of, beside, most)
        used[slate[i]] = True
        _count_beside(neighbours, slate[i], 1, beside)
        mark_pairs(neighbours, slate[i], pair_of[i])
    for _ in range(passes):
        moved = False
        for i in range(k):
            before = slate[i]
            result, worth = best_for_slot(i, k, slate, used, draws, which, pair_of, beside, most)
            if worth > best * (1 + 1e-9):
                slate[i], best, moved = result, worth, True
                used[before], used[result] = False, True
                _count_beside(neighbours, before, -1, beside)
                _count_beside(neighbours, result, 1, beside)
                mark_pairs(neighbours, result, pair_of[i])
        if not moved:
            break


@allocating_kernel
def chances(slate: Items, draws: Draws, which: Ints, neighbours: Neighbours, out: Floats) -> None:
    """out[d, i]: what the first i + 1 items pay, or how likely a click within them is, in draw which[d]."""
    k = len(slate)
    pair_of = np.empty(draws.appeals.shape[1], dtype=np.int64)
    pairs, kept = np.empty((k, k), dtype=np.int64), np.empty(k)
    for j in range(k):
        mark_pairs(neighbours, slate[j], pair_of)
        for i in range(k):
            pairs[i, j] = pair_of[slate[i]]
    for d in range(len(which)):
        appeal = 0.0
        for i in range(k):
            appeal = join(slate, pairs, i, draws.appeals[which[d]], draws.overlaps[which[d]], kept, appeal)
            out[d, i] = 1 - math.exp(-appeal)
