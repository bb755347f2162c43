"""A slate for each type: what is chosen and what is replayed, whose menus are equal, and what contexts change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from diminuendo import (
    LEARNERS,
    FeedbackWindow,
    Learner,
    NoisyOr,
    Oracle,
    SeededSource,
    Setting,
    Users,
)
from diminuendo.audit.taps import Taps
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.menu import RandomSlates, SlateByType
from diminuendo.learners.base.replay import loop, replay
from diminuendo.learners.overlap.contexts.slate_per_context import SlatePerContext
from diminuendo.learners.overlap.recipes import OverlapGreedy
from diminuendo.privacy.budget import REPLACE, REPLACE_WITH_CONTEXT, Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams.contexts import Contexts
from diminuendo.types import NEVER, Ints, Items
from tests.kit.choose_by_menu import SEED
from tests.kit.hostile_contexts import without_noise
from tests.kit.menus import read_menu
from tests.kit.slow import mostly_slow
from tests.learners.test_overlap_greedy import policy_of

N_ITEMS, SLOTS, ROUNDS = 12, 3, 500
GROUPS = np.random.default_rng(0).integers(0, 3, size=ROUNDS)
"""Users of each want two or one of four items that nobody else wants."""


def crowd(groups: Ints, seed: int = 5) -> Users:
    random, rows = np.random.default_rng(seed), np.zeros((len(groups), N_ITEMS))
    for row, group in zip(rows, groups.tolist(), strict=True):
        row[4 * group + random.integers(0, 4, size=2)] = 0.8
    return Users(NoisyOr(), scipy.sparse.csr_array(rows))


USERS = crowd(GROUPS)
TABLE = np.where(np.random.default_rng(1).random(ROUNDS) < 0.1, -1, GROUPS)
"""Of some nothing is known."""
both = pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
some_private = pytest.mark.parametrize(
    "private", mostly_slow([False, True], [True]), ids=["public", "private"]
)


def made(private: bool, seed: int = 3, slots: int = SLOTS, **options: Any) -> Learner:
    """With so large a budget that contexts show in slates."""
    known = options.pop("contexts", Contexts(group=3, private=private))
    given = {"horizon": ROUNDS, "epsilon": 8.0, "delta": 1e-6, "rng": SeededSource(seed), "contexts": known}
    return OverlapGreedy(N_ITEMS, slots, **(given | options))


def shown_of(learner: Learner) -> SlatePerContext:
    shown = policy_of(learner)._shown
    assert isinstance(shown, SlatePerContext)
    return shown


def counts_of(learner: Learner) -> list[Any]:
    """Users by type, where that is public; else shares that were published."""
    return list(shown_of(learner)._counts.arrays)


def by_type(learner: Learner) -> Items:
    menu = learner.menu
    assert isinstance(menu, SlateByType)
    return menu.slates


# What is chosen is what is replayed.

USER_IDS = np.random.default_rng(4).integers(0, 150, size=ROUNDS)
DELAY = np.where(np.random.default_rng(6).random(ROUNDS) < 0.3, NEVER, np.arange(ROUNDS) % 7)
PRIOR = [0.3] * 6 + [0.2] * 6


@some_private
@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"max_rounds_per_user": 2}, {"user_ids": USER_IDS}),
        ({"feedback_window": FeedbackWindow(rounds=5, response_rate=0.6)}, {"delay": DELAY}),
        ({"feedback_window": 5, "max_rounds_per_user": 2}, {"delay": DELAY, "user_ids": USER_IDS}),
        ({"prior": PRIOR, "prior_users": 20}, {}),
        ({"eligible": [range(8), range(4, 12), range(12)], "absent": [5]}, {}),
        ({"slots": 1}, {}),
    ],
    ids=["plain", "max_rounds_per_user", "delay", "late visits", "prior", "eligible", "one slot"],
)
def test_a_replay_shows_what_choosing_shows(
    private: bool, options: dict[str, Any], more: dict[str, Any]
) -> None:
    one, other = (made(private, **options) for _ in range(2))
    slates = replay(one, USERS, contexts=TABLE, **more)
    np.testing.assert_array_equal(slates, loop(other, USERS, contexts=TABLE, **more))
    for mine, theirs in zip(shown_of(one).columns[0].arrays, shown_of(other).columns[0].arrays, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(counts_of(one), counts_of(other), strict=True):
        np.testing.assert_array_equal(mine, theirs, "rounds that do not count are in no count")
    if "max_rounds_per_user" not in options:
        assert len(np.unique(by_type(one), axis=0)) > 1, "or nothing was tried"


def test_nobody_is_kept_beyond_her_visits() -> None:
    """She comes again and again, in other contexts: of three rounds nothing but the first is in cells or counts."""
    user_ids = np.arange(ROUNDS) // 3
    learner = made(True)
    learner.replay(USERS, contexts=TABLE, user_ids=user_ids)
    types = np.concatenate([block.spec.types for block in policy_of(learner)._memory.users.blocks])
    first = np.arange(ROUNDS) % 3 == 0
    assert types.tolist() == (TABLE[first] + 1).tolist()


@both
def test_a_learner_goes_on_from_a_snapshot(private: bool) -> None:
    """In the midst of a batch, with answers outstanding, which come to the learner that goes on.

    Noise is left out: a learner that goes on draws it from words of its own.
    """
    shown = []
    with without_noise():
        for stops in ((), (130, 300, 420)):
            learner = made(private, feedback_window=FeedbackWindow(rounds=40, response_rate=0.8))
            decisions, slates = list[Any](), list[Any]()
            for t in range(ROUNDS):
                if t in stops:
                    learner = OverlapGreedy.restore(learner.snapshot(), rng=SeededSource(t))
                decisions.append(learner.choose(context=None if TABLE[t] < 0 else int(TABLE[t])))
                slates.append(learner.row_of(decisions[t]))
                if t >= 20 and t % 5:
                    learner.observe(decisions[t - 20], USERS[t - 20])
            shown.append(np.array(slates))
            assert len(np.unique(by_type(learner), axis=0)) > 1
    np.testing.assert_array_equal(shown[0], shown[1])


@some_private
def test_another_process_shows_the_same_by_the_menu(private: bool, tmp_path: Path) -> None:
    learner = made(private, seed=SEED)
    ends = policy_of(learner).plan.schedule.ends
    shown, numbers, done = [], 0, 0
    for stop in ends:
        decision = learner.choose(context=int(TABLE[done]) if TABLE[done] >= 0 else None)
        menu = learner.menu
        assert menu is not None
        (tmp_path / f"case.{numbers}.menu").write_bytes(menu.to_bytes())
        (tmp_path / f"case.{numbers}.rounds").write_text(str(stop - done))
        np.save(tmp_path / f"case.{numbers}.types.npy", TABLE[done:stop] + 1)
        learner.observe(decision, USERS[done])
        later = learner.replay(USERS[done + 1 : stop], contexts=TABLE[done + 1 : stop])
        shown.append(np.vstack([np.array(decision.slate, dtype=np.int32), later]))
        numbers, done = numbers + 1, stop
    subprocess.run([sys.executable, "-m", "tests.kit.choose_by_menu", tmp_path], check=True)
    for number, slates in enumerate(shown):
        with np.load(tmp_path / f"case.{number}.npz") as result:
            np.testing.assert_array_equal(result["slates"], slates)
    assert len(np.unique(by_type(learner), axis=0)) > 1


# What all others see.


def played(private: bool, types: Ints, users: list[Any], taps: Taps) -> tuple[list[bytes], Items, list[Any]]:
    """Every menu, every slate, and all that else a call gives out."""
    with taps.open():
        learner, menus, told = made(private), list[bytes](), list[Any]()
        slates = np.full((ROUNDS, SLOTS), -1, dtype=np.int32)
        for t in range(ROUNDS):
            decision = learner.choose(context=None if types[t] < 0 else int(types[t]))
            slates[t] = learner.row_of(decision)
            told.append((decision.round, decision.propensity, decision.probe))
            learner.observe(decision, users[t])
            menu = learner.menu
            assert menu is not None
            if not menus or menus[-1] != menu.to_bytes():
                menus.append(menu.to_bytes())
        told.append((learner.guarantee, learner.due(), repr(learner)))
    return menus, slates, told


@both
@pytest.mark.parametrize("target", mostly_slow([0, 40, 333], [40]))
def test_menus_follow_from_releases_and_from_nothing_else(private: bool, target: int) -> None:
    """Two streams, one user apart, the same numbers published: menus are equal byte for byte, and so are slates."""
    answers: list[Any] = [USERS[t] for t in range(ROUNDS)]
    first = Taps()
    menus, slates, told = played(private, TABLE, answers, first)
    answers[target] = Oracle(lambda chosen: float(len(chosen)), N_ITEMS)
    types = TABLE.copy()
    if private:
        types[target] = (TABLE[target] + 2) % 3
    second = Taps(first.crossings, ends=True)
    again, others, said = played(private, types, answers, second)
    assert len(second.crossings) == len(first.crossings)
    assert again == menus
    assert said == told
    np.testing.assert_array_equal(np.delete(others, target, axis=0), np.delete(slates, target, axis=0))
    moved = sum(
        (a.covered != b.covered).any() for a, b in zip(first.crossings, second.crossings, strict=True)
    )
    assert moved > 0, "or the two are the same"
    kinds = [type(read_menu(menu)) for menu in menus]
    assert kinds[0] is RandomSlates
    assert kinds[-1] is SlateByType


def test_exact_counts_would_tell_a_private_context() -> None:
    """The test above sees it: public contexts are counted, and one user in another value moves menus."""
    counts = shown_of(made(True))._counts
    assert counts_of(made(True))[0].size == 0
    assert len(counts.present()) == counts.contexts.n_types, "not those that came"
    learner = made(False)
    learner.replay(USERS, contexts=TABLE)
    exact = counts_of(learner)[0]
    assert exact.sum() == ROUNDS
    assert exact.sum(axis=0).tolist() == np.bincount(TABLE + 1, minlength=4).tolist()


# Ledgers.


def test_a_ledger_of_another_relation_is_refused() -> None:
    for private, relation in ((False, "replace-with-context"), (True, "replace")):
        unit = Unit(relation=relation)  # type: ignore[arg-type]
        ledger = Ledger(Budget(8.0, 1e-6, unit=unit, accountant="continuous-gaussian"))
        with pytest.raises(InvalidInput, match="two relations"):
            made(private, ledger=ledger)
        assert ledger.charges == []
        other = made(not private, ledger=ledger)
        other.replay(USERS, contexts=TABLE)
        assert ledger.guarantee().view == other.guarantee.view == ("everybody" if private else "all others")
        assert ledger.guarantee().neighbours == other.guarantee.neighbours
        mine = Unit(relation=REPLACE_WITH_CONTEXT if private else REPLACE)
        remote_rounds = Ledger(Budget(8.0, 1e-6, unit=mine, accountant="continuous-gaussian"))
        with pytest.raises(InvalidInput, match="two relations"):
            OverlapGreedy.restore(other.snapshot(), ledger=remote_rounds, rng=SeededSource(1))


def test_after_a_crash_what_was_published_stays(tmp_path: Path) -> None:
    """The next life has other users and no contexts of them; what was drawn is shown as it was."""
    unit = Unit(relation="replace-with-context")
    budget = Budget(8.0, 1e-6, unit=unit, accountant="continuous-gaussian")
    known = Contexts(group=3, private=True)
    given: dict[str, Any] = {"horizon": ROUNDS, "epsilon": 8.0, "delta": 1e-6, "contexts": known}
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        first = OverlapGreedy(N_ITEMS, SLOTS, ledger=ledger, **given)
        first.replay(USERS[:150], contexts=TABLE[:150])
        kept = first.snapshot()
        after = first.replay(USERS[150:350], contexts=TABLE[150:350])
        spent, slates = ledger.spent(), by_type(first)
    with Ledger.open(tmp_path / "ledger") as again:
        second = OverlapGreedy.restore(kept, ledger=again)
        result = second.replay(USERS[150:350], contexts=np.full(200, -1))
        np.testing.assert_array_equal(by_type(second), slates)
        unknown = TABLE[150:350] < 0
        np.testing.assert_array_equal(result[unknown], after[unknown])
        assert again.spent() == spent
        second.replay(USERS[350:], contexts=TABLE[350:])
        assert again.spent() <= 8.0


# What contexts change.


@both
def test_useless_contexts_leave_one_slate_and_strong_ones_part_them(private: bool) -> None:
    learner = made(private)
    slates, menu = learner.replay(USERS, contexts=TABLE), learner.menu
    result = by_type(learner)
    assert menu is not None
    np.testing.assert_array_equal(slates[menu.first :], result[TABLE[menu.first :] + 1])
    for group in range(3):
        own = (result[group + 1] // 4 == group).sum()
        assert own >= 2, "a group is shown what it wants"
    useless = made(private)
    useless.replay(USERS, contexts=np.random.default_rng(2).permutation(TABLE))
    assert len(np.unique(by_type(useless), axis=0)) == 1
    assert shown_of(useless).columns[0].evidence.weight == 0


def test_nothing_known_of_anybody_is_one_slate_for_all() -> None:
    learner = made(True)
    learner.replay(USERS, contexts=np.full(ROUNDS, -1))
    assert len(np.unique(by_type(learner), axis=0)) == 1


@both
def test_several_columns_add_up(private: bool) -> None:
    """One tells, the other does not; who is known by one of them only has a slate as well."""
    contexts = Contexts(group=3, coin=2, private=private)
    rng = np.random.default_rng(8).integers(0, 2, size=ROUNDS)
    learner = made(private, contexts=contexts)
    learner.replay(USERS, contexts=np.column_stack([TABLE, rng]))
    result = by_type(learner)
    assert len(result) == 4 * 3
    for group in range(3):
        slate = result[contexts.type_of({"group": group, "coin": 1})]
        assert (slate // 4 == group).sum() >= 2


@both
def test_items_that_appear_and_retire(private: bool) -> None:
    learner = made(private, absent=[0, 1])
    half = ROUNDS // 2
    learner.replay(USERS[:half], contexts=TABLE[:half])
    assert not np.isin(by_type(learner), [0, 1]).any()
    gone = int(by_type(learner)[2, 0])
    learner.retire([gone])
    now = by_type(learner)
    assert gone not in now
    assert (now >= 0).all(), "others take its place"
    assert all(len(set(slate)) == SLOTS for slate in now.tolist())
    learner.appear([0, 1])
    slates = learner.replay(USERS[half:], contexts=TABLE[half:])
    assert gone not in slates
    assert np.isin(by_type(learner)[1], [0, 1]).any(), "two of the four items that they want"


# Doors.


def test_doors() -> None:
    with pytest.raises(InvalidInput, match="without contexts"):
        OverlapGreedy(3, 1, horizon=9, epsilon=1.0, delta=1e-6, rng=SeededSource(0)).choose(context="DE")
    with pytest.raises(InvalidInput, match="group must be one of"):
        made(False).choose(context={"group": 7})
    learner = made(True)
    assert learner.choose(context={"group": object()}).round == 0, "the round is consumed"
    assert learner.choose().round == 1
    with pytest.raises(InvalidInput, match="Nothing is known"):
        learner.replay(USERS[:5])
    with pytest.raises(InvalidInput, match="contexts must have"):
        learner.choose_many(3, contexts=np.zeros(2, dtype=int))
    decisions = learner.choose_many(3, contexts=[0, None, ("FR", 9)])
    assert [decision.round for decision in decisions] == [2, 3, 4]
    setting = Setting(4, 2, 30, "full", 1.0, 1e-6, contexts=Contexts(group=2))
    for entry in LEARNERS.values():
        if "full" in entry.reads and not entry.takes("contexts"):
            with pytest.raises(InvalidInput, match="whatever is known"):
                entry.for_setting(setting)
    assert LEARNERS["overlap-greedy"].for_setting(setting).contexts == setting.contexts
    menu = SlateByType(4, 2, 0, 9, 0, np.array([[0, 1], [2, -1]], dtype=np.int32))
    again = read_menu(menu.to_bytes())
    assert isinstance(again, SlateByType)
    np.testing.assert_array_equal(again.slates, menu.slates)
    for wrong in (np.array([[0, 4]]), np.array([0, 1]), np.array([[0], [1]]), np.zeros((0, 2))):
        with pytest.raises(InvalidInput, match="rows of 2 items"):
            SlateByType(4, 2, 0, 9, 0, wrong.astype(np.int32))
