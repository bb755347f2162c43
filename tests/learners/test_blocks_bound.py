"""Bounds of learners with balanced blocks: their lemmas on small cases, streams that turn, and what they come to."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import diminuendo as dim
from diminuendo import NoisyOr, People, SeededCoins, Setting
from diminuendo.learners.probing import schedule
from diminuendo.learners.probing.schedule import PAYOFF_TICKS, Noise, Plan, Theorem, planned, spread_ahead
from diminuendo.learners.probing.variants import (
    BanditBlocks,
    BanditBlocksFull,
    OpenBanditBlocks,
    OpenBanditBlocksFull,
    OpenRankedClicks,
    RankedClicks,
)
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats, Items
from tests.kit.slow import rows_mostly_slow

WAYS = (schedule.short, schedule.full, schedule.inserted)
EXPERT = Theorem(1, 0.0, 0.0)
"""Of one expert alone."""


# Lemmas.


def test_what_laplace_noise_does_to_exponentials() -> None:
    """Lemma K5: the mean of e^(uz) is at most 1/(1 - (u scale)^2), and nearly that where ticks are fine."""
    for scale in (0.7, 3.0, 40.0):
        z = np.arange(-4_000, 4_001)
        law = np.exp(-np.abs(z) / scale)
        for part in (0.1, 0.5, 0.9):
            mean = float(np.exp(part / scale * z - np.abs(z) / scale).sum() / law.sum())
            assert mean <= 1 / (1 - part**2) * (1 + 1e-12)
            if scale == 40.0:
                assert mean == pytest.approx(1 / (1 - part**2), rel=0.01)


def test_what_gaussian_noise_adds_to_the_best_of_two() -> None:
    """Lemma K5: in units of blocks, at any difference between the two sums, by quadrature."""
    z = np.linspace(-12, 12, 20_001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    for rate, spread in itertools.product((0.01, 0.3, 2.0), (0.1, 1.0, 10.0)):
        plan = Plan(2, 1, 100, 10, 1, rate, "gaussian")
        cost = float(schedule._noise(plan, np.array([rate]), spread, math.log(2))[0])
        for apart in (
            0.0,
            1.0,
            30.0,
        ):  # the noise of two sums: one number of twice the variance, around their mean
            noisy = apart + math.sqrt(2) * spread * z
            added = weight @ np.logaddexp(0, rate * noisy) / rate - np.logaddexp(0, rate * apart) / rate
            assert -1e-9 <= added <= cost + 1e-9


def coverage(random: np.random.Generator, n: int) -> Any:
    """A random weighted coverage function of sets."""
    covers, weights = random.random((n, 6)) < 0.4, random.dirichlet(np.ones(6))
    return lambda items: float(weights @ covers[list(items)].any(axis=0)) if items else 0.0


def test_half_of_the_best_slate_by_exchanges() -> None:
    """The two inequalities of Theorem K3, with repeats; and one of them fails without its condition."""
    random, broken = np.random.default_rng(2), 0
    for _ in range(200):
        f = coverage(random, 6)
        named, best = random.integers(0, 6, size=3).tolist(), random.choice(6, size=3, replace=False).tolist()
        without = [{*named[:i], *named[i + 1 :]} for i in range(3)]
        here = f(set(named))
        assert sum(here - f(others) for others in without) <= here + 1e-12
        gained = sum(f({*others, o}) - here for others, o in zip(without, best, strict=True))
        assert f(set(best)) <= 2 * here + gained + 1e-12
        broken += f(set(best)) > here + gained + 1e-12
    assert broken, "the two is needed"


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_what_probes_cost(k: int) -> None:
    """By adding up what prefixes are known to earn."""
    prefix = [1 - (1 - 1 / k) ** i for i in range(k + 1)]
    assert schedule.short(k).explore == pytest.approx(ONE_MINUS_1_OVER_E - np.mean(prefix[:k]))
    assert k * (1 - schedule.short(k).relief) == pytest.approx(np.mean(range(k)))
    assert schedule.inserted(k).explore == pytest.approx(ONE_MINUS_1_OVER_E - prefix[k - 1])
    assert schedule.full(k).explore == pytest.approx(0.5 / k)


def test_the_bound_by_hand() -> None:
    plan = Plan(20, 5, 1_050_000, 1_000, 2, 0.1, "gaussian")
    beta = 1_000 * (math.log(20) / 0.1 + 0.1 * (13 / 2) ** 2 / 2) + 0.1 / 8 * 1_050_000
    beta += 1_050_000 * (20 / 2**40 + 1 / PAYOFF_TICKS + 3 * 0.1 / (2 * PAYOFF_TICKS))
    expected = 0.2 * (ONE_MINUS_1_OVER_E - 0.8**5) * 1_050_000 + (1 - 0.2 * 0.6) * 5 * beta
    assert plan.bound(schedule.short(5), 13.0, PAYOFF_TICKS) == pytest.approx(expected)
    pure = replace(plan, noise="laplace")
    beta = 1_000 * (math.log(20) - 1_049 * math.log(1 - (0.1 * 3 / 2) ** 2)) / 0.1 + 0.1 / 8 * 1_050_000
    beta += 1_050_000 * (20 / 2**40 + 1 / PAYOFF_TICKS)
    expected = 0.04 * 0.5 * 1_050_000 + (1 - 0.04) * 2.5 * beta
    assert pure.bound(schedule.full(5), 3.0, PAYOFF_TICKS) == pytest.approx(expected)
    click = replace(plan, noise="none", horizon=1_050_500)  # the last block is longer
    u = np.array([0.1, 0.15])
    curve = (np.exp(u) - 1 - u) / u
    experts = 5 * 1_000 * math.log(20) / 0.1 + curve @ [1_049_000, 1_500] + 5 * 1_050_500 * 20 / 2**40
    assert click.bound(schedule.inserted(5), 0.0, PAYOFF_TICKS) == pytest.approx(
        0.2 * (0.8**4 - math.exp(-1)) * 1_050_500 + experts
    )
    assert replace(pure, rate=1.0).bound(schedule.full(5), 3.0, PAYOFF_TICKS) == math.inf


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("noise", "limit"), [("none", 1.0), ("laplace", 0.3), ("gaussian", 0.05)])
def test_plans_are_nearly_the_best_of_their_kind(way: Any, noise: Noise, limit: float) -> None:
    theorem = way(3)
    plan = planned(theorem, 20, 500_000, noise, limit, PAYOFF_TICKS)

    def worth(other: Plan) -> float:
        return other.bound(theorem, spread_ahead(noise, other.blocks, limit), PAYOFF_TICKS)

    least = worth(plan)
    assert plan.block_probes <= theorem.most * plan.length
    for length, probes, rate in itertools.product((0.6, 0.9, 1.1, 1.7), (0.5, 1, 2), (0.6, 0.9, 1, 1.1, 1.7)):
        other = replace(
            plan,
            length=round(plan.length * length),
            probes=max(1, round(plan.probes * probes)),
            rate=plan.rate * rate,
        )
        if other.block_probes <= theorem.most * other.length:
            assert worth(other) >= 0.995 * least


# Streams that turn.


class Watched:
    """Adds up what each item would have earned, and what the expert's own shares did."""

    def __init__(self, learner: Any) -> None:
        self.each: Floats | float = 0.0
        self.own = 0.0
        self._policy, self._replay = learner.policy, learner.policy.replay
        learner.policy.replay = self.replay

    def replay(self, people: People, slates: Items, done: int) -> int:
        ends = self._policy.menu.ends[:, 0]
        shares = np.diff(ends) / ends[-1]
        stop: int = self._replay(people, slates, done)
        earned = people.matrices[0][done:stop].sum(axis=0)
        self.each, self.own = self.each + earned, self.own + float(shares @ earned)
        return stop


