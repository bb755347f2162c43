"""What is stated holds for the exact law of what comes out, also where noise is a part of what was asked for.

Worlds are so small that the law can be listed. The mechanism is made for a larger epsilon than the one it is told was
asked for, so that a statement that follows what was asked for, and not what is done, is too small.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy
from scipy.stats import norm

from diminuendo import LEARNERS, paper
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.hedge.bandit_dp import BETA_ROUNDING, BanditDp, delta_over_draws
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SeededSource
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from tests.contracts.test_guarantees import SCALES, epsilon_at, tell
from tests.kit.enumeration import all_users, bandit_law, full_information_law, worst

SUMMED = 1e-12
"""More than sums of a few thousand floats round away."""


def delta_of(one: Any, other: Any, epsilon: float) -> float:
    """The exact delta of two listed laws, in both directions."""
    p, q = np.asarray(one), np.asarray(other)
    return float(max(np.clip(a - math.exp(epsilon) * b, 0, None).sum() for a, b in ((p, q), (q, p))))


def keeps(stated: Guarantee, one: Any, other: Any) -> bool:
    """Whether two listed laws are as close as is stated."""
    return delta_of(one, other, stated.epsilon) <= stated.delta + SUMMED


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("name", "feedback"), [("slate-totals", "bandit"), ("slate-clicks", "click")])
def test_counts_of_slates(name: str, feedback: Any, scale: Fraction) -> None:
    """One cell of a block, of sensitivity 1: discrete Laplace noise of the scale that is drawn."""
    asked = Budget(1.0, 0.0, accountant="pure")
    setting = Setting(6, 2, 40, feedback, epsilon_at(asked, scale), 0.0)
    learner = LEARNERS[name].for_setting(setting, rng=SeededSource(1))
    tell(learner, asked)
    counts: Any = learner.policy._counts  # type: ignore[attr-defined]
    width, ticks = counts.scale(1), counts.ticks
    at = np.arange(-round(60 * width), round(60 * width) + 1)
    laws = [np.exp(-np.abs(at - said) / width) for said in (0, ticks)]
    one, other = (law / law.sum() for law in laws)
    assert keeps(learner.guarantee, one, other)
    less = Guarantee(0.98 * learner.guarantee.epsilon, 0.0, "", "", False)
    assert not keeps(less, one, other), "nothing smaller is true"


@pytest.mark.parametrize("scale", SCALES)
def test_gaussian_sums_on_a_ledger(scale: Fraction) -> None:
    """One number, published once with rounded normal noise; the ledger is told another budget afterwards."""
    asked = Budget(1.0, 1e-3, accountant="continuous-gaussian")
    ledger = Ledger(Budget(epsilon_at(asked, scale), 1e-3, accountant="continuous-gaussian"))
    total = PrivateSum(
        1,
        schedule=equal(1, 1),
        cost=ledger.budget.share(),
        ledger=ledger,
        clip=Clip("cell"),
        strategy="independent",
    )
    ledger.budget = asked
    most, sigma = int(round(math.sqrt(total.clip.sensitivity_squared(1)))), total.scale
    ends = np.arange(-round(12 * sigma), round(12 * sigma) + 1) + 0.5
    one, other = (np.diff(norm.cdf(ends, said, sigma)) for said in (0, most))
    assert keeps(ledger.guarantee(), one, other)
    less = Guarantee(0.98 * ledger.spent(), asked.delta, "", "", False)
    assert not keeps(less, one, other), "nothing smaller is true"


@pytest.mark.parametrize("scale", SCALES)
def test_algorithm_2(scale: Fraction) -> None:
    rate, users = 0.4 / float(scale), all_users(2, (0.0, 1.0), 1)
    learner = FiDp(2, 1, horizon=3, rate=rate, epsilon=1.0, delta=1e-2, rng=SeededSource(1))
    stated = learner.guarantee
    choices = [users] * 2 + [users[:1]]
    result = worst(lambda stream: full_information_law(stream, 2, 1, rate), choices, (stated.epsilon,))
    assert result.delta[stated.epsilon] <= stated.delta + SUMMED


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_algorithm_3_without_a_cap(share: float) -> None:
    """As printed: what is stated is an average over the coins, at the delta asked for."""
    n, k, rounds, rate = 2, 1, 3, 1.0
    users = all_users(n, (0.0, 1.0), 1)
    choices = [[None, *users]] * (rounds - 1) + [users[:1]]
    for delta in (1e-1, 1e-2, 1e-6):
        learner = BanditDp(
            n, k, exploring=share, cap=None, resample="all", horizon=rounds, rate=rate, epsilon=1.0, delta=delta,
            rng=SeededSource(1),
        )  # fmt: skip
        stated = learner.guarantee
        assert stated.delta == delta
        result = worst(
            lambda stream: bandit_law(stream, n, k, rate, share, "all", None, "uniform"),
            choices,
            (stated.epsilon,),
        )
        assert result.delta[stated.epsilon] <= delta + SUMMED


# Deltas that underflow.


def test_a_long_run_without_a_cap_is_not_pure() -> None:
    """Ten million draws at this rate have a pure cost of 40: nothing that is stated of them has a delta of 0."""
    learner = paper.bandit_dp(10, 3, 10**7, 1.0, 1e-6, calibration="paper", capped=False)
    stated, own = learner.guarantee, learner.parameters
    pure = (10**7 - 1) * own["rate"]
    assert pure > 40
    assert stated.delta == 1e-6
    # The run that makes the mean number of redraws is cheaper than an average of a convex delta, and the one that
    # makes them all is dearer; of all rounds, `share` explore.
    share, rho = own["exploring"], own["rate"] ** 2 / 8
    mean = curves.zcdp_epsilon(share * 10**7 * rho, 1e-6 / share)
    most = curves.zcdp_epsilon(10**7 * rho, 1e-6)
    assert mean < stated.epsilon < most
    assert delta_over_draws(10**7 - 2, share, share, own["rate"], stated.epsilon) <= 1e-6


@pytest.mark.parametrize(("later", "again"), [(50, 0.3), (10**5, 0.5), (10**7, 0.7), (10**9, 1e-6)])
def test_chances_of_many_explorations_err_by_less_than_is_allowed_for(later: int, again: float) -> None:
    """Against sums of binomial probabilities with 40 digits."""
    mean, spread = later * again, math.sqrt(later * again * (1 - again))
    with mpmath.workdps(40):
        p = mpmath.mpf(again)
        for deviations in (-4, 0, 4, 20):
            m = int(mean + deviations * spread)
            if not 0 <= m < later:
                continue
            at, exact = m + 1, mpmath.mpf(0)
            term = mpmath.exp(
                mpmath.loggamma(later + 1) - mpmath.loggamma(at + 1) - mpmath.loggamma(later - at + 1)
                + at * mpmath.log(p) + (later - at) * mpmath.log1p(-p)
            )  # fmt: skip
            while at <= later and not (at > mean and term < exact * mpmath.mpf(10) ** -20):
                exact += term
                term *= mpmath.mpf(later - at) / (at + 1) * p / (1 - p)
                at += 1
            result = float(scipy.special.betainc(m + 1.0, later - m, again))
            assert abs(result / exact - 1) < BETA_ROUNDING + later * 2.0**-50


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 39.0])
def test_delta_over_rng_is_never_0(epsilon: float) -> None:
    for later, rate in ((10**7, 4e-6), (10, 1e-200), (0, 1e-3)):
        assert delta_over_draws(later, 0.7, 0.7, rate, epsilon) > 0


def test_delta_is_0_only_where_privacy_is_pure() -> None:
    event, pure = Selections(10_000, 1.0), 10_000.0
    for accountant in ACCOUNTANTS.values():
        if accountant.name == "continuous-gaussian":
            continue
        for epsilon in (9_000.0, 9_999.0, 9_999.999):
            assert accountant.delta(event, epsilon) > 0
    assert ACCOUNTANTS["pure"].delta(event, pure) == 0
    assert curves.pure_delta(1.0, 10_000, 9_999.0) > 0
    assert curves.pure_delta(1.0, 10_000, 10_001.0) == 0
    assert curves.gaussian_delta(1e-3, 100.0) > 0
    assert curves.zcdp_delta(1e-300, 1.0) > 0
    tiny = Selections(100_000, 0.001)
    assert ACCOUNTANTS["advanced"].delta(tiny, 50.0) > 0
