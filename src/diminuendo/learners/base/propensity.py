"""With what chance a slate was drawn, for learners whose slates follow from what was published.

Each function is the law of one compiled draw, written down once more for a single slate: experts in turn
(hedge/lazy.py), pivotal rounding (experts/capped_simplex.py). Shares are whole numbers and public. So are these
chances, and a log of them can be used to evaluate other slates later (docs/maths/off-policy.md, Lemma V5).
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import allocating_kernel, kernel
from diminuendo.experts.capped_simplex import ONE
from diminuendo.randomness.shares import find
from diminuendo.types import Floats, Ints, Items


@kernel
def in_turn(ends: Ints, row: Items) -> float:
    """Experts draw `row`, one after the other among the items not taken."""
    chance, n_items = 1.0, ends.shape[1] - 1
    for slot in range(len(row)):
        left = ends[slot, n_items]
        for before in range(slot):
            left -= ends[slot, row[before] + 1] - ends[slot, row[before]]
        chance *= (ends[slot, row[slot] + 1] - ends[slot, row[slot]]) / left
    return chance


@allocating_kernel
def pivotal(ends: Ints, row: Items) -> float:
    """`row` is drawn from a point of the capped simplex by pivotal rounding of the items in order.

    Followed unit by unit: who is left over, each item of the row by itself, and all other items together.
    """
    slots, rest = len(row), 0
    left: Floats = np.zeros(slots + 1)  # how likely; the last entry: none of the row
    left[slots] = 1.0
    for unit in range(slots):
        border = (unit + 1) * ONE
        crossing = find(ends, border - 1)
        inside, beyond = border - ends[crossing], ends[crossing + 1] - border
        if inside < ONE:  # who stays before the item that crosses: who is left over, or one inside
            low, high, total = unit * ONE + rest, border - inside, left.sum()
            others = high - low
            left *= rest / (ONE - inside)
            for j in range(slots):
                length = max(0, min(ends[row[j] + 1], high) - max(ends[row[j]], low))
                left[j] += total * length / (ONE - inside)
                others -= length
            left[slots] += total * others / (ONE - inside)
        crosses = inside / (ONE - beyond)
        if row[unit] == crossing:
            left *= crosses
        else:
            shown, who = left[unit], slots
            for j in range(slots):
                if row[j] == crossing:
                    who = j
            left[:] = 0.0
            left[who] = (1.0 - crosses) * shown
        rest = beyond
    return float(left.sum())
