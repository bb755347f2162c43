"""Logs and policies at the door, and what an estimate says of itself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diminuendo.errors import InvalidInput, UnknownName
from diminuendo.evaluate import METHODS, AnyOrder, ByRound, Log, Mixture, evaluate
from diminuendo.evaluate.estimators import weights_of
from diminuendo.types import Decision


def small_log(rounds: int = 240) -> Log:
    """Two slates in turn, as if a fair coin had chosen; the first earns 1/2, the second 1 or 0."""
    log = Log(2)
    for t in range(rounds):
        slate, reward = ((0, 1), 0.5) if t % 2 else ((2, 1), float(t % 4 == 0))
        log.add(Decision(t, slate, None, 0.5), reward)
    return log


def test_what_goes_in_comes_out() -> None:
    log = small_log(4)
    np.testing.assert_array_equal(log.slates, [[2, 1], [0, 1], [2, 1], [0, 1]])
    np.testing.assert_array_equal(log.rewards, [1.0, 0.5, 0.0, 0.5])
    np.testing.assert_array_equal(log.propensities, [0.5] * 4)
    again = Log.from_arrays(log.slates, log.propensities, log.rewards, log.rounds)
    assert again.shown() == log.shown()
    assert len(log[1:3]) == 2
    assert log[1:3].rounds.tolist() == [1, 2]
    assert "private" in repr(log)


def test_through_parquet(tmp_path: Path) -> None:
    log, file = small_log(6), tmp_path / "it's a [log].parquet"
    log.add(Decision(9, (4,), None, 0.125), 1.0)
    log.add(Decision(12, (), None, 1.0))
    log.write(file)
    again = Log.read(file)
    assert again.shown() == log.shown()
    for name in ("rounds", "slates", "propensities", "rewards"):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert pq.read_table(file)["reward"].to_pylist()[-2:] == [1.0, None], "not answered is not nothing"
    again.add(Decision(13, (1, 2), None, 0.5))
    assert len(again) == len(log) + 1


def test_no_answer_is_reward_nothing() -> None:
    """Left out, slates that few answer to would look as good as those that please: here both earn 1 if answered."""
    log = Log(1)
    for t in range(400):
        shown = t % 2
        answers = shown == 0 or t % 4 == 1
        log.add(Decision(t, (shown,), None, 0.5), *([1.0] if answers else []))
    assert evaluate(log, (0,)).value == 1.0
    assert evaluate(log, (1,)).value == 0.5


def test_rounds_are_added_in_order_and_once() -> None:
    log = small_log(3)
    for round_ in (2, 1):
        with pytest.raises(InvalidInput, match="in the order"):
            log.add(Decision(round_, (0, 1), None, 0.5), 1.0)
    log.add(Decision(0, (0, 1), None, 0.5, incarnation=7), 1.0)  # after a crash rounds are counted anew
    with pytest.raises(InvalidInput, match="each once"):
        log.add(Decision(2, (2, 1), None, 0.5), 1.0)  # this one is of before it
    assert len(log) == 4


# Answers.


def chosen(rounds: int, incarnation: int = 0) -> list[Decision]:
    return [Decision(t, (t % 2,), None, 0.5, incarnation) for t in range(rounds)]


def test_who_is_in_the_log_does_not_depend_on_who_answers() -> None:
    """Everything public about a log is there before the first answer, and no answer changes it."""
    logs = []
    for answered in ([], [3], [0, 1, 2, 3]):
        log, decisions = Log(1), chosen(4)
        for decision in decisions:
            log.add(decision)
        for t in answered:
            log.answer(decisions[t], 1.0)
        np.testing.assert_array_equal(log.rewards, [float(t in answered) for t in range(4)])
        logs.append((len(log), repr(log), log.shown(), log.rounds.tolist(), log.propensities.tolist()))
    assert logs[0] == logs[1] == logs[2]


def test_the_first_answer_counts_whenever_it_comes() -> None:
    log, decisions = Log(1), [*chosen(3), *chosen(2, incarnation=7)]
    for decision in decisions:
        log.add(decision)
    for place in (4, 0, 2):
        log.answer(decisions[place], 0.25)
        log.answer(decisions[place], 1.0)  # silently nothing: it must not be told who has answered
    np.testing.assert_array_equal(log.rewards, [0.25, 0, 0.25, 0, 0.25])
    log.add(Decision(2, (0,), None, 0.5, incarnation=7), 0.5)
    log.answer(Decision(2, (0,), None, 0.5, incarnation=7), 1.0)
    assert log.rewards[-1] == 0.5, "one that was given at once is the first"


def test_answers_to_what_is_not_there() -> None:
    log = Log(1)
    log.add(chosen(1)[0])
    for answered in (False, True):
        with pytest.raises(InvalidInput, match="not in this log"):
            log.answer(chosen(2)[1], 1.0)
        with pytest.raises(InvalidInput, match="not in this log"):
            log.answer(chosen(1, incarnation=7)[0], 1.0)
        with pytest.raises(InvalidInput, match="another slate"):
            log.answer(Decision(0, (5,), None, 0.5), 1.0)
        with pytest.raises(InvalidInput, match="decision"):
            log.answer(0, 1.0)  # type: ignore[arg-type]
        assert log.rewards.tolist() == [float(answered)]
        log.answer(chosen(1)[0], 1.0)


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        (math.nan, 0), (-3, 0), (-math.inf, 0), ("1", 0), ([1], 0), (None, 0), (np.float32("nan"), 0), (1j, 0),
        (1e300, 1), (10**400, 1), (math.inf, 1), (True, 1), (np.bool_(True), 1), (np.float32(0.5), 0.5), (0.25, 0.25),
    ],
)  # fmt: skip
def test_odd_answers_neither_stop_nor_bias(said: Any, counts: float) -> None:
    log = Log(1)
    for decision in chosen(2):
        log.add(decision)
        log.answer(decision, said)
    assert log.rewards.tolist() == [counts] * 2
    log.answer(decision, 0.75)
    assert log.rewards.tolist() == [counts] * 2, "it was the same user's feedback"


def test_answers_come_to_a_log_that_was_kept_in_a_file(tmp_path: Path) -> None:
    """Also after a restart of a learner, from when on rounds are counted anew."""
    log, decisions = Log(1), [*chosen(3), *chosen(2, incarnation=7)]
    for decision in decisions:
        log.add(decision)
    log.answer(decisions[0], 0.0)
    log.write(tmp_path / "log.parquet")
    again = Log.read(tmp_path / "log.parquet")
    for decision in decisions:
        again.answer(decision, 1.0)
    assert again.rewards.tolist() == [0, 1, 1, 1, 1]


def test_a_log_is_read_forwards() -> None:
    log = small_log(6)
    assert log[::2].rounds.tolist() == [0, 2, 4]
    for stretch in (slice(None, None, -1), slice(4, 1, -2)):
        with pytest.raises(InvalidInput, match="forwards"):
            log[stretch]
    for rounds in ([0, 2, 1], [0, 1, 1], [0.0, 1.0, 2.0]):
        with pytest.raises(InvalidInput, match=r"in the order|whole numbers"):
            Log.from_arrays([[0]] * 3, [1.0] * 3, [0.0] * 3, np.array(rounds))


def test_secret_propensities_are_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInput, match="secret scores"):
        Log(2).add(Decision(0, (0, 1)), 1.0)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (((0, 1), 0.0, 0.5), "propensity"),
        (((0, 1), 1.5, 0.5), "propensity"),
        (((0, 1), math.nan, 0.5), "propensity"),
        (((0, 0), 0.5, 0.5), "slate"),
        (((0, 1, 2), 0.5, 0.5), "slate"),
        (((0, -2), 0.5, 0.5), "slate"),
        (((0, 1.5), 0.5, 0.5), "slate"),
        (((0, 2**31), 0.5, 0.5), "slate"),
    ],
)
def test_rounds_that_cannot_be(given: tuple[Any, ...], match: str) -> None:
    slate, propensity, reward = given
    log = Log(2)
    with pytest.raises(InvalidInput, match=match):
        log.add(Decision(0, slate, None, propensity), reward)
    assert len(log) == 0


def test_tables_that_cannot_be(tmp_path: Path) -> None:
    def read(table: dict[str, Any]) -> Log:
        pq.write_table(pa.table(table), tmp_path / "log.parquet")
        return Log.read(tmp_path / "log.parquet")

    with pytest.raises(InvalidInput, match="slates"):
        Log.from_arrays([0, 1], [1.0, 1.0], [0.0, 0.0])
    with pytest.raises(InvalidInput, match="3 propensities"):
        Log.from_arrays([[0], [1]], [1.0, 1.0, 1.0], [0.0, 0.0])
    with pytest.raises(InvalidInput, match="missing: slate, propensity, reward"):
        read({"round": [1]})
    fractions = {"round": [0], "slate": [[0.5, 1.0]], "propensity": [0.5], "reward": [1.0]}
    with pytest.raises(InvalidInput, match="whole numbers"):
        read(fractions)
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match=r"log\.parquet cannot be read") as refused:
        Log.read(tmp_path / "log.parquet")
    assert refused.value.__context__ is None
    with pytest.raises(InvalidInput, match="stretch"):
        small_log()[3]  # type: ignore[index]
    with pytest.raises(InvalidInput, match="decision"):
        Log(1).add("slate")  # type: ignore[arg-type]


# Policies.


@pytest.mark.parametrize(
    "policy",
    [
        (0, 1),
        [0, 1],
        {(0, 1): 1.0},
        Mixture({(0, 1): 1}),
        lambda number: (0, 1),
        ByRound(lambda number: {(0, 1): 1.0}),
    ],
)
def test_one_policy_in_many_words(policy: Any) -> None:
    assert evaluate(small_log(), policy).value == 0.5


def test_weights_by_hand() -> None:
    log = Log.from_arrays([[0, 1], [1, 0], [2, -1], [0, 2]], [0.5, 0.25, 1.0, 0.125], [1, 1, 1, 1])
    np.testing.assert_array_equal(weights_of(log, AnyOrder((0, 1))), [0.5 / 0.5, (1 / 3) / 0.25, 0, 0])
    both = AnyOrder({(1, 0): 0.5, (2,): 0.5})
    np.testing.assert_array_equal(weights_of(log, both), [0.25 / 0.5, (1 / 6) / 0.25, 0.5, 0])
    evenly = ByRound(lambda number: both)
    np.testing.assert_array_equal(weights_of(log, evenly), [0.25 / 0.5, 0.25 / 0.25, 0.5, 0])
    np.testing.assert_array_equal(weights_of(log, Mixture({(0, 1): 0.5, (0, 2): 0.5})), [1, 0, 0, 4])
    by_round = ByRound(lambda number: (0, 2) if number == 3 else (2,))
    np.testing.assert_array_equal(weights_of(log, by_round), [0, 0, 1, 8])


def test_any_order_follows_the_log() -> None:
    """One order only, as slate-totals shows it: nothing is lost in the long run."""
    log = Log.from_arrays([[0, 1, 2], [5, 4, 3]] * 500, [0.5] * 1000, [1.0] * 1000)
    weights = weights_of(log, AnyOrder((2, 1, 0)))
    np.testing.assert_allclose(weights[::2], 2 * (1 + np.arange(500)) / (6 + np.arange(500)))
    assert not weights[1::2].any()
    assert evaluate(log, AnyOrder((2, 1, 0))).support > 0.95


def test_orders_are_put_together_for_the_model() -> None:
    assert Mixture({(0, 1): 0.25, (1, 0): 0.5, (2, 0): 0.25}).sets(0) == {(0, 1): 0.75, (0, 2): 0.25}
    assert AnyOrder({(1, 0): 0.75, (2, 0): 0.25}).sets(0) == {(0, 1): 0.75, (0, 2): 0.25}


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        ({(0, 1): 0.5}, "add up to 1"),
        ({(0, 1): 1.5, (1, 2): -0.5}, "from 0 to 1"),
        ((0, 0), "different items"),
        ((0, -1), "different items"),
        ("ab", "A policy is"),
        (7, "A policy is"),
        ({"ab": 1.0}, "tuple of items"),
        ((0.5, 1), "whole numbers"),
        (AnyOrder, "whole numbers"),
    ],
)
def test_policies_that_cannot_be(policy: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        evaluate(small_log(), AnyOrder((1.5, 0)) if policy is AnyOrder else policy)  # type: ignore[arg-type]


def test_the_same_set_twice() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        AnyOrder({(0, 1): 0.5, (1, 0): 0.5})


# Estimates.


def test_what_an_estimate_says() -> None:
    result = evaluate(small_log(), (2, 1), method="self-normalised", interval="normal")
    assert (result.rounds, result.effective, result.support, result.largest_weight) == (240, 120.0, 1.0, 2.0)
    assert result.value == result.logged == 0.5
    assert "not private" in str(result)
    assert "worth 120" in str(result)


def test_without_support_nothing_is_invented() -> None:
    """A slate that was never shown: the honest interval says nothing, the others refuse."""
    result = evaluate(small_log(), (4, 3))
    assert (result.low, result.high, result.effective, result.support) == (0.0, 1.0, 0.0, 0.0)
    for method in METHODS:
        with pytest.raises(InvalidInput, match="rounds of its own"):
            evaluate(small_log(), (4, 3), method=method, interval="normal")


def test_half_without_support() -> None:
    """Half of the log could show the slate: `always` knows at most half of its reward; the others refuse."""
    log = small_log(400)
    half = Log.from_arrays(
        np.vstack([log.slates, np.tile([3, 4], (400, 1))]),
        np.concatenate([log.propensities, np.ones(400)]),
        np.concatenate([log.rewards, np.ones(400)]),
    )
    result = evaluate(half, (0, 1))
    assert result.low < 0.25 < 0.75 < result.high
    for method in METHODS:
        with pytest.raises(InvalidInput, match="could have been shown"):
            evaluate(half, (0, 1), method=method, interval="normal")
    assert evaluate(half[:400], (2, 1), method="self-normalised", interval="normal").value == 0.5


def test_propensities_that_cannot_be_right_are_found_out() -> None:
    """A slate that is always shown, and said to be shown once in four: its weights are 4 on average, not 1."""
    log = Log.from_arrays([[0]] * 200, [0.25] * 200, [0.5] * 200)
    with pytest.raises(InvalidInput, match="propensities can hardly be right"):
        evaluate(log, (0,))
    assert evaluate(Log.from_arrays([[0]] * 200, [1.0] * 200, [0.5] * 200), (0,)).value == 0.5


def test_weights_beyond_all_bounds_are_refused() -> None:
    for tiny in (2.0**-501, 5e-324):
        log = Log.from_arrays([[0], [1]], [0.5, tiny], [1.0, 1.0])
        with pytest.raises(InvalidInput, match=r"above 2\^500"):
            evaluate(log, (1,))
        assert evaluate(log, (0,)).value == 1.0, "where the policy would show it"


@pytest.mark.parametrize("method", METHODS)
def test_width_that_is_due_to_a_few_rounds_is_refused(method: str) -> None:
    """36 rounds of the policy's own, enough by their weights; but one of them alone earned anything."""
    shown = np.arange(1_800) % 50 == 25
    chances = np.where(shown, 0.02, 0.98)
    for every, refused in ((36, True), (2, False)):
        rewards = np.where(shown & (np.cumsum(shown) % every == 0), 1.0, 0.0)
        log = Log.from_arrays(shown[:, None].astype(int), chances, rewards)
        if refused:
            with pytest.raises(InvalidInput, match="due to a few"):
                evaluate(log, (1,), method=method, interval="normal")
        elif method == "self-normalised":  # errors of all 36 are as large
            assert evaluate(log, (1,), method=method, interval="normal").effective == pytest.approx(36)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"interval": "exact"}, "interval"),
        ({"method": "self-normalised"}, "no interval that always holds"),
        ({"method": "doubly-robust"}, "most_weight"),
        ({"method": "doubly-robust", "most_weight": 1.5}, "a weight of 2"),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        evaluate(small_log(), (0, 1), **options)


def test_unknown_methods_and_empty_logs() -> None:
    with pytest.raises(UnknownName, match="doubly-robust"):
        evaluate(small_log(), (0, 1), method="magic")
    with pytest.raises(InvalidInput, match="two rounds"):
        evaluate(Log(2), (0, 1))
    flat = Log.from_arrays([[0]] * 50, [1.0] * 50, [0.0] * 50)
    with pytest.raises(InvalidInput, match="no width"):
        evaluate(flat, (0,), interval="normal")


def test_more_rounds_narrow_the_interval_like_a_root() -> None:
    widths = []
    for rounds in (1_000, 16_000):
        result = evaluate(small_log(rounds), (2, 1))
        widths.append(result.high - result.low)
    # Sixteen times as many rounds: a quarter of the width, up to logarithms of the mixture.
    assert 3 < widths[0] / widths[1] < 4
