"""What reward and click learners are told beforehand: a public prior, and how many users come, if anybody knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diminuendo import Contexts, Learner, NoisyOr, SeededSource, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.frame import LONGEST
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.planner import FIRST_SHARE, USERS_PER_SLATE
from diminuendo.learners.slates.totals import SlateTotals

LEARNING: dict[str, Entry[Any]] = {entry.name: entry for entry in (SlateTotals, SlateClicks)}
N_ITEMS, SLOTS, ROUNDS = 20, 3, 2_000
SHARES = np.linspace(0.02, 0.3, N_ITEMS)[::-1]
USERS = Users(NoisyOr(), ((np.random.default_rng(3).random((ROUNDS, N_ITEMS)) < SHARES).astype(float),))


def made(name: str, **more: Any) -> Learner:
    options: dict[str, Any] = {"horizon": ROUNDS, "epsilon": 1.0, "rng": SeededSource(4)}
    return LEARNING[name](N_ITEMS, SLOTS, **options | more)


@pytest.mark.parametrize("name", LEARNING)
def test_a_prior_is_followed_from_the_first_slate_on(name: str) -> None:
    """Without one every item is shown at first; with it, what it calls best; with a wrong one, users are followed."""
    plain, told = made(name).replay(USERS), made(name, prior=SHARES, prior_users=500).replay(USERS)
    assert (np.bincount(plain[:150].ravel(), minlength=N_ITEMS) > 0).sum() > 15
    assert np.isin(told[:150], np.arange(8)).mean() > 0.9
    assert USERS.values(told)[:500].mean() > USERS.values(plain)[:500].mean() + 0.05
    wrong = made(name, prior=SHARES[::-1]).replay(USERS)
    assert USERS.values(wrong)[-500:].mean() > 1.3 * USERS.values(wrong)[:200].mean()


@pytest.mark.parametrize("name", LEARNING)
@pytest.mark.parametrize("contexts", [None, Contexts(kind=2)])
def test_snapshots_hold_what_was_known(name: str, contexts: Contexts | None) -> None:
    told: dict[str, Any] = {} if contexts is None else {"contexts": np.arange(100) % 2}
    learner = made(name, prior=SHARES, horizon=None, contexts=contexts)
    learner.replay(USERS[:100], **told)
    again, twice = (LEARNING[name].restore(learner.snapshot(), rng=SeededSource(seed)) for seed in (1, 1))
    assert again.parameters == learner.parameters
    assert again.parameters["horizon"] is None
    np.testing.assert_array_equal(again.replay(USERS[:100], **told), twice.replay(USERS[:100], **told))
    before = made(name, prior=SHARES)  # not a round was chosen
    same = LEARNING[name].restore(before.snapshot(), rng=SeededSource(4))
    np.testing.assert_array_equal(same.replay(USERS[:100]), before.replay(USERS[:100]))


@pytest.mark.parametrize("name", LEARNING)
def test_nobody_needs_to_know_how_many_come(name: str) -> None:
    learner = made(name, horizon=None)
    assert learner.horizon == LONGEST
    assert learner.guarantee == made(name).guarantee, "neither promise nor price depends on it"
    slates = learner.replay(USERS)
    assert USERS.values(slates)[-500:].mean() > 1.2 * USERS.values(slates)[:200].mean()
    planner: Any = learner.policy.planner  # type: ignore[attr-defined]
    least = 7 * USERS_PER_SLATE * 2 / FIRST_SHARE
    assert planner.expected(0) == pytest.approx(least, abs=1)
    assert planner.expected(5_000) == 10_000
    assert planner.expected(0) <= planner.horizon <= 2 * ROUNDS


def test_doors() -> None:
    for prior in (SHARES[1:], SHARES * 10, -SHARES, "best"):
        with pytest.raises((InvalidInput, ValueError)):
            made("slate-totals", prior=prior)
    with pytest.raises(InvalidInput, match="prior_users"):
        made("slate-clicks", prior=SHARES, prior_users=0)
    extreme = np.array([0.0, 1.0] * 10)
    assert len(made("slate-clicks", prior=extreme).choose().slate) == SLOTS
