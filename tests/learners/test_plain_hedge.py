"""The plain reference and the compiled learner follow one law.

Two tests, each with a false-alarm rate of 1e-6, and each shown to notice a rate that is twice too large.
Everything is seeded, so that a test that passes once passes always, until something changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from scipy.special import softmax

from diminuendo import OrderedExperts, SeededSource, Users
from diminuendo.streams.synthetic import taste_groups
from diminuendo.types import Floats, Items
from tests.kit.plain_hedge import PlainHedge, adaptive_rate, new_item_law

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-6

N_ITEMS, SLOTS, N_USERS = 4, 2, 300

RateRule: TypeAlias = Callable[[float, int], float]


def doubled_rate(seen: float, n_items: int) -> float:
    return 2.0 * adaptive_rate(seen, n_items)


@pytest.fixture(scope="module")
def users() -> Users:
    return taste_groups(N_USERS, N_ITEMS, groups=3, items_per_group=2, seed=1)


def rows(users: Users) -> list[tuple[Items, Floats]]:
    return [(row.indices.astype(np.int32), row.data) for row in users.matrices[0]]


def compiled_slates(users: Users, seed: int) -> Items:
    return OrderedExperts(N_ITEMS, SLOTS, rng=SeededSource(seed)).replay(users)


# Whole runs: mean rewards of independent runs of either, compared by ranks.


# Draw by draw: the reference watches the compiled learner and says beforehand how likely each outcome is.


def evidence(users: Users, rule: RateRule, runs: int = 10) -> float:
    """Against the compiled learner drawing by the reference's law: at least x with probability at most 1/x.

    Let D be how often an outcome came up minus the sum of its probabilities p, and V the sum of p(1 - p). For
    every c, exp(cD - (e^|c| - 1 - |c|)V) has a mean of at most 1 (Freedman 1975), so the average of many such
    has too, and Markov's inequality gives the rest. No approximation is involved.
    """
    surplus, variance = np.zeros((SLOTS, N_ITEMS)), np.zeros((SLOTS, N_ITEMS))
    told = rows(users)
    for seed in range(runs):
        reference = PlainHedge(N_ITEMS, SLOTS, rule)
        for slate, (items, chances) in zip(compiled_slates(users, seed), told, strict=True):
            laws = reference.laws()
            for slot in range(SLOTS):
                law = new_item_law(laws[slot], slate[:slot])
                surplus[slot] -= law
                surplus[slot, slate[slot]] += 1.0
                variance[slot] += law * (1.0 - law)
            reference.learn(slate, items, chances)
    tilts = np.array([sign * size for sign in (-1, 1) for size in (0.02, 0.05, 0.1, 0.2, 0.5)])[:, None, None]
    powers = tilts * surplus - np.expm1(np.abs(tilts)) * variance + np.abs(tilts) * variance
    return float(np.exp(powers).mean())


def test_draws_follow_the_law_of_the_reference(users: Users) -> None:
    assert evidence(users, adaptive_rate) < 1 / FALSE_ALARM


def test_draws_do_not_follow_the_law_of_twice_the_rate(users: Users) -> None:
    assert evidence(users, doubled_rate) > 1 / FALSE_ALARM


# By hand.


def test_one_user_by_hand() -> None:
    hedge = PlainHedge(3, 2)
    value = hedge.learn(
        np.array([2, 0], dtype=np.int32), np.array([0, 2], dtype=np.int32), np.array([0.5, 0.25])
    )
    assert value == pytest.approx(1 - 0.75 * 0.5)
    assert hedge.totals == pytest.approx(np.array([[0.5, 0.0, 0.25], [0.75 * 0.5, 0.0, 0.0]]))
    assert hedge.own == pytest.approx(np.array([0.25, 0.75 * 0.5]))
    assert hedge.laws()[1] == pytest.approx(softmax(hedge.rates[1] * hedge.totals[1]))


def test_rates_are_powers_of_the_square_root_of_two() -> None:
    assert adaptive_rate(0.0, 100) == 1.0
    assert adaptive_rate(17.0, 8) == pytest.approx(2.0**-2)  # sqrt(log 8 / 18) = 0.34, between 1/4 and 0.354
