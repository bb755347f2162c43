"""Simulations by rules: learners, hindsight and chance keep to them, and results by other rules are others."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from diminuendo import SlateRules
from diminuendo.cli.app import app
from diminuendo.errors import DiminuendoError, InvalidInput
from diminuendo.simulate import benchmarks, simulate
from diminuendo.simulate.report.page import lead
from diminuendo.streams import open_stream, taste_groups
from tests.simulate.test_today import USERS, WANTS

RULES = SlateRules(pinned=[1], caps=[([0, 2, 5], 1)])


def worth(slate: tuple[int, ...]) -> float:
    return float((1 - np.prod(1 - WANTS[:, list(slate)], axis=1)).mean())


def fits(slate: tuple[int, ...]) -> bool:
    return slate[0] == 1 and len({0, 2, 5} & set(slate)) <= 1


def test_hindsight_and_chance_keep_to_the_rules() -> None:
    result = benchmarks(USERS, 3, rules=RULES)
    best = max(worth((1, *two)) for two in combinations((0, 2, 3, 4, 5), 2) if fits((1, *two)))
    assert result.optimum.lower == result.optimum.upper == pytest.approx(best)
    assert best < max(worth(three) for three in combinations(range(6), 3)), "rules cost something here"
    first = max((0, 2, 3, 4, 5), key=lambda item: worth((1, item)))
    others = [item for item in (0, 2, 3, 4, 5) if item != first and fits((1, first, item))]
    second = max(others, key=lambda item: worth((1, first, item)))
    assert result.greedy.value == pytest.approx(worth((1, first, second)))
    # Chance: the second slot shows each of five items as often, the third each of those that then still fit.
    each: dict[int, list[float]] = {}
    for a, b in permutations((0, 2, 3, 4, 5), 2):
        if fits((1, a, b)):
            each.setdefault(a, []).append(worth((1, a, b)))
    chance = np.mean([np.mean(values) for values in each.values()])
    assert result.random == pytest.approx(chance, abs=0.02), (
        "5 deviations of 4,000 rewards that differ by .25"
    )
    assert abs(benchmarks(USERS, 3).random - chance) > 0.04, "without rules it would be noticed"


def test_runs_by_other_rules_are_other_runs(tmp_path: Path) -> None:
    asked = {"slots": 3, "learners": "private", "epsilon": 5.0, "seeds": 1, "out": tmp_path}
    free = simulate(USERS, **asked)  # type: ignore[arg-type]
    ruled = simulate(USERS, **asked, rules=RULES)  # type: ignore[arg-type]
    again = simulate(USERS, **asked)  # type: ignore[arg-type]
    shown = ruled.results[0].shown
    assert shown.shares[shown.items.index(1)] == pytest.approx([1.0] * len(shown.ends)), "always there"
    capped = [shown.shares[shown.items.index(item)] for item in (0, 2, 5) if item in shown.items]
    assert np.sum(capped, axis=0).max() <= 1 + 1e-9, "never two of them"
    assert ruled.benchmarks.greedy.value < free.benchmarks.greedy.value
    assert again.benchmarks == free.benchmarks
    assert again.results == free.results
    assert ruled.as_json()["rules"] == RULES.config()
    assert 'soap always in slot 1, at most 1 of tea; tea, green; a "b".' in lead(ruled)


def test_rules_are_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(
        "user,item,value\n"
        + "".join(f"{who},{['tea', 'soap', 'jam', 'ink'][who % 4]},1\n" for who in range(80))
    )
    path = str(tmp_path / "shop.csv")
    options = ["--slots", "2", "--epsilon", "5", "--seeds", "1", "--jobs", "1"]
    options += [
        "--pinned",
        "soap",
        "--cap",
        "1:tea,jam",
        "--cap",
        "0:ink",
        "--json",
        str(tmp_path / "out.json"),
    ]
    result = CliRunner().invoke(app, ["simulate", path, *options])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out.json").read_text())
    labels = found["stream"]["labels"]
    assert {run["learner"] for run in found["results"]} == {"private"}, (
        "of the usual ones, who keeps to rules"
    )
    rules = found["rules"]
    assert [[slot, labels[item]] for slot, item in rules["pinned"]] == [[0, "soap"]]
    assert [({labels[item] for item in items}, most) for items, most in rules["caps"]] == [
        ({"tea", "jam"}, 1),
        ({"ink"}, 0),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pinned", "x"], "--pinned: items of this stream have no names"),
        (["--cap", "2:1,x"], "--cap: items of this stream have no names"),
        (["--cap", "1,2"], "--cap takes how many are shown at most, and of which items"),
        (["--pinned", "1,1"], "pinned to one slot only"),
        (["--pinned", "1,2,3"], "pinned slot"),
        (["--pinned", "1", "--learners", "fi-dp"], "keeps to no rules"),
        (["taste-labels", "--pinned", "1"], "simulate streams one by one"),
        (["--pinned", "1", "--cap", "1:1,2", "--cap", "1:2,3"], "overlap"),
    ],
)
def test_wrong_rules_are_refused(options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "taste-groups", "--slots", "2", *options])
    assert isinstance(result.exception, DiminuendoError), result.output
    assert said in str(result.exception)


def test_rules_with_contexts_are_refused() -> None:
    known = open_stream("taste-labels", context="group")
    with pytest.raises(InvalidInput, match="Hindsight by type knows no rules"):
        simulate(known, slots=2, rules=RULES)
    assert simulate(taste_groups(200), slots=2, learners="random", seeds=1, rules=SlateRules()).rules is None
