"""Hedge: the law of its draws, the rate it finds for itself, and the bound it is sold with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diminuendo import Learner, OrderedExperts, SeededSource
from diminuendo.errors import InvalidInput
from diminuendo.experts import Hedge
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness.ticks import TICKS
from diminuendo.simulate import expert_regrets
from diminuendo.streams import Users, adversary, msweb, taste_groups
from tests.kit.inside import inside
from tests.kit.statistics import assert_follows, assert_rejects


def own_law(gains: np.ndarray, rate: float) -> np.ndarray:
    weights = np.exp(rate * gains.sum(axis=0))
    return np.asarray(weights / weights.sum())


def test_a_fixed_rate_is_the_textbook_algorithm() -> None:
    gains = np.random.default_rng(0).random((40, 5))
    expert = Hedge(5, rate=0.3)
    for row in gains:
        expert.learn(row)
    np.testing.assert_allclose(expert.probabilities(), own_law(gains, 0.3), rtol=40 * 0.3 * 2 / TICKS)
    secret = SecretRandomness(SeededSource(4))
    result = [expert.draw(secret) for _ in range(8_000)]
    assert_follows(result, own_law(gains, 0.3))
    assert_rejects(result, own_law(gains, 0.36))


@pytest.mark.parametrize("hostile", [np.nan, np.inf, -np.inf, 1e300, -1.0, 1.5, 3.0])
def test_one_round_moves_no_total_by_more_than_one(hostile: float) -> None:
    expert = Hedge(4, rate=0.5)
    expert.learn(np.array([0.5, hostile, 1.0, 0.0]))
    totals = expert._state.classes.totals[:, 0]
    assert totals.min() >= 0
    assert totals.max() <= TICKS
    assert totals[2] == TICKS


def test_rates_fall_by_the_rule_and_never_rise() -> None:
    learner = OrderedExperts(294, 5, rng=SeededSource(0))
    users, last = msweb(), np.full(5, np.inf)
    for low in range(0, 6000, 500):
        learner.replay(users[low : low + 500])
        state = inside(learner)._experts
        rate = state.classes.rate * TICKS
        seen = 1 + np.maximum(state.best, state.own) / TICKS
        wanted = np.minimum(1, np.sqrt(math.log(294) / seen))
        assert (rate <= wanted).all()
        assert (rate * math.sqrt(2) > wanted).all()
        assert (rate <= last).all()
        last = rate


def bound(learner: Learner) -> np.ndarray:
    """Theorem 1 of docs/maths/hedge.md, per expert."""
    state = inside(learner)._experts
    seen = np.maximum(state.best, state.own) / TICKS
    log_n = math.log(max(2, learner.n_items))
    return np.asarray(2.86 * np.sqrt(log_n * (1 + seen)) + 1.5 * log_n)


@pytest.mark.parametrize(
    "users",
    [adversary(4_000, 10), taste_groups(4_000, 60, groups=8, items_per_group=6), msweb()[:8_000]],
    ids=lambda users: str(users.name),
)
def test_measured_regret_stays_under_the_bound(users: Users) -> None:
    """The bound is on the mean; the mean of 12 runs may exceed it by its own noise only, which is far smaller."""
    regrets, bounds = [], []
    for seed in range(12):
        learner = OrderedExperts(users.n_items, 3, rng=SeededSource(seed))
        slates = learner.replay(users)
        regrets.append(expert_regrets(users, slates) * len(users))
        bounds.append(bound(learner))
    mean, error = np.mean(regrets, axis=0), np.std(regrets, axis=0, ddof=1) / math.sqrt(12)
    assert (mean + 5 * error < np.mean(bounds, axis=0)).all()


def test_a_follower_would_break_the_bound_on_the_adversary() -> None:
    """The test above can fail: a rate so high that the expert follows the leader loses almost every round."""
    users = adversary(4_000, 10)
    follower = OrderedExperts(10, 1, rate=1000.0, rng=SeededSource(0))
    regret = expert_regrets(users, follower.replay(users))[0] * len(users)
    assert regret > bound(follower)[0]


def test_regret_grows_like_the_square_root_of_time() -> None:
    """On the adversary the leader always changes; the slope of log regret on log T is that of sqrt T."""
    horizons = np.array([1_000, 4_000, 16_000, 64_000])
    regrets = []
    for horizon in horizons:
        users = adversary(int(horizon), 10)
        runs = [
            expert_regrets(users, OrderedExperts(10, 1, rng=SeededSource(seed)).replay(users))[0] * horizon
            for seed in range(10)
        ]
        regrets.append(np.mean(runs))
    slope = np.polyfit(np.log(horizons), np.log(np.maximum(regrets, 1.0)), 1)[0]
    assert slope < 0.6


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, 1e-13, 1e6, "fast"])
def test_senseless_rates_are_refused(rate: object) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        OrderedExperts(10, 2, rate=rate)  # type: ignore[arg-type]
