"""The ledger adds up exactly, refuses before anything is drawn, and knows whom it protects."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest

from diminuendo.errors import (
    InvalidInput,
    OverBudget,
    UnknownEvent,
)
from diminuendo.privacy import calibrate, curves
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.events import Columns, Gaussian, Laplace, Repeated, Selections
from diminuendo.privacy.ledger import Ledger

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


def test_a_charge_takes_no_longer_as_the_ledger_grows() -> None:
    def seconds(held: Ledger) -> float:
        begun = time.perf_counter()
        for index in range(300):
            held.charge(Columns(index % 40, (1e-12, 3e-13, 1e-13)))
        return time.perf_counter() - begun

    held = Ledger(BUDGET)
    early = min(seconds(held) for _ in range(5))
    for _ in range(30):
        seconds(held)
    late = min(seconds(held) for _ in range(5))
    assert late < 4 * early  # a quadratic ledger would be 8 times slower by now, and slower yet


def test_columns_pay_for_themselves_only() -> None:
    held = Ledger(BUDGET)
    for column in range(50):  # each batch of people pays its own way
        held.charge(Columns(column, (RHO / 2, RHO / 2)))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(Columns(3, (1e-6,)))
    held.charge(Columns(50, (RHO / 4,)))
    with pytest.raises(OverBudget):  # what everybody pays falls on the worst batch
        held.charge(Gaussian(1e-6))


def test_batches_of_two_partitions_have_nothing_to_do_with_each_other() -> None:
    """A round may be in batch 0 of one and in batch 1 of the other, and then pays twice."""
    held = Ledger(BUDGET)
    held.charge(Columns(0, (RHO / 2, 0.0), partition="clicks"))
    held.charge(Columns(0, (0.0, RHO / 2), partition="clicks"))
    held.charge(Columns(0, (0.0, RHO / 2), partition="wishes"))
    assert held.spent() == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(OverBudget):
        held.charge(Columns(0, (0.0, 1e-6), partition="clicks"))
    held.charge(Columns(7, (RHO / 2,), partition="clicks"))
    with pytest.raises(OverBudget):
        held.charge(Columns(0, (1e-6,), partition="third"))


def test_a_cost_beyond_all_bounds_is_refused_like_any_other() -> None:
    with pytest.raises(OverBudget):
        Ledger(BUDGET).charge(Repeated(Gaussian(1e308), 10))


@pytest.mark.parametrize(("rounds", "factor"), [(1, 1), (2, 4), (5, 25)])
def test_people_with_several_rounds_cost_the_square(rounds: int, factor: int) -> None:
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
