"""Streams in which people come back: whose a round is, is told to learners, and decides results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.learners import Setting
from diminuendo.learners.base.replay import replay
from diminuendo.simulate import task
from diminuendo.simulate.report.page import lead
from diminuendo.simulate.sweeps import describe, simulate
from diminuendo.simulate.task import Baseline, Run, StreamSlice, fingerprint, whose


def people(persons: list[int] | None) -> dim.People:
    result = dim.People(dim.NoisyOr(), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], name="shop")
    result.persons = None if persons is None else np.array(persons)
    return result


def test_results_are_kept_by_whose_rounds_they_are() -> None:
    """Else runs with one person four times would be taken for runs with four people."""
    runs, baselines = [], []
    for persons in (None, [0, 1, 2, 3], [0, 0, 1, 1]):
        stream = people(persons)
        part = StreamSlice(0, 4, fingerprint(stream), whose=whose(stream))
        runs.append(Run(part, "random", 0, Setting(2, 1, 4, "full"), "").key)
        baselines.append(Baseline(part, 1, 1.0).key)
    assert len(set(runs)) == 3
    assert len(set(baselines)) == 1, "hindsight does not mind who comes"


def test_a_sweep_hands_on_whose_rounds_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []

    def kept(self: Run) -> str:
        keys.append(self.stream_slice.whose)
        return repr((self.learner, self.seed, self.stream_slice.whose))

    monkeypatch.setattr(Run, "key", property(kept))
    simulate(people([0, 0, 1, 1]), slots=1, learners="random", seeds=1)
    assert keys
    assert all(keys)


@pytest.mark.parametrize(
    ("persons", "visits", "expected"),
    [
        (None, 1, None),
        (None, 2, [0, 1, 2, 3]),
        ([5, 5, 7, 5], 1, [5, 5, 7, 5]),
        ([5, 5, 7, 5], 2, [5, 5, 7, 5]),
    ],
)
def test_learners_are_told_whose_rounds_they_are(
    persons: list[int] | None, visits: int, expected: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def listening(*given: Any, **named: Any) -> Any:
        if len(given[1]) == 4:  # and not one alone, who comes to compile
            told.append(named.get("persons"))
        return replay(*given, **named)

    monkeypatch.setattr(task, "replay", listening)
    simulate(people(persons), slots=1, learners="random", seeds=1, visits=visits)
    assert [None if one is None else one.tolist() for one in told] == [expected]


@pytest.mark.parametrize("named", [True, False])
def test_private_learners_learn_from_as_many_rounds_of_a_person_as_are_asked_for(named: bool) -> None:
    """One person comes 300 times: whatever she wants after her first two visits, the same slates are shown."""
    shown = []
    for later in (1, 2):
        rows = np.zeros((300, 3))
        rows[:2, 0] = rows[2:, later] = 1.0
        stream = dim.People(dim.NoisyOr(), rows, name="shop")
        stream.persons = np.zeros(300, dtype=np.int64) if named else None
        (run,) = simulate(stream, slots=1, learners="private", seeds=1, visits=2, epsilon=10.0).results
        shown.append(np.array(run.shown).tolist())
    assert (shown[0] == shown[1]) == named, "who comes without a name is somebody else"


@pytest.mark.parametrize("persons", [[0, 1, 0, 1], None])
def test_the_report_says_where_people_in_its_pictures_are_rounds(persons: list[int] | None) -> None:
    result = simulate(people(persons), slots=1, learners="random", seeds=1)
    assert ("count every round as a user" in lead(result)) == (persons is not None)


def test_what_was_read_is_in_the_record() -> None:
    table = {
        "user": ["a", "a", "b"],
        "sku": ["x", "y", "x"],
        "day": ["2024-05-01", "2024-05-02", "2024-05-01"],
    }
    result = describe(dim.from_table(table, columns=("user", "sku"), time="day", round="day"))
    assert (result["rounds"], result["people"]) == (3, 2)
    assert result["read"]["round"] == "day"
    assert "people" not in describe(people(None))
    assert "read" not in describe(people(None))
