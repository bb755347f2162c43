r"""Discrete Laplace and Gaussian numbers, exactly, from secret words.

    laplace(scale)     P(z) in proportion to exp(-|z| / scale)
    gaussian(sigma)    P(z) in proportion to exp(-z^2 / (2 sigma^2))

Everything is made of one question, whether a uniform number is below a fraction part / whole. From it come events of
chance exp(-part / whole), as the parity of how long a row of such questions is answered with yes: it ends after an odd
number with the chance 1 - x + x^2/2! - .. = exp(-x). From these come geometric numbers, whose difference in two
directions is a discrete Laplace number; and of Laplace numbers that are near to the bell the ones that are kept are
Gaussian. Scales are floats, which are fractions, and they are taken as they are.

Compiled code (`fill`) looks at the first word of a uniform number, and floats decide the question where they cannot
err. Where they could, or where 64 bits are too few, Python draws the number anew from the same words in whole numbers
of any size (`laplace_number`, `gaussian_number`), with as many words of each uniform number as it takes.

Work       about nine words for a Laplace number and twenty for a Gaussian one.
Assumes    that words are uniform and secret.
Excludes   timing: how many words a number takes depends on it.
References Canonne, Kamath & Steinke (2020), NeurIPS 33, whose algorithms these are; Forsythe (1972), Math. Comp. 26.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from diminuendo._numba import inline, kernel
from diminuendo.randomness.words import SHORT, USED, SecretWords, begin, below, undo
from diminuendo.types import Ints

NextWord = Callable[[], int]
"""Gives a fresh word of 64 bits."""


def uniform_below(next_word: NextWord, bound: int) -> int:
    """Uniform among 0 .. bound - 1: words are drawn anew until they make a number that is below."""
    bits = (bound - 1).bit_length()
    while True:
        result = 0
        for _ in range(0, max(bits, 1), 64):
            result = result << 64 | next_word()
        result &= (1 << bits) - 1
        if result < bound:
            return result


def below_fraction(next_word: NextWord, part: int, whole: int) -> bool:
    """Whether a fresh uniform number in (0, 1) is below part / whole: digits of both are compared, a word each."""
    while True:
        digit, part = divmod(part << 64, whole)
        word = next_word()
        if word != digit:
            return word < digit


def decays(next_word: NextWord, part: int, whole: int) -> bool:
    """Yes with the chance exp(-part / whole)."""
    while part > whole:
        if not _decays(next_word, 1, 1):
            return False
        part -= whole
    return _decays(next_word, part, whole)


def _decays(next_word: NextWord, part: int, whole: int) -> bool:
    """Yes with the chance exp(-part / whole), where that is no more than 1 in the exponent."""
    length = 1
    while part == whole * length or below_fraction(next_word, part, whole * length):
        length += 1
    return length % 2 == 1


def laplace_number(next_word: NextWord, scale: Fraction) -> int:
    """A whole number z with the chance in proportion to exp(-|z| / scale)."""
    top, bottom = scale.numerator, scale.denominator
    while True:
        low = uniform_below(next_word, top)
        if not _decays(next_word, low, top):
            continue
        high = 0
        while _decays(next_word, 1, 1):
            high += 1
        size = (low + top * high) // bottom
        negative = uniform_below(next_word, 2) == 1
        if size or not negative:  # else 0 would come twice as often
            return -size if negative else size


def gaussian_number(next_word: NextWord, sigma: Fraction) -> int:
    """A whole number z with the chance in proportion to exp(-z^2 / (2 sigma^2)).

    A Laplace number z of scale w is kept with the chance exp(-(|z| - sigma^2 / w)^2 / (2 sigma^2)).
    """
    top, bottom, width = sigma.numerator**2, sigma.denominator**2, int(sigma) + 1
    scale, whole = Fraction(width), 2 * top * bottom * width**2
    while True:
        result = laplace_number(next_word, scale)
        if decays(next_word, (abs(result) * width * bottom - top) ** 2, whole):
            return result


LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""The ends of 64 bits, where the sum of a value and its noise saturates."""
SAFE = 2.0**-32
"""Floats decide only what they see farther apart than this, far more than rounding can move exponents below STEPS."""
STEPS = 512
"""How many units of an exponent are taken off one by one by compiled code."""
LARGEST = 1 << 62
LARGEST_SHIFT = 62
"""Sizes and denominators up to these are compiled code's."""
UNSURE, DRY = -1, -2
WORD = 2.0**-64


@inline
def _happens(exponent: float, secret: SecretWords) -> int:
    """1 with the chance exp(-exponent), for exponents from 0 to 1, else 0; or UNSURE or DRY."""
    length = 1
    while True:
        if exponent < length:  # else the answer is yes
            if secret.used[USED] >= len(secret.words):
                secret.used[SHORT] = 1
                return DRY
            secret.used[USED] += 1
            above = float(secret.words[secret.used[USED] - 1]) * WORD - exponent / length
            if abs(above) <= SAFE:
                return UNSURE
            if above > 0:
                return length & 1
        length += 1


@inline
def _laplace(top: int, shift: int, secret: SecretWords) -> tuple[int, int]:
    """1 and a number of scale top / 2^shift; or UNSURE or DRY and anything."""
    while shift <= LARGEST_SHIFT:
        low = below(top, secret)
        if low < 0:
            return DRY, 0
        good = _happens(low / top, secret)
        if good == 0:
            continue
        size, rest = low >> shift, low & ((1 << shift) - 1)
        while good == 1:
            good = _happens(1.0, secret)
            if good == 1:
                rest += top
                size, rest = size + (rest >> shift), rest & ((1 << shift) - 1)
                if size > LARGEST:
                    return UNSURE, 0
        if good < 0:
            return good, 0
        negative = below(2, secret)
        if negative < 0:
            return DRY, 0
        if size > 0 or negative == 0:  # else 0 would come twice as often
            return 1, -size if negative == 1 else size
    return UNSURE, 0


@inline
def _kept(size: int, width: int, sigma: float, secret: SecretWords) -> int:
    """1 with the chance exp(-(size - sigma^2 / width)^2 / (2 sigma^2)), else 0; or UNSURE or DRY."""
    away = (size - sigma * sigma / width) / sigma
    exponent = away * away / 2
    for _ in range(STEPS):
        if exponent < 1 - SAFE:
            return _happens(exponent, secret)
        if exponent <= 1 + SAFE:
            return UNSURE
        good = _happens(1.0, secret)
        if good != 1:
            return good
        exponent -= 1
    return UNSURE


@kernel
def fill(
    done: int, values: Ints, noisy: Ints, top: int, shift: int, sigma: float, secret: SecretWords
) -> int:
    """Add noise from `done` on; returns how far it came before words ran out or floats could not decide.

    Laplace noise of scale top / 2^shift; of it, where `sigma` is not 0, what makes Gaussian noise.
    """
    while done < len(values):
        begin(secret)
        good = 0
        number = 0
        while good == 0:
            good, number = _laplace(top, shift, secret)
            if good == 1 and sigma > 0:
                good = _kept(abs(number), top, sigma, secret)
        if good < 0:
            undo(secret)
            return done
        value = values[done]
        if number > 0 and value > MOST - number:
            noisy[done] = MOST
        elif number < 0 and value < LEAST - number:
            noisy[done] = LEAST
        else:
            noisy[done] = value + number
        done += 1
    return done
