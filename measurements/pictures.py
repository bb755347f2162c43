"""Pictures of what was measured. Each carries a digest of the numbers that it shows, so that an old one is noticed.

First comes what a picture shows, in plain numbers; it is drawn from these alone, so that they can be handed on with it
(`make paper-figures`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from diminuendo.audit.figure import AuditShares, plot_audit
from diminuendo.simulate.figures.earned import Curves, plot_reward
from diminuendo.simulate.figures.prices import PriceCurve, plot_prices
from diminuendo.simulate.figures.seeds import plot_seeds
from examples import bounds as proved
from examples import continuous as budgets
from examples import leak, one_release, paper_constants
from measurements import published
from measurements.results import ROOT, Results, digest
from measurements.run import OUT
from measurements.tables import LESS, WAYS

CARRIES = "measured"
"""Under this name a picture carries its digest."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REPORT = (1140, 1520)
"""How much of the report is shown, in pixels."""

Shown = dict[str, Any]
"""What a picture shows, as JSON can hold it."""


class CannotDraw(Exception):
    """Something that the picture needs is not on this machine."""


@dataclass(frozen=True)
class Picture:
    """A picture in docs: the entries whose numbers it shows, these numbers, and how they are drawn into a file."""

    entries: tuple[str, ...]
    shown: Callable[[Results], Shown]
    draw: Callable[[Shown, Path], object]
    screenshot: bool = False
    """Whether it is a picture of a page that a browser shows, so that there are no numbers to hand on."""


def seeds(results: Results) -> Shown:
    """Every run of `private` from rewards and clicks, to be drawn as a dot."""
    groups = {}
    for name, said in LESS.items():
        cells = results[name].cells
        row = said.split(":")[0].replace(
            ", all items renamed at half time (best *fixed* slate = 1)", " renamed"
        )
        groups[row] = {"epsilon 1": cells["private 1"], "epsilon .1": cells["private 0.1"]}
    return groups


def constants(results: Results) -> Shown:
    """Reward for each epsilon with the paper's constants and tight ones."""
    cells = results["paper-constants"].cells
    at = [f"{epsilon:g}" for epsilon in paper_constants.EPSILONS]
    return {
        "epsilons": list(paper_constants.EPSILONS),
        "tight": [cells[f"fi-dp {epsilon}"] for epsilon in at],
        "paper": [cells[f"paper {epsilon}"] for epsilon in at],
        "not private": [cells["streeter-golovin"]],
        "random": [cells["random"]],
    }


def continuous(results: Results) -> Shown:
    """Reward for each epsilon for continuous learners."""
    cells = results["continuous"].cells
    result = {way: [cells[f"{way} {epsilon:g}"] for epsilon in budgets.EPSILONS] for way in WAYS}
    return {"epsilons": list(budgets.EPSILONS), "ways": result, "not private": cells["boosted, not private"]}


def bounds(results: Results) -> Shown:
    """What is proved of regret: formulas, so nothing is measured."""
    by_items = {str(n_items): lines for n_items, lines in proved.bounds().items()}
    return {"users": list(proved.USERS), "by items": by_items}


def drawn_of(entry: str) -> Callable[[Results], Shown]:
    """What was kept with an entry for its picture."""

    def shown(results: Results) -> Shown:
        if not results[entry].drawn:
            raise CannotDraw(
                f"The numbers of the picture of {entry!r} were not kept when it was measured last: run "
                f"`python -m measurements --only {entry}`."
            )
        return results[entry].drawn

    return shown


def report(shown: Shown, path: Path) -> None:
    """The beginning of the report of the demo, as a browser shows it."""
    browser = next((result for name in BROWSERS if (result := shutil.which(name))), None)
    if browser is None:
        raise CannotDraw(f"{path.name} is a picture of a page; it needs chromium, see `make browser`.")
    wide, high = REPORT
    subprocess.run(
        [
            browser,
            "--headless",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--hide-scrollbars",
            f"--window-size={wide},{high}",
            f"--screenshot={path}",
            (OUT / "demo" / "report.html").as_uri(),
        ],
        check=True,
        capture_output=True,
    )


PICTURES = {
    "seeds.png": Picture(tuple(LESS), seeds, plot_seeds),
    "paper-constants.png": Picture(("paper-constants",), constants, paper_constants.draw),
    "continuous.png": Picture(
        ("continuous",),
        continuous,
        lambda shown, path: budgets.draw(path, shown["ways"], shown["not private"]),
    ),
    "reward.png": Picture(
        ("demo",), drawn_of("demo"), lambda shown, path: plot_reward(Curves(**shown), path)
    ),
    "published.png": Picture(
        ("published",),
        lambda results: published.shown(results["published"].cells, results["published"].spec),
        published.draw,
    ),
    "report.png": Picture(("demo",), lambda results: {}, report, screenshot=True),
    "audit.png": Picture(
        ("audit",), drawn_of("audit"), lambda shown, path: plot_audit(AuditShares(**shown), path)
    ),
    "bounds.png": Picture(
        (),
        bounds,
        lambda shown, path: proved.draw({int(n): lines for n, lines in shown["by items"].items()}, path),
    ),
    "leak.png": Picture(("leak",), drawn_of("leak"), leak.draw),
    "planning.png": Picture(
        ("planning",), drawn_of("planning"), lambda shown, path: plot_prices(PriceCurve(**shown), path)
    ),
    "one-release.png": Picture((), lambda results: one_release.release(), one_release.draw),
}
"""By their names in docs."""


def draw(name: str, results: Results) -> Path:
    """Draw it into docs, with its digest."""
    picture, path = PICTURES[name], ROOT / "docs" / name
    picture.draw(picture.shown(results), path)
    carried = PngImagePlugin.PngInfo()
    carried.add_text(CARRIES, digest(results, picture.entries))
    with Image.open(path) as image:
        image.load()
        image.save(path, pnginfo=carried, optimize=True, dpi=image.info.get("dpi"))
    return path


def carried(path: Path) -> str:
    """The digest of the numbers that a picture shows."""
    with Image.open(path) as image:
        return str(image.info.get(CARRIES, ""))
