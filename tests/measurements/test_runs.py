"""What is kept is what the commands give: seed 0 of quick entries, run anew, and runs that go on where they stopped."""

from __future__ import annotations

import hashlib
import json
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import NoisyOr
from diminuendo.cli import main
from diminuendo.simulate import report, task
from diminuendo.simulate.task import Run
from measurements import __main__ as program
from measurements import continuous, run, streams
from measurements.entries import ENTRIES, Entry
from measurements.results import Kept, Results, read_results, rounded
from measurements.streams import MissingData, Recipe
from tests.kit.slow import mostly_slow

QUICK = {"full-msweb"}
"""On the stream that comes with the package; it needs nothing compiled that other tests do not."""
BUILT_IN = sorted(name for name, entry in ENTRIES.items() if entry.kind == "simulate" and not entry.stream)


def first_of(kept: Kept) -> dict[str, float]:
    return {cell: runs[0] for cell, runs in kept.cells.items()}


def first_rewards_now(entry: Entry, folder: Path) -> dict[str, float]:
    """What seed 0 earns, run anew."""
    path = folder / "simulation.json"
    if " demo " in entry.typed:  # which always writes a report
        run.typed(entry.command(1), "--out", str(folder))
    else:
        run.typed(entry.command(1), "--json", str(path), "--time-limit", "1", jobs=1)
    return {run.cell(result): result["mean_reward"] for result in json.loads(path.read_text())["results"]}


@pytest.mark.parametrize("name", mostly_slow(BUILT_IN, QUICK))
def test_seed_0_earns_what_is_kept(name: str, tmp_path: Path) -> None:
    kept = read_results()[name]
    (greedy,) = kept.spec.values()
    fresh = first_rewards_now(ENTRIES[name], tmp_path)
    shares = {cell: reward / greedy for cell, reward in fresh.items()}
    assert shares.keys() == kept.cells.keys()
    for cell, value in first_of(kept).items():
        # Greedy's reward is kept in four digits, so that shares may be off by a ten-thousandth or so.
        assert shares[cell] == pytest.approx(value, abs=3e-4), f"run `python -m measurements --only {name}`"


def test_seed_0_of_continuous_learners_earns_what_is_kept() -> None:
    kept = first_of(read_results()["continuous"])
    for cell in (continuous.OPEN, "boosted, pure 1", "Algorithm 4, pure 1"):
        assert rounded([continuous.earns(cell, 0)]) == [kept[cell]], (
            "run `python -m measurements --only continuous`"
        )


