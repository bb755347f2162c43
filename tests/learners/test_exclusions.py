"""What a user excludes is not shown to her, and nobody else can tell: what others see is the same."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import diminuendo as dim
from diminuendo import LEARNERS, SeededSource, Setting, SlateRules
from diminuendo.audit.taps import Taps
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import OneSlate, RandomSlates, SlateByType
from diminuendo.learners.base.replay import loop
from diminuendo.learners.base.rules import leave_out as rules_of_exclusions
from diminuendo.learners.overlap.memory import RewardMemory
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.menu import AssignedSlates
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicSource
from diminuendo.streams import Contexts, taste_groups
from diminuendo.streams.exclusions import NONE, Exclusions, exclusions_of
from diminuendo.types import EMPTY_SLOT, Items
from tests.kit.menus import read_menu
from tests.kit.slow import mostly_slow, rows_mostly_slow
from tests.learners.test_slate_contexts import quick_splits

N_ITEMS, SLOTS, ROUNDS = 14, 4, 300
USERS = taste_groups(ROUNDS, N_ITEMS, groups=4, items_per_group=5, seed=1)
TYPES = np.arange(ROUNDS) % 3
CAPS = SlateRules(pinned={1: 4}, caps=[([0, 1, 2, 3, 4, 5], 2), ([0, 1, 2], 1)])
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "overlap-greedy": (OverlapGreedy, {}),
    "rules": (OverlapGreedy, {"rules": CAPS}),
    "slots": (OverlapGreedy, {"eligible": [range(8), range(8), range(14), range(8, 14)]}),
    "types": (OverlapGreedy, {"contexts": Contexts(kind=3)}),
    "private types": (OverlapGreedy, {"contexts": Contexts(kind=3, private=True), "rules": CAPS}),
    "prior": (OverlapGreedy, {"prior": np.linspace(0.9, 0.1, N_ITEMS)}),
    "rewards": (SlateTotals, {}),
    "clicks, slots": (
        SlateClicks, {"rules": SlateRules(eligible=[range(8), range(8), range(14), range(8, 14)], caps=[([9, 10], 1)])},
    ),
    "rewards, private types": (SlateTotals, {"contexts": Contexts(kind=3, private=True), "rules": CAPS}),
    "clicks, types": (SlateClicks, {"contexts": Contexts(kind=3)}),
}  # fmt: skip
QUICK = ["overlap-greedy", "rules", "private types", "rewards, private types"]
"""Of these the quick suite tries what takes long."""
MADE: dict[str, Any] = {"horizon": ROUNDS, "epsilon": 50.0, "exclusions": True}


def made(way: str, seed: int = 1, **more: Any) -> Learner:
    entry, own = WAYS[way]
    delta = {} if entry.pure else {"delta": 1e-6}
    learner: Learner = entry(N_ITEMS, SLOTS, **MADE | delta | own | more, rng=SeededSource(seed))
    return learner


def eligible(way: str) -> list[range]:
    rules = WAYS[way][1].get("rules")
    return list(WAYS[way][1].get("eligible") or (rules and rules.eligible) or [])


def said(learner: Learner, decision: dim.Decision, t: int) -> Any:
    """What user t says to what she is shown."""
    if "full" in learner.reads:
        return USERS[t]
    return USERS[t].value(decision.slate) if "bandit" in learner.reads else USERS.click(t, decision.slate)


def contexts(way: str) -> dict[str, Any]:
    return {"contexts": TYPES} if "types" in way else {}


def excluded(seed: int = 5) -> list[list[int]]:
    """Some exclude nothing, some a few items, one everything."""
    chance = np.random.default_rng(seed)
    result = [chance.permutation(N_ITEMS)[: chance.integers(6)].tolist() for _ in range(ROUNDS)]
    result[7], result[200] = list(range(N_ITEMS)), list(range(N_ITEMS))
    return [each if t % 3 else [] for t, each in enumerate(result)]


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rewards and clicks short runs have many blocks, and groups are split."""
    quick_splits(monkeypatch)


