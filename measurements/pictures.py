"""Pictures of what was measured. Each carries a digest of the numbers that it shows, so that an old one is noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, PngImagePlugin

from examples import bounds as proved
from examples import continuous as budgets
from examples import paper_constants
from measurements.results import ROOT, Results, digest
from measurements.run import OUT
from measurements.tables import LESS, WAYS

CARRIES = "measured"
"""Under this name a picture carries its digest."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REPORT = (1140, 1520)
"""How much of the report is shown, in pixels."""


class CannotDraw(Exception):
    """Something that the picture needs is not on this machine."""


@dataclass(frozen=True)
class Picture:
    """A picture in docs, and the entries whose numbers it shows."""

    entries: tuple[str, ...]
    draw: Callable[[Path, Results], None]
    from_runs: bool = False
    """Whether it shows more than is kept, so that it can be drawn only where the runs were made."""


def seeds(path: Path, results: Results) -> None:
    """Every run of `private` from payoffs and clicks as a dot."""
    from diminuendo.simulate.figures.seeds import plot_seeds

    groups = {}
    for name, said in LESS.items():
        cells = results[name].cells
        row = said.split(":")[0].replace(
            ", all items renamed at half time (best *fixed* slate = 1)", " renamed"
        )
        groups[row] = {"epsilon 1": cells["private 1"], "epsilon .1": cells["private 0.1"]}
    plot_seeds(groups, path)


def constants(path: Path, results: Results) -> None:
    """Payoff against epsilon with the paper's constants and tight ones."""
    cells = results["paper-constants"].cells
    at = [f"{epsilon:g}" for epsilon in paper_constants.EPSILONS]
    paper_constants.draw(
        {
            "tight": [cells[f"fi-dp {epsilon}"] for epsilon in at],
            "paper": [cells[f"paper {epsilon}"] for epsilon in at],
            "not private": [cells["streeter-golovin"]],
            "random": [cells["random"]],
        },
        path,
    )


def continuous(path: Path, results: Results) -> None:
    """Payoff against epsilon for continuous learners."""
    cells = results["continuous"].cells
    found = {way: [cells[f"{way} {epsilon:g}"] for epsilon in budgets.EPSILONS] for way in WAYS}
    budgets.draw(path, found, cells["boosted, not private"])


def payoff(path: Path, results: Results) -> None:
    """Payoff and regret over time in the demo, from the runs themselves."""
    from diminuendo.cli.simulate import DEMO_EPSILONS, DEMO_LEARNERS
    from diminuendo.simulate.figures.earned import plot_payoff
    from diminuendo.simulate.sweeps import simulate
    from diminuendo.streams import msweb

    how_many = results["demo"].seeds
    found = simulate(
        msweb(), slots=5, learners=DEMO_LEARNERS, epsilon=DEMO_EPSILONS, seeds=how_many, out=OUT / "demo"
    )
    plot_payoff(found, path)


def report(path: Path, results: Results) -> None:
    """The beginning of the report of the demo, as a browser shows it."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
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


def audit(path: Path, results: Results) -> None:
    """The picture that the audit drew."""
    shutil.copyfile(OUT / "audit" / "audit.png", path)


def bounds(path: Path, results: Results) -> None:
    """What is proved of regret: formulas, so nothing is measured."""
    proved.draw(proved.bounds(), path)


def planning(path: Path, results: Results) -> None:
    """The command draws it where it belongs."""


PICTURES = {
    "seeds.png": Picture(tuple(LESS), seeds),
    "paper-constants.png": Picture(("paper-constants",), constants),
    "continuous.png": Picture(("continuous",), continuous),
    "payoff.png": Picture(("demo",), payoff, from_runs=True),
    "report.png": Picture(("demo",), report, from_runs=True),
    "audit.png": Picture(("audit",), audit, from_runs=True),
    "bounds.png": Picture((), bounds),
    "planning.png": Picture(("planning",), planning, from_runs=True),
}
"""By their names in docs."""


def draw(name: str, results: Results) -> Path:
    """Draw it into docs, with its digest."""
    picture, path = PICTURES[name], ROOT / "docs" / name
    picture.draw(path, results)
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
