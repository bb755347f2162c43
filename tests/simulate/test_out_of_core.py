"""A file that is mapped from disk gives the rows of the file; hindsight and chance, too."""

from __future__ import annotations

import gc
import importlib.util
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.objectives import BestMatch, Concave, NoisyOr
from diminuendo.offline import SlateRules
from diminuendo.simulate import sweep
from diminuendo.simulate.result import Result
from diminuendo.simulate.task import fingerprint
from diminuendo.streams import mapped as mapped_module
from diminuendo.streams.mapped import out_of_core

ROOT = Path(__file__).parents[2]
USERS, ITEMS = 1_500, 15


def written(path: Path, users: int = USERS, wants: int = 4, items: int = ITEMS, group: int = 300) -> Path:
    """Who wants what and how much; early items are wanted most, and the last two by the same users, as much."""
    rng = np.random.default_rng(1)
    liked = rng.random((users, items)) + np.linspace(0.5, 0.0, items)
    liked[:, -1] = liked[:, -2]
    item = np.sort(np.argsort(-liked, axis=1, kind="stable")[:, :wants], axis=1)
    value = rng.integers(1, 6, (users, items))
    value[:, -1] = value[:, -2]
    table = pa.table(
        {
            "user": np.repeat(np.arange(users), wants),
            "item": item.reshape(-1),
            "value": np.take_along_axis(value, item, axis=1).reshape(-1) / 5,
        }
    )
    pyarrow.parquet.write_table(table, path, row_group_size=group)
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("mapped") / "shop.parquet")


def mapped(path: Path, monkeypatch: pytest.MonkeyPatch, users: int = 400) -> Any:
    """The users of a file, written to disk so many at a time."""
    monkeypatch.setattr(mapped_module, "TOGETHER", users)
    return out_of_core(path, n_items=ITEMS)


def rows(simulation: Any) -> list[Result]:
    """Everything but how long it took."""
    return [replace(one, seconds=0.0) for one in simulation.results]


@pytest.mark.parametrize(
    ("feedback", "learners", "more"),
    [
        ("full", ["private", "nonprivate", "random"], {"epsilon": [1.0, 4.0], "rounds": [700, None]}),
        ("full", ["epoch-greedy", "fi-dp"], {"delay": 3}),
        ("full", ["private"], {"sample": 2, "retention": 500, "max_rounds_per_user": 2}),
        ("bandit", ["private", "nonprivate"], {}),
        ("click", ["private"], {"rules": SlateRules(pinned=[3])}),
    ],
)
def test_a_mapped_file_gives_the_rows_of_the_file(
    shop: Path, feedback: str, learners: list[str], more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"slots": 3, "seeds": 2, "jobs": 1, "feedback": feedback, "today": [0, 1, 2]}
    asked |= {"learners": learners} | more
    whole = sweep(dim.read(shop, n_items=ITEMS, round="user"), **asked).simulations
    result = sweep(mapped(shop, monkeypatch), **asked).simulations
    for one, other in zip(whole, result, strict=True):
        assert rows(other) == rows(one)
        assert other.benchmarks.greedy == one.benchmarks.greedy
        assert other.benchmarks.random == one.benchmarks.random
        assert other.benchmarks.optimum.upper == one.benchmarks.optimum.upper
        assert other.today == one.today


