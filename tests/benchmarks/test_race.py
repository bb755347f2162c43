"""Competitors take turns after a warm-up, and are not compared unless they agree."""

from __future__ import annotations

import pytest

from benchmarks.offline_greedy import OURS, _agreed
from benchmarks.report import Disagreement
from benchmarks.stopwatch import Competitor, Result, race


def test_turns_and_warm_up() -> None:
    heard: list[str] = []

    def run(said: str) -> str:
        heard.append(said)
        return said

    results = race([Competitor(name, f"{name}{{}}".format, run) for name in "ab"], laps=2)
    assert heard == ["a-1", "b-1", "a0", "b0", "a1", "b1"]
    assert results["a"].answers == ["a0", "a1"]
    assert 0 <= results["b"].run <= results["b"].prepared < 1


def test_disagreement_is_loud() -> None:
    ours = Result(OURS, answers=[((1, 2), 10)])
    assert _agreed({OURS: ours, "theirs": Result("theirs", answers=[((2, 1), 10)])}) == ((1, 2), 10)
    with pytest.raises(Disagreement, match="theirs found"):
        _agreed({OURS: ours, "theirs": Result("theirs", answers=[((2, 1), 10), ((2, 3), 10)])})