def turning(sizes: tuple[int, ...]) -> People:
    """In every block people want the item that earned less so far: whoever follows the leader is wrong."""
    wants = np.concatenate([np.full(size, b % 2) for b, size in enumerate(sizes)])
    wants[: sizes[0] // 2] = 1
    return People(NoisyOr(), sparse.csr_array((np.ones(len(wants)), wants, np.arange(len(wants) + 1))))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["none", "laplace", "gaussian"])
def test_streams_that_turn_are_held_to_the_bound(noise: Noise) -> None:
    """One expert against a stream made for it; and one that follows far too fast is not."""
    rounds, found, seeds = 20_000, [], 2
    for fast, seed in itertools.product((1, 500), range(seeds)):
        coins = SeededCoins(seed)
        asked = {"epsilon": 8.0, "delta": 0.0 if noise == "laplace" else 1e-6}
        kind: Any = OpenBanditBlocks if noise == "none" else BanditBlocks
        made = kind(2, 1, horizon=rounds, coins=coins, **({} if noise == "none" else asked))
        policy, watched = made.policy, Watched(made)
        assert policy.plan.noise == noise
        bound = policy.plan.bound(EXPERT, policy.spread, PAYOFF_TICKS)
        policy.plan = replace(policy.plan, rate=policy.plan.rate * fast)
        made.replay(turning(policy.schedule.sizes))
        found.append(float(np.max(watched.each) - watched.own))
    assert np.mean(found[:seeds]) <= bound < rounds / 4
    assert np.mean(found[seeds:]) > bound, "following too fast is noticed"


