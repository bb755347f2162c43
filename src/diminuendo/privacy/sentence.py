"""A guarantee in words that can be quoted: who is protected, of what, from whom, how much, and on which conditions.

(epsilon, delta)-differential privacy says of everything that may be seen: its probability under one answer is at most
e^epsilon times its probability under another, plus delta. The words say just that, with numbers rounded upwards. (That
odds move by no more than e^epsilon *except with probability delta* is often said, and is not the same.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from diminuendo.privacy.budget import Unit

DIGITS = 3
"""How many digits numbers have that users read."""
EVERYBODY = Unit().view
"""Whose view is protected where contexts are public, or where there are none."""
SMALL = Decimal("0.1")
"""Below, what e^epsilon is more than 1 gets all the digits: 1.01 would say ten times what epsilon 0.001 means."""


def guarantee_sentence(guarantee: Mapping[str, Any], *, max_rounds_per_user: int = 1) -> str:
    """What a guarantee (as `Guarantee.as_json()` writes it) promises to a user who has up to
    `max_rounds_per_user` rounds."""
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    if epsilon is None:
        return "No guarantee: what is shown may reveal the feedback of any one user."
    if epsilon == 0 and delta == 0:
        return (
            "What is shown does not depend on the feedback of any user and reveals nothing of it: "
            "(0, 0)-differential privacy."
        )
    rounds, names = "in one round", ""
    if max_rounds_per_user > 1:
        rounds = f"in up to {max_rounds_per_user:,} rounds together"
        names = ", where each user comes under one name of their own"
    plus = f", plus at most {chance(delta)}" if delta > 0 else ""
    real = "" if guarantee["exact"] else ", for real numbers, which the numbers computed with only resemble"
    jointly = guarantee.get("view", EVERYBODY) != EVERYBODY
    whatever, other, joint = f"Whatever any one user answers {rounds}", "had they answered anything else", ""
    every = "Others are all who see every slate and every released number of the whole run"
    shown: list[str] = []
    if jointly:
        whatever = f"Whatever is known of any one user, and whatever they answer, {rounds}"
        other, joint = "had anything else been known of them, or had they answered anything else", "joint "
        every = "Others are all but this user, together: all who see every slate but theirs and every released number"
        shown = [
            "A user's own slates follow from what is known of them; a reader of these slates may learn it."
        ]
    return " ".join(
        [
            f"{whatever}, and whether they answer at all: the probability of anything that others may come to see is "
            f"at most {factor(epsilon)} times what it would be {other}, or nothing{plus}.",
            f"{every}, whatever else they know and however long they compute.",
            *shown,
            "That a user came is not hidden.",
            f"This is {joint}({upwards(epsilon)}, {upwards(delta)})-differential privacy ({guarantee['neighbours']}), "
            f"proved in {guarantee['proof']} of diminuendo{real}.",
            "It holds where random numbers come from the operating system and stay secret, where every answer is given "
            f"to the decision that it answers{names}, and where nothing else that depends on answers, such as rewards "
            "or click rates, is published.",
        ]
    )


def factor(epsilon: float) -> str:
    """e^epsilon, as a power and as a number that is not less."""
    power = f"e^{upwards(epsilon)}"
    if epsilon > math.log(1e9):
        return f"{power} (more than a billion)"
    grown = rounded_up(as_written(epsilon)).exp()
    if grown - 1 < SMALL:
        return f"{power} = {plain(1 + rounded_up(grown - 1))}"
    return f"{power} = {plain(rounded_up(grown, max(DIGITS, grown.adjusted() + 1)))}"


def chance(delta: float) -> str:
    """A small probability in words that is not less than it."""
    times = math.floor(1 / as_written(delta))
    for name, size in (("billion", 10**9), ("million", 10**6)):
        if times >= size:
            many = Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(Decimal(times) / size)
            return f"one in {'a' if many == 1 else plain(many)} {name}"
    return f"one in {times:,}"


def upwards(value: float) -> str:
    """A number in a few digits that is not less than it, as 0.000001."""
    return plain(rounded_up(as_written(value)))


def as_written(value: float) -> Decimal:
    """The number as users write it: .1 is a tenth, though the float is a little more."""
    return Decimal(repr(float(value)))


def rounded_up(value: Decimal, digits: int = DIGITS) -> Decimal:
    """A number of `digits` digits that is not less than `value`."""
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value)


def plain(value: Decimal) -> str:
    """The number without an exponent, and without zeros that say nothing."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
