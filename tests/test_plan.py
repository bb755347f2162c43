"""Plans: every candidate with its parameters, from public facts alone."""

from __future__ import annotations

import io
import json
import math
import warnings
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from typer.testing import CliRunner

from diminuendo import LEARNERS, Setting, make
from diminuendo.cli import learners as learners_command
from diminuendo.cli import plan as show_plan
from diminuendo.cli import screen
from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners import with_variants
from diminuendo.plan import plan
from diminuendo.types import FEEDBACKS
from tests.kit.slow import mostly_slow

RUNNER = CliRunner()


def test_full_information_lists_both_rates() -> None:
    result = plan(50, 5, 100_000, epsilon=1.0, delta=1e-6)
    assert result["fi-dp:calibration=paper"].parameters["eta"] == pytest.approx(2.8467e-5, rel=1e-4)
    assert result["fi-dp"].parameters["eta"] == pytest.approx(3.1213e-4, rel=1e-4)
    assert result["fi-dp"].bound == pytest.approx(62697.86869742943, rel=1e-9)
    assert result["streeter-golovin"].bound == pytest.approx(2797.149622536537, rel=1e-9)
    assert result.recommended == "overlap-greedy"
    assert "stores users' preferences" in result.why
    assert {one.name for one in result.candidates} == {
        name for name in with_variants() if "full" in LEARNERS[name].reads
    }


def test_bandit_says_that_gamma_was_held() -> None:
    result = plan(20, 5, 1_000_000, feedback="bandit")
    printed = result["bandit-dp:calibration=paper"]
    assert printed.parameters["gamma_as_printed"] == pytest.approx(4.86114589, rel=1e-8)
    assert printed.parameters["gamma"] == 1.0
    assert printed.parameters["rounds_for_gamma"] == pytest.approx(1.1487e8, rel=1e-4)
    assert any("4.861" in note and "held at 1" in note for note in printed.notes)
    assert printed.bound == pytest.approx(236312454.28942198, rel=1e-9)
    assert not printed.says_something(1_000_000)
    assert result.recommended == "slate-totals"
    assert "no bound says anything" in plan(20, 5, 1_000, feedback="bandit", adversarial=True).why


def test_what_is_planned_is_what_is_run() -> None:
    result = plan(12, 3, 500, epsilon=0.7, delta=1e-5)
    for name in ("fi-dp", "fi-dp:calibration=paper", "fi-pure"):
        made = make(name, Setting(12, 3, 500, "full", 0.7, 1e-5))
        assert made.parameters.items() <= result[name].parameters.items()
        assert made.guarantee == result[name].guarantee


