"""Contexts for rewards and clicks: what users are shown by what is known of them, and what gets out of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import Contexts, Learner, SeededSource, Setting, make
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.replay import loop, replay
from diminuendo.learners.slates.blocks import SlateBlock
from diminuendo.learners.slates.clicks import FirstClicks, SlateClicks
from diminuendo.learners.slates.contexts import groups
from diminuendo.learners.slates.contexts.blocks import OpenGroupBlock
from diminuendo.learners.slates.contexts.coming import MOST_HIDDEN, Coming, segments_of
from diminuendo.learners.slates.contexts.groups import Group
from diminuendo.learners.slates.contexts.menu import SlatesByGroup
from diminuendo.learners.slates.contexts.policy import GroupedSlatePolicy
from diminuendo.learners.slates.totals import SlateTotals, Totals
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicSource, noise
from diminuendo.streams import Users, taste_groups
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.types import NEVER, Decision, FeedbackKind, Ints, Items
from tests.kit.menus import read_menu
from tests.kit.slow import mostly_slow, rows_mostly_slow

LEARNING: dict[str, Entry[Any]] = {entry.name: entry for entry in (SlateTotals, SlateClicks)}
N_ITEMS, SLOTS, USERS = 12, 3, 900
ROUNDS = 60
EPSILON = 0.5


def policy_of(learner: Learner) -> GroupedSlatePolicy:
    assert isinstance(learner.policy, GroupedSlatePolicy)
    return learner.policy


def contexts_of(private: bool) -> Contexts:
    return Contexts(taste=["a", "b", "c"], private=private)


def crowd(private: bool, users: int = USERS) -> Users:
    """Users of three tastes, each of whom wants items of her own."""
    result = taste_groups(users, N_ITEMS, groups=3, items_per_group=4, group_skew=0.0, seed=4)
    rows = result.matrices[0].tocsr()
    first = rows.indices[rows.indptr[:-1]]
    taste = np.unique(first, return_inverse=True)[1] % 3
    return result.with_contexts(contexts_of(private), taste)


def quick_splits(patch: pytest.MonkeyPatch) -> None:
    """So that short runs have many blocks, tell segments apart at once, and split them whatever was published."""
    patch.setattr("diminuendo.learners.slates.planner.USERS_PER_SLATE", 0.5)
    patch.setattr("diminuendo.learners.slates.planner.FIRST_SHARE", 0.9)
    patch.setattr("diminuendo.learners.slates.planner.SWEEPS", 1)
    patch.setattr("diminuendo.learners.slates.planner.WARY_DRAWS", 2)
    patch.setattr("diminuendo.learners.slates.planner.N_DRAWS", 8)
    for questions in (Totals, FirstClicks):
        patch.setattr(questions, "enough_for_chance", 1)
    patch.setattr(groups, "TOLD_USERS", 1.0)
    patch.setattr(groups, "LEAST_TOLD", 0.0)
    patch.setattr(groups, "TOLD_SHARE", 0.2)
    patch.setattr(groups, "LEAST_GROUP", 0.1)
    patch.setattr(groups, "USERS_PER_SLATE", 0.5)
    patch.setattr(Group, "differs", lambda self: bool(self._told_of))


def made(name: str, private: bool, seed: int = 3, **more: Any) -> Learner:
    options = {
        "horizon": USERS,
        "epsilon": 1.0,
        "contexts": contexts_of(private),
        "rng": SeededSource(seed),
    }
    return LEARNING[name](N_ITEMS, SLOTS, **options | more)


BOTH = pytest.mark.parametrize(
    ("name", "private"),
    rows_mostly_slow(
        itertools.product(LEARNING, (False, True)), [("slate-totals", True), ("slate-clicks", False)]
    ),
    ids=str,
)
"""Both learners, and contexts of both kinds; in every run each of them once."""


# Everything that all others see is private: by enumeration, in small worlds in which everything happens.


class Scripted:
    """In the place of noise: says what was decided beforehand, and writes down how likely that was."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.said, self.log_probability = script, 0, 0.0

    def laplace(self, values: Ints, scale: float, secret: object) -> Ints:
        said = np.array([self.script[(self.said + i) % len(self.script)] for i in range(len(values))])
        self.said += len(values)
        self.log_probability -= float(np.abs(said - values).sum()) / scale  # plus what no truth changes
        return said


Hers = tuple[Any, Any]
"""What one user comes with, and what she says."""


