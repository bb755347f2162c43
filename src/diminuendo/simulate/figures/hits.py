"""Hits a day: a bar for each who chooses, with today's slate as the line to clear."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import COLOURS, FAINT, INK, panel, short, thousands
from diminuendo.simulate.hits import Hits
from diminuendo.simulate.table import TODAY
from diminuendo.streams.per_day import PerDay


def hits_figure(rows: list[Hits], day: PerDay) -> Figure:
    """Bars in the order of the rows, the private ones in colour; whiskers: 95 percent interval of the mean."""
    figure, axes = panel(1.1 + 0.34 * len(rows))
    for place, one in enumerate(rows):
        colour = COLOURS[0] if one.cost is not None else FAINT
        spread = None if np.isnan(one.half) else one.half
        axes.barh(-place, one.hits, height=0.62, color=colour, xerr=spread, ecolor=INK, capsize=2)
        axes.annotate(
            day.said(one.hits),
            (one.hits + (spread or 0.0), -place),
            textcoords="offset points",
            xytext=(4, 0),
            va="center",
            fontsize=9.5,
        )
        if one.who == TODAY:
            axes.axvline(one.hits, color=INK, linestyle="--", linewidth=1)
    axes.set_yticks([-place for place in range(len(rows))], [short(one.who) for one in rows])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=f"{short(day.hits)} a day", xlim=(0, 1.2 * max(one.hits for one in rows) or 1))
    axes.grid(False, axis="y")
    thousands(axes)
    return figure
