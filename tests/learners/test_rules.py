"""Every slate that is shown keeps to the rules, whoever shows it and whatever items come and go."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import diminuendo as dim
from diminuendo import LEARNERS, NoisyOr, SeededSource, Setting, SlateRules, Users
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import OneSlate, RandomFromLists
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.overlap.swap import SwapPosterior, swapped
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.privacy.events import Laplace
from diminuendo.streams import Contexts, taste_groups
from diminuendo.types import EMPTY_SLOT, Decision, Items
from tests.kit.menus import read_menu
from tests.kit.slow import mostly_slow, rows_mostly_slow
from tests.kit.statistics import ALPHA
from tests.learners.test_item_availability import drawn
from tests.learners.test_overlap_greedy import shown_of
from tests.learners.test_slate_contexts import quick_splits

N_ITEMS, SLOTS, ROUNDS = 14, 4, 600
USERS = taste_groups(ROUNDS, N_ITEMS, groups=4, items_per_group=5, seed=1)
BRAND, MAKER = [0, 1, 2], [0, 1, 2, 3, 4, 5]
BOOKS = range(8)
RULES = {
    "caps": SlateRules(caps=[(MAKER, 2), (BRAND, 1), ([10, 11], 0)]),
    "pins": SlateRules(pinned={2: 5, 0: 9}),
    "both": SlateRules(pinned={1: 4}, caps=[(MAKER, 2), (BRAND, 1)]),
    "slots": SlateRules(eligible=[BOOKS, BOOKS, range(N_ITEMS), range(8, N_ITEMS)]),
    "all": SlateRules(
        eligible=[BOOKS, BOOKS, range(N_ITEMS), range(8, N_ITEMS)],
        pinned={1: 6},
        caps=[(MAKER, 1), ([12, 13], 1)],
    ),
}
MADE: dict[str, Any] = {"horizon": ROUNDS, "epsilon": 50.0}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "overlap-greedy": (OverlapGreedy, {"delta": 1e-6}),
    "epoch-greedy": (EpochGreedy, {"epoch": 60}),
    "slate-totals": (SlateTotals, {}),
    "slate-clicks": (SlateClicks, {}),
}
COMING_AND_GOING = ["overlap-greedy", "slate-totals", "slate-clicks"]


def made(name: str, rules: SlateRules, seed: int = 1, **more: Any) -> Learner:
    entry, own = KINDS[name]
    learner: Learner = entry(N_ITEMS, SLOTS, rules=rules, **MADE, **own, **more, rng=SeededSource(seed))
    return learner


def answer(learner: Learner, decision: Decision, t: int) -> Any:
    """What user t says to what she is shown."""
    if "full" in learner.reads:
        return USERS[t]
    return USERS[t].value(decision.slate) if "bandit" in learner.reads else USERS.click(t, decision.slate)


def check(rules: SlateRules, slates: Items, gone: tuple[int, ...] = ()) -> None:
    """By the words of the rules; an item that is gone is not pinned."""
    for items, most in rules.caps:
        assert np.isin(slates, items).sum(axis=1).max() <= most
    for slot, item in rules.pinned:
        assert (slates[:, slot] == item).all() if item not in gone else not (slates == item).any()
        remote_rounds = np.delete(slates, slot, axis=1)
        assert not (remote_rounds == item).any(), "once at most, and in its slot"
    for slot, row in enumerate(rules.eligible or ()):
        assert np.isin(slates[:, slot], [*row, EMPTY_SLOT]).all()
    assert not np.isin(slates, gone).any() or not gone
    ordered = np.sort(slates, axis=1)
    assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()


ALL_AT_ONCE = [
    ("overlap-greedy", "all"),
    ("epoch-greedy", "all"),
    ("slate-totals", "all"),
    ("slate-clicks", "slots"),
]


@pytest.mark.parametrize(
    ("name", "rules"),
    rows_mostly_slow(
        itertools.product(KINDS, RULES), [*itertools.product(["overlap-greedy"], RULES), *ALL_AT_ONCE]
    ),
)
def test_every_slate_keeps_to_the_rules(name: str, rules: str) -> None:
    """Random ones too; round by round as at once; read from a snapshot in the midst."""
    kept_to = RULES[rules]
    learner, other = made(name, kept_to), made(name, kept_to)
    slates = learner.replay(USERS)
    check(kept_to, slates)
    assert (slates != EMPTY_SLOT).all()
    assert len(np.unique(slates[:20], axis=0)) >= 3, "random ones at first"
    half = ROUNDS // 2
    one_by_one = []
    for t in range(half):
        decision = other.choose()
        one_by_one.append(other.row_of(decision))
        other.observe(decision, answer(other, decision, t))
    np.testing.assert_array_equal(one_by_one, slates[:half])
    again = KINDS[name][0].restore(other.snapshot(), rng=SeededSource(7))
    assert again.parameters == other.parameters
    assert again.menu is not None
    check(kept_to, again.replay(USERS[half:]))


@pytest.mark.parametrize("rules", mostly_slow(["both", "all"], ["all"]))
@pytest.mark.parametrize("name", COMING_AND_GOING)
def test_slates_keep_to_the_rules_while_items_come_and_go(name: str, rules: str) -> None:
    kept_to = RULES[rules]
    (_, pin), *_ = kept_to.pinned
    learner = made(name, kept_to, absent=[7])
    changes = [((), [pin]), ([7], [9]), ([pin], [8]), ((), [pin, 3]), ([pin, 9], [])]
    gone, stop = {7}, 0
    for number in range(12):
        start, stop = stop, stop + 50
        slates = learner.replay(USERS[start:stop])
        check(kept_to, slates, tuple(gone))
        appear, retire = changes[number % len(changes)]
        learner.appear(appear)
        learner.retire(retire)
        gone = (gone - set(appear)) | set(retire)
    again = KINDS[name][0].restore(learner.snapshot(), rng=SeededSource(3))
    assert again.menu is not None


@pytest.mark.parametrize(
    ("name", "private", "rules"),
    rows_mostly_slow(
        itertools.product(COMING_AND_GOING, (False, True), RULES),
        [("overlap-greedy", False, "all"), ("slate-totals", True, "all"), ("slate-clicks", False, "both")],
    ),
)
def test_slates_of_every_type_keep_to_the_rules(
    name: str, private: bool, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_to, types = RULES[rules], np.arange(ROUNDS) % 3
    quick_splits(monkeypatch)
    learner = made(name, kept_to, contexts=Contexts(kind=3, private=private))
    slates = learner.replay(USERS[:-1], contexts=types[:-1])
    check(kept_to, slates)
    assert name.startswith("overlap") or len(learner.policy.groups) > 1  # type: ignore[attr-defined]
    learner.retire([12])
    check(kept_to, learner.row_of(learner.choose())[None, :], (12,))
    assert learner.menu is not None
    check(kept_to, getattr(learner.menu, "slates", slates), (12,))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_by_rules_nearly_as_good_as_greedy_by_rules(name: str) -> None:
    chance = np.random.default_rng(4)
    users = Users(NoisyOr(), (chance.random((4_000, 10)) < np.linspace(0.5, 0.1, 10)).astype(float))
    rules = SlateRules(pinned=[9], caps=[([0, 1, 2], 1)])
    entry, own = KINDS[name]
    learner = entry(10, 3, horizon=4_000, epsilon=50.0, **own, rules=rules, rng=SeededSource(1))
    slates = learner.replay(users)
    best = dim.greedy(users, 3, rules=rules)
    assert users.values(slates)[2_000:].mean() > 0.95 * best.value
    assert set(best.slate) == {9, 0, 3}


def test_a_rival_must_fit_after_the_item_of_that_slot_has_left() -> None:
    """4 is better than 0 and than 1, 5 too; one of them fits, in the place of 0: 0, 4 and 5 are of one brand."""
    slate = np.array([0, 1, 2], dtype=np.int32)
    means, deviations = np.zeros((4, 6)), np.full((4, 6), 1e-3)
    means[0], means[1:, :3] = [0, 0, 0, 0, 0.2, 0.1], 0.1 * np.eye(3)
    means[1:, 4:] = 0.5
    posterior = SwapPosterior(slate, means, deviations)
    free = swapped(posterior, ItemAvailability(6, 3))
    assert {4, 5} <= set(free.tolist()), "without rules both come"
    capped = ItemAvailability(6, 3, rules=SlateRules(caps=[([0, 4, 5], 1)]))
    assert swapped(posterior, capped).tolist() == [4, 1, 2]
    pinned = ItemAvailability(6, 3, rules=SlateRules(pinned=[0], caps=[([0, 4, 5], 2)]))
    result = swapped(posterior, pinned).tolist()
    assert result[0] == 0
    assert len({4, 5} & set(result)) == 1


def test_random_slates_by_rules_are_uniform_slot_by_slot() -> None:
    """0 is pinned to slot 1; slot 0 takes any of the others that the cap leaves: 1 is of its brand."""
    items = ItemAvailability(5, 3, rules=SlateRules(pinned={1: 0}, caps=[([0, 1, 2], 2)]))
    slates = drawn(items, 40_000)
    assert (slates[:, 1] == 0).all()
    law = {(1, 3): 1 / 8, (1, 4): 1 / 8, (2, 3): 1 / 8, (2, 4): 1 / 8}
    law |= {(a, b): 1 / 12 for a in (3, 4) for b in (1, 2, 7 - a)}
    counts = [int(((slates[:, 0] == a) & (slates[:, 2] == b)).sum()) for a, b in law]
    assert sum(counts) == len(slates)
    shares = np.array(list(law.values()))
    assert stats.chisquare(counts, shares * len(slates)).pvalue > ALPHA
    assert stats.chisquare(counts, np.full(len(law), len(slates) / len(law))).pvalue < ALPHA


def test_random_slates_end_where_almost_nothing_fits() -> None:
    """3000 items of a brand of which one may be shown, and one that is left: it is found, and drawn by all alike."""
    rules = SlateRules(caps=[(range(3_000), 1)], may_be_empty=True)
    slates = drawn(ItemAvailability(3_002, 4, rules=rules), 60)
    check(rules, slates)
    assert ((slates >= 3_000).sum(axis=1) == 2).all()
    assert ((slates == EMPTY_SLOT).sum(axis=1) == 1).all()


def test_a_menu_with_rules_is_read_back_and_draws_the_same() -> None:
    learner = made("overlap-greedy", RULES["all"])
    menu = learner.menu
    assert isinstance(menu, RandomFromLists)
    again = read_menu(menu.to_bytes())
    assert again.to_bytes() == menu.to_bytes()
    assert isinstance(again, RandomFromLists)
    for mine, theirs in zip(again.lists or (), menu.lists or (), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    learner.replay(USERS)
    assert isinstance(learner.menu, OneSlate)


def test_what_is_pinned_is_not_drawn_and_not_paid_for() -> None:
    """Two of four slots are pinned: three rates are paid, not five, and draws are the better for it."""
    learner, plain = made("epoch-greedy", RULES["pins"]), made("epoch-greedy", SlateRules())
    rates = [policy.rate for policy in (learner.policy, plain.policy)]  # type: ignore[attr-defined]
    assert rates[0] == pytest.approx(50 / 3)
    assert rates[1] == pytest.approx(50 / 5)
    assert isinstance(learner.events, Laplace)
    assert learner.guarantee.epsilon <= 50.0


def test_chains_begin_with_what_is_pinned() -> None:
    learner = made("overlap-greedy", RULES["pins"])
    learner.replay(USERS[:200])
    rows = shown_of(learner).picker.rows
    firsts = {keys[0] for keys in rows.arrays[0].tolist() if keys[0] >= 0}
    assert firsts <= {9, 5}
    assert [9, -1, -1, -1, -1] in rows.arrays[0].tolist(), "what others lose by it is asked first"


@pytest.mark.parametrize("name", LEARNERS)
def test_who_cannot_keep_to_rules_says_so(name: str) -> None:
    entry = LEARNERS[name]
    feedback = next(iter(sorted(entry.reads)))
    setting = Setting(6, 2, 50, feedback, rules=SlateRules(pinned=[1]))
    if name in KINDS:
        learner = entry.for_setting(setting, rng=SeededSource(1))
        assert learner.choose().slate[0] == 1
        return
    with pytest.raises(InvalidInput, match=r"keeps to no rules.*'private'"):
        entry.for_setting(setting)


def test_doors() -> None:
    with pytest.raises(InvalidInput, match="at most 1 of 2 slots"):
        Setting(6, 2, 50, "full", rules=SlateRules(caps=[(range(6), 1)]))
    with pytest.raises(InvalidInput, match="one of the rules"):
        made("overlap-greedy", SlateRules(pinned=[1]), eligible=[[0]] * SLOTS)
    with pytest.raises(InvalidInput, match="rules must be SlateRules"):
        Setting(6, 2, 50, "full", rules=[1])  # type: ignore[arg-type]
