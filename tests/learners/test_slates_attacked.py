"""Reward and click learners attacked: one hidden user, scripted noise, and all that may happen to a service.

Two worlds differ in one user alone: in what she says, excludes and comes with. Both are given the same public events
(items that come and go, rounds that do not wait for a release, crashes), the same coins and the same published numbers.
Then all that others see must be the same, byte for byte, and what was published about as likely: within epsilon.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from diminuendo import Contexts, Learner, SeededSource, SlateRules
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.learners.base.contribution_bound import hashed
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.menu import Menu
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.slates.blocks import sensitivity_of
from diminuendo.learners.slates.clicks import FirstClicks, SlateClicks
from diminuendo.learners.slates.contexts import groups
from diminuendo.learners.slates.contexts.blocks import GroupBlock
from diminuendo.learners.slates.contexts.groups import Group
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.learners.slates.totals import SlateTotals, Totals
from diminuendo.objectives import BestMatch
from diminuendo.privacy.budget import Budget, Relation, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise
from diminuendo.streams import Users
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Decision, Ints, Items, Words

ENTRIES: dict[str, Entry[Any]] = {entry.name: entry for entry in (SlateTotals, SlateClicks)}
EPSILON = 0.5
HER = "ada"
SAYS: dict[str, list[Any]] = {
    "slate-totals": ["nothing", 1.0, float("nan"), 10**400, 0.5],
    "slate-clicks": ["nothing", 0, 1, None, 7],
}
Step = tuple[str, Any]
EVENTS: dict[int, Step] = {
    6: ("snapshot", 0), 14: ("crash", 0), 15: ("retire", 0), 19: ("appear", 0), 22: ("snapshot", 0),
    25: ("retire", 1), 28: ("crash", 0),
}  # fmt: skip
"""What happens besides, some rounds later in each world; a crash goes back to the first snapshot."""


@pytest.fixture(autouse=True)
def small_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs have many blocks and groups; nothing waits for a disk."""
    for name, value in {
        "USERS_PER_SLATE": 0.5,
        "FIRST_SHARE": 0.9,
        "SWEEPS": 1,
        "WARY_DRAWS": 2,
        "N_DRAWS": 8,
    }.items():
        monkeypatch.setattr(f"diminuendo.learners.slates.planner.{name}", value)
    for name, number in {
        "TOLD_USERS": 1.0,
        "LEAST_TOLD": 0.0,
        "TOLD_SHARE": 0.2,
        "LEAST_GROUP": 0.1,
    }.items():
        monkeypatch.setattr(groups, name, number)
    monkeypatch.setattr(groups, "USERS_PER_SLATE", 0.5)
    monkeypatch.setattr(Group, "differs", lambda self: bool(self._told_of))
    for questions in (Totals, FirstClicks):
        monkeypatch.setattr(questions, "enough_for_chance", 1)
    monkeypatch.setattr(os, "fsync", lambda file: None)


class SteadySource:
    """Coins that a ledger in a file takes, and that repeat themselves; each life of a learner has its own."""

    secure = True

    def __init__(self, *seed: int) -> None:
        self._public, self._secret = (
            np.random.Philox(part) for part in np.random.SeedSequence(seed).spawn(2)
        )

    def public(self, count: int) -> Words:
        return np.asarray(self._public.random_raw(count), dtype=np.uint64)

    def secret(self, count: int) -> Words:
        return np.asarray(self._secret.random_raw(count), dtype=np.uint64)


class World(NamedTuple):
    """All that is public."""

    name: str
    contexts: str | None
    exclusions: bool
    seed: int

    @property
    def max_rounds_per_user(self) -> int:
        return 1 + self.seed % 2

    @property
    def hides(self) -> bool:
        """Whether her own slates are out of sight."""
        return self.exclusions or self.contexts == "private"

    def steps(self) -> list[Step]:
        """Who comes, what else happens, and when; she comes once more than counts."""
        draw, result = random.Random(self.seed), list[Step]()
        for t in range(36):
            if t - self.seed in EVENTS:
                result.append(EVENTS[t - self.seed])
            result.append(("come" if draw.random() < 0.8 else "not wait", f"user {t}"))
        coming = [place for place, (kind, _) in enumerate(result) if kind in ("come", "not wait")]
        for place in draw.sample(coming[:24], self.max_rounds_per_user + 1):
            result[place] = (result[place][0], HER)
        return result