def told(
    name: str, private: bool, hers: Hers, at: int, script: list[int], patch: pytest.MonkeyPatch
) -> tuple[list[Decision], float, int]:
    """A run in which `script` is published: what others are shown, how likely that was, and how many groups."""
    kind = LEARNING[name]
    click = "click" in kind.reads
    others: list[Any] = [0, None, 1, 0] if click else [0.5, 1.0, 0.0, 0.25]
    scripted = Scripted(script)
    patch.setattr(noise, "laplace", scripted.laplace)
    contexts = contexts_of(private)
    learner = kind(4, 2, horizon=ROUNDS, epsilon=EPSILON, rng=SeededSource(5), contexts=contexts)
    decisions = []
    for t in range(ROUNDS):
        context, answer = hers if t == at else ("abc"[t % 3], others[t % 4])
        decisions.append(learner.choose(context=context))
        if answer != "no answer":
            learner.observe(decisions[-1], answer)
    return decisions, scripted.log_probability, len(policy_of(learner).groups)


def worst_ratio(name: str, private: bool, patch: pytest.MonkeyPatch) -> float:
    """The largest log-ratio of what others see, over what one user may come with and say."""
    click, worst, split = name == "slate-clicks", 0.0, False
    unit = 1 if click else Totals.ticks
    answers: list[Any] = ["no answer", None, 1] if click else ["no answer", float("nan"), 1.0]
    contexts = ["a", "b", "no such taste"] if private else ["b"]
    far = 40 * unit  # beyond what anybody says: high in some cells, low in others
    for script in ([-far, far, far], [far, -far, -far, far, far], [far], [unit, 0, 2 * unit, -unit]):
        for at in (1, 14, 24):
            runs = [
                told(name, private, hers, at, script, patch) for hers in itertools.product(contexts, answers)
            ]
            split |= runs[0][2] > 1
            for decisions, _, _ in runs:
                hidden = [decision for decision in decisions if not (private and decision.round == at)]
                seen = [decision for decision in runs[0][0] if not (private and decision.round == at)]
                assert hidden == seen, "what others are shown follows from what is published"
            likely = [log for _, log, _ in runs]
            worst = max(worst, max(likely) - min(likely))
    assert split, "groups were split in some of these runs"
    return worst