@pytest.mark.parametrize(
    ("kind", "feedback"),
    rows_mostly_slow(
        [
            (OpenBanditBlocks, "bandit"),
            (BanditBlocks, "bandit"),
            (OpenBanditBlocksFull, "bandit"),
            (BanditBlocksFull, "bandit"),
            (OpenRankedClicks, "click"),
            (RankedClicks, "click"),
        ],
        [(BanditBlocks, "bandit"), (OpenRankedClicks, "click")],
    ),
)
def test_regret_is_within_bounds_that_say_something(kind: Any, feedback: Any) -> None:
    """Everybody wants one of two items, and those who want the first come late; random slates are below the bound."""
    n, k, rounds = 8, 1, 400_000
    wants = np.where(np.arange(rounds) < rounds // 10, 1, 0)
    people = People(
        NoisyOr(), sparse.csr_array((np.ones(rounds), wants, np.arange(rounds + 1)), shape=(rounds, n))
    )
    aim = 0.5 if "full" in kind.name else ONE_MINUS_1_OVER_E
    best = max(people.values([item]).sum() for item in range(n))
    learner = kind.for_setting(Setting(n, k, rounds, feedback, 1.0), coins=SeededCoins(1))
    bound = learner.policy.bound_to_aim()
    earned = people.values(learner.replay(people)).sum()
    chance = people.values(dim.make("random", Setting(n, k, rounds, "bandit")).replay(people)).sum()
    assert earned >= aim * best - bound
    assert chance < aim * best - bound, "the bound says something"
    if "full" in kind.name:
        assert learner.regret_bound() == pytest.approx(bound + (ONE_MINUS_1_OVER_E - 0.5) * rounds)


@pytest.mark.parametrize(
    ("kind", "feedback", "shares"),
    [
        (BanditBlocks, "bandit", (0.197, 0.135)),
        (BanditBlocksFull, "bandit", (0.146, 0.103)),
        (RankedClicks, "click", (0.100, 0.069)),
    ],
)
def test_the_table_in_the_proofs(kind: Any, feedback: Any, shares: tuple[float, float]) -> None:
    for n, rounds, share in ((20, 10**6, shares[0]), (50, 10**7, shares[1])):
        made = kind.for_setting(Setting(n, 5, rounds, feedback, 1.0))
        bound = made.policy.bound_to_aim()
        assert bound / rounds == pytest.approx(share, abs=0.0011)


def test_few_people_are_not_probed_in_vain() -> None:
    learner: Any = BanditBlocks.for_setting(Setting(50, 5, 499, "bandit"))
    assert (learner.policy.plan.blocks, learner.regret_bound()) == (1, ONE_MINUS_1_OVER_E * 499)
    assert all(learner.choose().probe is None for _ in range(50))
