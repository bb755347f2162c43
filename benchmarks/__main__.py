"""Time everything in one process and print ratios."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.charges import charges
from benchmarks.contributions import contributions
from benchmarks.draws import draws
from benchmarks.entry import entry
from benchmarks.flat import flat
from benchmarks.hindsight import hindsight
from benchmarks.machine import machine
from benchmarks.memory import memory
from benchmarks.million_draws import million_draws
from benchmarks.noise_costs import noise_costs
from benchmarks.offline_greedy import offline_greedy
from benchmarks.one_by_one import one_by_one
from benchmarks.private_replay import private_replay
from benchmarks.replay import replay
from benchmarks.report import HOLDS, Disagreement, Part
from benchmarks.selection import selection
from benchmarks.service import service
from benchmarks.service_fronts import fronts
from benchmarks.service_payoff import payoff
from benchmarks.service_releases import releases
from benchmarks.sweeps import sweeps
from benchmarks.threads import threads
from benchmarks.waiting import waiting

WIDTH = 110
"""Of tables, whether on a screen or in a file."""

PARTS: dict[str, Callable[[], Iterator[Part]]] = {
    "greedy": offline_greedy,
    "private": private_replay,
    "replay": replay,
    "flat": flat,
    "hindsight": hindsight,
    "draws": draws,
    "million": million_draws,
    "select": selection,
    "noise": noise_costs,
    "add": contributions,
    "ledger": charges,
    "sweep": sweeps,
    "threads": threads,
    "waiting": waiting,
    "one-by-one": one_by_one,
    "service": service,
    "fronts": fronts,
    "releases": releases,
    "payoff": payoff,
    "memory": memory,
    "import": entry,
}


def main() -> None:
    """Run the parts asked for, print each as it ends, and keep all as JSON if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="also write numbers.json and tables.md into this folder"
    )
    parser.add_argument("--only", choices=PARTS, action="append", help="this part only; may be repeated")
    asked = parser.parse_args()
    console, errors = Console(width=WIDTH), Console(stderr=True)
    where = machine()
    console.print(
        "; ".join(f"{name} {what}" for name, what in where.items())
        + "\nThe best of several laps, taken in turns. Seconds vary, ratios less so.\n"
    )
    done: list[Part] = []
    for name in asked.only or PARTS:
        try:
            for part in PARTS[name]():
                part.print(console)
                done.append(part)
        except Disagreement as found:
            errors.print(f"[red]Not the same computation, so no comparison:[/] {found}")
            sys.exit(1)
    console.print("All claims together", style="bold")
    for part in done:
        for line in part.verdicts:
            console.print(f"  {part.name}: {line}", highlight=False, soft_wrap=True)
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        kept = {"machine": where, "parts": [part.as_json() for part in done]}
        (asked.out / "numbers.json").write_text(json.dumps(kept, indent=2) + "\n")
        (asked.out / "tables.md").write_text(_page(where, done))


def _page(where: dict[str, str], done: list[Part]) -> str:
    """All claims first, then the tables that they come from."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`: ours, the peers and the floor in one run, the best of several laps taken in turns. "
        "Seconds belong to the machine; ratios vary less.",
        "",
        *(f"- {name}: {what}" for name, what in where.items()),
        "",
        "## Claims",
        "",
        "| part | holds | claim |",
        "| --- | --- | --- |",
    ]
    for part in done:
        for line in part.verdicts:
            said, claim = line.split(": ", 1)
            lines.append(f"| {part.name} | {'yes' if said == HOLDS else '**no**'} | {claim} |")
    return "\n".join([*lines, "", "## Tables", "", *(part.as_markdown() for part in done)])


if __name__ == "__main__":
    main()
