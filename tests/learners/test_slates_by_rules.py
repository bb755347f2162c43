"""Slates of reward and click learners: the best by the rules, without what is gone, and burned where one excludes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import Contexts, Learner, NoisyOr, SeededSource, SlateRules, Users
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.likelihood import Observations
from diminuendo.learners.slates.model import Draws, chances
from diminuendo.learners.slates.posterior import SlatePosterior
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.types import EMPTY_SLOT, Floats, Items
from tests.kit.slow import rows_mostly_slow
from tests.learners.test_slate_contexts import quick_splits
from tests.learners.test_slate_policy import small_blocks

N_ITEMS, SLOTS = 9, 3
RULES = {
    "none": SlateRules(),
    "caps": SlateRules(caps=[([0, 1, 2, 3], 1), ([0, 1], 1), ([8], 0)]),
    "pins": SlateRules(pinned={1: 4}),
    "slots": SlateRules(eligible=[range(5), range(3, 9), range(9)], may_be_empty=True),
    "all": SlateRules(eligible=[range(5), range(3, 9), range(9)], pinned={2: 7}, caps=[([0, 1, 2, 7], 2)]),
    "empty": SlateRules(caps=[(range(7), 1), ([7, 8], 1)], may_be_empty=True),
}


def believed(seed: int, n_items: int = N_ITEMS, slots: int = SLOTS) -> tuple[Draws, Observations]:
    """Draws in which some pairs overlap, which were shown together."""
    chance, known = np.random.default_rng(seed), Observations(n_items, slots)
    for _ in range(4):
        slate = chance.permutation(n_items)[:slots].astype(np.int32)
        known.add(slate, slots, 10, np.array([3.0]), 1.0)
    draws = Draws(chance.gamma(0.6, 0.4, (5, n_items)) + 1e-6, chance.uniform(-0.3, 0.95, (5, known.n_pairs)))
    return draws, known


def worth(slate: Any, draws: Draws, known: Observations) -> float:
    shown = np.array([item for item in slate if item != EMPTY_SLOT], dtype=np.int32)
    out = np.zeros((5, max(1, len(shown))))
    chances(shown, draws, np.arange(5), known.neighbours(), out)
    return float(out[:, -1].sum())


def allowed(slate: Any, rules: SlateRules) -> bool:
    """By the words of the rules."""
    shown = [item for item in slate if item != EMPTY_SLOT]
    return (
        len(set(shown)) == len(shown)
        and all(slate[slot] == item for slot, item in rules.pinned)
        and all(sum(item in items for item in shown) <= most for items, most in rules.caps)
        and all(
            slate[slot] in row or slate[slot] == EMPTY_SLOT for slot, row in enumerate(rules.eligible or ())
        )
    )


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_the_best_by_rules_is_greedy_then_no_exchange_helps(name: str, seed: int) -> None:
    """Against all slates that differ in one slot; and greedy, from nothing, takes the best next item."""
    rules, (draws, known) = RULES[name], believed(seed)
    builder = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=rules))
    greedy = builder.best(draws, np.arange(5), known.neighbours(), 0)
    slate = builder.best(draws, np.arange(5), known.neighbours(), 30)
    result = worth(slate, draws, known)
    assert allowed(greedy, rules)
    assert allowed(slate, rules)
    assert result >= worth(greedy, draws, known) - 1e-9
    pinned = [slot for slot, _ in rules.pinned]
    for slot, item in itertools.product(range(SLOTS), range(N_ITEMS)):
        other = slate.copy()
        other[slot] = item
        if slate[slot] != EMPTY_SLOT and slot not in pinned and allowed(other, rules):
            assert worth(other, draws, known) <= result * (1 + 1e-8)
    firsts = [
        item for item in range(N_ITEMS) if allowed([item, *[EMPTY_SLOT] * 2], SlateRules(caps=rules.caps))
    ]
    if not rules.pinned and rules.eligible is None:
        assert greedy[0] == max(firsts, key=lambda item: worth([item], draws, known))


def test_by_rules_that_forbid_nothing_the_search_is_the_compiled_one() -> None:
    for seed in range(20):
        draws, known = believed(seed)
        slates = [
            SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=rules)).best(
                draws, np.arange(5), known.neighbours(), 3
            )
            for rules in (SlateRules(), SlateRules(caps=[(range(N_ITEMS), SLOTS)]))
        ]
        np.testing.assert_array_equal(slates[0], slates[1])


@pytest.mark.parametrize("name", RULES)
def test_random_slates_show_everything_that_may_be_shown(name: str) -> None:
    rules = RULES[name]
    builder = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, absent=[6], rules=rules))
    slates = builder.random(np.random.default_rng(3), 100)
    assert all(allowed(slate, rules) for slate in slates.tolist())
    never = {6} | ({8} if name == "caps" else set())
    assert set(slates.ravel().tolist()) - {EMPTY_SLOT} == set(range(N_ITEMS)) - never
    assert len(slates) <= N_ITEMS
    assert len(builder.random(np.random.default_rng(3), 2)) == 2


def test_wanted_items_come_first_as_far_as_they_fit() -> None:
    builder = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=RULES["caps"]))
    assert builder.containing(np.array([1, 2, 8, 5], dtype=np.int32)).tolist() == [1, 5, 4]
    pinned = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=RULES["pins"]))
    assert pinned.containing(np.array([6, 5, 3], dtype=np.int32)).tolist() == [6, 4, 5]
    assert pinned.ordered(np.array([6, 4, 5], dtype=np.int32), np.array([3, 9, 1])).tolist() == [5, 4, 6]
    slots = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=RULES["slots"]))
    assert slots.ordered(np.array([4, 6, 0], dtype=np.int32), np.array([3, 2, 1])).tolist() == [4, 6, 0]
    empty = SlateBuilder(ItemAvailability(N_ITEMS, SLOTS, rules=RULES["empty"]))
    row = np.array([EMPTY_SLOT, 8, 2], dtype=np.int32)
    assert empty.ordered(row, row).tolist() == [2, 8, EMPTY_SLOT]


def test_a_slot_that_is_empty_adds_nothing() -> None:
    """What is published of a slate with two items is as of a slate that has two slots."""
    with_empty, without = Observations(N_ITEMS, SLOTS), Observations(N_ITEMS, SLOTS)
    with_empty.add(np.array([4, 2, EMPTY_SLOT], dtype=np.int32), 0, 20, np.array([6.0, 3.0, 99.0]), 1.0)
    without.add(np.array([4, 2, 7], dtype=np.int32), 0, 20, np.array([6.0, 3.0, 1.0]), 1.0)
    two, three = with_empty.evidence(), without.evidence()
    assert (two.lengths[0], three.lengths[0]) == (2, 3)
    np.testing.assert_array_equal(two.tables[0, :2], three.tables[0, :2])
    assert not two.tables[0, 2].any()
    assert with_empty.shown.tolist() == [0, 0, 20, 0, 20, 0, 0, 0, 0]
    again = Observations(N_ITEMS, SLOTS)
    again.take(with_empty.arrays())
    np.testing.assert_array_equal(again.evidence().tables, two.tables)
    posterior = SlatePosterior(N_ITEMS, SLOTS)
    posterior.sample(4, np.random.default_rng(1))
    full, cut = (posterior.chances(np.array(row, dtype=np.int32)) for row in ([4, 2, 7], [4, 2, EMPTY_SLOT]))
    np.testing.assert_array_equal(full[:, :2], cut[:, :2])
    np.testing.assert_array_equal(cut[:, 1], cut[:, 2])
    assert not posterior.chances(np.full(SLOTS, EMPTY_SLOT, dtype=np.int32)).any()


# Runs.

LEARNING: dict[str, Entry[Any]] = {entry.name: entry for entry in (SlateTotals, SlateClicks)}
ROUNDS = 240
USERS = taste_groups(ROUNDS, N_ITEMS, groups=3, items_per_group=4, seed=2)


def made(name: str, **more: Any) -> Learner:
    options: dict[str, Any] = {"horizon": ROUNDS, "epsilon": 5.0, "rng": SeededSource(4)}
    return LEARNING[name](N_ITEMS, SLOTS, **options | more)


def said(learner: Learner, slate: tuple[int, ...], t: int) -> Any:
    return USERS[t].value(slate) if "bandit" in learner.reads else USERS.click(t, slate)


def cells(learner: Learner) -> Floats:
    policy: Any = learner.policy
    return np.concatenate([policy._counts.exact(histogram) for histogram in range(len(policy._blocks))])


@pytest.mark.parametrize("name", LEARNING)
@pytest.mark.parametrize("contexts", [None, Contexts(kind=2), Contexts(kind=2, private=True)])
def test_who_is_shown_another_slate_uses_her_place_up_and_says_nothing(
    name: str, contexts: Contexts | None
) -> None:
    """Whoever is shown the slate of her place counts, whatever she excludes; places and divisors are the same."""
    learners = [made(name, contexts=contexts, exclusions=True) for _ in range(3)]
    told: dict[str, Any] = {} if contexts is None else {"context": {"kind": "1"}}
    plain = learners[0].choose(**told).slate
    others = [item for item in range(N_ITEMS) if item not in plain]
    decisions = [
        learners[1].choose(exclude=plain[:1], **told), learners[2].choose(exclude=others, **told),
    ]  # fmt: skip
    assert decisions[0].slate != plain
    assert decisions[1].slate == plain
    before = cells(learners[1]).sum()
    for learner, decision in zip(learners[1:], decisions, strict=True):
        learner.observe(decision, 1.0 if name == "slate-totals" else 0)
    assert cells(learners[1]).sum() == before == 0
    assert cells(learners[2]).sum() > 0
    following = [learner.choose(**told).slate for learner in learners]
    assert following[0] == following[1] == following[2]
    policies: list[Any] = [learner.policy for learner in learners]
    sizes = [
        block.users.tolist() if contexts else block.answerable(policy.frame).tolist()
        for policy in policies
        for block in policy._blocks
    ]
    assert all(size == sizes[0] for size in sizes), "what totals are divided by"
    assert [policy.frame.silent for policy in policies] == [[], [], []]


@pytest.mark.parametrize("name", LEARNING)
def test_a_slate_while_a_release_is_waited_for_is_without_what_she_excludes(name: str) -> None:
    learner = made(name, exclusions=True, rules=RULES["pins"])
    assert 4 not in learner.choose(exclude=[4, 0, 1], release=False).slate, "before there is a block"
    learner.release()
    while not learner.due():
        learner.choose()
    decision = learner.choose(exclude=range(5), release=False)
    assert not set(range(5)) & set(decision.slate)
    assert learner.choose(release=False).slate[1] == 4
    assert decision.round in learner.policy.frame.silent


PUBLIC, PRIVATE = Contexts(kind=2), Contexts(kind=2, private=True)


@pytest.mark.parametrize(
    ("name", "contexts"),
    rows_mostly_slow(
        itertools.product(LEARNING, [None, PUBLIC, PRIVATE]),
        [("slate-clicks", None), ("slate-clicks", PUBLIC), ("slate-totals", PRIVATE)],
    ),
)
def test_items_come_and_go(name: str, contexts: Contexts | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, also in the midst of a block; replay and choose agree, and so do snapshots that go on."""
    quick_splits(monkeypatch)
    types = np.arange(ROUNDS) % 2
    learners = [made(name, contexts=contexts, absent=[3], feedback_window=20) for _ in range(2)]
    gone, seen = {3}, np.zeros(N_ITEMS, dtype=np.int64)
    changes: dict[int, tuple[list[int], list[int]]] = {
        0: ([], [0]), 7: ([], [1]), 50: ([3], []), 51: ([], [2, 4]), 90: ([2], [5]), 130: ([0, 1], []), 131: ([], [0]),
    }  # fmt: skip
    stops = [*changes, ROUNDS]
    for start, stop in itertools.pairwise(stops):
        for learner in learners:
            learner.appear(changes[start][0])
            learner.retire(changes[start][1])
        gone = (gone - set(changes[start][0])) | set(changes[start][1])
        here = slice(start, stop)
        delay = np.minimum(
            np.full(stop - start, 3), np.arange(stop - start)[::-1]
        )  # before the items change again
        told: dict[str, Any] = {} if contexts is None else {"contexts": types[here]}
        slates = learners[0].replay(USERS[here], delay=delay, **told)
        assert not set(slates.ravel().tolist()) & gone
        rows, waiting = list[Items](), list[tuple[int, Any, Any]]()
        for t in range(start, stop):
            known: dict[str, Any] = {} if contexts is None else {"context": {"kind": str(types[t])}}
            decision = learners[1].choose(**known)
            rows.append(learners[1].row_of(decision))
            waiting.append((t + int(delay[t - start]), decision, said(learners[1], decision.slate, t)))
            for _, *answer in [each for each in waiting if each[0] == t]:
                learners[1].observe(*answer)
        np.testing.assert_array_equal(rows, slates)
        if start in (51, 90):
            learners[0] = LEARNING[name].restore(learners[0].snapshot(), rng=SeededSource(9))
            learners[1] = LEARNING[name].restore(learners[1].snapshot(), rng=SeededSource(9))
        np.add.at(seen, slates.ravel(), 1)
    assert (seen[1:] > 0).all(), "each was there for some time, but for the first"


