"""Hits a day, and today's slate: the numbers by brute force, names that are understood, and input that is refused."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from diminuendo import NoisyOr, Setting, Users, make
from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.replay import replay
from diminuendo.randomness import SeededSource
from diminuendo.simulate import Simulation, Sweep, simulate
from diminuendo.simulate.hits import Hits, hits_a_day, hits_said, hits_table
from diminuendo.simulate.report import write_report
from diminuendo.simulate.report.text import command, headlines, table_rows
from diminuendo.simulate.table import tables
from diminuendo.simulate.today import Today, item_called, joined, split, today_on
from diminuendo.streams import taste_groups
from diminuendo.streams.per_day import PerDay
from diminuendo.types import Floats, Items
from tests.simulate.specimens import HOSTILE, tiny

LABELS = ("tea", "soap", "tea, green", "7", "jam", 'a "b"')
WANTS = np.random.default_rng(5).random((400, 6)) * [0.9, 0.2, 0.5, 0.1, 0.3, 0.6]
USERS = Users(NoisyOr(), WANTS, name="shop", labels=LABELS)
NAMES, EPSILONS, SEEDS = ("private", "nonprivate", "random"), (0.5, 5.0), 2
TODAY, A_DAY = ("soap", "tea, green"), 1_234.0


@cache
def shop(learners: tuple[str, ...] = NAMES) -> Simulation:
    return simulate(
        USERS, slots=2, learners=learners, epsilon=EPSILONS, seeds=SEEDS, today=TODAY, per_day=A_DAY
    )


def rewards(slates: Items | tuple[int, ...]) -> Floats:
    """What everybody found, one user and one slot after the other."""
    rows = np.broadcast_to(slates, (len(WANTS), 2))
    return np.array([1 - (1 - wants[a]) * (1 - wants[b]) for wants, (a, b) in zip(WANTS, rows, strict=True)])


def mean_of(name: str, epsilon: float = 1.0) -> float:
    """The reward of a learner, run here and added up by hand."""
    setting = Setting(6, 2, 400, "full", epsilon, 1e-6)
    runs = [replay(make(name, setting, rng=SeededSource(seed)), USERS, "full") for seed in range(SEEDS)]
    return float(np.mean([rewards(run).mean() for run in runs]))


def by_name(simulation: Simulation) -> dict[str, Hits]:
    return {one.who: one for one in hits_a_day(simulation)}


def test_hits_are_rewards_of_as_many_users_as_come_in_a_day() -> None:
    result, today = by_name(shop()), A_DAY * rewards((1, 2)).mean()
    first = max(range(6), key=lambda item: WANTS[:, item].mean())
    second = max(set(range(6)) - {first}, key=lambda item: rewards((first, item)).mean())
    without = A_DAY * mean_of("nonprivate")
    wanted = {
        "greedy in hindsight": A_DAY * rewards((first, second)).mean(),
        "nonprivate": without,
        "private, ε 0.5": A_DAY * mean_of("private", 0.5),
        "private, ε 5": A_DAY * mean_of("private", 5.0),
        "today's slate": today,
        "random slates": A_DAY * mean_of("random"),
    }
    assert {who: one.hits for who, one in result.items()} == pytest.approx(wanted)
    assert list(result) == list(wanted), "hindsight first, chance last"
    costs = {who: one.cost for who, one in result.items() if one.cost is not None}
    assert costs == pytest.approx({who: without - wanted[who] for who in ("private, ε 0.5", "private, ε 5")})
    gains = {who: one.gain for who, one in result.items() if one.gain is not None}
    assert gains == pytest.approx(
        {who: hits - today for who, hits in wanted.items() if who != "today's slate"}
    )


def test_hindsight_stands_in_for_who_was_not_run() -> None:
    result = by_name(shop(("private",)))
    cost, best = result["private, ε 5"].cost, result["greedy in hindsight"].hits
    assert cost == pytest.approx(best - result["private, ε 5"].hits)
    assert result["random slates"].hits == pytest.approx(A_DAY * shop().benchmarks.random)
    assert "what hindsight earns more" in hits_said(shop(("private",)), PerDay(A_DAY))
    assert "what nonprivate earns more" in hits_said(shop(), PerDay(A_DAY))


def test_without_a_day_or_today_nothing_is_said_of_them() -> None:
    assert hits_a_day(tiny()) == []
    columns, rows = hits_table(replace(tiny(("random",)), per_day=PerDay(10)), PerDay(10))
    assert columns == ["learner", "hits a day"], "nobody is private, nobody knows of today, there is one run"
    assert [row[0] for row in rows] == ["greedy in hindsight", "random"]
    assert "today" not in str(tiny().as_json()) + " ".join(row[0] for row in table_rows(tiny()))


def test_runs_are_the_same_whatever_is_shown_today(tmp_path: Path) -> None:
    asked = {"slots": 2, "learners": ["fi-dp", "random"], "seeds": 1, "out": tmp_path}
    first = simulate(USERS, **asked)  # type: ignore[arg-type]
    second = simulate(USERS, **asked, today=["jam", 0], per_day=9)  # type: ignore[arg-type]
    assert second.results == first.results, "also their seconds: they were kept, not run again"
    assert second.today is not None
    assert second.today.slate == (4, 0)
    assert second.today.value == pytest.approx(rewards((4, 0)).mean())


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
def test_names_are_understood_and_written_again(text: str, slate: tuple[int, ...]) -> None:
    assert today_on(USERS, split(text), 2).slate == slate
    assert today_on(USERS, split(joined(slate, LABELS)), 2).slate == slate


def test_numbers_are_items_where_no_name_is_a_number() -> None:
    assert item_called("1", ("tea", "soap"), 2) == 1
    assert item_called("1", None, 2) == 1
    assert item_called(1, LABELS, 6) == 1, "a whole number is no text, and so no name"
    with pytest.raises(InvalidInput, match="no item called '1'"):
        item_called("1", LABELS, 6)
    twins = ("tea", "tea", "soap")
    assert joined((1, 2), twins) == "1,soap"
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
        (["--per-day", "0"], "per_day must be finite and above 0"),
        (["--hits", "sales"], "say how many users come, as --per-day"),
        (["--per-day", "9", "--hits", ""], "hits must be a word"),
    ],
)
def test_wrong_options_are_refused_before_any_work(options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "taste-groups", "--slots", "2", *options])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)
    assert "users:" not in result.output, "nothing has run"


def test_the_command_compares_with_today_again(tmp_path: Path) -> None:
    wanted = simulate(
        taste_groups(), rounds=200, slots=2, learners="random", seeds=1, today=[3, 1], per_day=77.5
    )
    wanted = replace(wanted, per_day=PerDay(77.5, "loans a day's"))
    words = shlex.split(command(wanted))
    out = CliRunner().invoke(app, [*words[1:], "--jobs", "1", "--json", str(tmp_path / "again.json")])
    assert out.exit_code == 0, out.output
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["today"] == {"slate": [3, 1], "value": wanted.today.value}  # type: ignore[union-attr]
    assert again["per_day"] == {"users": 77.5, "hits": "loans a day's"}
    for _, *numbers in hits_table(wanted, PerDay(77.5))[1]:
        assert numbers[0] in out.output


def test_the_report_shows_a_day_and_names_stay_names(tmp_path: Path) -> None:
    stream = tiny().stream | {"labels": [HOSTILE[item % len(HOSTILE)] for item in range(10)]}
    hostile = replace(tiny(), stream=stream, today=Today((0, 2), 0.25), per_day=PerDay(50, "<u>&$"))
    page = write_report(Sweep([hostile]), tmp_path).read_text()
    assert "<u>" not in page
    assert "&lt;u&gt;&amp;$ a day" in page
    assert HOSTILE[0] not in page
    for row in hits_table(hostile, PerDay(50))[1]:
        assert "</th><td>".join(row[:2]).replace("'", "&#x27;") in page
    assert len(list((tmp_path / "figures").glob("*-hits.svg"))) == 1


def test_numbers_have_as_many_digits_as_mean_something() -> None:
    assert [PerDay(users).said(users / 3) for users in (1, 30, 3_000, 3_000_000)] == [
        "0.333",
        "10.00",
        "1,000",
        "1,000,000",
    ]
    assert [PerDay(1_000).signed(hits) for hits in (-0.4, 0.4, 2.0, -2.0)] == ["0", "0", "+2", "-2"]
    for users in (0, -1, np.nan, np.inf, True, "9"):
        with pytest.raises(InvalidInput, match="per_day"):
            PerDay(users)  # type: ignore[arg-type]
    for word in ("", "a\nb", "x" * 31, 3):
        with pytest.raises(InvalidInput, match="hits must be a word"):
            PerDay(9, word)  # type: ignore[arg-type]
