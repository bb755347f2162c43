"""A file that is simulated in pieces gives the rows of the whole file; hindsight and chance, too."""

from __future__ import annotations

import importlib.util
import os
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
from diminuendo.learners.base.kept import engines, on_ray
from diminuendo.objectives import BestMatch, Concave, NoisyOr
from diminuendo.offline import SlateRules, data_bound, greedy, greedy_in_pieces
from diminuendo.simulate import sweep
from diminuendo.simulate.result import Result
from diminuendo.streams import Pieces
from tests.kit.fake_ray import FakeRay

ROOT = Path(__file__).parents[2]
PEOPLE, ITEMS = 1_500, 15


def written(path: Path, people: int = PEOPLE, wants: int = 4, items: int = ITEMS, group: int = 300) -> Path:
    """Who wants what and how much; early items are wanted most, and the last two by the same people, as much."""
    rng = np.random.default_rng(1)
    liked = rng.random((people, items)) + np.linspace(0.5, 0.0, items)
    liked[:, -1] = liked[:, -2]
    item = np.sort(np.argsort(-liked, axis=1, kind="stable")[:, :wants], axis=1)
    value = rng.integers(1, 6, (people, items))
    value[:, -1] = value[:, -2]
    table = pa.table(
        {
            "person": np.repeat(np.arange(people), wants),
            "item": item.reshape(-1),
            "value": np.take_along_axis(value, item, axis=1).reshape(-1) / 5,
        }
    )
    pyarrow.parquet.write_table(table, path, row_group_size=group)
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("in_pieces") / "shop.parquet")


def both(path: Path, pieces: int = 400, **asked: Any) -> tuple[Any, Any]:
    """The simulation of the whole file, and of its pieces."""
    asked = {"slots": 3, "seeds": 2, "jobs": 1} | asked
    whole = dim.read(path, n_items=ITEMS, round="person")
    cut = Pieces(path, people=pieces, n_items=ITEMS)
    return sweep(whole, **asked).simulations[0], sweep(cut, **asked).simulations[0]


def rows(simulation: Any) -> list[Result]:
    """Everything but how long it took, and the regret that needs the optimum itself."""
    return [replace(one, seconds=0.0, alpha_regret=0.0) for one in simulation.results]


@pytest.mark.parametrize(
    ("feedback", "learners", "more"),
    [
        ("full", ["private", "nonprivate", "random"], {"epsilons": [1.0, 4.0]}),
        ("full", ["overlap-sums", "epoch-greedy", "fi-dp"], {}),
        ("full", ["private"], {"sample": 2, "retention": 500, "visits": 2}),
        ("bandit", ["private", "nonprivate"], {}),
        ("click", ["private"], {"rules": SlateRules(pinned=[3])}),
    ],
)
def test_pieces_give_the_rows_of_the_whole_file(
    shop: Path, feedback: str, learners: list[str], more: dict[str, Any]
) -> None:
    whole, cut = both(shop, feedback=feedback, learners=learners, today=[0, 1, 2], **more)
    assert rows(cut) == rows(whole)
    assert (cut.today, cut.stream["rounds"]) == (whole.today, PEOPLE)
    assert cut.benchmarks.greedy.slate == whole.benchmarks.greedy.slate
    assert cut.benchmarks.greedy.value == whole.benchmarks.greedy.value
    # Sums of 1,500 numbers up to 1 in another order: each addition may be off by 2^-53 of the sum.
    assert cut.benchmarks.random == pytest.approx(whole.benchmarks.random, rel=PEOPLE * 2.0**-52)
    assert cut.benchmarks.optimum.lower <= whole.benchmarks.optimum.upper
    assert cut.benchmarks.optimum.upper >= whole.benchmarks.optimum.lower


@pytest.mark.parametrize("family", [NoisyOr(), BestMatch(), Concave()], ids=lambda family: family.name)
@pytest.mark.parametrize("many", [20, 400, 2000])
def test_greedy_in_pieces_is_greedy(shop: Path, tmp_path: Path, family: Any, many: int) -> None:
    few = written(tmp_path / "few.parquet", people=60)
    for path in (shop, few) if many > 20 else (few,):
        whole = dim.read(path, family, n_items=ITEMS, round="person")
        pieces = Pieces(path, family, people=many, n_items=ITEMS)
        # All items, so that those that are wanted by the same people as much come one after the other.
        for slots in (2, ITEMS):
            found, bounds = greedy_in_pieces(pieces, slots)
            plain = greedy(whole, slots, method="plain")
            assert found == plain
            assert (found.slate, found.value) == (greedy(whole, slots).slate, greedy(whole, slots).value)
            assert bounds.upper == max(found.value, data_bound(whole, plain.slate, slots))


def test_greedy_in_pieces_keeps_to_rules(shop: Path) -> None:
    rules = SlateRules(pinned=[9], caps=[([0, 1, 2], 1)])
    whole = dim.read(shop, n_items=ITEMS, round="person")
    found, _ = greedy_in_pieces(Pieces(shop, people=100, n_items=ITEMS), 4, rules=rules)
    assert found == greedy(whole, 4, rules=rules)


