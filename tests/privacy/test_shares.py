"""Shares of a budget: all of them can be spent on one ledger, in any order, and never more than the whole."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.learners import LEARNERS, Setting, budget_for, with_variants
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SeededSource
from diminuendo.streams import taste_groups
from tests.kit.slow import is_variant

USERS = taste_groups(300, 6, groups=2, items_per_group=2, seed=1)

budgets = st.builds(
    lambda epsilon, delta, accountant, rounds: Budget(
        epsilon, 0.0 if accountant == "pure" else delta, Unit(rounds), accountant
    ),
    st.floats(0.01, 20.0) | st.sampled_from([0.1, 0.3, 0.7, 1.0, 3.0]),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.sampled_from(["zcdp", "pure", "continuous-gaussian"]),
    st.integers(1, 4),
)


def spent(whole: Budget, shares: list[Budget]) -> None:
    ledger = Ledger(whole)
    for number, share in enumerate(shares):
        ledger.charge(share.share(), f"part {number}")
    costs = sum((whole.counting.tally(charge.event).total for charge in ledger.charges), Fraction(0))
    assert costs <= whole.limit
    assert ledger.guarantee().epsilon <= whole.epsilon
    with pytest.raises(OverBudget):
        ledger.charge(whole.share(0.01))


@settings(deadline=None, max_examples=40)
@given(budgets, st.integers(2, 60))
def test_all_periods_of_a_split_fit_and_no_more(whole: Budget, periods: int) -> None:
    try:
        part = whole.split(periods)
    except InvalidInput:  # what each would have is hidden by delta alone
        return
    assert periods * part.limit <= whole.limit
    assert part.renewed(periods).epsilon <= whole.epsilon
    spent(whole, [part] * periods)


@settings(deadline=None, max_examples=40)
@given(budgets, st.integers(2, 60))
def test_a_renewed_budget_pays_for_each_period(part: Budget, periods: int) -> None:
    whole = part.renewed(periods)
    assert whole.limit >= periods * part.limit
    assert whole.limit <= periods * part.limit * (1 + Fraction(1, 10**9))
    spent(whole, [part] * periods)


@settings(deadline=None, max_examples=60)
@given(budgets, st.lists(st.integers(1, 1000), min_size=1, max_size=50), st.randoms())
def test_parts_of_one_are_paid_for_in_any_order(whole: Budget, weights: list[int], order: object) -> None:
    parts = [weight / sum(weights) for weight in weights]
    order.shuffle(parts)  # type: ignore[attr-defined]
    ledger = Ledger(whole)
    for number, part in enumerate(parts):
        ledger.charge(whole.share(part), f"part {number}")
    assert ledger.guarantee().epsilon <= whole.epsilon
    with pytest.raises(OverBudget):
        ledger.charge(whole.share(0.01))


NAMES = [
    pytest.param(name, marks=pytest.mark.slow if is_variant(name) else [])
    for name, entry in ((name, LEARNERS[name]) for name in with_variants())
    if entry.private and "ledger" in entry.options
]


@pytest.mark.filterwarnings("ignore::diminuendo.errors.OutOfRange")  # the paper's rates, at so few rounds
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_as_many_learners_as_a_budget_was_renewed_for_share_a_ledger(name: str, epsilon: float) -> None:
    setting = Setting(6, 2, 300, next(iter(sorted(LEARNERS[name].reads))), epsilon)
    try:
        own = budget_for(name, setting)
    except InvalidInput:  # it promises perfect privacy: nothing is paid
        return
    ledger = Ledger(own.renewed(3))
    for number in range(3):
        LEARNERS[name].for_setting(
            setting, rng=SeededSource(number), ledger=ledger.named(f"n{number}")
        ).replay(USERS)
    assert ledger.guarantee().epsilon <= ledger.budget.epsilon