SMALL = Entry(
    "small",
    "diminuendo simulate taste-groups --rounds 300 --learners private,random --epsilon 1 --seeds {seeds}",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where finished runs go; commands run in this process and draw no report, which takes seconds."""

    def typed(command: str, *more: str, jobs: int | None = None) -> None:
        in_jobs = () if jobs is None else ("--jobs", str(jobs))
        monkeypatch.setattr("sys.argv", [*shlex.split(command), *more, *in_jobs])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code

    monkeypatch.setattr(run, "OUT", tmp_path)
    monkeypatch.setattr(run, "typed", typed)
    monkeypatch.setattr(report, "write_report", lambda *_: tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set their own; put it back
    return tmp_path


@pytest.mark.slow
def test_an_entry_goes_on_where_it_stopped_unless_sources_have_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked, real = list[int](), Run.work

    def counted(one: Run, *rest: Any) -> Any:
        worked.append(one.seed)
        return real(one, *rest)

    monkeypatch.setattr(Run, "work", counted)
    first = run.measure(SMALL, 1, 1, print)
    second = run.measure(SMALL, 2, 1, print)
    assert worked == [0, 0, 1, 1]
    assert first.cells == {cell: runs[:1] for cell, runs in second.cells.items()}
    assert second.cells.keys() == {"private 1", "random"}
    assert second.command.endswith("--seeds 2")
    monkeypatch.setattr(task, "code_version", lambda: "0.1.0+edited")
    assert run.measure(SMALL, 1, 1, print).cells == first.cells
    assert worked[4:] == [0, 0]


def test_a_command_that_fails_is_not_kept() -> None:
    wrong = Entry("wrong", "diminuendo simulate no-such-stream --seeds {seeds}")
    with pytest.raises(run.Failed, match="ended with status"):
        run.measure(wrong, 1, 1, print)


def test_fewer_runs_never_take_the_place_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "write_results", lambda results: None)
    entry = ENTRIES["full-msweb"]
    more, fewer = (
        Kept("typed", 3, {"private 1": [0.1, 0.2, 0.3]}),
        Kept("typed", 2, {"private 1": [0.1, 0.2]}),
    )
    results: Results = {}
    assert program.keep(entry, fewer, results)
    assert program.keep(entry, more, results)
    assert not program.keep(entry, fewer, results)
    assert results == {"full-msweb": more}


def test_missing_data_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    nowhere = Recipe(lambda: pytest.fail("it cannot be made"), tmp_path / "pickups.csv")
    monkeypatch.setitem(streams.RECIPES, "uber-20000", nowhere)
    with pytest.raises(MissingData, match=r"pickups\.csv.*DIMINUENDO_DATA"):
        streams.write_stream("uber-20000", tmp_path / "uber.npz")


def test_a_held_out_file_with_another_checksum_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(streams, "FOLDER", tmp_path)
    source = tmp_path / "heldout" / "some.noisy-or.npz"
    source.parent.mkdir()
    sparse.save_npz(source, sparse.csr_array(np.eye(3)))
    for sha256, good in ((hashlib.sha256(source.read_bytes()).hexdigest(), True), ("0" * 64, False)):
        monkeypatch.setitem(streams.RECIPES, "retail", streams.held_out(source.name, NoisyOr(), sha256))
        if good:
            written = sparse.load_npz(streams.write_stream("retail", tmp_path / "retail.npz"))
            assert (written.toarray() == np.eye(3)).all()
        else:
            with pytest.raises(MissingData, match="sha256 begins with 000000000000"):
                streams.write_stream("retail", tmp_path / "retail.npz")


def test_a_stream_file_holds_the_stream(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import diminuendo as dim
    from diminuendo.streams.synthetic import taste_groups

    monkeypatch.setitem(streams.RECIPES, "groceries", Recipe(lambda: taste_groups(50, 30)))
    result = dim.read(streams.write_stream("groceries", tmp_path / "deep" / "some.npz"))
    (there,), (here,) = result.matrices, taste_groups(50, 30).matrices
    assert there.shape == here.shape
    assert abs(there - here).max() == 0


def test_a_line_that_was_cut_off_or_is_of_other_sources_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('["a", "boosted, pure 1", 0, 0.5]\n["b", "boosted, pure 1", 1, 0.5]\n["a", "boosted, pu')
    assert continuous.finished(path, "a") == {("boosted, pure 1", 0): 0.5}


def test_the_worst_finding_of_each_method_is_shown() -> None:
    def finding(
        method: str, claimed: float, shown: float | str, *, violation: bool = False
    ) -> dict[str, Any]:
        return {
            "learner": "one",
            "method": method,
            "epsilon_claimed": claimed,
            "epsilon_shown": shown,
            "violation": violation,
        }

    findings = [
        finding("pathwise", 1.0, 0.5),
        finding("pathwise", 1.0, "infinite", violation=True),
        finding("black box", 0.69, 0.2),
        finding("black box", 0.69, 0.1),
    ]
    assert run.audit_rows(findings) == {"one": ["1.00", "-", "**infinite**", "0.20 of 0.69"]}
    result = {"epsilon": 1.0, "delta": 0.0, "effort": "full", "violations": ["one"], "findings": findings}
    drawn = run.audit_drawn(result)
    assert drawn["shares"] == {"one": {"pathwise": run.FAR, "black box": 0.2899}}
    assert drawn["violators"] == ["one"]


def test_an_audit_that_fails_is_kept_as_it_is_and_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, said = ENTRIES["audit"], list[str]()
    result: dict[str, Any] = {
        "findings": [],
        "passed": False,
        "violations": ["one"],
        "epsilon": 1.0,
        "delta": 0.0,
    }
    result["effort"] = "full"

    def fails(command: str, *more: str, jobs: int | None = None) -> None:
        (folder / entry.name).mkdir(exist_ok=True)
        if result:
            (folder / entry.name / "audit.json").write_text(json.dumps(result))
        raise run.Failed(command, 1)

    monkeypatch.setattr(run, "typed", fails)
    assert run.measure(entry, 2, 1, said.append).spec == {"runs": 0, "passed": 0}
    assert said == ["audit: THE AUDIT FAILED. one."]
    result.clear()
    with pytest.raises(run.Failed):  # it did not get as far as findings; those of the last time do not count
        run.measure(entry, 2, 1, said.append)
