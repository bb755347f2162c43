"""What each learner earned: so far, as time goes by; and for each epsilon asked for, which is the price of privacy.

Lines are means over seeds, bands 95 percent intervals of that mean (Student's t). Where several epsilons were run, the
one nearest to 1 is drawn over time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diminuendo.simulate.figures.style import (
    FAINT,
    INK,
    WIDTH,
    LineEnd,
    LineStyle,
    line_styles,
    name_lines,
    panel,
    short,
    style,
    thousands,
    write,
)
from diminuendo.simulate.result import NOTE, Simulation, curve_rounds
from diminuendo.simulate.table import TODAY, mean_and_band
from diminuendo.types import Floats

POINTS = 120
"""How many points of a curve are drawn; a screen shows no more."""
DECADES = 1e4
"""A logarithmic axis reaches no further down than the largest regret by this."""
SETTLED = 0.05
"""The share of rounds before which averages jump with every single user; axes are not scaled to these."""


class Curves(NamedTuple):
    """What is drawn over time, in plain numbers: what was earned by the time that `at` users had come."""

    title: str
    about: str
    at: list[float]
    mean: dict[str, list[float]]
    """For each learner, over its runs."""
    half: dict[str, list[float]]
    """Half the width of the interval of that mean; not a number for a single run."""
    greedy: float
    """Reward per user of greedy in hindsight."""
    random: float
    today: float | None = None
    """Reward per user of today's slate, if given."""


def curves(simulation: Simulation) -> Curves:
    """What a simulation came to over time."""
    stream, base, runs = (
        simulation.stream,
        simulation.benchmarks,
        simulation.by_learner(simulation.middle_epsilon),
    )
    at = np.array(curve_rounds(stream["rounds"]), dtype=np.float64)
    drawn = np.unique(np.linspace(0, len(at) - 1, POINTS).astype(int))
    result = {name: mean_and_band([run.curve for run in group]) for name, group in runs.items()}
    return Curves(
        f"{short(stream['name'])}: {len(base.greedy.slate)} of {stream['items']:,} items shown to "
        f"{stream['rounds']:,} users",
        f"{about(simulation)} {NOTE}",
        at[drawn].tolist(),
        {name: mean[drawn].tolist() for name, (mean, _) in result.items()},
        {name: half[drawn].tolist() for name, (_, half) in result.items()},
        base.greedy.value,
        base.random,
        None if simulation.today is None else simulation.today.value,
    )


def reward_figure(simulation: Simulation) -> Figure:
    """Reward per user so far."""
    figure, axes = panel()
    _draw_reward(axes, curves(simulation))
    return figure


def regret_figure(simulation: Simulation) -> Figure:
    """Lost so far to hindsight greedy."""
    figure, axes = panel()
    _draw_regret(axes, curves(simulation))
    return figure


