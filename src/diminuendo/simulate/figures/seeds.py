"""Every run as a dot: what a learner earns depends on luck, and the unlucky runs are the ones to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from diminuendo.errors import InvalidInput
from diminuendo.simulate.figures.style import COLOURS, LineStyle, style, write

Groups = Mapping[str, Mapping[str, Sequence[float]]]
"""Runs by name, and by kind of run."""


def plot_seeds(groups: Groups, path: Path | str, title: str = "share of hindsight greedy, each run") -> Path:
    """One row per name, one colour per kind of run; dots are runs, bars their means, rings the worst of them."""
    with style():
        return write(seeds_figure(groups, title), Path(path))


def seeds_figure(
    groups: Groups, title: str, *, width: float = 8.0, rows: Mapping[str, LineStyle] | None = None
) -> Figure:
    """The picture. `rows`: line styles by name, where there is one kind of run; otherwise each kind has its colour."""
    if not groups or not all(any(len(runs) for runs in group.values()) for group in groups.values()):
        raise InvalidInput("There is nothing to draw: give at least one run for each name.")
    kinds = list(dict.fromkeys(kind for group in groups.values() for kind in group))
    figure = Figure(
        figsize=(width, 0.9 + (0.55 if rows is None else 0.33) * len(groups)), layout="constrained"
    )
    axes = figure.subplots()
    for row, (name, group) in enumerate(groups.items()):
        for number, kind in enumerate(kinds):
            runs = np.asarray(group.get(kind, ()), dtype=np.float64)
            if not len(runs):
                continue
            look = LineStyle(COLOURS[number % len(COLOURS)], "o", "-") if rows is None else rows[name]
            label = kind if row == 0 else None
            middle = -row + 0.18 * (len(kinds) - 1) - 0.36 * number
            # so that equal runs do not hide each other
            spread = 0.06 * ((np.argsort(np.argsort(runs)) % 3) - 1)
            worst, colour = runs.argmin(), look.colour
            axes.plot(runs, middle + spread, look.marker, color=colour, alpha=0.55, markersize=4, label=label)
            axes.plot([runs.mean()] * 2, [middle - 0.15, middle + 0.15], color=colour, linewidth=2.5)
            axes.plot(runs[worst], middle + spread[worst], "o", color=colour, markersize=8, fillstyle="none")
    axes.set_yticks([-row for row in range(len(groups))], list(groups))
    axes.set_xlabel(f"{title}   (bar: mean; ring: worst)")
    axes.set_ylim(-len(groups) + 0.5, 0.5)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)
    if rows is None:
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(kinds))
    return figure
