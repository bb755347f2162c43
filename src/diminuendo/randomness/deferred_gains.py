"""Gains that wait: classes (score_classes.py) for people who name every item, a block of rounds at a time.

Where everybody names every item, adding what N items gain to each expert in each round is nearly all of the work. But
draws ask for the totals of very few items. So the gains of a block of rounds wait, as rows of numbers and one factor
for each expert: item a gains floor(factor * row[a]) ticks. A draw that wants to know a total adds what waits for that
one item. At the end of the block everything is added at once, in tiles of items whose rows stay in the cache.

What must not wait is an item's step into the next class. Classes are many rounds wide, so few items can take one within
a block. These, the near ones, are found before the block begins and followed from round to round, in the order of
items, as `grow` would. All others stand where they stand, whatever they gain. Blocks are as long as that pays.

So classes, orders and, after the block, totals are what `grow` makes of the same gains, bit for bit: all of it is
whole numbers. Rates stay as they are. Cost, assumptions and what is excluded are those of score_classes.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline
from diminuendo.randomness.exponential import KEPT, OPEN, keep, keep_within
from diminuendo.randomness.score_classes import BITS, SHIFT, TICKS, ScoreClasses, move_up, propose, reference
from diminuendo.randomness.words import UNFINISHED, SecretWords
from diminuendo.types import Floats, Ints, Items

SHORTEST, LONGEST = 4, 64
"""Rounds of a block. By the longest, going through the totals once is a small part of the work."""

TILE = 128
"""Items whose gains are added together: LONGEST rows of so many numbers stay in the processor's cache."""

FOLLOWING = 4
"""To follow an item in one round costs as much as to look at so many items in the end, as measured."""


class Waiting(NamedTuple):
    """What waits for each expert. When a kernel returns, nothing waits."""

    rounds: Ints
    """(1,) how many rounds wait."""
    ahead: Ints
    """(1,) for how many rounds what is near was found. The only thing here that lasts, and it only saves time."""
    begins: Ints
    """(LONGEST,) where the row of each waiting round begins among the numbers of all people."""
    factors: Floats
    """(classes, LONGEST + 4) of each waiting round, in ticks; 0 after the last."""
    most: Ints
    """(classes,) what waits for any one item, in ticks, at most."""
    near: Items
    """(classes, n) near items, in order ..."""
    known: Ints
    """(classes, n) ... their totals, with all that waits ..."""
    found: Ints
    """(classes,) ... and how many there are."""
    passed: NDArray[np.bool_]
    """(n,) items passed by: those that gain nothing more in this round."""
    chances: Floats
    """(classes,) scratch: the number of each expert's own item in this round's row."""
    sums: NDArray[np.int32]
    """(classes, TILE) scratch."""

    def __repr__(self) -> str:
        return "<Waiting>"


def new_waiting(n_items: int, classes: int) -> Waiting:
    """Nothing waits."""
    return Waiting(
        rounds=np.zeros(1, dtype=np.int64),
        ahead=np.full(1, SHORTEST),
        begins=np.zeros(LONGEST, dtype=np.int64),
        factors=np.zeros((classes, LONGEST + 4)),
        most=np.zeros(classes, dtype=np.int64),
        near=np.zeros((classes, n_items), dtype=np.int32),
        known=np.zeros((classes, n_items), dtype=np.int64),
        found=np.zeros(classes, dtype=np.int64),
        passed=np.zeros(n_items, dtype=np.bool_),
        chances=np.zeros(classes),
        sums=np.zeros((classes, TILE), dtype=np.int32),
    )


@inline
def draw_while_waiting(
    classes: ScoreClasses, waiting: Waiting, rows: Floats, expert: int, secret: SecretWords
) -> int:
    """`draw`, from totals and what waits."""
    while True:
        item, residual, sure = propose(classes, expert, secret)
        if sure:
            return item
        # What waits is at most so much, and mostly that says enough: its rows need not come from memory.
        total, bits = classes.totals[item, expert], classes.marks[expert, BITS]
        lowest = total - reference(classes, expert)
        kept = keep_within(
            residual, classes.rate[expert], lowest, lowest + waiting.most[expert], bits, secret
        )
        if kept == OPEN:
            for t in range(waiting.rounds[0]):
                lowest += ticks_of(waiting.factors[expert, t], rows[waiting.begins[t] + item])
            kept = keep(residual, classes.rate[expert], lowest, bits, secret)
        if kept == UNFINISHED:
            return UNFINISHED
        if kept == KEPT:
            return item


