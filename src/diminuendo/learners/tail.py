r"""Delta where the number of private draws is up to public coins.

A person's answer matters only if her round explores, and then for the redraw right after it and for those that later
explorations make due. Coins are public and know nothing of people, so the law of everything seen is a mixture over
them, and its delta at any epsilon is at most the average of the delta given the coins (docs/maths/paper.md, P2c):

    delta(epsilon) <= explores * sum over m of Pr(M = m) delta_{1 + m}(epsilon),   M ~ Binomial(later, again).

No tail bound is needed, so there is none to get wrong. The sum is taken over stretches of m, each at its upper end.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from diminuendo.privacy import curves

STRETCHES = 400
ROUNDING = 1e-15
"""More than the distribution function, a product or a short sum may round away."""


def delta_over_coins(later: int, explores: float, again: float, rate: float, epsilon: float) -> float:
    """Delta at `epsilon` of redraws within a span of `rate` each: 1 + Binomial(later, again) of them, where her round
    explores, which it does with probability `explores`. Rounded up."""
    later = max(0, later)
    mean, spread = later * again, math.sqrt(later * again * (1 - again)) + 1
    ends = np.clip(np.floor(mean + spread * np.linspace(-12, 40, STRETCHES)), 0, later).astype(np.int64)
    ends = np.unique(np.append(ends, later))
    upto = np.ones(len(ends))  # the distribution function of the binomial law, as a beta integral
    inner = ends < later
    upto[inner] = scipy.special.betainc(later - ends[inner], ends[inner] + 1.0, 1 - again)
    inside = np.diff(upto, prepend=0.0).clip(0.0) + ROUNDING
    costs = [curves.zcdp_delta((1.0 + m) * rate * rate / 8 * (1 + ROUNDING), epsilon) for m in ends]
    return min(1.0, explores * float(inside @ np.array(costs)) * (1 + 1e3 * ROUNDING))
