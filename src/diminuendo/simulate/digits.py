"""Numbers of a guarantee in a few digits: rounded upwards, because less than what is proved would not be true."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal

DIGITS = 3
"""Of numbers for people."""


def upwards(value: float) -> str:
    """A number in a few digits that is not less than it, as 0.000001."""
    return plain(rounded_up(as_written(value)))


def upwards_short(value: float) -> str:
    """The same where there is little room, as 1e-6."""
    return f"{float(rounded_up(as_written(value))):g}".replace("e-0", "e-")


def as_written(value: float) -> Decimal:
    """The number as people write it: .1 is a tenth, though the float is a little more."""
    return Decimal(repr(float(value)))


def rounded_up(value: Decimal, digits: int = DIGITS) -> Decimal:
    """In so many digits, not less."""
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value)


def plain(value: Decimal) -> str:
    """Without an exponent, without zeros that say nothing."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
