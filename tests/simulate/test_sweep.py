"""Sweeps: the same rows whoever does the work, and each of them once."""

from __future__ import annotations

import json
import pickle
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from diminuendo import Functions
from diminuendo.errors import InvalidInput
from diminuendo.simulate import Result, Sweep, simulate, sweep
from diminuendo.simulate.table import tables
from diminuendo.simulate.task import Run
from diminuendo.simulate.workers import do, packed
from diminuendo.streams import taste_groups
from diminuendo.streams.users import Stream
from diminuendo.types import Progress
from tests.kit.slow import mostly_slow

ONE = taste_groups(300, 15, groups=4, items_per_group=5, seed=2)
OTHER = taste_groups(200, 12, groups=3, items_per_group=5, seed=3)


def timeless(found: Sweep) -> list[Result]:
    """All results; how long a run took is not a property of the run."""
    return [replace(run, seconds=0.0) for one in found.simulations for run in one.results]


def small(jobs: int) -> Sweep:
    """Two streams, two numbers of slots and rounds, private learners and others."""
    return sweep(
        [ONE, OTHER],
        slots=[2, 3],
        rounds=[100, 200],
        epsilon=[0.5, 5.0],
        learners=["private", "fi-dp", "nonprivate"],
        seeds=2,
        jobs=jobs,
    )


@pytest.fixture(scope="module")
def found() -> Sweep:
    """It, made by one worker."""
    return small(jobs=1)


def test_every_combination_is_run_once_and_measured_on_its_own_users(found: Sweep) -> None:
    settings = [(one.stream["items"], one.slots, one.stream["rounds"]) for one in found.simulations]
    assert settings == [(items, k, rounds) for items in (15, 12) for k in (2, 3) for rounds in (100, 200)]
    assert all(len(one.results) == 2 * 2 * 2 + 2 for one in found.simulations)
    for stream, first in ((ONE, 0), (OTHER, 4)):
        alone = simulate(stream[:200], slots=3, learners="fi-dp", epsilon=5.0, seeds=2)
        there = found.simulations[first + 3]
        assert there.benchmarks.greedy == alone.benchmarks.greedy
        assert [replace(run, seconds=0.0) for run in there.by_learner(5.0)["fi-dp"]] == timeless(
            Sweep([alone])
        )


def test_two_workers_make_the_same_rows_as_one(found: Sweep) -> None:
    assert timeless(small(jobs=2)) == timeless(found)


def test_users_who_are_functions_travel_too() -> None:
    functions = Functions([lambda s, t=t: len(s) / (3 + t % 2) for t in range(40)], 5)  # type: ignore[misc]
    run = planned(functions, slots=2, learners=["hedge"], seeds=1)[0]
    here, there = (do(run, users).outcome for users in (functions, pickle.loads(packed([functions])[0])))
    assert isinstance(here, Result)
    assert isinstance(there, Result)
    assert (there.curve, there.shown) == (here.curve, here.shown)


def test_users_who_cannot_travel_are_refused() -> None:
    held = threading.Lock()  # something that no other process can have
    functions = Functions([lambda s: 0.5 if s and held else 0.0] * 4, 3)
    with pytest.raises(InvalidInput, match="jobs=1"):
        simulate(functions, slots=1, learners="random", seeds=2, jobs=2)


def test_the_key_names_everything_that_decides() -> None:
    given: dict[str, Any] = {"slots": 2, "learners": ["fi-dp"], "seeds": 2}
    runs: list[Run] = []
    for stream, changes in (
        (ONE, {}),
        (OTHER, {}),
        (ONE, {"rounds": 299}),
        (ONE, {"slots": 3}),
        (ONE, {"epsilon": 2.0}),
        (ONE, {"delta": 1e-5}),
        (ONE, {"max_rounds_per_user": 2}),
        (ONE, {"learners": ["fi-pure"]}),
        (ONE, {"learners": ["random"]}),
        (ONE, {"learners": ["random"], "feedback": "click"}),
        (ONE, {"learners": ["random"], "feedback": "click", "clicks": "independent"}),
        (ONE, {"learners": ["random"], "feedback": "bandit"}),
    ):
        runs += planned(stream, **given | changes)
    assert len({run.key for run in runs}) == len(runs) == 24
    again = planned(ONE[:], **given, epsilon=[1.0, 2.0])
    assert {run.key for run in runs[:2]} < {run.key for run in again}


class Planned(Exception):
    """In place of work: what would be done."""