@pytest.mark.parametrize("way", mostly_slow(WAYS, QUICK))
def test_nobody_is_shown_what_she_excludes_and_replay_is_choose(way: str) -> None:
    exclude = excluded()
    slates = made(way).replay(USERS, exclude=exclude, **contexts(way))
    np.testing.assert_array_equal(loop(made(way), USERS, exclude=exclude, **contexts(way)), slates)
    matrix = sparse.lil_matrix((ROUNDS, N_ITEMS))
    for t, own in enumerate(exclude):
        assert not set(own) & set(slates[t].tolist())
        shown = slates[t][slates[t] != EMPTY_SLOT]
        assert len(set(shown.tolist())) == len(shown)
        for items, most in WAYS[way][1].get("rules", SlateRules()).caps:
            assert np.isin(shown, items).sum() <= most
        for slot, row in enumerate(eligible(way)):
            assert slates[t, slot] in [*row, EMPTY_SLOT]
        matrix[t, own] = 1
    for t in (7, 200):
        assert (slates[t] == EMPTY_SLOT).all() == bool(exclude[t])
    np.testing.assert_array_equal(made(way).replay(USERS, exclude=matrix, **contexts(way)), slates)
    yes_and_no = matrix.toarray() > 0
    np.testing.assert_array_equal(made(way).replay(USERS, exclude=yes_and_no, **contexts(way)), slates)
    many = made(way)
    many.release()
    count = 9 if many.menu is None or many.menu.end is None else min(9, many.menu.end)  # then answers matter
    first = many.choose_many(
        count, exclude=exclude[:count], **{name: each[:count] for name, each in contexts(way).items()}
    )
    np.testing.assert_array_equal([many.row_of(decision) for decision in first], slates[:count])
    assert {decision.propensity for decision in first} == {None}, "the same for all, whatever they exclude"


@pytest.mark.parametrize("way", WAYS)
def test_by_what_is_left_she_is_shown_the_best(way: str) -> None:
    """In the slot that becomes free; other slots stay as they are. Against the words of the rule."""
    learner = made(way)
    learner.replay(USERS[:250], **{name: each[:250] for name, each in contexts(way).items()})
    menu = learner.menu
    assert isinstance(menu, (OneSlate, SlateByType, AssignedSlates, SlatesByGroup))
    assert menu.lists is not None
    chooser, first = menu.chooser(), menu.first
    for kind, (many, seed) in itertools.product(range(3), itertools.product(range(6), range(5))):
        types = np.array([kind])
        plain, slates = (np.full((1, SLOTS), EMPTY_SLOT, dtype=np.int32) for _ in range(2))
        own = np.random.default_rng(seed).permutation(N_ITEMS)[:many].tolist()
        for each in (plain, slates):
            chooser.draw(first, each, np.zeros((1, 3), dtype=np.int32), PUBLIC, types)
        own += plain[0][: seed % SLOTS].tolist()
        chooser.without(slates, exclusions_of([own], 1, N_ITEMS), types)
        expected = plain[0].tolist()
        freed = [slot for slot, item in enumerate(expected) if item in own]
        leaving = {slot: expected[slot] for slot in freed}
        for slot in freed:
            expected[slot] = EMPTY_SLOT
        ranked = [*menu.backfill[0][min(kind, len(menu.backfill[0]) - 1)], *menu.backfill[1]]
        for slot in freed:
            after = leaving[slot]
            by_number = [*range(after + 1, N_ITEMS), *range(after + 1)]
            rows = eligible(way) or [range(N_ITEMS)] * SLOTS
            rules = WAYS[way][1].get("rules", SlateRules())
            for item in [int(item) for item in ranked if item >= 0] + by_number:
                fits = item not in own and item not in expected and item in rows[slot]
                fits &= item not in [pin for _, pin in rules.pinned]
                after_it = [*expected, item]
                if fits and all(sum(x in items for x in after_it) <= most for items, most in rules.caps):
                    expected[slot] = item
                    break
        assert slates[0].tolist() == expected


PUBLIC = PublicSource(SeededSource(1)).view


IN_EVERY_RUN = [("overlap-greedy", 3), ("overlap-greedy", 120), ("private types", 120), ("clicks, slots", 3),
    ("rewards, private types", 120),
]  # fmt: skip
"""One for each memory, with types and without, in the random batch and after it."""


@pytest.mark.parametrize(("way", "user"), rows_mostly_slow(itertools.product(WAYS, (3, 120)), IN_EVERY_RUN))
def test_others_see_the_same_whatever_she_excludes(way: str, user: int) -> None:
    """Slates, menus byte for byte, and all that is charged and drawn; also in the random batch. She says nothing."""
    seen = [seen_by_others(way, user, own) for own in ([], ["?", -3, 10**30], [4, 5, 4], range(N_ITEMS))]
    for slates, menus, ledger in seen[1:]:
        np.testing.assert_array_equal(slates, seen[0][0])
        assert menus == seen[0][1]
        assert ledger == seen[0][2]