@inline
def ticks_of(factor: float, number: float) -> int:
    """What an item gains: `to_ticks` of the gain, where factor is a chance in ticks and number a chance."""
    return int(factor * number)


@inline
def wait(classes: ScoreClasses, waiting: Waiting, rows: Floats, expert: int, factor: float) -> None:
    """In the round under way every item gains floor(factor * row) in this expert, unless it is passed by.

    What waits is added to those passed by all the same, so the caller takes it off their totals.
    """
    t = waiting.rounds[0]
    begin = waiting.begins[t]
    waiting.factors[expert, t] = factor
    waiting.most[expert] += ticks_of(factor, 1.0)
    for j in range(waiting.found[expert]):
        item = waiting.near[expert, j]
        if not waiting.passed[item]:
            old = waiting.known[expert, j]
            ticks = ticks_of(factor, rows[begin + item])
            if ticks > 0:
                waiting.known[expert, j] = old + ticks
                move_up(classes, expert, item, old, old + ticks)


@inline
def add_up(classes: ScoreClasses, waiting: Waiting, rows: Floats, best: Ints) -> None:
    """Add what waits to the totals; note the best of each expert, and what is near in the rounds ahead."""
    n, count = classes.totals.shape
    rounds = waiting.rounds[0]
    waiting.factors[:, rounds : rounds + 4] = 0.0
    waiting.found[:] = 0
    waiting.most[:] = 0
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        for expert in range(count):
            _add_rows(waiting, rows, expert, first, waiting.sums[expert, :size])
            top, found = best[expert], waiting.found[expert]
            within = (1 << classes.marks[expert, SHIFT]) - 1
            far = within - waiting.ahead[0] * TICKS
            for j in range(size):
                total = classes.totals[first + j, expert] + waiting.sums[expert, j]
                classes.totals[first + j, expert] = total
                top = max(top, total)
                if total & within > far or total == 0:
                    waiting.near[expert, found], waiting.known[expert, found] = first + j, total
                    found += 1
            best[expert], waiting.found[expert] = top, found
    waiting.rounds[0] = 0


@inline
def look_ahead(waiting: Waiting) -> None:
    """Choose for how many rounds to look ahead next: so that following costs no more than adding up, and not far less.

    Twice the rounds have about twice the near items, each to be followed for twice as long.
    """
    followed, ahead = 0, waiting.ahead[0]
    for expert in range(len(waiting.found)):
        followed += waiting.found[expert] * ahead * FOLLOWING
    looked_at = waiting.near.size
    if followed > looked_at:
        waiting.ahead[0] = max(SHORTEST, ahead // 2)
    elif 4 * followed <= looked_at:
        waiting.ahead[0] = min(LONGEST, ahead * 2)


@inline
def _add_rows(waiting: Waiting, rows: Floats, expert: int, first: int, sums: NDArray[np.int32]) -> None:
    """What items from `first` on gain in all waiting rounds; four rows at a time, to read the sums less often.

    Sums fit into 32 bits, since no item gains more than LONGEST units.
    """
    size, last, factors = len(sums), waiting.rounds[0] - 1, waiting.factors[expert]
    sums[:] = 0
    for t in range(0, last + 1, 4):
        a, b = waiting.begins[t] + first, waiting.begins[min(t + 1, last)] + first
        c, d = waiting.begins[min(t + 2, last)] + first, waiting.begins[min(t + 3, last)] + first
        _add_four(
            sums,
            rows[a : a + size],
            rows[b : b + size],
            rows[c : c + size],
            rows[d : d + size],
            factors[t : t + 4],
        )


@inline
def _add_four(sums: NDArray[np.int32], a: Floats, b: Floats, c: Floats, d: Floats, by: Floats) -> None:
    by_a, by_b, by_c, by_d = by[0], by[1], by[2], by[3]
    for j in range(len(sums)):
        sums[j] += (
            np.int32(by_a * a[j]) + np.int32(by_b * b[j]) + np.int32(by_c * c[j]) + np.int32(by_d * d[j])
        )
