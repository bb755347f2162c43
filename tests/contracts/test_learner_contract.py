"""Every registered learner keeps the contract of learners/base/learner.py."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Functions, Learner, Oracle, People, SeededCoins, Setting, SystemCoins
from diminuendo.errors import DiminuendoError, InvalidInput, OutOfRange, WrongFeedback
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.base.replay import loop, replay
from diminuendo.objectives import FAMILIES
from diminuendo.randomness import SecretRandomness
from diminuendo.streams import taste_groups
from diminuendo.types import Decision, FeedbackKind, Words
from tests.kit.families import QUICK
from tests.kit.slow import VARIANTS

N_ITEMS, SLOTS = 12, 3
PEOPLE = taste_groups(300, N_ITEMS, groups=4, items_per_group=5, seed=1)


class Case:
    """A learner class with one kind of feedback, and fresh learners of it."""

    def __init__(self, kind: AnyEntry, feedback: FeedbackKind) -> None:
        self.kind, self.feedback = kind, feedback

    def __repr__(self) -> str:
        return f"{self.kind.name}, {self.feedback}"

    def fresh(self, seed: int = 3, n_items: int = N_ITEMS, slots: int = SLOTS, rounds: int = 600) -> Learner:
        return self.made(Setting(n_items, slots, rounds, self.feedback), SeededCoins(seed))

    def made(self, setting: Setting, coins: SeededCoins | None = None) -> Learner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)  # the paper's constants for so few rounds
            return self.kind.for_setting(setting, coins=coins)

    def answer(self, decision: Decision, t: int) -> object:
        if self.feedback == "click":
            return PEOPLE.click(t, decision.slate)
        return PEOPLE[t] if self.feedback == "full" else PEOPLE[t].value(decision.slate)

    def trained(self, rounds: int = 50) -> Learner:
        learner = self.fresh()
        for t in range(rounds):
            decision = learner.choose()
            learner.observe(decision, self.answer(decision, t))
        return learner


def cases() -> Iterator[Case]:
    for kind in LEARNERS.values():
        for feedback in sorted(kind.reads):
            yield Case(kind, feedback)


def check_slates_are_distinct_items_in_range(case: Case) -> None:
    learner = case.fresh()
    for t in range(100):
        decision = learner.choose()
        assert decision.round == t
        assert 1 <= len(decision.slate) <= SLOTS
        assert len(set(decision.slate)) == len(decision.slate)
        assert all(0 <= item < N_ITEMS for item in decision.slate)
        learner.observe(decision, case.answer(decision, t))
    assert learner.rounds == 100


def check_extreme_sizes_work(case: Case) -> None:
    for n_items, slots in ((1, 1), (2, 2), (5, 5), (300, 1)):
        people = taste_groups(60, n_items, groups=2, items_per_group=min(2, n_items))
        slates = case.fresh(n_items=n_items, slots=slots, rounds=60).replay(people)
        assert slates.shape == (60, slots)
        assert slates.max() < n_items


def check_replay_is_the_loop(case: Case) -> None:
    """For a family that is not that of the other checks; for all of them in the slow suite."""
    assert_replay_is_the_loop(case, *(name for name in QUICK if name != PEOPLE.family.name))


def assert_replay_is_the_loop(case: Case, *families: str) -> None:
    for name in families:
        for specimen, n_items, matrices in FAMILIES[name].specimens():
            many = tuple(np.tile(np.asarray(matrix), (40, 1)) for matrix in matrices)
            people = People(specimen, many, n_items)
            quick = replay(case.fresh(n_items=n_items, slots=2, rounds=len(people)), people, case.feedback)
            slow = loop(case.fresh(n_items=n_items, slots=2, rounds=len(people)), people, case.feedback)
            np.testing.assert_array_equal(quick, slow, err_msg=repr(specimen))


def check_replay_is_the_loop_on_functions_too(case: Case) -> None:
    as_functions = Functions([lambda s, t=t: PEOPLE[t].value(sorted(s)) for t in range(40)], N_ITEMS)  # type: ignore[misc]
    np.testing.assert_array_equal(
        replay(case.fresh(), as_functions, case.feedback), replay(case.fresh(), PEOPLE[:40], case.feedback)
    )


def check_the_size_of_the_buffer_does_not_matter(case: Case) -> None:
    slates = case.fresh().replay(PEOPLE)
    for size in (1, 2, 7, 100_000):
        learner = case.fresh()
        learner._frame.public.size = learner._frame.secret.size = size
        np.testing.assert_array_equal(learner.replay(PEOPLE), slates, err_msg=f"buffer of {size} words")


def check_coins_that_fail_for_a_while_lose_nothing(case: Case) -> None:
    """What was begun is begun again when there are coins: the same slates."""
    slates, learner = case.fresh().replay(PEOPLE), case.fresh()
    coins, failed = learner._frame.public, 0
    coins.size = 16

    def failing(count: int, fresh: Callable[[int], Words] = coins._fresh) -> Words:
        nonlocal failed
        failed += 1
        if failed % 3:
            raise OSError("No coins.")
        return fresh(count)

    coins._fresh = failing  # type: ignore[method-assign]
    while learner.rounds < len(PEOPLE):
        try:
            rest = learner.replay(PEOPLE[learner.rounds :])
            np.testing.assert_array_equal(rest, slates[len(slates) - len(rest) :])
        except OSError:
            continue
    assert failed >= 3 or not failed


def check_exact_arithmetic_decides_as_floats_do(case: Case) -> None:
    """Every comparison sent to the slow path: the same slates, word for word."""
    fast, slow = case.fresh(), case.fresh()
    slow._frame.secret = SecretRandomness(slow.coins, size=8, window=1e300)
    few = PEOPLE[:60]
    np.testing.assert_array_equal(slow.replay(few), fast.replay(few))


def check_replay_can_be_cut_anywhere(case: Case) -> None:
    whole, parts = case.fresh(), case.fresh()
    first, rest = parts.replay(PEOPLE[:123]), parts.replay(PEOPLE[123:])
    np.testing.assert_array_equal(np.vstack([first, rest]), whole.replay(PEOPLE))
    assert parts.rounds == whole.rounds == len(PEOPLE)
    assert parts.snapshot() == whole.snapshot()


def check_many_at_once_are_as_one_after_the_other(case: Case) -> None:
    one, many = case.fresh(), case.fresh()
    done = 0
    for count in (1, 0, 7, 40, 100):
        singly = [one.choose() for _ in range(count)]
        assert many.choose_many(count) == singly
        answers = [case.answer(decision, done + t) for t, decision in enumerate(singly)]
        for decision, answer in zip(singly, answers, strict=True):
            one.observe(decision, answer)
        many.observe_many(singly, answers)
        assert many.snapshot() == one.snapshot()
        done += count


def check_one_who_is_refused_among_many_does_not_touch_others(case: Case) -> None:
    learner, other = case.fresh(), case.fresh()
    decisions = learner.choose_many(5)
    assert decisions == other.choose_many(5)
    answers = [case.answer(decision, t) for t, decision in enumerate(decisions)]
    with pytest.raises(InvalidInput, match="5 decisions and 4 feedbacks"):
        learner.observe_many(decisions, answers[:4])
    with pytest.raises(InvalidInput, match=r"Number 0: .*choose"):
        learner.observe_many([7, *decisions[:2]], answers[4:] + answers[:2])  # type: ignore[list-item]
    refused = ["yes"] if len(case.kind.reads) == 1 else [answers[3]]
    with pytest.raises(InvalidInput, match="Number 1") if len(case.kind.reads) == 1 else nullcontext():
        learner.observe_many(decisions[2:4], [answers[2], *refused])
    if len(case.kind.reads) == 1:
        learner.observe(decisions[3], answers[3])
    for decision, answer in list(zip(decisions, answers, strict=True))[:4]:
        other.observe(decision, answer)
    with pytest.raises(InvalidInput, match="one person per round"):
        learner.choose_many(3, ["ada", "eve"])
    if case.kind.private:
        with pytest.raises(InvalidInput, match="named by a whole number"):
            learner.choose_many(2, ["ada", 1.5])  # type: ignore[list-item]
        with pytest.raises(InvalidInput, match="made for 600 rounds"):
            learner.choose_many(596)
    assert learner.snapshot() == other.snapshot()


def check_the_second_answer_changes_nothing(case: Case) -> None:
    once, twice = case.trained(), case.trained()
    for learner in (once, twice):
        decision = learner.choose()
        learner.observe(decision, case.answer(decision, 60))
    before = twice.snapshot()
    twice.observe(decision, case.answer(decision, 61))
    assert twice.snapshot() == before == once.snapshot()


def check_a_late_answer_changes_nothing(case: Case) -> None:
    learner = case.kind(**{**case.fresh()._config(), "patience": 3}, coins=SeededCoins(5))
    decisions = [learner.choose() for _ in range(5)]
    before = learner.snapshot()
    for late in decisions[:2]:  # three or more rounds were chosen since
        learner.observe(late, case.answer(late, 0))
    assert learner.snapshot() == before
    for still_open in decisions[2:]:
        learner.observe(still_open, case.answer(still_open, 0))
        assert learner.snapshot() != before, "an answer in time counts"
        before = learner.snapshot()
    learner.replay(PEOPLE[:7])
    before = learner.snapshot()
    learner.observe(decisions[4], case.answer(decisions[4], 0))
    assert learner.snapshot() == before


def check_answers_may_come_in_any_order_or_never(case: Case) -> None:
    learner = case.fresh()
    open_ = [learner.choose() for _ in range(30)]
    for decision in sorted(open_[5:], key=lambda d: (d.round * 7) % 30):
        learner.observe(decision, case.answer(decision, decision.round))
    assert learner.choose().round == 30


def check_a_decision_from_elsewhere_is_refused(case: Case) -> None:
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other = tuple(item for item in range(N_ITEMS) if item not in decision.slate)[: len(decision.slate)]
    for wrong in (
        replace(decision, round=999),
        replace(decision, round=-1),
        replace(decision, slate=other),
        *([Decision(999, decision.slate), Decision(decision.round, decision.slate)] if decision.life else []),
    ):
        with pytest.raises(InvalidInput, match="choose\\(\\) returned"):
            learner.observe(wrong, case.answer(decision, 0))
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))  # nothing was lost


def check_an_answer_to_an_unknown_life_counts_for_nothing_and_is_counted(case: Case) -> None:
    """Whatever it says: the slate may be right, the round may be one that was never chosen here."""
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other = tuple(item for item in range(N_ITEMS) if item not in decision.slate)[: len(decision.slate)]
    foreign = replace(decision, life=decision.life + 12_345)
    for wrong in (foreign, replace(foreign, round=999), replace(foreign, slate=other), foreign.ticket):
        learner.observe(wrong, case.answer(decision, 0))
    assert learner.unknown_lives == 4
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))  # nothing was lost
    for again in (decision, decision.ticket):  # second answers are of a life that is known
        learner.observe(again, case.answer(decision, 0))
    assert learner.unknown_lives == 4


def check_a_ticket_answers_as_its_decision_does(case: Case) -> None:
    by_ticket, by_decision = case.trained(), case.trained()
    for t in range(5):
        one, other = by_ticket.choose(), by_decision.choose()
        assert one == other
        by_ticket.observe(one.ticket, case.answer(one, t))
        by_decision.observe(other, case.answer(other, t))
        by_ticket.observe(one.ticket, case.answer(one, t + 1))  # a second answer
    assert by_ticket.snapshot() == by_decision.snapshot()


def check_wrong_feedback_is_refused_and_loses_nothing(case: Case) -> None:
    if case.kind.name == "random":
        return  # reads nothing, so nothing can be wrong
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other_items = Oracle(lambda s: 0.0, N_ITEMS + 1) if case.feedback == "full" else "no"
    nothing = "nothing" if case.feedback == "click" else None  # None is an answer where people click
    for wrong in ("yes", nothing, True, [0.5], other_items):
        with pytest.raises((WrongFeedback, InvalidInput)):
            learner.observe(decision, wrong)
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))


def check_hostile_answers_do_no_harm(case: Case) -> None:
    learner = case.fresh()
    if case.feedback == "click":
        for hostile in (SLOTS, -1, 10**30, 0.5, np.nan):  # there is nothing between a click and none
            if case.kind.name == "random":
                learner.observe(learner.choose(), hostile)  # reads nothing, so nothing can be wrong
                continue
            with pytest.raises(WrongFeedback):
                learner.observe(learner.choose(), hostile)
        return
    for hostile in (np.nan, np.inf, -np.inf, -1.0, 1e300, 1.5):
        for _ in range(20):
            decision = learner.choose()
            worst = Oracle(lambda s, hostile=hostile: hostile * len(s), N_ITEMS)  # type: ignore[misc]
            with np.errstate(invalid="ignore"):
                learner.observe(decision, worst if case.feedback == "full" else hostile)
    decision = learner.choose()
    assert all(0 <= item < N_ITEMS for item in decision.slate)


def check_a_snapshot_goes_on_as_the_learner_would(case: Case) -> None:
    learner = case.trained()
    waiting = learner.choose()  # out when the snapshot is taken, answered afterwards
    twins = [case.kind.restore(learner.snapshot(), coins=SeededCoins(9)) for _ in range(2)]
    for each in (learner, *twins):
        each.observe(waiting, case.answer(waiting, 7))
    assert twins[0].snapshot() == twins[1].snapshot() == learner.snapshot()
    np.testing.assert_array_equal(twins[0].replay(PEOPLE), twins[1].replay(PEOPLE))
    assert twins[0].snapshot() == twins[1].snapshot()


def check_an_altered_snapshot_is_refused(case: Case) -> None:
    """Compiled code does not check its indices, so what could lead it astray must not come in."""
    good = case.trained().snapshot()
    with np.load(io.BytesIO(good)) as held:
        arrays = {name: held[name] for name in held.files}

    def altered(name: str, value: int, dtype: Any = None) -> bytes:
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[name] = changed[name].astype(dtype or changed[name].dtype)
        if changed[name].size:
            small = np.issubdtype(changed[name].dtype, np.signedinteger)  # and may not hold the value
            changed[name][...] = max(value, np.iinfo(changed[name].dtype).min) if small else value
        out = io.BytesIO()
        np.savez(out, **changed)
        return out.getvalue()

    hurt = [altered(name, 10**9) for name in ("decisions.rows", "decisions.probes")] + [
        altered("decisions.issued", -5)
    ]
    hurt += [altered(name, -(10**9)) for name in arrays if name.startswith("state")]
    hurt += [altered("decisions.rows", 0, np.float64)]
    header = json.loads(arrays["header"].tobytes())
    header["config"]["colour"] = "blue"
    hurt.append(good.replace(arrays["header"].tobytes(), b"{}"))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    hurt.append(altered("decisions.waiting", False))
    for bytes_ in hurt:
        with pytest.raises(InvalidInput, match="snapshot"):
            case.kind.restore(bytes_)


def check_what_is_said_does_not_depend_on_who_answered(case: Case) -> None:
    learner = case.fresh()
    decision = learner.choose()
    others = tuple(a for a in range(N_ITEMS) if a not in decision.slate)
    wrong = replace(decision, slate=others[: len(decision.slate)])
    for _ in range(2):
        with pytest.raises(InvalidInput, match="another slate"):
            learner.observe(wrong, case.answer(decision, 0))
        learner.observe(decision, case.answer(decision, 0))
    learner.replay(PEOPLE[:3])
    with pytest.raises(InvalidInput, match="never chosen"):
        learner.row_of(Decision(4, ()))


def check_no_coins_in_a_snapshot(case: Case) -> None:
    one = case.fresh(seed=1)
    other = case.kind(**one._config(), coins=SeededCoins(2))
    assert one.snapshot() == other.snapshot()
    one._frame.public.refill()
    one._frame.secret.refill()
    assert one.snapshot() == other.snapshot()


def check_broken_snapshots_are_refused(case: Case) -> None:
    good = case.trained().snapshot()
    for bad in (b"", b"nonsense", good[:-40], good[: len(good) // 2]):
        with pytest.raises(InvalidInput, match="snapshot"):
            case.kind.restore(bad)
    for other in LEARNERS.values():
        if other is not case.kind:
            with pytest.raises(InvalidInput, match=case.kind.name):
                other.restore(good)


def check_coins_are_the_systems_unless_asked(case: Case) -> None:
    learner = case.made(Setting(N_ITEMS, SLOTS, 100, case.feedback))
    assert isinstance(learner.coins, SystemCoins)
    assert learner.guarantee.secure_coins
    assert not case.fresh().guarantee.secure_coins
    assert len({tuple(learner.choose().slate) for _ in range(40)}) > 1


def check_the_guarantee_can_be_read_and_written(case: Case) -> None:
    guarantee = case.fresh().guarantee
    assert json.loads(json.dumps(guarantee.as_json(), allow_nan=False))["neighbours"] == "replace one round"
    assert str(guarantee)


def check_bad_sizes_are_refused(case: Case) -> None:
    for n_items, slots in ((0, 1), (5, 0), (5, 6), (-3, 1), (2.5, 1), (5, True)):
        with pytest.raises(DiminuendoError):
            case.fresh(n_items=n_items, slots=slots)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="items"):
        case.fresh(n_items=5).replay(PEOPLE)


def check_printing_reveals_nothing_learned(case: Case) -> None:
    learner, other = case.fresh(), case.fresh()
    learner.replay(PEOPLE)
    other.replay(PEOPLE.permuted(np.arange(N_ITEMS)[::-1]))
    assert repr(learner) == repr(other)


CHECKS = [thing for name, thing in sorted(globals().items()) if name.startswith("check_")]


OF_VARIANTS = (
    check_slates_are_distinct_items_in_range,
    check_a_snapshot_goes_on_as_the_learner_would,
    check_the_guarantee_can_be_read_and_written,
)
"""What is checked in every run of a learner that differs from another one in constants or noise only."""


def checks() -> Iterator[pytest.ParameterSet]:
    for case in cases():
        for check in CHECKS:
            quick = check in OF_VARIANTS or not case.kind.name.endswith(VARIANTS)
            marks = [] if quick else [pytest.mark.slow]
            yield pytest.param(case, check, id=f"{case}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("case", "check"), list(checks()))
def test_learner(case: Case, check: Callable[[Case], None]) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(cases()), ids=repr)
def test_replay_is_the_loop_for_every_family(case: Case) -> None:
    assert_replay_is_the_loop(case, *FAMILIES)


def test_every_learner_is_a_case_and_has_its_own_name() -> None:
    assert {case.kind.name for case in cases()} == set(LEARNERS)
    assert all(kind.name == name and kind.summary for name, kind in LEARNERS.items())
