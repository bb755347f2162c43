"""What one release of a chain costs: computed here and nowhere else, in fractions, for plans and for charges alike.

A release queries all users' singletons, and then for rows and a rest that add up to them. Users of batch j enter with a
whole weight, so they pay weight^2 times what one user of weight 1 pays: squared shifts over squared deviations of
the noise (docs/maths/sums.md, Theorems S4 and S6).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from diminuendo.errors import InvalidInput
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness import noise
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import Schedule


def squared_shifts(n_items: int, clip: Clip) -> tuple[int, int]:
    """By how much two users can differ, squares added up: in singles, and in all rows of a chain with its rest.

    Rows of one entry add up to no more than its singles, but two users may lose at different steps.
    """
    largest = n_items * clip.largest**2
    return clip.sensitivity_squared(n_items), 2 * min(clip.limit**2, largest)


def cost_of_one(shifts: Sequence[int], sigmas: Sequence[float]) -> Fraction:
    """What a user of weight 1 pays for numbers that shift so under noise of these deviations."""
    exact = [Fraction(noise.checked_scale(sigma, "sigma")) for sigma in sigmas]
    return sum((shift / sigma**2 for shift, sigma in zip(shifts, exact, strict=True)), Fraction(0))


def deviation_for(cost: Fraction, shift: int) -> float:
    """The least deviation of noise with which numbers that shift so cost no more than that."""
    result = math.sqrt(shift / cost)
    while shift > cost * Fraction(result) ** 2:
        result = math.nextafter(result, math.inf)
    return result


def partition(name: str, schedule: Schedule) -> str:
    """How a ledger calls the batches of a schedule. Those of another one have other users in them: they add up."""
    return f"{name} {hashlib.sha256(repr(schedule.ends).encode()).hexdigest()[:16]}"


def split_deviations(shifts: Sequence[int], sigmas: Sequence[float], share: Fraction) -> tuple[float, float]:
    """Deviations for singles and for rows at the price of `sigmas`, of which singles get that share."""
    cost, (singletons, rows) = cost_of_one(shifts, sigmas), shifts
    return deviation_for(share * cost, singletons), deviation_for((1 - share) * cost, rows)


def shared_deviations(cost: Fraction, parts: Sequence[tuple[Fraction, int]]) -> tuple[float, ...]:
    """Deviations for parts of a release that costs so much: each has a share of the cost, and shifts by so much.

    A part without a share is not published; its deviation is infinite.
    """
    if sum((share for share, _ in parts), Fraction(0)) > 1 or any(share < 0 for share, _ in parts):
        raise InvalidInput("Shares of the cost of a release are not negative, and add up to at most 1.")
    return tuple(deviation_for(share * cost, shift) if share else math.inf for share, shift in parts)


UNIT = 4096
"""The whole number that stands for a weight of 1 of a batch."""

AROUND = "around"
"""How the ledger's note of a release begins that asks around a slate; others ask a chain."""


def was_swap(ledger: Ledger, name: str, number: int) -> bool | None:
    """Whether release `number` was begun before, perhaps before a crash, and asked around a slate; None: it was not."""
    about = ledger.about(f"{name}-{number:06d}")
    return None if about is None else about.startswith(AROUND)


def charged_from(ledger: Ledger, name: str, number: int) -> int | None:
    """The first batch that paid for release `number`, if that was begun before, perhaps before a crash."""
    charged = ledger.cost_of(f"{name}-{number:06d}")
    paid = charged.squares if isinstance(charged, NormalColumns) else ()
    return next((batch for batch, square in enumerate(paid) if square), None)


def release_cost(
    weights: Iterable[int], shifts: Sequence[int], sigmas: Sequence[float], partition: str
) -> NormalColumns:
    """What users of each batch, who enter with weights[batch], pay for numbers that shift so under such noise.

    `shifts`: squared, as from `squared_shifts`; `sigmas`: the deviation of the noise on each of them.
    """
    each = cost_of_one(shifts, sigmas)
    return NormalColumns(0, tuple(rounded_up(int(weight) ** 2 * each) for weight in weights), partition)
