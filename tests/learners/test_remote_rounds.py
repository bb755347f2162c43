"""Rounds chosen elsewhere: a learner that is only told of them publishes what it would have, had it chosen itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, SeededSource, Setting, _snapshots, make
from diminuendo.errors import InvalidInput
from diminuendo.learners.base import users
from diminuendo.learners.base.feedback_window import FeedbackWindow
from diminuendo.learners.remote_rounds import RemoteRounds
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.streams.contexts import Contexts
from diminuendo.types import FeedbackKind, Ints, Items
from tests.kit.slow import mostly_slow

N_ITEMS, SLOTS, ROUNDS, DEADLINE = 8, 3, 700, 3.0
USERS = taste_groups(ROUNDS, N_ITEMS, groups=3, items_per_group=4, seed=4)
FEEDBACK: dict[str, FeedbackKind] = {
    "overlap-greedy": "full",
    "epoch-greedy": "full",
    "slate-totals": "bandit",
    "slate-clicks": "click",
}
VARIANTS = ("plain", "max_rounds_per_user", "public", "private", "exclusions")
CASES = [
    (name, how) for name in FEEDBACK for how in VARIANTS if name != "epoch-greedy" or how in VARIANTS[:2]
]
QUICK = [
    ("overlap-greedy", "public"),
    ("overlap-greedy", "max_rounds_per_user"),
    ("epoch-greedy", "plain"),
    ("slate-clicks", "private"),
    ("slate-totals", "exclusions"),
]


class Clock:
    """A clock that is moved by whoever drives the learner."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def fresh(name: str, how: str, clock: Clock) -> Learner:
    contexts = Contexts(group=3, private=how == "private") if how in ("public", "private") else None
    setting = Setting(
        N_ITEMS, SLOTS, ROUNDS, FEEDBACK[name], epsilon=8.0,
        max_rounds_per_user=2 if how == "max_rounds_per_user" else 1, contexts=contexts,
        feedback_window=FeedbackWindow(seconds=DEADLINE, in_flight=ROUNDS, clock=clock), exclusions=how == "exclusions",
    )  # fmt: skip
    unit = make(name, setting, rng=SeededSource(0)).budget
    assert unit is not None
    return make(name, setting, rng=SeededSource(5), ledger=Ledger(unit))


@dataclass
class Happened:
    """All that happened to a learner that chose by itself, for one that others chose for."""

    steps: list[tuple[float, int, list[bool], list[int]]] = field(default_factory=list)
    """When rounds were chosen, how many, whose answers count, and their types."""
    answers: list[tuple[float, int, Items, int, Any]] = field(default_factory=list)
    """When somebody answered which round, what she was shown, her type, what she said."""


def chosen_here(learner: Learner, how: str, clock: Clock) -> Happened:
    rng, result, delay = np.random.default_rng(8), Happened(), list[Any]()
    feedback = FEEDBACK[learner.name]
    while learner.rounds < ROUNDS:
        clock.now += 1.0
        for answer in [each for each in delay if each[0] <= clock.now]:
            delay.remove(answer)
            _, decision, said = answer
            learner.observe(decision, said)
        while learner.due():
            learner.release()
        assert learner.menu is not None
        most = min(ROUNDS, ROUNDS if learner.menu.end is None else learner.menu.end)
        count = min(int(rng.integers(1, 40)), most - learner.rounds)
        counts, types = list[bool](), list[int]()
        for t in range(learner.rounds, learner.rounds + count):
            kind = t % 3 + 1 if how in ("public", "private") else 0
            more: dict[str, Any] = {"context": [kind - 1]} if kind else {}
            if how == "exclusions" and t % 4 == 0:
                more["exclude"] = [t % N_ITEMS]
            counts.append(
                how != "max_rounds_per_user" or t % 90 < 60
            )  # 30 users come three times within 90 rounds
            types.append(kind)
            decision = learner.choose(
                t // 90 * 30 + t % 30 if how == "max_rounds_per_user" else None, release=False, **more
            )
            row = learner.row_of(decision)
            said = USERS.click(t, decision.slate) if feedback == "click" else USERS[t]
            said = USERS[t].value(decision.slate) if feedback == "bandit" else said
            if rng.random() < 0.9:
                delay.append((clock.now + rng.uniform(0, 1.3 * DEADLINE), decision, said))
                result.answers.append((delay[-1][0], t, row, kind, said))
        result.steps.append((clock.now, count, counts, types))
    return result