@pytest.mark.parametrize(
    ("name", "private"),
    rows_mostly_slow(itertools.product(LEARNING, (False, True)), [("slate-clicks", False)]),
    ids=str,
)
def test_what_others_see_is_private(name: str, private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_splits(monkeypatch)
    worst = worst_ratio(name, private, monkeypatch)
    assert 0.99 * EPSILON < worst <= EPSILON * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_hidden_cells_need_twice_the_noise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under private contexts with the noise that is enough for public ones, twice as much gets out."""
    quick_splits(monkeypatch)
    scale = PrivateCounts.scale
    monkeypatch.setattr(PrivateCounts, "scale", lambda self, sensitivity: scale(self, 1))
    assert worst_ratio(name, True, monkeypatch) > 1.9 * EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_the_next_card_of_a_deck_would_tell_everything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the place in the deck the number of users of the group so far, her context would move others."""
    quick_splits(monkeypatch)

    def next_card(self: Any, number: int, slates: Items, probes: Items, rng: Any, types: Ints) -> int:
        menu, counted = self.menu, vars(self).setdefault("counted", np.zeros(len(self.menu.decks), dtype=int))
        group = menu.groups[types[0]]
        slates[0] = menu.slates[menu.decks[group, counted[group]]]
        counted[group] += 1
        return 1

    chooser = type(policy_of(made(name, True)).chooser)
    monkeypatch.setattr(chooser, "draw", next_card)
    with pytest.raises(AssertionError, match="what others are shown"):
        worst_ratio(name, True, monkeypatch)


@pytest.mark.slow
def test_divisors_by_who_came_would_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were private contexts counted as they come, plans would follow from them."""
    quick_splits(monkeypatch)

    def record_arrivals(self: GroupedSlatePolicy, first: int, types: Ints, counts: Any) -> None:
        self.coming.saw(self.coming.segment_of[types])

    monkeypatch.setattr(GroupedSlatePolicy, "record_arrivals", record_arrivals)
    with pytest.raises(AssertionError, match="what others are shown"):
        worst_ratio("slate-totals", True, monkeypatch)


@BOTH
def test_propensities_tell_no_private_context(
    name: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_splits(monkeypatch)
    learner, users = made(name, private), crowd(private)
    chances = []
    for t in range(300):
        chances.append(learner.choose(context=users.contexts.said(int(users.types[t]))).propensity)  # type: ignore[union-attr,index]
    assert (set(chances) == {None}) == private
    assert len(policy_of(learner).groups) > 1
    if not private:
        assert all(chance is not None and 0 < chance <= 1 for chance in chances)


# The guarantee says whom it protects.


@BOTH
def test_the_guarantee_names_its_view(name: str, private: bool) -> None:
    guarantee = made(name, private, epsilon=2.0, max_rounds_per_user=2).guarantee
    assert guarantee.epsilon == pytest.approx(2.0)
    assert guarantee.delta == 0
    assert guarantee.view == ("all others" if private else "everybody")
    assert ("with their contexts" in guarantee.neighbours) == private
    assert "contexts-counts.md" in guarantee.proof


def test_a_ledger_for_another_relation_is_refused() -> None:
    ledger = Ledger(Budget(1.0, 0.0, Unit(), "pure"))
    with pytest.raises(InvalidInput, match="relation"):
        made("slate-totals", True, ledger=ledger)
    assert made("slate-totals", False, ledger=ledger).guarantee.epsilon == pytest.approx(1.0)


@BOTH
def test_the_recommended_learner_takes_contexts(name: str, private: bool) -> None:
    feedback: FeedbackKind = "click" if name == "slate-clicks" else "bandit"
    setting = Setting(N_ITEMS, SLOTS, 100, feedback, epsilon=1.0, delta=0.0, contexts=contexts_of(private))
    assert policy_of(make("private", setting)).frame.contexts == contexts_of(private)


@pytest.mark.parametrize("name", LEARNING)
def test_a_private_context_is_never_refused(name: str) -> None:
    learner = made(name, True)
    for context in ("nothing of the kind", 7, object(), {"mood": 1}, ["a", "b"], None):
        assert len(learner.choose(context=context).slate) == SLOTS  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="taste"):
        made(name, False).choose(context="nothing of the kind")


# The contract: replay is the loop, snapshots go on, menus are enough.


@BOTH
@pytest.mark.parametrize("feedback_window", mostly_slow([None, 40], [40]))
def test_replay_is_the_loop(
    name: str, private: bool, feedback_window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With answers that come late or never, and users who come too often."""
    quick_splits(monkeypatch)
    users = crowd(private)
    user_ids = [f"user {t - 1 if t % 5 == 4 else t}" for t in range(USERS)]
    delay = None
    if feedback_window:
        delay = np.random.default_rng(1).integers(0, 60, USERS)
        delay[::7] = NEVER
    runs = [made(name, private, feedback_window=feedback_window) for _ in range(2)]
    shown = [
        way(learner, users, user_ids=user_ids, delay=delay)
        for way, learner in zip((replay, loop), runs, strict=True)
    ]
    np.testing.assert_array_equal(shown[0], shown[1])
    assert len(policy_of(runs[0]).groups) > 1
    quick, slow = (policy_of(learner) for learner in runs)
    assert len(quick._counts._lots) == len(slow._counts._lots)
    if delay is None:  # else some answers are still on their way
        for one, other in zip(quick._counts._lots, slow._counts._lots, strict=True):
            np.testing.assert_array_equal(one, other)
        assert any(lot.any() for lot in quick._counts._lots)
    by_type = [{tuple(row) for row in shown[0][users.types == kind][-100:]} for kind in (1, 2, 3)]
    assert len(set(map(frozenset, by_type))) > 1, "users of different types are shown different slates"


@BOTH
def test_a_snapshot_goes_on(name: str, private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_splits(monkeypatch)
    users, dealt = crowd(private), 0
    for at in (0, 30, 111, 400, 777):
        learner = made(name, private)
        learner.replay(users[:at])
        written = learner.snapshot()
        twins = [LEARNING[name].restore(written, rng=SeededSource(9)) for _ in range(2)]
        assert twins[0].snapshot() == twins[1].snapshot() == written
        np.testing.assert_array_equal(
            twins[0].replay(users[at : at + 60]), twins[1].replay(users[at : at + 60])
        )
        assert twins[0].snapshot() == twins[1].snapshot()
        if not policy_of(learner).due():  # what was dealt goes on, and an answer is counted in the same cell
            dealt += 1
            third = LEARNING[name].restore(written, rng=SeededSource(9))
            chosen = [each.choose(context="b") for each in (learner, third)]
            assert chosen[0].slate == chosen[1].slate
            for each, decision in zip((learner, third), chosen, strict=True):
                each.observe(decision, 1)
            cells = [policy_of(each).extra() for each in (learner, third)]
            assert cells[0].keys() == cells[1].keys()
            for key, part in cells[0].items():
                np.testing.assert_array_equal(part, cells[1][key], err_msg=key)
    assert dealt > 1


def menus_of(name: str, private: bool) -> Iterator[tuple[bytes, list[int], list[Decision]]]:
    """Every menu of a run as bytes, the types of the users of its rounds, and what the learner showed them."""
    learner, users = made(name, private), crowd(private)
    menu, types, decisions = None, list[int](), list[Decision]()
    for t in range(400):
        kind = int(users.types[t])  # type: ignore[index]
        decision = learner.choose(context=contexts_of(private).said(kind))
        if learner.menu is not menu:
            if menu is not None:
                yield menu.to_bytes(), types, decisions
            menu, types, decisions = learner.menu, [], []
        types.append(kind)
        decisions.append(decision)


@BOTH
def test_who_holds_a_menu_can_choose(name: str, private: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_splits(monkeypatch)
    groups_seen = set()
    for written, types, decisions in menus_of(name, private):
        menu = read_menu(written)
        assert isinstance(menu, SlatesByGroup)
        assert menu.first <= decisions[0].round
        assert menu.end is not None
        assert decisions[-1].round < menu.end
        groups_seen.add(len(menu.decks))
        chooser, rng = menu.chooser(), PublicSource(SeededSource(1))
        for kind, decision in zip(types, decisions, strict=True):
            row, probe = np.zeros((1, SLOTS), dtype=np.int32), np.zeros((1, 3), dtype=np.int32)
            assert chooser.draw(decision.round, row, probe, rng.view, np.array([kind])) == 1
            assert tuple(row[0].tolist()) == decision.slate
            assert chooser.propensity(decision.round, row[0]) == decision.propensity
    assert len(groups_seen) > 1


# A crash.


@BOTH
def test_after_a_crash_the_same_is_shown_and_nothing_is_published_twice(
    name: str, private: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who begins again on the same ledger goes through the same decks, whoever comes then."""
    quick_splits(monkeypatch)
    unit = Unit(relation="replace-with-context" if private else "replace")
    users, runs = crowd(private)[:500], list[Any]()
    others = users.with_contexts(contexts_of(private), np.full(500, 1))
    for came in (users, others):
        with Ledger.open(tmp_path / "people.ledger", Budget(1.0, 0.0, unit, "pure")) as ledger:
            learner = made(name, private, ledger=ledger, rng=None)
            slates, last = learner.replay(came), learner.choose(context="a")
            runs.append((slates, len(ledger._drawn), policy_of(learner).group_of.tolist(), last))
    same = users.types == others.types
    before, again = runs
    np.testing.assert_array_equal(before[0][same], again[0][same])
    assert before[1:3] == again[1:3]
    assert max(before[2]) > 0
    assert again[3].propensity is None, "it may have been seen before"


def test_nobody_is_in_two_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that was planned before a crash begins while its users are in another: that one ends."""
    quick_splits(monkeypatch)
    learner = made("slate-totals", True)
    policy = policy_of(learner)
    learner.choose(context="a")
    (running,) = policy._blocks
    assert running.end > learner.rounds
    early = running.plan
    policy._adopt(early)
    assert policy._blocks[0].end == learner.rounds
    assert policy._blocks[0].first == running.first
    apart = OpenGroupBlock(running.plan, 0, running.leading, running.users, seen_before=False)
    nobody = np.full_like(early.parts, -1)
    assert apart.cut(1, nobody) is apart


# Who comes.


def test_public_segments_are_types_and_private_ones_are_few() -> None:
    wide = {"country": 9, "hour": 24}
    np.testing.assert_array_equal(segments_of(Contexts(wide)), np.arange(250))
    few = segments_of(Contexts(wide, private=True))
    assert few.max() + 1 == 10, "by the first column only"
    assert segments_of(Contexts(country=300, private=True)).max() == MOST_HIDDEN - 1
    assert len(segments_of(Contexts(country=20, private=True))) == 21


def test_shares_are_those_that_came() -> None:
    coming = Coming(contexts_of(False))
    np.testing.assert_allclose(coming.shares(), 0.25)
    coming.saw(np.repeat([1, 2, 3], [500, 300, 200]))
    np.testing.assert_allclose(coming.shares(), [0, 0.5, 0.3, 0.2], atol=0.01)


@pytest.mark.parametrize("name", LEARNING)
def test_noisy_counts_find_the_shares_of_private_segments(name: str) -> None:
    """Nobody counts who came; what is published says it all the same."""
    rng = np.random.default_rng(0)
    users = taste_groups(6000, N_ITEMS, groups=3, items_per_group=4, group_skew=0.0, seed=4)
    kinds = np.array([0, 1, 2])[users.matrices[0].tocsr().indices[::4] % 3]
    kinds = np.where(rng.random(6000) < 0.5, 0, kinds)
    learner = made(name, True, horizon=6000, epsilon=4.0)
    learner.replay(users.with_contexts(contexts_of(True), kinds))
    shares = policy_of(learner).coming.shares()
    truth = np.bincount(kinds + 1, minlength=4) / 6000
    np.testing.assert_allclose(shares, truth, atol=0.04)


# Splitting.


def evidence(rates: list[float], users: int, scale: float, seed: int = 0) -> Group:
    """A group of which one slate was published, told apart."""
    rng = np.random.default_rng(seed)
    learner = made("slate-totals", False)
    group = policy_of(learner).groups[0]
    group.users = 100
    block, _ = group.plan(0, np.full(4, 0.25), np.ones(4, dtype=bool), 800, 0, np.random.default_rng(1))
    many = np.full(len(rates), float(users))
    said = rng.binomial(users, rates) + rng.laplace(scale=scale or 1e-9, size=len(rates))
    parts = np.arange(4)
    object.__setattr__(block, "parts", parts)
    vars(block).pop("n_parts", None)
    group._compare(block, 0, said[:, None], many, np.zeros(4), scale)
    return group


def test_segments_that_differ_are_found_and_others_are_not() -> None:
    assert evidence([0.2, 0.5, 0.8, 0.5], 60, 1.0).differs()
    assert not evidence([0.5, 0.53, 0.5, 0.47], 4000, 1.0).differs(), "they do differ, but by too little"
    result = [evidence([0.5] * 4, 60, 10.0, seed).differs() for seed in range(200)]
    assert sum(result) <= 6, "about one in a hundred"


def test_all_of_whom_enough_come_are_split_and_the_largest_first() -> None:
    """Also those who were not told apart; nobody of another group, and nobody of whom few come."""
    group = policy_of(made("slate-totals", False)).groups[0]
    shares, members = np.array([0.02, 0.5, 0.2, 0.28]), np.array([True, True, True, False])
    assert group.to_split(shares, members, 1000).tolist() == [1, 2]
    assert group.to_split(shares, members, 200).tolist() == [1], "of 12 items in slates of 3: 64 users each"
    assert not len(group.to_split(shares, members, 100))


def test_a_leading_slate_for_few_users_does_not_end_the_telling() -> None:
    """It is told apart itself where it has enough users; else another is, when twice as many users have come."""
    group = policy_of(made("slate-totals", False)).groups[0]
    slates = np.array([[0, 1, 2], [3, 4, 5]], dtype=np.int32)
    block = SlateBlock(slates, np.array([10, 40]), np.array([3, 3]))
    group.planner._leading[:] = 1.0, 0.5, 0.01
    group.users = group._tested = 100
    assert group._row_to_tell(block, 40) == 1
    assert group._row_to_tell(block, 41) is None
    group.users = 200
    assert group._row_to_tell(block, 41) == 2


def test_useless_contexts_change_little_and_useful_ones_much() -> None:
    """Exact counts, so that few users are enough."""
    users = crowd(False, 6000)
    shuffled = users.with_contexts(contexts_of(False), np.random.default_rng(0).integers(0, 3, 6000))
    known, useless = (
        LEARNING["slate-totals"](
            N_ITEMS, SLOTS, horizon=6000, epsilon=4.0, rng=SeededSource(2), contexts=contexts_of(False)
        )
        for _ in range(2)
    )
    alone = LEARNING["slate-totals"](N_ITEMS, SLOTS, horizon=6000, epsilon=4.0, rng=SeededSource(2))
    plain = users.values(alone.replay(users)).mean()
    assert users.values(known.replay(users)).mean() > 1.1 * plain
    assert users.values(useless.replay(shuffled)).mean() > 0.95 * plain
    assert len(policy_of(known).groups) == 4
    assert len(policy_of(useless).groups) == 1
