"""Answers that come late or never: what counts, when something is published, and what a run may depend on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, SeededSource, Setting, restore
from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import with_variants
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.replay import loop, replay
from diminuendo.streams import taste_groups
from diminuendo.types import FEEDBACKS, NEVER, Decision, FeedbackKind, Ints, Items
from tests.kit.slow import mostly_slow

N_ITEMS, SLOTS, ROUNDS = 8, 3, 600
USERS = taste_groups(ROUNDS, N_ITEMS, groups=3, items_per_group=4, seed=4)


def fresh(name: str, feedback_window: Any, seed: int = 3) -> tuple[Learner, FeedbackKind]:
    entry = LEARNERS[name]
    feedback = next(kind for kind in FEEDBACKS if kind in entry.reads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
        setting = Setting(N_ITEMS, SLOTS, ROUNDS, feedback, epsilon=4.0, feedback_window=feedback_window)
        return entry.for_setting(setting, rng=SeededSource(seed)), feedback


BATCHED = [
    name
    for name in with_variants()
    if isinstance(fresh(name, None)[0].policy, MenuPolicy) and name != "random"
]
"""Learners that publish in batches, blocks or epochs."""
PRIVATE = [name for name, entry in LEARNERS.items() if entry.private]
QUICK = ("overlap-greedy", "lazy-hedge", "slate-clicks")
"""Of these every run tries one that keeps users, one that adds them up and one that counts slates."""


def delays(kind: str) -> Ints:
    """How late everybody answers; some at their very deadline, where 40 rounds are waited, and some just after it."""
    rng = np.random.default_rng(6)
    if kind == "all alike":
        return np.full(ROUNDS, 40)
    spread = rng.exponential(20, ROUNDS).astype(np.int64)
    spread[::5] = rng.integers(39, 43, len(spread[::5]))
    return np.where(rng.random(ROUNDS) < 0.3, NEVER, spread) if kind == "some never" else spread


def looped(name: str, feedback_window: Any, delay: Ints | None) -> Items:
    learner, feedback = fresh(name, feedback_window)
    return loop(learner, USERS, feedback, delay=delay)


@pytest.mark.parametrize("kind", mostly_slow(["all alike", "out of order", "some never"], ["some never"]))
@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_a_replay_with_late_answers_is_the_loop(name: str, kind: str) -> None:
    delay = delays(kind)
    learner, feedback = fresh(name, 40)
    np.testing.assert_array_equal(replay(learner, USERS, feedback, delay=delay), looped(name, 40, delay))


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_when_users_answer_makes_no_difference_before_the_deadline(name: str) -> None:
    at_once = looped(name, 40, None)
    np.testing.assert_array_equal(looped(name, 40, np.random.default_rng(1).integers(0, 41, ROUNDS)), at_once)
    np.testing.assert_array_equal(looped(name, 40, np.full(ROUNDS, 40)), at_once)
    too_late = looped(name, 40, np.full(ROUNDS, 41))
    np.testing.assert_array_equal(too_late, looped(name, 40, np.full(ROUNDS, NEVER)))


@pytest.mark.parametrize("further", [3, 4])
def test_pure_experts_learn_from_late_answers_as_from_others(further: int) -> None:
    """A deadline of three further rounds: an answer after three changes what is known, and one after four does not."""
    learner, feedback = fresh("fi-pure", 3)
    first = learner.choose()
    learner.choose_many(further)
    before = learner.snapshot()
    learner.observe(first, _said(feedback, 0, first))
    assert (learner.snapshot() != before) == (further == 3)


@pytest.mark.parametrize("feedback_window", [0, 1, 7])
@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_an_answer_is_in_time_when_exactly_as_many_further_rounds_were_chosen(
    name: str, feedback_window: int
) -> None:
    for further in (feedback_window, feedback_window + 1):
        learner, feedback = fresh(name, feedback_window)
        first = learner.choose()
        for _ in range(further):
            learner.choose()
        before = learner.snapshot()
        learner.observe(first, _said(feedback, 0, first))
        assert (learner.snapshot() == before) == (further > feedback_window)


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_an_answer_counts_at_the_very_end_of_its_time(name: str) -> None:
    for seconds, counts in ((10.0, True), (10.5, False)):
        clock = Clock()
        learner, feedback = fresh(name, FeedbackWindow(seconds=10, clock=clock))
        first = learner.choose()
        clock.now += seconds
        assert learner._frame.closed == int(not counts)
        before = learner.snapshot()
        learner.observe(first, _said(feedback, 0, first))
        assert (learner.snapshot() != before) == counts


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_somebody_waits(name: str) -> None:
    """What is published about the first rounds is published later, so slates differ; and not before."""
    at_once, waiting = looped(name, None, None), looped(name, 40, None)
    assert (at_once != waiting).any()
    assert (looped(name, 0, None) == at_once).all(), "to wait until the next round is not to wait"


def _answered(learner: Learner, feedback: FeedbackKind, t: int, *, release: bool = True) -> None:
    decision = learner.choose(release=release)
    learner.observe(decision, _said(feedback, t, decision))


def _said(feedback: FeedbackKind, t: int, decision: Decision) -> Any:
    if feedback == "click":
        return USERS.click(t, decision.slate)
    return USERS[t] if feedback == "full" else USERS[t].value(decision.slate)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_a_deadline_in_seconds_is_one_in_rounds_when_rounds_are_a_second_apart(name: str) -> None:
    clock, shown = Clock(), []
    learner, feedback = fresh(
        name, FeedbackWindow(seconds=39, in_flight=40, expected_pending=39, clock=clock)
    )
    in_rounds = looped(name, 39, None)
    for t in range(ROUNDS):
        _answered(learner, feedback, t)
        shown.append(learner._frame.decisions.rows[t % 40].copy())
        clock.now += 1
    np.testing.assert_array_equal(np.array(shown), in_rounds)


def test_time_that_goes_backwards_settles_nothing_twice() -> None:
    clock = Clock()
    learner, _ = fresh("slate-clicks", FeedbackWindow(seconds=10, clock=clock))
    first = learner.choose()
    clock.now += 11
    assert learner._frame.closed == 1
    clock.now -= 100
    assert learner._frame.closed == 1
    learner.observe(first, 0)
    assert learner.policy._counts.exact().sum() == 0, "too late, whatever the clock says now"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_an_answer_does_not_move_the_clock(name: str) -> None:
    """Time leaps, somebody answers or does not, and the clock is set back: nobody can tell by what happens next."""

    def public(answers: bool) -> list[Any]:
        clock, seen = Clock(), list[Any]()
        learner, feedback = fresh(name, FeedbackWindow(seconds=50, in_flight=400, clock=clock))
        for t in range(ROUNDS // 2):
            decision = learner.choose()
            if t == ROUNDS // 3:
                clock.now += 1000
                if answers:
                    learner.observe(decision, _said(feedback, t, decision))
                clock.now -= 1000
            seen.append((learner.due(), decision.slate, decision.propensity))
        return seen

    assert public(answers=True) == public(answers=False)


@pytest.mark.parametrize("name", mostly_slow(BATCHED, QUICK))
def test_a_snapshot_may_be_read_long_after_it_was_written(name: str) -> None:
    """By then every deadline has passed, and what was not due is."""
    clock = Clock()
    learner, feedback = fresh(name, FeedbackWindow(seconds=500, in_flight=ROUNDS, clock=clock))
    for t in range(ROUNDS // 2):
        _answered(learner, feedback, t)
    clock.now += 1000
    again = LEARNERS[name].restore(learner.snapshot(), clock=clock)
    assert again.due()
    for t in range(ROUNDS // 2, ROUNDS):
        _answered(again, feedback, t)


def test_a_snapshot_that_waits_in_seconds_asks_for_a_clock() -> None:
    learner, _ = fresh("slate-clicks", FeedbackWindow(seconds=10, clock=Clock()))
    with pytest.raises(InvalidInput, match=r"restore\(snapshot, clock=time.time\)"):
        restore(learner.snapshot())


def test_more_in_flight_than_was_said_settles_the_oldest() -> None:
    learner, _ = fresh("slate-clicks", FeedbackWindow(seconds=10, in_flight=5, clock=Clock()))
    for _ in range(8):
        learner.choose()
    assert learner._frame.closed == 3


@pytest.mark.parametrize(
    "feedback_window",
    [
        {"rounds": -1},
        {"rounds": 2.5},
        {"rounds": 3, "seconds": 4},
        {"seconds": 0, "clock": Clock()},
        {"seconds": 4},
        {"response_rate": 0},
        {"response_rate": 1.5},
        {"clock": 7},
    ],
)
def test_what_feedback_window_cannot_be(feedback_window: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        FeedbackWindow(**feedback_window)


def test_seconds_cannot_be_replayed() -> None:
    learner, _ = fresh("epoch-greedy", FeedbackWindow(seconds=3, clock=Clock()))
    with pytest.raises(InvalidInput, match="feedback_window in rounds"):
        learner.replay(USERS)


def test_lateness_without_feedback_window_is_looped() -> None:
    learner, feedback = fresh("epoch-greedy", None)
    with pytest.raises(InvalidInput, match="loop"):
        learner.replay(USERS, delay=np.full(ROUNDS, 3))
    assert len(replay(learner, USERS, feedback, delay=np.full(ROUNDS, 3))) == ROUNDS