def driven(
    learner: Learner, happened: Happened, clock: Clock, order: np.random.Generator, bulk: bool
) -> None:
    """Tell of the same rounds, in chunks, answers in another order."""
    rounds, answers = RemoteRounds(learner), list(happened.answers)
    for now, count, counts, types in happened.steps:
        clock.now = now - 1e-9  # all who answer now answer before what is settled by now is settled
        due = [each for each in answers if each[0] <= now]
        answers = [each for each in answers if each[0] > now]
        due = [each for each in due if in_time(each, happened)]
        order.shuffle(due)
        for part in np.array_split(np.arange(len(due)), order.integers(1, 4)):
            told(rounds, [due[each] for each in part], bulk)
        clock.now = now
        while learner.due():
            learner.release()
        first = learner.rounds
        cut = int(order.integers(0, count + 1))
        for size in (cut, count - cut):
            rounds.chosen(size, at=now)
        rounds.record_arrivals(first, counts[:cut], types[:cut])
        rounds.record_arrivals(first + cut, counts[cut:], types[cut:])


def in_time(answer: tuple[float, int, Items, int, Any], happened: Happened) -> bool:
    """Whether the learner that chose by itself still took it: it looks at its clock at whole seconds only."""
    ends = np.cumsum([count for _, count, _, _ in happened.steps])
    chosen_at = happened.steps[int(np.searchsorted(ends, answer[1], side="right"))][0]
    return bool(chosen_at + DEADLINE >= np.ceil(answer[0]))


def told(rounds: RemoteRounds, answers: list[Any], bulk: bool) -> None:
    numbers = [number for _, number, _, _, _ in answers]
    rows: Any = np.array([row for _, _, row, _, _ in answers]).reshape(-1, SLOTS)
    kinds = [kind for _, _, _, kind, _ in answers]
    said: Any = [each for *_, each in answers]
    if bulk:
        said = USERS[np.array(numbers, dtype=np.int64)]
    rounds.answered(numbers, rows, kinds, said)
    rounds.answered(numbers, rows, kinds, said)  # a second one changes nothing


def published(learner: Learner) -> dict[str, str]:
    assert learner.ledger is not None
    return {drawn.name: drawn.digest for drawn in learner.ledger.drawn}


def cells(learner: Learner) -> dict[str, Any]:
    """What is in a snapshot, but for what is remembered of single decisions and of names."""
    _, arrays = _snapshots.unsealed(learner.snapshot(), "a snapshot")
    return {name: array for name, array in arrays.items() if not name.startswith(("decisions.", "visits."))}


@pytest.mark.parametrize("case", mostly_slow(CASES, QUICK), ids=str)
def test_told_of_it_a_learner_publishes_the_same(case: tuple[str, str]) -> None:
    name, how = case
    clock, other = Clock(), Clock()
    here, there = fresh(name, how, clock), fresh(name, how, other)
    happened = chosen_here(here, how, clock)
    bulk = FEEDBACK[name] == "full"
    driven(there, happened, other, np.random.default_rng(2), bulk)
    assert len(published(here)) > 4
    assert published(there) == published(here)
    assert here._frame.silent == there._frame.silent
    if name.startswith("slate"):
        assert cells(here).keys() == cells(there).keys()
        for part, array in cells(here).items():
            np.testing.assert_array_equal(cells(there)[part], array, err_msg=part)


