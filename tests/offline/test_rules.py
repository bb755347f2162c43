"""Rules of slates against all slates of a few items, and the door that refuses what does not fit together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import NoisyOr, SlateRules, Users
from diminuendo.errors import InvalidInput
from diminuendo.offline.fitting import FittedRules
from diminuendo.offline.rules import as_rules
from diminuendo.types import EMPTY_SLOT

N_ITEMS, SLOTS = 7, 3


def world(seed: int) -> Users:
    chance = np.random.default_rng(seed)
    return Users(NoisyOr(), np.round(chance.random((6, N_ITEMS)) * (chance.random((6, N_ITEMS)) < 0.6), 3))


def some_rules(seed: int) -> SlateRules:
    """Of all kinds, and some of none."""
    chance = np.random.default_rng(100 + seed)
    pinned = {int(chance.integers(SLOTS)): int(chance.integers(N_ITEMS))} if seed % 2 else {}
    order = chance.permutation(N_ITEMS).tolist()
    caps = [(order[:4], 2), (order[:2], 1), (order[4:6], int(chance.integers(2)))][: seed % 4]
    eligible = [chance.random(N_ITEMS) < 0.6 for _ in range(SLOTS)] if seed % 3 == 0 else None
    for slot, row in enumerate(eligible or ()):
        row[pinned.get(slot, order[6])] = True
    caps = [(items, max(most, sum(item in items for item in pinned.values()))) for items, most in caps]
    return SlateRules(eligible=eligible, pinned=pinned, caps=caps, may_be_empty=True)


def allowed(rules: SlateRules, row: tuple[int, ...]) -> bool:
    """By the words of the rules; -1 is an empty slot."""
    shown = [item for item in row if item >= 0]
    return (
        len(set(shown)) == len(shown)
        and all(sum(item in items for item in shown) <= most for items, most in rules.caps)
        and all(row[slot] == item for slot, item in rules.pinned)
        and (
            rules.eligible is None
            or all(item < 0 or item in rules.eligible[slot] for slot, item in enumerate(row))
        )
    )


def all_rows(rules: SlateRules) -> Iterator[tuple[int, ...]]:
    for row in itertools.product(range(-1, N_ITEMS), repeat=SLOTS):
        if allowed(rules, row):
            yield row


def worth(users: Users, row: tuple[int, ...]) -> float:
    return float(users.values([item for item in row if item >= 0]).mean())


@pytest.mark.parametrize("seed", range(36))
def test_greedy_takes_the_best_that_every_step_leaves(seed: int) -> None:
    """Against steps that try every slot and item by the words of the rules."""
    users, rules = world(seed), some_rules(seed)
    result = dim.greedy(users, SLOTS, rules=rules)
    row = [EMPTY_SLOT] * SLOTS
    for slot, item in rules.pinned:
        row[slot] = item
    while True:
        steps = [
            ((*row[:slot], item, *row[slot + 1 :]), slot, item)
            for slot in range(SLOTS)
            for item in range(N_ITEMS)
            if row[slot] == EMPTY_SLOT
        ]
        steps = [step for step in steps if allowed(rules, step[0])]
        if not steps:
            break
        _, slot, item = max(steps, key=lambda step: (round(worth(users, step[0]), 12), -step[2], -step[1]))
        row[slot] = item
    assert result.slate == tuple(item for item in row if item >= 0)
    assert result.value == pytest.approx(worth(users, tuple(row)))
    assert sum(result.gains) == pytest.approx(result.value)


@pytest.mark.parametrize("seed", range(36))
def test_greedy_keeps_its_share_of_the_best(seed: int) -> None:
    users, rules = world(seed), some_rules(seed)
    best = max(worth(users, row) for row in all_rows(rules))
    share = 1 / 3 if rules.caps and rules.eligible is not None else 1 / 2
    assert dim.greedy(users, SLOTS, rules=rules).value >= share * best - 1e-12


@pytest.mark.parametrize("seed", range(36))
def test_the_best_slate_by_rules(seed: int) -> None:
    users, rules = world(seed), some_rules(seed)
    if rules.eligible is not None:
        with pytest.raises(InvalidInput, match="items of their own"):
            dim.optimum(users, SLOTS, rules=rules)
        return
    result = dim.optimum(users, SLOTS, rules=rules)
    assert result.lower == pytest.approx(max(worth(users, row) for row in all_rows(rules)))
    assert result.proven


@pytest.mark.parametrize("seed", range(36))
def test_how_many_slots_can_be_filled(seed: int) -> None:
    rules = some_rules(seed)
    most = max(sum(item >= 0 for item in row) for row in all_rows(rules))
    strict = {name: value for name, value in rules.config().items() if name != "may_be_empty"}
    strict["pinned"] = dict(rules.pinned)
    if most == SLOTS:
        SlateRules(**strict).check(N_ITEMS, SLOTS)
    else:
        with pytest.raises(InvalidInput, match=f"at most {most} of {SLOTS} slots"):
            SlateRules(**strict).check(N_ITEMS, SLOTS)


@pytest.mark.parametrize("seed", range(24))
def test_several_slates_at_once_and_one_by_one(seed: int) -> None:
    """`pick_each` is `pick`, row by row; `rivals` and `kept` by the words of the rules."""
    rules, chance = some_rules(seed), np.random.default_rng(seed)
    fitted = FittedRules(rules, N_ITEMS, SLOTS)
    available = chance.random(N_ITEMS) < 0.8
    there = SlateRules(
        eligible=rules.eligible,
        pinned={slot: item for slot, item in rules.pinned if available[item]},
        caps=rules.caps,
        may_be_empty=True,
    )
    rows = [row for row in all_rows(there) if all(item < 0 or available[item] for item in row)]
    reserved = {item for _, item in rules.pinned}
    slates = np.array([rows[at] for at in chance.integers(len(rows), size=9)], dtype=np.int32)
    gains = chance.random((len(slates), N_ITEMS))
    each = fitted.pick_each(gains, slates, available)
    for mine, slate, result in zip(gains, slates, each.tolist(), strict=True):
        assert tuple(result) == (fitted.pick(mine, slate, available) or (EMPTY_SLOT, EMPTY_SLOT))
        np.testing.assert_array_equal(fitted.kept(slate, available), slate)
        for slot in range(SLOTS):
            fits = [
                item
                for item in range(N_ITEMS)
                if available[item]
                and item not in slate
                and item not in reserved
                and allowed(there, (*slate[:slot].tolist(), item, *slate[slot + 1 :].tolist()))
            ]
            assert fitted.rivals(slate, slot, available).tolist() == fits


def test_what_stays_when_a_pinned_item_is_back() -> None:
    fitted = FittedRules(SlateRules(pinned=[0], caps=[([0, 1, 2], 2), ([0, 1], 1)]), 6, 4)
    everything = np.ones(6, dtype=np.bool_)
    slate = np.array([3, 2, 1, 4], dtype=np.int32)
    assert fitted.kept(slate, everything).tolist() == [-1, 2, -1, 4], "1 is one too many beside 0, 2 is not"
    assert fitted.kept(slate, everything & (np.arange(6) != 0)).tolist() == slate.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"caps": [([0, 1, 2], 1), ([2, 3], 1)]}, "caps 0 and 1 overlap"),
        ({"caps": [([0, 1], 1), ([4], 1), ([1, 2, 3], 2)]}, "caps 0 and 2 overlap"),
        ({"caps": [([0, 1, 2, 3], 3), ([0, 1], 1)], "pinned": [0, 1]}, "2 pinned items .* at most 1"),
        ({"caps": [([], 1)]}, "Cap 0 names no item"),
        ({"caps": [([0], -1)]}, "the most of cap 0"),
        ({"caps": [3]}, "A cap is some items"),
        ({"caps": [([9], 1)]}, "item of a cap must be a whole number from 0 to 6"),
        ({"caps": [(range(7), 2)]}, "at most 2 of 3 slots"),
        ({"pinned": [1, 1]}, "pinned to one slot only"),
        ({"pinned": {3: 1}}, "pinned slot must be"),
        ({"pinned": [7]}, "pinned item must be"),
        ({"pinned": 4}, "pinned must be items"),
        (
            {"pinned": [2], "eligible": [[0, 1], [3], [4]]},
            "Item 2 is pinned to slot 0, which may not show it",
        ),
        ({"eligible": [[0], [1]]}, "for each of 3 slots"),
        ({"eligible": [[0], [1], []]}, "Slot 2 has no eligible item"),
        ({"eligible": [[0], [0], [1]]}, "at most 2 of 3 slots"),
    ],
)
def test_rules_that_do_not_fit_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        SlateRules(**given).check(N_ITEMS, SLOTS)


def test_rules_are_written_down_and_read_back() -> None:
    rules = SlateRules(eligible=[range(3)], pinned={0: 2}, caps=[({2, 1}, 1)], may_be_empty=True)
    again = as_rules(json.loads(json.dumps(rules.config())))
    assert again == rules
    assert hash(again) == hash(rules)
    assert as_rules(SlateRules()) is None, "no rule at all"
    with pytest.raises(InvalidInput, match="rules must be SlateRules"):
        as_rules([1, 2])


def test_what_greedy_does_not_do_by_rules() -> None:
    with pytest.raises(InvalidInput, match="branch"):
        dim.optimum(world(0), SLOTS, rules=SlateRules(pinned=[1]), method="milp")
