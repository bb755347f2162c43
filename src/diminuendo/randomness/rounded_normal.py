r"""Rounded Gaussian noise, exactly: round(sigma * X) for a standard normal X, with whole-number arithmetic only.

Adding a whole number and rounding to whole numbers may change places: n + round(Y) = round(n + Y). So whole numbers
with this noise can be computed from the same numbers with real-valued Gaussian noise, and cost no more:
squared shifts over sigma^2 add up to mu^2, and the exact curve of mu holds, along adaptive releases too
(docs/maths/sums.md, Theorem S6). Discrete Gaussian noise of the same sigma has no such curve, only the conversion from
zCDP.

X is drawn by Karney's algorithm: a whole part k, accepted by flips of coins that land with probability e^(-1/2), and a
fraction x, whose digits are drawn as they are needed. Every step compares two uniform numbers; compiled code looks at
their first digits, and where those are equal, Python draws the number anew from the same digits (`slowly`), with as
many of each uniform number as it takes. A digit has 16 bits, since making random bits is most of the work.
Floats decide how sigma * (k + x) is rounded; where they cannot, whole numbers of 128 bits with the first 64 bits of x;
and where that is not enough, again Python.

Cost       `ContinuousGaussian(mu)`.
Assumes    that words are uniform and secret.
Excludes   timing: how many words a number takes depends on it.
References Karney (2016), ACM Transactions on Mathematical Software 42; von Neumann (1951).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.randomness.noise import checked_scale, whole_numbers
from diminuendo.randomness.words import (
    DIGIT,
    SHORT,
    USED,
    DigitWords,
    SecretRandomness,
    begin,
    below,
    undo,
)
from diminuendo.types import Ints, Words

FIRST = 64 // DIGIT
"""Digits of a fraction that are drawn at once: its first 64 bits."""
NextDigit = Callable[[], int]
"""Gives a fresh digit of DIGIT bits."""


class _Uniform:
    """A uniform number in (0, 1), digit by digit."""

    def __init__(self, next_digit: NextDigit) -> None:
        self.digits = [next_digit()]
        self.next_digit = next_digit

    def digit(self, j: int) -> int:
        while len(self.digits) <= j:
            self.digits.append(self.next_digit())
        return self.digits[j]

    def below(self, other: _Uniform) -> bool:
        j = 0
        while self.digit(j) == other.digit(j):
            j += 1
        return self.digit(j) < other.digit(j)


def slowly(sigma: float, next_digit: NextDigit) -> int:
    """One number from fresh digits."""
    sign = 1 - 2 * (next_digit() & 1)
    while True:
        k = 0
        while half_power(next_digit):
            k += 1
        if not all(half_power(next_digit) for _ in range(k * (k - 1))):
            continue
        x = _Uniform(next_digit)
        if all(accepts(k, x, next_digit) for _ in range(k + 1)):
            x.digit(FIRST - 1)
            return sign * rounded(sigma, k, x.digits, next_digit)


def half_power(next_digit: NextDigit) -> bool:
    """Yes with probability e^(-1/2). How long a falling run below 1/2 is: even or odd."""
    last, even = _Uniform(next_digit), True
    if last.digit(0) >> (DIGIT - 1):
        return True
    while True:
        even = not even
        number = _Uniform(next_digit)
        if not number.below(last):
            return even
        last = number


def accepts(k: int, x: _Uniform, next_digit: NextDigit) -> bool:
    """Yes with probability exp(-x (2k + x) / (2k + 2))."""
    last, even = x, True
    while True:
        number = _Uniform(next_digit)
        if not number.below(last):
            return even
        part = _uniform_below(2 * k + 2, next_digit)
        if part > 2 * k or (part == 2 * k and not _Uniform(next_digit).below(x)):
            return even
        last, even = number, not even


def _uniform_below(bound: int, next_digit: NextDigit) -> int:
    wide = (bound - 1).bit_length()
    while True:
        result = 0
        for _ in range(-(-wide // DIGIT)):
            result = result << DIGIT | next_digit()
        if (result := result & ((1 << wide) - 1)) < bound:
            return result


def rounded(sigma: float, k: int, digits: list[int], next_digit: NextDigit) -> int:
    """round(sigma * (k + x)), x written out in digits as far as it takes."""
    over, under = sigma.as_integer_ratio()
    while True:
        low, unit = k, 1 << DIGIT * len(digits)
        for digit in digits:
            low = low << DIGIT | digit
        down, up = ((2 * over * end + under * unit) // (2 * under * unit) for end in (low, low + 1))
        if down == up:
            return down
        digits.append(next_digit())


FRACTION = 2.0**-64
SAFE = 2.0**-48
"""Floats decide how to round only where they are farther from a half than this share of the number."""

EACH = 21
"""Digits that a number takes on average, about."""

HALF = np.uint64(1 << (DIGIT - 1))
"""The first digit of 1/2, which has no further ones."""
TIE, DRY = -1, -2
UNDECIDED = -1
DRAWN, SETTLED, UNSURE = range(3)
MOST_BELOW, MOST_WHOLE = 62, 255
"""With at most MOST_BELOW bits behind the point of sigma, and whole parts up to MOST_WHOLE, 128 bits are enough."""


def rounded_normal(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
    """Each value plus rounded Gaussian noise."""
    whole = whole_numbers(values, secret)
    checked_scale(sigma, "sigma")
    with secret.lock:
        return whole + _noise(whole.size, sigma, secret).reshape(whole.shape)


def _noise(count: int, sigma: float, secret: SecretRandomness) -> Ints:
    wholes, fractions = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.uint64)
    noise, state = np.zeros(count, dtype=np.int64), np.full(count, DRAWN)
    source, done = secret.digits, 0

    def next_digit() -> int:
        return int(source.take(1)[0])

    while (done := int(_fill(done, wholes, fractions, source.view))) < count:
        if source.view.used[SHORT]:
            source.resume(EACH * (count - done))
        else:  # a tie
            noise[done], state[done] = slowly(sigma, next_digit), SETTLED
            done += 1
    _round(sigma, *_written(sigma), wholes, fractions, state, noise)
    for j in np.flatnonzero(state == UNSURE):
        digits = [int(fractions[j]) >> DIGIT * place & ((1 << DIGIT) - 1) for place in reversed(range(FIRST))]
        sign, k = (1, int(wholes[j])) if wholes[j] >= 0 else (-1, int(-wholes[j] - 1))
        noise[j] = sign * rounded(sigma, k, digits, next_digit)
    return noise


@inline
def _next_digit(secret: DigitWords) -> tuple[int, np.uint64]:
    """1 or DRY, and the first digit of a fresh uniform number."""
    if secret.used[USED] >= len(secret.words):
        secret.used[SHORT] = 1
        return DRY, np.uint64(0)
    secret.used[USED] += 1
    return 1, np.uint64(secret.words[secret.used[USED] - 1])


@inline
def _below_digit(bound: np.uint64, secret: DigitWords) -> tuple[int, np.uint64]:
    """Whether a fresh uniform number is below one that begins with `bound`: 1 or 0, or TIE or DRY; and its digit."""
    ready, digit = _next_digit(secret)
    if ready == DRY:
        return DRY, digit
    if digit == bound:
        return TIE, digit
    return (1 if digit < bound else 0), digit


@inline
def _half_power(secret: DigitWords) -> int:
    """1 with probability e^(-1/2), else 0; or TIE or DRY. How long a falling run below 1/2 is: even or odd."""
    last, even = HALF, 1
    while True:
        smaller, digit = _below_digit(last, secret)
        if smaller == TIE and last == HALF:
            smaller = 0  # one half has no further digits
        if smaller < 0:
            return smaller
        if smaller == 0:
            return even
        last, even = digit, 1 - even


@inline
def _accepts(k: int, x: np.uint64, secret: DigitWords) -> int:
    """1 with probability exp(-x (2k + x) / (2k + 2)), else 0; or TIE or DRY."""
    last, even = x, 1
    while True:
        smaller, digit = _below_digit(last, secret)
        if smaller == 1:
            part = below(2 * k + 2, secret)
            if part < 0:
                return DRY
            if part > 2 * k:
                return even
            if part == 2 * k:
                smaller, _ = _below_digit(x, secret)
        if smaller < 0:
            return smaller
        if smaller == 0:
            return even
        last, even = digit, 1 - even


@inline
def _one(secret: DigitWords) -> tuple[int, np.uint64]:
    """The whole part k of |X| and the first digit of its fraction; or TIE or DRY instead of k."""
    while True:
        k, x, good = 0, HALF, _half_power(secret)
        while good == 1:
            k += 1
            good = _half_power(secret)
        if good == 0:
            good = 1
            for _ in range(k * (k - 1)):
                good = _half_power(secret)
                if good != 1:
                    break
        if good == 1 and k > MOST_WHOLE:
            good = TIE  # whole parts of more than one digit are Python's
        if good == 1:
            good, x = _next_digit(secret)
            for _ in range(k + 1):
                if good == 1:
                    good = _accepts(k, x, secret)
        if good == 1:
            return k, x
        if good < 0:
            return good, x


@kernel
def _fill(done: int, wholes: Ints, fractions: Words, secret: DigitWords) -> int:
    """Fill from `done` on; returns how far it came before digits ran out or two were equal."""
    while done < len(wholes):
        begin(secret)
        sign = below(2, secret)
        k, x = _one(secret) if sign >= 0 else (DRY, HALF)
        for _ in range(FIRST - 1):
            ready, digit = _next_digit(secret) if k >= 0 else (k, HALF)
            k, x = (k if ready == 1 else ready), (x << np.uint64(DIGIT)) | digit
        if k < 0:
            undo(secret)
            return done
        wholes[done] = k if sign == 0 else -k - 1
        fractions[done] = x
        done += 1
    return done


def _written(sigma: float) -> tuple[int, int]:
    """(m, e): sigma is m / 2^e, and m has 53 bits."""
    share, exponent = math.frexp(sigma)
    return int(math.ldexp(share, 53)), 53 - exponent


LOWER = np.uint64(0xFFFFFFFF)
UPPER = np.uint64(32)


@inline
def _decided(m: int, e: int, k: int, fraction: np.uint64) -> int:
    """round(m / 2^e * (k + x)) if that is the same for every x that begins with this word, else UNDECIDED.

    That is m (k 2^64 + fraction) and up to m more, in units of 2^-(e + 64), written as high * 2^64 + low.
    """
    if not 1 <= e <= MOST_BELOW or k > MOST_WHOLE:
        return UNDECIDED
    few = np.uint64(m)
    first, second = (few & LOWER) * (fraction & LOWER), (few >> UPPER) * (fraction & LOWER)
    third, fourth = (few & LOWER) * (fraction >> UPPER), (few >> UPPER) * (fraction >> UPPER)
    # Below 2^64: first >> 32 and second & LOWER are below 2^32.
    middle = (first >> UPPER) + (second & LOWER) + third
    low = (middle << UPPER) | (first & LOWER)
    high = (
        fourth
        + (second >> UPPER)
        + (middle >> UPPER)
        + few * np.uint64(k)
        + (np.uint64(1) << np.uint64(e - 1))
    )
    carried = high + np.uint64(low + few < low)
    down, up = high >> np.uint64(e), carried >> np.uint64(e)
    return int(np.int64(down)) if down == up else UNDECIDED


@kernel
def _round(sigma: float, m: int, e: int, wholes: Ints, fractions: Words, state: Ints, noise: Ints) -> None:
    """Round what is DRAWN where floats can, or the first 64 bits of a fraction; where they cannot, it is UNSURE."""
    for j in range(len(wholes)):
        if state[j] != DRAWN:
            continue
        k = wholes[j] if wholes[j] >= 0 else -wholes[j] - 1
        size = sigma * (k + float(fractions[j]) * FRACTION)
        down = np.floor(size + 0.5)
        result = int(down)
        if abs(size + 0.5 - np.rint(size + 0.5)) <= SAFE * (size + 1):
            result = _decided(m, e, k, fractions[j])
            state[j] = UNSURE if result == UNDECIDED else SETTLED
        noise[j] = result if wholes[j] >= 0 else -result
