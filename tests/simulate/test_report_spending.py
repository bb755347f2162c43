"""Where the budget went: what is said to be charged is what the accountant charges."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

from diminuendo.errors import OutOfRange
from diminuendo.learners import LEARNERS, Learner, Setting, make, with_variants
from diminuendo.learners.base.policy import Policy
from diminuendo.learners.overlap.policy import REWARDS, WISHES, OverlapPolicy
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS, Additive
from diminuendo.randomness import SeededSource
from diminuendo.simulate.spending import UNITS, spending
from diminuendo.streams import taste_groups
from diminuendo.types import Floats

PRIVATE = [name for name in with_variants() if LEARNERS[name].private]
ROUNDS = 2_000


def made(name: str, max_rounds_per_user: int = 1, seed: int = 1) -> Learner:
    (feedback, *_) = sorted(LEARNERS[name].reads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # some of the paper's constants are not probabilities
        return make(
            name, Setting(12, 3, ROUNDS, feedback, 1.0, 1e-6, max_rounds_per_user), rng=SeededSource(seed)
        )


def totals(records: list[dict[str, Any]]) -> Floats:
    result: Floats = np.array([record["shares"] for record in records]).sum(axis=0)
    return result


def whole(unit: str, delta: float) -> float:
    """What epsilon 1 is worth in the unit that is added up."""
    if unit == "epsilon":
        return 1.0
    return curves.zcdp_rho(1.0, delta) if unit == "rho" else curves.gaussian_mu(1.0, delta) ** 2


@pytest.mark.parametrize("max_rounds_per_user", [1, 3])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_most_that_anybody_is_charged_is_what_is_proved(name: str, max_rounds_per_user: int) -> None:
    learner = made(name, max_rounds_per_user)
    records, proved = spending(learner), learner.guarantee
    (unit,) = {record["unit"] for record in records}
    (accountant,) = (ACCOUNTANTS[counted] for counted, adds_up in UNITS.items() if adds_up == unit)
    assert isinstance(accountant, Additive)
    cost = float(totals(records).max()) * whole(unit, proved.delta)
    # Floats lose their last digits on the way, and conversions are not worse than linear in what is lost.
    assert accountant.convert(cost, proved.delta) == pytest.approx(proved.epsilon, rel=1e-9)


@pytest.mark.parametrize("name", PRIVATE)
def test_records_are_plain_and_say_who_pays_for_what(name: str) -> None:
    records = json.loads(json.dumps(spending(made(name)), allow_nan=False))
    for record in records:
        assert set(record) == {"what", "unit", "until", "shares"}
        assert len(record["until"]) == len(record["shares"])
        assert record["until"][-1] == ROUNDS
        assert record["until"] == sorted(set(record["until"]))
        assert min(record["shares"]) >= 0
        assert record["what"] != Policy.purpose


def test_every_batch_is_charged_what_the_events_say() -> None:
    learner = made("overlap-greedy")
    policy = learner.policy
    assert isinstance(policy, OverlapPolicy)
    tally, limit = policy.budget.counting.tally(policy.events), policy.budget.limit
    batches = len(policy.plan.schedule)
    columns = {
        batch: cost for (_, batch), cost in tally.columns.items()
    }  # of one partition, tied to the schedule
    assert len(columns) == len(tally.columns)
    expected = [float((tally.common + columns.get(batch, 0)) / limit) for batch in range(batches)]
    # Events are rounded up by 2^-48.
    np.testing.assert_allclose(totals(spending(learner)), expected, rtol=1e-12)
    assert expected[-1] < 0.1, "users without a query are charged for the drift test alone"
    by_purpose = {record["what"]: record["shares"] for record in spending(learner)}
    assert by_purpose[WISHES][0] > 5 * by_purpose[REWARDS][0], "nearly all of it is for what items are worth"


def test_what_users_say_changes_nothing() -> None:
    before = spending(made("overlap-greedy"))
    for seed in (1, 2):
        learner = made("overlap-greedy", seed=seed)
        learner.replay(taste_groups(ROUNDS, 12, groups=3, items_per_group=4, seed=seed))
        assert spending(learner) == before


def test_who_promises_nothing_spends_nothing() -> None:
    free = [name for name in with_variants() if name not in PRIVATE]
    assert {"random", "hedge", "slate-totals:private=false"} <= set(free)
    for name in free:
        assert spending(made(name)) == []