@pytest.mark.parametrize("feedback", FEEDBACKS)
@pytest.mark.parametrize(("n", "k", "rounds"), [(1, 1, 1), (2, 2, 1), (1, 1, 50), (300, 300, 7), (5, 2, 2)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_size_has_a_plan(n: int, k: int, rounds: int, feedback: str, delta: float) -> None:
    result = plan(n, k, rounds, delta=delta, feedback=feedback)  # type: ignore[arg-type]
    json.dumps(result.as_json(), allow_nan=False)
    promise = result[result.recommended].guarantee
    assert promise.epsilon <= 1.0
    assert promise.delta <= delta
    assert promise.exact


def test_what_cannot_be_made_is_left_out_with_a_reason() -> None:
    result = plan(50, 5, 10**12, epsilon=1e-9)
    assert "rate" in result.left_out["fi-dp:calibration=paper"]
    assert "overlap-greedy" in result.left_out
    assert plan(294, 5, 60).half_way is None
    assert "nothing to learn" in plan(5, 5, 60).why
    assert "memory" in plan(50, 5, 10**9, feedback="bandit").left_out["bandit-dp:draw=presampled"]
    assert json.loads(json.dumps(result.as_json()))["left_out"]


def test_bad_settings_are_refused() -> None:
    wrongs = ({"slots": 51}, {"rounds": 0}, {"epsilon": -1.0}, {"delta": 2.0}, {"feedback": "smell"})
    for wrong in (*wrongs, {"cares_about": 51.0}):
        with pytest.raises(InvalidInput):
            plan(**({"n_items": 50, "slots": 5, "rounds": 100} | wrong))


ASK = ["plan", "--items", "20", "--slots", "3", "--rounds"]


def test_on_the_command_line(tmp_path: Path) -> None:
    ask, file = [*ASK, "2000", "--cares-about", "3"], tmp_path / "deep" / "plan.json"
    result = RUNNER.invoke(app, [*ask, "--json", str(file), "--plot", str(tmp_path / "deep" / "plan.svg")])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    record = json.loads(file.read_text())
    assert record["recommended"] == "overlap-greedy"
    assert f"differs by about {record['noise']['apart']:,.0f} users can be told apart" in said
    assert f"after about {record['forecast']['half_way']:,} users" in said
    assert "Forecasts simulate users" in said
    assert [price["epsilon"] for price in record["forecast"]["prices"]] == [0.1, 0.2, 0.5, 1, 2, 5, 10]
    assert {one["learner"] for one in record["candidates"]} >= {"fi-dp", "fi-dp:calibration=paper", "random"}
    assert (tmp_path / "deep" / "plan.svg").read_text().startswith("<?xml")
    on_screen = RUNNER.invoke(app, [*ASK, "1", "--json", "-"])
    assert json.loads(on_screen.stdout)["recommended"] == "random"


def test_bandits_and_empty_plans_on_the_command_line(tmp_path: Path) -> None:
    bandit = RUNNER.invoke(app, [*ASK, "8000", "--feedback", "bandit", "--adversarial"])
    assert bandit.exit_code == 0, bandit.output
    said = " ".join(bandit.output.split())
    taken = plan(20, 3, 8_000, feedback="bandit", adversarial=True).recommended
    assert taken.startswith("bandit-")
    assert f"Learner {taken} " in said
    assert "told apart" not in said, "it publishes no sums"
    assert "held at 1" in said, "warnings are notes"
    few = " ".join(RUNNER.invoke(app, [*ASK, "40", "--epsilon", "0.05"]).output.split())
    assert "no two items can be told apart" in few
    assert "too few users to get half of the way" in few
    nothing = RUNNER.invoke(app, [*ASK, "1"])
    assert "There is nothing to learn" in nothing.output
    assert "Forecast" not in nothing.output
    for wrong in (["1", "--plot", "plan.png"], ["50", "--plot", "plan.pdf"], ["50", "--cares-about", "21"]):
        result = RUNNER.invoke(app, [*ASK, *wrong])
        assert isinstance(result.exception, InvalidInput), wrong


def on_page(width: int, command: ModuleType, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What the command prints, as on a screen of that width."""
    page = io.StringIO()
    for module in (command, screen):
        monkeypatch.setattr(module, "console", Console(width=width, file=page))
    return page


@pytest.mark.parametrize("width", mostly_slow([80, 120], [80]))
def test_what_is_shown_fits_the_screen(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = on_page(width, show_plan, monkeypatch)
    show_plan.show_plan(plan(294, 5, 30_000).with_prices(epsilons=()))
    lines = page.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines), "nothing is cut off"


def test_the_catalogue_is_complete_and_true(tmp_path: Path) -> None:
    file = tmp_path / "learners.json"
    assert RUNNER.invoke(app, ["learners", "--json", str(file)]).exit_code == 0
    listed = json.loads(file.read_text())
    names, recommended = (
        [one["learner"] for one in listed],
        ["overlap-greedy", "slate-totals", "slate-clicks"],
    )
    assert names == [*recommended, *(name for name in LEARNERS if name not in recommended)]
    assert {name: one["options"] for name, one in zip(names, listed, strict=True) if one["options"]} == {
        "slate-totals": {"private": ["true", "false"]},
        "slate-clicks": {"private": ["true", "false"]},
        "fi-dp": {"calibration": ["tight", "paper"]},
        "fi-pure": {"calibration": ["tight", "paper"]},
        "bandit-dp": {"draw": ["online", "direct", "presampled"], "calibration": ["tight", "paper"]},
    }
    assert listed == json.loads(RUNNER.invoke(app, ["learners", "--json", "-"]).stdout)
    for name in with_variants():
        kind = LEARNERS[name]
        delta = 0.0 if LEARNERS[name].advice.guarantee.startswith("(ε, 0)") else 1e-6
        setting = Setting(6, 2, 50, "full" if "full" in kind.reads else "bandit", 1.0, delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)
            promise = kind.for_setting(setting).guarantee
        said = LEARNERS[name].advice.guarantee
        assert (said == "none") == math.isinf(promise.epsilon), name
        assert (said == "perfect") == (promise.epsilon == 0), name
        assert ("in reals" in said) == (not promise.exact and promise.epsilon < math.inf), name
        assert said != "below ε" or promise.epsilon < 0.5, name


def test_the_catalogue_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    page = on_page(80, learners_command, monkeypatch)
    learners_command.show_learners(learners_command.learners_as_json())
    shown = page.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.splitlines()) < 2 * len(LEARNERS) + 22, "two lines for each are enough"
    words = set(shown.split())
    for name in LEARNERS:
        entry = LEARNERS[name].advice
        said = f"{name} {entry.guarantee} {entry.bound} {entry.memory} {entry.when}"
        assert set(said.split()) <= words, "nothing is cut off"
