"""Measure everything that README and docs show, or what is left of it, and write it there.

Finished runs are kept in out/measurements, so that it can be stopped and goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time

from diminuendo.cli.screen import say_plainly
from measurements.entries import ENTRIES, SEEDS, Entry
from measurements.pages import write_pages
from measurements.pictures import PICTURES, CannotDraw, draw
from measurements.results import ROOT, Kept, Results, read_results, write_results
from measurements.run import Failed, measure
from measurements.streams import MissingData

BAR = 20
"""How wide the bar is that says how much is done."""


def main() -> None:
    """Measure the entries asked for, keep what they came to, and render pages and pictures."""
    parser = argparse.ArgumentParser(prog="python -m measurements", description=__doc__)
    parser.add_argument("--only", choices=ENTRIES, action="append", help="this entry only; may be repeated")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of everything; default: {SEEDS}")
    parser.add_argument("--jobs", type=int, default=-1, help="runs at the same time; default: one per core")
    parser.add_argument(
        "--write", action="store_true", help="only write pages and pictures from what is kept"
    )
    asked = parser.parse_args()
    results = read_results()
    if asked.write:
        write([name for name, picture in PICTURES.items() if not picture.screenshot], results)
        return
    chosen = [entry for entry in ENTRIES.values() if not asked.only or entry.name in asked.only]
    skipped, failed = [], []
    for number, entry in enumerate(chosen):
        filled = BAR * number // len(chosen)
        say_plainly(f"[{'#' * filled}{'.' * (BAR - filled)}] {number + 1} of {len(chosen)}: {entry.name}")
        say_plainly("  " + "\n  ".join(entry.commands(asked.seeds)))
        try:
            began = time.monotonic()
            result = measure(entry, asked.seeds, asked.jobs, say_plainly)
            say_plainly(f"  {time.monotonic() - began:.0f} s")
        except MissingData as missing:
            say_plainly(f"  SKIPPED, with its last results: {missing}")
            skipped.append(entry.name)
            continue
        except (Failed, KeyboardInterrupt) as ended:
            said = str(ended) or "Interrupted."
            say_plainly(f"{said} What is finished is kept; the same command goes on from there.")
            sys.exit(ended.status if isinstance(ended, Failed) else 130)
        if not result.spec.get("passed", 1):
            failed.append(entry.name)
        if keep(entry, result, results):
            write([name for name, picture in PICTURES.items() if entry.name in picture.entries], results)
    if skipped:
        say_plainly(f"SKIPPED for want of data: {', '.join(skipped)}.")
    if failed:
        sys.exit(f"FAILED, and pages say so: {', '.join(failed)}.")


def keep(entry: Entry, found: Kept, results: Results) -> bool:
    """Put it in place of what was kept; fewer runs never take the place of more."""
    old = results.get(entry.name)
    if old is not None and old.seeds > found.seeds:
        say_plainly(f"  not kept: there are {old.seeds} runs of it already, and these are {found.seeds}.")
        return False
    results[entry.name] = found
    ordered = {name: results[name] for name in ENTRIES if name in results}
    results.clear()
    results.update(ordered)
    write_results(results)
    return True


def write(pictures: list[str], results: Results) -> None:
    """Render all pages, and these pictures, where all that they show was measured."""
    for page in write_pages(results):
        say_plainly(f"  written: {page.relative_to(ROOT)}")
    for name in pictures:
        if all(entry in results for entry in PICTURES[name].entries):
            try:
                say_plainly(f"  drawn: {draw(name, results).relative_to(ROOT)}")
            except CannotDraw as missing:
                say_plainly(f"  NOT DRAWN: {missing}")


if __name__ == "__main__":
    main()
