"""Ranked clicks: what a click is worth, that clicks measure what items add, and what it earns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import NoisyOr, People, SeededCoins, Setting
from diminuendo.errors import WrongFeedback
from diminuendo.learners.probing.schedule import PAYOFF_TICKS
from diminuendo.learners.probing.variants import OpenRankedClicks, RankedClicks
from diminuendo.randomness import SecretRandomness
from diminuendo.streams import taste_groups
from diminuendo.types import Floats
from tests.kit.statistics import assert_follows, assert_rejects
from tests.learners.test_blocks import opened


def test_only_the_item_that_was_put_in_counts_and_only_where_it_was_put() -> None:
    learner = opened(OpenRankedClicks, 4, 3, 2, 12)
    for _ in range(12):
        decision = learner.choose()
        slot, item = decision.probe
        own = decision.slate[slot] == item
        before = learner.policy._cells._cells.entries().copy()
        for clicked in (None, *range(3)):
            row, probe = np.array(decision.slate), np.array([slot, item, 0])
            answer = learner.policy.reader(learner, decision, clicked)
            assert learner.policy._way.worth.of(row, probe, answer) == float(own and clicked == slot)
        learner.observe(decision, slot)
        added = learner.policy._cells._cells.entries() - before
        assert added.sum() == added[slot * 4 + item] == own * PAYOFF_TICKS


@pytest.mark.slow
def test_clicks_measure_what_items_add() -> None:
    """Of people who click by chance: not a twentieth less, nor, behind another item, what an item is worth alone."""
    n, k, length, blocks = 3, 2, 6, 4_000
    likes = np.array([0.6, 0.5, 0.2])
    people = People(NoisyOr(), np.tile(likes, (length * blocks, 1))).clicking(seed=3)
    learner, cells = opened(OpenRankedClicks, n, k, blocks, length), []
    original = learner.policy._cells.release

    def release(secret: SecretRandomness) -> Floats:
        cells.append(learner.policy._cells._cells.entries().copy() // PAYOFF_TICKS)
        released: Floats = original(secret)
        return released

    learner.policy._cells.release = release
    learner.replay(people)
    for slot, item in itertools.product(range(k), range(n)):
        others = [other for other in range(n) if other != item]
        adds = likes[item] if slot == 0 else float(np.sum(likes[item] * (1 - likes[others]))) / n
        found = np.array(cells)[:, slot * n + item]
        assert_follows(found, np.array([1 - adds, adds]))
        wrong = likes[item] - (0.05 if slot == 0 else 0.0)
        assert_rejects(found, np.array([1 - wrong, wrong]))


def test_clicks_at_the_door() -> None:
    learner = RankedClicks(6, 3, horizon=100, epsilon=1.0, delta=1e-6)
    for wrong in (3, -1, 0.5, True, "1", [1]):
        with pytest.raises(WrongFeedback, match="from 0 to 2, or None"):
            learner.observe(learner.choose(), wrong)
    learner.observe(learner.choose(), None)
    learner.observe(learner.choose(), np.int64(2))


@pytest.mark.slow
def test_it_earns_far_more_than_random_slates() -> None:
    """Three seeds gave .833 of greedy, with .006 for chance; random slates .488. Without noise .855."""
    people, k = taste_groups(300_000, 50), 5
    best, found = dim.greedy(people, k).value, []
    for seed in range(2):
        setting = Setting(50, k, len(people), "click", 1.0)
        learner = RankedClicks.for_setting(setting, coins=SeededCoins(seed))
        found.append(people.values(learner.replay(people)).mean() / best)
    assert np.mean(found) > 0.80