def planned(stream: Stream, **how: Any) -> list[Run]:
    """The runs that a sweep would make."""

    def stop(tasks: list[object], *rest: object) -> None:
        raise Planned(tasks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diminuendo.simulate.sweeps._outcomes", stop)
        with pytest.raises(Planned) as planned:
            sweep(stream, **how)
    return [task for task in planned.value.args[0] if isinstance(task, Run)]


@pytest.mark.parametrize("jobs", mostly_slow([1, 2], [2]))
def test_warnings_of_workers_are_heard(jobs: int) -> None:
    with pytest.warns(UserWarning, match="not a probability"):
        sweep(
            [ONE, OTHER],
            slots=2,
            learners="bandit-dp:calibration=paper",
            feedback="bandit",
            seeds=1,
            jobs=jobs,
        )


@pytest.mark.parametrize("jobs", mostly_slow([1, 2], [1]))
def test_work_and_only_work_advances_the_bar(jobs: int) -> None:
    told: list[tuple[str, int]] = []
    done: list[int] = []

    def tell(what: str, size: int) -> Progress:
        told.append((what, size))
        return done.append

    sweep([ONE, OTHER], slots=2, seeds=2, jobs=jobs, progress=tell)
    assert len(told) == 1, "one bar"
    assert sum(done) == told[0][1]
    assert told[0][0].startswith("8 runs")


@pytest.mark.parametrize(
    ("learners", "changes", "said"),
    [
        (["hedge", "lazy-hedge"], {"delta": 0.0}, "^lazy-hedge at epsilon 1: "),
        (["hedge", "lazy-hedge"], {"delta": 0.0, "epsilon": [2.0, 3.0]}, "^lazy-hedge at epsilon 2: "),
    ],
)
def test_a_learner_that_refuses_is_named_before_any_work(
    learners: list[str], changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diminuendo.simulate.sweeps._outcomes", None)
    with pytest.raises(InvalidInput, match=said):
        sweep(ONE, slots=2, learners=learners, **changes)


def test_budgets_may_be_an_array() -> None:
    runs = planned(ONE, slots=2, learners="fi-dp", epsilon=np.array([0.5, 2.0]), seeds=1)
    assert runs == planned(ONE, slots=2, learners="fi-dp", epsilon=[0.5, 2.0], seeds=1)


def printed(found: Sweep) -> str:
    """The tables as they are read."""
    screen = Console(width=140)
    with screen.capture() as caught:
        for table in tables(found):
            screen.print(table)
    return caught.get()


def test_tables_do_not_say_less_than_is_proved() -> None:
    result = simulate(ONE, slots=2, learners="fi-dp", seeds=1)
    one = replace(result.results[0], epsilon=1.04, delta=1.4e-6)
    assert "ε=1.04 δ=1.4e-6" in printed(Sweep([replace(result, results=[one])]))
    one = replace(one, epsilon=0.0123401, delta=0.0)
    assert "ε=0.0124 δ=0 " in printed(Sweep([replace(result, results=[one])]))


def test_wide_intervals_keep_their_digits() -> None:
    result = simulate(ONE, slots=2, learners="fi-dp", epsilon=[0.5, 5.0], seeds=2)
    reference = result.benchmarks.greedy.value
    far = [replace(run, mean_reward=reference * (1 + run.seed)) for run in result.results]
    # Two values that are 1 apart: Student's t with one degree of freedom, times 1/2.
    assert "1.500±6.353" in printed(Sweep([replace(result, results=far)]))
    further = [replace(run, mean_reward=reference * (1 + 1.68 * run.seed)) for run in result.results]
    assert "1.840±10.673" in printed(Sweep([replace(result, results=further)]))
    near = [replace(run, mean_reward=reference * (1 + 0.1 * run.seed)) for run in result.results]
    assert "1.050±.635" in printed(Sweep([replace(result, results=near)]))


def test_a_sweep_of_one_simulation_has_the_format_of_that() -> None:
    one = sweep(ONE, slots=2, seeds=1, jobs=1)
    assert one.as_json() == one.simulations[0].as_json()
    two = sweep([ONE, OTHER], slots=2, seeds=1, jobs=1)
    written = json.loads(json.dumps(two.as_json(), allow_nan=False))
    assert [one["stream"]["rounds"] for one in written["simulations"]] == [300, 200]
    assert set(written["simulations"][0]) == {"stream", "benchmarks", "results"}


def test_one_table_for_each_simulation(found: Sweep) -> None:
    for table in tables(found):
        assert [column.header for column in table.columns] == ["learner", "ε=0.5", "ε=5"]
        assert table.row_count == 3
    narrow = tables(sweep(ONE, slots=2, seeds=1, jobs=1))
    assert narrow[0].columns[1].header == "reward"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilon": []}, "at least one epsilon"),
        ({"slots": []}, "at least one number of slots"),
        ({"streams": []}, "at least one stream"),
        ({"slots": [2, 16]}, "15 items"),
        ({"rounds": [10, 301]}, "300 users"),
        ({"epsilon": [1.0, -1.0]}, "epsilon"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"jobs": 0}, "jobs"),
        ({"clicks": "wildly"}, "clicks"),
    ],
)
def test_bad_requests_are_refused_before_any_work(
    changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"streams": ONE, "slots": 2, "learners": "fi-dp"} | changes
    monkeypatch.setattr("diminuendo.simulate.sweeps._outcomes", None)
    with pytest.raises(InvalidInput, match=said):
        sweep(given.pop("streams"), **given)
