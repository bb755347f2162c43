"""Plans: every candidate with its parameters, from public facts alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diminuendo import LEARNERS, Setting, make
from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput
from diminuendo.plan import plan

RUNNER = CliRunner()


def test_full_information_lists_both_rates() -> None:
    found = plan(50, 5, 100_000, epsilon=1.0, delta=1e-6)
    assert found["fi-dp-paper"].parameters["eta"] == pytest.approx(2.8467e-5, rel=1e-4)
    assert found["fi-dp"].parameters["eta"] == pytest.approx(3.1213e-4, rel=1e-4)
    assert found["fi-dp"].bound == pytest.approx(62697.86869742943, rel=1e-9)
    assert found["streeter-golovin"].bound == pytest.approx(2797.149622536537, rel=1e-9)
    assert found.recommended == "overlap-greedy"
    assert "17 people" in found.why, "sigma sqrt(2 log N), in people"
    assert {one.name for one in found.candidates} == {
        name for name, kind in LEARNERS.items() if "full" in kind.reads
    }


def test_bandit_says_that_gamma_was_held() -> None:
    found = plan(20, 5, 1_000_000, feedback="bandit")
    printed = found["bandit-dp-paper"]
    assert printed.parameters["gamma_as_printed"] == pytest.approx(4.86114589, rel=1e-8)
    assert printed.parameters["gamma"] == 1.0
    assert printed.parameters["rounds_for_gamma"] == pytest.approx(1.1487e8, rel=1e-4)
    assert any("4.861" in note and "held at 1" in note for note in printed.notes)
    assert printed.bound == pytest.approx(236312454.28942198, rel=1e-9)
    assert not printed.says_something(1_000_000)
    assert "no bound here says anything" in found.why


def test_what_is_planned_is_what_is_run() -> None:
    found = plan(12, 3, 500, epsilon=0.7, delta=1e-5)
    for name in ("fi-dp", "fi-dp-paper", "fi-pure"):
        made = make(name, Setting(12, 3, 500, "full", 0.7, 1e-5))
        assert made.parameters.items() <= found[name].parameters.items()
        assert made.guarantee == found[name].guarantee


@pytest.mark.parametrize("feedback", ["full", "bandit"])
@pytest.mark.parametrize(("n", "k", "rounds"), [(1, 1, 1), (2, 2, 1), (1, 1, 50), (300, 300, 7), (5, 2, 2)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_size_has_a_plan(n: int, k: int, rounds: int, feedback: str, delta: float) -> None:
    found = plan(n, k, rounds, delta=delta, feedback=feedback)  # type: ignore[arg-type]
    json.dumps(found.as_json(), allow_nan=False)
    promise = found[found.recommended].guarantee
    assert promise.epsilon <= 1.0
    assert promise.delta <= delta
    assert promise.exact


def test_what_cannot_be_made_is_left_out_with_a_reason() -> None:
    found = plan(50, 5, 10**12, epsilon=1e-9)
    assert "rate" in found.left_out["fi-dp-paper"]
    assert found.recommended == "random"
    assert "No private learner" in found.why
    assert "too few" in plan(294, 5, 60).why
    assert "nothing to learn" in plan(5, 5, 60).why
    assert "memory" in plan(50, 5, 10**9, feedback="bandit").left_out["bandit-presampled"]
    assert json.loads(json.dumps(found.as_json()))["left_out"]


def test_bad_settings_are_refused() -> None:
    for wrong in ({"slots": 51}, {"rounds": 0}, {"epsilon": -1.0}, {"delta": 2.0}, {"feedback": "smell"}):
        with pytest.raises(InvalidInput):
            plan(**({"n_items": 50, "slots": 5, "rounds": 100} | wrong))


def test_on_the_command_line(tmp_path: Path) -> None:
    ask = ["plan", "--items", "20", "--slots", "5", "--rounds", "1000000", "--feedback", "bandit"]
    file = tmp_path / "plan.json"
    result = RUNNER.invoke(app, [*ask, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "Recommended: bandit-dp" in result.output
    assert "4.861" in result.output
    record = json.loads(file.read_text())
    assert record["setting"]["rounds"] == 1_000_000
    assert record["recommended"] == "bandit-dp"
    names = {one["learner"] for one in record["candidates"]}
    assert {"bandit-dp", "bandit-dp-paper", "bandit-direct", "bandit-presampled"} <= names
    on_screen = RUNNER.invoke(app, [*ask, "--json", "-"])
    assert {one["learner"] for one in json.loads(on_screen.output)["candidates"]} == names