@pytest.mark.parametrize("name", mostly_slow(["overlap-greedy", "epoch-greedy"], ["overlap-greedy"]))
def test_users_in_a_table_are_users_in_a_list(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of them wait to be gathered, many are a table of their own: in any case the same is published."""
    how, clock = "plain" if name == "epoch-greedy" else "public", Clock()
    here = fresh(name, how, clock)
    happened = chosen_here(here, how, clock)
    for fewest, bulk in ((1, True), (20, True), (256, False)):
        monkeypatch.setattr(users, "GATHER", fewest)
        other = Clock()
        learner = fresh(name, how, other)
        driven(learner, happened, other, np.random.default_rng(2), bulk)
        assert published(learner) == published(here)


def opened(
    name: str, how: str = "plain", rounds: int = 12, came: bool = True
) -> tuple[Learner, RemoteRounds, Clock]:
    clock = Clock()
    learner = fresh(name, how, clock)
    while learner.due():
        learner.release()
    door = RemoteRounds(learner)
    door.chosen(rounds, at=0.0)
    if came:
        door.record_arrivals(0, [True] * rounds)
    return learner, door, clock


def rows_of(learner: Learner, rounds: int) -> Items:
    rows: Items = np.tile(np.arange(SLOTS, dtype=np.int32), (rounds, 1))
    if learner.name.startswith("slate"):
        menu: Any = learner.menu
        rows = menu.slates[menu.assigned[:rounds]]
    return rows


HOSTILE: list[tuple[str, Any]] = [
    ("a round that was never chosen", lambda number, row, kind, said: (number + 1000, row, kind, said)),
    ("a negative round", lambda number, row, kind, said: (-1, row, kind, said)),
    ("an item that there is not", lambda number, row, kind, said: (number, row * 0 + 99, kind, said)),
    ("an item twice", lambda number, row, kind, said: (number, row * 0 + 1, kind, said)),
    ("a type that there is not", lambda number, row, kind, said: (number, row, 7, said)),
    ("what cannot be read", lambda number, row, kind, said: (number, row, kind, object())),
    ("nan", lambda number, row, kind, said: (number, row, kind, "nan")),
]


@pytest.mark.parametrize("what", range(len(HOSTILE)), ids=[name for name, _ in HOSTILE])
@pytest.mark.parametrize("name", ["slate-totals", "overlap-greedy"])
def test_what_cannot_be_read_is_nothing_and_touches_nobody(name: str, what: int) -> None:
    results = []
    for hostile in (False, True):
        learner, door, _ = opened(name)
        rows = rows_of(learner, 12)
        said: list[Any] = [USERS[t] if name == "overlap-greedy" else 0.5 for t in range(12)]
        answers: list[Any] = [(t, rows[t], 0, said[t]) for t in range(12)]
        if hostile:
            answers[5] = HOSTILE[what][1](*answers[5])
        else:
            del answers[5]
        numbers, shown, kinds, feedbacks = zip(*answers, strict=True)
        door.answered(numbers, np.array(shown), kinds, list(feedbacks))
        results.append(cells(learner))
    for part in results[0]:
        np.testing.assert_array_equal(results[0][part], results[1][part], err_msg=part)


def test_silent_settled_and_second_answers_count_for_nothing() -> None:
    learner, door, clock = opened("slate-totals", came=False)
    rows: Any = rows_of(learner, 12)
    door.record_arrivals(0, [number not in (3, 4) for number in range(12)])
    numbers: Ints = np.arange(12)
    twice = numbers[[0, 1, 2, 3, 4, 0, 1]]
    door.answered(twice, rows[twice], None, [1.0] * 5 + [0.5] * 2)
    door.answered(numbers[:5], rows[:5], None, [0.25] * 5)
    assert total(learner) == 3.0
    clock.now = DEADLINE + 1
    door.answered(numbers[5:], rows[5:], None, [1.0] * 7)
    assert total(learner) == 3.0
    assert door.closed == 12
    door.record_arrivals(0, [False] * 12)  # too late
    assert learner._frame.silent == [3, 4]


@pytest.mark.parametrize("how", ["plain", "max_rounds_per_user"])
def test_no_answer_is_learned_from_before_it_is_known_whether_it_counts(how: str) -> None:
    """Whose rounds these are is told by `came` alone: told afterwards, it could not take back what was learned."""
    learner, door, _ = opened("slate-totals", how, came=False)
    rows: Any = rows_of(learner, 12)
    with pytest.raises(InvalidInput, match="who came"):
        door.answered(np.arange(12), rows, None, [1.0] * 12)
    door.record_arrivals(0, [True, False])
    door.answered(np.arange(12), rows, None, [1.0] * 12)
    assert total(learner) == 1.0
    with pytest.raises(InvalidInput, match="was said before, and otherwise"):
        door.record_arrivals(0, [False] * 12)
    door.record_arrivals(2, [False] * 10)
    door.answered(np.arange(12), rows, None, [1.0] * 12)
    assert total(learner) == 1.0
    assert learner._frame.silent == list(range(1, 12))


def total(learner: Learner) -> float:
    policy: Any = learner.policy
    return float(policy._counts.exact().sum())


def test_with_exclusions_only_what_was_assigned_counts() -> None:
    learner, door, _ = opened("slate-totals", "exclusions")
    rows = rows_of(learner, 12).copy()
    rows[0, 0] = next(item for item in range(N_ITEMS) if item not in rows[0])
    door.answered(np.arange(12), rows, None, [1.0] * 12)
    assert total(learner) == 11.0


def test_no_round_is_handed_out_that_no_menu_is_for() -> None:
    learner, door, _ = opened("slate-totals", rounds=1)
    assert learner.menu is not None
    assert learner.menu.end is not None
    with pytest.raises(InvalidInput, match="menu is for rounds before"):
        door.chosen(learner.menu.end)
    with pytest.raises(InvalidInput, match=f"made for {ROUNDS}"):
        opened("overlap-greedy")[1].chosen(ROUNDS)


@pytest.mark.parametrize("name", ["lazy-hedge", "fi-dp"])
def test_who_must_draw_by_itself_is_refused(name: str) -> None:
    reads = next(kind for kind in ("full", "bandit", "click") if kind in LEARNERS[name].reads)
    with pytest.raises(InvalidInput, match="must draw its slates itself"):
        RemoteRounds(make(name, Setting(N_ITEMS, SLOTS, ROUNDS, reads)))


@pytest.mark.parametrize("name", ["overlap-greedy", "epoch-greedy"])
def test_who_is_erased_is_in_no_later_release(name: str) -> None:
    """Erased before a release, they are in no snapshot either; others who never answered give the same release.

    Rewards of overlap greedy are sums, from which nothing is taken, and what is asked later follows from them. So users
    are erased whose reward is 0: they wanted something, and were shown nothing of it.
    """
    result, held = list[dict[str, str]](), list[dict[str, Any]]()
    for erased in (False, True):
        learner, door, clock = opened(name, rounds=300)
        rows: Any = rows_of(learner, 300)
        worth = USERS[np.arange(300)].values(rows)
        gone = [t for t in range(300) if worth[t] == 0 and USERS[t].value(range(N_ITEMS)) > 0][::2]
        assert len(gone) > 20
        some = np.array([t for t in range(300) if erased or t not in gone])
        door.answered(some, rows[some], None, USERS[some])
        if erased:
            door.erase(gone)
        kept = cells(learner)
        clock.now = DEADLINE + 1
        while learner.due():
            learner.release()
        result.append(published(learner))
        # The sum of rewards also counts how often somebody added to it.
        held.append(
            {part: array for part, array in kept.items() if part not in ("extra.rewards", "extra.added")}
        )
    assert result[0] == result[1] != {}
    assert held[0].keys() == held[1].keys()
    for part, array in held[0].items():
        np.testing.assert_array_equal(held[1][part], array, err_msg=part)
