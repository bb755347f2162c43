"""Streams in which users come back: whose a round is, is told to learners, and decides results."""

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
from diminuendo.simulate.task import Baseline, Run, sliced


def users(user_ids: list[int] | None) -> dim.Users:
    result = dim.Users(dim.NoisyOr(), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]], name="shop")
    result.user_ids = None if user_ids is None else np.array(user_ids)
    return result


def test_runs_are_stored_by_the_users_of_their_rounds() -> None:
    """Otherwise runs with one user four times would be taken for runs with four users."""
    runs, baselines = [], []
    for user_ids in (None, [0, 1, 2, 3], [0, 0, 1, 1]):
        part = sliced(0, users(user_ids))
        runs.append(Run(part, "random", 0, Setting(2, 1, 4, "full"), "").key)
        baselines.append(Baseline(part, 1, 1.0).key)
    assert len(set(runs)) == 3
    assert len(set(baselines)) == 1, "hindsight does not depend on users' identities"


@pytest.mark.parametrize(
    ("user_ids", "max_rounds_per_user", "expected"),
    [
        (None, 1, None),
        (None, 2, [0, 1, 2, 3]),
        ([5, 5, 7, 5], 1, [5, 5, 7, 5]),
        ([5, 5, 7, 5], 2, [5, 5, 7, 5]),
    ],
)
def test_learners_are_told_whose_rounds_they_are(
    user_ids: list[int] | None,
    max_rounds_per_user: int,
    expected: list[int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []

    def listening(*given: Any, **named: Any) -> Any:
        if len(given[1]) == 4:  # and not one alone, who comes to compile
            told.append(named.get("user_ids"))
        return replay(*given, **named)

    monkeypatch.setattr(task, "replay", listening)
    simulate(users(user_ids), slots=1, learners="random", seeds=1, max_rounds_per_user=max_rounds_per_user)
    assert [None if one is None else one.tolist() for one in told] == [expected]


@pytest.mark.parametrize("named", [True, False])
def test_private_learners_learn_from_as_many_rounds_of_a_user_as_are_asked_for(named: bool) -> None:
    """One user comes 300 times: whatever she wants after her first two visits, the same slates are shown."""
    shown = []
    for later in (1, 2):
        rows = np.zeros((300, 3))
        rows[:2, 0] = rows[2:, later] = 1.0
        stream = dim.Users(dim.NoisyOr(), rows, name="shop")
        stream.user_ids = np.zeros(300, dtype=np.int64) if named else None
        (run,) = simulate(
            stream, slots=1, learners="private", seeds=1, max_rounds_per_user=2, epsilon=10.0
        ).results
        shown.append(np.array(run.shown).tolist())
    assert (shown[0] == shown[1]) == named, "who comes without a name is somebody else"


@pytest.mark.parametrize("user_ids", [[0, 1, 0, 1], None])
def test_the_report_says_where_users_in_its_pictures_are_rounds(user_ids: list[int] | None) -> None:
    result = simulate(users(user_ids), slots=1, learners="random", seeds=1)
    assert ("count every round as a user" in lead(result)) == (user_ids is not None)


def test_what_was_read_is_in_the_record() -> None:
    table = {
        "user": ["a", "a", "b"],
        "sku": ["x", "y", "x"],
        "day": ["2024-05-01", "2024-05-02", "2024-05-01"],
    }
    result = describe(dim.from_table(table, columns=("user", "sku"), time="day", round="day"))
    assert (result["rounds"], result["users"]) == (3, 2)
    assert result["read"]["round"] == "day"
    assert "users" not in describe(users(None))
    assert "read" not in describe(users(None))
