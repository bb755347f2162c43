"""Regret of whole runs against the number of rounds T, beside bounds, on logarithmic axes. Evaluation, not private.

A bound is a claim about one horizon, and constants such as rates depend on T. So each point is a run of its own, made
for its T; regret so far within one run is in earned.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from diminuendo.errors import InvalidInput
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.simulate.figures.style import COLOURS, FAINT, LineEnd, name_lines
from diminuendo.simulate.table import mean_and_band

MARKERS = "oDs^"


class Runs(NamedTuple):
    """The runs of one learner at several horizons."""

    regret: ArrayLike
    """The regret of a whole run: a row for each seed, a column for each horizon."""
    bound: Sequence[float]
    """The bound on it at each horizon."""


def exponent(horizons: Sequence[int], regret: ArrayLike) -> tuple[float, float]:
    """Fit regret = c T^a by least squares in logarithms.

    Parameters
    ----------
    horizons
        At least two different values of T.
    regret
        A row for each run (or a single row, as of a bound), a column for each horizon.

    Returns
    -------
    tuple of float
        The mean of a over the rows, and half the width of its 95 % interval (Student's t; NaN for one row). The
        interval is that of chance alone: the error of taking a curve for a power of T is not in it.

    Raises
    ------
    InvalidInput
        If a regret is not positive: a power of T fits no such curve.

    Examples
    --------
    >>> a, _ = exponent([100, 400, 1600], [[3.0, 6.0, 12.0]])
    >>> print(round(a, 3))
    0.5
    """
    rows = np.atleast_2d(np.asarray(regret, dtype=np.float64))
    if len(set(horizons)) < 2 or rows.shape[1] != len(horizons):
        raise InvalidInput(
            f"An exponent needs two different horizons or more, and a column for each; got {len(horizons)} horizons "
            f"and {rows.shape[1]} columns."
        )
    if not (rows > 0).all():
        raise InvalidInput(
            "Only positive regrets have an exponent; got one of 0 or less. On an easy stream the (1 - 1/e)-regret "
            "is negative: take a harder stream, or a horizon at which it is hard."
        )
    slopes = np.polyfit(np.log(horizons), np.log(rows.T), 1)[0]
    mean, half = mean_and_band(slopes)
    return float(mean), float(half)


def draw_regret(axes: Axes, horizons: Sequence[int], runs: Mapping[str, Runs]) -> None:
    """Draw the mean regret of each learner with its 95 % interval, and its bound as a dashed line of that colour.

    The dotted line is (1 - 1/e) T. No regret is larger where rewards are in [0, 1], so a bound above it says nothing.
    Make `axes` within `style()`, so that it looks like the other figures.

    Parameters
    ----------
    axes
        Where to draw.
    horizons
        The values of T, in rising order.
    runs
        The runs of each learner, by its name.
    """
    at = np.asarray(horizons, dtype=np.float64)
    trivial = ONE_MINUS_1_OVER_E * at
    axes.loglog(at, trivial, color=FAINT, linestyle=":", linewidth=1.2)
    ends: list[LineEnd] = [("(1 - 1/e) T", trivial[-1], FAINT)]
    for number, (name, result) in enumerate(runs.items()):
        colour = COLOURS[number % len(COLOURS)]
        mean, half = mean_and_band(result.regret)
        axes.plot(at, mean, color=colour, marker=MARKERS[number % len(MARKERS)], markersize=6)
        if not np.isnan(half).all():
            axes.fill_between(at, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, result.bound, color=colour, linestyle="--", linewidth=1.4)
        ends += [(name, float(mean[-1]), colour), (f"{name}: bound", float(result.bound[-1]), colour)]
    labelled = sorted({0, (len(at) - 1) // 2, len(at) - 1})
    axes.set_xticks(at[labelled], [f"{at[i]:,.0f}" for i in labelled])
    axes.set(xlim=(at[0] / 1.15, at[-1] * 1.15), xlabel="rounds T")
    axes.minorticks_off()
    name_lines(axes, ends)