@pytest.mark.parametrize("family", [NoisyOr(), BestMatch(), Concave()], ids=lambda family: family.name)
@pytest.mark.parametrize("many", [1, 7, 2000])
def test_the_table_is_that_of_the_file(
    tmp_path: Path, family: Any, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = written(tmp_path / "few.parquet", users=60)
    whole = dim.read(few, family, n_items=ITEMS, round="user")
    monkeypatch.setattr(mapped_module, "TOGETHER", many)
    result = out_of_core(few, family, n_items=ITEMS)
    result.check()
    assert fingerprint(result) == fingerprint(whole)
    for mine, theirs in zip(
        result.family.rows(result.table, ITEMS), whole.family.rows(whole.table, ITEMS), strict=True
    ):
        np.testing.assert_array_equal(mine.indptr, theirs.indptr)
        np.testing.assert_array_equal(mine.indices, theirs.indices)
        np.testing.assert_array_equal(mine.data, theirs.data)


def test_users_travel_as_the_name_of_their_folder_which_goes_with_them(shop: Path) -> None:
    users = out_of_core(shop, n_items=ITEMS)
    folder = Path(users._folder)
    assert folder.stat().st_mode & 0o077 == 0, "of its owner alone"
    packed = pickle.dumps(users)
    assert len(packed) < 2_000
    again = pickle.loads(packed)
    np.testing.assert_array_equal(again.values([0, 1]), users.values([0, 1]))
    assert fingerprint(again) == fingerprint(users)
    del users
    gc.collect()
    assert not folder.exists()


def test_several_processes_map_the_same_files(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"slots": 3, "seeds": 2, "learners": ["private", "random"]}
    one, two = (sweep(mapped(shop, monkeypatch), jobs=jobs, **asked).simulations[0] for jobs in (1, 2))
    assert rows(one) == rows(two)


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Parquet"):
        out_of_core(tmp_path / "none.csv")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'diminuendo[ray]'")
def test_one_command_with_users_on_a_real_cluster(shop: Path, tmp_path: Path) -> None:
    told = [sys.executable, "-m", "diminuendo", "simulate", str(shop), "--items", str(ITEMS), "--slots", "3"]
    told += ["--seeds", "2", "--learners", "private,random"]
    result = {}
    for name, more in {
        "whole": ["--round", "user"],
        "ray": ["--out-of-core", "--ray", "local"],
    }.items():
        out = tmp_path / name
        subprocess.run(
            [*told, *more, "--out", str(out)],
            check=True,
            env=os.environ | {"RAY_TMPDIR": "/tmp"},
            timeout=300,
        )
        table = pyarrow.parquet.read_table(out / "results.parquet").to_pylist()
        result[name] = [
            row | {"seconds": nan} for row in sorted(table, key=lambda row: (row["learner"], row["seed"]))
        ]
        assert (out / "report.html").is_file()
    assert str(result["ray"]) == str(result["whole"])


WATCHED = """
import sys, threading, time
from diminuendo.cli.app import app
most = 0
def watch():
    global most
    while True:
        with open("/proc/self/status") as file:
            most = max(most, next(int(line.split()[1]) for line in file if line.startswith("RssAnon")))
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
app(sys.argv[1:], standalone_mode=False)
print("MOST", most)
"""


def peak(path: Path) -> int:
    """Bytes that a simulation of this file holds at most, besides pages of files, which the system may drop."""
    words = ["simulate", str(path), "--items", "2000", "--slots", "3", "--seeds", "1", "--jobs", "1"]
    words += ["--out-of-core", "--learners", "private,random", "--sample", "20", "--time-limit", "1"]
    said = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], check=True, capture_output=True, text=True, timeout=1800
    ).stdout
    return 1024 * int(said.rsplit("MOST ", 1)[1])


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads how much memory is in use from /proc"
)
def test_a_table_several_times_larger_than_what_is_held_of_it(tmp_path: Path) -> None:
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    rng = np.random.default_rng(1)
    with pyarrow.parquet.ParquetWriter(many, pa.schema({"user": pa.int64(), "item": pa.int64()})) as file:
        for part in range(40):
            user = np.repeat(np.arange(10_000) + 10_000 * part, 60)
            item = (rng.integers(0, 1900, (10_000, 1)) + np.arange(60)).reshape(-1) % 2000
            table = pa.table({"user": user, "item": item})
            file.write_table(table)
            if not part:
                pyarrow.parquet.write_table(table.slice(0, 60 * 5_000), few)
    table_bytes = 400_000 * 60 * 12
    more = peak(many) - peak(few)
    assert 3 * more < table_bytes, f"{more >> 20} MB more for a table of {table_bytes >> 20} MB"
