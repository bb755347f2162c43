"""The guarantee in words that can be quoted: who is protected, of what, from whom, how much, and on which conditions.

(epsilon, delta)-differential privacy says of everything that may be seen: its probability under one answer is at most
e^epsilon times its probability under another, plus delta. The words say just that, with numbers rounded upwards. (That
odds move by no more than e^epsilon *except with probability delta* is often said, and is not the same.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

from diminuendo.simulate.digits import DIGITS, as_written, plain, rounded_up, upwards

SMALL = Decimal("0.1")
"""Below, what e^epsilon is more than 1 gets all the digits: 1.01 would say ten times what epsilon 0.001 means."""


def guarantee_sentence(guarantee: Mapping[str, Any], *, visits: int = 1) -> str:
    """What a guarantee (as `Guarantee.as_json()` writes it) promises to a person who has up to `visits` rounds."""
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    if epsilon is None:
        return "Nothing is promised: what is shown may reveal what any one person answered."
    if epsilon == 0 and delta == 0:
        return (
            "What is shown does not depend on what anybody answered, so nobody can learn anything about an answer from "
            "it: (0, 0)-differential privacy."
        )
    rounds = "in one round" if visits == 1 else f"in up to {visits:,} rounds together"
    return " ".join(
        [
            f"Whatever any one person answers {rounds}, and whether she answers at all: the probability of anything "
            f"that others may come to see is at most {factor(epsilon)} times what it would be had she answered "
            f"anything else, or nothing{_plus(delta)}.",
            "Others are all who see every slate and every released number of the whole run, whatever else they know "
            "and however long they compute.",
            "That she came is not hidden.",
            f"This is ({upwards(epsilon)}, {upwards(delta)})-differential privacy ({guarantee['neighbours']}), proved "
            f"in {guarantee['proof']} of diminuendo" + _arithmetic(guarantee) + ".",
            "It holds where random numbers come from the operating system and stay secret, where every answer is given "
            "to the decision that it answers"
            + _names(visits)
            + ", and where nothing else that depends on answers, "
            "such as payoffs or click rates, is published.",
        ]
    )


def seeded_note(guarantee: Mapping[str, Any]) -> str:
    """What must be said beside the sentence where the coins were seeded, as in every simulation; else nothing."""
    if guarantee["secure_coins"] or not guarantee["epsilon"]:
        return ""
    return (
        "The runs of this report were seeded, so that they can be repeated; whoever knows the seed can undo the noise. "
        "The sentence is about the same learner with the same settings and the operating system's random numbers."
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
            many = _down(Decimal(times) / size)
            return f"one in {'a' if many == 1 else plain(many)} {name}"
    return f"one in {times:,}"


def _plus(delta: float) -> str:
    return f", plus at most {chance(delta)}" if delta > 0 else ""


def _arithmetic(guarantee: Mapping[str, Any]) -> str:
    return "" if guarantee["exact"] else ", for real numbers, which the numbers computed with only resemble"


def _names(visits: int) -> str:
    return "" if visits == 1 else ", where everybody comes under one name of her own"


def _down(value: Decimal) -> Decimal:
    return Context(prec=DIGITS, rounding=ROUND_FLOOR).plus(value)
