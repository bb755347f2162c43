"""How to spread a budget over channels when every user who comes is reached by some of them.

Boosted ascent, which we recommend, beside Algorithm 4. With the name of a picture it also draws what privacy costs:
python examples/continuous.py [out/continuous.png] [seeds]
"""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import diminuendo as dim
from diminuendo.continuous import (
    BoostedAscent,
    BudgetAllocation,
    CappedSimplex,
    MetaFrankWolfe,
    frank_wolfe_offline,
    total_value,
)

ROUNDS, EPSILONS = 4000, (0.1, 0.3, 1.0, 3.0, 10.0)  # of the picture
CHANNELS, BUDGET = 8, 3.0  # at most one unit on each channel, three in all
STEEPEST = math.sqrt(CHANNELS) * math.log(2)  # public: a unit reaches nobody with more than 1/2,
BENT = CHANNELS * math.log(2) ** 2  # whoever these users are
INK, FAINT = "#222222", "#999999"
BLUE, RED, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"

WAYS: dict[str, dict[str, Any]] = {
    "boosted, Gaussian": {"noise": "gaussian"},
    "boosted, pure": {"noise": "laplace"},
    "Algorithm 4, Gaussian": {"noise": "gaussian", "smoothness": BENT},
    "Algorithm 4, pure": {"noise": "gamma", "smoothness": BENT},
    "Algorithm 4, pure, the paper's constants": {
        "noise": "gamma",
        "smoothness": BENT,
        "calibration": "paper",
    },
}
"""Algorithm 4 needs to know how fast gradients change; boosted ascent does not."""


def visitors(rounds: int, seed: int = 0) -> list[BudgetAllocation]:
    """Twelve kinds of users; each is reached by a few channels, and some channels reach many more than others."""
    rng = np.random.default_rng(seed)
    popular = np.linspace(0.9, 0.1, CHANNELS)
    kinds = [
        BudgetAllocation(((rng.random(CHANNELS) < popular) * rng.uniform(0.2, 0.5, CHANNELS))[:, None])
        for _ in range(12)
    ]
    return [kinds[i] for i in rng.integers(0, 12, rounds)]


def ratio(users: list[BudgetAllocation], seed: int | None = None, **how: Any) -> float:
    """What a learner earns, as a share of what a fixed point found in hindsight would have earned."""
    domain = CappedSimplex(CHANNELS, total=BUDGET)
    learner = (MetaFrankWolfe if "smoothness" in how else BoostedAscent)(
        domain,
        len(users),
        gradient_bound=STEEPEST,
        rng=None if seed is None else dim.SeededSource(seed),
        **how,
    )
    points = learner.replay(users)
    earned = sum(user.value(point) for user, point in zip(users, points, strict=True))
    return earned / best_value(users)


def best_value(users: list[BudgetAllocation]) -> float:
    """What a fixed point found in hindsight would have earned."""
    return total_value(users, frank_wolfe_offline(users, CappedSimplex(CHANNELS, total=BUDGET)))


def draw(path: Path, shares: dict[str, list[list[float]]], without: list[float]) -> Path:
    """Reward against epsilon: for each way to be private, all runs of each epsilon; and runs without privacy."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    users = visitors(ROUNDS)
    even = total_value(users, np.full(CHANNELS, BUDGET / CHANNELS)) / best_value(users)
    looks = dict(zip(WAYS, ((RED, "-"), (GREEN, "-"), (RED, ":"), (GREEN, ":"), (PINK, ":")), strict=True))
    epsilons, open_, seeds = list(EPSILONS), float(np.mean(without)), len(without)
    figure, axis = plt.subplots(figsize=(8.2, 5.2), layout="constrained")
    axis.axhline(open_, color=BLUE, linewidth=2)
    for name, by_epsilon in shares.items():
        result = np.array(by_epsilon).T
        colour, line = looks[name]
        low, high = result.min(axis=0), result.max(axis=0)
        axis.fill_between(epsilons, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.plot(epsilons, result.mean(axis=0), color=colour, ls=line, lw=2, marker="o", ms=4, label=name)
    axis.axhline(1, color=INK, linestyle="--", linewidth=1)
    axis.axhline(even, color=FAINT, linestyle="-.", linewidth=1)
    axis.axhline(1 - 1 / math.e, color=FAINT, linewidth=0.8)
    for level, said, colour, up, end in (
        (1, "best fixed point found in hindsight", INK, 4, 0),
        (open_, "boosted, not private", BLUE, -13, 0),
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
    axis.set(xscale="log", xlabel=r"$\varepsilon$", ylabel="reward / reward in hindsight", ylim=(0.42, 1.04))
    axis.set_xlim(0.93 * epsilons[0], epsilons[-1] / 0.93)  # room for whole dots
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    axis.legend(frameon=False, loc="lower right")
    figure.suptitle(
        f"The price of privacy: {BUDGET:g} units over {CHANNELS} channels, {ROUNDS:,} users",
        x=0.01,
        ha="left",
        fontsize=13,
        color=INK,
    )
    note = (
        rf"Gaussian: $\delta = 10^{{-6}}$; pure: $\delta = 0$. Mean of {seeds} seeds, band from worst to best. "
        "Seeded: for simulation only."
    )
    figure.text(0.01, -0.03, note, fontsize=8, color=FAINT, va="top")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return path


def main(picture: str | None = None, seeds: str = "10") -> None:
    users = visitors(800)
    print(f"not private                              {ratio(users):.3f} of hindsight")
    for name, how in WAYS.items():
        print(f"{name:<40} {ratio(users, epsilon=1.0, **how):.3f}")
    if picture is not None:
        users, numbers = visitors(ROUNDS), range(int(seeds))
        shares = {
            name: [[ratio(users, seed, epsilon=e, **how) for seed in numbers] for e in EPSILONS]
            for name, how in WAYS.items()
        }
        print("written:", draw(Path(picture), shares, [ratio(users, seed) for seed in numbers]))


if __name__ == "__main__":
    main(*sys.argv[1:])
