"""Today's slate: its reward by brute force, names of items, and input that is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from diminuendo import NoisyOr, Users
from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput
from diminuendo.simulate import Simulation, Sweep, simulate
from diminuendo.simulate.report.text import headlines, table_rows
from diminuendo.simulate.table import tables
from diminuendo.simulate.today import item_called, split, today_on

LABELS = ("tea", "soap", "tea, green", "7", "jam", 'a "b"')
WANTS = np.random.default_rng(5).random((400, 6)) * [0.9, 0.2, 0.5, 0.1, 0.3, 0.6]
USERS = Users(NoisyOr(), WANTS, name="shop", labels=LABELS)
EPSILONS = 0.5, 5.0


@cache
def shop() -> Simulation:
    names = "private", "nonprivate", "random"
    return simulate(USERS, slots=2, learners=names, epsilon=EPSILONS, seeds=2, today=("soap", "tea, green"))


def test_runs_are_the_same_whatever_is_shown_today(tmp_path: Path) -> None:
    options: dict[str, Any] = {"slots": 2, "learners": ["fi-dp", "random"], "seeds": 1, "out": tmp_path}
    first = simulate(USERS, **options)
    second = simulate(USERS, **options, today=["jam", 0])
    assert second.results == first.results, "also their seconds: results were stored, not computed again"
    assert second.today is not None
    assert second.today.slate == (4, 0)
    assert second.today.value == pytest.approx((1 - (1 - WANTS[:, 4]) * (1 - WANTS[:, 0])).mean())


def test_today_is_in_tables_and_in_the_answer() -> None:
    share = shop().today.value / shop().benchmarks.greedy.value  # type: ignore[union-attr]
    assert ["today's slate", f"{share:.3f}"] in [[row[0], row[7]] for row in table_rows(shop())]
    assert [one.share for one in headlines(shop()) if one.whose == "today's slate"] == [
        f"{100 * share:.1f}\N{NO-BREAK SPACE}%"
    ]
    for epsilons in (EPSILONS, EPSILONS[:1]):  # a column for each epsilon, or all columns for one
        runs = [run for run in shop().results if run.asked_epsilon in (None, *epsilons)]
        columns = tables(Sweep([replace(shop(), results=runs)]))[0].columns
        row = list(columns[0].cells).index("today's slate")
        assert f"{share:.3f}" in [list(column.cells)[row] for column in columns[1:]]


@pytest.mark.parametrize(
    ("text", "slate"),
    [
        ("tea,soap", (0, 1)),
        (' "tea, green", jam ', (2, 4)),
        ("7,tea", (3, 0)),  # the item of that name: there is no item number 7
        ('"a ""b""",soap', (5, 1)),
    ],
)
def test_items_are_named(text: str, slate: tuple[int, ...]) -> None:
    assert today_on(USERS, split(text), 2).slate == slate


def test_numbers_are_items_where_no_name_is_a_number() -> None:
    assert item_called("1", ("tea", "soap"), 2) == 1
    assert item_called("1", None, 2) == 1
    assert item_called(1, LABELS, 6) == 1, "a whole number is no text, and so no name"
    with pytest.raises(InvalidInput, match="no item called '1'"):
        item_called("1", LABELS, 6)
    twins = ("tea", "tea", "soap")
    assert [item_called(name, twins, 3) for name in split("1,soap")] == [1, 2]


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (["tea"], "names 1 thing, and 2 are shown"),
        ([], "names 0 things, and 2 are shown"),
        (["tea", "soap", "jam"], "names 3 things, and 2 are shown"),
        (["tea", "tea"], "one thing twice, 'tea' and 'tea'"),
        (["tea", 0], "one thing twice, 'tea' and 0"),
        (["tea", "soup"], "no item called 'soup'. Did you mean 'soap'"),
        (["tea", "0"], "no item called '0'"),
        (["tea", 6], "from 0 to 5; got 6"),
        (["tea", -1], "no item called -1"),
        (["tea", True], "no item called True"),
    ],
)
def test_wrong_slates_are_refused(today: list[str | int], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        simulate(USERS, slots=2, today=today)
    twins = Users(NoisyOr(), WANTS, labels=("tea",) * 6)
    with pytest.raises(InvalidInput, match="'tea' is the name of items 0 and 1 and"):
        today_on(twins, ["tea", 1], 2)
    with pytest.raises(InvalidInput, match="have no names; give numbers from 0 to 5"):
        today_on(Users(NoisyOr(), WANTS), ["tea", 1], 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--today", "0,0"], "one thing twice"),
        (["--today", '"0'], "--today takes names or numbers separated by commas"),
        (["--today", "0,1", "--slots", "3"], "names 2 things, and 3 are shown"),
    ],
)
def test_wrong_options_are_refused_before_any_work(options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "taste-groups", "--slots", "2", *options])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)
    assert "users:" not in result.output, "nothing has run"
