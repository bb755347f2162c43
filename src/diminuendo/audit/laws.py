"""Laws: with what chance something comes out that did, given what was covered.

Of noise the chance of every whole number; of draws the chance of every item. Where there are few things that may come
out they can be listed, which is what exact audits do. A learner that draws and adds noise through the taps (taps.py)
needs nothing else to be audited; a new kind of tap needs its line here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from diminuendo.audit.taps import DRAWN, SHOWN, Crossing, tilted_chances
from diminuendo.types import EMPTY_SLOT, Floats

WIDE = 1024.0
"""From this deviation on, the chance of a whole number is the density in its middle, corrected once: what that leaves
out, up to 12 deviations away, is below 1e-10 of the chance."""


def laplace(covered: np.ndarray, scale: float, out: np.ndarray) -> float:
    """The log-chance of discrete Laplace noise."""
    off = np.abs(np.asarray(out - covered, dtype=np.float64))
    return float(covered.size * math.log(math.tanh(0.5 / scale)) - off.sum() / scale)


def gaussian(covered: np.ndarray, sigma: float, out: np.ndarray) -> float:
    """The log-chance of discrete Gaussian noise."""
    off = np.asarray(out - covered, dtype=np.float64) / sigma
    # Where sigma is not small, the sum over whole numbers is the integral, up to exp(-2 pi^2 sigma^2).
    total = sigma * math.sqrt(2 * math.pi)
    if sigma < WIDE:
        total = 1 + 2 * np.exp(-0.5 * (np.arange(1, math.ceil(40 * sigma) + 1) / sigma) ** 2).sum()
    return float(-0.5 * (off**2).sum() - covered.size * math.log(total))


def normal(covered: np.ndarray, sigma: float, out: np.ndarray) -> float:
    """The log-chance of Gaussian noise, rounded to whole numbers."""
    off = np.asarray(out - covered, dtype=np.float64)
    if sigma >= WIDE:
        x = off / sigma
        middle = -0.5 * x**2 - math.log(sigma * math.sqrt(2 * math.pi))
        return float((middle + np.log1p((x**2 - 1) / (24 * sigma**2))).sum())
    far = -np.abs(off)  # on the left, where logarithms of small chances keep their digits
    above, below = log_ndtr((far + 0.5) / sigma), log_ndtr((far - 0.5) / sigma)
    return float((above + np.log(-np.expm1(below - above))).sum())


def drawn(covered: np.ndarray, scale: float, out: np.ndarray) -> float:
    """The log-chance of items drawn one by one, all of them seen."""
    return float(np.log(covered[np.arange(len(out)), out]).sum())


def shown(covered: np.ndarray, scale: float, out: np.ndarray) -> float:
    """The log-chance of items drawn slot by slot; of a repeated one only that it is one is seen."""
    total = 0.0
    for slot, item in enumerate(out):
        before = [other for other in out[:slot] if other != EMPTY_SLOT]
        chance = covered[slot, before].sum() if item == EMPTY_SLOT else covered[slot, item]
        total += math.log(chance)
    return total


def all_drawn(covered: np.ndarray) -> Iterator[np.ndarray]:
    """Every item for every draw."""
    for items in itertools.product(range(covered.shape[1]), repeat=len(covered)):
        yield np.array(items, dtype=np.int64)


def all_shown(covered: np.ndarray) -> Iterator[np.ndarray]:
    """Every row of slots, with repeats left out."""
    rows = {
        tuple(EMPTY_SLOT if item in items[:slot] else item for slot, item in enumerate(items))
        for items in (row.tolist() for row in all_drawn(covered))
    }
    for row in sorted(rows):
        yield np.array(row, dtype=np.int64)


LAWS: dict[str, Callable[[np.ndarray, float, np.ndarray], float]] = {
    "laplace": laplace,
    "gaussian": gaussian,
    "normal": normal,
    DRAWN: drawn,
    SHOWN: shown,
}
"""By the name that taps write down, the log-chance by what was covered, the scale, and what came out."""

OUTCOMES = {DRAWN: all_drawn, SHOWN: all_shown}
"""Everything that may come out of draws, of which only slates are seen. What got noise is itself published, and takes
too many values to be listed."""


def log_chance(crossing: Crossing, out: np.ndarray | None = None) -> float:
    """The log-chance of what came out, or of `out`, given what was covered."""
    outcome = crossing.out if out is None else out
    return LAWS[crossing.law](crossing.covered, crossing.scale, outcome)


def log_weight(crossing: Crossing) -> float:
    """How much likelier what came out is than after the audit had moved what was covered."""
    if crossing.pushed is None:
        return 0.0
    if crossing.law in OUTCOMES:
        moved = tilted_chances(crossing.covered, crossing.pushed)
    else:
        moved = crossing.covered + np.rint(crossing.pushed).astype(np.int64)
    return log_chance(crossing) - LAWS[crossing.law](moved, crossing.scale, crossing.out)


def tilt(one: Crossing, other: Crossing) -> Floats:
    """Where the one world is likelier: shifts of what got noise; of draws, logarithms of ratios of chances."""
    if one.law in OUTCOMES:
        return np.asarray(np.log(one.covered) - np.log(other.covered))
    return np.asarray(one.covered - other.covered, dtype=np.float64)


def spread(one: Crossing, other: Crossing) -> float:
    """The variance of the loss in this crossing: squared shifts over squared deviations; of draws, what they have."""
    tilts = tilt(one, other)
    if one.law in OUTCOMES:
        mean = (one.covered * tilts).sum(axis=1, keepdims=True)
        return float((one.covered * (tilts - mean) ** 2).sum())
    return float(((tilts / one.scale) ** 2).sum())


def largest(one: Crossing, other: Crossing) -> float:
    """The largest loss that anything coming out of this crossing can have."""
    tilts = tilt(one, other)
    if one.law in OUTCOMES:
        return float(tilts.max(axis=1).sum())
    if one.law == "laplace":
        return float(np.abs(tilts / one.scale).sum())
    return math.inf if tilts.any() else 0.0


def listed(crossing: Crossing) -> Iterator[tuple[np.ndarray, float]]:
    """All that may have come out of this crossing, and the logarithm of its chance; nothing where it has none."""
    with np.errstate(divide="ignore"):
        for out in OUTCOMES[crossing.law](crossing.covered):
            yield out, log_chance(crossing, out)


def with_reused_words(crossings: list[Crossing]) -> int:
    """How many crossings took secret words that another had taken: by chance, once in 2^64 pairs of words."""
    taken: set[int] = set()
    twice = 0
    for crossing in crossings:
        twice += not taken.isdisjoint(crossing.words)
        taken.update(crossing.words)
    return twice


def published(crossings: list[Crossing]) -> tuple[Any, ...]:
    """The vectors among them that an onlooker is shown."""
    return tuple(crossing.out for crossing in crossings if crossing.law not in OUTCOMES)
