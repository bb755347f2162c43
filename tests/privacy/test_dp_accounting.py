"""The same guarantees from Google's dp_accounting 0.6.0, which shares no code with this package.

It rounds outward too, by grids of its own, so neither side need be below the other by more than those grids.
"""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from diminuendo.privacy import calibrate, curves, events
from diminuendo.privacy.accountants import ACCOUNTANTS

dp: Any = pytest.importorskip("dp_accounting", reason="needs dp-accounting to compare with")
losses: Any = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
common: Any = importlib.import_module("dp_accounting.pld.common")

ORDERS = 1 + np.geomspace(1e-3, 1e5, 20_001)
GRID = 3e-7
"""Orders, less 1, are 1e-3 apart, relatively. Epsilon is flat where it is least, so missing the best order
by half of that costs half its square, 1e-7 of epsilon."""

SUMS = 1e-9
"""Discretised losses are summed over some 1e4 cells; tails of 1e-15 are cut off and added to delta."""


def renyi(*parts: Any) -> Any:
    accountant = dp.rdp.RdpAccountant(ORDERS)
    for part in parts:
        accountant.compose(part)
    return accountant


def loss(*parts: Any, interval: float = 1e-4) -> Any:
    accountant = dp.pld.PLDAccountant(value_discretization_interval=interval)
    for part in parts:
        accountant.compose(part)
    return accountant


COSTS = [(0.0243559704, 1e-6), (0.1, 1e-6), (1e-4, 1e-9), (3.0, 1e-12), (0.5, 1e-3), (1e-6, 1e-6)]


@pytest.mark.parametrize(("rho", "delta"), COSTS)
def test_zcdp(rho: float, delta: float) -> None:
    """The same conversion, there at the best of its orders: ours is at most that, and not lower by more."""
    theirs = renyi(dp.ZCDpEvent(rho)).get_epsilon(delta)
    assert theirs * (1 - GRID) <= curves.zcdp_epsilon(rho, delta) <= theirs
    assert curves.zcdp_delta(rho, theirs) == pytest.approx(delta, rel=20 * GRID)


def test_zcdp_with_their_own_orders() -> None:
    """Their default orders are coarse: the published 1.00000029 at the rho of (1, 1e-6)."""
    accountant = dp.rdp.RdpAccountant()
    accountant.compose(dp.ZCDpEvent(curves.zcdp_rho(1.0, 1e-6)))
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.0000002896, abs=1e-9)


def test_zcdp_of_a_composition() -> None:
    ours = events.Composed((events.Repeated(events.Gaussian(0.01), 7), events.Selections(40, 0.1)))
    theirs = renyi(
        dp.SelfComposedDpEvent(dp.ZCDpEvent(0.01), 7), dp.SelfComposedDpEvent(dp.ZCDpEvent(0.1**2 / 8), 40)
    )
    epsilon = ACCOUNTANTS["zcdp"].epsilon(ours, 1e-6)
    assert theirs.get_epsilon(1e-6) * (1 - GRID) <= epsilon <= theirs.get_epsilon(1e-6)


@pytest.mark.parametrize(("mu", "delta"), [(0.2367, 1e-6), (1.0, 1e-5), (0.05, 1e-4), (3.0, 1e-8)])
def test_gaussian(mu: float, delta: float) -> None:
    """Theirs are above the exact curve: a loss rounded up to a multiple of 1e-4 (connected by lines, so the
    error is of second order: 1e-6 of epsilon), or a Renyi bound, the zCDP of mu^2/2 at the best order."""
    release = dp.GaussianDpEvent(1 / mu)
    exact = curves.gaussian_epsilon(mu, delta)
    assert exact * (1 - SUMS) <= loss(release).get_epsilon(delta) <= exact * (1 + 1e-6)
    bound = renyi(release).get_epsilon(delta)
    assert exact < curves.zcdp_epsilon(mu**2 / 2, delta) <= bound
    assert bound == pytest.approx(curves.zcdp_epsilon(mu**2 / 2, delta), rel=GRID)


