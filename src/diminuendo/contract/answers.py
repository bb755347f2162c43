"""Feedback: late, twice, never, on the wrong decision, of the wrong kind, or hostile."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from diminuendo.contract.case import N_ITEMS, SLOTS, USERS, Case, raises
from diminuendo.errors import InvalidInput, WrongFeedback
from diminuendo.objectives import Oracle
from diminuendo.randomness import SeededSource
from diminuendo.types import Decision


def check_one_who_is_refused_among_many_does_not_touch_others(case: Case) -> None:
    """Feedback that is refused is named, and that of others counts."""
    learner, other = case.fresh(), case.fresh()
    decisions = learner.choose_many(5)
    assert decisions == other.choose_many(5)
    answers = [case.answer(decision, t) for t, decision in enumerate(decisions)]
    with raises(InvalidInput, match="5 decisions and 4 feedbacks"):
        learner.observe_many(decisions, answers[:4])
    with raises(InvalidInput, match=r"Number 0: .*choose"):
        learner.observe_many([7, *decisions[:2]], answers[4:] + answers[:2])  # type: ignore[list-item]
    refused = ["yes"] if not case.hears_nothing else [answers[3]]
    with raises(InvalidInput, match="Number 1") if not case.hears_nothing else nullcontext():
        learner.observe_many(decisions[2:4], [answers[2], *refused])
    if not case.hears_nothing:
        learner.observe(decisions[3], answers[3])
    for decision, answer in list(zip(decisions, answers, strict=True))[:4]:
        other.observe(decision, answer)
    with raises(InvalidInput, match="one user per round"):
        learner.choose_many(3, ["ada", "eve"])
    if case.kind.private:
        with raises(InvalidInput, match="named by a whole number"):
            learner.choose_many(2, ["ada", 1.5])  # type: ignore[list-item]
        with raises(InvalidInput, match="made for 600 rounds"):
            learner.choose_many(596)
    assert learner.snapshot() == other.snapshot()


def check_the_second_answer_changes_nothing(case: Case) -> None:
    """A second response is ignored."""
    once, twice = case.trained(), case.trained()
    for learner in (once, twice):
        decision = learner.choose()
        learner.observe(decision, case.answer(decision, 60))
    before = twice.snapshot()
    twice.observe(decision, case.answer(decision, 61))
    assert twice.snapshot() == before == once.snapshot()


def check_a_late_answer_changes_nothing(case: Case) -> None:
    """Feedback after its deadline is ignored, and feedback in time counts."""
    learner = case.kind(**{**case.fresh()._config(), "feedback_window": 3}, rng=SeededSource(5))
    decisions = [learner.choose() for _ in range(5)]
    before = learner.snapshot()
    for delay in decisions[:1]:  # more than three rounds were chosen since
        learner.observe(delay, case.answer(delay, 0))
    assert learner.snapshot() == before
    for still_open in decisions[1:]:
        learner.observe(still_open, case.answer(still_open, 0))
        assert learner.snapshot() != before, "an answer in time counts"
        before = learner.snapshot()
    learner.replay(USERS[:7])
    before = learner.snapshot()
    learner.observe(decisions[4], case.answer(decisions[4], 0))
    assert learner.snapshot() == before


def check_answers_may_come_in_any_order_or_never(case: Case) -> None:
    """Answers come in any order, and some never."""
    learner = case.fresh()
    open_ = [learner.choose() for _ in range(30)]
    for decision in sorted(open_[5:], key=lambda d: (d.round * 7) % 30):
        learner.observe(decision, case.answer(decision, decision.round))
    assert learner.choose().round == 30


def check_a_decision_from_remote_rounds_is_refused(case: Case) -> None:
    """A decision that was never made is refused, and nothing is lost."""
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other = tuple(item for item in range(N_ITEMS) if item not in decision.slate)[: len(decision.slate)]
    for wrong in (
        replace(decision, round=999),
        replace(decision, round=-1),
        replace(decision, slate=other),
        *(
            [Decision(999, decision.slate), Decision(decision.round, decision.slate)]
            if decision.incarnation
            else []
        ),
    ):
        with raises(InvalidInput, match="choose\\(\\) returned"):
            learner.observe(wrong, case.answer(decision, 0))
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))  # nothing was lost


def check_an_answer_to_an_unknown_incarnation_counts_for_nothing_and_is_counted(case: Case) -> None:
    """Whatever it says: the slate may be right, the round may be one that was never chosen here."""
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other = tuple(item for item in range(N_ITEMS) if item not in decision.slate)[: len(decision.slate)]
    foreign = replace(decision, incarnation=decision.incarnation + 12_345)
    for wrong in (foreign, replace(foreign, round=999), replace(foreign, slate=other), foreign.id):
        learner.observe(wrong, case.answer(decision, 0))
    assert learner.unmatched_responses == 4
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))  # nothing was lost
    for again in (decision, decision.id):  # second answers are of a life that is known
        learner.observe(again, case.answer(decision, 0))
    assert learner.unmatched_responses == 4


def check_a_decision_id_answers_as_its_decision_does(case: Case) -> None:
    """A ticket is as good as the decision itself."""
    by_ticket, by_decision = case.trained(), case.trained()
    for t in range(5):
        one, other = by_ticket.choose(), by_decision.choose()
        assert one == other
        by_ticket.observe(one.id, case.answer(one, t))
        by_decision.observe(other, case.answer(other, t))
        by_ticket.observe(one.id, case.answer(one, t + 1))  # a second answer
    assert by_ticket.snapshot() == by_decision.snapshot()


def check_wrong_feedback_is_refused_and_loses_nothing(case: Case) -> None:
    """Feedback of another kind is refused, and the right one still counts."""
    if case.hears_nothing:
        return  # reads nothing, so nothing can be wrong
    learner = case.trained()
    decision = learner.choose()
    before = learner.snapshot()
    other_items = Oracle(lambda s: 0.0, N_ITEMS + 1) if case.feedback == "full" else "no"
    nothing = "nothing" if case.feedback == "click" else None  # None is an answer where users click
    for wrong in ("yes", nothing, True, [0.5], other_items):
        with raises((WrongFeedback, InvalidInput)):
            learner.observe(decision, wrong)
    assert learner.snapshot() == before
    learner.observe(decision, case.answer(decision, 0))


def check_hostile_answers_do_no_harm(case: Case) -> None:
    """Numbers beyond all bounds, and none, change nothing but what they may."""
    learner = case.fresh()
    if case.feedback == "click":
        for hostile in (SLOTS, -1, 10**30, 0.5, np.nan):  # there is nothing between a click and none
            if case.hears_nothing:
                learner.observe(learner.choose(), hostile)  # reads nothing, so nothing can be wrong
                continue
            with raises(WrongFeedback):
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


def check_what_is_said_does_not_depend_on_who_answered(case: Case) -> None:
    """Errors are the same before and after an answer."""
    learner = case.fresh()
    decision = learner.choose()
    others = tuple(a for a in range(N_ITEMS) if a not in decision.slate)
    wrong = replace(decision, slate=others[: len(decision.slate)])
    for _ in range(2):
        with raises(InvalidInput, match="another slate"):
            learner.observe(wrong, case.answer(decision, 0))
        learner.observe(decision, case.answer(decision, 0))
    learner.replay(USERS[:3])
    with raises(InvalidInput, match="never chosen"):
        learner.row_of(Decision(4, ()))
