"""What is kept of a sweep: nothing is lost, nothing is there twice, however it was stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diminuendo import Coverage, Functions, Users
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.simulate import Simulation, simulate, task
from diminuendo.simulate.store import ResultStore, finished_runs
from diminuendo.simulate.task import Run
from diminuendo.simulate.workers import IDLE_SECONDS
from diminuendo.streams import open_stream, taste_groups

USERS = taste_groups(300, 15, groups=4, items_per_group=5, seed=2)
ROOT = Path(__file__).parents[2]


def rows(out: Path) -> dict[str, dict[str, Any]]:
    """The table by key, without times; no key twice."""
    result = pq.read_table(out / "results.parquet").drop_columns(["seconds"]).to_pylist()
    assert len({row["key"] for row in result}) == len(result)
    return {row["key"]: row for row in result}


def timeless(found: Simulation) -> list[Any]:
    return [replace(run, seconds=0.0) for run in found.results]


def test_what_was_finished_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    stopped_at, real = 3, Run.work

    def counted(run: Run, *rest: Any) -> Any:
        made.append(run.seed)
        if stopped_at == len(made):
            raise KeyboardInterrupt
        return real(run, *rest)

    monkeypatch.setattr(Run, "work", counted)
    with pytest.raises(KeyboardInterrupt):
        simulate(USERS, slots=3, learners=["hedge"], seeds=4, out=tmp_path)
    assert finished_runs(tmp_path) == len(rows(tmp_path)) == 2
    stopped_at = 0
    resumed = simulate(USERS, slots=3, learners=["hedge"], seeds=4, out=tmp_path)
    assert made == [0, 1, 2, 2, 3]
    assert timeless(resumed) == timeless(simulate(USERS, slots=3, learners=["hedge"], seeds=4))
    assert {row["seed"]: row["regret_to_greedy"] for row in rows(tmp_path).values()} == {
        run.seed: run.regret_to_greedy for run in resumed.results
    }, "regrets are in the table as well"
    made.clear()
    assert simulate(USERS, slots=3, learners=["hedge"], seeds=4, out=tmp_path) == resumed, (
        "read back, all of it"
    )
    assert not made
    simulate(USERS, slots=3, learners=["hedge", "fi-dp"], epsilon=[0.5, 2.0], seeds=2, out=tmp_path)
    assert made == [0, 0, 1, 1], "only what is new"
    made.clear()
    simulate(USERS[:299], slots=3, learners=["hedge"], seeds=1, out=tmp_path)
    assert made == [0], "other users, another run"
    assert len(rows(tmp_path)) == 4 + 4 + 1


def test_runs_of_other_sources_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, out = tmp_path / "package", tmp_path / "out"
    for file in ("learners/random_slates.py", "cli/words.py"):
        (package / file).parent.mkdir(parents=True)
        (package / file).write_text("ONE = 1\n")
    monkeypatch.setattr(task, "PACKAGE", package)
    worked, real = list[int](), Run.work

    def counted(run: Run, *rest: Any) -> Any:
        worked.append(run.seed)
        return real(run, *rest)

    monkeypatch.setattr(Run, "work", counted)

    def again() -> list[int]:
        task.code_version.cache_clear()
        worked.clear()
        simulate(USERS, slots=3, learners=["random"], seeds=2, out=out)
        return worked

    try:
        assert again() == [0, 1]
        assert again() == []
        (package / "cli" / "words.py").write_text("ONE = 2\n")
        assert again() == [], "the command line decides no outcome"
        (package / "learners" / "random_slates.py").write_text("ONE = 2\n")
        assert again() == [0, 1]
        assert len({row["version"] for row in rows(out).values()}) == 2, "rows say which code made them"
    finally:
        task.code_version.cache_clear()


def test_hindsight_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulate(USERS, slots=3, seeds=1, out=tmp_path)
    monkeypatch.setattr("diminuendo.simulate.task.benchmarks", None)
    assert simulate(USERS, slots=3, seeds=1, out=tmp_path).benchmarks == first.benchmarks
    with pytest.raises(TypeError, match="NoneType"):
        simulate(USERS, slots=2, seeds=1, out=tmp_path)


def test_death_at_any_change_of_a_file_loses_and_doubles_nothing(tmp_path: Path) -> None:
    alone = dict(
        os.environ, OPENBLAS_NUM_THREADS="1", PYTHONWARNINGS="ignore"
    )  # a process that can be forked
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulate.crash_everywhere", str(tmp_path)],
        cwd=ROOT,
        env=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    deaths = [json.loads(line) for line in ran.stdout.splitlines()]
    whole = rows(tmp_path / "whole")
    assert {death["died"] for death in deaths[:-1]} == {9}
    assert deaths[-1]["died"] == 0
    assert len(deaths) > 3 * len(whole), "a row is written, renamed, and put into the table"
    for death in deaths:
        assert rows(Path(death["out"])) == whole
        done = set(death["kept"]) & set(whole)
        assert not done & set(death["again"]), "what was said to be kept is not made again"
        assert not list(Path(death["out"]).rglob(".unfinished*"))


def test_files_that_are_damaged_or_foreign_are_passed_over_and_said(tmp_path: Path) -> None:
    first = simulate(USERS, slots=3, seeds=1, out=tmp_path)
    (tmp_path / "rows" / "cut.json").write_text('{"key": "a", "vers')
    (tmp_path / "rows" / "foreign.json").write_text('{"key": "a", "other": 1}')
    with pytest.warns(UserWarning, match="passed over") as caught:
        assert simulate(USERS, slots=3, seeds=1, out=tmp_path) == first
    notes = " ".join(str(note.message) for note in caught)
    assert "cut.json" in notes
    assert "foreign.json" in notes
    for name in ("cut.json", "foreign.json"):
        (tmp_path / "rows" / name).unlink()  # still there: not ours to remove
    for path in (tmp_path / "hindsight").glob("*.json"):
        path.write_text(path.read_text()[:40])
    with pytest.warns(UserWarning, match="hindsight.*passed over"):
        again = simulate(USERS, slots=3, seeds=1, out=tmp_path)
    assert timeless(again) == timeless(first)


def test_one_sweep_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    with ResultStore(tmp_path), pytest.raises(InvalidInput, match="Another simulation is at work"):
        simulate(USERS, slots=3, seeds=1, out=tmp_path)
    assert simulate(USERS, slots=3, seeds=1, out=tmp_path).results


def test_a_table_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    pq.write_table(pa.table({"key": ["a"], "other": [1]}), tmp_path / "results.parquet")
    before = (tmp_path / "results.parquet").read_bytes()
    with pytest.raises(InvalidInput, match="choose another folder"):
        simulate(USERS, slots=3, seeds=1, out=tmp_path)
    assert (tmp_path / "results.parquet").read_bytes() == before


def test_kept_runs_belong_to_one_stream_only(tmp_path: Path) -> None:
    weights = np.tile([[0.5, 0.5, 0.0]], (50, 1))
    one = simulate(Users(Coverage(np.eye(3)), weights), slots=1, learners=["random"], seeds=1, out=tmp_path)
    other = simulate(
        Users(Coverage(np.zeros((3, 3))), weights), slots=1, learners=["random"], seeds=1, out=tmp_path
    )
    assert one.results[0].mean_reward > 0
    assert other.results[0].mean_reward == 0
    for worth in (0.2, 0.4):  # functions cannot be told from others, so they are not kept
        functions = Functions([lambda s, worth=worth: worth if s else 0.0] * 20, 3)  # type: ignore[misc]
        result = simulate(functions, slots=1, learners=["random"], seeds=1, out=tmp_path)
        assert result.results[0].mean_reward == pytest.approx(worth)
    assert len(rows(tmp_path)) == 2


@pytest.mark.slow
def test_a_worker_that_dies_is_said_and_what_was_finished_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diminuendo.simulate.sweeps.on_cores", _deadly)
    with pytest.raises(DiminuendoError, match="goes on from there"):
        simulate(USERS, slots=3, learners=["random"], seeds=20, jobs=2, out=tmp_path)
    assert 2 <= len(rows(tmp_path)) < 20


def _deadly(tasks: Any, streams: Any, tick: Any, count: int) -> Any:
    """Workers of whom one is killed after the third task."""
    from diminuendo.simulate.workers import on_cores

    for number, outcome in enumerate(on_cores(tasks, streams, tick, count)):
        yield outcome
        if number == 2:
            os.kill(children(os.getpid(), "LokyProcess")[0], signal.SIGKILL)


def children(parent: int, named: str = "") -> list[int]:
    """Processes that `parent` started."""
    result = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            started_by = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if started_by == parent and named in (entry / "cmdline").read_text():
                result.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return result


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_killed_and_interrupted_it_goes_on(tmp_path: Path) -> None:
    """The command, as typed: kill -9, then Ctrl-C, then to the end; against a sweep that nobody stopped."""
    (tmp_path / "shop.txt").write_text("0 1\n1 3\n2 1\n4 5 6\n" * 3_000)
    out, whole = tmp_path / "out", tmp_path / "whole"
    arguments = ["simulate", str(tmp_path / "shop.txt"), "--slots", "2", "--learners", "fi-dp,hedge"]
    arguments += ["--epsilon", ".5,5", "--seeds", "20", "--jobs", "2", "--out", str(out)]

    def started() -> tuple[subprocess.Popen[str], int]:
        """The command, once it has finished another run."""
        before = finished_runs(out)
        process = subprocess.Popen(
            [sys.executable, "-m", "diminuendo", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until(lambda: finished_runs(out) > before or process.poll() is not None)
        return process, before

    process, _ = started()
    workers = children(process.pid)
    process.kill()
    process.communicate()
    after_kill = finished_runs(out)
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), IDLE_SECONDS / 2)

    process, before = started()
    assert before >= after_kill > 0
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody hears it
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "goes on from there:\n  diminuendo simulate " in said
    assert f"{len(rows(out))} finished runs are kept in {out}" in said
    assert after_kill < len(rows(out)) < 60, "stopped in the middle, or this shows nothing"

    users = open_stream(tmp_path / "shop.txt")
    more: dict[str, Any] = {"slots": 2, "learners": ["fi-dp", "hedge"], "epsilon": [0.5, 5.0], "seeds": 20}
    simulate(users, **more, out=out)
    simulate(users, **more, out=whole)
    assert rows(out) == rows(whole)
    assert len(rows(whole)) == 60


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_a_worker_in_a_long_run_ends_with_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    folder.mkdir()
    (folder / "0").write_bytes(b"what users want")
    at_work = "import os, pathlib, sys, time; from diminuendo.simulate.workers import _begin; "
    at_work += "_begin(os.getppid(), sys.argv[1], pathlib.Path(sys.argv[1])); "
    at_work += "print(os.getpid(), flush=True); time.sleep(600)"
    parent = subprocess.Popen(
        ["/bin/sh", "-c", '"$0" -c "$1" "$2" & wait', sys.executable, at_work, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    worker = Path("/proc") / parent.stdout.readline().strip()
    time.sleep(1)
    assert worker.exists(), "not before"
    assert folder.exists()
    parent.kill()
    parent.wait()
    try:
        until(lambda: not worker.exists(), IDLE_SECONDS / 2)
        assert not folder.exists(), "the streams do not stay behind"
    finally:
        parent.stdout.close()
        if worker.exists():
            os.kill(int(worker.name), signal.SIGKILL)


KILLED_WHILE_STARTING = """
import os, signal, threading, time
from diminuendo.errors import DiminuendoError
from diminuendo.simulate import simulate
from diminuendo.streams import taste_groups
from tests.simulate.test_store import children

