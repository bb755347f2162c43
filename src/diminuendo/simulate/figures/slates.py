"""Slates over time: the share of users who were shown each item, for each learner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import panel, short
from diminuendo.simulate.result import Result, Simulation, items_kept
from diminuendo.types import Floats

ROWS = 12
"""How many items are drawn; those of greedy's slate first, then those that were shown most."""
MARK = "★ "
"""Before the names of greedy's items."""
NOT_KEPT = "#c8c8c8"
"""Grey: of an item that others were shown more often than, nothing is known."""


def chosen_items(simulation: Simulation, runs: Sequence[Result]) -> list[int]:
    """The items in the pictures of these runs: the same in all of them, so that they can be compared."""
    slate = [int(item) for item in simulation.benchmarks.greedy.slate][:ROWS]
    totals: dict[int, float] = {}
    for run in runs:
        if not _flat(
            run
        ):  # a run that shows all items equally often would fill the picture with arbitrary items
            for item, shares in zip(run.shown.items, run.shown.shares, strict=True):
                totals[item] = totals.get(item, 0.0) + float(np.mean(shares))
    others = sorted((item for item in totals if item not in slate), key=lambda item: (-totals[item], item))
    return slate + others[: ROWS - len(slate)]


def slates_figure(simulation: Simulation, run: Result, items: Sequence[int]) -> Figure:
    """One run: rows are items, columns stretches of rounds; darker: shown to more of the users."""
    figure, axes = panel(1.25 + 0.235 * len(items))
    grid = shares_of(run, items)
    blues = colormaps["Blues"].with_extremes(bad=NOT_KEPT)
    edges = np.concatenate([[0], run.shown.ends])
    mesh = axes.pcolormesh(
        edges, np.arange(len(items) + 1), grid, cmap=blues, vmin=0, vmax=1, rasterized=True
    )
    axes.invert_yaxis()
    slate = set(simulation.benchmarks.greedy.slate)
    names = [(MARK if item in slate else "") + label(simulation, item) for item in items]
    axes.set_yticks(np.arange(len(items)) + 0.5, names, fontsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.set(title=short(run.learner), xlabel="users so far")
    axes.set_xticks([0, run.rounds // 2, run.rounds], ["0", f"{run.rounds // 2:,}", f"{run.rounds:,}"])
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    bar = figure.colorbar(mesh, ax=axes, ticks=[0, 0.5, 1], fraction=0.04, pad=0.02)
    bar.ax.set_yticklabels(["nobody", "half", "all"], fontsize=9)
    bar.outline.set_visible(False)
    return figure


def label(simulation: Simulation, item: int, longest: int = 24) -> str:
    """The name of an item where it has one."""
    names = simulation.stream.get("labels")
    return (short(names[item], longest) if names else "") or f"item {item}"


def shares_of(run: Result, items: Sequence[int]) -> Floats:
    """Shares by item and stretch; NaN where it was not kept, because others were shown more often."""
    known = dict(zip(run.shown.items, run.shown.shares, strict=True))
    # Where there was room for more, everything that was shown is there.
    other = np.nan if len(known) >= items_kept(run.slots) else 0.0
    return np.array([known.get(item, [other] * len(run.shown.ends)) for item in items])


def _flat(run: Result) -> bool:
    """Whether even the most shown item was shown little more often than chance would."""
    most = max((float(np.mean(shares)) for shares in run.shown.shares), default=0.0)
    return most < 2 * run.slots / run.items
