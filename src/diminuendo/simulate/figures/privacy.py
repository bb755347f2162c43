"""The price of privacy: what each learner earns, as a share of hindsight greedy, for each epsilon asked for."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import (
    INK,
    draw_line,
    draw_yardsticks,
    line_styles,
    name_lines,
    panel,
)
from diminuendo.simulate.result import Simulation
from diminuendo.simulate.table import mean_and_band


def price_figure(simulation: Simulation) -> Figure:
    """Curves against epsilon where several were asked for, or one row per learner where one was."""
    return _curves(simulation) if len(simulation.epsilons) > 1 else _dots(simulation)


def _curves(simulation: Simulation) -> Figure:
    figure, axes = panel()
    everybody, epsilons, base = simulation.by_learner(), simulation.epsilons, simulation.benchmarks
    looks, ends, highest = line_styles(everybody), [], 1.0
    for name, runs in everybody.items():
        look = looks[name]
        if any(run.asked_epsilon is None for run in runs):  # not asked for any epsilon: the same for all
            mean, half = mean_and_band(simulation.shares(runs))
            means = [float(mean)]
            axes.axhline(mean, color=look.colour, linestyle=look.line)
            if not np.isnan(half):
                axes.axhspan(mean - half, mean + half, color=look.colour, alpha=0.2, linewidth=0)
        else:
            asked = sorted({run.asked_epsilon for run in runs if run.asked_epsilon is not None})
            served = [[run for run in runs if run.asked_epsilon == epsilon] for epsilon in asked]
            found = np.array([mean_and_band(simulation.shares(some)) for some in served])
            means = found[:, 0].tolist()
            draw_line(axes, asked, found[:, 0], found[:, 1], look, markersize=6)
        ends.append((name, means[-1], look.colour))
        highest = max(highest, *means)
    chance = "random" not in everybody and base.greedy.value > 0
    ends += draw_yardsticks(axes, 1.0, base.random / base.greedy.value if chance else None)
    axes.set(
        xscale="log",
        xlabel="epsilon asked for (more private to the left)",
        title="payoff, as a share of greedy's",
        ylim=(0, 1.12 * highest),
    )
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlim(epsilons[0] / 1.3, epsilons[-1] * 1.3)
    name_lines(axes, ends)
    return figure


def _dots(simulation: Simulation) -> Figure:
    """Shares of one epsilon, or of none: one row per learner."""
    everybody = simulation.by_learner()
    figure, axes = panel(1.3 + 0.36 * len(everybody))
    look, highest = line_styles(everybody), 1.0
    for row, (name, runs) in enumerate(everybody.items()):
        mean, half = mean_and_band(simulation.shares(runs))
        spread = None if np.isnan(half) else half
        axes.errorbar(
            mean, -row, xerr=spread, color=look[name].colour, marker=look[name].marker, capsize=3, ms=7
        )
        axes.annotate(
            f"{mean:.3f}", (mean, -row), textcoords="offset points", xytext=(0, 7), ha="center", fontsize=9
        )
        highest = max(highest, mean)
    axes.axvline(1, color=INK, linestyle="--", linewidth=1)
    axes.set_yticks([-row for row in range(len(everybody))], list(everybody))
    axes.set(
        xlabel="payoff, as a share of hindsight greedy's (dashed)",
        xlim=(0, 1.1 * highest),
        ylim=(0.6 - len(everybody), 0.8),
    )
    axes.grid(False, axis="y")
    return figure
