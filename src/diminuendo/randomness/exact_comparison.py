"""Exact comparisons with exponentials: the slow path, for when floats cannot decide.

Whole-number arithmetic only, with both ends of every interval kept, so that a verdict is a proof. It is asked
about once in 2^39 draws, so it is written to be read, not to be fast.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

WORD = 64


def decide(residual: int, rate: float, difference: int, bits: int, next_word: Callable[[], int]) -> bool:
    """Whether residual + v < 2^bits * exp(rate * difference), for v uniform in [0, 1).

    v is written out word by word, as far as the answer needs it. `rate * difference` is at most 0, and exact: the
    rate is the float that it is.
    """
    power = Fraction(rate) * difference
    digits = 0
    while True:
        # residual counts units of 2^-(WORD * digits) now; the interval is finer than one of them.
        low, high = exp_bounds(power, bits + WORD * (digits + 1))
        if (residual + 1) << WORD <= low:
            return True
        if residual << WORD >= high:
            return False
        residual = residual << WORD | next_word()
        digits += 1


def exp_bounds(power: Fraction, precision: int) -> tuple[int, int]:
    """Whole numbers below and above 2^precision * exp(power), for power <= 0, not more than a few units apart."""
    if power > 0:
        raise ValueError("weights are relative to the heaviest, so powers are not above 0")
    if power == 0:
        return 1 << precision, 1 << precision
    if -power >= precision:
        return 0, 1
    # exp(power) = exp(power / 2^halvings) ^ (2^halvings), with the inner power at most 1/2.
    halvings = max(0, (2 * -power.numerator // power.denominator).bit_length())
    work = precision + 2 * halvings + 32
    step = (-power.numerator << work) // (power.denominator << halvings)
    # Alternating series; each term is the rounded-down product of the last, which is off by 3 units at most.
    term = total = 1 << work
    terms = 0
    while term:
        terms += 1
        term = term * step // (terms << work)
        total += -term if terms % 2 else term
    slack = 4 * (terms + 2)
    low, high = max(0, total - slack), total + slack
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    drop = work - precision
    return low >> drop, -(-high >> drop)
