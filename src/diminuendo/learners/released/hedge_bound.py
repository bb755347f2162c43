"""Two numbers in the bounds of Hedge experts on sums: what steps cost them, and how far noise can lead them astray.

Proofs in docs/maths/lazy.md, Lemma Z4, and docs/maths/released.md, Theorem R3.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

STEPS = 1 << 15
"""Of the sum that stands for an integral; with fewer it would still be right to six digits."""


def curvature(slots: int, step: float) -> float:
    """What k experts together pay for a batch of B people, in units of rate * B^2; `step` is rate * B.

    (e^y - 1 - y)/y^2 times the most that their variances can add up to; or Hoeffding's 1/8 for each.
    """
    shared = 1 - 1 / slots if slots > 1 else 0.25
    convex = (math.expm1(step) - step) / step**2 if step > 1e-3 else 0.5 + step / 5
    return min(convex * shared, slots / 8)


def largest_of(count: int) -> float:
    """The mean of the largest of `count` standard normal numbers, rounded up in the sixth digit."""
    x = np.linspace(0.0, 12.0, STEPS + 1)
    logs = scipy.special.log_ndtr
    above, below = -np.expm1(count * logs(x)), np.exp(count * logs(-x))
    return float(np.trapezoid(above - below, x)) + 1e-6


def noise_cost(rate: float, deviation: float, count: int) -> float:
    """What noise of that deviation in the sums of `count` items costs one expert: the integral of min(rate u, largest).

    Little noise is second order, as if it were gains; much noise costs what the largest of it is.
    """
    largest = largest_of(count)
    small = min(deviation, largest / rate)
    return rate * small**2 / 2 + (deviation - small) * largest
