"""Measured regret against proved bounds, and its growth with the number of users.

Bounds are on expectations, so what is compared is a mean over seeds. Streams are chosen to be hard: users of whom
nothing can be learned, gaps as small as can just be told apart, favourites that alternate or change half-way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from diminuendo import Learner, RandomSlates, SeededSource, Users, paper
from diminuendo.objectives import NoisyOr
from diminuendo.offline import ONE_MINUS_1_OVER_E, optimum
from diminuendo.paper import bounds
from diminuendo.simulate.benchmarks import expert_regrets
from diminuendo.types import Floats
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA

Likes = Callable[[np.random.Generator, int], NDArray[Any]]


def stream(likes: Likes, rounds: int, seed: int) -> Users:
    """Users who want what `likes` says, as 0 or 1 for each item."""
    wanted = likes(np.random.default_rng(seed), rounds).astype(float)
    return Users(NoisyOr(), sparse.csr_array(wanted), wanted.shape[1])


def nothing_to_learn(n: int) -> Likes:
    return lambda random, rounds: random.random((rounds, n)) < 0.5


def small_gap(n: int, power: float) -> Likes:
    """One item is better by as much as can just be told apart: (N log N / T)^power, halved."""

    def likes(random: np.random.Generator, rounds: int) -> Floats:
        chance = np.full(n, 0.5)
        chance[n // 2] += 0.5 * (n * math.log(n) / rounds) ** power
        return np.asarray(random.random((rounds, n)) < chance)

    return likes


def alternating(n: int) -> Likes:
    """What was liked last is never liked next."""
    return lambda random, rounds: np.asarray(np.arange(rounds)[:, None] % n == np.arange(n))


def changing_half_way(n: int) -> Likes:
    def likes(random: np.random.Generator, rounds: int) -> Floats:
        best = np.where(np.arange(rounds) < rounds // 2, 0, n - 1)
        return np.asarray(random.random((rounds, n)) < np.where(best[:, None] == np.arange(n), 0.7, 0.2))

    return likes


HARD: dict[str, Callable[[int], Likes]] = {
    "nothing to learn": nothing_to_learn,
    "small gap": lambda n: small_gap(n, 1 / 3),
    "alternating": alternating,
    "changing half-way": changing_half_way,
}


def expert_regret(users: Users, learner: Learner) -> float:
    """What the k experts together fell short of their best fixed items, over the whole run."""
    regrets = expert_regrets(users, learner.replay(users)) * len(users)
    return bounds.greedy_from_experts(regrets)


def proved(learner: Learner, rounds: int) -> float:
    """The bound on the sum of the experts' regrets."""
    bound = learner.regret_bound(rounds)
    assert bound is not None
    # An exploration ends the slate, so each of the k slots may lose by it; the theorem counts the slate once.
    return bound + (learner.slots - 1) * getattr(learner.policy, "exploring", 0.0) * rounds


LEARNERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "streeter-golovin": (paper.streeter_golovin, {}),
    "fi-dp": (paper.fi_dp, {"epsilon": 4.0, "delta": 1e-5}),
    "fi-dp, paper": (paper.fi_dp, {"epsilon": 40.0, "delta": 1e-5, "calibration": "paper"}),
    "fi-pure": (paper.fi_pure, {"epsilon": 4000.0}),
    "streeter-golovin-bandit": (paper.streeter_golovin_bandit, {}),
    "bandit-dp, own": (paper.bandit_dp, {"epsilon": 8.0, "delta": 1e-5}),
    "bandit-dp, all": (paper.bandit_dp, {"epsilon": 8.0, "delta": 1e-5, "resample": "all"}),
    "bandit-dp:draw=direct": (paper.direct_bandit, {"epsilon": 16.0, "delta": 1e-5}),
    "bandit-dp:draw=presampled": (paper.presampled_bandit, {"epsilon": 8.0, "delta": 1e-5}),
}


@pytest.mark.parametrize("hard", mostly_slow(HARD, list(HARD)[:1]))
@pytest.mark.parametrize("name", LEARNERS)
def test_regret_stays_below_the_proved_bound(name: str, hard: str) -> None:
    n, k = (4, 2) if "bandit" not in name else (3, 1)
    rounds = 20_000 if "bandit" not in name else 100_000
    make, asked = LEARNERS[name]
    result, bound = [], 0.0
    for seed in range(4):
        learner = make(n, k, rounds, **asked, rng=SeededSource(seed))
        result.append(expert_regret(stream(HARD[hard](n), rounds, seed), learner))
        bound = proved(learner, rounds)
    assert bound < ONE_MINUS_1_OVER_E * rounds, "a bound that says something"
    assert np.mean(result) <= bound


