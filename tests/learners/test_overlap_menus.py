"""Menus of overlap learners: whoever holds one, and public coins, shows what the learner shows; and what all costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Menu, OneSlate, RandomFromLists, RandomSlates
from diminuendo.learners.overlap.policy import REWARDS, WISHES
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.privacy.events import Composed
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import PublicSource
from diminuendo.streams import taste_groups
from diminuendo.types import EMPTY_SLOT, Items
from tests.kit.menus import read_menu
from tests.learners.test_overlap_greedy import BUDGET, policy_of

MADE: dict[str, Any] = {"horizon": 300, "epsilon": 1.0, "delta": 1e-6}
USERS = taste_groups(300, 12, groups=4, items_per_group=5, seed=1)


def menu_of(learner: Learner) -> Menu:
    assert learner.menu is not None
    return learner.menu


def remote_rounds(written: bytes, seed: int, rounds: int) -> tuple[Items, list[float | None]]:
    """The slates of the menu's first rounds, drawn by a process that has the menu and the coins, and their chances."""
    menu, source = read_menu(written), SeededSource(seed)
    source.public(menu.words)
    rng = PublicSource(source)
    chooser = menu.chooser()
    slates = np.full((rounds, menu.slots), EMPTY_SLOT, dtype=np.int32)
    probes, done = np.zeros((rounds, 3), dtype=np.int32), 0
    while done < rounds:
        done += chooser.draw(menu.first + done, slates[done:], probes[done:], rng.view)
        rng.resume()
    return slates, [chooser.propensity(menu.first + at, row) for at, row in enumerate(slates)]


@pytest.mark.parametrize(
    ("more", "first"),
    [
        ({}, RandomSlates),
        ({"absent": [0, 1, 2]}, RandomFromLists),
        ({"eligible": [range(6), range(6, 12), range(12)]}, RandomFromLists),
        ({"prior": [0.3] * 6 + [0.2] * 6}, OneSlate),
    ],
)
def test_whoever_holds_the_menu_shows_what_the_learner_shows(more: dict[str, Any], first: type[Menu]) -> None:
    """Batch by batch to the end, with an item that comes and one that goes in the midst of the first."""
    learner = OverlapGreedy(12, 3, rng=SeededSource(4), **MADE, **more)
    ends = policy_of(learner).plan.schedule.ends
    assert isinstance(learner.menu, first)
    assert (menu_of(learner).first, menu_of(learner).end) == (0, ends[0])
    done = 0
    for stop in (3, 5, *ends):
        if done == 3:
            learner.appear([1])
        if done == 5:
            learner.retire([7])
        decision = learner.choose()  # what is due is released first
        row = learner.row_of(decision)
        learner.observe(decision, USERS[done])
        menu = menu_of(learner)
        assert menu.first == done
        assert menu.end == next(end for end in ends if end > done)
        assert read_menu(menu.to_bytes()).to_bytes() == menu.to_bytes()
        slates = np.vstack([row, learner.replay(USERS[done + 1 : stop])])
        result, chances = remote_rounds(menu.to_bytes(), 4, stop - done)
        np.testing.assert_array_equal(result, slates)
        assert chances[0] == decision.propensity
        assert done < 5 or not (slates == 7).any()
        done = stop
    assert done == 300
    assert isinstance(learner.menu, OneSlate)


def test_a_learner_that_goes_on_from_a_snapshot_has_the_menu_of_its_items() -> None:
    learner = OverlapGreedy(12, 3, rng=SeededSource(4), absent=[0, 1], **MADE)
    learner.replay(USERS[:4])
    learner.appear([0])
    menu = menu_of(OverlapGreedy.restore(learner.snapshot(), rng=SeededSource(5)))
    now = menu_of(learner)
    assert isinstance(menu, RandomFromLists)
    assert isinstance(now, RandomFromLists)
    assert (menu.first, menu.end, menu.words) == (4, now.end, 0)
    assert menu.lists is not None
    assert now.lists is not None
    np.testing.assert_array_equal(menu.lists.items, now.lists.items)
    assert 0 in menu.lists.items.tolist()
    assert 1 not in menu.lists.items.tolist()


# What it costs.


@pytest.mark.parametrize("n_items", [1, 12])
def test_what_is_promised_is_what_is_charged(n_items: int) -> None:
    """While tastes do not change: line by line the very events, not only nearly."""
    ledger = Ledger(BUDGET)
    learner = OverlapGreedy(n_items, min(3, n_items), ledger=ledger, rng=SeededSource(3), **MADE)
    groups = {"groups": 4, "items_per_group": 5} if n_items > 1 else {"groups": 1, "items_per_group": 1}
    learner.replay(taste_groups(300, n_items, seed=1, **groups))
    policy = policy_of(learner)
    assert policy._position.memory_begins == 0
    assert Composed(tuple(charge.event for charge in ledger.charges)) == policy.events
    assert ledger.spent() == learner.guarantee.epsilon


def test_purposes_together_cost_what_the_run_costs() -> None:
    policy = policy_of(OverlapGreedy(12, 3, **MADE))
    counting = policy.budget.counting
    whole, parts = counting.tally(policy.events), policy.purposes()
    assert list(parts) == [WISHES, REWARDS]
    result = counting.tally(Composed(tuple(parts.values())))
    assert result.common == whole.common
    assert result.columns.keys() == whole.columns.keys()
    for batch, cost in whole.columns.items():
        assert abs(result.columns[batch] / cost - 1) < 1e-12, "each purpose is rounded up by itself"