def seen_by_others(way: str, user: int, own: Any) -> tuple[Items, list[bytes], str]:
    unit = Unit(1, "replace-with-context" if "private types" in way else "replace-with-exclusions")
    pure = WAYS[way][0].pure
    ledger = Ledger(Budget(50.0, 0.0 if pure else 1e-6, unit, "pure" if pure else "continuous-gaussian"))
    learner, exclude = made(way, ledger=ledger), list[Any](excluded())
    exclude[user] = own
    slates, menus = list[Items](), list[bytes]()
    for t in range(ROUNDS):
        told: dict[str, Any] = {"context": {"kind": str(TYPES[t])}} if "types" in way else {}
        decision = learner.choose(exclude=exclude[t], **told)
        slates.append(learner.row_of(decision))
        if learner.menu is not None and t % 10 == 0:
            menus.append(learner.menu.to_bytes())
        if t != user:
            learner.observe(decision, said(learner, decision, t))
    return np.delete(slates, user, axis=0), menus, f"{ledger.charges} {ledger.drawn} {ledger.spent()}"


@pytest.mark.parametrize("way", ["overlap-greedy", "types"])
def test_what_is_published_is_all_that_follows_from_her_answer(way: str) -> None:
    """Her reward is that of what she was shown. Where the same is published all the same, others see the same."""
    exclude, other = excluded(), excluded()
    other[100] = [int(item) for item in made(way).replay(USERS, exclude=exclude, **contexts(way))[100]]
    assert other[100] != exclude[100]
    with (taps := Taps()).open():
        first = made(way).replay(USERS, exclude=exclude, **contexts(way))
    with Taps(taps.crossings).open():
        second = made(way).replay(USERS, exclude=other, **contexts(way))
    assert set(first[100].tolist()) & set(second[100].tolist()) <= {EMPTY_SLOT}
    np.testing.assert_array_equal(np.delete(first, 100, axis=0), np.delete(second, 100, axis=0))


