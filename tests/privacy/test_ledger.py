"""The ledger adds up exactly, refuses before anything is drawn, and knows whom it protects."""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, SeededSource
from diminuendo.errors import (
    InvalidInput,
    OverBudget,
    UnknownEvent,
)
from diminuendo.privacy import calibrate, curves
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.events import Gaussian, Laplace, NormalColumns, Repeated, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups

BUDGET = Budget(1.0, 1e-6)
RHO = curves.zcdp_rho(1.0, 1e-6)


def test_charges_add_up_and_the_last_tick_is_refused() -> None:
    held = Ledger(BUDGET)
    for _ in range(3):
        held.charge(Gaussian(RHO / 4), "a quarter")
    assert held.spent() == pytest.approx(curves.zcdp_epsilon(0.75 * RHO, 1e-6), rel=1e-9)
    assert not held.affords(Gaussian(RHO / 4 * (1 + 1e-9)))
    before = held.spent(), held.head, len(held.charges)
    with pytest.raises(OverBudget, match=r"0\.8.* is\s+spent"):
        held.charge(Gaussian(RHO / 2))
    assert (held.spent(), held.head, len(held.charges)) == before
    held.charge(Gaussian(RHO / 4))
    assert held.spent() <= 1.0
    with pytest.raises(OverBudget):
        held.charge(Gaussian(5e-324))
    held.charge(Gaussian(0.0))


def test_nothing_drifts_over_many_charges() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    step = 2.0**-12
    for _ in range(1 << 12):
        held.charge(Laplace(step))
    assert held.spent() == 1.0
    with pytest.raises(OverBudget):
        held.charge(Laplace(5e-324))


@pytest.mark.slow
def test_a_charge_takes_no_longer_as_the_ledger_grows() -> None:
    def seconds(held: Ledger) -> float:
        begun = time.perf_counter()
        for index in range(300):
            held.charge(NormalColumns(index % 40, (1e-12, 3e-13, 1e-13)))
        return time.perf_counter() - begun

    held = Ledger(BUDGET)
    early = min(seconds(held) for _ in range(5))
    for _ in range(30):
        seconds(held)
    delay = min(seconds(held) for _ in range(5))
    assert delay < 4 * early  # a quadratic ledger would be 8 times slower by now, and slower yet


def test_columns_pay_for_themselves_only() -> None:
    held = Ledger(BUDGET)
    for column in range(50):  # each batch of users pays its own way
        held.charge(NormalColumns(column, (RHO, RHO)))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(NormalColumns(3, (1e-6,)))
    held.charge(NormalColumns(50, (RHO / 2,)))
    with pytest.raises(OverBudget):  # what everybody pays falls on the worst batch
        held.charge(Gaussian(1e-6))


def test_batches_of_two_partitions_have_nothing_to_do_with_each_other() -> None:
    """A round may be in batch 0 of one and in batch 1 of the other, and then pays twice."""
    held = Ledger(BUDGET)
    held.charge(NormalColumns(0, (RHO, 0.0), partition="clicks"))
    held.charge(NormalColumns(0, (0.0, RHO), partition="clicks"))
    held.charge(NormalColumns(0, (0.0, RHO), partition="wishes"))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(NormalColumns(0, (0.0, 1e-6), partition="clicks"))
    held.charge(NormalColumns(7, (RHO,), partition="clicks"))
    with pytest.raises(OverBudget):
        held.charge(NormalColumns(0, (1e-6,), partition="third"))


def test_a_cost_beyond_all_bounds_is_refused_like_any_other() -> None:
    with pytest.raises(OverBudget):
        Ledger(BUDGET).charge(Repeated(Gaussian(1e308), 10))


@pytest.mark.parametrize(("rounds", "factor"), [(1, 1), (2, 4), (5, 25)])
def test_users_with_several_rounds_cost_the_square(rounds: int, factor: int) -> None:
    held = Ledger(Budget(1.0, 1e-6, Unit(rounds)))
    assert held.budget.limit * factor == Fraction(RHO)
    held.charge(Gaussian(0.999 * RHO / factor))
    assert 0.99 < held.spent() <= 1.0
    pure = Ledger(Budget(1.0, 0.0, Unit(rounds), "pure"))
    pure.charge(Selections(2, 0.499 / rounds))
    assert pure.spent() == pytest.approx(0.998)
    assert str(rounds) in pure.guarantee().neighbours or rounds == 1


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 1e-9, Unit(3)), Budget(0.7, 0.0, Unit(7), "pure")])
def test_shares_of_a_budget_fit_into_it(budget: Budget) -> None:
    held = Ledger(budget)
    for part in (0.25, 0.5, 0.25):
        held.charge(budget.share(part))
    assert budget.epsilon * (1 - 1e-9) < held.spent() <= budget.epsilon
    assert not held.affords(budget.share(1e-6))
    tenths = Ledger(budget)
    for _ in range(10):
        tenths.charge(budget.share(0.1))
    for wrong in (0.0, 1.1, -1.0):
        with pytest.raises(InvalidInput, match="part"):
            budget.share(wrong)


