"""Calibration: from a budget to the parameter of a mechanism, always on the safe side.

Whatever is returned was checked against the exact cost (in fractions) of the very float that is returned: rates are
rounded down, noise up. Budgets and sensitivities are public facts; nothing here ever sees what users said.
"""

from __future__ import annotations

import math
from fractions import Fraction

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Selections
from diminuendo.privacy.rounding import greatest, lowered, product_up, raised


def selection_rate(epsilon: float, delta: float, count: int, span: float, accountant: str = "zcdp") -> float:
    """The largest rate at which `count` draws with weights exp(rate * score) cost at most (epsilon, delta).

    `span`: how much one user can move the difference of two scores, in the unit that scores are in. Gains in [0, 1]
    that are scores in ticks: 2 * ticks when a user may move every score, ticks when only one.
    """
    _validate.positive_int(count, "count")
    _validate.positive_float(span, "span")
    _validate.positive_float(epsilon, "epsilon")
    _validate.delta(delta)
    if delta == 0 and accountant != "pure":
        raise InvalidInput(f"{accountant!r} accounting needs a delta above 0; with delta = 0 use 'pure'.")
    if accountant != "zcdp":
        chosen = _validate.lookup(ACCOUNTANTS, accountant, "accountant")
        return greatest(
            lambda rate: chosen.epsilon(Selections(count, product_up(rate, span)), delta) <= epsilon
        )
    rho = Fraction(curves.zcdp_rho(epsilon, delta))
    return lowered(
        math.sqrt(8 * rho / count) / span,
        lambda rate: count * (Fraction(rate) * Fraction(span)) ** 2 / 8 <= rho,
    )


def selections(budget: Budget, count: int, span: float) -> tuple[float, Selections]:
    """The largest rate at which `count` draws fit into a budget, and the event to charge for them."""
    _validate.positive_float(span, "span")
    owned = span * budget.unit.rounds
    rate = selection_rate(budget.epsilon, budget.delta, count, owned, budget.accountant)
    while budget.counting.tally(event := Selections(count, product_up(rate, span))).total > budget.limit:
        rate = math.nextafter(rate, 0.0)
    return rate, event


def gaussian_sigma(rho: float | Fraction, sensitivity_squared: int) -> float:
    """The least deviation of Gaussian noise with sensitivity_squared / (2 sigma^2) <= rho."""
    _validate.positive_float(float(rho), "rho")
    cost = Fraction(_validate.positive_int(sensitivity_squared, "sensitivity_squared"))
    return raised(
        math.sqrt(cost / (2 * Fraction(rho))), lambda sigma: cost <= 2 * Fraction(sigma) ** 2 * Fraction(rho)
    )


def laplace_scale(epsilon: float, sensitivity: int) -> float:
    """The least scale of discrete Laplace noise with sensitivity / scale <= epsilon."""
    _validate.positive_float(epsilon, "epsilon")
    cost = Fraction(_validate.positive_int(sensitivity, "sensitivity"))
    return raised(float(cost / Fraction(epsilon)), lambda scale: cost <= Fraction(scale) * Fraction(epsilon))