def kill_the_first():
    # In two parts: a child that was just forked has this text as its command line, whatever it will be.
    while not (workers := children(os.getpid(), "Loky" + "Process")):
        time.sleep(0.002)
    os.kill(workers[0], signal.SIGKILL)

users = taste_groups(20_000, 15, groups=4, items_per_group=5, seed=2)
threading.Thread(target=kill_the_first, daemon=True).start()
try:
    simulate(users, slots=3, learners="random", seeds=4, jobs=2)
except DiminuendoError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_a_worker_that_is_killed_while_it_starts_is_said_too(tmp_path: Path) -> None:
    """Such a worker reads nothing, so nothing large may wait for it in a pipe."""
    ran = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_STARTING],
        cwd=ROOT,
        env=dict(os.environ, TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "A worker was killed" in ran.stdout, ran.stderr
    assert not list(tmp_path.glob("diminuendo-*")), "the streams do not stay behind"


def test_streams_travel_where_nobody_else_can_read_and_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[tuple[int, list[str]]] = []

    def look(tasks: Any, tick: Any, count: int, folder: str, compiling: Path) -> Any:
        seen.append((os.stat(folder).st_mode & 0o777, [path.name for path in Path(folder).iterdir()]))
        raise KeyboardInterrupt

    monkeypatch.setattr("diminuendo.simulate.workers._in_pool", look)
    with pytest.raises(KeyboardInterrupt):
        simulate(USERS, slots=3, seeds=2, jobs=2)
    assert seen == [(0o700, ["0"])]
    assert not list(tmp_path.iterdir())


def test_what_another_sweep_is_writing_further_down_is_left_alone(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "other" / "rows" / ".unfinished-a", tmp_path / "rows" / ".unfinished-b"
    for path in (theirs, ours):
        path.parent.mkdir(parents=True)
        path.touch()
    with ResultStore(tmp_path):
        assert theirs.exists()
        assert not ours.exists()


def until(true: Any, seconds: float = 120.0) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.05)
