r"""Urns: draw item a with probability in proportion to exp(rate * total[a]), without looking at every item.

Totals are integers and only grow. Items lie in classes of equal width by their totals, and each class
has an upper bound on the weight of its members. A draw picks a class and a member by the bounds and
keeps it with probability weight / bound, or tries again: about 1.1 tries, whatever the number of items. A
gain moves an item to the next class by one swap. So neither draw nor gain depends on the number of items.

The law is exp(rate * total) up to the rounding of one double-precision exponential per try.

Several urns (one per slot) over the same items lie together, because they are used together.
Reference: Matias, Vitter & Ni (2003), Theory of Computing Systems 36, for classes of like weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._jit import inline, kernel
from diminuendo.randomness.coins import OUT_OF_WORDS, Handful, below
from diminuendo.types import Floats, Ints

CLASSES = 256
"""Classes in the window below the top; everything lower lies together in class 0."""

SPREAD = 0.2
"""A class spans weights up to a factor e^0.2: few enough classes, few enough second tries."""

BASE, TOP, UNTOUCHED, BOUND, WIDTH = range(5)


class Urns(NamedTuple):
    """Urn i over n items: columns [:, i] of `totals` and `place`, rows [i] of the others."""

    totals: Ints
    """(n, urns) in ticks."""
    place: NDArray[np.int32]
    """(n, urns): where an item stands in `order`."""
    order: NDArray[np.int32]
    """(urns, n): items, class by class; untouched ones first."""
    starts: Ints
    """(urns, CLASSES + 1): class c is order[starts[c]:starts[c+1]]."""
    marks: Ints
    """(urns, 5): BASE and TOP class, count of UNTOUCHED items, the sum of all BOUNDs, WIDTH of a class in ticks."""
    rate: Floats
    """(urns,) per tick."""
    weights: Ints
    """(urns, CLASSES): upper bound on the weight of an item m classes below the top."""


def new_urns(n_items: int, urns: int, rate: float) -> Urns:
    """Fresh urns: all totals 0."""
    made = Urns(
        totals=np.zeros((n_items, urns), dtype=np.int64),
        place=np.repeat(np.arange(n_items, dtype=np.int32)[:, None], urns, axis=1),
        order=np.repeat(np.arange(n_items, dtype=np.int32)[None, :], urns, axis=0),
        starts=np.full((urns, CLASSES + 1), n_items, dtype=np.int64),
        marks=np.zeros((urns, 5), dtype=np.int64),
        rate=np.zeros(urns),
        weights=np.zeros((urns, CLASSES), dtype=np.int64),
    )
    made.starts[:, 0] = 0
    made.marks[:, UNTOUCHED] = n_items
    for urn in range(urns):
        retune(made, urn, rate)
    return made


@inline
def scale_bits(n_items: int) -> int:
    """The heaviest item weighs 2^this; n of them still fit into 62 bits."""
    bits = 60
    while n_items > 1:
        n_items = (n_items + 1) // 2
        bits -= 1
    return bits


@inline
def weight(urns: Urns, urn: int, item: int) -> float:
    """The item's weight, relative to the top of the top class."""
    marks = urns.marks[urn]
    reference = (marks[BASE] + marks[TOP]) * marks[WIDTH]
    power = urns.rate[urn] * (urns.totals[item, urn] - reference)
    return math.ldexp(math.exp(power), scale_bits(urns.totals.shape[0]))


