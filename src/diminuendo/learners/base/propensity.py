"""With what chance a slate was drawn, for learners whose slates follow from what was published.

Each function is the law of one compiled draw, written down once more for a single slate: experts in turn
(released/menu.py, probing/menu.py), probes of a block (probing/menu.py), pivotal rounding (experts/capped_simplex.py).
Shares are whole numbers, and so are the probes that are left of a block: all of it public. So are these chances, and
whoever keeps them can judge other slates later (docs/maths/off-policy.md, Lemma V5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import allocating_kernel, inline, kernel
from diminuendo.experts.capped_simplex import ONE
from diminuendo.randomness.shares import find
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


@inline
def _in_turn(ends: Ints, row: Items, length: int) -> float:
    """Experts draw the first `length` slots of `row` one after the other, among the items not taken."""
    chance, n_items = 1.0, ends.shape[1] - 1
    for slot in range(length):
        left = ends[slot, n_items]
        for before in range(slot):
            left -= ends[slot, row[before] + 1] - ends[slot, row[before]]
        chance *= (ends[slot, row[slot] + 1] - ends[slot, row[slot]]) / left
    return chance


@kernel
def in_turn(ends: Ints, row: Items) -> float:
    """Experts draw `row`, one after the other among the items not taken."""
    return _in_turn(ends, row, len(row))


class Probes(NamedTuple):
    """What was left of a block before the round that is asked about."""

    counts: NDArray[np.uint8]
    """(k N,) how many probes of each slot and item there are now"""
    made: int
    """The cell, slot * N + item, that this round took away, or NO_PROBE."""
    left: int
    """How many probes there were, of all cells together."""
    to_come: int
    """Rounds of the block, with this one."""


@inline
def _left_of(probes: Probes, slot: int, item: int, n_items: int) -> int:
    """How many probes there were of that slot and item."""
    if item == EMPTY_SLOT:
        return 0
    cell = slot * n_items + item
    return int(probes.counts[cell]) + (1 if cell == probes.made else 0)


@kernel
def ended_by_probes(ends: Ints, row: Items, probes: Probes) -> float:
    """`row` is shown where a probe ends the slate with the item that is tried, or before it, if it is there already."""
    slots, n_items = ends.shape[0], ends.shape[1] - 1
    to_come, length = probes.to_come, 0
    while length < slots and row[length] != EMPTY_SLOT:
        length += 1
    last = _left_of(probes, length - 1, row[length - 1], n_items) if length > 0 else 0
    already = 0
    if length < slots:
        for before in range(length):
            already += _left_of(probes, length, row[before], n_items)
    chance = _in_turn(ends, row, length)
    chance *= (to_come - probes.left) / to_come if length == slots else already / to_come
    if last > 0:
        chance += _in_turn(ends, row, length - 1) * last / to_come
    return chance


@allocating_kernel
def moved_by_probes(ends: Ints, row: Items, probes: Probes) -> float:
    """`row` is shown where a probe puts the item that is tried into its slot and moves the others down."""
    slots, n_items = ends.shape[0], ends.shape[1] - 1
    here, already, to_come = np.zeros(slots, dtype=np.int64), 0, probes.to_come
    for slot in range(slots):
        here[slot] = _left_of(probes, slot, row[slot], n_items)
        for before in range(slot):
            already += _left_of(probes, slot, row[before], n_items)
    chance = _in_turn(ends, row, slots) * (to_come - probes.left + already) / to_come
    experts = np.empty(slots, dtype=row.dtype)
    for slot in range(slots):
        if here[slot] > 0:
            experts[:] = row
            came = 0.0
            for at in range(slot, slots - 1):  # experts had the item in this slot, or in a later one
                came += _in_turn(ends, experts, slots)
                experts[at], experts[at + 1] = experts[at + 1], experts[at]
            came += _in_turn(
                ends, experts, slots - 1
            )  # in the last slot, or another item there that dropped out
            chance += came * here[slot] / to_come
    return chance


@allocating_kernel
def pivotal(ends: Ints, row: Items) -> float:
    """`row` is drawn from a point of the capped simplex by pivotal rounding of the items in order.

    Followed unit by unit: who is left over, each item of the row by itself, and all other items together.
    """
    slots, rest = len(row), 0
    left: Floats = np.zeros(slots + 1)  # how likely; the last entry: nobody of the row
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
