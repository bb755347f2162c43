"""What privacy costs with the paper's constants, and with the same algorithm calibrated tightly: one picture.

python examples/paper_constants.py [out/paper-constants.png] [seeds]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import diminuendo as dim
from diminuendo import paper

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SLOTS, DELTA = 5, 1e-6
CALIBRATIONS: tuple[Literal["tight", "paper"], ...] = ("tight", "paper")
BLUE, ORANGE, GREEN, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#999999", "#222222"


def shares(users: dim.Users, seeds: int) -> dict[str, list[list[float]]]:
    """Reward as a share of hindsight greedy's: calibration -> one list of runs per epsilon."""
    best = dim.greedy(users, SLOTS).value
    result: dict[str, list[list[float]]] = {}
    for calibration in CALIBRATIONS:
        result[calibration] = []
        for epsilon in EPSILONS:
            runs = []
            for seed in range(seeds):
                learner = paper.fi_dp(
                    users.n_items,
                    SLOTS,
                    len(users),
                    epsilon,
                    DELTA,
                    calibration=calibration,
                    rng=dim.SeededSource(seed),
                )
                runs.append(float(users.values(learner.replay(users)).mean() / best))
            result[calibration].append(runs)
    floors: dict[str, dim.Learner] = {
        "not private": paper.streeter_golovin(users.n_items, SLOTS, len(users), rng=dim.SeededSource(0)),
        "random": dim.RandomSlates(users.n_items, SLOTS, rng=dim.SeededSource(0)),
    }
    for name, floor in floors.items():
        result[name] = [[float(users.values(floor.replay(users)).mean() / best)]]
    return result


def draw(found: dict[str, list[list[float]]], path: Path) -> None:
    """The picture."""
    figure, axis = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    labels = {
        "tight": "the same algorithm,\ncalibration='tight'",
        "paper": "the paper's constants,\ncalibration='paper'",
    }
    for calibration, colour, up in (("tight", BLUE, 10), ("paper", ORANGE, 8)):
        runs = np.array(found[calibration])
        mean = runs.mean(axis=1)
        axis.plot(EPSILONS, mean, "o-", color=colour, linewidth=2)
        axis.fill_between(EPSILONS, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.18, linewidth=0)
        at = EPSILONS.index(1.0)
        axis.annotate(
            f"{mean[at]:.3f}", (1.0, mean[at]), (-8, up), textcoords="offset points", color=colour, ha="right"
        )
        side = (-10, 4) if calibration == "tight" else (10, -12)
        axis.annotate(
            labels[calibration],
            (10, mean[EPSILONS.index(10.0)]),
            side,
            textcoords="offset points",
            color=colour,
            ha="right" if calibration == "tight" else "left",
            va="bottom" if calibration == "tight" else "top",
        )
    for name, colour, style in (("not private", GREEN, "--"), ("random", GREY, ":")):
        level = float(np.mean(found[name]))
        axis.axhline(level, color=colour, linestyle=style, linewidth=1.5)
        below = name == "random"
        axis.text(
            100,
            level + (-0.015 if below else 0.015),
            f"{name}, {level:.3f}",
            color=colour,
            ha="right",
            va="top" if below else "bottom",
        )
    axis.set_xscale("log")
    axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axis.minorticks_off()
    axis.set(xlabel="epsilon (delta = 1e-6)", ylabel="reward / hindsight greedy's", ylim=(0, 1.05))
    axis.set_title("Algorithm 2 on 32,711 real visitors, 5 of 294 things", loc="left", color=INK)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(path: Path, seeds: int) -> None:
    result = shares(dim.msweb(), seeds)
    chance, loud = (float(np.mean(result[name])) for name in ("random", "not private"))
    print(f"epsilon   paper   tight   (random {chance:.3f}, not private {loud:.3f})")
    for j, epsilon in enumerate(EPSILONS):
        print(f"{epsilon:7g}   {np.mean(result['paper'][j]):.3f}   {np.mean(result['tight'][j]):.3f}")
    draw(result, path)
    print(f"Plot: {path}")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0] if given else "out/paper-constants.png"), int(given[1]) if given[1:] else 2)
