"""The price of privacy: what each learner earns, as a share of hindsight greedy, for each epsilon asked for."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import (
    FAINT,
    INK,
    LineStyle,
    line_styles,
    mean_and_band,
    name_lines,
    panel,
)
from diminuendo.simulate.result import Result, Simulation
from diminuendo.types import Floats


def price_figure(simulation: Simulation) -> Figure:
    """Curves against epsilon where several were asked for, or one row per learner where one was."""
    return _curves(simulation) if len(simulation.epsilons) > 1 else _dots(simulation)


def shares(runs: list[Result], simulation: Simulation) -> Floats:
    """Payoffs as shares of greedy's; where nobody wants anything, nothing is lost."""
    reference = simulation.benchmarks.greedy.value
    payoffs = np.array([run.mean_payoff for run in runs], dtype=np.float64)
    return payoffs / reference if reference > 0 else np.ones(len(runs))


def _curves(simulation: Simulation) -> Figure:
    figure, axes = panel()
    everybody, epsilons = simulation.by_learner(), simulation.epsilons
    look, ends, highest = line_styles(everybody), [], 1.0
    for name, runs in everybody.items():
        if any(run.asked_epsilon is None for run in runs):  # not asked for any epsilon: the same for all
            mean, half = _mean(shares(runs, simulation))
            _level(axes, mean, half, look[name])
        else:
            by_epsilon = {
                run.asked_epsilon: [r for r in runs if r.asked_epsilon == run.asked_epsilon] for run in runs
            }
            asked = [epsilon for epsilon in epsilons if epsilon in by_epsilon]
            found = np.array([_mean(shares(by_epsilon[epsilon], simulation)) for epsilon in asked])
            _line(axes, asked, found, look[name])
            mean, highest = float(found[-1, 0]), max(highest, float(found[:, 0].max()))
        ends.append((name, mean, look[name].colour))
        highest = max(highest, mean)
    axes.axhline(1, color=INK, linestyle="--", linewidth=1)
    ends.append(("greedy in hindsight", 1.0, INK))
    if "random" not in everybody and simulation.benchmarks.greedy.value > 0:
        chance = simulation.benchmarks.random / simulation.benchmarks.greedy.value
        axes.axhline(chance, color=FAINT, linestyle=":", linewidth=1.2)
        ends.append(("random", chance, FAINT))
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


def _line(axes: Axes, epsilons: list[float], found: Floats, look: LineStyle) -> None:
    mean, half = found.T
    axes.plot(epsilons, mean, color=look.colour, linestyle=look.line, marker=look.marker, markersize=6)
    if not np.isnan(half).all():
        axes.fill_between(epsilons, mean - half, mean + half, color=look.colour, alpha=0.2, linewidth=0)


def _level(axes: Axes, mean: float, half: float, look: LineStyle) -> None:
    axes.axhline(mean, color=look.colour, linestyle=look.line)
    if not np.isnan(half):
        axes.axhspan(mean - half, mean + half, color=look.colour, alpha=0.2, linewidth=0)


def _dots(simulation: Simulation) -> Figure:
    """Shares of one epsilon, or of none: one row per learner."""
    everybody = simulation.by_learner()
    figure, axes = panel(1.3 + 0.36 * len(everybody))
    look, highest = line_styles(everybody), 1.0
    for row, (name, runs) in enumerate(everybody.items()):
        mean, half = _mean(shares(runs, simulation))
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


def _mean(values: Floats) -> tuple[float, float]:
    mean, half = mean_and_band(values[:, None])
    return float(mean[0]), float(half[0])
