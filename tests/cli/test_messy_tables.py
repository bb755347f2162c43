"""From a raw export to a report, in one command."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput

RUNNER = CliRunner()


def orders(path: Path, more: str = "") -> None:
    """An export with blanks, quotes, empty cells, rows that stand there twice, and times in two ways."""
    rng, rows = random.Random(3), list[str]()
    for order in range(600):
        customer, day = rng.randrange(250), rng.randrange(1, 29)
        for _ in range(1 + rng.randrange(2)):
            sku = f"SKU-{rng.randrange(12) * rng.randrange(2)}"
            when = f"2024-05-{day:02}T{rng.randrange(24):02}:15:00{rng.choice(['', 'Z'])}"
            rows.append(
                f' C{customer} ;{order};{sku};"A thing; ""{sku}""";{when};{rng.choice(["DE", "", "FR"])}'
            )
    rows += rows[:20]
    rows += [f";9{row};SKU-1;;2024-05-01;" for row in range(7)] + ["C1;9;;;2024-05-01;"] * 3
    head = "\ufeff Customer ID ;Order No;SKU;Product Name;Created At;Country"
    path.write_bytes("\r\n".join([head, *rows, ""]).encode() + more.encode())


def simulated(folder: Path, *options: str) -> str:
    arguments = ["simulate", str(folder / "orders.csv"), "--slots", "2", "--seeds", "1", "--jobs", "1"]
    result = RUNNER.invoke(app, [*arguments, "--learners", "nonprivate,random", *options])
    if isinstance(result.exception, InvalidInput):
        raise result.exception
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_one_command_reads_it_and_says_what_was_read(tmp_path: Path) -> None:
    orders(tmp_path / "orders.csv")
    said = simulated(tmp_path, "--out", str(tmp_path / "report"))
    assert (
        "Customer ID as user, SKU as item, Created At as time, Order No as order (guessed by their names"
        in said
    )
    assert "There are semicolons between its columns." in said
    assert re.search(
        r"A round is an order of a user \(--round says otherwise\): 600 rounds of \d+ users", said
    )
    assert "Left out: 7 rows where Customer ID is empty; 3 rows where SKU is empty." in said
    assert re.search(r"\d+ rows say what another row of the same round says", said)
    assert re.search(
        r"learn from 1 of each user's rounds \(--max-rounds-per-user 1\): from (\d+) of 600\.", said
    )
    result = json.loads((tmp_path / "report" / "simulation.json").read_text())
    assert result["stream"]["read"]["left_out"] == {"Customer ID is empty": 7, "SKU is empty": 3}
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"600 rounds of {result['stream']['users']} users" in page
    assert "What was read" in page
    assert "A round is an order of a user" in page


def test_options_of_tables(tmp_path: Path) -> None:
    orders(tmp_path / "orders.csv", more="C1;9;SKU-1\r\n")
    with pytest.raises(InvalidInput, match=r"1 row that cannot be used. line \d+: not 6 columns"):
        simulated(tmp_path)
    said = simulated(
        tmp_path, "--skip-bad", "--round", "day", "--columns", "customer_id,sku", "--max-rounds-per-user", "3"
    )
    assert "Skipped as bad: 1 row where there are not 6 columns" in said
    assert "A round is a day of a user:" in said
    assert "guessed" not in said
    assert "learn from 3 of each user's rounds (--max-rounds-per-user 3)" in said
    said = simulated(tmp_path, "--skip-bad", "--round", "user", "--ignore-case", "--users-without", "50")
    assert "A round is a user with all their rows:" in said
    assert "50 rounds of users who want nothing were added" in said
    assert "--max-rounds-per-user" not in said
    with pytest.raises(InvalidInput, match="A round is a user, order, session or day"):
        simulated(tmp_path, "--round", "week")
    with pytest.raises(InvalidInput, match="--columns takes the columns of user, item and value"):
        simulated(tmp_path, "--columns", "customer")
    with pytest.raises(
        InvalidInput, match=r"has no column when of time\..* Its columns are: Customer ID, Order No"
    ):
        simulated(tmp_path, "--time", "when")
    with pytest.raises(InvalidInput, match="round: said of msweb, and only tables take that"):
        RUNNER.invoke(app, ["simulate", "msweb", "--round", "day"], catch_exceptions=False)
