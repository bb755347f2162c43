"""Slate totals and slate clicks: they learn, ask what teaches most, notice changes, and cost what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from diminuendo import NoisyOr, Oracle, SeededSource, Setting, Users, make
from diminuendo.errors import WrongFeedback
from diminuendo.learners import LEARNERS, Learner, with_variants
from diminuendo.learners.slates.blocks import WHICH_SLOT
from diminuendo.learners.slates.clicks import SlateClicks, best_question
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.offline.greedy import greedy
from diminuendo.streams import taste_groups
from diminuendo.types import FeedbackKind, Floats, Items
from tests.kit.slow import mostly_slow

N, K, T = 40, 3, 8_000
USERS = taste_groups(T, N, groups=6, items_per_group=5, seed=11)
GREEDY = float(USERS.values(greedy(USERS, K).slate).mean())
KINDS = {name: LEARNERS[name] for name in with_variants() if name.startswith("slate-")}
NOISY = [name for name in KINDS if KINDS[name].private]


def policy_of(learner: Learner) -> SlatePolicy:
    assert isinstance(learner.policy, SlatePolicy)
    return learner.policy


def learner_of(name: str, seed: int, epsilon: float = 1.0) -> Learner:
    (feedback,) = KINDS[name].reads
    made: Learner = KINDS[name].for_setting(Setting(N, K, T, feedback, epsilon), rng=SeededSource(seed))
    return made


def late_rewards(slates: Items) -> Floats:
    """What the last quarter of the users got."""
    return np.asarray(USERS.values(slates)[-T // 4 :])


@pytest.mark.parametrize("name", mostly_slow(KINDS, ["slate-clicks"]))
def test_it_learns(name: str) -> None:
    """In the last quarter every seed has closed more than half of the distance between random choice and greedy."""
    random = float(
        USERS.values(make("random", Setting(N, K, T, "full"), rng=SeededSource(1)).replay(USERS)).mean()
    )
    for seed in range(4):
        slates = learner_of(name, seed).replay(USERS.clicking("cascade", seed))
        assert late_rewards(slates).mean() > (random + GREEDY) / 2, f"seed {seed}"


@pytest.mark.parametrize("name", mostly_slow(KINDS, ["slate-totals"]))
def test_it_learns_nothing_where_nobody_says_anything(name: str) -> None:
    """A planted silence: the check above can fail."""
    learner = learner_of(name, 0)
    slates = np.array([learner.choose().slate for _ in range(T)])
    random = USERS.values(make("random", Setting(N, K, T, "full"), rng=SeededSource(1)).replay(USERS)).mean()
    assert late_rewards(slates.astype(np.int32)).mean() < (random + GREEDY) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISY)
def test_steady_users_are_not_forgotten_and_changed_ones_are(name: str) -> None:
    """From half time on users want the other half of the items, and nothing else."""
    one = sparse.csr_array(taste_groups(T, N // 2, groups=6, items_per_group=5, seed=11).matrices[0])
    other = sparse.csr_array((T // 2, N // 2))
    rows = sparse.vstack([sparse.hstack([one[: T // 2], other]), sparse.hstack([other, one[T // 2 :]])])
    changed = Users(NoisyOr(), rows)
    for seed in range(3):
        steady, moved = learner_of(name, seed), learner_of(name, seed)
        steady.replay(USERS.clicking("cascade", seed))
        assert policy_of(steady).planner.since[0] == 0
        moved.replay(changed.clicking("cascade", seed))
        assert T // 2 < policy_of(moved).planner.since[0] < T, "noticed while it still mattered"


@pytest.mark.parametrize(("n_items", "slots"), [(6, 3), pytest.param(20, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", mostly_slow(NOISY, []))
def test_a_sudden_fall_is_survived(name: str, n_items: int, slots: int) -> None:
    """Nearly everybody wants something, then nearly nobody: learning begins anew a few times, not for ever."""
    rng, rounds = np.random.default_rng(5), 3_000
    rows = np.where(np.arange(rounds)[:, None] < rounds // 2, 0.7, 0.005) * (
        rng.random((rounds, n_items)) < 0.9
    )
    (feedback,) = KINDS[name].reads
    for seed in range(3):
        learner = KINDS[name].for_setting(
            Setting(n_items, slots, rounds, feedback, 4.0), rng=SeededSource(seed)
        )
        users, restarts, before = Users(NoisyOr(), rows).clicking("cascade", seed), 0, 0
        for first in range(0, rounds, 50):
            learner.replay(users[first : first + 50])
            since = int(policy_of(learner).planner.since[0])
            restarts, before = restarts + (since != before), since
            KINDS[name].restore(learner.snapshot())
        assert 1 <= restarts <= 5


def test_what_teaches_most_is_asked() -> None:
    rng = np.random.default_rng(2)
    chances = 1 - np.exp(-np.cumsum(rng.exponential(0.15, (16, 4)), axis=1))
    assert best_question(chances, 10_000, 1.0, 2.0) == WHICH_SLOT, "many users: noise hardly matters"
    assert best_question(chances, 30, 20.0, 40.0) != WHICH_SLOT, "few users, much noise: one pooled number"
    only_first = np.tile(chances[:1], (16, 1))
    only_first += (rng.random((16, 1)) - 0.5) * 0.2  # all that is unsure is the first slot
    assert best_question(only_first, 30, 20.0, 40.0) == 1


def test_who_was_shown_least_comes_first() -> None:
    learner = SlateClicks(9, 3, horizon=900, epsilon=1.0, rng=SeededSource(1))
    planner = policy_of(learner).planner
    planner.posterior.sample(4, np.random.default_rng(0))
    planner.posterior.observations.shown[:] = [5, 1, 9, 0, 2, 2, 2, 2, 2]
    ordered, *_ = planner.with_question(np.array([2, 0, 1], dtype=np.int32), 10)
    np.testing.assert_array_equal(ordered, [1, 0, 2])


@pytest.mark.parametrize("feedback", ["bandit", "click"])
def test_private_is_the_one_for_practice(feedback: FeedbackKind) -> None:
    setting = Setting(20, 3, 1_000, feedback, 0.7)
    learner = make("private", setting, rng=SeededSource(0))
    assert isinstance(learner.policy, SlatePolicy)
    assert learner.guarantee.epsilon == pytest.approx(0.7)
    assert learner.guarantee.delta == 0
    assert make("nonprivate", setting).guarantee.epsilon == np.inf


@pytest.mark.parametrize("wrong", [3, -1, 0.0, True, "1", [0], Oracle(lambda s: 0.0, 9)])
def test_a_click_is_a_position_or_none(wrong: object) -> None:
    learner = SlateClicks(9, 3, horizon=90, epsilon=1.0, rng=SeededSource(1))
    decision = learner.choose()
    with pytest.raises(WrongFeedback, match="from 0 to 2, or None"):
        learner.observe(decision, wrong)
    learner.observe(decision, None)


def test_orders_of_slots_do_not_tell_totals_apart() -> None:
    """Totals are about sets: slates are shown sorted, so that the same set is one number."""
    learner = learner_of("slate-totals", 1)
    learner.replay(USERS[:3000])
    slates = policy_of(learner).planner.posterior.observations.arrays()["slates"]
    assert (np.diff(slates, axis=1) > 0).all()
