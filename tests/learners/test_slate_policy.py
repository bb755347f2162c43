"""Assigned rounds: who is asked what is public, what is published is private, and nothing else gets out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource, Setting
from diminuendo.errors import InvalidInput, WrongFeedback
from diminuendo.learners import LEARNERS, Learner, with_variants
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.slates.blocks import WHICH_SLOT, SlateBlock, merged
from diminuendo.learners.slates.clicks import FirstClicks, SlateClicks
from diminuendo.learners.slates.menu import remaining_same
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.learners.slates.totals import SlateTotals, Totals
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import PublicSource, noise
from diminuendo.streams import taste_groups
from diminuendo.sums import private_counts
from diminuendo.types import Decision, Floats, Ints
from tests.kit import statistics
from tests.kit.menus import read_menu
from tests.kit.slow import rows_mostly_slow

LEARNING: dict[str, Entry[Any]] = {entry.name: entry for entry in (SlateTotals, SlateClicks)}
EXACT = [name for name in with_variants() if name.startswith("slate-") and name not in LEARNING]
ROUNDS = 18
"""Two blocks of three items in slates of two, and a round that sees both published."""


def policy_of(learner: Learner) -> SlatePolicy:
    assert isinstance(learner.policy, SlatePolicy)
    return learner.policy


def counts_of(learner: Learner) -> private_counts.Counts:
    return policy_of(learner)._counts


def published_by(learner: Learner) -> Floats:
    said: Floats = policy_of(learner).planner.posterior.observations.arrays()["said"]
    return said


def plan_always(learner: Learner, block: SlateBlock) -> None:
    """Whatever was published, that block is next."""
    vars(policy_of(learner).planner)["next_block"] = lambda *_: block


class Scripted:
    """In the place of noise: says what was decided beforehand, and writes down how likely that was."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.said, self.log_probability = script, 0, 0.0

    def laplace(self, values: Ints, scale: float, secret: object) -> Ints:
        said = np.array([self.script[(self.said + i) % len(self.script)] for i in range(len(values))])
        self.said += len(values)
        self.log_probability -= float(np.abs(said - values).sum()) / scale  # plus what no truth changes
        return said


def small_blocks(patch: pytest.MonkeyPatch) -> None:
    """So that a short run has several blocks."""
    patch.setattr("diminuendo.learners.slates.planner.USERS_PER_SLATE", 1.0)
    patch.setattr("diminuendo.learners.slates.planner.FIRST_SHARE", 0.9)
    for questions in (Totals, FirstClicks):
        patch.setattr(questions, "enough_for_chance", 1)


def run(
    kind: Entry[Any],
    said: list[Any],
    script: list[int],
    epsilon: float,
    patch: pytest.MonkeyPatch,
    feedback_window: int | None = None,
) -> tuple[list[Decision], float, list[int]]:
    """A run in which `script` is published: its decisions, how likely that was, and what was asked."""
    told = Scripted(script)
    patch.setattr(noise, "laplace", told.laplace)
    small_blocks(patch)
    learner = kind(
        3, 2, horizon=len(said), epsilon=epsilon, rng=SeededSource(5), feedback_window=feedback_window
    )
    decisions, asked = [], []
    for answer in said:
        decisions.append(learner.choose())
        asked += policy_of(learner)._blocks[-1].block.questions.tolist()
        if answer != "no answer":
            learner.observe(decisions[-1], answer)
    assert told.said >= 3, "two blocks were published: two slates, then one or more"
    return decisions, told.log_probability, asked


