"""The report: simulations as one page to read. It is not private, and says so.

`write_report` writes `report.html`, which holds everything it shows, and the figures as PNG, SVG and PDF beside it.
"""

from __future__ import annotations

import re
from pathlib import Path

import diminuendo
from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.privacy.sentence import guarantee_sentence
from diminuendo.simulate.result import Simulation, Sweep

with extra("simulate"):
    from diminuendo.simulate.report.figures import plates
    from diminuendo.simulate.report.html import escaped
    from diminuendo.simulate.report.page import again, heading, page, section
    from diminuendo.simulate.report.text import headlines

__all__ = ["guarantee_sentence", "write_report"]

NOT_PRIVATE = (
    "Rewards, regret and the pictures are computed from the preferences of all users "
    "and are for evaluation. Do not hand it to anyone from whom these users are to be protected."
)


def write_report(sweep: Sweep, out: Path | str, command: str | None = None) -> Path:
    """Write out/report.html and out/figures/; returns the page. `command`: the one that was typed."""
    result = [simulation for simulation in sweep.simulations if simulation.results]
    if not result:
        raise InvalidInput("There is nothing to report: the sweep holds no run. Run at least one learner.")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    alone = len(result) == 1
    anchors = [f"{number}-{_plain(one.stream['name'])}" for number, one in enumerate(result, start=1)]
    notice = f'<p class="warning"><b>This report is not private.</b> {NOT_PRIVATE}</p>'
    body = "" if alone else _contents(result, anchors) + notice
    for simulation, anchor in zip(result, anchors, strict=True):
        drawn = list(plates(simulation, folder / "figures", anchor))
        body += section(
            simulation, drawn, f"simulation-{anchor}", alone=alone, notice=notice if alone else ""
        )
    title = heading(result[0]) if alone else f"{len(result)} simulations"
    target = folder / "report.html"
    body += again(command)
    target.write_text(page(f"diminuendo: {title}", body, diminuendo.__version__), encoding="utf-8")
    return target


def _contents(simulations: list[Simulation], anchors: list[str]) -> str:
    """A list of the simulations with their headlines."""
    lines = "".join(
        f'<li><a href="#simulation-{anchor}">{escaped(heading(one))}</a>: '
        + escaped("; ".join(f"{headline.whose} {headline.share}" for headline in headlines(one)))
        + "</li>"
        for one, anchor in zip(simulations, anchors, strict=True)
    )
    return (
        f"<h1>{len(simulations)} simulations of private slates</h1><p>Rewards as shares of what greedy earns in "
        "hindsight, when it knows all users beforehand and shows one slate to all users.</p>"
        f"<nav><ul>{lines}</ul></nav>"
    )


def _plain(name: str) -> str:
    """A name that is safe in file names and addresses."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:40].strip("-") or "stream"
