"""How to spread a budget over channels when every person who comes is reached by some of them: Algorithm 4.

As a program it also draws what privacy costs, in a few minutes: python examples/continuous.py [out/continuous.png]
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import diminuendo as dim
from diminuendo.continuous import (
    BudgetAllocation,
    CappedSimplex,
    MetaFrankWolfe,
    frank_wolfe_offline,
    total_value,
)

CHANNELS, BUDGET = 8, 3.0  # at most one unit on each channel, three in all
COLOURS = {"no privacy": "#0072B2", "gaussian": "#D55E00", "pure": "#009E73", "paper": "#CC79A7"}
INK, FAINT = "#222222", "#999999"


def visitors(rounds: int, seed: int = 0) -> list[BudgetAllocation]:
    """Twelve kinds of people; each is reached by a few channels, and some channels reach many more than others."""
    rng = np.random.default_rng(seed)
    popular = np.linspace(0.9, 0.1, CHANNELS)
    kinds = [
        BudgetAllocation(((rng.random(CHANNELS) < popular) * rng.uniform(0.2, 0.5, CHANNELS))[:, None])
        for _ in range(12)
    ]
    return [kinds[i] for i in rng.integers(0, 12, rounds)]


def ratio(people: list[BudgetAllocation], seed: int | None = None, **how: Any) -> float:
    """What a learner earns, as a share of what a fixed point found in hindsight would have earned."""
    domain = CappedSimplex(CHANNELS, total=BUDGET)
    learner = MetaFrankWolfe(
        domain,
        len(people),
        gradient_bound=math.sqrt(CHANNELS) * math.log(2),  # public: a unit reaches nobody with more than 1/2,
        smoothness=CHANNELS * math.log(2) ** 2,  # whoever these people are
        coins=None if seed is None else dim.SeededCoins(seed),
        **how,
    )
    points = learner.replay(people)
    earned = sum(person.value(point) for person, point in zip(people, points, strict=True))
    return earned / total_value(people, frank_wolfe_offline(people, domain))


people = visitors(800)
print(f"not private                   {ratio(people):.3f} of hindsight")
print(f"epsilon 1, delta 1e-6         {ratio(people, noise='gaussian', releases=31):.3f}")
print(f"epsilon 1, pure               {ratio(people, noise='gamma'):.3f}")
print(f"epsilon 1, paper's constants  {ratio(people, noise='gamma', calibration='paper'):.3f}")


def plot(path: Path, rounds: int = 4000, seeds: int = 3) -> Path:
    """Payoff against epsilon, for each way to be private."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    people = visitors(rounds)
    domain = CappedSimplex(CHANNELS, total=BUDGET)
    best = total_value(people, frank_wolfe_offline(people, domain))
    even = total_value(people, np.full(CHANNELS, BUDGET / CHANNELS)) / best
    ways: dict[str, dict[str, Any]] = {
        "gaussian": {"noise": "gaussian"},
        "pure": {"noise": "gamma"},
        "paper": {"noise": "gamma", "calibration": "paper"},
    }
    labels = {
        "gaussian": r"Gaussian, copies released together ($\delta = 10^{-6}$)",
        "pure": r"pure, tuned to the proved bound ($\delta = 0$)",
        "paper": r"pure, the paper's constants ($\delta = 0$)",
    }
    epsilons = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
    figure, axis = plt.subplots(figsize=(8.2, 4.8), layout="constrained")
    open_ = ratio(people)
    axis.axhline(open_, color=COLOURS["no privacy"], linewidth=2)
    for name, how in ways.items():
        found = np.array([[ratio(people, seed, epsilon=e, **how) for e in epsilons] for seed in range(seeds)])
        axis.fill_between(
            epsilons, found.min(axis=0), found.max(axis=0), color=COLOURS[name], alpha=0.18, linewidth=0
        )
        axis.plot(
            epsilons,
            found.mean(axis=0),
            color=COLOURS[name],
            linewidth=2,
            marker="o",
            markersize=4,
            label=labels[name],
        )
    axis.axhline(1, color=INK, linestyle="--", linewidth=1)
    axis.axhline(even, color=FAINT, linestyle=":")
    axis.axhline(1 - 1 / math.e, color=FAINT, linewidth=0.8)
    for level, said, colour, up, end in (
        (1, "best fixed point found in hindsight", INK, 4, 0),
        (open_, "online, not private", COLOURS["no privacy"], -13, 0),
        (even, "spread evenly, learning nothing", FAINT, -13, -1),
        (1 - 1 / math.e, r"$1 - 1/e$", FAINT, 4, 0),
    ):
        axis.annotate(
            said,
            (epsilons[end], level),
            (4 if end == 0 else -4, up),
            textcoords="offset points",
            color=colour,
            fontsize=9,
            ha="left" if end == 0 else "right",
        )
    axis.set(xscale="log", xlabel=r"$\varepsilon$", ylabel="payoff / payoff in hindsight", ylim=(0.5, 1.04))
    axis.set_xlim(epsilons[0], epsilons[-1])
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    axis.legend(frameon=False, loc="lower right")
    figure.suptitle(
        f"The price of privacy: {BUDGET:g} units over {CHANNELS} channels, {rounds:,} people",
        x=0.01,
        ha="left",
        fontsize=13,
        color=INK,
    )
    note = f"Mean of {seeds} seeds, band from worst to best. Seeded: for simulation only."
    figure.text(0.01, -0.03, note, fontsize=8, color=FAINT, va="top")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path


if __name__ == "__main__":
    print("written:", plot(Path(sys.argv[1] if len(sys.argv) > 1 else "out/continuous.png")))