def worst_ratio(
    kind: Entry[Any], epsilon: float, patch: pytest.MonkeyPatch, feedback_window: int | None = None
) -> tuple[float, set[int]]:
    """The largest log-ratio of whatever is published in a run, over what one user may say; and what was asked."""
    click = "click" in kind.reads
    others = [0, None, 1, 0] if click else [0.5, 1.0, 0.0, 0.25]
    hers = ["no answer", None, 0, 1] if click else ["no answer", 0.0, 0.4, 1.0, float("nan"), -3, 1e9]
    unit, worst, asked = 1 if click else Totals.ticks, 0.0, set[int]()
    rng = np.random.default_rng(8)
    scripts = [[int(n) * unit for n in rng.integers(-4, 9, 5)] for _ in range(6)]
    for script in [*scripts, [-3 * unit], [9 * unit], [0]]:
        for place in (0, 3, 9, 12):  # in the first block, or in the second
            runs = []
            for said in hers:
                answers: list[Any] = [others[t % 4] for t in range(ROUNDS)]
                answers[place] = said
                runs.append(run(kind, answers, script, epsilon, patch, feedback_window))
            assert all(decisions == runs[0][0] for decisions, *_ in runs), "what is shown follows from it"
            likely = [log for _, log, _ in runs]
            worst, asked = max(worst, max(likely) - min(likely)), asked | set(runs[0][2])
    return worst, asked


