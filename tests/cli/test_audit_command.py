"""`diminuendo audit`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from diminuendo.audit.finding import Finding
from diminuendo.audit.subjects import Subject
from diminuendo.cli.app import app
from diminuendo.cli.audit import _players
from diminuendo.errors import InvalidInput

RUNNER = CliRunner()
WIDE = {"COLUMNS": "160"}


def typed(*arguments: str) -> Any:
    return RUNNER.invoke(app, ["audit", "--quick", "--jobs", "1", *arguments], env=WIDE)


def shows(epsilon: float) -> Any:
    """A method with the same finding for all learners."""

    def method(subject: Subject, *given: Any) -> list[Finding]:
        return [Finding("exact", subject.name, "her", 1.0, 0.0, epsilon, 1.0, 1)]

    return {"exact": method}


def test_a_learner_is_cleared_and_all_is_written(tmp_path: Path) -> None:
    result = typed("--learner", "random", "--learner", "epoch-greedy", "--seed", "3", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "no violation" in result.output
    assert "Nothing was found against any of 2 learners" in result.output
    assert "Seed 3, quick" in result.output
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["passed"] is True
    assert found["seed"] == 3
    assert {one["learner"] for one in found["findings"]} == {"random", "epoch-greedy", "epoch-greedy, sample"}
    assert {one["method"] for one in found["findings"]} >= {"exact", "black box"}
    assert (tmp_path / "audit.png").stat().st_size > 5_000


@pytest.mark.slow
def test_missing_noise_is_found(tmp_path: Path) -> None:
    result = typed(
        "--faults", "--learner", "slate-totals", "--seed", "3", "--json", str(tmp_path / "new" / "a.json")
    )
    assert result.exit_code == 0, result.output
    assert "1 of 1 planted faults were found" in result.output
    found = json.loads((tmp_path / "new" / "a.json").read_text())
    assert found["violations"] == ["slate-totals without noise"]
    assert found["overlooked"] == []


def test_a_violation_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diminuendo.audit.run.METHODS", shows(1.2))
    result = typed("--learner", "fi-dp")
    assert result.exit_code == 1
    assert "VIOLATION" in result.output
    assert "BROKEN: fi-dp" in result.output
    monkeypatch.setattr("diminuendo.audit.run.METHODS", shows(0.8))
    assert typed("--learner", "fi-dp").exit_code == 0


def test_overlooked_noise_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diminuendo.audit.run.METHODS", shows(0.8))
    result = typed("--faults", "--learner", "private")
    assert result.exit_code == 1
    assert "OVERLOOKED" in result.output
    assert "0 of 3 planted faults were found" in result.output
    assert "NOT FOUND" in result.output


def test_each_audit_has_a_new_seed_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diminuendo.audit.run.METHODS", shows(0.8))
    seeds = {typed("--learner", "random").output.split("Seed ")[1].split(",")[0] for _ in range(3)}
    assert len(seeds) == 3, "32 random bits agree once in a billion"


def test_wrong_arguments_are_refused() -> None:
    for wrong in (["--learner", "nobody"], ["--epsilon", "-1"], ["--delta", "2"], ["--jobs", "0"]):
        assert isinstance(typed(*wrong).exception, InvalidInput)


def test_an_interruption_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any) -> list[Finding]:
        raise KeyboardInterrupt

    monkeypatch.setattr("diminuendo.audit.run.METHODS", {"exact": interrupted})
    result = typed("--learner", "random")
    assert result.exit_code == 130


def test_a_role_stands_for_all_who_play_it() -> None:
    assert _players(["private", "random"]) == ["overlap-greedy", "slate-totals", "slate-clicks", "random"]
