"""Forecasts: their model is what it says, and how far off they are on streams, made up and real, is what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from diminuendo import SeededSource, Setting, Users, greedy, make, msweb
from diminuendo.errors import InvalidInput
from diminuendo.learners.overlap.policy import OverlapPolicy
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.plan import plan
from diminuendo.plan.model import PublicModel, assumed, half_way, reward
from diminuendo.plan.price import MOST_ITEMS, MOST_USERS, prices, short_run
from diminuendo.privacy import curves
from diminuendo.types import Floats
from tests.kit import real_data
from tests.kit.statistics import ALPHA
from tests.learners.test_overlap_greedy import policy_of

MADE_UP, REAL, LOSSES = 1.6, 2.0, 3.0
"""Factors within which forecasts were right: half way on the model's own users (a release is 1.5 times as late as the
one before), half way on real ones, and losses on real ones. The last two are what plans print."""


@pytest.mark.parametrize(
    ("n", "cares"), [(1, 1.0), (10, 10.0), (30, 0.3), (294, 3.02), (150, 15.4), (100, 38.0)]
)
def test_the_model_is_what_it_says(n: int, cares: float) -> None:
    model = PublicModel(n, cares)
    appeal, top = model.appeal, 1 / 3 + 2 / 3 * cares / n
    assert appeal.sum() == pytest.approx(cares, rel=1e-9)
    assert appeal.max() <= top + 1e-12
    tail = appeal[appeal < top - 1e-12]
    ranks = np.arange(n - len(tail) + 1, n + 1)
    np.testing.assert_allclose(tail * ranks, (tail * ranks)[:1].repeat(len(tail)), rtol=1e-9)  # like 1/rank
    assert model.random(1) == pytest.approx(cares / n)
    assert model.greedy(n) >= model.random(n) - 1e-12


def test_made_up_users_follow_the_model() -> None:
    model = PublicModel(60, 5.0)
    users = model.users(4_000, seed=3)
    wants = np.sort(np.asarray(users.matrices[0].sum(axis=0)).ravel())[::-1]
    assert set(users.matrices[0].data) == {1.0}
    spread = np.sqrt(4_000 * (model.appeal * (1 - model.appeal)).sum())
    z = float(stats.norm.isf(ALPHA / 2))
    assert abs(wants.sum() - 4_000 * 5.0) < z * spread
    assert abs(wants.sum() - 4_000 * 5.3) > z * spread, "5.3 things instead of 5 would be noticed"
    best = greedy(users, 5).value
    assert best == pytest.approx(model.greedy(5), abs=z * math.sqrt(0.25 / 4_000))
    assert model.users(10, 0).matrices[0].shape == (10, 60)
    assert model.users(10, 0, items=7).n_items == 7
    np.testing.assert_array_equal(
        model.users(50, 4).matrices[0].toarray(), model.users(50, 4).matrices[0].toarray()
    )


def test_rewards_go_from_chance_to_greedy() -> None:
    model = PublicModel(100, 4.0)
    assert reward(model, 5, 10**9, 0.0) == pytest.approx(model.greedy(5), abs=1e-3)
    # 200 drawn slates, each worth at most 1 and mostly near random's .18
    assert reward(model, 5, 10, 1e9) == pytest.approx(model.random(5), abs=0.05)
    by_noise = [reward(model, 5, 1_000, deviation) for deviation in (1.0, 30.0, 100.0, 300.0)]
    assert by_noise == sorted(by_noise, reverse=True)


def shown(users: Users, slots: int, epsilon: float) -> tuple[OverlapPolicy, int | None, float]:
    """The policy; after how many users its slates earn half way to hindsight, over seeds; and its mean loss."""
    setting = Setting(users.n_items, slots, len(users), "full", epsilon, 1e-6)
    best = greedy(users, slots).value
    chance = float(np.mean([users.values(make("random", setting, rng=SeededSource(7)).replay(users)).mean()]))
    rows, losses, policies = [], [], []
    for seed in range(5):
        learner = OverlapGreedy.for_setting(setting, rng=SeededSource(seed))
        policy = policy_of(learner)
        policies.append(policy)
        slates, begins = learner.replay(users), policy.plan.schedule.ends[:-1]
        losses.append(1 - users.values(slates).mean() / best)
        rows.append([users.values(slates[begin]).mean() for begin in begins])
    earned: Floats = np.mean(rows, axis=0)
    reached = np.flatnonzero(earned >= (chance + best) / 2)
    return policies[-1], int(begins[reached[0]]) if len(reached) else None, float(np.mean(losses))


def within(one: int | None, other: int | None, factor: float) -> bool:
    return one is not None and other is not None and one / factor <= other <= factor * one


@pytest.mark.parametrize(("n", "cares", "epsilon"), [(200, 3.0, 0.05), (200, 3.0, 1.0), (500, 8.0, 0.1)])
def test_half_way_on_made_up_users(n: int, cares: float, epsilon: float) -> None:
    model = PublicModel(n, cares)
    policy, actual, _ = shown(model.users(6_000, seed=11), 5, epsilon)
    assert within(half_way(policy.plan, model, 5), actual, MADE_UP)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=real_data.needs(name)) for name in ("msweb", "groceries", "uber")]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_half_way_and_loss_on_real_users(name: str, epsilon: float) -> None:
    users, cares = {
        "msweb": lambda: (msweb(), 3.0),
        "groceries": lambda: (real_data.groceries(), 4.4),
        "uber": lambda: (real_data.uber(20_000), 15.4),
    }[name]()
    _, actual, loss = shown(users, 5, epsilon)
    result = plan(users.n_items, 5, len(users), epsilon=epsilon, cares_about=cares)
    assert within(result.half_way, actual, REAL)
    (foretold,) = prices("overlap-greedy", result.setting, cares, epsilons=())
    assert foretold.loss / LOSSES < loss < LOSSES * foretold.loss
    assert f"factor of {REAL:g}" in result.model
    assert f"factor of {LOSSES:g}" in result.model


def test_prices_fall_with_epsilon_and_lie_below_chance() -> None:
    setting = Setting(40, 3, 3_000, "full", 0.7, 1e-6)
    result = prices("overlap-greedy", setting, 3.0, epsilons=(0.02, 10.0))
    assert [price.epsilon for price in result] == [0.02, 0.7, 10.0]
    assert result[0].loss > result[1].loss > result[2].loss
    told = plan(40, 3, 3_000, epsilon=0.7, cares_about=3.0).with_prices((0.02, 10.0))
    assert told.prices == result, "the same facts give the same forecast"
    assert result[0].loss < told.random_loss + 0.1
    assert result[0].apart is not None
    assert result[0].apart > 10 * (result[2].apart or 0)
    assert plan(5, 5, 60).with_prices().prices == (), "random slates have no price"


def test_long_runs_are_scaled_with_noise_in_proportion() -> None:
    long = Setting(MOST_ITEMS, 5, 100 * MOST_USERS, "full", 0.1, 1e-6)
    short, later, each = short_run("overlap-greedy", long)
    assert (later, each) == (0, None)
    assert (short.n_items, short.rounds, short.delta) == (MOST_ITEMS, MOST_USERS, 1e-6)
    ratio = curves.gaussian_mu(short.epsilon, 1e-6) / curves.gaussian_mu(0.1, 1e-6)
    assert ratio == pytest.approx(100, rel=1e-6)
    draws = short_run("fi-dp", long).setting
    ratio = curves.gaussian_mu(draws.epsilon, 1e-6) / curves.gaussian_mu(0.1, 1e-6)
    assert ratio == pytest.approx(10, rel=1e-6)
    wide = short_run("overlap-greedy", Setting(MOST_ITEMS**2, 5, MOST_USERS, "full", 0.1, 1e-6)).setting
    ratio = curves.gaussian_mu(wide.epsilon, 1e-6) / curves.gaussian_mu(0.1, 1e-6)
    assert ratio == pytest.approx(math.sqrt(0.5), rel=1e-6)
    same = Setting(10, 2, 500, "full", 0.1, 1e-6)
    assert short_run("overlap-greedy", same).setting is same
    pure = short_run("random", Setting(10, 2, 2 * MOST_USERS, "full", 0.1, 0.0)).setting
    assert pure.epsilon == pytest.approx(0.2)


@pytest.mark.slow
def test_a_scaled_run_loses_what_the_long_one_loses() -> None:
    """Four times as many users as are simulated; the losses of both are means over a few runs."""
    setting = Setting(100, 4, 4 * MOST_USERS, "full", 0.05, 1e-6)
    (short,) = prices("overlap-greedy", setting, 3.0, epsilons=())
    losses = []
    for seed in range(4):
        users = PublicModel(100, 3.0).users(setting.rounds, seed=20 + seed)
        learner = OverlapGreedy.for_setting(setting, rng=SeededSource(seed))
        losses.append(1 - users.values(learner.replay(users)).mean() / greedy(users, 4).value)
    # With noise left as it was, four times more users would be lost on learning.
    assert short.loss / 2 < float(np.mean(losses)) < 2 * short.loss


def test_what_users_care_about_is_checked() -> None:
    assert assumed(None, 1_000) == 4.0
    assert assumed(None, 2) == 1.0
    for wrong in (0, -1.0, 51, math.nan, "many"):
        with pytest.raises(InvalidInput, match="cares_about"):
            plan(50, 5, 100, cares_about=wrong)  # type: ignore[arg-type]
