"""The report: everything in one file, names that stay names, numbers that are the simulation's."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from diminuendo import NoisyOr, Users
from diminuendo.cli.simulate import _show
from diminuendo.errors import InvalidInput
from diminuendo.simulate import Shown, Simulation, Sweep, simulate
from diminuendo.simulate.report import write_report
from diminuendo.simulate.report.figures import plates
from diminuendo.simulate.report.html import escaped
from diminuendo.simulate.report.page import section
from diminuendo.simulate.report.text import COLUMNS, headlines, table_rows
from diminuendo.simulate.result import items_kept
from diminuendo.simulate.table import health_said, main_learner
from diminuendo.streams import taste_groups
from tests.simulate.specimens import small, tiny

FETCH = {"src", "srcset", "href", "data", "poster", "action", "background"}
"""Attributes that make a browser fetch something."""


class Read(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words = self.styles = ""
        self.open: list[str] = []
        self.feed(page)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.styles += data
        else:
            self.words += data

    def all(self, tag: str, name: str) -> list[str]:
        return [value for its, attribute, value in self.attributes if (its, attribute) == (tag, name)]


def outside(attributes: Iterable[tuple[str, str]], styles: str = "") -> list[str]:
    """What would be fetched from elsewhere: by attributes (name, value), and by style sheets."""
    result = re.findall(r"url\(\s*[\"']?([^\"')]+)", styles) + ["@import"] * styles.count("@import")
    for name, value in attributes:
        result += (
            [value] if name.rpartition("}")[2] in FETCH else re.findall(r"url\(\s*[\"']?([^\"')]+)", value)
        )
    return [address for address in result if not address.startswith(("#", "data:"))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(Sweep([small()]), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def read(page: Path) -> Read:
    return Read(page.read_text(encoding="utf-8"))


def pictures(read: Read) -> list[str]:
    return [base64.b64decode(address.partition(",")[2]).decode() for address in read.all("img", "src")]


def test_nothing_is_fetched(read: Read) -> None:
    assert outside([(name, value) for _, name, value in read.attributes], read.styles) == []
    assert "--ink" in read.styles
    for picture in pictures(read):
        parts = list(ElementTree.fromstring(picture).iter())
        styles = "".join(part.text or "" for part in parts if part.tag.endswith("style"))
        assert outside([pair for part in parts for pair in part.items()], styles) == []
    for planted in (
        ("src", "https://x.org/a.png"),
        ("style", "fill: url(//x.org/a)"),
        ("{a}href", "file.html"),
    ):
        assert outside([planted]), planted
    assert outside([], "@import 'x'; a { background: url(x.png) }") == ["x.png", "@import"]


def test_names_stay_names(read: Read) -> None:
    assert "script" not in read.tags
    assert not [name for _, name, _ in read.attributes if name.startswith("on")]
    assert all(address.startswith("data:image/svg+xml;base64,") for address in read.all("img", "src"))
    assert "<i>../taste</i>" in read.words, "as it was written"
    assert "\x00" not in read.words
    # Pictures are well-formed, whatever names hold.
    drawn = "".join("".join(ElementTree.fromstring(picture).itertext()) for picture in pictures(read))
    for name in ("<script>window.hacked", "$\\frac{1$ & Co; 100 $", "中文 Ωmega é", "]]></svg><b>&amp;"):
        assert name in drawn
    lost = "\N{REPLACEMENT CHARACTER}"
    assert escaped("<b a='\"'>\x07\ud800") == f"&lt;b a=&#x27;&quot;&#x27;&gt;{lost}{lost}"


def test_all_figures_are_there_as_files_too(page: Path, read: Read) -> None:
    for kind in ("png", "svg"):
        result = {path.stem.split("-taste-i-")[1] for path in (page.parent / "figures").glob(f"*.{kind}")}
        learners = ("private", "nonprivate", "fi-dp", "paper")
        assert result == {"reward", "regret", "price", "runs", "budget", "arrival-private"} | {
            f"slates-{name}" for name in learners
        }
    assert len(pictures(read)) == 10
    assert read.tags.count("figure") == read.tags.count("figcaption") == 4
    assert all(read.all("img", "alt"))
    assert len(read.all("img", "alt")) == 10
    assert set(page.parent.iterdir()) == {page, page.parent / "figures"}, "also where a stream is called ../"


def test_the_page_says_what_it_must(read: Read) -> None:
    assert read.tags.count("h1") == 1
    assert read.all("html", "lang") == ["en"]
    assert "This report is not private." in read.words
    assert "Do not hand it to anyone from whom these users are to be protected." in read.words
    assert "e^1 = 2.72 times" in read.words
    assert "at epsilon 10 the factor is e^10 = 22,027" in read.words
    assert "Student's t" in read.words
    first = read.words.index
    assert (
        first("arrived one after the other")
        < first("private at epsilon 1")
        < first("Guarantee")
        < first("Over time")
    )


def test_the_answer_in_numbers() -> None:
    simulation = small()
    said = {one.whose: float(one.share.removesuffix("\N{NO-BREAK SPACE}%")) for one in headlines(simulation)}
    assert main_learner(simulation) == "private"
    for whose, share in said.items():
        name, epsilon = whose.split(" ")[0], 1.0 if "epsilon" in whose else None
        runs = [r.mean_reward for r in simulation.results if (r.learner, r.asked_epsilon) == (name, epsilon)]
        assert share == pytest.approx(100 * np.mean(runs) / simulation.benchmarks.greedy.value, abs=0.05)
    assert [whose.split(" ")[0] for whose in said] == ["private", "nonprivate", "random"]
    rows = list(table_rows(simulation))
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert len(rows) == 2 + 3 * 2 + 2, "hindsight; three learners at two budgets; two that listen to none"
    (paper,) = [row for row in rows if row[0] == "paper" and row[2] == "1"]
    assert 0 < float(paper[3]) < 1, "proved, not asked for"


def test_the_report_is_about_somebody_who_promises_something() -> None:
    simulation = tiny()
    (run,) = simulation.results
    twin = replace(run, learner="twin-open", epsilon=None, delta=None)
    chance = replace(run, learner="random", epsilon=0.0, delta=0.0, asked_epsilon=None)
    assert main_learner(replace(simulation, results=[twin, chance, run])) == "fi-dp"
    assert main_learner(replace(simulation, results=[twin, chance])) == "twin-open"
    loose = replace(run, delta=1.0001e-6)
    assert list(table_rows(replace(simulation, results=[loose])))[-1][4] == "1.01e-6"


def captions(simulation: Simulation, folder: Path) -> str:
    """All that is said under the figures."""
    return " ".join(plate.caption for plate in plates(simulation, folder, "x"))


def test_captions_say_what_is_so(tmp_path: Path) -> None:
    simulation = tiny(epsilons=(1.0, 10.0))
    once = captions(simulation, tmp_path)
    assert "do not listen" not in once, "everybody does"
    assert "as a share of the budget asked for." in once
    assert "Grey" not in once
    visited = [replace(run, max_rounds_per_user=3) for run in simulation.results]
    deaf = replace(visited[0], learner="random", asked_epsilon=None)
    others = list(range(100, 100 + items_kept(2)))  # none of greedy's
    full = Shown(others, [300], [[0.1]] * len(others))
    odd = replace(simulation, results=[replace(visited[0], shown=full), *visited[1:], deaf])
    several = captions(odd, tmp_path)
    assert "that ignore epsilon are the same" in several
    assert "what one round of a user may cost; up to 3 rounds of one user share it" in several
    assert "Grey: not among" in several


def test_the_same_runs_give_the_same_report(page: Path, tmp_path: Path) -> None:
    again = write_report(Sweep([small()]), tmp_path)
    assert again.read_bytes() == page.read_bytes()


def test_several_simulations_have_contents(tmp_path: Path) -> None:
    nobody = simulate(Users(NoisyOr(), np.zeros((40, 4))), slots=2, learners=["random"], seeds=1)
    clicked = simulate(
        taste_groups(300, 10, seed=1), slots=2, learners=["private"], feedback="click", seeds=1
    )
    read = Read(write_report(Sweep([nobody, clicked]), tmp_path).read_text())
    inside = [address.removeprefix("#") for address in read.all("a", "href")]
    assert len(inside) == 2
    assert set(inside) <= set(read.all("section", "id"))
    assert read.tags.count("h1") == 1
    assert "Afterwards the slot of the first click came back" in read.words
    assert "one question to each user" in "".join(pictures(read))
    assert len(read.all("img", "src")) == 3 + 5, "random makes no queries, and its slates teach nothing"


def test_there_must_be_something_to_report(tmp_path: Path) -> None:
    for nothing in (Sweep([]), Sweep([replace(tiny(), results=[])])):
        with pytest.raises(InvalidInput, match="nothing to report"):
            write_report(nothing, tmp_path)


def test_a_page_and_the_command_say_whether_anybody_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Users who want nothing and users who never answer publish the same: noise."""
    many, missing = 4000, NoisyOr()
    silent = Users(missing, np.zeros((many, 4)))
    eager = Users(missing, np.ones((many, 4)))
    for users, state in ((silent, "no signal"), (eager, "ok")):
        result = simulate(
            users, slots=2, feedback="bandit", learners=["private", "random"], epsilon=10.0, seeds=2
        )
        said = f"Health, from published rewards: private {state} in 2 of 2 runs."
        assert health_said(result).startswith(said)
        assert ("Check that feedback is sent" in health_said(result)) == (state == "no signal")
        assert health_said(result) in Read(section(result, [], "one", alone=True, notice="")).words
        _show(Sweep([result]), None, None)
        assert said in " ".join(capsys.readouterr().out.split())
    assert health_said(simulate(eager[:30], slots=2, learners="random", seeds=1)) == ""
