"""A guide to stretches (shares.py) for one expert that is looked at very often: mostly one look at memory is enough.

Places are cut into equal buckets, one or two for each item. For every bucket one word says which item holds its first
place, where in the bucket that item's stretch ends, and whether others end in it too. A place before that end belongs
to this item, and a place behind it to the next one. Only if others end there, or where the place is so near to the end
that a few bits cannot tell, the ends themselves are searched by halving.

Who looks up many places asks for all their words first (`fetch_cut`), and then looks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._fetch import fetch
from diminuendo._numba import inline, kernel
from diminuendo.randomness.shares import find_between
from diminuendo.types import Ints, Words

PLACE, SEVERAL, ITEM = np.uint64((1 << 32) - 1), np.uint64(32), np.uint64(33)
"""A word, from its lowest bit: 32 bits for where the first stretch ends; 1, whether more do; 31 for the item."""
FINEST = 31
"""Ends within a bucket are known to so many bits."""


class Cuts(NamedTuple):
    """Stretches, and a word for each bucket."""

    ends: Ints
    """(N + 1,) item a holds the places from ends[a] to ends[a+1] - 1."""
    buckets: Words
    """(buckets + 2,); the last one stands for all places to come."""
    shifts: Ints
    """(2,) a bucket has 2^shift places; of a place within it, so many of the lowest bits are left out."""


def cut(ends: Ints) -> Cuts:
    """Words for these ends, which begin with 0 and never fall."""
    total = int(ends[-1])
    shift = (total // (2 * (len(ends) - 1))).bit_length()
    buckets = np.empty((total >> shift) + 2, dtype=np.uint64)
    made = Cuts(np.ascontiguousarray(ends), buckets, np.array([shift, max(0, shift - FINEST)]))
    _write(made)
    return made


@kernel
def _write(cuts: Cuts) -> None:
    ends, shift, dropped = cuts.ends, cuts.shifts[0], cuts.shifts[1]
    item, wide, last = 0, 1 << cuts.shifts[0], len(cuts.ends) - 2
    for bucket in range(len(cuts.buckets)):
        first = bucket << shift
        while item < last and ends[item + 1] <= first:
            item += 1
        inside = min(ends[item + 1] - first, wide)
        several = inside < wide and item < last and ends[item + 2] < first + wide
        word = np.uint64(max(0, inside) >> dropped) | np.uint64(several) << SEVERAL
        cuts.buckets[bucket] = word | np.uint64(item) << ITEM


@inline
def fetch_cut(cuts: Cuts, place: int) -> None:
    """`place` will be looked up soon."""
    fetch(cuts.buckets, place >> cuts.shifts[0])


@inline
def look_up(cuts: Cuts, place: int) -> int:
    """The item that holds `place`: what `find` finds (shares.py)."""
    shift = cuts.shifts[0]
    bucket = place >> shift
    word = cuts.buckets[bucket]
    item, end = _signed(word >> ITEM), _signed(word & PLACE)
    within = (place - (bucket << shift)) >> cuts.shifts[1]
    behind = int(within >= end)  # numbers, not branches: nobody can guess what places come
    unclear = int(within == end) | _signed(word >> SEVERAL & np.uint64(1))
    if behind & unclear:
        return find_between(cuts.ends, item, _signed(cuts.buckets[bucket + 1] >> ITEM) + 1, place)
    return item + behind


@inline
def _signed(word: np.uint64) -> int:
    """Numbers with and without a sign, put together, would be floats."""
    return int(np.int64(word))
