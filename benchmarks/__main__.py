"""Time everything in one process and print ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
import numpy as np
from rich.console import Console

import diminuendo
from benchmarks.charges import charges
from benchmarks.contributions import contributions
from benchmarks.dense import dense
from benchmarks.draws import draws
from benchmarks.flat import flat
from benchmarks.hindsight import hindsight
from benchmarks.noise_costs import noise_costs
from benchmarks.offline_greedy import offline_greedy
from benchmarks.replay import replay
from benchmarks.report import Disagreement, Part
from benchmarks.selection import selection

WIDTH = 110
"""Of tables, whether on a screen or in a file."""

PARTS: dict[str, Callable[[], Iterator[Part]]] = {
    "greedy": offline_greedy,
    "replay": replay,
    "flat": flat,
    "hindsight": hindsight,
    "draws": draws,
    "dense": dense,
    "select": selection,
    "noise": noise_costs,
    "add": contributions,
    "ledger": charges,
}


def main() -> None:
    """Run the parts asked for, print each as it ends, and keep all as JSON if asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all numbers to this file")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part only; may be repeated")
    asked = parser.parse_args()
    console, errors = Console(width=WIDTH), Console(stderr=True)
    console.print(f"{_versions()}\nThe best of several laps, taken in turns. Seconds vary, ratios less so.\n")
    done: list[Part] = []
    for name in asked.only or PARTS:
        try:
            for part in PARTS[name]():
                part.print(console)
                done.append(part)
        except Disagreement as found:
            errors.print(f"[red]Not the same computation, so no comparison:[/] {found}")
            sys.exit(1)
    if asked.json:
        kept = {"versions": _versions(), "parts": [part.as_json() for part in done]}
        asked.json.write_text(json.dumps(kept, indent=2) + "\n")


def _versions() -> str:
    return (
        f"diminuendo {diminuendo.__version__}, Python {platform.python_version()}, numpy {np.__version__}, "
        f"numba {numba.__version__}, {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
