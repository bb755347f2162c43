"""Every figure of README and docs as PDF, SVG and PNG, with the numbers that it shows beside it, as JSON.

python -m measurements.paper_figures [out/paper-figures]

All are drawn from what is kept in results.json, and from what takes seconds to compute; nothing is measured.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import matplotlib as mpl

from diminuendo.cli.screen import say_plainly
from measurements.pictures import PICTURES, CannotDraw
from measurements.results import ROOT, Results, read_results

KINDS = ("pdf", "svg", "png")
FIGURES = [name for name, picture in PICTURES.items() if not picture.screenshot]
"""All but pictures of pages, which have no numbers to hand on."""


def paper_figures(folder: Path, results: Results, names: Iterable[str] = FIGURES) -> list[Path]:
    """Write these figures, each drawn from the very file of numbers that is written beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    looks: dict[str, Any] = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "diminuendo"}
    always = patch.dict(os.environ, SOURCE_DATE_EPOCH="0")  # the same figure is the same file
    with always, mpl.rc_context(cast(Any, looks)):
        for name in names:
            picture, numbers = PICTURES[name], (folder / name).with_suffix(".json")
            try:
                shown = picture.shown(results)
            except CannotDraw as missing:
                say_plainly(f"NOT DRAWN, {name}: {missing}")
                continue
            numbers.write_text(json.dumps(shown, indent=1, allow_nan=False) + "\n")
            pictures = [(folder / name).with_suffix(f".{kind}") for kind in KINDS]
            for path in pictures:
                picture.draw(json.loads(numbers.read_text()), path)
            written += [numbers, *pictures]
    return written


def main(folder: Path) -> None:
    """Write all of them."""
    for path in paper_figures(folder, read_results()):
        say_plainly(str(path))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "paper-figures")
