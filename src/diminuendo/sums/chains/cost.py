"""What one release of a chain costs: computed here and nowhere else, in fractions, for plans and for charges alike.

A release asks everybody for singles, and then for rows and a rest that add up to them. People of batch j enter with a
whole weight, so they pay weight^2 times what one person of weight 1 pays: squared shifts over squared deviations of
the noise (docs/maths/sums.md, Theorems S4 and S6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness import noise
from diminuendo.sums.clip import Clip


def squared_shifts(n_items: int, clip: Clip) -> tuple[int, int]:
    """By how much two people can differ, squares added up: in singles, and in all rows of a chain with its rest.

    Rows of one entry add up to no more than its singles, but two people may lose at different steps.
    """
    largest = n_items * clip.largest**2
    return clip.sensitivity_squared(n_items), 2 * min(clip.limit**2, largest)


def release_cost(
    weights: Iterable[int], shifts: Sequence[int], sigmas: Sequence[float], partition: str
) -> NormalColumns:
    """What people of each batch, who enter with weights[batch], pay for numbers that shift so under such noise.

    `shifts`: squared, as from `squared_shifts`; `sigmas`: the deviation of the noise on each of them.
    """
    exact = [Fraction(noise.checked_scale(sigma, "sigma")) for sigma in sigmas]
    each = sum((shift / sigma**2 for shift, sigma in zip(shifts, exact, strict=True)), Fraction(0))
    return NormalColumns(0, tuple(rounded_up(int(weight) ** 2 * each) for weight in weights), partition)
