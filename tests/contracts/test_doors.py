"""Hostile and clumsy use of every learner that has the door: rows, attendance, tables, code that raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from diminuendo import (
    LEARNERS,
    Contexts,
    Decision,
    Learner,
    SeededSource,
    Setting,
    Users,
    _snapshots,
    restore,
)
from diminuendo.contract.case import N_ITEMS, SLOTS, USERS, Case
from diminuendo.errors import DiminuendoError, InvalidInput, OutOfRange, UserCodeStopped, WrongFeedback
from diminuendo.learners.base.contribution_bound import silenced
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.feedback import Anything, simulate_feedback
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.user import User
from diminuendo.offline import greedy, private_greedy
from diminuendo.privacy import Budget
from diminuendo.streams.contexts import NOBODY
from diminuendo.streams.exclusions import NONE
from diminuendo.types import OUTSIDE, FeedbackKind, Items
from tests.contracts.test_learner_contract import cases

ROUNDS = 200
GROUPS = Contexts(group=["a", "b"], private=True)


def made(
    entry: AnyEntry, feedback: FeedbackKind, seed: int = 3, rounds: int = ROUNDS, **more: Any
) -> Learner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        setting = Setting(N_ITEMS, SLOTS, rounds, feedback, 8.0, **more)
        return entry.for_setting(setting, rng=SeededSource(seed))


def having(option: str) -> list[Case]:
    return [case for case in cases() if option in case.kind.options and case.kind.private]


def full() -> list[Case]:
    return [
        case
        for case in cases()
        if case.feedback == "full" and not isinstance(case.fresh().policy.reader, Anything)
    ]


def menus() -> list[Case]:
    """The learners whose rounds others may choose."""
    result = [case for case in cases() if case.kind.private]
    return [
        case
        for case in result
        if isinstance(policy := case.fresh().policy, MenuPolicy) and policy.remote_rounds
    ]


# Rows of decisions.


@pytest.mark.parametrize("hidden", ["contexts", "exclusions", None])
@pytest.mark.parametrize("case", having("sample"), ids=repr)
def test_row_of_follows_from_the_decision_alone(case: Case, hidden: str | None) -> None:
    """Whoever guesses what others were shown is told nothing; a row of one's own is right whoever came since."""
    kinds: dict[str | None, dict[str, Any]] = {
        "contexts": {"contexts": GROUPS},
        "exclusions": {"exclusions": True},
    }
    more = kinds.get(hidden, {})
    if hidden is not None and hidden not in case.kind.options:
        return
    learner, rows, shown = made(case.kind, case.feedback, sample=4, **more), list[Items](), list[Decision]()

    def theirs(t: int) -> dict[str, Any]:
        few = {"exclude": [*range(t % 2, N_ITEMS - 2, 2), t % N_ITEMS]}
        said: dict[str | None, dict[str, Any]] = {"contexts": {"context": "ab"[t % 2]}, "exclusions": few}
        return said.get(hidden, {})

    for t in range(ROUNDS):
        shown.append(learner.choose(**theirs(t)))
        rows.append(learner.row_of(shown[-1]))
    assert sum(each.round == OUTSIDE for each in shown) > ROUNDS // 2
    for decision, row in zip(shown, rows, strict=True):
        assert tuple(item for item in row.tolist() if item >= 0) == decision.slate
        for there in (decision, Decision.from_json(decision.to_json())):
            np.testing.assert_array_equal(learner.row_of(there), row)
    incarnation = shown[-1].incarnation
    for guess in (
        np.random.default_rng(1).permuted(np.tile(np.arange(N_ITEMS), (30, 1)), axis=1)[:, :SLOTS].tolist()
    ):
        for number in (OUTSIDE, learner.rounds - 1):
            own = learner.row_of(Decision(number, tuple(guess), incarnation=incarnation))
            assert own.tolist() == guess, "whatever somebody else was shown"


