"""Every figure of README and docs can be had as PDF and SVG with its numbers, and shows these numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.pick import SlatePicker
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.plan import plan
from diminuendo.simulate.figures.prices import price_curve
from examples import one_release
from measurements.pages import pages
from measurements.paper_figures import FIGURES, KINDS, paper_figures
from measurements.pictures import PICTURES
from measurements.results import ROOT, read_results
from measurements.run import METHODS, plan_drawn
from tests.kit.slow import mostly_slow

SCREENSHOTS = {"report.png"}
"""Pictures of pages: there are no numbers to hand on but those of other figures."""
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def test_every_picture_on_a_page_is_a_figure_or_a_screenshot() -> None:
    shown = {(page.parent / image).resolve() for page in pages() for image in IMAGE.findall(page.read_text())}
    assert shown == {ROOT / "docs" / name for name in {*FIGURES, *SCREENSHOTS}}
    assert {name for name, picture in PICTURES.items() if picture.screenshot} == SCREENSHOTS
    assert "\n\t$(BIN)/python -m measurements.paper_figures\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", mostly_slow(list(FIGURES), {"planning.png"}))
def test_a_figure_lies_beside_its_numbers(name: str, tmp_path: Path) -> None:
    results, stem = read_results(), Path(name).stem
    numbers, *pictures = paper_figures(tmp_path, results, [name])
    assert {path.name for path in tmp_path.iterdir()} == {f"{stem}.{kind}" for kind in ("json", *KINDS)}
    shown = json.loads(numbers.read_text())
    assert shown == json.loads(json.dumps(PICTURES[name].shown(results)))
    assert len(re.findall(r"\d\.\d", numbers.read_text())) > 10
    pdf, svg, png = (path.read_bytes() for path in pictures)
    assert pdf.startswith(b"%PDF-")
    assert png.startswith(b"\x89PNG")
    assert ElementTree.fromstring(svg).tag.endswith("}svg")
    again = paper_figures(tmp_path / "again", results, [name])
    assert [path.read_bytes() for path in again[1:]] == [pdf, svg, png], "the same figure is the same file"


def test_a_figure_without_its_numbers_is_not_drawn_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = read_results()
    results["audit"] = replace(results["audit"], drawn={})
    assert paper_figures(tmp_path, results, ["audit.png"]) == []
    assert list(tmp_path.iterdir()) == []
    said = capsys.readouterr()
    assert "NOT DRAWN, audit.png" in said.out + said.err


def test_figures_show_the_numbers_beside_them(tmp_path: Path) -> None:
    picture, (numbers, *_) = (
        PICTURES["planning.png"],
        paper_figures(tmp_path, read_results(), ["planning.png"]),
    )
    shown = json.loads(numbers.read_text())
    shown["losses"][0] = [2 * loss for loss in shown["losses"][0]]
    picture.draw(shown, tmp_path / "other.png")
    assert (tmp_path / "other.png").read_bytes() != (tmp_path / "planning.png").read_bytes()


def test_what_is_kept_for_pictures_is_of_the_same_runs_as_tables() -> None:
    results = read_results()
    demo, curves = results["demo"], results["demo"].drawn
    for name, line in curves["mean"].items():
        runs = demo.cells.get(name) or demo.cells[f"{name} 1"]
        assert line[-1] / curves["at"][-1] / curves["greedy"] == pytest.approx(np.mean(runs), abs=1e-4)
    audit = results["audit"]
    for subject, by_method in audit.drawn.get("shares", {}).items():
        claimed, *shown = audit.rows[subject]
        for method, said in zip(METHODS, shown, strict=True):
            if said == "-":
                assert method not in by_method
            else:
                part, _, of = said.partition(" of ")
                assert by_method[method] * float(of or claimed) == pytest.approx(float(part), abs=0.011)


def test_a_plan_is_kept_as_its_command_draws_it() -> None:
    result = plan(20, 2, 500).with_prices(epsilons=[1.0])
    kept, drawn = plan_drawn(result.as_json()), price_curve(result)._asdict()
    assert kept.pop("losses") == [pytest.approx(losses, abs=1e-4) for losses in drawn.pop("losses")]
    assert kept == drawn


class AsPublished:
    """The answers of one release, as they were published."""

    def __init__(self, steps: list[dict[str, object]]) -> None:
        self.asked = list[str]()
        self._answers = {
            str(step["question"]): Measured(
                np.array(step["published"]), np.ones(len(one_release.TASTES)), float(str(step["deviation"]))
            )
            for step in steps
        }

    def singletons(self) -> Measured:
        return self._answer("singles")

    def losses(self, item: int) -> Measured:
        return self._answer(f"row of {list(one_release.TASTES)[item]}")

    def residual(self) -> Measured:
        return self._answer("rest")

    def _answer(self, question: str) -> Measured:
        self.asked.append(question)
        return self._answers[question]


def test_the_picture_of_one_release_is_what_the_learner_does() -> None:
    result = one_release.release()
    steps, films = result["steps"], result["films"]
    asked = AsPublished(steps)
    picker: Any = SlatePicker(ItemAvailability(len(films), one_release.SLOTS))
    picked = picker.slate(asked)
    assert [films[item] for item in picked.slate] == steps[-1]["slate"]
    assert asked.asked == [step["question"] for step in steps]
    np.testing.assert_allclose(picked.gains, steps[-1]["believed"], rtol=1e-12)
    assert result["epsilon"] == pytest.approx(one_release.EPSILON)


def test_what_one_release_publishes_is_the_truth_and_noise() -> None:
    off = [
        (np.array(step["published"]) - step["without noise"]) / step["deviation"]
        for seed in range(10)
        for step in one_release.release(seed)["steps"]
    ]
    # 400 squares of standard normal numbers: their mean has deviation sqrt(2/400) = .07. Ticks matter less.
    assert 1 - 5 * 0.07 < np.mean(np.square(off)) < 1 + 5 * 0.07
    assert np.abs(np.mean(off)) < 5 / np.sqrt(400)


@pytest.mark.slow
def test_how_often_one_release_ends_so() -> None:
    """As docs/maths/overlap.md says."""
    ends = [sorted(one_release.release(seed)["steps"][-1]["slate"]) for seed in range(100)]
    assert ends.count(["Alien", "Grease", "Up"]) == 81
    assert ends.count(["Dune", "Grease", "Up"]) == 12
