"""The commands, as a user types them."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diminuendo.cli import main
from diminuendo.cli.app import app
from diminuendo.cli.screen import sentence
from diminuendo.learners import LEARNERS, ROLES
from diminuendo.privacy import Budget, Gaussian, Ledger
from diminuendo.streams import BUILTIN

RUNNER = CliRunner()


def test_simulate_writes_numbers_rows_and_a_report(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("0 1\n1\n2 1\n\n" * 50)
    arguments = [
        "simulate",
        str(tmp_path / "shop.txt"),
        "--slots",
        "2",
        "--seeds",
        "2",
        "--jobs",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    result = RUNNER.invoke(app, [*arguments, "--json", str(tmp_path / "numbers.json")])
    assert result.exit_code == 0, result.output
    assert "not private" in result.output
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert found["stream"] == {
        "name": "shop",
        "objective": "noisy-or",
        "rounds": 200,
        "items": 3,
        "mean_nonzeros": 1.25,
    }
    assert found["benchmarks"]["greedy"] == found["benchmarks"]["optimum_lower"] == 0.75
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "results.parquet").exists()


def test_several_of_everything_make_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("0 1\n1\n2 1\n\n" * 50)
    arguments = [
        "simulate",
        str(tmp_path / "shop.txt"),
        "taste-groups",
        "--slots",
        "1,2",
        "--rounds",
        "50,100",
    ]
    arguments += ["--epsilon", ".5,5", "--learners", "fi-dp,random", "--seeds", "1", "--jobs", "1"]
    result = RUNNER.invoke(app, [*arguments, "--json", str(tmp_path / "numbers.json")])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "numbers.json").read_text())["simulations"]
    assert [one["stream"]["rounds"] for one in found] == [50, 100] * 4
    assert [[run["slots"] for run in one["results"]] for one in found] == [[k] * 3 for k in (1, 1, 2, 2) * 2]
    assert [run["asked_epsilon"] for run in found[0]["results"]] == [0.5, 5.0, None]
    assert result.output.count("ε=0.5") == 8, "a table for each"


def test_a_ledger_is_checked_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with Ledger.open(path, Budget(1.0, 1e-6)) as held:
        for number in range(12):
            held.charge(Gaussian(1e-4), f"release {number} [of 12]")
    result = RUNNER.invoke(app, ["ledger", str(path), "--last", "3", "--json", str(tmp_path / "said.json")])
    assert result.exit_code == 0, result.output
    assert held.head in result.output
    assert "release 11 [of 12]" in result.output
    assert "release 8 [of 12]" not in result.output
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["spent"] == held.spent()
    assert len(said["charges"]) == 12
    path.write_bytes(path.read_bytes().replace(b"release 3", b"release 4"))
    ran = subprocess.run(
        [sys.executable, "-m", "diminuendo", "ledger", str(path)], capture_output=True, text=True
    )
    assert ran.returncode != 0
    assert "line 5" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_learners_and_streams_list_every_name() -> None:
    shown = RUNNER.invoke(app, ["learners"]).output
    assert all(name in shown for name in [*LEARNERS, *ROLES])
    shown = RUNNER.invoke(app, ["streams"]).output
    assert all(name in shown for name in BUILTIN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "nowhere"], "There is no file nowhere"),
        (["simulate", "msweb", "--learners", "magic"], "no learner called 'magic'"),
        (["simulate", "msweb", "--slots", "300"], "at most the number of items"),
        (["simulate", "msweb", "--feedback", "gossip"], "'full', 'bandit'"),
        (["simulate", "msweb", "--epsilon", "1;2"], "numbers separated by commas"),
        (
            ["simulate", "semi.csv"],
            "semi.csv has 2 rows that cannot be used. lines 2, 3: value must be from 0 to 1",
        ),
        (["simulate", "adversary", "--out", "semi.csv/x"], "semi.csv is a file; expected a folder"),
        (["simulate", "msweb", "--json", "."], ". is a folder; expected a file"),
        (["audit", "--out", "semi.csv"], "semi.csv is a file; expected a folder"),
        (
            ["plan", "--items=9", "--slots=2", "--rounds=99", "--plot=semi.csv/a.png"],
            "semi.csv is a file; expected a folder",
        ),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In this process, by what the command calls; the first also as a command."""
    (tmp_path / "semi.csv").write_text("user;item;value\nada;Up;4,5\nbob;Up;3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["diminuendo", *arguments])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set their own; put it back
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said, complained = capfd.readouterr()
    if "nowhere" in arguments:
        ran = subprocess.run(
            [sys.executable, "-m", "diminuendo", *arguments], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, said, complained)
    assert message in " ".join(complained.split())
    assert "Traceback" not in complained
    assert not said, "before any work was done"
    assert [file.name for file in tmp_path.iterdir()] == ["semi.csv"]


def test_what_the_file_system_says_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = {
        "file/in/it": f"{tmp_path / 'file'} is a file; expected a folder.",
        "no/such": f"There is no file or folder {tmp_path / 'no/such'}.",
        ".": f"{tmp_path} is a folder; expected a file.",
    }
    for name, said in told.items():
        with pytest.raises(OSError, match="Errno") as raised:
            (tmp_path / name).write_text("")
        assert sentence(raised.value).startswith(said)
    assert sentence(PermissionError(13, "Permission denied", "/root")).startswith(
        "There is no permission for /root."
    )
    assert sentence(OSError("as it is")) == "as it is"
