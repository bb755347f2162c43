r"""The logarithm of the normal distribution function, from the C library's error function and, far out, a fraction.

scipy has it too, but to load it takes longer than to choose a learner, and this one errs less: by at most ROUNDINGS
roundings of (1 + its own size), where what is built on it allows for 512 (curves.py). Up to -FAR that holds if `erfc`
errs by no more than 4 roundings, as the C libraries in use do; a test compares with exact arithmetic.

Far out the tail is the density over a continued fraction, Phi(-x) = phi(x) / (x + 1/(x + 2/(x + 3/(x + ...)))).
Its n-th convergents lie on both sides of the limit in turn, and the n-th is off by at most n! / x^(2n) of it.
"""

from __future__ import annotations

import math

ROUNDINGS = 16
"""Of 2^-53 each."""

FAR = 30.0
"""From here on the fraction is used; erfc would come to nothing at 37."""

DEPTH = 12
"""How much of the fraction: 12! / 30^24 is less than 2^-88."""


def log_normal(x: float) -> float:
    """log Phi(x)."""
    if x > -1.0:
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    if x > -FAR:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    fraction = -x
    for level in range(DEPTH, 0, -1):
        fraction = -x + level / fraction
    return -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(fraction)