def two_halves(n: int) -> Likes:
    """Half of the users want the first item, half the second, nobody anything else: a slate of two pleases all."""
    return lambda random, rounds: np.asarray(random.integers(2, size=rounds)[:, None] == np.arange(n))


BANDITS = [name for name in LEARNERS if "bandit" in name]


@pytest.mark.parametrize("name", BANDITS)
def test_bandit_learners_stay_below_a_bound_that_chance_does_not(name: str) -> None:
    """Two slots, and a bound that random slates break: whoever learned nothing would be noticed."""
    n, k, rounds = 4, 2, 400_000
    make, asked = LEARNERS[name]
    learner = make(n, k, rounds, **(asked | ({"epsilon": 64.0} if asked else {})), rng=SeededSource(1))
    users = stream(two_halves(n), rounds, 1)
    bound = proved(learner, rounds)
    chance = expert_regret(users, RandomSlates(n, k, rng=SeededSource(1)))
    assert expert_regret(users, learner) <= bound < chance


def test_the_bound_of_streeter_and_golovin_is_within_reach() -> None:
    """Not so loose that anything would pass: users of whom nothing can be learned cost more than a fifth of it."""
    n, rounds = 4, 20_000
    result = [
        expert_regret(
            stream(nothing_to_learn(n), rounds, seed),
            paper.streeter_golovin(n, 1, rounds, rng=SeededSource(seed)),
        )
        for seed in range(20)
    ]
    assert np.mean(result) > bounds.full_information(n, 1, rounds, math.sqrt(math.log(n) / rounds)) / 5


def test_the_slates_are_within_the_bound_of_the_optimum() -> None:
    """Theorem P3 as it stands: (1 - 1/e) of the best slate of all, which is known exactly here."""
    rounds, n, k = 20_000, 8, 3
    random = np.random.default_rng(5)
    chance = random.uniform(0.05, 0.4, n)
    users = stream(lambda random, rounds: np.asarray(random.random((rounds, n)) < chance), rounds, 5)
    best = optimum(users, k)
    assert best.proven
    learners: list[Learner] = [
        paper.streeter_golovin(n, k, rounds, rng=SeededSource(1)),
        paper.fi_dp(n, k, rounds, 8.0, 1e-5, rng=SeededSource(1)),
    ]
    for learner in learners:
        reward = users.values(learner.replay(users)).sum()
        regret = ONE_MINUS_1_OVER_E * best.upper * rounds - reward
        assert regret <= proved(learner, rounds) < ONE_MINUS_1_OVER_E * rounds


def slope(
    make: Callable[..., Any], n: int, likes: Likes, sizes: list[int], seeds: int
) -> tuple[float, float]:
    """The slope of log(mean regret) on log T, and its standard error by leaving out one seed at a time."""
    table = np.array(
        [
            [
                expert_regret(
                    stream(likes, size, 10_000 * seed + j), make(n, 1, size, rng=SeededSource(seed))
                )
                for j, size in enumerate(sizes)
            ]
            for seed in range(seeds)
        ]
    )

    def fit(rows: Floats) -> float:
        return float(np.polyfit(np.log(sizes), np.log(rows.mean(axis=0)), 1)[0])

    without = np.array([fit(np.delete(table, seed, axis=0)) for seed in range(seeds)])
    error = math.sqrt((seeds - 1) / seeds * float(((without - without.mean()) ** 2).sum()))
    return fit(table), error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "n", "likes", "seeds", "stated", "nearby"),
    [
        (paper.streeter_golovin, 2, nothing_to_learn(2), 200, 1 / 2, 2 / 3),
        (paper.streeter_golovin_bandit, 4, small_gap(4, 1 / 3), 80, 2 / 3, 3 / 4),
    ],
    ids=["full information", "bandit"],
)
def test_regret_without_privacy_grows_as_stated(
    make: Any, n: int, likes: Likes, seeds: int, stated: float, nearby: float
) -> None:
    """T^(1/2) and T^(2/3): the interval at the one false-alarm rate holds the stated power and not the next one."""
    result, error = slope(make, n, likes, [1 << j for j in range(9, 16)], seeds)
    half = float(stats.norm.isf(ALPHA / 2)) * error
    print(f"slope {result:.3f} +- {1.96 * error:.3f} (95 percent), stated {stated:.3f}")
    assert result - half <= stated <= result + half
    assert result + half < nearby