class Hers(NamedTuple):
    """What she comes with in each of her rounds, what she excludes, what she says, and after how many steps."""

    context: Any
    exclude: Any
    answer: Any
    delay: int


class Script:
    """In the place of noise: says what was decided beforehand, and adds up how likely that was."""

    def __init__(self, numbers: dict[int, int], far: int) -> None:
        self.numbers, self.far, self.log = numbers, far, 0.0
        self.sums: list[int] = []

    def laplace(self, values: Ints, scale: float, secret: object) -> Ints:
        draw = [self.numbers.setdefault(len(self.sums) + at, self.far) for at in range(len(values))]
        self.sums += values.tolist()
        self.log -= float(np.abs(np.array(draw) - values).sum()) / scale  # plus what no truth changes
        return np.array(draw, dtype=np.int64)


class Attack:
    """One world as it goes on with one version of her."""

    def __init__(self, world: World, hers: list[Hers], script: Script, folder: Path) -> None:
        self.world, self.hers, self.script, self.folder = world, list(hers), script, folder
        self.view: list[Any] = []
        self._seen = hashlib.sha256()
        self._menu: Menu | None = None
        self._incarnations, self._kept = 0, list[bytes]()
        self._said: list[tuple[int, str, Decision, Any]] = []
        self._learner = self._begin(None)
        for number, step in enumerate(world.steps()):
            self._do(number, *step)
            self._answer(number)
            self._look()
        self._ledger.close()

    def _look(self) -> None:
        learner, ledger = self._learner, self._ledger
        if learner.menu is not None and learner.menu is not self._menu:  # menus are never changed
            self._menu = learner.menu
            self._see(hashlib.sha256(self._menu.to_bytes()).hexdigest())
        self._see(learner.rounds, learner.due(), ledger.head, tuple(learner._frame.silent))

    def _see(self, *what: Any) -> None:
        self.view.append(what)
        self._seen.update(repr(what).encode())

    def _pick(self, *choices: Any) -> Any:
        """What others do follows from what they see."""
        return choices[int.from_bytes(self._seen.digest()[:4], "big") % len(choices)]

    def _begin(self, snapshot: bytes | None) -> Learner:
        world, private = self.world, self.world.contexts == "private"
        relation: Relation = "replace-with-exclusions" if world.exclusions else "replace"
        unit = Unit(world.max_rounds_per_user, "replace-with-context" if private else relation)
        self._ledger = Ledger.open(self.folder / "ledger", Budget(EPSILON, 0.0, unit, "pure"))
        self._incarnations += 1
        rng, entry = SteadySource(world.seed, self._incarnations), ENTRIES[world.name]
        if snapshot is not None:
            return entry.restore(snapshot, rng=rng, ledger=self._ledger)
        contexts = None if world.contexts is None else Contexts(taste=["a", "b"], private=private)
        return entry(
            4, 2, horizon=100, epsilon=EPSILON, max_rounds_per_user=world.max_rounds_per_user,
            ledger=self._ledger, rng=rng,
            feedback_window=(None, 3)[world.seed // 2 % 2], contexts=contexts, exclusions=world.exclusions,
        )  # fmt: skip

    def _do(self, number: int, kind: str, what: Any) -> None:
        if kind in ("come", "not wait"):
            self._come(number, what, kind == "come")
        elif kind == "snapshot":
            self._kept.append(self._learner.snapshot())
        elif kind == "crash":
            self._ledger.close()
            self._learner = self._begin(self._kept[0])
        else:
            getattr(self._learner, kind)([what])

    def _come(self, number: int, who: str, waits: bool) -> None:
        other = Hers(
            self._pick("a", "b", None), self._pick([], [0], [2, 3]), self._pick(*SAYS[self.world.name]), 0
        )
        mine = self.hers.pop(0) if who == HER else other._replace(delay=self._pick(0, 0, 2, 9))
        more = {} if self.world.contexts is None else {"context": mine.context}
        more |= {"exclude": mine.exclude} if self.world.exclusions else {}
        decision = self._learner.choose(who, release=waits, **more)
        if who != HER or not self.world.hides:
            self._see(decision, decision.incarnation)
        self._said.append((number + mine.delay, who, decision, mine.answer))

    def _answer(self, now: int) -> None:
        for when, who, decision, answer in self._said:
            if when == now and not isinstance(answer, str):
                try:
                    self._learner.observe(decision, answer)
                except DiminuendoError as error:
                    if who != HER:
                        self._see(str(error))


def versions(world: World) -> list[list[Hers]]:
    """Versions of her: silent, and with two answers far apart; all else about her varies."""
    draw = random.Random(world.seed + 1000)
    contexts: list[Any] = ["a", "b", None, object()] if world.contexts == "private" else ["b"]
    excludes: list[Any] = [[], [0], [1, 2], range(4), "abc", [float("nan"), 3]]
    return [
        [
            Hers(draw.choice(contexts), draw.choice(excludes), answer, draw.choice([0, 0, 1, 8]))
            for _ in range(world.max_rounds_per_user + 1)
        ]
        for answer in SAYS[world.name][:3]
    ]


def worst_ratio(world: World, folder: Path, patch: pytest.MonkeyPatch) -> float:
    """The largest log-ratio of what others see, over versions of her and over numbers that become worse for her."""
    hers, worst = versions(world), 0.0
    far = 100 * ENTRIES[world.name](4, 2, horizon=9, epsilon=1.0).policy._counts.ticks  # type: ignore[attr-defined]
    draw = random.Random(world.seed)
    numbers = {at: draw.choice([-far, far]) for at in range(400)}
    for lap in range(4):
        runs = []
        for number, version in enumerate(hers):
            script = Script(numbers, far)
            patch.setattr(noise, "laplace", script.laplace)
            place = folder / f"{world.name} {world.contexts} {world.exclusions} {world.seed} {lap} {number}"
            place.mkdir()
            runs.append(Attack(world, version, script, place))
        worse = dict(numbers)
        for one, other in itertools.combinations(runs, 2):
            assert one.view == other.view, "what others see follows from what is published"
            worst = max(worst, abs(one.script.log - other.script.log))
            for at, (mine, theirs) in enumerate(zip(one.script.sums, other.script.sums, strict=True)):
                if mine != theirs:
                    worse[at] = far if mine > theirs else -far
        numbers = worse
        if worst > 0.99 * EPSILON:
            break
    return worst


def worlds(
    *seeds: int, contexts: Any = (None, "public", "private"), exclusions: Any = (False, True)
) -> list[World]:
    return [World(*each) for each in itertools.product(ENTRIES, contexts, exclusions, seeds)]


KNOWN: list[tuple[str | None, bool]] = [(None, False), ("public", True), ("private", False)]
FEW = [World(name, contexts, excludes, 1) for name in ENTRIES for contexts, excludes in KNOWN]
MANY = worlds(1) + worlds(2, exclusions=(True,))


@pytest.mark.parametrize("tried", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_others_see_the_same_whatever_one_user_does(
    tried: list[World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        old = getattr(owner, name)

        def counted(self: Any, *args: Any) -> Any:
            happened[name] += 1
            return old(self, *args)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (Counts, "skip"),
        (Group, "begin"),
        (Learner, "_take_snapshot"),
        (SlatePolicy, "fill"),
    ):
        count(owner, name)
    worst = {world: worst_ratio(world, tmp_path, monkeypatch) for world in tried}
    assert max(worst.values()) <= EPSILON * (1 + 1e-12)
    for name, hides in itertools.product(ENTRIES, (False, True)):
        reached = max(ratio for world, ratio in worst.items() if (world.name, world.hides) == (name, hides))
        assert reached > 0.99 * EPSILON, "the bound is attained"
    assert len(happened) == 4, "plans were passed over, groups split, snapshots read, and some did not wait"


# Faults that are planted are found.


def leaks(tried: list[World], folder: Path, patch: pytest.MonkeyPatch) -> bool:
    """Whether others see, in some of these worlds, what they should not."""
    for world in tried:
        try:
            if worst_ratio(world, folder, patch) > EPSILON * (1 + 1e-9):
                return True
        except AssertionError:
            return True
    return False


def test_hidden_cells_with_too_little_noise_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sensitivity(self: GroupBlock) -> Ints:
        return np.repeat(sensitivity_of(self.block.questions), self.often * self.widths)

    monkeypatch.setattr(GroupBlock, "sensitivity", property(sensitivity))
    assert leaks(worlds(1, 2, 3, contexts=("private",)), tmp_path, monkeypatch)


def test_a_card_that_is_given_back_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_rows = SlatePolicy.draw_rows

    def given_back(self: SlatePolicy, slates: Items, probes: Items | None = None) -> int:
        drawn, menu = draw_rows(self, slates, probes), self._blocks[-1].menu
        turn, planned = self.frame.rounds - menu.first, menu.slates[menu.assigned]
        if turn + 1 < len(planned) and (slates[0] != planned[turn]).any():
            menu.assigned[[turn, turn + 1]] = menu.assigned[[turn + 1, turn]]
        return drawn

    monkeypatch.setattr(SlatePolicy, "draw_rows", given_back)
    assert leaks(worlds(1, 2, 3, contexts=(None,), exclusions=(True,)), tmp_path, monkeypatch)


@pytest.mark.slow
def test_a_visit_that_is_given_back_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out, choose_one, changed = MenuPolicy.leave_out, Learner._choose_one, list[bool]()

    def noticed(self: MenuPolicy, slates: Items, types: Ints) -> None:
        before = slates.copy()
        leave_out(self, slates, types)
        changed.append(bool((before != slates).any()))

    def given_back(self: Learner, user: Any, release: bool, inside: Any) -> Decision:
        changed.clear()
        decision, limit = choose_one(self, user, release, inside), self._frame.contribution_bound
        if any(changed) and limit is not None:
            limit._rounds[hashed(user)] -= 1
            limit._rounds = {key: count for key, count in limit._rounds.items() if count}
        return decision

    monkeypatch.setattr(MenuPolicy, "leave_out", noticed)
    monkeypatch.setattr(Learner, "_choose_one", given_back)
    assert leaks(worlds(1, 2, 3, exclusions=(True,)), tmp_path, monkeypatch)


# What was found.


def test_a_split_that_is_under_way_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users go on coming while another thread splits a group; whether they may must not depend on private contexts."""
    contexts = Contexts(taste=["a", "b"], private=True)
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), contexts=contexts)
    begin, raised, coming = Group.begin, list[BaseException](), iter([None, "a", "b"])

    def come() -> None:
        try:
            for context in coming:
                learner.choose(context=context, release=False)
        except BaseException as error:
            raised.append(error)

    def meanwhile(self: Group, segment: int, planner: Any) -> Group:
        others = threading.Thread(target=come)
        others.start()
        others.join()
        return begin(self, segment, planner)

    monkeypatch.setattr(Group, "begin", meanwhile)
    while learner.rounds < 40 and not raised:
        learner.release()
        learner.observe(learner.choose(context="ab"[learner.rounds % 2], release=False), learner.rounds % 2)
    assert next(coming, "nobody") == "nobody", "a group was split"
    if raised:
        raise raised[0]


def test_late_answers_do_not_tell_what_is_shown_in_the_next_incarnation() -> None:
    """A round that is chosen again after a crash is another user's, and her slate is hers alone."""
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), exclusions=True)
    learner.choose()
    snapshot = learner.snapshot()
    his = learner.choose()
    for exclude in ([], [his.slate[0]]):
        again = SlateTotals.restore(snapshot, rng=SeededSource(6))
        again.choose(exclude=exclude)
        again.observe(his, 1.0)  # too late, whatever she excludes
        with pytest.raises(InvalidInput, match="expired"):
            again.row_of(his)


def test_a_snapshot_is_read_where_a_block_was_shown_to_nobody_while_another_waits() -> None:
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), feedback_window=6)
    learner.release()
    while not learner.due():
        learner.choose(release=False)
    learner.release()  # the next block is open, and the first waits for answers
    learner.retire([0])
    learner.retire([1])
    again = SlateTotals.restore(learner.snapshot(), rng=SeededSource(6))
    assert again.rounds == learner.rounds
    assert set(again.choose().slate) == {2, 3}


