"""Draws in proportion to whole numbers that stay the same for a while: which item holds a place.

Items lie one after the other, each on a stretch as long as its share: item a holds the places from ends[a] to
ends[a+1] - 1. To draw is to draw a place; the item is then found by halving (`find`), in log2 N steps that wait for
memory. Where shares stay as they are for many draws a guide pays: places are cut into equal buckets, one or
two for each item, and for every bucket it is written down which item holds its first place. What is left to search is
what lies in one bucket (`seek`): on average an item or two, and never more steps than halving takes.

Several experts lie side by side, item by item: to leave an item out takes its share with each of them.

References Chen & Asau (1974), AIIE Transactions 6, for guide tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.randomness.words import UNFINISHED, PublicWords, below_masked, mask_of
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items, Words

FINE = 1 << 40
"""Shares of items by a softmax are whole multiples of one part in this, and never 0."""


class GuideTable(NamedTuple):
    """The stretches of one expert or several, and which item holds the first place of each bucket."""

    ends: Ints
    """(N + 1, experts)"""
    firsts: Items
    """(experts, buckets + 2); the last one stands for all places to come."""
    shifts: Ints
    """(experts,) a bucket has 2^shift places."""
    masks: Words
    """(experts,) for draws below all places (words.py)."""
    kept: Ints
    """(experts, slots) scratch: what share an expert has in the item that was drawn for a slot."""


def softmax(scores: Floats) -> Ints:
    """(N + 1, experts) ends for shares in proportion to exp(scores); scores are (experts, N)."""
    ends = np.zeros((scores.shape[1] + 1, len(scores)), dtype=np.int64)
    for expert, row in enumerate(scores):  # one by one: each step would take as much room as all ends
        shares = np.floor(float(FINE) * np.exp(row - row.max())).astype(np.int64) + 1
        np.cumsum(shares, out=ends[1:, expert])
    return ends


def mask(bound: int) -> int:
    """What compiled draws below `bound` cut words with: `mask_of` (words.py), for Python."""
    return (1 << (bound - 1).bit_length()) - 1


def guided(ends: Ints) -> GuideTable:
    """A guide to these ends, (N + 1, experts), which begin with 0 and never fall."""
    totals = [int(total) for total in ends[-1]]
    shifts = [(total // (2 * (len(ends) - 1))).bit_length() for total in totals]
    buckets = max(total >> shift for total, shift in zip(totals, shifts, strict=True))
    firsts = np.empty((len(totals), buckets + 2), dtype=np.int32)
    masks = np.array([mask(total) for total in totals], dtype=np.uint64)
    kept = np.zeros((len(totals), len(totals)), dtype=np.int64)
    guide = GuideTable(np.ascontiguousarray(ends), firsts, np.array(shifts, dtype=np.int64), masks, kept)
    _write_firsts(guide)
    return guide


@kernel
def _write_firsts(guide: GuideTable) -> None:
    n_items = len(guide.ends) - 1
    for expert in range(len(guide.shifts)):
        item = 0
        for bucket in range(guide.firsts.shape[1]):
            while item < n_items - 1 and guide.ends[item + 1, expert] <= bucket << guide.shifts[expert]:
                item += 1
            guide.firsts[expert, bucket] = item


@inline
def find(ends: Ints, place: int) -> int:
    """The item whose stretch ends[a] <= place < ends[a+1] holds `place`; slow, and obvious."""
    low, high = 0, len(ends) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if ends[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@inline
def seek(guide: GuideTable, expert: int, place: int) -> int:
    """The item that holds `place` on an expert's stretches: what `find` finds, by the guide."""
    bucket = place >> guide.shifts[expert]
    low, high = int(guide.firsts[expert, bucket]), int(guide.firsts[expert, bucket + 1]) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if guide.ends[middle, expert] <= place:
            low = middle
        else:
            high = middle
    return low


@inline
def draw_other(guide: GuideTable, slot: int, row: Items, taken: int, rng: PublicWords) -> int:
    """The item of the slot's expert, in proportion to its stretch, among those not in the row yet; or UNFINISHED.

    Slots before `taken` are looked at, each filled by this function in this round, or empty. One expert after the other
    waits for memory, so nothing is fetched that can be guessed: not the mask, which hardly ever changes, nor shares in
    items that were drawn, which were all fetched together.
    """
    left = guide.ends[len(guide.ends) - 1, slot]
    for before in range(taken):
        if row[before] != EMPTY_SLOT:
            left -= guide.kept[slot, before]
    mask = guide.masks[slot]
    if np.uint64(left - 1) <= mask >> np.uint64(1):
        mask = mask_of(left)
    place = below_masked(left, mask, rng)
    if place == UNFINISHED:
        return UNFINISHED
    result, passed, stepped = 0, 0, True
    while stepped:  # over the stretches of items in the row
        result, over = seek(guide, slot, place + passed), 0
        for before in range(taken):
            if EMPTY_SLOT < row[before] <= result:
                over += guide.kept[slot, before]
        stepped, passed = over != passed, over
    for expert in range(len(guide.kept)):
        guide.kept[expert, slot] = guide.ends[result + 1, expert] - guide.ends[result, expert]
    return result