def test_gaussians_add_their_squares() -> None:
    ours = events.Composed(
        (events.ContinuousGaussian(0.3), events.Repeated(events.ContinuousGaussian(0.4), 4))
    )
    theirs = loss(dp.GaussianDpEvent(1 / 0.3), dp.SelfComposedDpEvent(dp.GaussianDpEvent(1 / 0.4), 4))
    assert ACCOUNTANTS["continuous-gaussian"].epsilon(ours, 1e-6) == pytest.approx(
        theirs.get_epsilon(1e-6), rel=1e-6
    )


def test_noise_for_a_budget() -> None:
    sigma = calibrate.gaussian_sigma(Fraction(curves.gaussian_mu(1.0, 1e-6)) ** 2 / 2, 2)
    theirs = dp.gaussian_mechanism.get_sigma_gaussian(1.0, 1e-6) * math.sqrt(2)
    assert sigma == pytest.approx(theirs, rel=1e-6)  # theirs is bisected to 1e-6 or so


@pytest.mark.parametrize(
    ("step", "count", "epsilon"), [(0.1, 50, 1.0), (0.5, 8, 1.0), (0.01, 400, 0.5), (2.0, 3, 1.0)]
)
def test_pure_compositions(step: float, count: int, epsilon: float) -> None:
    """Steps are whole numbers of cells, so that nothing is rounded but sums."""
    one = losses.from_privacy_parameters(
        common.DifferentialPrivacyParameters(step, 0.0), value_discretization_interval=step / 16
    )
    theirs = one.self_compose(count).get_delta_for_epsilon(epsilon)
    assert curves.pure_delta(step, count, epsilon) == pytest.approx(theirs, rel=SUMS)


@pytest.mark.parametrize(("step", "count"), [(0.1, 50), (0.5, 8), (0.02, 300)])
def test_laplace_costs_no_more_than_any_pure_release(step: float, count: int) -> None:
    """Laplace noise is one purely private mechanism: every general bound lies above it. Their losses are
    rounded up by at most a cell each, so as much may be missing."""
    theirs = loss(dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1 / step), count), interval=1e-4)
    rounding = count * 1e-4
    ours = events.Repeated(events.Laplace(step), count)
    for name in ["pure", "zcdp", "advanced"]:
        assert theirs.get_epsilon(1e-6) - rounding <= ACCOUNTANTS[name].epsilon(ours, 1e-6), name
    for epsilon in (0.2, 0.5, 1.0):
        assert theirs.get_delta(epsilon + rounding) <= curves.pure_delta(step, count, epsilon)


def test_basic_composition() -> None:
    """With next to no delta only the sum can be claimed: the largest loss has a chance of 1/8. Theirs cuts
    tails of 1e-15 and can say nothing at delta 0; three losses are rounded up by a cell each."""
    steps = [0.1, 0.25, 0.4]
    theirs = loss(*(dp.LaplaceDpEvent(1 / step) for step in steps))
    ours = events.Composed(tuple(events.Laplace(step) for step in steps))
    assert ACCOUNTANTS["pure"].epsilon(ours, 0.0) == pytest.approx(theirs.get_epsilon(1e-10), abs=3 * 1e-4)
    assert ACCOUNTANTS["pure"].epsilon(ours, 0.0) == pytest.approx(sum(steps), rel=1e-12)


def test_rates_beat_what_losses_of_pure_draws_can_claim() -> None:
    """A draw of range 0.1 as a zCDP event, and as any 0.1-private release, which costs twice the epsilon."""
    ranged = renyi(dp.SelfComposedDpEvent(dp.ZCDpEvent(0.1**2 / 8), 1000)).get_epsilon(1e-6)
    pure = losses.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.1, 0.0), value_discretization_interval=0.1 / 16
    )
    assert ACCOUNTANTS["zcdp"].epsilon(events.Selections(1000, 0.1), 1e-6) <= ranged
    assert ranged < 0.6 * pure.self_compose(1000).get_epsilon_for_delta(1e-6)
