"""The result of a simulation as a picture: cumulative payoff over time."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only; no screen is needed

import matplotlib.pyplot as plt
import numpy as np

from diminuendo.simulate.run import NOTE, Simulation
from diminuendo.simulate.table import by_learner

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, FAINT = "#222222", "#999999"


def plot_payoff(simulation: Simulation, path: Path) -> Path:
    """Write a PNG: left the cumulative payoff, right the payoff so far as a share of greedy's."""
    rounds, base = simulation.stream["rounds"], simulation.benchmarks
    groups = by_learner(simulation)
    highest = 1.0
    reference = base.greedy.value or 1.0  # nobody may want anything
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for colour, (name, runs) in zip(COLOURS * 9, groups.items(), strict=False):
        curves = np.array([run.curve for run in runs])
        at = np.unique(np.linspace(0, rounds - 1, curves.shape[1]).astype(int)) + 1
        share = curves / (reference * at)
        highest = max(highest, float(share[:, len(at) // 20 :].max()))
        for axis, lines in ((left, curves), (right, share)):
            axis.plot(at, lines.mean(axis=0), color=colour, linewidth=2, label=name)
            axis.fill_between(at, lines.min(axis=0), lines.max(axis=0), color=colour, alpha=0.18, linewidth=0)
    left.plot(
        [0, rounds],
        [0, base.greedy.value * rounds],
        color=INK,
        linestyle="--",
        linewidth=1,
        label="greedy in hindsight",
    )
    if "random" not in groups:
        left.plot([0, rounds], [0, base.random * rounds], color=FAINT, linestyle=":", label="random choice")
        right.axhline(base.random / reference, color=FAINT, linestyle=":")
    right.axhline(1, color=INK, linestyle="--", linewidth=1)
    left.set(xlabel="people so far", ylabel="cumulative payoff", xlim=(0, rounds), ylim=(0, None))
    right.set(
        xlabel="people so far", ylabel="payoff so far / greedy's", xlim=(0, rounds), ylim=(0, 1.05 * highest)
    )
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value > 2 else f"{value:g}")
        axis.grid(color="#eeeeee")
        axis.set_axisbelow(True)
    left.legend(frameon=False, loc="upper left")
    stream = simulation.stream
    seeds = max(len(runs) for runs in groups.values())
    figure.suptitle(
        f"{stream['name']}: {len(base.greedy.slate)} of {stream['items']:,} things shown to {rounds:,} people",
        x=0.01,
        ha="left",
        fontsize=13,
        color=INK,
    )
    figure.text(
        0.01,
        -0.03,
        f"Mean of {seeds} seeds, band from worst to best. {NOTE}",
        fontsize=8,
        color=FAINT,
        va="top",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path