@inline
def draw(urns: Urns, urn: int, handful: Handful) -> int:
    """An item, with probability in proportion to exp(rate * total); or OUT_OF_WORDS."""
    starts, marks, weights = urns.starts[urn], urns.marks[urn], urns.weights[urn]
    while True:
        point = below(marks[BOUND], handful)
        if point == OUT_OF_WORDS:
            return OUT_OF_WORDS
        level = marks[TOP]
        while True:
            bound = weights[marks[TOP] - level]
            block = (starts[level + 1] - starts[level]) * bound
            if point < block:
                break
            point -= block
            level -= 1
        item = urns.order[urn, starts[level] + point // bound]
        if point % bound < weight(urns, urn, item):
            return int(item)


@inline
def grow(urns: Urns, urn: int, item: int, ticks: int) -> None:
    """total[item] += ticks, for ticks > 0."""
    starts, marks = urns.starts[urn], urns.marks[urn]
    old = urns.totals[item, urn]
    urns.totals[item, urn] = old + ticks
    if old == 0:
        marks[UNTOUCHED] -= 1
        _swap(urns, urn, item, marks[UNTOUCHED])
    before = 0 if old == 0 else max(0, old // marks[WIDTH] + 1 - marks[BASE])
    after = max(0, (old + ticks) // marks[WIDTH] + 1 - marks[BASE])
    if after >= CLASSES:
        _slide(urns, urn, after - CLASSES // 2)
        before = max(0, before - (after - CLASSES // 2))
        after = CLASSES // 2
    for level in range(before, after):
        starts[level + 1] -= 1
        _swap(urns, urn, item, starts[level + 1])
    if after > marks[TOP]:
        marks[TOP] = after
        _rebound(urns, urn)
    elif after > before:
        marks[BOUND] += urns.weights[urn, marks[TOP] - after] - urns.weights[urn, marks[TOP] - before]


@inline
def _swap(urns: Urns, urn: int, item: int, where: int) -> None:
    other, here = urns.order[urn, where], urns.place[item, urn]
    urns.order[urn, here], urns.order[urn, where] = other, item
    urns.place[other, urn], urns.place[item, urn] = here, where


@inline
def _slide(urns: Urns, urn: int, by: int) -> None:
    """Move the window up: classes that leave it join class 0."""
    starts, marks = urns.starts[urn], urns.marks[urn]
    for level in range(1, CLASSES + 1):
        starts[level] = starts[min(level + by, CLASSES)]
    marks[BASE] += by
    marks[TOP] = max(0, marks[TOP] - by)
    _rebound(urns, urn)


@inline
def _rebound(urns: Urns, urn: int) -> None:
    starts, marks, total = urns.starts[urn], urns.marks[urn], 0
    for level in range(marks[TOP] + 1):
        total += (starts[level + 1] - starts[level]) * urns.weights[urn, marks[TOP] - level]
    marks[BOUND] = total


@kernel
def retune(urns: Urns, urn: int, rate: float) -> None:
    """Change the rate (per tick): new class widths, so every touched item finds its class again."""
    n = urns.totals.shape[0]
    starts, marks = urns.starts[urn], urns.marks[urn]
    urns.rate[urn] = rate
    width = max(1, int(math.ceil(SPREAD / rate))) if rate > 0.0 else 1 << 62
    marks[WIDTH] = width
    heaviest = math.ldexp(1.0, scale_bits(n))
    for m in range(CLASSES):
        urns.weights[urn, m] = np.int64(heaviest * math.exp(-rate * width * m) * (1 + 2.0**-40)) + 2
    first, best = marks[UNTOUCHED], 0
    touched = urns.order[urn, first:].copy()
    for item in touched:
        best = max(best, urns.totals[item, urn])
    top = best // width + 1 if len(touched) else 0
    marks[BASE] = max(0, top - CLASSES // 2)
    marks[TOP] = top - marks[BASE]
    sizes = np.zeros(CLASSES + 1, dtype=np.int64)
    for item in touched:
        sizes[max(0, urns.totals[item, urn] // width + 1 - marks[BASE])] += 1
    starts[0], running = 0, first
    for level in range(CLASSES):
        running += sizes[level]
        starts[level + 1] = running
    filled = np.empty(CLASSES, dtype=np.int64)
    filled[0] = first
    filled[1:] = starts[1:CLASSES]
    for item in touched:
        level = max(0, urns.totals[item, urn] // width + 1 - marks[BASE])
        urns.order[urn, filled[level]] = item
        urns.place[item, urn] = filled[level]
        filled[level] += 1
    _rebound(urns, urn)


def probabilities(urns: Urns, urn: int) -> Floats:
    """The law of `draw`, in floats: what tests hold it to. As private as the totals are."""
    powers = urns.rate[urn] * (urns.totals[:, urn] - urns.totals[:, urn].max())
    weights = np.exp(powers)
    law: Floats = weights / weights.sum()
    return law