def test_that_test_can_tell_stand_ins_that_use_public_rng(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what takes the place of what she excludes is drawn by public coins. Then everybody after her sees it."""
    learners = [made("overlap-greedy") for _ in range(2)]
    real = rules_of_exclusions.leave_out
    exclude: list[list[list[int]]] = [[[] for _ in range(ROUNDS)] for _ in range(2)]
    exclude[1][3] = [0, 1, 2, 3, 4, 5, 6]

    def drawn_anew(*parts: Any) -> None:
        real(*parts)
        if len(parts[4].items):
            learners[1]._frame.public.take(1)

    monkeypatch.setattr("diminuendo.learners.base.menu.leave_out", drawn_anew)
    slates = [
        np.delete(learner.replay(USERS[:20], exclude=own[:20]), 3, axis=0)
        for learner, own in zip(learners, exclude, strict=True)
    ]
    assert (slates[0] != slates[1]).any()


def test_her_answer_counts_with_the_reward_of_what_she_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """She wants nothing of what the others are shown, and all that she is shown."""
    rewards = list[float]()
    monkeypatch.setattr(RewardMemory, "add", lambda memory, reward, batch: rewards.append(reward))
    learner = made("prior")
    shown = learner.choose().slate
    decision = learner.choose(exclude=shown)
    assert len(set(decision.slate) - set(shown)) == SLOTS
    learner.observe(decision, dim.user(dim.NoisyOr(), dict.fromkeys(decision.slate, 1.0), n_items=N_ITEMS))
    assert rewards == [1.0]


class Hostile:
    """An object that raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("a secret")

    def __index__(self) -> int:
        raise RuntimeError("a secret")


HOSTILE: list[Any] = [
    "0123", b"\x00\x01", 7, 3.5, Hostile(), [Hostile(), 2], {"a": 1}, [[1], [2]], np.nan, [np.nan, 1e300, 2.0, 2],
    [10**40, -(10**40), True, 2], np.array([[2, 2], [2, 99]]), np.array(["2"]), [2] * 10_000, itertools.count(0),
    (4 // number for number in (2, 0)), [None, 2], {2}, range(2, 3), np.array([2], dtype=np.uint64),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_nothing_that_she_excludes_is_an_error(number: int) -> None:
    own = HOSTILE[number]
    learner = made("overlap-greedy")
    assert len(learner.choose(exclude=own).slate) <= SLOTS
    assert learner.rounds == 1
    result = exclusions_of([own, [3]], 2, N_ITEMS)
    assert result.of(1) == [3]
    assert all(0 <= item < N_ITEMS for item in result.of(0))
    assert "secret" not in repr(result)


def test_more_items_than_there_are() -> None:
    learner = made("overlap-greedy")
    assert learner.choose(exclude=range(10**6)).slate == ()
    assert len(learner.choose(exclude=range(N_ITEMS - 2)).slate) == 2


def test_a_snapshot_goes_on_with_exclusions() -> None:
    learner, exclude = made("rules"), excluded()
    learner.replay(USERS[:150], exclude=exclude[:150])
    again = OverlapGreedy.restore(learner.snapshot(), rng=SeededSource(9))
    assert again.parameters == learner.parameters
    assert again.unit == learner.unit == Unit(1, "replace-with-exclusions")
    decision = again.choose(exclude=[4, 5])
    assert not {4, 5} & set(decision.slate)
    before = again.snapshot()
    again.observe(dim.Decision(decision.round, (1, 2), incarnation=decision.incarnation), USERS[0])
    assert again.snapshot() == before, "another slate; an error would tell of guesses"


@pytest.mark.parametrize("way", mostly_slow(WAYS, ["private types", "rewards"]))
def test_exclusions_are_served_by_the_menu_alone(way: str) -> None:
    """At first by random slates, in the end by the last one; substitutes are in the menu."""
    learner, exclude = made(way), excluded()
    for start, stop in ((0, 5), (290, 300)):
        before = slice(learner.rounds, start)
        known = {name: each[before] for name, each in contexts(way).items()}
        learner.replay(USERS[before], exclude=exclude[before], **known)
        learner.release()
        assert learner.menu is not None
        menu = read_menu(learner.menu.to_bytes())
        assert menu.to_bytes() == learner.menu.to_bytes()
        now = slice(start, stop if menu.end is None else min(stop, menu.end))
        known = {name: each[now] for name, each in contexts(way).items()}
        public, chooser = PublicSource(SeededSource(1)), menu.chooser()
        public.take(menu.words)
        public.refill(1000)
        many = now.stop - start
        slates, probes = (
            np.full((many, SLOTS), EMPTY_SLOT, dtype=np.int32),
            np.zeros((many, 3), dtype=np.int32),
        )
        types = learner.types_of(USERS[now], **known)
        assert chooser.draw(start, slates, probes, public.view, types) == many
        chooser.without(slates, exclusions_of(exclude[now], many, N_ITEMS), types)
        np.testing.assert_array_equal(slates, learner.replay(USERS[now], exclude=exclude[now], **known))


@pytest.mark.parametrize("name", LEARNERS)
def test_who_cannot_take_exclusions_says_so(name: str) -> None:
    entry = LEARNERS[name]
    setting = Setting(6, 2, 50, next(iter(sorted(entry.reads))), exclusions=True)
    if name in ("overlap-greedy", "slate-totals", "slate-clicks"):
        learner = entry.for_setting(setting, rng=SeededSource(1))
        assert learner.guarantee.view == "all others" or not entry.private
        assert not {0, 1} & set(learner.choose(exclude=[0, 1]).slate)
        return
    with pytest.raises(InvalidInput, match=r"nobody can exclude any.*'private'"):
        entry.for_setting(setting)


def test_the_relation_is_joint_and_so_must_be_the_ledger(tmp_path: Path) -> None:
    assert str(made("rules").unit) == "replace one round with its exclusions"
    assert made("rules").unit.view == "all others"
    assert made("private types").unit.relation == "replace-with-context", "which covers exclusions too"
    plain = Ledger(Budget(50.0, 1e-6, accountant="continuous-gaussian"))
    with pytest.raises(InvalidInput, match="exclusions are for 'replace-with-exclusions'"):
        made("rules", ledger=plain)
    with pytest.raises(InvalidInput, match="contexts that are private are for 'replace-with-context'"):
        made("private types", ledger=plain)


def test_doors() -> None:
    learner = OverlapGreedy(N_ITEMS, SLOTS, horizon=9, epsilon=1.0, delta=1e-6, rng=SeededSource(1))
    with pytest.raises(InvalidInput, match="made without exclusions"):
        learner.choose(exclude=[])
    with pytest.raises(InvalidInput, match="made without exclusions"):
        learner.replay(USERS[:2], exclude=[[], []])
    assert learner.rounds == 0
    menu = learner.menu
    assert isinstance(menu, RandomSlates)
    with pytest.raises(InvalidInput, match="exclusions=True"):
        menu.chooser().without(np.zeros((1, SLOTS), dtype=np.int32), exclusions_of([[1]], 1, N_ITEMS))
    with pytest.raises(InvalidInput, match="for each of 3 users; got 2"):
        made("rules").choose_many(3, exclude=[[], []])
    with pytest.raises(InvalidInput, match="got shape"):
        made("rules").replay(USERS, exclude=sparse.csr_matrix((3, 3)))
    assert exclusions_of(None, 3, N_ITEMS) is NONE
    assert isinstance(NONE.since(1), Exclusions)