@pytest.mark.parametrize("name", LEARNING)
def test_a_block_that_was_kept_before_a_crash_is_not_shown_if_its_items_are_gone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    for contexts in (None, Contexts(kind=2)):
        path = tmp_path / f"{contexts is None}.ledger"
        budget = Budget(5.0, 0.0, Unit(), "pure")
        with Ledger.open(path, budget) as ledger:
            learner = made(name, ledger=ledger, contexts=contexts, rng=None)
            snapshot = learner.snapshot()
            planned = learner.choose().slate  # the plan of the first block is on disk
        with Ledger.open(path, budget) as ledger:
            again = LEARNING[name].restore(snapshot, ledger=ledger)
            again.retire(planned[:1])
            again.retire(planned[:1])
            told: dict[str, Any] = {} if contexts is None else {"contexts": np.arange(60) % 2}
            slates = again.replay(USERS[:60], **told)
            assert planned[0] not in slates
            parts = [drawn.name.removeprefix(f"{name}.") for drawn in ledger.drawn]
            assert "000000.plan" in parts
            assert "000000" not in parts, "nobody was in it, and nothing is published of it"
            assert "000001" in parts


def test_items_that_left_stay_away_after_a_restart() -> None:
    learner = made("slate-totals")
    learner.retire([2])
    learner.replay(USERS[:50])
    again = SlateTotals.restore(learner.snapshot(), rng=SeededSource(1))
    assert 2 not in again.replay(USERS[50:100])


@pytest.mark.parametrize("name", LEARNING)
def test_an_item_that_appears_is_found(name: str) -> None:
    """The best of all items comes when a fifth of the users are gone; in the end most users see it."""
    rng, users = np.random.default_rng(5), 6_000
    wanted = (rng.random((users, 8)) < np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.6])).astype(float)
    stream = Users(NoisyOr(), (wanted,))
    learner = LEARNING[name](8, 2, horizon=users, epsilon=2.0, absent=[7], rng=SeededSource(1))
    first = learner.replay(stream[:1_200])
    assert 7 not in first
    learner.appear([7])
    later = learner.replay(stream[1_200:])
    assert (later[-2_000:] == 7).any(axis=1).mean() > 0.8
