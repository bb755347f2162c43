"""Plans in hits a day: computed again from the model, and silent where made-up users are not like one's own."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from diminuendo.cli.app import app
from diminuendo.errors import InvalidInput
from diminuendo.plan import DayForecast, day_forecast, plan
from diminuendo.plan.model import PublicModel
from diminuendo.streams.per_day import PerDay

RUNNER = CliRunner()
ASKED = ["plan", "--items", "8", "--slots", "2", "--rounds", "500", "--cares-about", "2"]


def test_hits_are_what_made_up_users_bring(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    options = ["--per-day", "300", "--today-earns", "150", "--hits", "loans", "--json", str(path)]
    result = RUNNER.invoke(app, [*ASKED, *options])
    assert result.exit_code == 0, result.output
    found = json.loads(path.read_text())
    appeal = PublicModel(8, 2.0).appeal
    best = max(1 - (1 - appeal[a]) * (1 - appeal[b]) for a, b in combinations(range(8), 2))
    daily = found["per_day"]
    assert daily["hindsight"] == pytest.approx(300 * best)
    losses = {price["epsilon"]: price["losses"] for price in found["forecast"]["prices"]}
    wanted = {epsilon: 300 * best * (1 - np.mean(each)) for epsilon, each in losses.items()}
    assert {row["epsilon"]: row["hits"] for row in daily["hits"]} == pytest.approx(wanted)
    words = result.output.split()
    assert "loans" in words
    for hits in wanted.values():
        assert f"{hits:,.1f}" in words
        assert f"{300 * best - hits:,.1f}" in words
        assert f"{hits - daily['chance']:+,.1f}" in words
        assert f"{hits - 150:+,.1f}" in words, "over today"


def test_chance_is_what_random_slates_bring() -> None:
    result = day_forecast(plan(8, 2, 500, cares_about=2.0), 300)
    appeal = PublicModel(8, 2.0).appeal
    pairs = [1 - (1 - appeal[a]) * (1 - appeal[b]) for a, b in combinations(range(8), 2)]
    assert result.chance == pytest.approx(300 * np.mean(pairs), rel=0.05), (
        "items that come twice are neglected"
    )
    alike = day_forecast(plan(2, 2, 500, cares_about=1.0), 300)
    assert alike.chance == alike.hindsight, "there is one slate"


@pytest.mark.parametrize(
    ("today", "said"),
    [
        (None, None),
        (100.0, None),
        (150.0, None),
        (200.0, None),
        (99.0, "less than random"),
        (201.0, "more than hind"),
    ],
)
def test_today_is_compared_where_the_model_can_be_like_it(today: float | None, said: str | None) -> None:
    unlike = DayForecast(PerDay(300), 200.0, 100.0, {}, today).unlike
    assert unlike is None if said is None else said in str(unlike)


def test_users_unlike_the_model_are_not_compared() -> None:
    result = RUNNER.invoke(app, [*ASKED, "--per-day", "300", "--today-earns", "3"])
    assert result.exit_code == 0, result.output
    (heading,) = [line for line in result.output.splitlines() if "below hindsight" in line]
    assert "over random" in heading
    assert "over today" not in heading
    assert "earns less than random choice does" in " ".join(result.output.split())


def test_without_a_day_plans_are_as_before() -> None:
    result = RUNNER.invoke(app, [*ASKED, "--json", "-"])
    assert "per_day" not in json.loads(result.stdout)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--today-earns", "3"], "say how many users come in it, as --per-day"),
        (["--hits", "sales"], "say how many users come, as --per-day"),
        (["--per-day", "300", "--today-earns", "301"], "from 0 to the 300 users who come; got 301"),
        (["--per-day", "300", "--today-earns", "-1"], "from 0 to the 300 users who come; got -1"),
        (["--per-day", "300", "--today-earns", "nan"], "from 0 to the 300 users who come; got nan"),
        (["--per-day", "inf"], "per_day must be finite"),
    ],
)
def test_wrong_days_are_refused(options: list[str], said: str) -> None:
    result = RUNNER.invoke(app, [*ASKED, *options])
    assert isinstance(result.exception, InvalidInput)
    assert said in str(result.exception)