def test_ten_tenths_in_floats_are_too_much_and_it_is_said_why() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    for _ in range(9):
        held.charge(Laplace(0.1))
    with pytest.raises(OverBudget, match="rounding error only"):
        held.charge(Laplace(0.1))
    with pytest.raises(OverBudget, match="Ask for less"):
        held.charge(Laplace(0.2))


@pytest.mark.parametrize("budget", [BUDGET, Budget(0.3, 1e-9, Unit(3)), Budget(0.7, 0.0, Unit(7), "pure")])
@pytest.mark.parametrize("count", [1, 7, 499_995])
@pytest.mark.parametrize("span", [1.0, 2.0, 0.3, 2 << 20])
def test_calibrated_draws_fit_and_no_more_would(budget: Budget, count: int, span: float) -> None:
    rate, event = calibrate.selections(budget, count, span)
    assert Fraction(event.span) >= Fraction(rate) * Fraction(span)
    held = Ledger(budget)
    held.charge(event)
    assert not held.affords(Selections(1 + count // 10**6, rate * span * 1e-3))
    assert budget.epsilon * (1 - 1e-6) < held.spent()


def test_events_without_a_price_are_refused_by_name() -> None:
    held = Ledger(Budget(1.0, 0.0, accountant="pure"))
    with pytest.raises(UnknownEvent, match=r"'pure'.*Gaussian"):
        held.charge(Gaussian(0.1))
    assert held.charges == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Budget(0.0, 1e-6),
        lambda: Budget(1.0, 0.0),
        lambda: Budget(1.0, 1.0),
        lambda: Budget(1.0, 1e-6, accountant="pure"),
        lambda: Budget(1.0, 1e-6, accountant="advanced"),  # type: ignore[arg-type]
        lambda: Budget(1.0, 1e-6, Unit(0)),
        lambda: Unit(1, "add/remove"),  # type: ignore[arg-type]
        lambda: Ledger(BUDGET).charge(Gaussian(0.0), "two\nlines"),
    ],
)
def test_bad_budgets_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        wrong()  # type: ignore[operator]


# Several learners on one ledger.


def greedy(ledger: Ledger, seed: int = 1) -> Learner:
    return LEARNERS["overlap-greedy"](
        8, 2, horizon=120, epsilon=1.0, delta=1e-6, rng=SeededSource(seed), ledger=ledger
    )


def test_learners_with_names_of_their_own_share_a_budget() -> None:
    users = taste_groups(120, 8, groups=2, items_per_group=3, seed=1)
    ledger = Ledger(Budget(1.5, 1e-6, accountant="continuous-gaussian"))
    alone = [greedy(Ledger(ledger.budget), seed).replay(users) for seed in (1, 2)]
    both = [greedy(ledger.named(name), seed) for name, seed in (("front-page", 1), ("basket", 2))]
    for learner, expected in zip(both, alone, strict=True):
        np.testing.assert_array_equal(learner.replay(users), expected)
    names = {drawn.name for drawn in ledger.drawn}
    assert {"rewards@front-page.000000", "users-000000@basket.singles"} <= names
    one = Ledger(ledger.budget)
    greedy(one).replay(users)
    assert ledger.spent() > 1.3 * one.spent(), "who is in both pays for both"
    with pytest.raises(InvalidInput, match="name of its own"):
        greedy(ledger.named("basket"))
    with pytest.raises(OverBudget, match="whole run"):
        greedy(ledger.named("third"))


def test_a_second_learner_of_no_name_is_refused_and_one_of_a_name_is_found_again(tmp_path: Path) -> None:
    users = taste_groups(120, 8, groups=2, items_per_group=3, seed=1)
    budget, kind = Budget(2.5, 1e-6, accountant="continuous-gaussian"), LEARNERS["overlap-greedy"]
    more: dict[str, Any] = {"horizon": 120, "epsilon": 1.0, "delta": 1e-6}
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        kind(8, 2, ledger=ledger, **more)
        with pytest.raises(InvalidInput, match="named"):
            kind(8, 2, ledger=ledger, **more)
        learner = kind(8, 2, ledger=ledger.named("basket"), **more)
        snapshot = learner.snapshot()
        learner.replay(users)
        drawn, spent = ledger.drawn, ledger.spent()
    with Ledger.open(tmp_path / "ledger") as ledger:
        kind.restore(snapshot, ledger=ledger.named("basket")).replay(users)
        assert ledger.drawn[: len(drawn)] == drawn
        assert ledger.spent() == spent


@pytest.mark.parametrize("name", ["front page", "", "a@b", "../a"])
def test_names_of_learners_are_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="Names"):
        Ledger(Budget(1.0, 1e-6)).named(name)
