"""A simulation over time: what each learner earned so far, and what it lost to hindsight.

Lines are means over seeds, bands 95 percent intervals of that mean (Student's t). Where several epsilons were run, the
one nearest to 1 is drawn; what the others change is another picture (privacy.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import (
    FAINT,
    WIDTH,
    LineEnd,
    draw_line,
    draw_yardsticks,
    line_styles,
    name_lines,
    panel,
    short,
    style,
    thousands,
    write,
)
from diminuendo.simulate.result import NOTE, Simulation, curve_rounds
from diminuendo.simulate.table import mean_and_band
from diminuendo.types import Floats

POINTS = 120
"""How many points of a curve are drawn; a screen shows no more."""
DECADES = 1e4
"""A logarithmic axis reaches no further down than the largest regret by this."""
SETTLED = 0.05
"""The share of rounds before which averages jump with every single person; axes are not scaled to these."""


def payoff_figure(simulation: Simulation) -> Figure:
    """Payoff per person so far."""
    figure, axes = panel()
    _draw_payoff(axes, simulation)
    return figure


def regret_figure(simulation: Simulation) -> Figure:
    """Lost so far to hindsight greedy."""
    figure, axes = panel()
    _draw_regret(axes, simulation)
    return figure


def plot_payoff(simulation: Simulation, path: Path) -> Path:
    """Write a PNG: left the payoff per person so far, right what was lost to greedy so far."""
    stream, base = simulation.stream, simulation.benchmarks
    with style():
        figure = Figure(figsize=(2.2 * WIDTH, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_payoff(left, simulation)
        _draw_regret(right, simulation)
        figure.suptitle(
            f"{short(stream['name'])}: {len(base.greedy.slate)} of {stream['items']:,} things shown to "
            f"{stream['rounds']:,} people",
            x=0.01,
            ha="left",
            fontsize=13,
        )
        figure.supxlabel(f"{about(simulation)} {NOTE}", x=0.01, ha="left", fontsize=8.5, color=FAINT)
        return write(figure, path)


def about(simulation: Simulation) -> str:
    """What lines and bands are, in a sentence."""
    epsilon = simulation.middle_epsilon
    seeds = max(len(runs) for runs in simulation.by_learner(epsilon).values())
    asked = "" if epsilon is None else f" Private learners were asked for epsilon {epsilon:g}."
    if seeds == 1:
        return f"One run of each learner.{asked}"
    return f"Mean of {seeds} runs; band: its 95 % interval (Student's t).{asked}"


def _draw_payoff(axes: Axes, simulation: Simulation) -> None:
    base = simulation.benchmarks
    at, lines = _lines(simulation)
    settled = int(SETTLED * len(at))
    means, ends = _draw(axes, at, {name: curves / at for name, curves in lines.items()})
    ends += draw_yardsticks(axes, base.greedy.value, None if "random" in lines else base.random)
    highest = max(base.greedy.value, float(means[:, settled:].max()))
    axes.set(xlabel="people so far", title="payoff per person so far", xlim=(0, at[-1]))
    axes.set_ylim(0, 1.12 * highest or 1)
    thousands(axes)
    name_lines(axes, ends)


def _draw_regret(axes: Axes, simulation: Simulation) -> None:
    """With logarithmic axes where everybody loses; a learner that follows changing tastes may gain instead."""
    at, lines = _lines(simulation)
    lost = {name: simulation.benchmarks.greedy.value * at - curves for name, curves in lines.items()}
    settled = int(SETTLED * len(at))
    logarithmic = len(at) > 2 and all((runs.mean(axis=0)[settled:] > 0).all() for runs in lost.values())
    first = 1 if logarithmic else 0  # one person alone would take up half of a logarithmic axis
    means, ends = _draw(axes, at[first:], {name: runs[:, first:] for name, runs in lost.items()})
    axes.set(xlabel="people so far", title="regret so far, in people's payoffs")
    if logarithmic:
        lowest = max(float(means[means > 0].min()), float(means.max()) / DECADES)
        axes.set(xscale="log", yscale="log", xlim=(at[first], at[-1]), ylim=(lowest / 1.5, 1.5 * means.max()))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
            axis.set_minor_formatter(lambda value, _: "")
    else:
        ends += draw_yardsticks(axes, 0.0)
        axes.set(xlim=(0, at[-1]))
        thousands(axes, y=True)
    name_lines(axes, ends)


def _lines(simulation: Simulation) -> tuple[Floats, dict[str, Floats]]:
    """After how many people, and the cumulative payoffs of each learner's runs then."""
    runs = simulation.by_learner(simulation.middle_epsilon)
    at = np.array(curve_rounds(simulation.stream["rounds"]), dtype=np.float64)
    drawn = np.unique(np.linspace(0, len(at) - 1, POINTS).astype(int))
    return at[drawn], {name: np.array([run.curve for run in group])[:, drawn] for name, group in runs.items()}


def _draw(axes: Axes, at: Floats, lines: dict[str, Floats]) -> tuple[Floats, list[LineEnd]]:
    """A line and a band for each learner's runs; returns the means, and where the lines end."""
    looks, means, ends = line_styles(lines), [], []
    for number, (name, runs) in enumerate(lines.items()):
        mean, half = mean_and_band(runs)
        # Markers of two learners whose lines are one stand beside each other.
        draw_line(axes, at, mean, half, looks[name], markevery=(0.03 * number, 0.2))
        means.append(mean)
        ends.append((name, float(mean[-1]), looks[name].colour))
    return np.array(means), ends
