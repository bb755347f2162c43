"""Gains that wait: urns (urns.py) for people who name every item, a block of rounds at a time.

Where everybody names every item, adding what N items gain to each urn in each round is nearly all of the work. But
draws ask for the totals of very few items. So the gains of a block of rounds wait, as rows of numbers and one factor
for each urn: item a gains floor(factor * row[a]) ticks. A draw that wants to know a total adds what waits for that one
item. At the end of the block everything is added at once, in tiles of items whose rows stay in the processor's cache.

What must not wait is an item's step into the next class. Classes are many rounds wide, so few items can take one within
a block. These, the near ones, are found when the block opens and followed from round to round, in the order of
items, as `grow` would. All others stand where they stand, whatever they gain.

So classes, orders and, after the block, totals are what `grow` makes of the same gains, bit for bit: all of it is
whole numbers. Urns of a block keep their rates. Cost, assumptions and what is excluded are those of urns.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._jit import inline
from diminuendo.randomness.exponential import KEPT
from diminuendo.randomness.urns import SHIFT, TICKS, WHOLE, Urns, climb, keep_at, propose
from diminuendo.randomness.words import UNFINISHED, SecretWords
from diminuendo.types import Floats, Ints, Items

LONGEST = 32
"""Rounds of a block at most: then adding them up costs little beside reading the rows."""

SHORTEST = 4
"""Shorter blocks save too little. Also how many rows are added in one go."""

TILE = 128
"""Items whose gains are added together: LONGEST rows of so many numbers fit into the cache nearest to the processor."""

NEAR_SHARE = 8
"""A block opens if at most one item in so many is near: to follow one costs many times what it costs to wait."""


class Waiting(NamedTuple):
    """What waits for each urn. Nothing of it has a meaning between calls."""

    rounds: Ints
    """(1,) how many rounds wait."""
    begins: Ints
    """(LONGEST,) where the row of each begins among the numbers of all people."""
    factors: Floats
    """(urns, LONGEST + SHORTEST) of each round, in ticks; 0 after the last."""
    near: Items
    """(urns, n / NEAR_SHARE) near items, in order ..."""
    known: Ints
    """... their totals, with all that waits ..."""
    found: Ints
    """(urns,) ... and how many there are."""
    passed: NDArray[np.bool_]
    """(n,) items that gain nothing more in this round."""
    sums: NDArray[np.int32]
    """(urns, TILE) scratch."""

    def __repr__(self) -> str:
        return "<Waiting>"


def new_waiting(n_items: int, urns: int) -> Waiting:
    """Nothing waits."""
    most = n_items // NEAR_SHARE + 1
    return Waiting(
        rounds=np.zeros(1, dtype=np.int64),
        begins=np.zeros(LONGEST, dtype=np.int64),
        factors=np.zeros((urns, LONGEST + SHORTEST)),
        near=np.zeros((urns, most), dtype=np.int32),
        known=np.zeros((urns, most), dtype=np.int64),
        found=np.zeros(urns, dtype=np.int64),
        passed=np.zeros(n_items, dtype=np.bool_),
        sums=np.zeros((urns, TILE), dtype=np.int32),
    )


@inline
def block_length(shift: int) -> int:
    """How many rounds should wait where classes are 2^shift ticks wide; below SHORTEST: none.

    A longer block is added up more cheaply, and has more near items to follow: the root of the width balances the two.
    """
    return int(min(float(LONGEST), np.sqrt(2.0 ** (shift - WHOLE - 1))))


@inline
def open_block(urns: Urns, waiting: Waiting, rounds: int) -> bool:
    """Find the items that may change their classes within so many rounds; False where they are too many."""
    n, count = urns.totals.shape
    most = n // NEAR_SHARE
    waiting.rounds[0] = 0
    waiting.found[:] = 0
    for item in range(n):
        for urn in range(count):
            total, width = urns.totals[item, urn], 1 << urns.marks[urn, SHIFT]
            if total == 0 or (total & (width - 1)) + rounds * TICKS >= width:
                place = waiting.found[urn]
                if place == most:
                    return False
                waiting.near[urn, place], waiting.known[urn, place] = item, total
                waiting.found[urn] = place + 1
    return True


@inline
def draw_while_waiting(urns: Urns, waiting: Waiting, rows: Floats, urn: int, secret: SecretWords) -> int:
    """`draw`, from totals and what waits."""
    while True:
        item, residual, sure = propose(urns, urn, secret)
        if sure:
            return item
        total = urns.totals[item, urn]
        for t in range(waiting.rounds[0]):
            total += ticks_of(waiting.factors[urn, t], rows[waiting.begins[t] + item])
        kept = keep_at(urns, urn, residual, total, secret)
        if kept == UNFINISHED:
            return UNFINISHED
        if kept == KEPT:
            return item


@inline
def ticks_of(factor: float, number: float) -> int:
    """What an item gains: `to_ticks` of the gain, where factor is a chance in ticks and number a chance."""
    return int(factor * number)


@inline
def wait(urns: Urns, waiting: Waiting, rows: Floats, urn: int, factor: float) -> None:
    """Every item gains floor(factor * row) in this urn, but those passed; of the round that `next_round` will end."""
    t = waiting.rounds[0]
    begin = waiting.begins[t]
    waiting.factors[urn, t] = factor
    for j in range(waiting.found[urn]):
        item = waiting.near[urn, j]
        if not waiting.passed[item]:
            old = waiting.known[urn, j]
            ticks = ticks_of(factor, rows[begin + item])
            if ticks > 0:
                waiting.known[urn, j] = old + ticks
                climb(urns, urn, item, old, old + ticks)


@inline
def add_up(urns: Urns, waiting: Waiting, rows: Floats, best: Ints) -> None:
    """Add what waits to the totals, and note the best total of each urn."""
    n, count = urns.totals.shape
    rounds = waiting.rounds[0]
    waiting.factors[:, rounds : rounds + SHORTEST] = 0.0
    first = 0
    while first < n and rounds > 0:
        size = min(TILE, n - first)
        for urn in range(count):
            _add_rows(waiting, rows, urn, first, waiting.sums[urn, :size])
            top = best[urn]
            for j in range(size):
                total = urns.totals[first + j, urn] + waiting.sums[urn, j]
                urns.totals[first + j, urn] = total
                top = max(top, total)
            best[urn] = top
        first += size
    waiting.rounds[0] = 0


@inline
def _add_rows(waiting: Waiting, rows: Floats, urn: int, first: int, sums: NDArray[np.int32]) -> None:
    """What items from `first` on gain in all waiting rounds; four rows at a time, to read the sums less often.

    Sums fit into 32 bits, since no item gains more than LONGEST units.
    """
    size, last, factors = len(sums), waiting.rounds[0] - 1, waiting.factors[urn]
    sums[:] = 0
    for t in range(0, last + 1, SHORTEST):
        a, b = waiting.begins[t] + first, waiting.begins[min(t + 1, last)] + first
        c, d = waiting.begins[min(t + 2, last)] + first, waiting.begins[min(t + 3, last)] + first
        _add_four(
            sums,
            rows[a : a + size],
            rows[b : b + size],
            rows[c : c + size],
            rows[d : d + size],
            factors[t : t + SHORTEST],
        )


@inline
def _add_four(sums: NDArray[np.int32], a: Floats, b: Floats, c: Floats, d: Floats, by: Floats) -> None:
    by_a, by_b, by_c, by_d = by[0], by[1], by[2], by[3]
    for j in range(len(sums)):
        sums[j] += (
            np.int32(by_a * a[j]) + np.int32(by_b * b[j]) + np.int32(by_c * c[j]) + np.int32(by_d * d[j])
        )
