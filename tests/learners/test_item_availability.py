"""What may be shown where: catalogues that change, and slots with items of their own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import diminuendo as dim
from diminuendo import NoisyOr, SeededSource, SlateRules, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.items import NOT_YET, ItemAvailability
from diminuendo.learners.base.rules.draw import draw_from_lists
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.randomness.words import PublicSource
from diminuendo.streams import taste_groups
from diminuendo.types import EMPTY_SLOT, Items
from tests.kit.statistics import ALPHA
from tests.learners.test_overlap_greedy import memory_of, policy_of

MADE: dict[str, Any] = {"epsilon": 1e4, "delta": 1e-6}


def slots_of(*eligible: list[int]) -> SlateRules:
    """Slots with items of their own, which may stay empty."""
    return SlateRules(eligible=eligible, may_be_empty=True)


def drawn(items: ItemAvailability, rounds: int, seed: int = 1) -> Items:
    slates = np.full((rounds, items.slots), EMPTY_SLOT, dtype=np.int32)
    rng, done = PublicSource(SeededSource(seed)), 0
    lists, counts = items.lists(), np.zeros(len(items.rules.caps), dtype=np.int64)
    while (done := int(draw_from_lists(lists, slates, done, counts, rng.view))) < rounds:
        rng.resume()
    return slates


def test_random_slates_keep_to_what_is_available() -> None:
    """Slot by slot, each item that is left equally likely."""
    items = ItemAvailability(6, 2, [5], slots_of([0, 1, 2, 5], [2, 3]))
    items.retire([1], 0)
    slates = drawn(items, 40_000)
    allowed = {(0, 2): 0.25, (0, 3): 0.25, (2, 3): 0.5}
    counts = {pair: int((slates == pair).all(axis=1).sum()) for pair in allowed}
    assert sum(counts.values()) == len(slates)
    assert fits(counts, allowed) > ALPHA
    assert fits(counts, dict.fromkeys(allowed, 1 / 3)) < ALPHA, "another law would be noticed"


def fits(counts: dict[Any, int], law: dict[Any, float]) -> float:
    total = sum(counts.values())
    return float(
        stats.chisquare([counts[key] for key in law], [total * share for share in law.values()]).pvalue
    )


def test_a_slot_for_which_nothing_is_left_stays_empty() -> None:
    items = ItemAvailability(4, 3, rules=slots_of([0], [0], [0, 1]))
    slates = drawn(items, 50)
    assert (slates == [0, EMPTY_SLOT, 1]).all()


def test_the_best_pair_of_slot_and_item() -> None:
    items = ItemAvailability(4, 2, rules=slots_of([0, 1], [1, 2]))
    slate = np.full(2, EMPTY_SLOT, dtype=np.int32)
    assert items.pick(np.array([1.0, 5.0, 2.0, 9.0]), slate) in ((0, 1), (1, 1))
    slate[0] = 1
    assert items.pick(np.array([1.0, 5.0, 2.0, 9.0]), slate) == (1, 2)
    items.retire([2], 0)
    assert items.pick(np.array([1.0, 5.0, 2.0, 9.0]), slate) is None
    items.appear([2], 3)
    assert items.first_batch[2] == 0, "it had been there before"


def test_slates_keep_to_their_slots_and_are_nearly_the_best() -> None:
    users = taste_groups(3_000, 12, groups=6, items_per_group=4, seed=4)
    eligible = [range(4), range(4, 8), range(8, 12)]
    learner = OverlapGreedy(12, 3, horizon=3_000, eligible=eligible, **MADE, rng=SeededSource(1))
    slates = learner.replay(users)
    for slot, row in enumerate(eligible):
        assert np.isin(slates[:, slot], list(row)).all()
    delay = users[2_000:]
    best = max(delay.values(list(slate)).mean() for slate in itertools.product(*eligible))
    assert delay.values(slates[2_000:]).mean() > 0.97 * best
    again = OverlapGreedy.restore(learner.snapshot(), rng=SeededSource(2))
    assert again.parameters == learner.parameters


def test_items_appear_and_retire() -> None:
    """The best item appears at half time, and the best of the others retires then."""
    random = np.random.default_rng(3)
    wants = (random.random((8_000, 10)) < np.linspace(0.1, 0.55, 10)).astype(float)
    users = Users(NoisyOr(), wants)
    learner = OverlapGreedy(10, 2, horizon=8_000, absent=[9], **MADE, rng=SeededSource(1))
    first = learner.replay(users[:4_000])
    assert not (first == 9).any()
    assert set(first[-1]) == {7, 8}
    learner.retire([8])
    assert 8 not in learner.choose().slate
    learner.appear([9])
    second = learner.replay(users[4_001:])
    assert not (second == 8).any()
    assert set(second[-1]) == {7, 9}, "judged by those who came since, not by all"
    arrived = int(np.argmax((second == 9).any(axis=1)))
    assert arrived < 2_500
    learner = OverlapGreedy.restore(learner.snapshot(), rng=SeededSource(5))
    policy_of(learner).items.appear([8], 3)
    assert policy_of(learner).items.available.all()


def test_users_are_not_asked_about_items_that_are_not_there() -> None:
    """What somebody says about an absent item is nowhere, whether she came one by one or with others."""
    users = Users(NoisyOr(), np.ones((60, 3)))
    made = [OverlapGreedy(3, 1, horizon=60, absent=[2], **MADE, rng=SeededSource(1)) for _ in range(2)]
    made[0].replay(users)
    for user in users:
        made[1].observe(made[1].choose(), user)
    for learner in made:
        asked = memory_of(learner)._participants(np.full(60, 5), np.ones(3))
        (singletons,) = asked.sums((), np.zeros(1, dtype=np.int64), 1)
        assert (singletons > 0).tolist() == [True, True, False]
        assert policy_of(learner).items.first_batch[2] == NOT_YET


def test_a_prior_is_shown_first_and_overcome() -> None:
    users = taste_groups(2_000, 10, groups=3, items_per_group=4, seed=4)
    prior = np.linspace(0.9, 0.0, 10)
    learner = OverlapGreedy(10, 3, horizon=2_000, prior=prior, **MADE, rng=SeededSource(1))
    slates = learner.replay(users)
    assert set(slates[0]) == {0, 1, 2}
    assert (slates[: policy_of(learner).plan.schedule.ends[0]] == slates[0]).all()
    assert users.values(slates)[1_000:].mean() > 0.95 * dim.greedy(users[1_000:], 3).value
    again = OverlapGreedy.restore(learner.snapshot())
    assert again.parameters["prior"] == prior.tolist()
    stubborn = OverlapGreedy(
        10, 3, horizon=2_000, prior=prior, prior_users=10**9, **MADE, rng=SeededSource(1)
    )
    assert (stubborn.replay(users) == 0).any(axis=1).all()
    assert not (slates[1_000:] == 0).any(axis=1).all(), "with a modest prior it was given up"


def test_nobody_knows_how_many_will_come() -> None:
    users = dim.msweb()
    learner = OverlapGreedy(users.n_items, 5, horizon=None, epsilon=1.0, delta=1e-6, rng=SeededSource(1))
    slates = learner.replay(users)
    assert users.values(slates).mean() > 0.97 * dim.greedy(users, 5).value
    assert learner.guarantee.epsilon <= 1.0
    again = OverlapGreedy.restore(learner.snapshot())
    assert again.parameters["horizon"] is None
    np.testing.assert_array_equal(policy_of(again).plan.weights, policy_of(learner).plan.weights)


def test_doors() -> None:
    with pytest.raises(InvalidInput, match="2 slots"):
        ItemAvailability(4, 2, rules=slots_of([0]))
    with pytest.raises(InvalidInput, match="no eligible item"):
        ItemAvailability(4, 2, rules=slots_of([0], []))
    with pytest.raises(InvalidInput, match="eligible item"):
        ItemAvailability(4, 2, rules=slots_of([0], [4]))
    with pytest.raises(InvalidInput, match="item"):
        ItemAvailability(4, 2, absent=[4])
    with pytest.raises(InvalidInput, match="prior"):
        OverlapGreedy(4, 2, horizon=9, prior=[0.1, 0.2], **MADE)
    with pytest.raises(InvalidInput, match="prior"):
        OverlapGreedy(4, 2, horizon=9, prior=[0.1, 0.2, 3.0, np.nan], **MADE)
