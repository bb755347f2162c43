"""What epsilon buys as a picture: the forecast loss against epsilon."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from diminuendo.plan import Plan
from diminuendo.simulate.figures.style import COLOURS, FAINT, INK, write


class PriceCurve(NamedTuple):
    """What is drawn of a plan, in plain numbers."""

    title: str
    model: str
    """What forecasts assume, in words."""
    epsilon: float
    """What was asked for."""
    epsilons: list[float]
    losses: list[list[float]]
    """For each epsilon, and each run, the part of greedy's reward that is lost."""
    random_loss: float


def price_curve(data: Plan) -> PriceCurve:
    """What a plan says of epsilons."""
    setting = data.setting
    return PriceCurve(
        f"{data.recommended}: {setting.slots} of {setting.n_items:,} items for {setting.rounds:,} users"
        + ("" if setting.feedback == "full" else f", {setting.feedback} feedback"),
        data.model,
        setting.epsilon,
        [price.epsilon for price in data.prices],
        [list(price.losses) for price in data.prices],
        data.random_loss,
    )


def plot_prices(data: PriceCurve, path: Path) -> Path:
    """Write a PNG, SVG or PDF: the part of greedy's reward that is lost, for every epsilon of the plan."""
    epsilons, runs = np.array(data.epsilons), 100 * np.array(data.losses)
    losses, chance = runs.mean(axis=1), 100 * data.random_loss
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axis = figure.subplots()
    axis.fill_between(epsilons, runs.min(axis=1), runs.max(axis=1), color=COLOURS[0], alpha=0.18, linewidth=0)
    axis.plot(epsilons, losses, color=COLOURS[0], linewidth=2, marker="o", markersize=4)
    here = int(np.argmin(np.abs(epsilons - data.epsilon)))
    right = 2 * here <= len(epsilons)  # there is room to its right
    axis.plot(epsilons[here], losses[here], "o", color=COLOURS[1], markersize=9)
    axis.annotate(
        f"epsilon {data.epsilon:g}: loss {losses[here]:.1f} %",
        (epsilons[here], losses[here]),
        textcoords="offset points",
        xytext=(6, 12) if right else (-6, 12),
        ha="left" if right else "right",
        color=COLOURS[1],
        fontsize=10,
    )
    top = 1.25 * max(1.0, float(runs.max()))
    if chance <= 3 * top:
        axis.axhline(chance, color=FAINT, linestyle=":")
        axis.text(epsilons[-1], chance, "random slates", color=FAINT, ha="right", va="bottom", fontsize=9)
        top = max(top, 1.1 * chance)
    axis.set(xscale="log", xlabel="epsilon (more private to the left)", ylim=(0, top))
    axis.set_ylabel("loss to hindsight, %")
    apart = [e for e in epsilons if e == data.epsilon or abs(math.log(e / data.epsilon)) > 0.2]
    axis.set_xticks(apart, [f"{epsilon:g}" for epsilon in apart])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    figure.suptitle(data.title, x=0.01, ha="left", fontsize=13, color=INK)
    about = textwrap.fill(f"Band from worst to best run. {data.model}", 118)
    figure.text(0.01, -0.02, about, fontsize=8, color=FAINT, va="top", linespacing=1.4)
    return write(figure, path, bbox_inches="tight")
