"""The options for contexts, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput

RUNNER = CliRunner()
MAX_ROUNDS_PER_USER = "user,item,value,country\n" + "".join(
    f"{user},{'tea' if user % 2 else 'soap'},1,{'DE' if user % 2 else 'FR'}\n" for user in range(300)
)


def simulated(folder: Path, *options: str) -> tuple[dict[str, object], str]:
    """The numbers of a short simulation of visits, and what was printed."""
    (folder / "visits.csv").write_text(MAX_ROUNDS_PER_USER)
    arguments = ["simulate", str(folder / "visits.csv"), "--slots", "1", "--seeds", "1", "--jobs", "1"]
    result = RUNNER.invoke(app, [*arguments, *options, "--json", str(folder / "numbers.json")])
    if isinstance(result.exception, InvalidInput):
        raise result.exception
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads((folder / "numbers.json").read_text())
    return found, " ".join(result.output.split())


def learners(found: dict[str, object]) -> list[str]:
    return [run["learner"] for run in found["results"]]  # type: ignore[attr-defined]


def test_by_default_contexts_are_compared_with_none_and_with_separate_learners(tmp_path: Path) -> None:
    result, said = simulated(tmp_path, "--context", "country")
    assert learners(result) == ["private", "private-no-contexts", "private-separate", "nonprivate", "random"]
    assert result["contexts"]["columns"] == {"country": ["DE", "FR"]}  # type: ignore[index]
    assert result["contexts"]["greedy"] == 1.0, "everybody wants one of two things, by country"  # type: ignore[index]
    assert "contexts: country (2 values); public" in said
    assert "greedy by context" in said
    assert "is the information in the contexts" in said


def test_private_contexts_have_no_separate_learners(tmp_path: Path) -> None:
    result, said = simulated(tmp_path, "--context", "country", "--private-context")
    assert learners(result) == ["private", "private-no-contexts", "nonprivate", "random"]
    assert "The guarantee of private is joint" in said


def test_names_that_are_given_are_taken_as_they_are(tmp_path: Path) -> None:
    result, _ = simulated(tmp_path, "--context", "country", "--learners", "random,private-separate")
    assert learners(result) == ["random", "private-separate"]


def test_late_answers_have_no_separate_learners(tmp_path: Path) -> None:
    result, _ = simulated(tmp_path, "--context", "country", "--delay", "3", "--feedback", "click")
    assert learners(result) == ["private", "private-no-contexts", "nonprivate", "random"]


def test_without_the_option_nothing_is_known(tmp_path: Path) -> None:
    result, said = simulated(tmp_path)
    assert learners(result) == ["private", "nonprivate", "random"]
    assert "contexts" not in result
    assert "contexts" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context", "contry"], r"Did you mean country\?"),
        (["--private-context"], "name them too, as --context country"),
        (["--learners", "private-separate"], "for users with contexts"),
    ],
)
def test_mistakes_are_said_in_a_sentence(options: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulated(tmp_path, *options)


def test_a_plan_with_contexts() -> None:
    arguments = ["plan", "--items", "20", "--slots", "2", "--rounds", "300", "--contexts", "3,24"]
    result = RUNNER.invoke(app, arguments)
    said = " ".join(result.output.split())
    assert result.exit_code == 0, result.output
    assert "Contexts 3 and 24 categories, public." in said
    refused = RUNNER.invoke(app, [*arguments[:-1], "3,many"])
    assert "--contexts takes whole numbers" in str(refused.exception)
