"""What users say around a slate: each user one vector of several parts, clipped as a whole, and added up."""

from __future__ import annotations

import math

from diminuendo._numba import inline, kernel
from diminuendo.sums.clip import Rule, clip_row
from diminuendo.sums.greedy_queries.answers import Answers
from diminuendo.types import Floats, Ints

EASE = 1.4
"""A user is first scaled so that her singles are at most this long: what she counts then hardly depends on how well
the slate serves her already."""


@kernel
def add_swap(
    rule: Rule,
    users: Answers,
    gains: Floats,
    factors: Floats,
    place: Ints,
    ease: float,
    row: Floats,
    at: Ints,
    ticks: Ints,
    total: Ints,
) -> None:
    """Add what these users say, each clipped as one vector; `gains`: (parts, entries).

    What an item adds lies between 0 and what it is worth by itself.
    """
    begin, n_items = users.starts[0], len(factors)
    for user in range(len(users.starts) - 1):
        low, high = users.starts[user], users.starts[user + 1]
        square, size = 0.0, 0
        for j in range(low, high):
            single = factors[users.items[j]] * users.values[j]
            square += single * single
        scale = min(1.0, ease / math.sqrt(square)) if square > 0.0 else 0.0
        for j in range(low, high):
            item, most = users.items[j], users.values[j]
            slot, weight = place[item], factors[item] * scale
            rest = _between(gains[0, j - begin], most) if slot < 0 else 0.0
            if rest > 0.0:
                row[size], at[size] = weight * rest, item
                size += 1
            for part in range(1, gains.shape[0]):
                if slot < 0 or slot == part - 1:
                    kept = _between(gains[part, j - begin], most) - rest
                    if kept > 0.0:
                        row[size], at[size] = weight * kept, part * n_items + item
                        size += 1
        clip_row(rule, row, 0, size, ticks)
        for j in range(size):
            total[at[j]] += int(users.weights[user]) * ticks[j]


@inline
def _between(gain: float, most: float) -> float:
    """A gain cut to what it can be; 0 where it is not a number."""
    return min(gain, most) if gain > 0.0 else 0.0
