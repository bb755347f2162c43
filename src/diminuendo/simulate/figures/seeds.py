"""Every run as a dot: what a learner earns depends on luck, and the unlucky runs are the ones to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from diminuendo.errors import InvalidInput
from diminuendo.simulate.figures.style import COLOURS, LineStyle, style, write
from diminuendo.types import Floats

Groups = Mapping[str, Mapping[str, Sequence[float]]]
"""Runs by name, and by kind of run."""

MANY = 30
"""Dots are smaller where there are more runs than this."""
DOTS = 110
"""So many dots fit beside each other, from the least run to the greatest."""
STEP, ROOM = 0.05, 0.15
"""How far dots are moved up or down that would lie on each other, and how far at most; rows are 1 apart."""


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
    every = [share for group in groups.values() for runs in group.values() for share in runs]
    wide = (max(every) - min(every)) / DOTS
    for row, (name, group) in enumerate(groups.items()):
        for number, kind in enumerate(kinds):
            runs = np.asarray(group.get(kind, ()), dtype=np.float64)
            if not len(runs):
                continue
            look = LineStyle(COLOURS[number % len(COLOURS)], "o", "-") if rows is None else rows[name]
            label = kind if row == 0 else None
            middle = -row + 0.18 * (len(kinds) - 1) - 0.36 * number
            spread = beside(runs, wide)
            worst, colour = runs.argmin(), look.colour
            size = 4.0 if len(runs) <= MANY else 3.0
            axes.plot(
                runs, middle + spread, look.marker, color=colour, alpha=0.5, ms=size, mew=0, label=label
            )
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


def beside(runs: Floats, wide: float) -> Floats:
    """How far each run is moved up or down, so that dots `wide` apart or nearer do not hide each other.

    Runs are taken in rising order. Each goes to the height nearest to the middle whose last dot is far enough to the
    left; where there is none, to the height whose last dot is farthest.
    """
    steps = int(ROOM / STEP + 1e-9)
    heights = [0.0, *(sign * STEP * step for step in range(1, steps + 1) for sign in (1, -1))]
    last = np.full(len(heights), -np.inf)
    moved = np.zeros(len(runs))
    for run in np.argsort(runs, kind="stable"):
        free = np.flatnonzero(runs[run] - last >= wide)
        place = int(free[0]) if len(free) else int(last.argmin())
        moved[run], last[place] = heights[place], runs[run]
    return moved
