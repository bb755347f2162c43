"""Noisy Hedge: the law of its slates, what people contribute, what its theorem needs, and regret."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

import diminuendo as dim
from diminuendo import People, SeededCoins
from diminuendo.learners.released.hedge_bound import largest_of, noise_cost
from diminuendo.learners.released.noisy_hedge import NoisyExperts
from diminuendo.learners.released.variants import NoisyHedge
from diminuendo.streams import taste_groups
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.types import Floats, Ints, Items
from tests.kit.families import families, specimens
from tests.kit.slow import mostly_slow
from tests.kit.slow_rows import hedge_rows
from tests.kit.statistics import assert_follows, assert_rejects
from tests.learners.test_contribution import drawn


def made(n: int, k: int, rounds: int, seed: int = 1, epsilon: float = 1.0) -> Any:
    return NoisyHedge(n, k, horizon=rounds, epsilon=epsilon, delta=1e-6, coins=SeededCoins(seed))


def follow(learner: Any, sums: Floats) -> None:
    """As if this had been published."""
    policy = learner.policy
    policy.follower = policy.follower.following(sums, sums)
    policy._chooser = policy._choosing_in(0, policy.follower)


def slow_law(scores: Floats) -> dict[tuple[int, ...], float]:
    """Slot by slot: softmax over the items that are not shown yet."""
    k, n = scores.shape
    law: dict[tuple[int, ...], float] = {}
    for slate in itertools.permutations(range(n), k):
        odds = 1.0
        for slot, item in enumerate(slate):
            weights = np.exp(scores[slot])
            odds *= weights[item] / (weights.sum() - weights[list(slate[:slot])].sum())
        law[slate] = odds
    return law


def test_slates_follow_their_law() -> None:
    n, k, count = 5, 3, 40_000
    learner = made(n, k, count)
    rate = learner.policy.follower.rate
    sums = np.random.default_rng(3).normal(size=(k, n)) * 1.5 / rate
    follow(learner, sums.ravel())
    slates, _ = drawn(learner, count)
    law = slow_law(rate * sums)
    names = list(law)
    found = [names.index(tuple(row)) for row in slates.tolist()]
    assert_follows(found, np.array([law[name] for name in names]))
    nearby = slow_law(0.9 * rate * sums)
    assert_rejects(found, np.array([nearby[name] for name in names]))


def test_an_item_that_has_everything_is_shown_once() -> None:
    learner = made(4, 3, 100)
    follow(learner, np.tile([0.0, 1e9, 0.0, 0.0], 3))
    rows = learner.replay(taste_groups(10, 4, groups=1, items_per_group=2))
    assert (rows[:, 0] == 1).all()
    assert all(len(set(row)) == 3 for row in rows.tolist())


@families
def test_contributions_are_what_items_add_to_the_slots_before(name: str) -> None:
    for family, n, matrices in specimens(name):
        people = People(family, tuple(np.asarray(matrix) for matrix in matrices), n)
        for slate in itertools.permutations(range(n), 3):
            slates = np.tile(np.array(slate, dtype=np.int32), (len(people), 1))
            rows = hedge_rows(people.table, 0, len(people), family.leaves, slates, n).toarray()
            for t, person in enumerate(people):
                expected = np.concatenate([person.gains(slate[:slot]) for slot in range(3)])
                np.testing.assert_allclose(rows[t], expected, atol=1e-12)


def test_noise_never_shrinks_from_one_release_to_the_next() -> None:
    """What the proof of Theorem R3 needs of the strategy; a binary tree would not do."""
    for releases in (1, 7, 16, 100, 1024, 4096):
        strategy = STRATEGIES["blt"](releases)
        spread = [strategy.variance(b) for b in range(1, releases + 1)]
        assert (np.diff(spread) >= 0).all()


def test_rounding_inside_the_strategy_is_less_than_a_tick() -> None:
    strategy, random = STRATEGIES["blt"](4096), np.random.default_rng(1)
    encoder, decoder, total, worst = strategy.encoder(3), strategy.decoder(3), np.zeros(3), 0.0
    for _ in range(4096):
        batch = random.integers(0, 5_000, size=3)
        total += batch
        worst = max(worst, float(np.abs(decoder.decode(encoder.encode(batch)) - total).max()))
    assert worst + 0.5 * np.abs(strategy._inverse).sum() / strategy.unit < 1  # type: ignore[attr-defined]


class Watched:
    """Adds up, for every slot, what each item gained and what the expert's own shares did."""

    def __init__(self, learner: Any) -> None:
        self.each, self.own = np.zeros((learner.slots, learner.n_items)), np.zeros(learner.slots)
        self._learner, self._add_people = learner, learner.policy.released.add_people
        learner.policy.released.add_people = self.add_people

    def add_people(self, people: Any, first: int, rows: Items, words: Ints, batch: int, gains: Any) -> None:
        self._add_people(people, first, rows, words, batch, gains)
        learner = self._learner
        found = hedge_rows(people.table, first, first + len(rows), 1, rows, learner.n_items)
        gained, shares = found.sum(axis=0).reshape(self.each.shape), np.diff(learner.menu.ends.T, axis=1)
        self.each += gained
        self.own += (gained * shares).sum(axis=1) / shares.sum(axis=1)

    @property
    def regret(self) -> float:
        return float((self.each.max(axis=1) - self.own).sum())