@pytest.mark.parametrize("case", [*having("exclusions"), *having("contexts")], ids=repr)
def test_observe_does_not_tell_whether_a_guessed_slate_is_that_of_another_user(case: Case) -> None:
    """Where slates follow from what is private, a wrong guess is as silent as a right one, and counts for nothing."""
    options = case.kind.options
    spec: dict[str, Any] = {"exclusions": True} if "exclusions" in options else {}
    if "contexts" in options:
        spec["contexts"] = GROUPS
    learner = made(case.kind, case.feedback, **spec)
    decision = learner.choose()
    other = tuple(item for item in range(learner.n_items) if item not in decision.slate)[
        : len(decision.slate)
    ]
    before = learner.snapshot()
    learner.observe(
        Decision(decision.round, other, incarnation=decision.incarnation), case.answer(decision, 0)
    )
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))
    if case.feedback == "full":
        assert learner.snapshot() != before


# What is known of the users who come is for their own slates.


def forgotten(learner: Learner) -> bool:
    frame = learner.policy.frame
    return (
        frame.coming is NOBODY
        and frame.excluding is NONE
        and frame.response_mask is None
        and frame.sampled is None
    )


@pytest.mark.parametrize("case", [*having("exclusions"), *having("contexts"), *having("sample")], ids=repr)
def test_what_is_known_of_who_comes_does_not_stay(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    options = case.kind.options
    spec: dict[str, Any] = {"contexts": GROUPS} if "contexts" in options else {}
    spec |= {"exclusions": True} if "exclusions" in options else {}
    spec |= {"sample": 2} if "sample" in options else {}
    learner = made(case.kind, case.feedback, **spec)
    one: dict[str, Any] = {"context": "a"} if "contexts" in spec else {}
    one |= {"exclude": [1, 2]} if "exclusions" in spec else {}
    many: dict[str, Any] = {"contexts": ["a", "b"] * 30} if "contexts" in spec else {}
    many |= {"exclude": [[1, 2]] * 60} if "exclusions" in spec else {}
    doors: list[Callable[[], Any]] = [
        partial(learner.choose, **one),
        partial(learner.choose_many, 60, **many),
        partial(learner.replay, USERS[:60], **many),
    ]
    for door in doors:
        door()
        assert forgotten(learner)

    def failing(*_: Any, **__: Any) -> Any:
        raise OSError("no coins")

    for method in ("draw", "replay"):
        monkeypatch.setattr(learner.policy, method, failing)
    for door in doors:
        with pytest.raises(OSError, match="no coins"):
            door()
        assert forgotten(learner)


# Rounds that are chosen elsewhere.


def away(case: Case, rounds: int = 9) -> tuple[Learner, RemoteRounds, Items]:
    learner = made(case.kind, case.feedback, feedback_window=FeedbackWindow(rounds=20))
    learner.release()
    door, menu = RemoteRounds(learner), learner.menu
    assert menu is not None
    many = rounds if menu.end is None else min(rounds, menu.end)
    assert many > 4
    door.chosen(many)
    rows: Any = np.tile(np.arange(SLOTS, dtype=np.int32), (many, 1))
    if hasattr(menu, "assigned"):
        slates: Any = menu
        rows = slates.slates[slates.assigned[:many]]
    return learner, door, rows


def told(case: Case, rows: Items, number: int) -> Any:
    slate = tuple(item for item in rows[number].tolist() if item >= 0)
    return (
        {"click": 0, "bandit": 1.0}.get(case.feedback)
        if case.feedback != "full"
        else simulate_feedback(USERS, 1, slate, "full")
    )


@pytest.mark.parametrize("delay", [False, True])
@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("case", menus(), ids=repr)
def test_a_user_moves_one_round_whenever_it_is_told_that_the_others_do_not_count(
    case: Case, bulk: bool, delay: bool
) -> None:
    """Three rounds of one user, of which one counts: answered before attendance, after it, in one world or two."""
    if bulk and case.feedback != "full":
        return
    result = []
    for hasty in (True, False):
        learner, door, rows = away(case)
        counts, numbers = [True, False, False, *[True] * (len(rows) - 3)], np.arange(3)
        said: Any = USERS[np.array([1, 1, 1])] if bulk else [told(case, rows, number) for number in range(3)]
        if hasty:
            if not delay:
                with pytest.raises(InvalidInput, match="came"):
                    door.answered(numbers, rows[:3], None, said)
            else:  # of others it is known already
                door.record_arrivals(4, counts[4:])
                before = learner.policy.frame.decisions.waiting.copy()
                door.answered(numbers, rows[:3], None, said)
                assert (learner.policy.frame.decisions.waiting == before).all()
        door.record_arrivals(0, counts)
        door.answered(numbers, rows[:3], None, said)
        result.append(learner.snapshot())
    learner, door, rows = away(case)
    door.record_arrivals(0, [True, False, False, *[True] * (len(rows) - 3)])
    alone: Any = USERS[np.array([1])] if bulk else [told(case, rows, 0)]
    door.answered(np.arange(1), rows[:1], None, alone)
    rest = learner.snapshot()
    assert contents(result[0]) == contents(result[1]) == contents(rest)


def contents(snapshot: bytes) -> dict[str, bytes]:
    """What a snapshot holds, but for what each round was shown: rounds that do not count may say that too."""
    _, arrays = _snapshots.unsealed(snapshot, "a snapshot")
    return {name: array.tobytes() for name, array in arrays.items() if not name.startswith("decisions.rows")}


@pytest.mark.parametrize("case", menus(), ids=repr)
def test_attendance_is_told_once_and_survives_a_restart(case: Case) -> None:
    learner, door, rows = away(case)
    counts = [True, False, *[True] * (len(rows) - 2)]
    door.record_arrivals(0, counts[:2])
    door.answered([0], rows[:1], None, [told(case, rows, 0)])
    again = restore(learner.snapshot(), rng=SeededSource(4))
    for each in (learner, again):
        other = RemoteRounds(each)
        before = each.snapshot()
        other.record_arrivals(0, counts[:2])
        assert each.snapshot() == before, "said again"
        for flipped in ([False, False], [True, True]):
            with pytest.raises(InvalidInput, match="said before, and otherwise"):
                other.record_arrivals(0, flipped)
        other.answered([0, 1, 2], rows[:3], None, [told(case, rows, number) for number in range(3)])
        assert each.snapshot() == before, "answered, does not count, nobody came yet"
        other.record_arrivals(2, counts[2:])
        other.answered([2], rows[2:3], None, [told(case, rows, 2)])
        assert each.snapshot() != before
    assert learner.snapshot() == again.snapshot()


@pytest.mark.parametrize("case", menus(), ids=repr)
def test_whether_answers_are_refused_does_not_depend_on_them(case: Case) -> None:
    _, door, rows = away(case)
    for many in (0, 1, 3):
        said = [told(case, rows, number) for number in range(many)]
        with pytest.raises(InvalidInput, match="Nobody has said who came"):
            door.answered(np.arange(many), rows[:many].reshape(many, SLOTS), None, said)


# Users whom compiled code could not read.

WIDE = Users(NoisyOr(), np.full((4, 500), 0.1))
REAL = USERS[1]
UNREADABLE: dict[str, Callable[[], User]] = {
    "index 10**9": lambda: User(NoisyOr(), N_ITEMS, USERS.table, 10**9),
    "index one too large": lambda: User(NoisyOr(), N_ITEMS, USERS.table, len(USERS)),
    "index -5": lambda: User(NoisyOr(), N_ITEMS, USERS.table, -5),
    "a table of another width": lambda: User(NoisyOr(), N_ITEMS, WIDE.table, 0),
    "no table": lambda: User(NoisyOr(), N_ITEMS, None, 0),
    "no family": lambda: User(None, N_ITEMS, USERS.table, 0),  # type: ignore[arg-type]
    "starts beyond the end": lambda: User(
        NoisyOr(), N_ITEMS, USERS.table._replace(starts=np.array([0, 10**12])), 0
    ),
    "other kinds of arrays": lambda: User(
        NoisyOr(), N_ITEMS, USERS.table._replace(columns=USERS.table.columns.astype(np.float64)), 0
    ),
    "no numbers": lambda: User(
        NoisyOr(), N_ITEMS, USERS.table._replace(values=USERS.table.values * np.nan), 0
    ),
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("case", full(), ids=repr)
def test_an_unreadable_user_is_refused_and_nobody_else_is_touched(case: Case, what: str) -> None:
    learners = [made(case.kind, case.feedback), made(case.kind, case.feedback)]
    slates: list[list[Decision]] = [[], []]
    for t in range(60):
        for attacked, learner, shown in zip((True, False), learners, slates, strict=True):
            shown.append(learner.choose())
            if attacked and t % 7 == 3:
                with pytest.raises(DiminuendoError) as result:
                    learner.observe(shown[-1], UNREADABLE[what]())
                assert "000000" not in str(result.value)
                with pytest.raises(InvalidInput, match="Number 0"):
                    learner.observe_many([shown[-1]], [UNREADABLE[what]()])
            learner.observe(shown[-1], USERS[t])
    assert slates[0] == slates[1]
    assert learners[0].snapshot() == learners[1].snapshot()


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("case", [case for case in menus() if case.feedback == "full"], ids=repr)
def test_an_unreadable_user_is_nothing_remote_rounds(case: Case, what: str) -> None:
    result = []
    for attacked in (True, False):
        learner, door, rows = away(case)
        door.record_arrivals(0, [True] * len(rows))
        before = learner.snapshot()
        if attacked:
            door.answered([0], rows[:1], None, [UNREADABLE[what]()])
            assert learner.snapshot() == before
        door.answered([1], rows[1:2], None, [REAL])
        result.append(learner.snapshot())
    assert result[0] == result[1] != before


def hurt(what: str) -> Users:
    users = silenced(USERS, np.ones(len(USERS), dtype=np.bool_))[:60]
    if what == "a table of another width":
        users.table = WIDE.table
    elif what == "fewer rows than users":
        users._length = 10**6
    elif what == "another number of items":
        users = Users(NoisyOr(), np.full((60, 500), 0.1))
        users.n_items = N_ITEMS
    elif what == "no words to click by":
        users._click_words = np.zeros(1, dtype=np.uint64)
    return users


HURT = (
    "a table of another width",
    "fewer rows than users",
    "another number of items",
    "no words to click by",
)


@pytest.mark.parametrize("what", HURT)
@pytest.mark.parametrize("case", cases(), ids=repr)
def test_an_unreadable_table_is_refused_before_a_round(case: Case, what: str) -> None:
    learner, users = case.fresh(), hurt(what)
    before = learner.snapshot()
    with pytest.raises(InvalidInput, match="does not hold"):
        learner.replay(users)
    assert learner.snapshot() == before


@pytest.mark.parametrize("what", HURT)
def test_an_unreadable_table_is_refused_offline(what: str) -> None:
    doors: list[Callable[[], Any]] = [
        lambda: greedy(hurt(what), SLOTS),
        lambda: private_greedy(hurt(what), SLOTS, budget=Budget(1.0, 1e-6), rng=SeededSource(1)),
        lambda: hurt(what).values([0, 1]),
    ]
    for door in doors:
        with pytest.raises(InvalidInput, match="does not hold"):
            door()


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_unreadable_user_says_nothing_of_slates(what: str) -> None:
    for ask in (UNREADABLE[what]().value, UNREADABLE[what]().gains):
        with pytest.raises(InvalidInput, match="no row of a table"):
            ask([0])


# Code that raises.


class Raising:
    """Raises that, whatever it is asked."""

    n_items = N_ITEMS

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def _raise(self, *_: Any) -> Any:
        raise self._error

    value = gains = __str__ = __iter__ = __hash__ = __eq__ = _raise


class RaisingMapping(dict[str, Any]):
    def __init__(self, error: BaseException) -> None:
        super().__init__(group="a")
        self._error = error

    def get(self, *_: Any) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error", [RuntimeError("t"), MemoryError(), RecursionError(), StopIteration()], ids=repr
)
@pytest.mark.parametrize("case", having("contexts"), ids=repr)
def test_a_private_context_that_raises_is_a_missing_one(case: Case, error: Exception) -> None:
    learners, slates = [made(case.kind, case.feedback, contexts=GROUPS) for _ in range(3)], [[], [], []]  # type: ignore[var-annotated]
    for t in range(60):
        raising: Any = [RaisingMapping(error), Raising(error), None][0 if t % 2 else 1]
        for which, learner in enumerate(learners):
            context = (raising, [raising], None)[which] if t % 5 == 2 else "ab"[t % 2]
            decision = learner.choose(context=context)
            slates[which].append(decision)
            learner.observe(decision, simulate_feedback(USERS, t, decision.slate, case.feedback))
    assert slates[0] == slates[1] == slates[2]
    assert learners[0].snapshot() == learners[1].snapshot() == learners[2].snapshot()


ENDS = [KeyboardInterrupt("telling"), SystemExit("telling"), GeneratorExit("telling")]


def unusable(learner: Learner, case: Case, kept: bytes) -> None:
    """It says so at every door; restored from its snapshot it goes on."""
    for door in (learner.choose, partial(learner.choose_many, 2), learner.release, learner.snapshot):
        with pytest.raises(InvalidInput, match=r"restore\(\)"):
            door()
    again = restore(kept, rng=SeededSource(5))
    decision = again.choose()
    again.observe(decision, simulate_feedback(USERS, 1, decision.slate, case.feedback))


def ended(door: Callable[[], Any]) -> None:
    with pytest.raises(UserCodeStopped, match=r"restore\(\)") as result:
        door()
    error: BaseException | None = result.value
    while error is not None:
        assert "telling" not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("case", having("contexts"), ids=repr)
def test_a_context_that_ends_programs_breaks_the_learner(case: Case, error: BaseException) -> None:
    raising: list[Any] = [RaisingMapping(error), Raising(error), [Raising(error)]]
    for context in raising:
        learner = made(case.kind, case.feedback, contexts=GROUPS)
        learner.choose(context="a")
        kept = learner.snapshot()
        ended(partial(learner.choose, context=context))
        unusable(learner, case, kept)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("case", having("exclusions"), ids=repr)
def test_exclusions_that_end_programs_break_the_learner(case: Case, error: BaseException) -> None:
    learner = made(case.kind, case.feedback, exclusions=True)
    learner.choose(exclude=Raising(RuntimeError("telling")))  # what raises an Exception excludes nothing
    kept = learner.snapshot()
    ended(partial(learner.choose, exclude=Raising(error)))
    unusable(learner, case, kept)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("case", full(), ids=repr)
def test_feedback_that_ends_programs_breaks_the_learner(case: Case, error: BaseException) -> None:
    for many in (False, True):
        learner = made(case.kind, case.feedback)
        decision = learner.choose()
        kept = learner.snapshot()
        for _ in range(ROUNDS - 1):  # some ask only those who are explored, or at the next release
            said = Raising(error)
            try:
                shown = learner.choose()
                learner.observe_many([shown], [said]) if many else learner.observe(shown, said)
            except UserCodeStopped:
                break
        else:
            pytest.fail("nobody was asked")
        with pytest.raises(InvalidInput, match=r"restore\(\)"):
            learner.observe(decision, REAL)
        with pytest.raises(InvalidInput, match=r"restore\(\)"):
            learner.choose()
        again = restore(kept, rng=SeededSource(5)) if case.kind.private else case.fresh()
        again.observe(again.choose(), REAL)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("case", [case for case in menus() if case.feedback == "full"], ids=repr)
def test_feedback_that_ends_programs_breaks_the_learner_remote_rounds(
    case: Case, error: BaseException
) -> None:
    learner, door, rows = away(case)
    door.record_arrivals(0, [True] * len(rows))
    kept = learner.snapshot()
    said = Raising(error)
    learner.policy.reader = type("Reader", (), {"kinds": frozenset({"full"}), "__call__": said._raise})()
    ended(lambda: door.answered([0], rows[:1], None, [said]))
    with pytest.raises(InvalidInput, match=r"restore\(\)"):
        door.answered([1], rows[1:2], None, [REAL])
    unusable(learner, case, kept)


def test_wrong_feedback_is_no_end() -> None:
    learner = made(LEARNERS["slate-clicks"], "click")
    with pytest.raises(WrongFeedback):
        learner.observe(learner.choose(), Raising(RuntimeError()))
    learner.choose()