def test_items_that_are_gone_stand_in_for_nothing() -> None:
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), exclusions=True)
    learner.retire([3])
    assert 3 not in learner.choose(exclude=[0, 1], release=False).slate


def test_a_replay_goes_on_when_all_segments_have_left_a_group() -> None:
    contexts, users = Contexts(taste=["a", "b"]), Users(BestMatch(), np.eye(4)[np.arange(200) % 4])
    learner = SlateTotals(
        4,
        2,
        horizon=200,
        epsilon=1.0,
        rng=SeededSource(5),
        contexts=contexts,
        exclusions=True,
        feedback_window=9,
    )
    tastes = (np.arange(200) % 3 - 1)[:, None]
    slates = learner.replay(users, contexts=tastes, exclude=[[0]] * 200)
    assert learner.rounds == len(slates) == 200
    assert not (slates == 0).any()


def test_items_that_are_gone_stand_in_for_nothing_after_a_restart() -> None:
    for contexts in (None, Contexts(taste=["a", "b"])):
        learner = SlateTotals(
            4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), exclusions=True, contexts=contexts
        )
        learner.retire([3])
        again = SlateTotals.restore(learner.snapshot(), rng=SeededSource(6))
        decision = again.choose(exclude=[0, 1], release=False)
        assert decision.slate == (2,)
        assert decision.propensity is None, "as of everybody"


