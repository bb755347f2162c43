"""Ordered experts learn, slot by slot, what each item would have added to the slots before."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from diminuendo import NoisyOr, OrderedExperts, SeededSource, Users
from diminuendo.learners.hedge.full import ATTEMPTS
from diminuendo.randomness.score_classes import probabilities
from diminuendo.randomness.ticks import TICKS
from diminuendo.types import Objective
from tests.kit.families import families, specimens
from tests.kit.inside import inside
from tests.kit.statistics import assert_follows, assert_rejects


def ticks_by_definition(user: Objective, slate: NDArray[np.integer], n_items: int) -> NDArray[np.int64]:
    """What one user adds to the experts' totals, from values alone: (slots, items)."""
    added = np.zeros((len(slate), n_items), dtype=np.int64)
    prefix: list[int] = []
    for slot, shown in enumerate(slate):
        for item in set(range(n_items)) - set(prefix):
            added[slot, item] = math.floor((user.value([*prefix, item]) - user.value(prefix)) * TICKS)
        if shown >= 0:
            prefix.append(int(shown))
    return added


@families
def test_totals_are_sums_of_gains(name: str) -> None:
    """Within one tick per user and cell: gains and differences of values round differently."""
    for family, n_items, matrices in specimens(name):
        users = Users(family, tuple(np.tile(np.asarray(matrix), (10, 1)) for matrix in matrices), n_items)
        learner = OrderedExperts(n_items, 3, rng=SeededSource(2))
        slates = learner.replay(users)
        expected = sum(ticks_by_definition(users[t], slates[t], n_items) for t in range(len(users)))
        assert np.abs(inside(learner)._experts.classes.totals.T - expected).max() <= len(users)
        assert np.array(expected).max() > 5 * TICKS / 4


def test_slates_are_full_and_new_items_follow_their_law() -> None:
    """The second expert, whose law is far from uniform, may not repeat the first one's item."""
    learner = OrderedExperts(4, 4, rate=0.2, rng=SeededSource(1))
    learner.replay(Users(NoisyOr(), np.tile([[0.9, 0.1, 0.5, 0.0]], (30, 1))))
    slates = np.array([learner.choose().slate for _ in range(12_000)])
    assert (np.sort(slates, axis=1) == np.arange(4)).all()
    law = probabilities(inside(learner)._experts.classes, 1)
    after = slates[slates[:, 0] == 0, 1]
    again = law[0]
    expected = law * sum(again**j for j in range(ATTEMPTS)) + again**ATTEMPTS / 3
    expected[0] = 0.0
    assert_follows(after, expected)
    uniform = np.array([0, 1, 1, 1]) / 3
    assert_rejects(after, uniform)


def test_an_expert_that_can_only_repeat_itself_takes_any_other_item() -> None:
    learner = OrderedExperts(5, 3, rate=50.0, rng=SeededSource(1))
    users = Users(NoisyOr(), np.tile([[1.0, 0.0, 0.0, 0.0, 0.0]], (20, 1)))
    learner.replay(users)
    inside(learner)._experts.classes.totals[:, 1] = inside(learner)._experts.classes.totals[:, 0]
    inside(learner)._experts.best[1] = inside(learner)._experts.best[0]
    inside(learner).restored()  # the second expert now wants nothing but item 0 as well
    slates = np.array([learner.choose().slate for _ in range(3_000)])
    assert (slates[:, 0] == 0).all()
    assert_follows(slates[:, 1] - 1, np.full(4, 0.25))
    assert_rejects(slates[:, 1] - 1, np.array([0.3, 0.25, 0.25, 0.2]))


def test_answers_out_of_order_teach_the_same() -> None:
    family, n_items, matrices = next(specimens("noisy-or"))
    users = Users(family, tuple(np.asarray(matrix) for matrix in matrices), n_items)
    forward, backward = (OrderedExperts(n_items, 2, rng=SeededSource(5)) for _ in range(2))
    for learner, order in ((forward, [0, 1, 2, 3]), (backward, [3, 1, 0, 2])):
        open_ = [learner.choose() for _ in range(4)]
        for t in order:
            learner.observe(open_[t], users[t])
    np.testing.assert_array_equal(
        inside(forward)._experts.classes.totals, inside(backward)._experts.classes.totals
    )
    np.testing.assert_array_equal(
        inside(forward)._experts.classes.rate, inside(backward)._experts.classes.rate
    )
