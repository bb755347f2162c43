"""What fails in the middle: nobody counts twice, nothing is drawn twice, and what can go on goes on."""

from __future__ import annotations

import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, NoisyOr, Oracle, SeededCoins, Setting, person
from diminuendo.errors import InvalidInput, OutOfRange, OverBudget, WrongFeedback
from diminuendo.learners import EpochGreedy, OverlapGreedy, OverlapSums
from diminuendo.objectives.person import Person
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard
from diminuendo.streams import taste_groups

PEOPLE = taste_groups(120, 8, groups=2, items_per_group=3, seed=1)
BUDGET = Budget(1.0, 1e-6, accountant="continuous-gaussian")
PRIVATE = [entry for entry in LEARNERS.values() if entry.private and "full" in entry.reads]


def made(kind: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        return kind.for_setting(Setting(8, 2, 120, "full", 1.0, 1e-6), coins=SeededCoins(1))


@pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: kind.name)
def test_a_replay_that_fails_in_its_midst_is_not_taken_up_again(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their answers may have been counted, and their rounds not: a second try could count them twice."""
    learner = made(kind)
    learner.replay(PEOPLE[:20])
    monkeypatch.setattr(learner._frame.decisions, "pass_by", lambda *rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.replay(PEOPLE[20:40])
    monkeypatch.undo()
    for again in (learner.choose, learner.snapshot, lambda: learner.replay(PEOPLE[20:40])):
        with pytest.raises(InvalidInput, match="restore"):
            again()


def test_ctrl_c_waits_for_the_end_of_a_piece_of_work() -> None:
    guard, done = ProcessGuard(), []

    def work() -> None:
        with guard.all_or_broken():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert not guard.broken
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(MemoryError), guard.all_or_broken():
        raise MemoryError
    assert guard.broken


def test_ctrl_c_in_a_replay_loses_nobody_and_counts_nobody_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = made(OverlapGreedy)
    memory = learner.policy._memory
    keep = memory.keep_rows

    def interrupted(*args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        keep(*args)

    monkeypatch.setattr(memory, "keep_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.replay(PEOPLE)
    monkeypatch.undo()
    assert 0 < learner.rounds < len(PEOPLE)
    learner.replay(PEOPLE[learner.rounds :])
    assert len(memory._values.entries) == len(memory._kept) == learner.rounds == len(PEOPLE)


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
    expected = whole.replay(PEOPLE)
    ledger, other = (one.policy._memory._values.ledger for one in (broken, whole))
    kept = ledger._kept
    monkeypatch.setattr(kept, "once", failing(kept.once, at))
    with pytest.raises(OSError, match="disk full"):
        broken.replay(PEOPLE)
    done = broken.rounds
    slates = broken.replay(PEOPLE[done:])
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
            learner.replay(PEOPLE)
        rounds = learner.rounds
        assert lines
    with Ledger.open(tmp_path / "ledger") as ledger:
        again = OverlapGreedy.restore(snapshot, ledger=ledger)
        again.replay(PEOPLE)
        names = [entry.name for entry in ledger.drawn]
        release = lines[0].removesuffix(".row0000")
        assert [name for name in names if name.startswith(release)] == [
            f"{release}.{part}" for part in ("focus", "singles", "row0000")
        ]
        assert rounds < again.rounds


def test_items_that_retired_after_the_snapshot(tmp_path: Path) -> None:
    """A release that was drawn along one chain goes on along another with what there is."""
    with Ledger.open(tmp_path / "ledger", BUDGET) as ledger:
        learner = OverlapGreedy(8, 3, horizon=120, epsilon=1.0, delta=1e-6, ledger=ledger)
        snapshot = learner.snapshot()
        first = learner.replay(PEOPLE[:60])
    with Ledger.open(tmp_path / "ledger") as ledger:
        again = OverlapGreedy.restore(snapshot, ledger=ledger)
        again.retire(set(first[-1].tolist()))
        second = again.replay(PEOPLE)
        assert not np.isin(second, first[-1]).any()


def test_an_answer_that_poses_as_a_person_is_refused_at_the_door() -> None:
    class Posing(Person):
        pass

    real = person(NoisyOr(), {1: 0.5}, n_items=8)
    posing, astray = (
        Posing(real.family, 8, real.table, 0),
        Person(real.family, 8, real.table, "0"),  # type: ignore[arg-type]
    )
    for kind in PRIVATE:
        learner = made(kind)
        for answer in (posing, astray):
            with pytest.raises(WrongFeedback, match="Person"):
                learner.observe(learner.choose(), answer)


@pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: kind.name)
def test_whatever_foreign_code_raises_is_nothing_said(kind: Any) -> None:
    def leaving(chosen: frozenset[int]) -> float:
        if len(chosen) > 1:
            raise RuntimeError("they like item 7")
        return 0.5

    learner = made(kind)
    for _ in range(120):
        assert learner.observe(learner.choose(), Oracle(leaving, 8)) is None
    assert learner.rounds == 120, "it went on to the end, through every release"


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


def test_people_who_cannot_have_been_stored() -> None:
    learner = made(OverlapGreedy)
    learner.replay(PEOPLE[:30])
    stored = learner.policy._memory._values
    good = stored.entries.arrays()
    batches, _, _, items, values = range(5)
    for which, value in ((values, -1), (values, 2), (batches, 99), (values, np.nan), (items, 0)):
        bad = [array.copy() for array in good]
        bad[which][:] = value
        with pytest.raises(InvalidInput, match="altered"):
            stored.unpacked(stored.packed(bad))
    stored.unpacked(stored.packed(good))


@pytest.mark.parametrize("name", ["bandit-blocks", "ranked-clicks", "noisy-hedge"])
def test_ctrl_c_in_a_release_leaves_learner_and_sum_in_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that is interrupted is finished first: else a batch would be closed twice, or one be left out."""
    kind, rounds = LEARNERS[name], 400
    people = taste_groups(rounds, 3, groups=2, items_per_group=2, seed=1)
    learner: Any = kind.for_setting(Setting(3, 1, rounds, min(kind.reads), 1.0, 1e-6), coins=SeededCoins(1))
    policy, heard = learner.policy, []
    follow = policy._choosing_in

    def interrupted(*args: Any) -> Any:
        heard.append(args)
        signal.raise_signal(signal.SIGINT)
        return follow(*args)

    monkeypatch.setattr(policy, "_choosing_in", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.replay(people)
    monkeypatch.undo()
    assert len(heard) == 1
    if name == "noisy-hedge":
        assert policy.released.n_releases[0] == policy.released.sum.batch == 1
    else:
        assert policy._blocks_published[0] == policy._cells.batch == 1
    learner.replay(people[learner.rounds :])
    assert learner.rounds == rounds


def test_who_does_not_hear_ctrl_c_is_left_alone() -> None:
    """Only the main thread hears of it, and only where something is to be called."""
    seen: list[Any] = []

    def elsewhere() -> None:
        with ProcessGuard().defer_interrupt():
            seen.append(signal.getsignal(signal.SIGINT))

    worker = threading.Thread(target=elsewhere)
    worker.start()
    worker.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        elsewhere()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [before, signal.SIG_IGN]


def test_the_handler_hears_of_the_first_ctrl_c_once_everything_is_done() -> None:
    heard: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append((number, frame)))
    try:
        with ProcessGuard().defer_interrupt(), ProcessGuard().all_or_broken():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert not heard
        assert [number for number, _ in heard] == [signal.SIGINT]
        assert heard[0][1] is not None
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_release_that_fails_at_its_end_counts_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beliefs follow from releases alone, however often one was taken up again."""
    whole, failing_once = made(OverlapGreedy), made(OverlapGreedy)
    memory = failing_once.policy._memory
    ask_about, failed = memory.ask_about, list[bool]()

    def fails(*args: Any, **more: Any) -> None:
        if not failed:
            failed.append(True)
            raise OSError("no room")
        ask_about(*args, **more)

    monkeypatch.setattr(memory, "ask_about", fails)
    with pytest.raises(OSError, match="no room"):
        failing_once.replay(PEOPLE)
    failing_once.replay(PEOPLE[failing_once.rounds :])
    whole.replay(PEOPLE)
    np.testing.assert_array_equal(failing_once.policy._shown.picker.gains, whole.policy._shown.picker.gains)
    assert failing_once.snapshot() == whole.snapshot()


def test_ctrl_c_at_the_end_of_an_epoch_shows_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = EpochGreedy(8, 2, horizon=120, epsilon=4.0, epoch=20, coins=SeededCoins(1))
    learner.replay(PEOPLE[:20])
    people = learner.policy._people  # type: ignore[attr-defined]
    forget = people.forget

    def interrupted(before: int) -> None:
        signal.raise_signal(signal.SIGINT)
        forget(before)

    monkeypatch.setattr(people, "forget", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.choose()
    monkeypatch.undo()
    decision = learner.choose()
    assert decision.propensity == 1.0
    assert list(decision.slate) == learner.policy._slate.tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [OverlapGreedy, OverlapSums], ids=lambda kind: kind.name)
def test_tastes_have_changed_as_before_a_crash_whoever_comes_after_it(kind: Any, tmp_path: Path) -> None:
    """What a payoff is divided by depends on who comes; what was charged for the next release does not any more."""
    rounds, budget = 600, Budget(50.0, 1e-6, accountant="continuous-gaussian")
    people = taste_groups(rounds, 8, groups=2, items_per_group=2, seed=1)
    with Ledger.open(tmp_path / "ledger", budget) as ledger:
        learner = kind(8, 3, horizon=rounds, epsilon=50.0, delta=1e-6, ledger=ledger)
        snapshot = learner.snapshot()
        while not learner.policy._position.memory_begins:
            if learner.due():
                learner.release()
                earlier, snapshot = snapshot, learner.snapshot()
            decision = learner.choose()
            wants_nothing = Oracle(lambda items: 0.0, 8)
            learner.observe(decision, people[learner.rounds] if learner.rounds < 300 else wants_nothing)
        changed = learner.policy._position.memory_begins
    with Ledger.open(tmp_path / "ledger") as ledger:
        again = kind.restore(earlier, ledger=ledger)
        for _ in range(again.rounds, rounds):
            again.choose("somebody who had all her visits")
        assert again.policy._position.memory_begins >= changed
