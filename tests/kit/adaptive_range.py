"""Adaptive composition of bounded-range draws, tighter than zCDP by 7 percent: for comparison with what is proved.

Draws of the exponential mechanism are bounded-range: their log-ratios lie in an interval of length `span`. When every
draw may depend on all before, the worst delta after n draws follows a recursion over the worst next mechanism, which
always has two outcomes (Theorem A5). `adaptive_delta` runs it with chords that lie above the true curve.

Caveat. For many draws the recursion is too long. `constant` then takes the smallest c for which blocks of m draws
were found to be dominated by a Gaussian of mu = c * span/2 * sqrt(m); that domination was *computed* on a fine grid
(down to delta 1e-12), not proved in closed form. Hence the package has no such accountant.

Reference Dong, Durfee & Rogers (2020), ICML.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from diminuendo import _validate
from diminuendo.privacy.accountants import ACCOUNTANTS, GAUSSIAN, Accountant, Additive
from diminuendo.privacy.events import Event, Selections
from diminuendo.privacy.rounding import greatest, product_up
from diminuendo.types import Floats

FEW = 8
"""Up to this many draws the recursion takes a second at most."""

BLOCKS = {1024: 1.0006, 256: 1.0020, 64: 1.0066, 16: 1.0215, 4: 1.0674, 1: 1.2534}
"""Draws in a block -> c, each checked anew by the tests up to 16 draws."""

GRID = 1024
"""Points of the curve per recursion, over the interval where it is not trivial."""


def constant(count: int) -> float:
    """The c for `count` draws: whole blocks, largest first; squares of Gaussian costs add."""
    left, squares = _validate.positive_int(count, "count"), 0.0
    for block, c in BLOCKS.items():
        whole, left = divmod(left, block)
        squares += whole * block * c * c
    return math.sqrt(squares / count) * (1 + 2.0**-50)


def adaptive_mu(span: float, count: int) -> float:
    """The mu of the Gaussian that is taken to dominate `count` adaptive draws of range `span`."""
    return constant(count) * span / 2 * math.sqrt(count) * (1 + 2.0**-50)


def adaptive_delta(span: float, count: int, epsilon: float, grid: int = GRID) -> float:
    """An upper bound on delta at epsilon after `count` adaptive draws of range `span`."""
    if count * span == 0.0 or epsilon >= count * span:
        return 0.0
    reach = count * span
    points = np.linspace(-reach, reach, grid)
    curve = np.maximum(0.0, -np.expm1(points))  # after no draws at all
    for _ in range(count - 1):
        curve = _one_more(points, curve, span, points)
    last = _one_more(points, curve, span, np.array([epsilon]))
    return float(min(1.0, last[0] * (1 + 2.0**-40)))


def _one_more(points: Floats, curve: Floats, span: float, wanted: Floats) -> Floats:
    """The curve after one more draw, at the wanted epsilons. It is convex in e^epsilon, so its chords lie above it.

    The next mechanism has log-ratios t and t - span. On a piece where both chords are fixed the value is
    a + b e^t + c e^-t with b, c <= 0 or the maximum at an end, so the best t is known in closed form.
    """
    best = np.zeros(len(wanted))
    for index, epsilon in enumerate(wanted):
        cuts = np.concatenate([epsilon - points, epsilon - points + span])
        cuts = np.unique(np.clip(cuts, 0.0, span))
        low, high = np.exp(cuts[:-1]), np.exp(cuts[1:])
        middle = (cuts[:-1] + cuts[1:]) / 2
        near, slope = _chord(points, curve, epsilon - middle)
        far, rise = _chord(points, curve, epsilon - middle + span)
        top, e, less = math.exp(span), math.exp(epsilon), math.expm1(span)
        # p = (top - u)/(top - 1) for u = e^t; value = p (near + slope e/u) + (1 - p)(far + rise e top/u)
        b = (far - near) / less
        c = e * top * (slope - rise) / less
        a = (top * near - slope * e - far + rise * e * top) / less
        with np.errstate(invalid="ignore", divide="ignore"):
            turning = np.where((b < 0) & (c < 0), np.sqrt(c / b), low)
        inside = np.clip(turning, low, high)
        values = np.maximum(a + b * low + c / low, a + b * high + c / high)
        best[index] = np.maximum(values, a + b * inside + c / inside).max()
    rounding = (
        2.0**-46 * (1 + math.exp(span)) / math.expm1(span)
    )  # of terms near 1, divided by a small number
    return np.minimum(1.0, np.maximum(best, 0.0) + rounding)


def _chord(points: Floats, curve: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Intercept and slope, in e^epsilon, of the chord over each place; exact beyond the ends of the grid."""
    right = np.searchsorted(points, at)
    inside = np.clip(right, 1, len(points) - 1)
    x0, x1 = np.exp(points[inside - 1]), np.exp(points[inside])
    y0, y1 = curve[inside - 1], curve[inside]
    slope = (y1 - y0) / (x1 - x0)
    intercept = y0 - slope * x0
    below, above = at <= points[0], at >= points[-1]
    slope = np.where(below, -1.0, np.where(above, 0.0, slope))
    intercept = np.where(below, 1.0, np.where(above, 0.0, intercept))
    return intercept, slope


class AdaptiveRange(Additive):
    """Draws as Gaussians, with the constants above and their caveat; a few draws by the recursion."""

    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """The delta at epsilon."""
        result = super().delta(event, epsilon, rounds)
        if isinstance(event, Selections) and 0 < event.count <= FEW:
            result = min(result, adaptive_delta(event.span * rounds, event.count, epsilon))
        return result


def price(draws: Selections) -> Fraction:
    """The square of c * span/2 * sqrt(count)."""
    if draws.count == 0:
        return Fraction(0)
    return draws.count * (Fraction(constant(draws.count)) * Fraction(draws.span) / 2) ** 2


ADAPTIVE_RANGE = AdaptiveRange(
    "adaptive-range", {**GAUSSIAN.prices, Selections: price}, GAUSSIAN.convert, GAUSSIAN.curve
)
COUNTED: dict[str, Accountant] = ACCOUNTANTS | {ADAPTIVE_RANGE.name: ADAPTIVE_RANGE}
"""The accountants of the package, and this one."""


def adaptive_rate(epsilon: float, delta: float, count: int, span: float) -> float:
    """The largest rate at which `count` draws cost at most (epsilon, delta), as `calibrate.selection_rate` finds it."""
    return greatest(
        lambda rate: ADAPTIVE_RANGE.epsilon(Selections(count, product_up(rate, span)), delta) <= epsilon
    )
