"""Decisions come back as they went: through JSON, JavaScript and other users's hands, or it is said that not."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diminuendo import Decision, Learner, OverlapGreedy, SeededSource, SlateClicks, SystemSource, user
from diminuendo.errors import InvalidInput
from diminuendo.evaluate import Log
from diminuendo.objectives import NoisyOr
from diminuendo.randomness.sources import incarnation_of
from diminuendo.types import LARGEST_INCARNATION, LARGEST_KEPT, DecisionId, sound

N_ITEMS, SLOTS = 12, 3
WIDE = 2**62 + 1
"""A life that no float holds."""

items = st.integers(0, 2**31 - 1)
decisions = st.builds(
    Decision,
    st.integers(0, LARGEST_KEPT),
    st.lists(items, unique=True, max_size=20).map(tuple),
    st.none() | st.tuples(items, items),
    st.none() | st.floats(0, 1),
    st.integers(0, LARGEST_INCARNATION),
)


def through_javascript(text: str) -> str:
    """JSON.stringify(JSON.parse(text)): every number is a float, and whole ones are written without a point."""

    def written(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: written(part) for name, part in value.items()}
        if isinstance(value, list):
            return [written(part) for part in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps(written(json.loads(text, parse_int=float)))


@given(decisions)
def test_json_there_and_back(decision: Decision) -> None:
    text = decision.to_json()
    for back in (text, text.encode(), json.loads(text), through_javascript(text)):
        result = Decision.from_json(back)
        assert result == decision
        assert sound(result) is result  # of plain numbers and tuples


@given(decisions)
def test_floats_keep_every_number_in_it(decision: Decision) -> None:
    def kept(value: Any) -> bool:
        if isinstance(value, (list, dict)):
            return all(map(kept, value.values() if isinstance(value, dict) else value))
        return not isinstance(value, int) or int(float(value)) == value

    assert kept(json.loads(decision.to_json()))


@given(decisions)
def test_a_incarnation_that_may_have_been_rounded_is_refused(decision: Decision) -> None:
    plain = json.dumps(dataclasses.asdict(decision))
    for back in (plain, through_javascript(plain), json.loads(plain, parse_int=float)):
        if decision.incarnation <= LARGEST_KEPT:
            assert Decision.from_json(back) == decision
        else:
            with pytest.raises(InvalidInput, match="to_json"):
                Decision.from_json(back)


GOOD: dict[str, Any] = json.loads(Decision(3, (17_123, 4), (1, 4), 0.25, WIDE).to_json())
BAD: list[Any] = [
    *("", "{", "[]", "null", "17123", '"17123"', "[" * 100_000, b"\xff\xfe", "NaN", "1" * 5_000, None, 17_123, [GOOD]),
    *({}, {"round": 17_123}, {**GOOD, "17123": 1}, {name: GOOD[name] for name in GOOD if name != "incarnation"}),
    *({**GOOD, "round": wrong} for wrong in (-1, 1.5, "17123", None, True, [3], 2**53, float("inf"), float("nan"))),
    *({**GOOD, "slate": wrong} for wrong in ("17123", 17_123, None, [17_123, 17_123], [-1], [0.5], ["17123"], [2**31])),
    *({**GOOD, "slate": wrong} for wrong in ([[17_123]], [None], [True], {1: 2})),
    *({**GOOD, "probe": wrong} for wrong in (17_123, [17_123], [1, 2, 17_123], [-1, 1], ["a", "b"], {1: 2}, "17123")),
    *({**GOOD, "propensity": wrong} for wrong in (-0.1, 1.01, float("nan"), float("inf"), "17123", True, [1])),
    *({**GOOD, "incarnation": wrong} for wrong in ("17123", "", "-000000000017123", "G" * 16, "f" * 16, "0" * 15)),
    *({**GOOD, "incarnation": wrong} for wrong in (float(WIDE), WIDE, -1, None, True, 1.5, [1], "0" * 17,
    "\u0660" * 16)),
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD, ids=range(len(BAD)))
def test_what_is_malformed_is_refused_and_not_repeated(wrong: Any) -> None:
    for given_ in (wrong, json.dumps(wrong)) if isinstance(wrong, dict) else (wrong,):
        with pytest.raises(InvalidInput) as result:
            Decision.from_json(given_)
        error: BaseException | None = result.value
        while error is not None:
            assert "17123" not in repr(error)
            error = error.__cause__ or error.__context__


def test_what_may_be_left_out() -> None:
    short = {name: GOOD[name] for name in ("round", "slate", "incarnation")}
    assert Decision.from_json(short) == Decision(3, (17_123, 4), incarnation=WIDE)
    with pytest.raises(InvalidInput, match="round"):
        Decision(2**53, (1,)).to_json()


def clicks(seed: int = WIDE) -> Learner:
    return SlateClicks(N_ITEMS, SLOTS, horizon=1_000, epsilon=1.0, rng=SeededSource(seed))


def learned(learner: Learner, decision: Any, answer: Any) -> bool:
    before = learner.snapshot()
    learner.observe(decision, answer)
    return learner.snapshot() != before


def test_asdict_and_back_is_an_answer() -> None:
    """Lists for tuples, and floats for whole numbers: what formats without them leave."""
    by_hand, learner = clicks(7), clicks(7)
    decision = learner.choose()
    assert decision == by_hand.choose()
    record = json.loads(json.dumps(dataclasses.asdict(decision)))
    assert isinstance(record["slate"], list)
    assert learned(by_hand, Decision(**record), 1)
    assert learned(learner, Decision(**(record | {"round": 0.0, "incarnation": 7.0})), 1)
    assert learner.snapshot() == by_hand.snapshot()


def test_an_answer_to_a_rounded_incarnation_is_an_error_whoever_answered() -> None:
    """As it would be of a learner of before, whose lives had 63 bits, or one that is seeded."""
    learner = clicks()
    decision = learner.choose()
    assert decision.incarnation == WIDE
    rounded = Decision.from_json(decision.to_json())
    record = json.loads(through_javascript(json.dumps(dataclasses.asdict(rounded))))
    assert record["incarnation"] != decision.incarnation
    for incarnation in (record["incarnation"], float(record["incarnation"])):
        wrong = Decision(**(record | {"incarnation": incarnation}))
        for _ in range(2):
            before = learner.snapshot()
            with pytest.raises(InvalidInput, match="to_json"):
                learner.observe(wrong, 1)
            assert learner.snapshot() == before
            learner.observe(decision, 1)
    assert learner.unmatched_responses == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"round": "0"},
        {"round": 0.5},
        {"incarnation": 2**70},
        {"incarnation": float(WIDE)},
        {"incarnation": -1},
        {"slate": 3},
        {"slate": {1, 2, 3}},
    ],
)
def test_a_malformed_decision_is_refused_at_the_door(wrong: dict[str, Any]) -> None:
    learner, log = clicks(), Log(SLOTS)
    decision = learner.choose()
    hurt = dataclasses.replace(decision, **wrong)
    for door in (lambda: learner.observe(hurt, 1), hurt.to_json, lambda: log.add(hurt, 1.0)):
        with pytest.raises(InvalidInput, match="of a decision"):
            door()
    with pytest.raises(InvalidInput, match="of a decision"):
        learner.observe(DecisionId(wrong.get("round", 1.5), wrong.get("incarnation", 0)), 1)
    assert learned(learner, decision, 1)


def test_incarnations_have_as_many_bits_as_javascript_keeps() -> None:
    incarnations = {incarnation_of(SystemSource()) for _ in range(1_000)}
    assert len(incarnations) == 1_000
    assert LARGEST_KEPT / 2 < max(incarnations) <= LARGEST_KEPT
    assert incarnation_of(SeededSource(WIDE)) == WIDE


def test_a_log_knows_a_decision_that_came_back() -> None:
    log, decision = Log(SLOTS), clicks().choose()
    log.add(decision)
    log.answer(Decision.from_json(decision.to_json()), 1.0)
    log.answer(dataclasses.replace(decision, slate=list(decision.slate)), 0.0)  # type: ignore[arg-type]
    assert log.rewards.tolist() == [1.0]


def test_answers_to_what_a_crash_lost_are_counted_for_the_operator_alone() -> None:
    """Rounds 5 to 9 were chosen in a life that is lost; the next life chooses 5 to 7 again."""
    lost = OverlapGreedy(N_ITEMS, SLOTS, horizon=100, epsilon=1.0, delta=1e-6)
    kept = [lost.choose() for _ in range(5)]
    snapshot = lost.snapshot()
    gone = [lost.choose() for _ in range(5)]
    again = OverlapGreedy.restore(snapshot)
    here = [again.choose() for _ in range(3)]
    wishes = user(NoisyOr(), {1: 0.5}, n_items=N_ITEMS)
    before = again.snapshot()
    for number, decision in enumerate(gone, start=1):
        again.observe(
            decision, wishes
        )  # no error, whichever slate was shown and whether its round came again
        assert again.unmatched_responses == number
    assert again.snapshot() == before
    assert "5" not in repr(again).replace("3 of 12 items, 8 rounds", "")
    for decision in (*kept, *here):
        assert learned(again, decision, wishes)
    assert again.unmatched_responses == 5
    assert OverlapGreedy.restore(again.snapshot()).unmatched_responses == 0


def test_a_ticket_that_came_too_late_looks_like_any_other() -> None:
    learner = SlateClicks(N_ITEMS, SLOTS, horizon=1_000, epsilon=1.0, feedback_window=4, rng=SeededSource(7))
    first = learner.choose()
    for _ in range(6):
        learner.choose()
    before = learner.snapshot()
    for click in (None, SLOTS - 1):
        learner.observe(first.id, click)
    learner.observe_many([first.id, first], [0, 0])
    assert learner.snapshot() == before
    assert learner.unmatched_responses == 0