def test_what_is_finished_is_not_done_again_whatever_the_pieces(shop: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"slots": 2, "learners": ["random"], "seeds": 2, "out": tmp_path}
    told = list[tuple[str, int]]()

    def tell(what: str, size: int) -> Any:
        told.append((what, size))
        return lambda done: told.append(("done", done))

    first = sweep(Pieces(shop, people=500, n_items=ITEMS), progress=tell, **asked)
    assert told[0][1] == sum(done for word, done in told if word == "done") == (2 + 4) * PEOPLE
    del told[:]
    again = sweep(Pieces(shop, people=99, n_items=ITEMS), progress=tell, **asked)
    assert not told
    assert again == first


def test_what_pieces_cannot_have_is_refused(shop: Path) -> None:
    pieces = Pieces(shop, n_items=ITEMS)
    refused: dict[str, dict[str, Any]] = {
        "answer at once": {"late": 3},
        "used whole": {"rounds": 10},
        "one run at a time": {"ray": "local", "jobs": 2},
    }
    for match, more in refused.items():
        with pytest.raises(InvalidInput, match=match):
            sweep(pieces, slots=2, **more)
    with pytest.raises(InvalidInput, match="one by one"):
        sweep([pieces, dim.read(shop, n_items=ITEMS, round="person")], slots=2)


def test_people_may_be_on_actors(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray, left = FakeRay(), list[str]()
    monkeypatch.setattr(on_ray, "joined", lambda *_, **__: (ray, lambda: None))
    monkeypatch.setattr(engines, "joined", lambda where, *_, **__: (ray, lambda: left.append(where)))
    asked: dict[str, Any] = {"slots": 3, "seeds": 2, "learners": ["private", "random"]}
    here, there = (
        sweep(Pieces(shop, people=400, n_items=ITEMS), ray=address, **asked) for address in (None, "local")
    )
    assert rows(there.simulations[0]) == rows(here.simulations[0])
    assert len(ray.actors) == 4, "one for each core in each run of the learner that keeps people"
    assert left == ["local"], "one cluster for all runs"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'diminuendo[ray]'")
def test_one_command_with_people_on_a_real_cluster(shop: Path, tmp_path: Path) -> None:
    told = [sys.executable, "-m", "diminuendo", "simulate", str(shop), "--items", str(ITEMS), "--slots", "3"]
    told += ["--seeds", "2", "--learners", "private,random"]
    found = {}
    for name, more in {
        "whole": ["--round", "person"],
        "ray": ["--in-pieces", "400", "--ray", "local"],
    }.items():
        out = tmp_path / name
        subprocess.run(
            [*told, *more, "--out", str(out)],
            check=True,
            env=os.environ | {"RAY_TMPDIR": "/tmp"},
            timeout=300,
        )
        table = pyarrow.parquet.read_table(out / "results.parquet").to_pylist()
        found[name] = [
            row | {"key": "", "seconds": nan, "alpha_regret": nan}
            for row in sorted(table, key=lambda row: (row["learner"], row["seed"]))
        ]
        assert (out / "report.html").is_file()
    assert str(found["ray"]) == str(found["whole"])


PEAK = """
import resource, sys
from diminuendo.cli.app import app
app(sys.argv[1:], standalone_mode=False)
print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(path: Path, *more: str) -> int:
    """Bytes that a simulation of this file takes at most."""
    words = ["simulate", str(path), "--items", "2000", "--slots", "3", "--seeds", "1", *more]
    said = subprocess.run(
        [sys.executable, "-c", PEAK, *words], check=True, capture_output=True, text=True, timeout=900
    ).stdout
    return 1024 * int(said.rsplit("PEAK ", 1)[1])


@pytest.mark.slow
def test_a_file_several_times_larger_than_what_is_left_of_memory(tmp_path: Path) -> None:
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    rng = np.random.default_rng(1)
    with pyarrow.parquet.ParquetWriter(many, pa.schema({"person": pa.int64(), "item": pa.int64()})) as file:
        for part in range(40):
            person = np.repeat(np.arange(10_000) + 10_000 * part, 60)
            item = (rng.integers(0, 1900, (10_000, 1)) + np.arange(60)).reshape(-1) % 2000
            table = pa.table({"person": person, "item": item})
            file.write_table(table)
            if not part:
                pyarrow.parquet.write_table(table.slice(0, 60 * 2_000), few)
    table_bytes = 400_000 * 60 * 12
    who = "--learners", "nonprivate,random,overlap-sums"
    more = peak(many, *who, "--in-pieces", "5000") - peak(few, *who, "--in-pieces", "5000")
    assert 4 * more < table_bytes, f"{more >> 20} MB more for a table of {table_bytes >> 20} MB"
    whole = peak(many, "--learners", "random", "--round", "person", "--time-limit", "1")
    assert whole > table_bytes, "or this would show nothing"
