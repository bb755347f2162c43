"""The draw_budget: draws are paid for before they are made, and never more than there may be."""

from __future__ import annotations

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.draw_budget import INSTALMENTS, DrawBudget
from diminuendo.privacy.ledger import Ledger

TOTAL = 2 * INSTALMENTS


def ledger() -> Ledger:
    return Ledger(Budget(epsilon=9.0, delta=1e-6))


def test_stretches_are_charged_one_by_one_and_without_a_ledger_there_is_one() -> None:
    charged, free = DrawBudget(TOTAL, 3, 0.01, ledger()), DrawBudget(TOTAL, 3, 0.01, None)
    for use in range(TOTAL):
        charged.pay(use)
        free.pay(use)
        assert charged.paid.tolist() == [2 * (use // 2 + 1)]
        assert free.paid.tolist() == [TOTAL]
    assert charged.ledger is not None
    assert len(charged.ledger.charges) == INSTALMENTS
    for draw_budget in (charged, free):
        with pytest.raises(InvalidInput, match=f"All {TOTAL} private draws"):
            draw_budget.pay(TOTAL)


@pytest.mark.parametrize("paid_on", [None, ledger()], ids=["free", "charged"])
def test_after_a_restart_nobody_has_more_draws_than_there_may_be(paid_on: Ledger | None) -> None:
    """Experts that were drawn from differently often before it."""
    draw_budget = DrawBudget(TOTAL, 3, 0.01, paid_on, experts=2)
    draw_budget.restored([TOTAL - 1, 0])  # type: ignore[arg-type]  # any row of numbers will do
    for use in range(TOTAL):
        draw_budget.pay(use, expert=1)
    assert draw_budget.paid.tolist() == [TOTAL, TOTAL]
    with pytest.raises(InvalidInput, match="private draws"):
        draw_budget.pay(TOTAL, expert=0)
