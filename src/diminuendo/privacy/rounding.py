"""Rounding outward, in one place: costs up, what may be spent down."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


def rounded_up(value: Fraction) -> float:
    """The least float that is not below."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def root_up(value: float) -> float:
    """A float not below the square root."""
    return math.nextafter(math.sqrt(value), math.inf) if value > 0 else 0.0


def product_up(one: float, other: float) -> float:
    """A float not below the product."""
    return math.nextafter(one * other, math.inf)


def raised(guess: float, enough: Callable[[float], bool]) -> float:
    """The guess, or the next floats above it until it is enough."""
    while not enough(guess):
        guess = math.nextafter(guess, math.inf)
    return guess


def lowered(guess: float, allowed: Callable[[float], bool]) -> float:
    """The guess, or the next floats below it until it is allowed."""
    while not allowed(guess):
        guess = math.nextafter(guess, 0.0)
    return guess


def least(holds: Callable[[float], bool]) -> float:
    """The least float >= 0 from which on `holds`, rounded up; infinity if there is none."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, high * 2
        if math.isinf(high):
            return math.inf
    return _bisected(low, high, holds)[1]


def greatest(holds: Callable[[float], bool]) -> float:
    """The greatest float up to which `holds`, rounded down; 0 if there is none."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, high * 2
        if math.isinf(high):
            return low
    return _bisected(low, high, lambda x: not holds(x))[0]


def _bisected(low: float, high: float, beyond: Callable[[float], bool]) -> tuple[float, float]:
    """Neighbouring floats, `beyond` false at the first and true at the second, to within one part in 2^50."""
    while (middle := math.sqrt(low * high) if low > 0 and high > 4 * low else (low + high) / 2) > low:
        if middle >= high or (low > 0 and high - low <= high * 2.0**-50):
            break
        if beyond(middle):
            high = middle
        else:
            low = middle
    return low, high
