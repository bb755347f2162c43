"""Clipping: each user's contribution becomes a few integers of bounded norm, by construction.

    NaN -> 0;  cut each entry to [0, ceiling];  scale all entries to the bound;  round down to fixed-point units;
    check the norm in integers, and take units off the largest entry while it is too large.

Rounding down matters: rounding to the nearest could add half a unit to every entry, and 41 percent to the norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats, Ints

L2, L1, CELL = range(3)
KINDS = {"l2": L2, "l1": L1, "cell": CELL}

WIDEST = 1 << 30
"""A bound of more ticks than this, squared, would not fit."""

SLACK = 1 + 2.0**-20
"""More than what rounding can add to a sum of 2^30 floats."""


@dataclass(frozen=True)
class Clip:
    """Contribution bounding: how one user's contribution becomes a few integers of bounded norm. Public.

    Parameters
    ----------
    norm : {"l2", "l1", "cell"}, default "l2"
        What is bounded: the length; the sum of absolute values; or one entry alone, in a place that is a public
        coin.
    bound : float, default 1.0
        Largest norm, in units. For "cell" leave it at 1 and set `ceiling`.
    ticks : int, default 1024
        Fixed-point units in one unit.
    signed : bool, default False
        Whether entries may be negative; that costs up to twice as much.
    ceiling : float, default 1.0
        Largest entry, in units.

    Raises
    ------
    InvalidInput
        If bounds are below one fixed-point unit, or 2**30 or above.

    Notes
    -----
    NaN counts as 0, entries are cut to [0, ceiling], all are scaled together to the bound and rounded down to
    integers, and the norm is checked in integers. So the sensitivity is a fact about integers, for every input
    (Lemma S0 of docs/maths/sums.md). Two non-negative contributions differ by at most sqrt(2) * bound in L2, not by
    2 * bound.

    Examples
    --------
    >>> from diminuendo.sums import Clip
    >>> clip = Clip(norm="l2", bound=1.0, ticks=100)
    >>> clip.limit, clip.sensitivity_squared(size=20), clip.sensitivity(size=20)
    (100, 20000, 632)
    """

    norm: Literal["l2", "l1", "cell"] = "l2"
    bound: float = 1.0
    ticks: int = 1024
    signed: bool = False
    ceiling: float = 1.0

    def __post_init__(self) -> None:
        _validate.one_of(self.norm, KINDS, "norm")
        object.__setattr__(self, "bound", _validate.positive_float(self.bound, "bound"))
        object.__setattr__(self, "ceiling", _validate.positive_float(self.ceiling, "ceiling"))
        object.__setattr__(self, "ticks", _validate.positive_int(self.ticks, "ticks"))
        if self.bound * self.ticks >= WIDEST or self.ceiling * self.ticks >= WIDEST:
            raise InvalidInput(f"bound and ceiling must be below 2^30 ticks; got {self}. Take fewer ticks.")
        if self.norm == "cell" and self.bound != 1.0:
            raise InvalidInput("A cell is bounded by its ceiling, not by a bound; give ceiling=... instead.")
        if self.limit < 1:
            raise InvalidInput(f"The bound is less than one tick, so nothing would be left; got {self}.")

    @property
    def limit(self) -> int:
        """The bound, in fixed-point units."""
        return math.floor(self.bound * self.ticks)

    @property
    def largest(self) -> int:
        """The largest entry, in fixed-point units."""
        cut = math.floor(self.ceiling * self.ticks)
        return cut if self.norm == "cell" else min(cut, self.limit)

    def sensitivity(self, size: int) -> int:
        """Return the L1 sensitivity of vectors of `size` entries, in fixed-point units, replacing one contribution."""
        apart = self.largest * (2 if self.signed else 1)
        if self.norm == "cell":
            return apart
        if self.norm == "l1":
            return min(2 * self.limit, size * apart)
        return min(math.isqrt(size * self.sensitivity_squared(size)), size * apart)  # Cauchy-Schwarz

    def sensitivity_squared(self, size: int) -> int:
        """Return the squared L2 sensitivity of vectors of `size` entries, in squared fixed-point units."""
        apart = self.largest * (2 if self.signed else 1)
        if self.norm == "cell":
            return apart**2
        return min((4 if self.signed else 2) * self.limit**2, size * apart**2)

    @cached_property
    def rule(self) -> Rule:
        """The clip as compiled code reads it."""
        return KINDS[self.norm], self.bound, self.ceiling, self.ticks, self.limit, self.signed


Rule = tuple[int, float, float, int, int, bool]


@inline
def clip_row(rule: Rule, values: Floats, low: int, high: int, out: Ints) -> float:
    """values[low:high] as whole ticks in out[:high-low], whatever the values are; the scale that was used."""
    kind, bound, ceiling, ticks, limit, signed = rule
    size, norm = high - low, 0.0
    if cannot_exceed(rule, size):
        lowest, scale = -ceiling if signed else 0.0, float(ticks)
        for j in range(size):  # as below, without branches
            entry = values[low + j]
            entry = entry if abs(entry) >= 0.0 else 0.0
            entry = entry if entry > lowest else lowest
            entry = entry if entry < ceiling else ceiling
            ticked = int(math.floor(abs(entry) * scale))
            out[j] = -ticked if entry < 0 else ticked
        return scale
    for j in range(low, high):
        entry = _cut(values[j], ceiling, signed)
        norm += abs(entry) if kind == L1 else entry * entry
    if kind == L2:
        norm = math.sqrt(norm)
    scale = float(ticks)
    if kind != CELL and norm > bound:
        scale *= bound / norm
    whole = 0
    for j in range(size):
        entry = _cut(values[low + j], ceiling, signed)
        out[j] = int(math.floor(abs(entry) * scale))
        whole += out[j] if kind == L1 else out[j] * out[j]
        if entry < 0:
            out[j] = -out[j]
    most = limit if kind == L1 else limit * limit
    while kind != CELL and whole > most:
        whole = _one_off(out, size, whole, kind)
    return scale


@inline
def cannot_exceed(rule: Rule, size: int) -> bool:
    """Whether `size` entries, each at its ceiling, stay within the bound before and after rounding to ticks."""
    kind, bound, ceiling, ticks, limit, _ = rule
    largest = float(math.floor(ceiling * ticks))
    if kind == L1:
        return size * ceiling * SLACK <= bound and size * largest * SLACK <= limit
    if kind == L2:
        return (
            size * ceiling * ceiling * SLACK <= bound * bound
            and size * largest * largest * SLACK <= float(limit) * limit
        )
    return True


@inline
def _cut(value: float, ceiling: float, signed: bool) -> float:
    if not abs(value) >= 0.0:  # not a number
        return 0.0
    return min(max(value, -ceiling if signed else 0.0), ceiling)


@inline
def _one_off(out: Ints, size: int, whole: int, kind: int) -> int:
    """Take one tick off the largest entry; the norm that is left."""
    at = 0
    for j in range(1, size):
        if abs(out[j]) > abs(out[at]):
            at = j
    was = abs(out[at])
    out[at] -= 1 if out[at] > 0 else -1
    return whole - (1 if kind == L1 else 2 * was - 1)


@kernel
def add_sparse(rule: Rule, starts: Ints, columns: Ints, values: Floats, scratch: Ints, total: Ints) -> None:
    """One contribution per row: total[columns] += the clipped values, row by row."""
    for row in range(len(starts) - 1):
        low, high = starts[row], starts[row + 1]
        clip_row(rule, values, low, high, scratch)
        for j in range(low, high):
            total[columns[j]] += scratch[j - low]


def dense_row(values: object, size: int) -> Floats:
    """A whole vector after validation."""
    row = as_floats(values)
    if row.shape != (size,):
        raise InvalidInput(f"Expected a vector of {size} numbers; got shape {row.shape}.")
    return row


@kernel
def rising(starts: NDArray[Any], places: NDArray[Any], size: int) -> bool:
    """Whether in each row places rise, each once, from 0 on and below `size`, and rows lie one after the other."""
    if starts[0] != 0 or starts[-1] > len(places):
        return False
    for row in range(len(starts) - 1):
        if starts[row] > starts[row + 1] or starts[row + 1] > len(places):
            return False
        before = -1
        for j in range(starts[row], starts[row + 1]):
            if not before < places[j] < size:
                return False
            before = places[j]
    return True


def sparse_row(values: object, indices: object, size: int) -> tuple[Floats, Ints]:
    """A sparse contribution after validation: as many values as places, places rising and within range."""
    row, places = as_floats(values), _validate.numbers(indices, "indices", None)
    if places.size == 0:
        places = places.astype(np.int64)  # nothing at all is a contribution too
    if places.ndim != 1 or row.shape != places.shape or places.dtype.kind not in "iu":
        raise InvalidInput("Expected a row of values and a row of as many indices, which are whole numbers.")
    whole = np.ascontiguousarray(places, dtype=np.int64)
    if not (0 <= whole.item(0) < size if len(whole) == 1 else rising(np.array([0, len(whole)]), whole, size)):
        raise InvalidInput(
            f"indices must rise, each once, from 0 to {size - 1}. Sort them and add up doubles."
        )
    return row, whole


def cut_all(values: Floats, ceiling: float) -> Floats:
    """Each entry cut to what one may be, from 0 to the ceiling; what is not a number counts as 0."""
    return np.clip(np.where(np.isnan(values), 0.0, values), 0.0, ceiling)
