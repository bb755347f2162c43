"""Rounded Gaussian noise costs what real Gaussian noise costs: by listing laws, one release and two adaptive ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from diminuendo.errors import OverBudget, UnknownEvent
from diminuendo.privacy import curves
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, NormalColumns, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.types import Floats

EPSILONS = np.linspace(0, 6, 25)


def law(sigma: float, centre: int, reach: int) -> Floats:
    """The probability of each whole number from -reach to reach, tails in the last cells."""
    edges = (np.arange(-reach, reach) + 0.5 - centre) / sigma
    low = np.diff(special.ndtr(edges), prepend=0.0, append=1.0)
    high = np.diff(-special.ndtr(-edges), prepend=-1.0, append=0.0)  # the same, exact far above the centre
    return np.where(np.arange(-reach, reach + 1) > centre, high, low)


def delta(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def rounding(p: Floats) -> float:
    """Each cell is a difference of two numbers below 1, off by 2^-53 at most."""
    return len(p) * 2.0**-52


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 25.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_one_release_is_within_the_gaussian_curve(sigma: float, shift: int) -> None:
    reach = math.ceil(12 * sigma) + 2 * shift
    p, q = law(sigma, shift, reach), law(sigma, 0, reach)
    ratios = []
    for epsilon in EPSILONS:
        claimed = curves.gaussian_delta(shift / sigma, epsilon)
        assert delta(p, q, epsilon) <= claimed * (1 + 1e-9) + rounding(p)
        if claimed > 1e-9:
            ratios.append(delta(p, q, epsilon) / claimed)
    assert sigma < 3 or max(ratios) > 0.99, "and for wide noise it is that curve"


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_two_releases_whose_shifts_depend_on_the_first_are_within_it_too(sigma: float) -> None:
    """First a shift of 3; then, by what came out, one of 4 or of 0: squares add up to 25 at most."""
    reach = math.ceil(10 * sigma) + 6
    first = [law(sigma, centre, reach) for centre in (3, 0)]
    second = {shift: [law(sigma, centre, reach) for centre in (shift, 0)] for shift in (0, 4)}
    chosen = [4 if outcome > 1 else 0 for outcome in range(-reach, reach + 1)]
    p, q = (
        np.concatenate([first[side][j] * second[shift][side] for j, shift in enumerate(chosen)])
        for side in (0, 1)
    )
    for epsilon in EPSILONS:
        assert delta(p, q, epsilon) <= curves.gaussian_delta(5 / sigma, epsilon) * (1 + 1e-9) + rounding(p)
    assert delta(p, q, 1.0) > curves.gaussian_delta(3 / sigma, 1.0), "the first alone would not pay for both"


def test_a_ledger_adds_squares_and_knows_nothing_else() -> None:
    budget = Budget(1.0, 1e-6, accountant="continuous-gaussian")
    mu = curves.gaussian_mu(1.0, 1e-6)
    ledger = Ledger(budget)
    share = budget.share(0.36)
    assert isinstance(share, ContinuousGaussian)
    assert 0.6 * mu * (1 - 1e-12) < share.mu <= 0.6 * mu
    ledger.charge(share)
    ledger.charge(NormalColumns(0, (0.64 * mu * mu * (1 - 1e-12), 0.1 * mu * mu)))
    assert ledger.spent() == pytest.approx(1.0, rel=1e-9)
    assert ledger.guarantee().epsilon <= 1.0
    ledger.charge(NormalColumns(1, (0.5 * mu * mu,)))  # another batch has not paid so much
    with pytest.raises(OverBudget):
        ledger.charge(NormalColumns(0, (1e-6,)))
    for other in (Gaussian(1e-9), Selections(1, 1e-9)):
        with pytest.raises(UnknownEvent):
            ledger.charge(other)
    zcdp = Ledger(Budget(1.0, 1e-6))
    rho = curves.zcdp_rho(1.0, 1e-6)
    zcdp.charge(NormalColumns(0, (2 * rho * (1 - 1e-12),)))
    with pytest.raises(OverBudget):
        zcdp.charge(NormalColumns(0, (1e-6,)))
    with pytest.raises(UnknownEvent):
        Ledger(Budget(1.0, 0.0, accountant="pure")).charge(NormalColumns(0, (0.1,)))