def test_a_plan_by_other_rules_is_not_shown(tmp_path: Path) -> None:
    """Before a crash any item might be in any slot; the learner of after it has a slot for items of its own."""
    budget = Budget(1.0, 0.0, Unit(), "pure")
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        SlateTotals(4, 2, horizon=60, epsilon=1.0, ledger=ledger).choose()
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        rules = SlateRules(eligible=[[0], [1, 2, 3]])
        learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, ledger=ledger, rules=rules)
        assert {learner.choose().slate[0] for _ in range(20)} == {0}


class Rude(float):
    """A reward that raises when it is compared."""

    def __le__(self, other: object) -> bool:
        raise RuntimeError("a secret")

    __lt__ = __gt__ = __ge__ = __le__


def test_answers_that_cannot_be_read_leave_those_of_others_alone() -> None:
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5))
    decisions = learner.choose_many(3)
    with pytest.raises(InvalidInput, match="Number 1: what was said cannot be read") as said:
        learner.observe_many(decisions, [1.0, Rude(0.5), 1.0])
    assert "secret" not in str(said.value)
    assert learner._frame.decisions.waiting[:3].tolist() == [False, True, False], "the others have answered"


class Large(int):
    """A number that is another one when it is asked again."""

    def __int__(self) -> int:
        return 10**30


def test_numbers_that_are_other_numbers_exclude_nothing() -> None:
    learner = SlateTotals(4, 2, horizon=60, epsilon=1.0, rng=SeededSource(5), exclusions=True)
    assert len(learner.choose(exclude=[Large(1), 2]).slate) == 2
    assert learner.rounds == 1
