"""The part of the report about contexts: what they are worth, and what each type was shown."""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from pathlib import Path

import numpy as np
import pytest

from diminuendo.simulate import Simulation, Sweep, simulate
from diminuendo.simulate.report import write_report
from diminuendo.simulate.report.contexts import MOST_NAMED, contexts_section, said_of
from diminuendo.simulate.report.html import table
from diminuendo.streams import Users, taste_groups
from diminuendo.streams.contexts import Contexts
from tests.kit.slow import mostly_slow

HOSTILE = ["<b>DE</b>", '"><script>x</script>', "FR & co"]


def crowd(*, private: bool = False) -> Users:
    users = taste_groups(1_200, 12, groups=3, items_per_group=4, seed=2, right=0.9).with_columns(["group"])
    assert users.contexts is not None
    assert users.types is not None
    numbers = users.contexts.values_of(users.types)
    named = users.with_contexts(Contexts({"<i>": HOSTILE}, private=private), numbers)
    named.labels = tuple(f"<u>thing {item}</u>" for item in range(12))
    return named


@cache
def small() -> Simulation:
    names = ("private", "private-no-contexts", "private-separate", "random")
    return simulate(crowd(), slots=2, learners=names, epsilon=[1.0, 10.0], seeds=2)


def rows_of(page: str, caption: str) -> list[list[str]]:
    """The cells of the table whose caption begins so, as text."""
    (result,) = [part for part in page.split("<table")[1:] if re.search(rf"<caption>{caption}", part)]
    body = result.split("<tbody>")[1].split("</tbody>")[0]
    lines = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in body.split("</tr>")[:-1]]
    return [[unescape(re.sub(r"</?b>", "", cell)) for cell in line] for line in lines]


def test_nothing_is_said_where_nothing_is_known() -> None:
    plain = simulate(crowd().with_columns([]), slots=2, learners="random", seeds=1)
    assert contexts_section(plain) == ""


def test_the_comparison_holds_hindsight_and_everybody() -> None:
    known, reference = small().contexts, small().benchmarks.greedy.value
    assert known is not None
    rows = rows_of(contexts_section(small()), "Reward as a share")
    shares = [f"{value / reference:.3f}" for value in (reference, known.greedy, known.shuffled)]
    assert [row[1] for row in rows[:3]] == [row[2] for row in rows[:3]] == shares
    assert [row[0] for row in rows[3:]] == list(small().by_learner())
    assert [row[-1] for row in rows[3:]] == [
        "a slate per context",
        "not used",
        "a learner per context",
        "not used",
    ]
    mean = small().shares(small().by_learner(10.0)["private"]).mean()
    assert rows[3][2].startswith(f"{mean:.3f} ±")


def test_rewards_for_each_value() -> None:
    """Of a single column, so that values are types."""
    known = small().contexts
    assert known is not None
    rows = rows_of(contexts_section(small()), "Reward per user at epsilon 1.")
    assert [row[0] for row in rows] == [said_of(kind["context"]) for kind in known.shown]
    for number, row in enumerate(rows):
        runs = small().by_learner(1.0)["private-separate"]
        mean = sum(run.contexts["shown"][number]["reward"] for run in runs) / len(runs)
        assert row[1:3] == [f"{known.shown[number]['users']:,}", f"{known.shown[number]['greedy']:.3f}"]
        assert row[-1] == f"{mean:.3f}", "random chooses without anybody's answer; it is left out"


def test_slates_in_words_each_once() -> None:
    page = contexts_section(small())
    (run, _) = small().by_learner(1.0)["private-separate"]
    rows = rows_of(page, "What private-separate shows")
    shown = {tuple(kind["slate"]) for kind in run.contexts["shown"]}
    assert sorted(row[2] for row in rows) == sorted(
        "; ".join(f"<u>thing {item}</u>" for item in slate) for slate in shown
    )
    assert sum(int(row[1].replace(",", "")) for row in rows) == 1_200
    common = small().benchmarks.greedy.slate
    for kind in run.contexts["shown"]:
        for item in kind["slate"]:
            assert (f"<b>{escape(f'<u>thing {item}</u>')}</b>" in page) == (item not in common)


def test_types_that_are_shown_the_same_are_named_together() -> None:
    kinds = [
        {"context": {"x": str(number)}, "users": 1, "reward": 0.5, "slate": [0, 1]}
        for number in range(MOST_NAMED + 3)
    ]
    run = small().results[0]
    run.contexts["shown"], kept = kinds, run.contexts["shown"]
    try:
        (row,) = rows_of(contexts_section(small()), "What private shows")
    finally:
        run.contexts["shown"] = kept
    assert row[0] == "0; 1; 2; 3; 3 more"
    assert said_of({}) == "unknown"
    assert said_of({"a": "b", "c": "d"}) == "a b, c d"


def test_names_stay_names(tmp_path: Path) -> None:
    page = write_report(Sweep([small()]), tmp_path).read_text()
    thing = f"<u>thing {small().benchmarks.greedy.slate[0]}</u>"
    for name in (*HOSTILE, thing, "<i>"):
        assert escape(name) in page
        assert name not in page
    assert "<script" not in page


@pytest.mark.parametrize("private", mostly_slow([False, True], [True]))
def test_the_page_says_whether_contexts_are_hidden(private: bool, tmp_path: Path) -> None:
    result = simulate(crowd(private=private), slots=2, learners=["private", "random"], seeds=1)
    page = write_report(Sweep([result]), tmp_path).read_text()
    assert ("Here they are private" in page) == private
    assert ("Here they are public" in page) != private
    assert ("This is joint (1, 0.000001)-differential privacy" in page) == private


def test_words_of_a_table_stand_left() -> None:
    page = table("x", ["a", "b", "c"], [["1", "2", "three"]], words=[2])
    assert page.count(' class="word"') == 2
    assert '<td class="word">three</td>' in page
    assert "<td>2</td>" in page


def test_values_of_several_columns_are_told_apart() -> None:
    users = taste_groups(300, 12, groups=3, items_per_group=4, seed=2, right=0.9)
    assert users.types is not None
    unknown = users.with_contexts(Contexts(group=3, chance=3), np.full((300, 2), -1))
    users.types[:5] = unknown.types[:5]  # type: ignore[index]
    result = simulate(users, slots=2, learners="private-separate", seeds=1)
    rows = rows_of(contexts_section(result), "Reward per user")
    named = [row[0] for row in rows]
    assert sorted(named) == sorted(
        f"{column} {value}" for column in ("group", "chance") for value in (*"012", "not known")
    )
    assert named[:4] == sorted(named[:4], key=lambda name: ("chance" in name, "not known" in name)), (
        "columns together"
    )
    assert [int(row[1]) for row in rows if "not known" in row[0]] == [5, 5]