def plot_reward(data: Curves, path: Path) -> Path:
    """Write a picture: left the reward per user so far, right what was lost to greedy so far."""
    with style():
        figure = Figure(figsize=(2.2 * WIDTH, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_reward(left, data)
        _draw_regret(right, data)
        figure.suptitle(data.title, x=0.01, ha="left", fontsize=13)
        figure.supxlabel(data.about, x=0.01, ha="left", fontsize=8.5, color=FAINT)
        return write(figure, path)


def about(simulation: Simulation) -> str:
    """What lines and bands are, in a sentence."""
    epsilon = simulation.middle_epsilon
    seeds = max(len(runs) for runs in simulation.by_learner(epsilon).values())
    budgets = "" if epsilon is None else f" Private learners were asked for epsilon {epsilon:g}."
    if seeds == 1:
        return f"One run of each learner.{budgets}"
    return f"Mean of {seeds} runs; band: its 95 % interval (Student's t).{budgets}"


def _draw_reward(axes: Axes, data: Curves) -> None:
    at, settled = np.array(data.at), int(SETTLED * len(data.at))
    bands = {name: (mean / at, half / at) for name, (mean, half) in _bands(data).items()}
    means, ends = _draw(axes, at, bands)
    ends += _draw_yardsticks(axes, data.greedy, None if "random" in bands else data.random, data.today)
    highest = max(data.greedy, float(means[:, settled:].max()))
    axes.set(xlabel="users so far", title="reward per user so far", xlim=(0, at[-1]))
    axes.set_ylim(0, 1.12 * highest or 1)
    thousands(axes)
    name_lines(axes, ends)


def _draw_regret(axes: Axes, data: Curves) -> None:
    """With logarithmic axes if all regrets are positive; a learner that follows drift may have negative regret."""
    at, settled = np.array(data.at), int(SETTLED * len(data.at))
    lost = {name: (data.greedy * at - mean, half) for name, (mean, half) in _bands(data).items()}
    logarithmic = len(at) > 2 and all((mean[settled:] > 0).all() for mean, _ in lost.values())
    first = 1 if logarithmic else 0  # one user alone would take up half of a logarithmic axis
    means, ends = _draw(
        axes, at[first:], {name: (mean[first:], half[first:]) for name, (mean, half) in lost.items()}
    )
    axes.set(xlabel="users so far", title="regret to greedy so far")
    if logarithmic:
        lowest = max(float(means[means > 0].min()), float(means.max()) / DECADES)
        axes.set(xscale="log", yscale="log", xlim=(at[first], at[-1]), ylim=(lowest / 1.5, 1.5 * means.max()))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
            axis.set_minor_formatter(lambda value, _: "")
    else:
        ends += _draw_yardsticks(axes, 0.0)
        axes.set(xlim=(0, at[-1]))
        thousands(axes, y=True)
    name_lines(axes, ends)


def _bands(data: Curves) -> dict[str, tuple[Floats, Floats]]:
    return {name: (np.array(mean), np.array(data.half[name])) for name, mean in data.mean.items()}


def _draw(axes: Axes, at: Floats, bands: dict[str, tuple[Floats, Floats]]) -> tuple[Floats, list[LineEnd]]:
    """A line and a band for each learner's runs; returns the means, and where the lines end."""
    looks, means, ends = line_styles(bands), [], []
    for number, (name, (mean, half)) in enumerate(bands.items()):
        # Markers of two learners whose lines are one stand beside each other.
        _draw_line(axes, at, mean, half, looks[name], markevery=(0.03 * number, 0.2))
        means.append(mean)
        ends.append((name, float(mean[-1]), looks[name].colour))
    return np.array(means), ends


def price_figure(simulation: Simulation) -> Figure:
    """Shares of greedy's reward against epsilon, where there are several."""
    figure, axes = panel()
    by_learner, epsilons, base = simulation.by_learner(), simulation.epsilons, simulation.benchmarks
    looks, ends, highest = line_styles(by_learner), [], 1.0
    for name, runs in by_learner.items():
        look = looks[name]
        if any(run.asked_epsilon is None for run in runs):  # not asked for any epsilon: the same for all
            mean, half = mean_and_band(simulation.shares(runs))
            means = [float(mean)]
            axes.axhline(mean, color=look.colour, linestyle=look.line)
            if not np.isnan(half):
                axes.axhspan(mean - half, mean + half, color=look.colour, alpha=0.2, linewidth=0)
        else:
            budgets = sorted({run.asked_epsilon for run in runs if run.asked_epsilon is not None})
            served = [[run for run in runs if run.asked_epsilon == epsilon] for epsilon in budgets]
            result = np.array([mean_and_band(simulation.shares(some)) for some in served])
            means = result[:, 0].tolist()
            _draw_line(axes, budgets, result[:, 0], result[:, 1], look, markersize=6)
        ends.append((name, means[-1], look.colour))
        highest = max(highest, *means)
    chance = "random" not in by_learner and base.greedy.value > 0
    today = simulation.today.value / base.greedy.value if simulation.today and base.greedy.value > 0 else None
    ends += _draw_yardsticks(axes, 1.0, base.random / base.greedy.value if chance else None, today)
    axes.set(
        xscale="log",
        xlabel="epsilon asked for (more private to the left)",
        title="reward, as a share of greedy's",
        ylim=(0, 1.12 * highest),
    )
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_xlim(epsilons[0] / 1.3, epsilons[-1] * 1.3)
    name_lines(axes, ends)
    return figure


def _draw_line(axes: Axes, at: Any, mean: Floats, half: Floats, look: LineStyle, **marks: Any) -> None:
    """A line, and a band around it where there is one."""
    axes.plot(at, mean, color=look.colour, linestyle=look.line, marker=look.marker, **marks)
    if not np.isnan(half).all():
        axes.fill_between(at, mean - half, mean + half, color=look.colour, alpha=0.2, linewidth=0)


def _draw_yardsticks(
    axes: Axes, greedy: float, random: float | None = None, today: float | None = None
) -> list[LineEnd]:
    """What hindsight reaches, chance and today's slate where given, as lines to measure against; returns their ends."""
    ends = [("greedy in hindsight", greedy, INK)]
    axes.axhline(greedy, color=INK, linestyle="--", linewidth=1)
    if random is not None:
        axes.axhline(random, color=FAINT, linestyle=":", linewidth=1.2)
        ends.append(("random", random, FAINT))
    if today is not None:
        axes.axhline(today, color=INK, linestyle="-.", linewidth=1)
        ends.append((TODAY, today, INK))
    return ends