@pytest.mark.parametrize(
    ("name", "epsilon", "feedback_window"),
    rows_mostly_slow(
        itertools.product(LEARNING, (0.5, 8.0), (None, 5)),
        [("slate-clicks", 0.5, 5)],
    ),
)
def test_everything_published_in_a_whole_run_is_private(
    name: str, epsilon: float, feedback_window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact: given what is published, slates and propensities are the same, and its law is a product of factors."""
    worst, asked = worst_ratio(LEARNING[name], epsilon, monkeypatch, feedback_window)
    assert 0.999 * epsilon < worst <= epsilon * (1 + 1e-12)
    if name == "slate-clicks" and epsilon == 8:
        assert WHICH_SLOT in asked, "the question that needs more noise was among them"


@pytest.mark.slow
def test_noise_for_yes_and_no_is_too_little_for_which(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = private_counts.PrivateCounts.scale
    monkeypatch.setattr(private_counts.PrivateCounts, "scale", lambda self, sensitivity: scale(self, 1))
    worst, _ = worst_ratio(SlateClicks, 8.0, monkeypatch)
    assert worst > 1.9 * 8


def test_late_credit_would_cost_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer counted in whatever block is open when it comes: in one run at once, in the other later."""

    def delay(self: SlatePolicy, place: int, answer: Any) -> None:
        self._count(np.array([0]), np.array([answer]))

    monkeypatch.setattr(SlatePolicy, "learn", delay)
    small_blocks(monkeypatch)

    def answered(at: int) -> float:
        told = Scripted([9 * Totals.ticks, 0, *[-5 * Totals.ticks] * 4])
        monkeypatch.setattr(noise, "laplace", told.laplace)
        learner = SlateTotals(3, 2, horizon=ROUNDS, epsilon=0.5, rng=SeededSource(5))
        first = learner.choose()
        for t in range(1, ROUNDS):
            if t == at:
                learner.observe(first, 1.0)
            learner.choose()
        return told.log_probability

    assert answered(1) - answered(9) == pytest.approx(2 * 0.5), "and so it is not given"


@pytest.mark.parametrize("name", LEARNING)
def test_what_comes_after_its_block_says_nothing(name: str) -> None:
    kind = LEARNING[name]
    learner = kind(6, 2, horizon=400, epsilon=1.0, rng=SeededSource(3))
    first = learner.choose()
    while counts_of(learner).number == 0:
        learner.choose()
    before = counts_of(learner)._lots[0].copy()
    learner.observe(first, 1)
    np.testing.assert_array_equal(counts_of(learner)._lots[0], before)


@pytest.mark.parametrize("name", LEARNING)
def test_boundaries_do_not_depend_on_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers: the same rounds are assigned to the same slates, as long as the same is published."""
    silent: list[Any] = ["no answer"] * ROUNDS
    loud: list[Any] = [1] * ROUNDS
    for script in ([3], [0, 5, -2]):
        one, other = (run(LEARNING[name], said, script, 1.0, monkeypatch) for said in (silent, loud))
        assert one[0] == other[0]


@pytest.mark.parametrize("name", LEARNING)
def test_propensities_are_what_they_say(name: str) -> None:
    """Over many assignments of one block every slate comes as often as its decisions said."""
    slates: list[tuple[int, ...]] = [(0, 1), (2, 3), (1, 4)]
    sizes = np.array([6, 3, 1])
    block = SlateBlock(np.array(slates, dtype=np.int32), sizes, np.array([2, 2, 2]))
    third = []
    for seed in range(400):
        learner = LEARNING[name](5, 2, horizon=50, epsilon=1.0, rng=SeededSource(seed))
        plan_always(learner, block)
        left = sizes.copy()
        for decision in (learner.choose() for _ in range(10)):
            slate = slates.index(decision.slate)
            assert decision.propensity == left[slate] / left.sum(), "of those that are yet to come"
            left[slate] -= 1
            third += [slate] if decision.round == 2 else []
        assert not left.any()
    statistics.assert_follows(third, sizes / 10)
    statistics.assert_rejects(third, np.array([0.3, 0.6, 0.1]))


def test_rounds_that_show_the_same_count_together_whatever_they_ask() -> None:
    slates = np.array([[0, 1], [2, 3], [0, 1], [1, 0]], dtype=np.int32)
    assigned = np.random.default_rng(1).integers(4, size=50).astype(np.int32)
    shown = [slates[slate].tolist() for slate in assigned]
    expected = [shown[at:].count(slate) for at, slate in enumerate(shown)]
    assert remaining_same(slates, assigned).tolist() == expected


@pytest.mark.parametrize("name", LEARNING)
def test_snapshots_count_rounds_once(name: str) -> None:
    """Which slate a round was assigned to follows from its number."""
    learner = LEARNING[name](6, 2, horizon=300, epsilon=1.0, rng=SeededSource(3))
    for _ in range(7):
        decision = learner.choose()
    again = LEARNING[name].restore(learner.snapshot())
    again.observe(decision, 1)
    learner.observe(decision, 1)
    assert counts_of(learner)._lots[0].any()
    np.testing.assert_array_equal(counts_of(again)._lots[0], counts_of(learner)._lots[0])
    assert again.choose().slate == learner.choose().slate


def test_the_same_slate_with_the_same_question_is_one_number() -> None:
    one, other = np.array([1, 2], dtype=np.int32), np.array([2, 1], dtype=np.int32)
    block = merged([(one, 3, 2), (other, 4, 2), (one, 5, 2), (one, 6, WHICH_SLOT)])
    np.testing.assert_array_equal(block.slates, [[1, 2], [2, 1], [1, 2]])
    np.testing.assert_array_equal(block.sizes, [8, 4, 6])
    np.testing.assert_array_equal(block.questions, [2, 2, WHICH_SLOT])


@pytest.mark.parametrize("name", LEARNING)
def test_a_crash_publishes_nothing_twice(name: str, tmp_path: Path) -> None:
    """Restored in the midst of a block that was published before the crash: the same numbers, not new noise."""
    kind, users = LEARNING[name], taste_groups(300, 6, groups=2, items_per_group=3)
    budget = Budget(1.0, 0.0, Unit(), "pure")
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        learner = kind(6, 2, horizon=300, epsilon=1.0, ledger=ledger)
        learner.replay(users[:10])
        saved = learner.snapshot()
        learner.replay(users[10:60])
        before = published_by(learner)
        assert counts_of(learner).number == 1
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        again = kind.restore(saved, ledger=ledger)
        again.replay(users[200:260])  # other users: what was published before is not about them
        np.testing.assert_array_equal(published_by(again)[: len(before)], before)
        fresh = kind(6, 2, horizon=300, epsilon=1.0)
        fresh.replay(users[:60])
        assert not np.array_equal(published_by(fresh), before), "noise is noise"
        assert ledger.spent() == pytest.approx(1.0)


@pytest.mark.parametrize("name", LEARNING)
def test_who_begins_anew_on_the_same_ledger_publishes_nothing_new(name: str, tmp_path: Path) -> None:
    """The same users again, as when a job is run twice: the same blocks, the same numbers, one charge."""
    kind, users = LEARNING[name], taste_groups(200, 6, groups=2, items_per_group=3)
    budget = Budget(1.0, 0.0, Unit(), "pure")
    runs = []
    for _ in range(2):
        with Ledger.open(tmp_path / "ledger", budget) as ledger:
            learner = kind(6, 2, horizon=200, epsilon=1.0, ledger=ledger)
            runs.append((learner.replay(users), published_by(learner), len(ledger.drawn)))
            assert len(ledger.charges) == 1
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)
    with (
        Ledger.open(tmp_path / "ledger", budget) as ledger,
        pytest.raises(InvalidInput, match="something else"),
    ):
        kind(7, 2, horizon=200, epsilon=1.0, ledger=ledger)


@pytest.mark.parametrize("name", LEARNING)
def test_answers_of_before_a_crash_come_too_late(name: str, tmp_path: Path) -> None:
    """After it the same block is assigned again: the same number, the same slate, and still another round."""
    kind, budget = LEARNING[name], Budget(1.0, 0.0, Unit(), "pure")
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        learner = kind(4, 2, horizon=300, epsilon=1.0, ledger=ledger)
        saved = learner.snapshot()
        before = [learner.choose() for _ in range(30)]
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        again = kind.restore(saved, ledger=ledger)
        after = [again.choose() for _ in range(30)]
        assert [old.slate for old in before] == [new.slate for new in after]
        for old in before:
            again.observe(old, 1)
        assert not counts_of(again)._lots[0].any()
        for new in after:
            again.observe(new, 1)
        assert counts_of(again)._lots[0].any(), "theirs count"


def told(learner: Learner, number: int) -> list[float | None]:
    """The propensities of all rounds until `number` blocks are published."""
    result: list[float | None] = []
    while counts_of(learner).number < number:
        propensity = learner.choose().propensity
        result += [propensity] if counts_of(learner).number < number else []
    return result


@pytest.mark.parametrize("name", LEARNING)
def test_an_assignment_that_may_have_been_seen_has_no_propensities(name: str, tmp_path: Path) -> None:
    """What a ledger kept, or a snapshot, is shown again after a restart: certain, not drawn. The next block is new."""
    kind, budget, path = LEARNING[name], Budget(1.0, 0.0, Unit(), "pure"), tmp_path / "ledger"
    with Ledger.open(path, budget) as ledger:
        learner = kind(4, 2, horizon=2_000, epsilon=1.0, ledger=ledger)
        untouched = learner.snapshot()
        assert learner.choose().propensity is not None
        begun = learner.snapshot()
        assert None not in told(learner, 1)
    for saved in (untouched, begun):
        with Ledger.open(path, budget) as ledger:
            assert set(told(kind.restore(saved, ledger=ledger), 1)) == {None}
    with Ledger.open(path, budget) as ledger:
        again = kind.restore(untouched, ledger=ledger)
        told(again, 3)
        again.choose()  # of the fourth block, which nobody has seen: the others were shown by lives before
        assert None not in told(again, 4)


@pytest.mark.parametrize("name", LEARNING)
def test_a_snapshot_alone_keeps_its_assignment(name: str) -> None:
    learner = LEARNING[name](4, 2, horizon=2_000, epsilon=1.0, rng=SeededSource(1))
    learner.choose()
    again = LEARNING[name].restore(learner.snapshot())
    assert set(told(again, 1)) == {None}
    assert None not in told(again, 2)[1:]


def test_propensities_are_right_at_the_horizon() -> None:
    """Blocks are longer than the users who are left: the share is still that of the whole block."""
    slates: list[tuple[int, ...]] = [(0, 1), (2, 3)]
    block = SlateBlock(np.array(slates, dtype=np.int32), np.array([5, 5]), np.array([2, 2]))
    for seed in range(20):
        learner = SlateTotals(5, 2, horizon=1, epsilon=1.0, rng=SeededSource(seed))
        plan_always(learner, block)
        assert learner.choose().propensity == 0.5


def test_a_click_that_lies_about_itself_is_refused() -> None:
    class Liar(int):
        def __int__(self) -> int:
            return 4

        __index__ = __int__

    learner = SlateClicks(9, 3, horizon=90, epsilon=1.0, rng=SeededSource(1))
    with pytest.raises(WrongFeedback):
        learner.observe(learner.choose(), Liar(1))


@pytest.mark.parametrize("name", EXACT)
def test_without_noise_there_is_no_ledger(name: str) -> None:
    ledger = Ledger(Budget(1.0, 0.0, Unit(), "pure"))
    with pytest.raises(InvalidInput, match="no ledger"):
        LEARNERS[name](6, 2, horizon=9, epsilon=1.0, ledger=ledger)
    assert not ledger.charges


@pytest.mark.parametrize("epsilon", [1e-12, 1e3])
@pytest.mark.parametrize("name", LEARNING)
def test_extreme_budgets_work(name: str, epsilon: float) -> None:
    users = taste_groups(80, 6, groups=2, items_per_group=3)
    assert LEARNING[name](6, 2, horizon=80, epsilon=epsilon, rng=SeededSource(1)).replay(users).max() < 6


@pytest.mark.parametrize("name", LEARNING)
def test_several_visits_share_the_budget(name: str) -> None:
    kind = LEARNING[name]
    once, thrice = (
        kind.for_setting(
            Setting(6, 2, 300, next(iter(kind.reads)), 0.9, max_rounds_per_user=max_rounds_per_user)
        )
        for max_rounds_per_user in (1, 3)
    )
    assert counts_of(thrice).scale(1) == pytest.approx(3 * counts_of(once).scale(1), rel=1e-9)
    assert once.guarantee.epsilon == pytest.approx(0.9) == thrice.guarantee.epsilon
    assert once.guarantee.delta == 0


@pytest.mark.parametrize("name", LEARNING)
def test_the_horizon_is_kept(name: str) -> None:
    users = taste_groups(100, 6, groups=2, items_per_group=3)
    learner = LEARNING[name](6, 2, horizon=100, epsilon=1.0, rng=SeededSource(4))
    assert (learner.replay(users) >= 0).all()
    with pytest.raises(InvalidInput, match="made for 100 rounds"):
        learner.choose()


@pytest.mark.parametrize("name", LEARNING)
def test_where_a_plan_cannot_be_kept_nothing_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk between what was published and the next block: no answer is counted, and choosing goes on later."""
    learner: Learner = LEARNING[name](6, 2, horizon=300, epsilon=1.0, rng=SeededSource(3))
    first = learner.choose()
    while not learner.policy.due():
        learner.choose()
    with monkeypatch.context() as patch:
        patch.setattr(counts_of(learner), "planned", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        for _ in range(2):
            with pytest.raises(OSError, match="full"):
                learner.choose()
    assert counts_of(learner).number == 1, "published, and once"
    learner.observe(first, 1)
    again = LEARNING[name].restore(learner.snapshot())
    for other in (learner, again):
        assert other.choose().round == learner.rounds - 1
        assert counts_of(other).number == 1
        assert not counts_of(other)._lots[0].any()
        np.testing.assert_array_equal(published_by(other), published_by(learner))


@pytest.mark.parametrize("name", [*LEARNING, *EXACT])
def test_the_menu_says_what_is_shown_and_how_likely_it_was(name: str) -> None:
    """Read by somebody who holds nothing else: the same slates, propensities, and rounds."""
    (feedback,) = LEARNERS[name].reads
    learner = LEARNERS[name].for_setting(Setting(6, 2, 200, feedback), rng=SeededSource(3))
    for _ in range(200):
        decision = learner.choose()
        assert learner.menu is not None
        menu = read_menu(learner.menu.to_bytes())
        assert menu.end is not None
        assert menu.first <= decision.round < menu.end
        row = np.zeros((1, 2), dtype=np.int32)
        chooser = menu.chooser()
        assert chooser.draw(decision.round, row, row, PublicSource(SeededSource(9)).view) == 1
        assert tuple(row[0].tolist()) == decision.slate
        assert chooser.propensity(decision.round, row[0]) == decision.propensity
