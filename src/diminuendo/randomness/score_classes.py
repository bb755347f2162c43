r"""Score classes: draw item a with probability in proportion to exp(rate * total[a]), not looking at every item.

Totals are integers and only grow. Items lie in classes of equal width by their totals, and each class
has an upper bound on the weight of its members. A draw picks a class and a member by the bounds and
keeps it with probability weight / bound, or tries again: about 1.1 tries, whatever the number of items. A
gain moves an item to the next class by one swap. So neither draw nor gain depends on the number of items.

The law is exact (exponential.py, docs/maths/exponential.md): bounds are whole numbers, and where floats cannot decide
whether an item is kept, exact arithmetic does.

Cost       as exponential.py says: one `Selections` event for all draws together.
Assumes    that one user moves totals by whole ticks, and by no more than the event says.
Excludes   timing: tries and classes depend on totals.

The classes of several experts (one per slot) over the same items lie together, because they are used together.
Reference: Matias, Vitter & Ni (2003), Theory of Computing Systems 36, for classes of like weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo.randomness.exponential import KEPT, below_weight, keep, scale_bits, weight_bound
from diminuendo.randomness.words import UNFINISHED, SecretWords, below
from diminuendo.types import Floats, Ints

CLASSES = 256
"""Classes in the window below the top; everything lower lies together in class 0."""

SPREAD, WIDEST = 0.2, 1.0
"""A class is 2^shift ticks wide and spans weights up to a factor e^0.2 or a little more: few enough classes, few
enough second tries. Where rates are high it may span up to e, if that keeps a whole gain within one class."""

COARSEST = 53
"""At most 2^this ticks to a class, so that all classes together fit into 64 bits; then nearly all weights are equal."""

WHOLE = 20
"""A whole gain is 2^this ticks (ticks.py)."""

BASE, TOP, UNTOUCHED, BOUND, SHIFT, BITS = range(6)


class ScoreClasses(NamedTuple):
    """Expert i over n items: columns [:, i] of `totals` and `place`, rows [i] of the others."""

    totals: Ints
    """(n, experts) in ticks."""
    place: NDArray[np.int32]
    """(n, experts): where an item stands in `order`."""
    order: NDArray[np.int32]
    """(experts, n): items, class by class; untouched ones first."""
    starts: Ints
    """(experts, CLASSES + 1): class c is order[starts[c]:starts[c+1]]."""
    marks: Ints
    """(experts, 6): BASE and TOP class, count of UNTOUCHED items, sum of all BOUNDs; classes are 2^SHIFT ticks wide,
    and an item at the top of the top class weighs 2^BITS."""
    rate: Floats
    """(experts,) per tick."""
    weights: Ints
    """(experts, CLASSES): upper bound on the weight of an item m classes below the top."""
    scratch: NDArray[np.int32]
    """(n,) of no meaning between calls."""

    def __repr__(self) -> str:
        return "<ScoreClasses>"


def new_score_classes(n_items: int, experts: int, rate: float, bits: int | None = None) -> ScoreClasses:
    """Fresh classes: all totals 0. Fewer `bits` keep the law and cost tries; tests count all outcomes with few."""
    classes = ScoreClasses(
        totals=np.zeros((n_items, experts), dtype=np.int64),
        place=np.repeat(np.arange(n_items, dtype=np.int32)[:, None], experts, axis=1),
        order=np.repeat(np.arange(n_items, dtype=np.int32)[None, :], experts, axis=0),
        starts=np.full((experts, CLASSES + 1), n_items, dtype=np.int64),
        marks=np.zeros((experts, 6), dtype=np.int64),
        rate=np.zeros(experts),
        weights=np.zeros((experts, CLASSES), dtype=np.int64),
        scratch=np.zeros(n_items, dtype=np.int32),
    )
    classes.starts[:, 0] = 0
    classes.marks[:, UNTOUCHED] = n_items
    classes.marks[:, BITS] = scale_bits(n_items) if bits is None else bits
    for expert in range(experts):
        retune(classes, expert, rate)
    return classes


@inline
def draw(classes: ScoreClasses, expert: int, secret: SecretWords) -> int:
    """An item, with probability exactly in proportion to exp(rate * total); or UNFINISHED."""
    while True:
        item, residual, sure = propose(classes, expert, secret)
        if sure:
            return item
        difference = classes.totals[item, expert] - reference(classes, expert)
        verdict = keep(residual, classes.rate[expert], difference, classes.marks[expert, BITS], secret)
        if verdict == UNFINISHED:
            return UNFINISHED
        if verdict == KEPT:
            return item


@inline
def propose(classes: ScoreClasses, expert: int, secret: SecretWords) -> tuple[int, int, bool]:
    """An item by the bounds, its residual, and whether its total need not be known: kept anyway, or UNFINISHED.

    Most residuals are below all weights of the item's class. Then no draw waits for a total to come from memory.
    """
    marks, starts, weights = classes.marks[expert], classes.starts[expert], classes.weights[expert]
    point = below(marks[BOUND], secret)
    if point == UNFINISHED:
        return UNFINISHED, 0, True
    level = marks[TOP]
    while True:
        bound = weights[marks[TOP] - level]
        block = (starts[level + 1] - starts[level]) * bound
        if point < block:
            break
        point -= block
        level -= 1
    number = np.int64(np.uint64(point) // np.uint64(bound))
    residual = point - number * bound
    least = 2  # all that fell behind lies in the lowest class: a bound of 2 is one of no weight
    if level > 0:
        least = weights[marks[TOP] - level + 1]  # at its lower edge, where the class below has its upper one
    elif marks[BASE] == 0:
        least = bound  # untouched: all at the upper edge
    return int(classes.order[expert, starts[level] + number]), residual, below_weight(residual, least, secret)


@inline
def reference(classes: ScoreClasses, expert: int) -> int:
    """The total that would weigh 2^BITS: the upper edge of the top class."""
    return int((classes.marks[expert, BASE] + classes.marks[expert, TOP]) << classes.marks[expert, SHIFT])


@inline
def grow(classes: ScoreClasses, expert: int, item: int, ticks: int) -> None:
    """total[item] += ticks, for ticks > 0."""
    old = classes.totals[item, expert]
    classes.totals[item, expert] = old + ticks
    if old == 0:
        classes.marks[expert, UNTOUCHED] -= 1
        _swap(classes, expert, item, classes.marks[expert, UNTOUCHED])
    shift, base = classes.marks[expert, SHIFT], classes.marks[expert, BASE]
    before = 0 if old == 0 else _class(old, shift, base)
    after = _class(old + ticks, shift, base)
    if after >= CLASSES:
        _slide(classes, expert, after - CLASSES // 2)
        before = max(0, before - (after - CLASSES // 2))
        after = CLASSES // 2
    for level in range(before, after):
        classes.starts[expert, level + 1] -= 1
        _swap(classes, expert, item, classes.starts[expert, level + 1])
    top, weights = classes.marks[expert, TOP], classes.weights[expert]
    if after > top:
        classes.marks[expert, TOP] = after
        _rebound(classes, expert)
    elif after > before:
        classes.marks[expert, BOUND] += weights[top - after] - weights[top - before]


@inline
def _class(total: int, shift: int, base: int) -> int:
    """The class of an item that was touched."""
    return max(0, (total >> shift) + 1 - base)


@inline
def _swap(classes: ScoreClasses, expert: int, item: int, where: int) -> None:
    other, here = classes.order[expert, where], classes.place[item, expert]
    classes.order[expert, here], classes.order[expert, where] = other, item
    classes.place[other, expert], classes.place[item, expert] = here, where


@inline
def _slide(classes: ScoreClasses, expert: int, by: int) -> None:
    """Move the window up: classes that leave it join class 0."""
    for level in range(1, CLASSES + 1):
        classes.starts[expert, level] = classes.starts[expert, min(level + by, CLASSES)]
    classes.marks[expert, BASE] += by
    classes.marks[expert, TOP] = max(0, classes.marks[expert, TOP] - by)
    _rebound(classes, expert)


@inline
def _rebound(classes: ScoreClasses, expert: int) -> None:
    total, top, starts = 0, classes.marks[expert, TOP], classes.starts[expert]
    for level in range(top + 1):
        total += (starts[level + 1] - starts[level]) * classes.weights[expert, top - level]
    classes.marks[expert, BOUND] = total


@kernel
def retune(classes: ScoreClasses, expert: int, rate: float) -> None:
    """Change the rate (per tick): new class widths, so every touched item finds its class again."""
    n, untouched = classes.totals.shape[0], classes.marks[expert, UNTOUCHED]
    shift = 0
    while shift < COARSEST and (
        (1 << shift) * rate < SPREAD or (shift < WHOLE and (2 << shift) * rate <= WIDEST)
    ):
        shift += 1
    width = 1 << shift
    for m in range(CLASSES):
        classes.weights[expert, m] = weight_bound(rate, -width * m, classes.marks[expert, BITS])
    best = 0
    for j in range(untouched, n):
        item = classes.order[expert, j]
        classes.scratch[j] = item
        best = max(best, classes.totals[item, expert])
    top = _class(best, shift, 0) if best > 0 else 0
    base = max(0, top - CLASSES // 2)
    classes.rate[expert], marks = rate, classes.marks[expert]
    marks[SHIFT], marks[BASE], marks[TOP] = shift, base, top - base
    # A counting sort of the touched items by class. First sizes, then where each class ends ...
    classes.starts[expert, :] = 0
    for j in range(untouched, n):
        classes.starts[expert, _class(classes.totals[classes.scratch[j], expert], shift, base)] += 1
    running = untouched
    for level in range(CLASSES + 1):
        running += classes.starts[expert, level]
        classes.starts[expert, level] = running
    # ... then, filling each class from its end, where it starts. Class 0 starts with the untouched items.
    for j in range(n - 1, untouched - 1, -1):
        item = classes.scratch[j]
        level = _class(classes.totals[item, expert], shift, base)
        classes.starts[expert, level] -= 1
        classes.order[expert, classes.starts[expert, level]] = item
        classes.place[item, expert] = classes.starts[expert, level]
    classes.starts[expert, 0] = 0
    _rebound(classes, expert)


def sort_again(classes: ScoreClasses) -> None:
    """Put all items in order anew, from totals and rates alone."""
    n, count = classes.totals.shape
    for expert in range(count):
        touched = classes.totals[:, expert] > 0
        classes.order[expert] = np.argsort(touched, kind="stable")
        classes.place[classes.order[expert], expert] = np.arange(n)
        classes.marks[expert, UNTOUCHED] = n - np.count_nonzero(touched)
        retune(classes, expert, float(classes.rate[expert]))


def probabilities(classes: ScoreClasses, expert: int) -> Floats:
    """The law of `draw`, in floats: what tests hold it to. As private as the totals are."""
    powers = classes.rate[expert] * (classes.totals[:, expert] - classes.totals[:, expert].max())
    weights = np.exp(powers)
    law: Floats = weights / weights.sum()
    return law
