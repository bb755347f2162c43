"""Cascade Thompson draws from its beliefs, exactly those that clicks gave it, and learns."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from diminuendo import NoisyOr, RandomSlates, SeededSource, Users
from diminuendo.learners.cascade_thompson import CLICKED, FAILED, CascadeThompson, gamma
from diminuendo.randomness.words import USED
from diminuendo.streams import taste_groups
from diminuendo.streams.clicks import click_words_of
from diminuendo.types import Floats
from tests.kit.inside import inside
from tests.kit.statistics import assert_follows, assert_rejects

USERS = taste_groups(400, 12, groups=4, items_per_group=5, seed=1)


@pytest.mark.parametrize("shape", [1.0, 2.0, 30.0, 5000.0])
def test_gamma_numbers_follow_their_law(shape: float) -> None:
    """In 40 cells that are equally likely, from words that follow others; 2 in 10 of a deviation off is seen."""
    result = np.array([gamma(shape, seed, 7)[0] for seed in click_words_of(20_000, seed=1)])
    edges = stats.gamma.ppf(np.linspace(0, 1, 41), shape)
    cells = np.searchsorted(edges[1:-1], result)
    assert_follows(cells, np.full(40, 1 / 40))
    for wrong in (shape + 0.2 * math.sqrt(shape), shape * (1 - 0.2 / math.sqrt(shape))):
        assert_rejects(cells, np.diff(stats.gamma.cdf(edges, wrong)))


def test_no_two_gamma_numbers_of_a_round_share_words() -> None:
    """Each goes on where the last one stopped, so that items are drawn independently of each other."""
    pairs = []
    for seed in click_words_of(20_000, seed=2):
        first, used = gamma(3.0, seed, 0)
        second, after = gamma(3.0, seed, used)
        assert 0 < used < after
        pairs.append((first, second))
    middle = np.array(pairs) > stats.gamma.median(3.0)
    both = 2 * middle[:, 0] + middle[:, 1]
    assert_follows(both, np.full(4, 1 / 4))
    assert_rejects(both, np.array([0.27, 0.23, 0.23, 0.27]))


def order_law(seen: list[list[int]]) -> Floats:
    """How likely each order of three items is when each draws from its Beta; by the item in the middle."""
    laws = [stats.beta(1 + clicked, 1 + failed) for failed, clicked in seen]

    def chance(first: int, middle: int, last: int) -> float:
        result, _ = integrate.quad(
            lambda x: laws[middle].pdf(x) * laws[first].sf(x) * laws[last].cdf(x), 0, 1
        )
        return float(result)

    law = np.array([chance(*order) for order in itertools.permutations(range(3))])
    assert abs(law.sum() - 1) < 1e-6
    return law


def test_slates_are_the_largest_draws_in_order() -> None:
    """The law of all orders, by integrals; beliefs that miss one failure, or take failures for clicks, are refused."""
    seen = [[3, 1], [1, 2], [2, 2]]
    learner = CascadeThompson(3, 3, rng=SeededSource(5))
    shorter = CascadeThompson(3, 2, rng=SeededSource(5))
    for each in (learner, shorter):
        inside(each)._seen[:] = seen
    orders = list(itertools.permutations(range(3)))
    slates = [learner.choose().slate for _ in range(20_000)]
    result = [orders.index(slate) for slate in slates]
    assert_follows(result, order_law(seen))
    assert_rejects(result, order_law([[3, 1], [1, 2], [1, 2]]))
    assert_rejects(result, order_law([[1, 3], [2, 1], [2, 2]]))
    for slate in slates[:200]:
        assert shorter.choose().slate == slate[:2]  # fewer slots: the same draws, cut short


def test_whoever_clicks_has_looked_so_far_and_no_further() -> None:
    learner = CascadeThompson(6, 3, rng=SeededSource(1))
    expected = np.zeros((6, 2), dtype=np.int64)
    for click in (0, 1, 2, None):
        for _ in range(3):
            decision = learner.choose()
            learner.observe(decision, click)
            looked = decision.slate if click is None else decision.slate[:click]
            expected[list(looked), FAILED] += 1
            if click is not None:
                expected[decision.slate[click], CLICKED] += 1
            np.testing.assert_array_equal(inside(learner)._seen, expected)
    learner.choose()  # who does not answer has not said that she clicked nothing
    np.testing.assert_array_equal(inside(learner)._seen, expected)


def test_a_round_takes_one_public_word_and_no_secret_one() -> None:
    learner = CascadeThompson(12, 4, rng=SeededSource(2))
    for rounds in range(1, 6):
        learner.choose()
        assert learner._frame.public.view.used[USED] == rounds
    assert len(learner._frame.secret.view.words) == 0


def test_it_finds_the_items_that_attract() -> None:
    """Everybody alike: it looks most at the best, and in the end earns more than chance by 5 standard errors."""
    chances = np.full(12, 0.1)
    chances[[2, 5, 9]] = 0.4
    users = Users(NoisyOr(), np.tile(chances, (8_000, 1)))
    learner = CascadeThompson(12, 3, rng=SeededSource(3))
    slates, by_chance = (each.replay(users) for each in (learner, RandomSlates(12, 3, rng=SeededSource(3))))
    assert set(np.argsort(inside(learner)._seen.sum(axis=1))[-3:]) == {2, 5, 9}
    more = (users.values(slates) - users.values(by_chance))[4_000:]
    assert more.mean() / (more.std() / math.sqrt(len(more))) > 5
