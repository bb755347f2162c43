"""Rounded Gaussian noise on numbers that are written out as far as is needed: where compiled code cannot decide.

The same algorithm as in normal.py, one number at a time, with as many words of each uniform number as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


class _Uniform:
    """A uniform number in (0, 1), word by word."""

    def __init__(self, next_word: Callable[[], int]) -> None:
        self.digits = [next_word()]
        self.next_word = next_word

    def digit(self, j: int) -> int:
        while len(self.digits) <= j:
            self.digits.append(self.next_word())
        return self.digits[j]

    def below(self, other: _Uniform) -> bool:
        j = 0
        while self.digit(j) == other.digit(j):
            j += 1
        return self.digit(j) < other.digit(j)


def slowly(sigma: float, next_word: Callable[[], int]) -> int:
    """One number from fresh words."""

    def half_power() -> bool:
        last, even = _Uniform(next_word), True
        if last.digit(0) >> 63:
            return True
        while True:
            even = not even
            fresh = _Uniform(next_word)
            if not fresh.below(last):
                return even
            last = fresh

    def uniform_below(bound: int) -> int:
        bits = (bound - 1).bit_length()
        while (found := next_word() & ((1 << bits) - 1)) >= bound:
            pass
        return found

    def accepts(k: int, x: _Uniform) -> bool:
        last, even = x, True
        while True:
            fresh = _Uniform(next_word)
            if not fresh.below(last):
                return even
            part = uniform_below(2 * k + 2)
            if part > 2 * k or (part == 2 * k and not _Uniform(next_word).below(x)):
                return even
            last, even = fresh, not even

    sign = 1 - 2 * (next_word() & 1)
    while True:
        k = 0
        while half_power():
            k += 1
        if not all(half_power() for _ in range(k * (k - 1))):
            continue
        x = _Uniform(next_word)
        if all(accepts(k, x) for _ in range(k + 1)):
            return sign * rounded(sigma, k, x.digits, next_word)


def rounded(sigma: float, k: int, digits: list[int], next_word: Callable[[], int]) -> int:
    """round(sigma * (k + x)), x written out in words as far as it takes."""
    exact = Fraction(sigma)
    while True:
        low = Fraction(0)
        for digit in reversed(digits):
            low = (low + digit) / (1 << 64)
        ends = (k + low, k + low + Fraction(1, 1 << 64 * len(digits)))
        down, up = (math.floor(exact * end + Fraction(1, 2)) for end in ends)
        if down == up:
            return down
        digits.append(next_word())
