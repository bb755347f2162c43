"""Propensities are the law of slates: over all slates they add up to 1, and slates come as often as they say.

A learner is brought into the midst of a run. From there one round is drawn again and again, always from the same public
past, and counted; the wrong laws that must be told apart are those of mistakes that would be easy to make.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource, Setting
from diminuendo.learners import LEARNERS, Learner
from diminuendo.learners.base.decisions import shown
from diminuendo.learners.base.menu import SlatesFromPoint, point_ends
from diminuendo.randomness.words import PublicSource
from diminuendo.streams.synthetic import taste_groups
from diminuendo.types import EMPTY_SLOT, FEEDBACKS, Floats, Items, Slate
from tests.kit.statistics import assert_follows, assert_rejects

ITEMS, SLOTS, DRAWS = 4, 3, 20_000
SLATES: list[Slate] = [
    slate for length in range(SLOTS + 1) for slate in itertools.permutations(range(ITEMS), length)
]
"""Everything that can be shown."""
PUBLISHED = ("random", "lazy-hedge")
"""Learners that draw a slate anew for each user, by public chances."""


def row_of(slate: Slate) -> Items:
    return np.array([*slate, *[EMPTY_SLOT] * (SLOTS - len(slate))], dtype=np.int32)


def in_the_midst(name: str, users: int, epsilon: float = 50.0) -> Any:
    """A learner that has seen so many users."""
    made = LEARNERS[name]
    feedback = next(kind for kind in FEEDBACKS if kind in made.reads)
    setting = Setting(ITEMS, SLOTS, 400, feedback, epsilon)
    learner = made.for_setting(setting, rng=SeededSource(1))
    learner.replay(taste_groups(users, ITEMS, groups=3, items_per_group=2))
    learner._release_what_is_due()
    return learner


def law(learner: Learner) -> Floats:
    """What the learner says of every slate. Chances of one round are all asked for after the same draw."""
    row, probe = row_of(()), np.full(3, -1, dtype=np.int32)
    while not learner.policy.draw(row, probe):
        learner.policy.resume()
    result = [learner.policy.propensity(row_of(slate)) if len(slate) == SLOTS else 0.0 for slate in SLATES]
    return np.array(result, dtype=float)


def drawn(learner: Learner) -> list[int]:
    """One round, again and again."""
    numbers = {slate: number for number, slate in enumerate(SLATES)}
    result = []
    row, probe = row_of(()), np.full(3, -1, dtype=np.int32)
    for _ in range(DRAWS):
        while not learner.policy.draw(row, probe):
            learner.policy.resume()
        result.append(numbers[shown(row)])
    return result


def uneven(learner: Any) -> None:
    """Move the law away from uniform by hand, so that mistakes show: as if this had been published."""
    rng, policy = np.random.default_rng(5), learner.policy
    if learner.name == "random":
        return
    ends = np.zeros((ITEMS + 1, SLOTS), dtype=np.int64)
    np.cumsum(rng.integers(1, 100, (SLOTS, ITEMS)), axis=1, out=ends[1:].T)
    policy._chooser = replace(learner.menu, ends=ends).chooser()


@pytest.mark.parametrize("users", [2, 37])
@pytest.mark.parametrize("name", PUBLISHED)
def test_slates_come_as_often_as_they_say(name: str, users: int) -> None:
    learner = in_the_midst(name, users)
    uneven(learner)
    said = law(learner)
    # One slate's chance is made of a few dozen products of floats, each right to 2^-53.
    assert abs(said.sum() - 1) < 1e-12
    draws = drawn(learner)
    assert_follows(draws, said)
    nearby = np.roll(said[said > 0], 1)
    if name != "random":
        wrong = np.zeros(len(said))
        wrong[said > 0] = 0.9 * said[said > 0] + 0.1 * nearby
        assert_rejects(draws, wrong)
    else:
        assert_rejects(draws, np.full(len(said), 1 / len(said)))


def test_slates_from_a_point_come_as_often_as_they_say() -> None:
    """Pivotal rounding, counted; and the chances of another point are told apart."""
    points = np.array([0.9, 0.35, 0.95, 0.8]), np.array([0.9, 0.45, 0.85, 0.8])
    chooser, other = (
        SlatesFromPoint(ITEMS, SLOTS, 0, None, 0, point_ends(point, SLOTS)).chooser() for point in points
    )
    rng, slates, done = PublicSource(SeededSource(1)), np.zeros((DRAWS, SLOTS), dtype=np.int32), 0
    while (done := done + chooser.draw(done, slates[done:], slates[done:], rng.view)) < DRAWS:
        rng.resume()
    whole = [slate for slate in SLATES if len(slate) == SLOTS]
    said, wrong = (
        np.array([each.propensity(0, row_of(slate)) for slate in whole]) for each in (chooser, other)
    )
    assert abs(said.sum() - 1) < 1e-12
    draws = [whole.index(shown(row)) for row in slates]
    assert_follows(draws, said)
    assert_rejects(draws, wrong)


@pytest.mark.parametrize("name", PUBLISHED)
def test_decisions_carry_them(name: str) -> None:
    """Asked through the front door: the chance of the slate that is shown, from the state before it was drawn."""
    learner = in_the_midst(name, 40)
    for _ in range(60):
        learner._release_what_is_due()
        expected = dict(zip(SLATES, law(learner), strict=True))
        decision = learner.choose()
        assert decision.propensity == pytest.approx(expected[decision.slate], rel=1e-12)


@pytest.mark.parametrize("name", ["overlap-greedy", "epoch-greedy"])
def test_one_slate_for_everybody_is_certain(name: str) -> None:
    """Random until the first release; from then on each spell has one slate, shown to all of it."""
    learner = in_the_midst(name, 1, epsilon=1.0)
    decisions = [learner.choose() for _ in range(300)]
    uniform = {decision.propensity for decision in decisions if decision.propensity != 1}
    assert uniform == {1 / 24}
    certain = [decision.propensity == 1 for decision in decisions]
    assert certain == sorted(certain)
    slates = [decision.slate for decision in decisions if decision.propensity == 1]
    spells = [slate for slate, _ in itertools.groupby(slates)]
    assert len(spells) < 20 < len(slates)
