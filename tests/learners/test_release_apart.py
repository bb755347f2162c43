"""Releasing is a step of its own: others go on choosing and answering while a thread releases."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner
from diminuendo.learners.base.policy import Policy
from diminuendo.privacy.ledger import Paid
from diminuendo.types import Ints, Items
from tests.kit.slow import MECHANISMS, mostly_slow
from tests.learners.test_late import BATCHED, ROUNDS, USERS, _answered, fresh

RELEASING = [name for name in BATCHED if LEARNERS[name].private]
ENOUGH = 40
"""Releases around which snapshots are taken; lazy-hedge has one in every second round."""


def released_in_between(name: str, feedback_window: int | None) -> Items:
    """The slates of a run in which somebody else publishes what is due, just before each round."""
    learner, feedback = fresh(name, feedback_window)
    shown = []
    for t in range(ROUNDS):
        while learner.due():
            learner.release()
        _answered(learner, feedback, t, release=False)
        shown.append(learner._frame.decisions.rows[t % learner._frame.decisions.remembered].copy())
    return np.array(shown)


@pytest.mark.parametrize("feedback_window", mostly_slow([None, 40], [40]))
@pytest.mark.parametrize("name", mostly_slow(BATCHED, MECHANISMS))
def test_who_releases_makes_no_difference(name: str, feedback_window: int | None) -> None:
    learner, _ = fresh(name, feedback_window)
    np.testing.assert_array_equal(released_in_between(name, feedback_window), learner.replay(USERS))


@pytest.mark.parametrize("name", mostly_slow(RELEASING, MECHANISMS))
def test_nobody_waits_for_a_release_that_is_under_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release stands still before its noise is drawn: users are chosen for, and answer, meanwhile."""
    learner, feedback = fresh(name, None)
    under_way, go_on, once = threading.Event(), threading.Event(), Paid.once
    t = 0
    while not learner.due() or t == 0:  # what is due first is the plan of a block
        _answered(learner, feedback, t)
        t += 1

    def waits(self: Paid, *args: Any) -> Ints:
        under_way.set()
        assert go_on.wait(60)
        return once(self, *args)

    monkeypatch.setattr(Paid, "once", waits)
    failed: list[BaseException] = []

    def release() -> None:
        try:
            learner.release()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=release)
    thread.start()
    assert under_way.wait(60), failed
    for more in range(20):
        _answered(learner, feedback, t + more, release=False)
    assert thread.is_alive(), "nobody waited for it"
    go_on.set()
    thread.join(60)
    assert not failed, failed
    assert not learner.due()
    for more in range(20, 60):
        _answered(learner, feedback, t + more)
    assert learner.rounds == t + 60


@pytest.mark.parametrize("feedback_window", mostly_slow([None, 40], [40]))
@pytest.mark.parametrize("name", mostly_slow(BATCHED, MECHANISMS))
def test_a_snapshot_while_something_is_due(name: str, feedback_window: int | None) -> None:
    """Whoever releases has not come to it for a long time: nothing is wrong with that."""
    learner, feedback = fresh(name, feedback_window)
    for t in range(ROUNDS // 2):
        _answered(learner, feedback, t, release=False)
    again = LEARNERS[name].restore(learner.snapshot())
    assert again.due()
    for t in range(ROUNDS // 2, ROUNDS):
        _answered(again, feedback, t)


@pytest.mark.parametrize("feedback_window", mostly_slow([None, 40], [40]))
@pytest.mark.parametrize("name", mostly_slow(BATCHED, MECHANISMS))
def test_a_snapshot_after_a_release(name: str, feedback_window: int | None) -> None:
    """Something was published, and nobody has come since: the next block may have begun already, with no round."""
    learner, feedback = fresh(name, feedback_window)
    releases = 0
    for t in range(ROUNDS // 2):
        if learner.due() and (releases := releases + 1) <= ENOUGH:
            learner.release()
            again = LEARNERS[name].restore(learner.snapshot())
            assert not again.due()
            again.choose_many(50)
        _answered(learner, feedback, t)


@pytest.mark.parametrize("name", mostly_slow(RELEASING, MECHANISMS))
def test_a_snapshot_after_a_release_that_could_not_be_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, and the ledger has to be opened again: the snapshot that is taken for that is read."""
    learner, feedback = fresh(name, 40)

    def full(self: Paid, *args: Any) -> Ints:
        raise OSError

    releases = 0
    for t in range(ROUNDS):
        if learner.due() and (releases := releases + 1) <= ENOUGH:
            with monkeypatch.context() as patch:
                patch.setattr(Paid, "once", full)
                with suppress(OSError):  # none, where a block of probes begins and nothing is published
                    learner.release()
            again = LEARNERS[name].restore(learner.snapshot())
            assert again.rounds == learner.rounds
            assert again.due() or not learner.due(), "what is due is not lost"
        _answered(learner, feedback, t)


@pytest.mark.parametrize("name", mostly_slow(BATCHED, MECHANISMS))
def test_when_nobody_comes_any_more_nothing_is_planned(name: str) -> None:
    """The last round was chosen before anything could be published: whoever releases goes on asking."""
    learner, feedback = fresh(name, 2 * ROUNDS)
    for t in range(ROUNDS):
        _answered(learner, feedback, t)
    learner.release()
    assert not learner.due()
    LEARNERS[name].restore(learner.snapshot())


def test_rounds_for_which_nothing_is_ready_do_not_count() -> None:
    learner, _ = fresh("slate-clicks", None)
    first = learner.choose(release=False)
    assert len(set(first.slate)) == len(first.slate)
    assert first.propensity == 1.0
    assert learner._frame.silent == [0]
    learner.observe(first, 0)
    learner.release()
    assert learner.choose(release=False).propensity != 1.0
    assert learner._frame.silent == [0]
    again = LEARNERS["slate-clicks"].restore(learner.snapshot())
    assert again._frame.silent == [0]


def test_a_policy_that_needs_no_release_is_always_ready() -> None:
    learner: Learner = fresh("fi-dp", None)[0]
    policy: Policy = learner.policy
    assert not policy.fill(np.zeros(3, dtype=np.int32))
    assert learner.choose(release=False).round == 0
