"""The simulator: its numbers and its file format."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pytest

from diminuendo import Functions, NoisyOr, SeededSource, Users, make, replay
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners import Setting
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.offline.exact import SOLVER_TOLERANCE
from diminuendo.simulate import Shown, expert_regrets, simulate
from diminuendo.simulate.result import (
    CURVE_POINTS,
    SHOWN_ITEMS,
    SHOWN_STRETCHES,
    cumulative,
    curve_rounds,
    most_shown,
)
from diminuendo.simulate.table import as_table, mean_and_band
from diminuendo.streams import taste_groups

USERS = taste_groups(400, 15, groups=4, items_per_group=5, seed=2)


def test_the_numbers_are_what_they_say() -> None:
    found = simulate(USERS, slots=3, seeds=2)
    base = found.benchmarks
    assert base.random < base.greedy.value <= base.optimum.lower + 1e-12 <= base.optimum.upper + 2e-12
    for result in found.results:
        learner = make(result.learner, Setting(15, 3, 400, "full"), rng=SeededSource(result.seed))
        rewards = USERS.values(replay(learner, USERS))
        assert result.mean_reward == pytest.approx(rewards.mean(), abs=1e-15)
        assert result.regret_to_greedy == pytest.approx(base.greedy.value - rewards.mean(), abs=1e-15)
        assert result.alpha_regret == pytest.approx(
            ONE_MINUS_1_OVER_E * base.optimum.upper - rewards.mean(), abs=1e-15
        )
        assert result.curve[-1] == pytest.approx(rewards.sum())


def test_both_regrets_by_brute_force() -> None:
    """Greedy takes item 0 first, and the best two are 1 and 2: the two regrets measure against different slates."""
    wanted = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1]], dtype=float)
    users = Users(NoisyOr(), wanted)
    values = {pair: wanted[:, pair].max(axis=1).mean() for pair in combinations(range(3), 2)}
    first = int(wanted.mean(axis=0).argmax())
    greedy = max(value for pair, value in values.items() if first in pair)
    assert (greedy, max(values.values())) == (5 / 6, 1.0)
    for result in simulate(users, slots=2, learners=["random"], seeds=2).results:
        slates = replay(make("random", Setting(3, 2, 6, "full"), rng=SeededSource(result.seed)), users)
        earned = float(np.mean([row[slate].max() for row, slate in zip(wanted, slates, strict=True)]))
        assert result.regret_to_greedy == pytest.approx(greedy - earned, abs=1e-12)
        # The solver's bound on the optimum has its tolerance added.
        assert result.alpha_regret == pytest.approx(
            (1 - 1 / math.e) * max(values.values()) - earned, abs=2 * SOLVER_TOLERANCE
        )


def test_what_was_shown_when_by_hand() -> None:
    slates = np.array([[0, 1], [0, 2], [-1, -1], [2, 0]], dtype=np.int32)
    assert most_shown(slates, 4) == Shown(
        [0, 2, 1], [1, 2, 3, 4], [[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    )
    long = np.tile(np.arange(40, dtype=np.int32), 30)[:, None]
    long[600:] = 7
    result = most_shown(long, 40)
    assert len(result.items) == SHOWN_ITEMS
    assert len(result.ends) == SHOWN_STRETCHES
    assert result.items[0] == 7
    wide = np.tile(np.arange(20, dtype=np.int32), (50, 1))
    assert most_shown(wide, 40).shares == [[1.0] * 50] * 20, "what everybody was shown is there, however many"
    assert result.shares[0][:30] == pytest.approx([0.0, 0.05] * 15, abs=0.05)
    assert result.shares[0][30:] == [1.0] * 30


def test_the_curve_is_the_reward_so_far() -> None:
    rewards = np.random.default_rng(0).random(1000)
    after = curve_rounds(1000)
    assert (after[0], after[-1], len(after)) == (1, 1000, CURVE_POINTS)
    assert cumulative(rewards) == pytest.approx([rewards[:t].sum() for t in after])


def test_who_plays_and_what_was_asked_for() -> None:
    result = simulate(USERS, slots=3, learners=["private", "nonprivate"], epsilon=[0.5, 2.0], seeds=2)
    asked = [(run.learner, run.played_by, run.asked_epsilon, run.seed) for run in result.results]
    assert asked == [
        *(("private", "overlap-greedy", epsilon, seed) for epsilon in (0.5, 2.0) for seed in (0, 1)),
        *(("nonprivate", "hedge", None, seed) for seed in (0, 1)),
    ], "one run of a learner that does not listen to epsilon serves all of them"
    assert result.epsilons == [0.5, 2.0]
    assert {name: len(runs) for name, runs in result.by_learner(2.0).items()} == {
        "private": 2,
        "nonprivate": 2,
    }
    assert all(run.epsilon == pytest.approx(run.asked_epsilon) for run in result.by_learner()["private"])
    bandit = simulate(USERS, slots=3, learners="nonprivate", feedback="bandit", epsilon=[0.5, 2.0], seeds=1)
    assert [run.asked_epsilon for run in bandit.results] == [0.5, 2.0], "this twin plans by its epsilon"


def test_expert_regrets_by_hand() -> None:
    slates = replay(make("hedge", Setting(15, 3, 400, "full"), rng=SeededSource(1)), USERS)
    totals, own = np.zeros((3, 15)), np.zeros(3)
    for t, row in enumerate(slates):
        for slot in range(3):
            prefix = [item for item in row[:slot] if item >= 0]
            gains = np.array(
                [
                    USERS[t].value([*prefix, a]) - USERS[t].value(prefix) if a not in prefix else 0
                    for a in range(15)
                ]
            )
            totals[slot] += gains
            own[slot] += gains[row[slot]] if row[slot] >= 0 else 0
    expected = (totals.max(axis=1) - own) / 400
    np.testing.assert_allclose(expert_regrets(USERS, slates), expected, atol=1e-12)
    functions = Functions([lambda s, t=t: USERS[t].value(sorted(s)) for t in range(400)], 15)  # type: ignore[misc]
    np.testing.assert_allclose(expert_regrets(functions, slates), expected, atol=1e-12)


def test_expert_regrets_bound_the_regret_of_the_theorem() -> None:
    for seed in range(5):
        found = simulate(USERS, slots=3, learners=["hedge", "random"], seeds=seed + 1)
        for result in found.results:
            exact = ONE_MINUS_1_OVER_E * found.benchmarks.optimum.lower - result.mean_reward
            assert exact <= sum(max(0.0, regret) for regret in result.expert_regrets) + 1e-12


def test_the_file_format() -> None:
    found = json.loads(json.dumps(simulate(USERS, slots=3, seeds=1).as_json(), allow_nan=False))
    assert set(found) >= {"stream", "benchmarks", "results", "note"}
    assert set(found["benchmarks"]) >= {"greedy", "optimum_lower", "optimum_upper", "random"}
    wanted = {
        "learner",
        "feedback",
        "epsilon",
        "delta",
        "seed",
        "rounds",
        "mean_reward",
        "regret_to_greedy",
        "alpha_regret",
        "seconds",
        "guarantee",
    }
    for result in found["results"]:
        assert set(result) >= wanted
    assert "not private" in found["note"]


def test_bad_requests_are_refused_before_any_work() -> None:
    with pytest.raises(DiminuendoError, match="no learner called 'privat'"):
        simulate(USERS, slots=3, learners=["privat"])
    with pytest.raises(DiminuendoError, match="does not learn from bandit"):
        simulate(USERS, slots=3, learners=["hedge"], feedback="bandit")
    with pytest.raises(InvalidInput, match="400 users"):
        simulate(USERS, slots=3, rounds=401)
    with pytest.raises(InvalidInput, match="15 items"):
        simulate(USERS, slots=16)
    with pytest.raises(InvalidInput, match="nobody"):
        simulate(USERS[:0], slots=1)


def test_bandit_learners_run_and_explore() -> None:
    found = simulate(USERS, slots=2, learners=["nonprivate", "random"], feedback="bandit", seeds=1)
    assert {result.feedback for result in found.results} == {"bandit"}


def test_tables() -> None:
    result = simulate(USERS, slots=3, seeds=2)
    assert as_table(result).row_count == 4


def test_the_interval_is_students() -> None:
    mean, half = mean_and_band([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.302653 / 3**0.5)
    assert np.isnan(mean_and_band([1.0])[1])


def test_nobody_wants_anything() -> None:
    result = simulate(Users(NoisyOr(), np.zeros((30, 4))), slots=2, seeds=1)
    assert result.benchmarks.greedy.value == 0
    assert as_table(result).row_count == 4


def test_senseless_requests() -> None:
    with pytest.raises(InvalidInput, match="at least one learner"):
        simulate(USERS, slots=2, learners=[])
    with pytest.raises(InvalidInput, match="jobs"):
        simulate(USERS, slots=2, jobs=0)
    with pytest.raises(InvalidInput, match="feedback"):
        simulate(USERS, slots=2, feedback="gossip")
    for wrong in ({"rounds": 0}, {"slots": 99}, {"epsilon": -1.0}, {"delta": 1.0}):
        with pytest.raises(InvalidInput):
            Setting(**{"n_items": 5, "slots": 2, "rounds": 9, "feedback": "full"} | wrong)  # type: ignore[arg-type]
