"""What fails in the middle: nobody counts twice, nothing is drawn twice, and what can go on goes on."""

from __future__ import annotations

import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, NoisyOr, Oracle, SeededSource, Setting, user
from diminuendo.errors import InvalidInput, OutOfRange, OverBudget, WrongFeedback
from diminuendo.learners import OverlapGreedy
from diminuendo.objectives.user import User
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard
from diminuendo.streams import taste_groups

USERS = taste_groups(120, 8, groups=2, items_per_group=3, seed=1)
BUDGET = Budget(1.0, 1e-6, accountant="continuous-gaussian")
PRIVATE = [entry for entry in LEARNERS.values() if entry.private and "full" in entry.reads]


def made(kind: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        return kind.for_setting(Setting(8, 2, 120, "full", 1.0, 1e-6), rng=SeededSource(1))


@pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: kind.name)
def test_a_replay_that_fails_in_its_midst_is_not_taken_up_again(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their answers may have been counted, and their rounds not: a second try could count them twice."""
    learner = made(kind)
    learner.replay(USERS[:20])
    monkeypatch.setattr(learner._frame.decisions, "pass_by", lambda *rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.replay(USERS[20:40])
    monkeypatch.undo()
    for again in (learner.choose, learner.snapshot, lambda: learner.replay(USERS[20:40])):
        with pytest.raises(InvalidInput, match="restore"):
            again()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, SystemExit])
def test_what_stops_learning_ends_the_learner(failure: type[BaseException]) -> None:
    guard = ProcessGuard()
    with pytest.raises(failure), guard.learning():
        raise failure
    with pytest.raises(InvalidInput, match="restore"):
        guard.check()


def refuses_until_restored(learner: Any) -> None:
    for again in (learner.choose, learner.snapshot, lambda: learner.replay(USERS[:1])):
        with pytest.raises(InvalidInput, match="restore"):
            again()


def test_ctrl_c_in_a_replay_is_the_end_until_a_snapshot_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, whole = made(OverlapGreedy), made(OverlapGreedy)
    expected = whole.replay(USERS)
    learner.replay(USERS[:20])
    snapshot, ledger = learner.snapshot(), learner.ledger
    memory = learner.policy._memory

    def interrupted(*args: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(memory, "keep_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.replay(USERS[20:])
    monkeypatch.undo()
    refuses_until_restored(learner)
    again = OverlapGreedy.restore(snapshot, ledger=ledger, rng=SeededSource(1))
    assert again.rounds == 20
    assert len(again.replay(USERS[20:])) == len(expected) - 20


def failing(method: Any, at: int) -> Any:
    """Fails once, when it is called for the nth time."""
    calls: list[int] = []

    def wrapped(*args: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == at:
            raise OSError("disk full")
        return method(*args, **more)

    return wrapped


@pytest.mark.parametrize("at", range(1, 12))
def test_a_release_that_failed_anywhere_goes_on(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full once changes nothing: the same slates, everything drawn once."""
    whole, broken = made(OverlapGreedy), made(OverlapGreedy)
    expected = whole.replay(USERS)
    ledger, other = (one.policy._memory._values.ledger for one in (broken, whole))
    kept = ledger._kept
    monkeypatch.setattr(kept, "once", failing(kept.once, at))
    with pytest.raises(OSError, match="disk full"):
        broken.replay(USERS)
    done = broken.rounds
    slates = broken.replay(USERS[done:])
    np.testing.assert_array_equal(slates, expected[done:])
    assert [entry.name for entry in ledger.drawn] == [entry.name for entry in other.drawn]
    assert broken.policy._position.array.tolist() == whole.policy._position.array.tolist()
    OverlapGreedy.restore(broken.snapshot())


def test_what_is_kept_was_drawn_even_if_it_was_not_entered(tmp_path: Path) -> None:
    """A crash between a release's file and its line: that row is used, and no further one is drawn."""
    with Ledger.open(tmp_path / "ledger", BUDGET) as ledger:
        learner = OverlapGreedy(8, 3, horizon=120, epsilon=1.0, delta=1e-6, ledger=ledger)
        snapshot = learner.snapshot()
        monkey = pytest.MonkeyPatch()
        write, lines = ledger._write, []

        def crash(entry: Any, price: Any = None) -> None:
            if getattr(entry, "name", "").endswith("row0000"):
                lines.append(entry.name)
                raise SystemError("power cut")
            write(entry, price)

        monkey.setattr(ledger, "_write", crash)
        with pytest.raises(SystemError):
            learner.replay(USERS)
        rounds = learner.rounds
        assert lines
    with Ledger.open(tmp_path / "ledger") as ledger:
        again = OverlapGreedy.restore(snapshot, ledger=ledger)
        again.replay(USERS)
        names = [entry.name for entry in ledger.drawn]
        release = lines[0].removesuffix(".row0000")
        assert [name for name in names if name.startswith(release)] == [
            f"{release}.{part}" for part in ("focus", "singles", "row0000")
        ]
        assert rounds < again.rounds


def test_an_answer_that_poses_as_a_user_is_refused_at_the_door() -> None:
    class Posing(User):
        pass

    real = user(NoisyOr(), {1: 0.5}, n_items=8)
    posing, astray = (
        Posing(real.family, 8, real.table, 0),
        User(real.family, 8, real.table, "0"),  # type: ignore[arg-type]
    )
    for kind in PRIVATE:
        learner = made(kind)
        for answer in (posing, astray):
            with pytest.raises(WrongFeedback, match="User"):
                learner.observe(learner.choose(), answer)


def test_what_is_refused_has_cost_nothing() -> None:
    ledger = Ledger(BUDGET)
    with pytest.raises(InvalidInput, match="prior"):
        OverlapGreedy(8, 2, horizon=120, epsilon=1.0, delta=1e-6, prior=[2.0], ledger=ledger)
    assert not ledger.charges
    OverlapGreedy(8, 2, horizon=120, epsilon=1.0, delta=1e-6, ledger=ledger)
    small = Ledger(Budget(0.5, 1e-6, accountant="continuous-gaussian"))
    with pytest.raises(OverBudget, match="whole run"):
        OverlapGreedy(8, 2, horizon=120, epsilon=1.0, delta=1e-6, ledger=small)
    assert not small.charges


def test_a_release_that_fails_at_its_end_counts_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beliefs follow from releases alone, however often one was taken up again."""
    whole, failing_once = made(OverlapGreedy), made(OverlapGreedy)
    policy: Any = failing_once.policy
    next_menu, failed = policy._next_menu, list[bool]()

    def fails() -> Any:
        if not failed:
            failed.append(True)
            raise OSError("no room")
        return next_menu()

    monkeypatch.setattr(policy, "_next_menu", fails)
    with pytest.raises(OSError, match="no room"):
        failing_once.replay(USERS)
    failing_once.replay(USERS[failing_once.rounds :])
    whole.replay(USERS)
    np.testing.assert_array_equal(failing_once.policy._shown.picker.gains, whole.policy._shown.picker.gains)
    assert failing_once.snapshot() == whole.snapshot()


def test_tastes_have_changed_as_before_a_crash_whoever_comes_after_it(tmp_path: Path) -> None:
    """What a reward is divided by depends on who comes; what was charged for the next release does not any more."""
    rounds, budget = 600, Budget(50.0, 1e-6, accountant="continuous-gaussian")
    users = taste_groups(rounds, 8, groups=2, items_per_group=2, seed=1)
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        learner: Any = OverlapGreedy(8, 3, horizon=rounds, epsilon=50.0, delta=1e-6, ledger=ledger)
        snapshot = learner.snapshot()
        while not learner.policy._position.memory_begins:
            if learner.due():
                learner.release()
                earlier, snapshot = snapshot, learner.snapshot()
            decision = learner.choose()
            wants_nothing = Oracle(lambda items: 0.0, 8)
            learner.observe(decision, users[learner.rounds] if learner.rounds < 300 else wants_nothing)
        changed = learner.policy._position.memory_begins
    with Ledger.open(tmp_path / "ledger") as ledger:
        again: Any = OverlapGreedy.restore(earlier, ledger=ledger)
        for _ in range(again.rounds, rounds):
            again.choose("somebody who had all her visits")
        assert again.policy._position.memory_begins >= changed
