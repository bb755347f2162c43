"""A new budget for a new period: what one user has in all, and what each period may have."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from diminuendo.errors import InvalidInput
from diminuendo.privacy import Budget, Composed, Ledger, Repeated, Unit
from diminuendo.privacy.budget import REPLACE_WITH_CONTEXT


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    accountant = draw(st.sampled_from(["pure", "zcdp", "continuous-gaussian"]))
    delta = 0.0 if accountant == "pure" else draw(st.sampled_from([1e-9, 1e-6, 1e-3]))
    epsilon, rounds = draw(st.floats(0.01, 20)), draw(st.integers(1, 5))
    return Budget(epsilon, delta, Unit(rounds), accountant)  # type: ignore[arg-type]  # one of the three


@settings(deadline=None, max_examples=60)
@given(budgets(), st.integers(2, 60))
def test_what_periods_cost_together_is_what_is_said(budget: Budget, periods: int) -> None:
    """Each period spends all that it has; the accountant adds that up, on one ledger of the whole."""
    whole, each = budget.renewed(periods), budget.share()
    spent = budget.counting.epsilon(Repeated(each, periods), budget.delta, budget.unit.rounds)
    assert spent <= whole.epsilon * (1 + 1e-12)  # both are rounded up, in their last digits and not alike
    assert whole.epsilon <= spent * (1 + 1e-6)
    assert (whole.delta, whole.unit, whole.accountant) == (budget.delta, budget.unit, budget.accountant)
    assert budget.renewed(1) == budget == budget.split(1)


@settings(deadline=None, max_examples=60)
@given(budgets(), st.integers(2, 60))
def test_a_part_for_each_period_adds_up_to_no_more_and_hardly_less(budget: Budget, periods: int) -> None:
    try:
        part = budget.split(periods)
    except InvalidInput:  # the least that can be said is more than a part of it
        assert replace(budget, epsilon=1e-12).renewed(periods).epsilon > budget.epsilon
        return
    assert part.renewed(periods).epsilon <= budget.epsilon
    assert replace(part, epsilon=part.epsilon * (1 + 1e-6)).renewed(periods).epsilon > budget.epsilon
    assert Fraction(part.limit) * periods <= budget.limit * (1 + Fraction(1, 10**9))


def test_what_delta_alone_hides_is_not_split() -> None:
    whole = Budget(0.01, 0.001, accountant="zcdp")
    with pytest.raises(InvalidInput, match="fewer periods"):
        whole.split(26)
    assert whole.split(2).renewed(2).epsilon <= whole.epsilon


def delta(mu: float, epsilon: float) -> float:
    """Of one Gaussian release, by scipy."""
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def exact_epsilon(mu: float) -> float:
    return float(brentq(lambda epsilon: delta(mu, epsilon) - 1e-6, 0.5, 100.0, xtol=1e-12))


def test_pure_epsilons_add_and_gaussian_shifts_add_in_squares() -> None:
    """By other means: the exact curve of a Gaussian release, in scipy."""
    assert Budget(0.25, 0.0, accountant="pure").renewed(12).epsilon == 3.0
    one = Budget(1.0, 1e-6, accountant="continuous-gaussian")
    mu = brentq(lambda mu: delta(mu, 1.0) - 1e-6, 0.05, 1.0, xtol=1e-12)
    total = brentq(lambda epsilon: delta(math.sqrt(12) * mu, epsilon) - 1e-6, 1.0, 10.0, xtol=1e-12)
    assert one.renewed(12).epsilon == pytest.approx(
        total, rel=1e-6
    )  # theirs and ours cancel differently at 1e-6
    assert 3 < one.renewed(12).epsilon < 5


def test_three_rounds_in_each_of_twelve_periods_are_attained() -> None:
    """One release a period, of deviation 1; each of her rounds moves it by all that one round may.

    The shift of a period is three times that, and shifts of periods are at right angles: exactly what is said. Were her
    answers asked again in later periods, which the theorem excludes, it would be more.
    """
    budget = Budget(1.0, 1e-6, Unit(3), "continuous-gaussian")
    one_round = math.sqrt(budget.limit)
    shifts = np.full(12, 3 * one_round)
    assert budget.renewed(12).epsilon == pytest.approx(exact_epsilon(float(np.linalg.norm(shifts))), rel=1e-6)
    carried_over = 3 * one_round * np.arange(1, 13)
    assert exact_epsilon(float(np.linalg.norm(carried_over))) > 3 * budget.renewed(12).epsilon


def test_her_rounds_in_one_period_multiply_and_periods_add() -> None:
    """Twice as many visits in one period cost more than as many in two: m^2 rho against 2 rho."""
    one = Budget(1.0, 1e-6, Unit(1))
    noise = one.share()
    twice_in_one = one.counting.epsilon(noise, one.delta, rounds=2)
    once_in_two = one.renewed(2).epsilon
    assert once_in_two < twice_in_one
    assert twice_in_one == pytest.approx(one.renewed(4).epsilon, rel=1e-6)  # 2^2 times the cost


def test_costs_of_two_runs_add_only_if_their_randomness_is_independent() -> None:
    """Theorem A10: each run flips her answer by a coin that is (1, 0)-private. Over all answers, and all coins."""
    flips = 1 / (1 + math.e)

    def cost(shared: bool) -> float:
        laws = {}
        for said in itertools.product((0, 1), repeat=2):
            law = dict.fromkeys(itertools.product((0, 1), repeat=2), 0.0)
            for one, other in itertools.product((0, 1), repeat=2):
                chance = flips if one else 1 - flips
                if shared:
                    chance *= one == other
                else:
                    chance *= flips if other else 1 - flips
                law[said[0] ^ one, said[1] ^ other] += chance
            laws[said] = law
        ratios = [
            math.log(p[view] / q[view]) if q[view] else math.inf
            for p, q in itertools.permutations(laws.values(), 2)
            for view in p
            if p[view]
        ]
        return max(ratios)

    both = Budget(1.0, 0.0, accountant="pure").renewed(2)
    assert cost(shared=False) == pytest.approx(both.epsilon) == pytest.approx(2.0)
    assert cost(shared=True) == math.inf
    theorem = (
        (Path(__file__).parents[2] / "docs" / "maths" / "accounting.md")
        .read_text()
        .split("## Theorem A10")[1]
    )
    assert "randomness of each run is independent" in theorem
    assert "Not covered: P2(c)" in theorem


def test_other_spec_stay() -> None:
    unit = Unit(2, REPLACE_WITH_CONTEXT)
    assert Budget(1.0, 1e-6, unit).renewed(3).unit == unit
    assert Budget(1.0, 1e-6, unit).split(3).unit == unit
    for wrong in (0, -1, 1.5, "2", True):
        for ask in (Budget(1.0, 1e-6).renewed, Budget(1.0, 1e-6).split):
            with pytest.raises(InvalidInput, match="periods"):
                ask(wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_two_learners_of_one_ledger_are_as_two_periods() -> None:
    """What is charged to one ledger adds up over whoever charges, so a round of hers with each is paid for."""
    budget = Budget(1.0, 1e-6, Unit(2), "continuous-gaussian")
    part = budget.split(2).share()
    ledger = Ledger(budget)
    ledger.named("front-page").charge(part, "a")
    ledger.named("basket").charge(part, "b")
    both = budget.counting.epsilon(Composed((part, part)), budget.delta, 2)
    assert ledger.spent() == pytest.approx(both)
    assert not ledger.affords(part)
