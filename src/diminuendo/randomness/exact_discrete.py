r"""Discrete Laplace and Gaussian numbers, exactly: whole-number arithmetic on secret words, and nothing else.

    laplace(t / s)     P(z) in proportion to exp(-|z| s / t)
    gaussian(sigma)    P(z) in proportion to exp(-z^2 / (2 sigma^2))

Everything is made of one question, whether a uniform whole number below `whole` is below `part`: it has the chance
part / whole, a fraction, exactly. From it come events of chance exp(-part / whole), as the parity of how long a row of
such questions is answered with yes: it ends after an odd number with the chance 1 - x + x^2/2! - .. = exp(-x). From
these come geometric numbers, whose difference in two directions is a discrete Laplace number; and of Laplace numbers
that are near to the bell the ones that are kept are Gaussian. Scales are floats, which are fractions, and they are
taken as they are.

Work       about nine questions for a Laplace number and twenty for a Gaussian one, of a word or a few each.
Assumes    that words are uniform and secret.
Excludes   timing: how many words a number takes depends on it.
References Canonne, Kamath & Steinke (2020), NeurIPS 33, whose algorithms these are; Forsythe (1972), Math. Comp. 26.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from diminuendo.randomness.words import SecretRandomness

AT_ONCE = 1 << 12
"""Words that are fetched together, at most; what is left of them at the end is thrown away."""


class SecretNumbers:
    """Uniform whole numbers below any bound, from secret words."""

    def __init__(self, secret: SecretRandomness, wanted: int) -> None:
        self._secret, self._wanted = secret, max(16, min(wanted, AT_ONCE))
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """Uniform among 0 .. bound - 1: words are drawn anew until they make a number that is below."""
        bits = (bound - 1).bit_length()
        while True:
            found = 0
            for _ in range(0, bits, 64):
                if not self._words:
                    self._words = self._secret.take(self._wanted).tolist()
                found = found << 64 | self._words.pop()
            found &= (1 << bits) - 1
            if found < bound:
                return found


Below = Callable[[int], int]
"""Gives a uniform whole number below a bound."""


def decays(below: Below, part: int, whole: int) -> bool:
    """Yes with the chance exp(-part / whole)."""
    while part > whole:
        if not _decays(below, 1, 1):
            return False
        part -= whole
    return _decays(below, part, whole)


def _decays(below: Below, part: int, whole: int) -> bool:
    """Yes with the chance exp(-part / whole), where that is no more than 1 in the exponent."""
    length = 1
    while below(whole * length) < part:
        length += 1
    return length % 2 == 1


def laplace_number(below: Below, scale: Fraction) -> int:
    """A whole number z with the chance in proportion to exp(-|z| / scale)."""
    top, bottom = scale.numerator, scale.denominator
    while True:
        low = below(top)
        if not _decays(below, low, top):
            continue
        high = 0
        while _decays(below, 1, 1):
            high += 1
        size = (low + top * high) // bottom
        negative = below(2) == 1
        if size or not negative:  # else 0 would come twice as often
            return -size if negative else size


def gaussian_number(below: Below, sigma: Fraction) -> int:
    """A whole number z with the chance in proportion to exp(-z^2 / (2 sigma^2)).

    A Laplace number z of scale w is kept with the chance exp(-(|z| - sigma^2 / w)^2 / (2 sigma^2)).
    """
    top, bottom, width = sigma.numerator**2, sigma.denominator**2, int(sigma) + 1
    scale, whole = Fraction(width), 2 * top * bottom * width**2
    while True:
        found = laplace_number(below, scale)
        if decays(below, (abs(found) * width * bottom - top) ** 2, whole):
            return found