def turning(learner: Any) -> People:
    """In every batch people want the item that earned less so far: whoever follows the leader is wrong."""
    wants = np.concatenate(
        [np.full(size, b % 2) for b, size in enumerate(learner.policy.released.schedule.sizes)]
    )
    wants[: learner.policy.released.schedule.sizes[0] // 2] = 1
    return People(dim.NoisyOr(), sparse.csr_array((np.ones(len(wants)), wants, np.arange(len(wants) + 1))))


@pytest.mark.parametrize("epsilon", mostly_slow([1.0, 100.0], [1.0]))
def test_streams_that_turn_are_held_to_the_bound(epsilon: float) -> None:
    found = []
    for seed in range(4):
        learner = made(2, 1, 4_000, seed, epsilon)
        watched = Watched(learner)
        learner.replay(turning(learner))
        found.append(watched.regret)
    bound = learner.regret_bound()
    assert np.mean(found) <= bound < 4_000 / 4
    if epsilon == 100.0:
        wrong = made(2, 1, 4_000, 1, epsilon)
        policy, watched = wrong.policy, Watched(wrong)
        fast = 1_000 * policy.follower.rate  # a planted fault: far above the rate that the bound is for
        policy.follower = NoisyExperts(2, 1, policy.released.schedule, fast)
        wrong.replay(turning(wrong))
        assert watched.regret > bound, "following too fast is noticed"


def test_the_largest_of_some_normal_numbers() -> None:
    assert largest_of(1) == pytest.approx(0, abs=2e-6)
    assert largest_of(2) == pytest.approx(1 / math.sqrt(math.pi), abs=2e-6)
    assert largest_of(3) == pytest.approx(1.5 / math.sqrt(math.pi), abs=2e-6)
    found = np.random.default_rng(1).normal(size=(100_000, 50)).max(axis=1)
    assert abs(found.mean() - largest_of(50)) < 5 * found.std() / math.sqrt(len(found))
    assert largest_of(10**6) < math.sqrt(2 * math.log(10**6))


@pytest.mark.parametrize("rate", [0.01, 0.3, 4.0])
def test_what_noise_costs_is_never_less_than_it_does(rate: float) -> None:
    """Up to how far the mean of the leader's value rises when noise comes in, at points of all kinds."""
    random, n = np.random.default_rng(2), 6
    noise = random.normal(size=(40_000, n))
    noise = np.concatenate([noise, -noise])  # of mean 0, exactly
    closest = 0.0
    for spread in (0.0, 0.5, 3.0, 20.0):
        sums = spread * random.normal(size=n)
        for deviation in (0.1, 1.0, 10.0, 100.0):
            values = logsumexp(rate * (sums + deviation * noise), axis=1) / rate
            rise, error = values.mean() - logsumexp(rate * sums) / rate, values.std() / math.sqrt(40_000)
            cost = noise_cost(rate, deviation, n)
            assert rise <= cost + 5 * error
            closest = max(closest, rise / cost)
    assert closest > 0.8, "it is not much more either"


def test_the_bound_by_hand() -> None:
    n, k, rounds = 50, 5, 100_000
    learner = made(n, k, rounds)
    size = max(learner.policy.released.schedule.sizes)
    rate = math.sqrt(2 * k * math.log(n) / (size * rounds))
    steps = k * math.log(n) / rate + rate * (1 - 1 / k) / 2 * size * rounds
    level = math.log(len(learner.policy.released.schedule)) / math.pi + 1.0663
    deviation = math.sqrt(k * n) / dim.privacy.curves.gaussian_mu(1.0, 1e-6) * level
    assert learner.regret_bound() == pytest.approx(steps + k * rate * deviation**2 / 2, rel=0.05)
    assert learner.regret_bound() < 0.082 * rounds
    less = made(n, k, rounds, epsilon=0.1)  # so much noise that the largest of it is what counts
    most = k * 10 * deviation * math.sqrt(2 * math.log(n))
    assert 0.6 * most < less.regret_bound() - steps < most
    longer = made(n, k, 4 * rounds)
    assert max(longer.policy.released.schedule.sizes) == size
    assert longer.regret_bound() - learner.regret_bound() < 1.05 * steps, "like sqrt T; the noise falls"
    made(4, 2, 1 << 21), made(4, 2, 1 << 26)  # there is room for so many people
