"""One release of overlap greedy, step by step: what is asked, what is published, what is believed, what is picked.

Three films out of ten, by what 400 users say of them; the picture of docs/maths/overlap.md.
python examples/one_release.py [out/one-release.png]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import diminuendo as dim
from diminuendo.learners.base.engines import Threads
from diminuendo.learners.base.users import UserStore
from diminuendo.learners.overlap.participants import StoredParticipants, Terms
from diminuendo.learners.overlap.posterior import from_singletons
from diminuendo.privacy import Budget, Ledger, calibrate
from diminuendo.randomness import SecretRandomness
from diminuendo.simulate.figures.style import COLOURS, FAINT, INK, style, write
from diminuendo.sums import Clip
from diminuendo.sums.greedy_queries.cost import release_cost, squared_shifts
from diminuendo.sums.greedy_queries.release import GreedyRelease
from diminuendo.types import Floats

USERS, SLOTS, EPSILON, DELTA, SINGLES, SEED = 400, 3, 1.0, 1e-6, 0.6, 1
TASTES = {
    "Alien": (0.85, 0.1, 0.1),
    "Dune": (0.75, 0.05, 0.1),
    "Solaris": (0.6, 0.0, 0.1),
    "Gravity": (0.5, 0.1, 0.0),
    "Up": (0.1, 0.8, 0.1),
    "Coco": (0.05, 0.6, 0.1),
    "Totoro": (0.1, 0.5, 0.0),
    "Grease": (0.05, 0.1, 0.8),
    "Cabaret": (0.0, 0.05, 0.6),
    "Chicago": (0.05, 0.0, 0.5),
}
"""Which share of the users of each of three tastes wants each film."""
WIDEST = 0.36
"""Shares are drawn up to here."""
SHARES = (0.5, 0.28, 0.22)
"""Which share of users has each taste."""


def wishes() -> Floats:
    """(users, films): 1 where she wants to see it."""
    rng = np.random.default_rng(0)
    taste = rng.choice(3, USERS, p=SHARES)
    return (rng.random((USERS, len(TASTES))) < np.array(list(TASTES.values())).T[taste]).astype(np.float64)


def release(seed: int = SEED) -> dict[str, Any]:
    """The whole release; seeded, so for simulation only. Shares of users, step by step."""
    users = dim.Users(dim.NoisyOr(), wishes())
    budget, clip = Budget(EPSILON, DELTA, accountant="continuous-gaussian"), Clip()
    ledger, secret = Ledger(budget), SecretRandomness(dim.SeededSource(seed))
    shifts, rho = squared_shifts(users.n_items, clip), float(budget.limit) / 2 * (1 - 2.0**-48)
    sigmas = (
        calibrate.gaussian_sigma(rho * SINGLES, shifts[0]),
        calibrate.gaussian_sigma(rho * (1 - SINGLES), shifts[1]),
    )
    paid = ledger.bought(release_cost([1], shifts, sigmas, "users"), "users", "one chain")
    store, everything = UserStore(users.n_items), np.ones(users.n_items)
    store.add_rows(users.family, users.table, range(USERS))
    terms = Terms(np.array([1]), everything, np.zeros(users.n_items, dtype=np.int64), clip)
    asked = GreedyRelease(StoredParticipants(store.blocks, [], terms, Threads()), paid, sigmas, everything)
    unit = USERS * clip.ticks  # what all of them could add to one number
    steps, slate = list[dict[str, Any]](), list[int]()

    def step(question: str, published: Any, sigma: float, posterior: Any, picks: bool) -> None:
        if picks:
            best = posterior.mean.copy()
            best[slate] = -np.inf
            slate.append(int(best.argmax()))
        steps.append(
            {
                "question": question,
                "published": (published / unit).tolist(),
                "deviation": sigma / unit,
                "believed": posterior.mean.tolist(),
                "unsure": np.sqrt(posterior.variance).tolist(),
                "slate": [list(TASTES)[item] for item in slate],
            }
        )

    def deviation(sigma: float) -> Floats:
        return np.full(users.n_items, sigma / unit)

    result = asked.singletons(secret)
    posterior = from_singletons(result / unit, deviation(sigmas[0]))
    step("singles", result, sigmas[0], posterior, True)
    for number in range(1, SLOTS):
        joins = slate[number - 1]
        (result,) = asked.losses_by_type(np.array([joins]), secret)
        posterior = posterior.condition_on_losses(result / unit, deviation(sigmas[1]))
        step(f"row of {list(TASTES)[joins]}", result, sigmas[1], posterior, number < SLOTS - 1)
    (result,) = asked.residual_by_type(secret)
    posterior = posterior.condition_on_gains(result / unit, deviation(sigmas[1]))
    step("rest", result, sigmas[1], posterior, True)
    for each, truth in zip(steps, without_noise(slate), strict=True):
        each["without noise"] = truth.tolist()
    return {
        "films": list(TASTES),
        "users": USERS,
        "epsilon": ledger.spent(),
        "delta": DELTA,
        "steps": steps,
    }


def without_noise(slate: list[int]) -> list[Floats]:
    """What would be published without noise, worked out by itself: for singles, each row, and the rest."""
    wants = wishes()
    left = wants / np.maximum(1.0, np.linalg.norm(wants, axis=1, keepdims=True))  # nobody is longer than 1
    result = [left.mean(axis=0)]
    for item in slate[:-1]:
        after = left * (wants[:, [item]] == 0)  # whoever wants it gains nothing from anything else
        result.append((left - after).mean(axis=0))
        left = after
    return [*result, left.mean(axis=0)]


def draw(found: dict[str, Any], path: Path) -> Path:
    """Above what is published, below what is believed then; one column for each question."""
    steps, films = found["steps"], found["films"]
    with style():
        figure = Figure(figsize=(11.5, 7.4), layout="constrained")
        panels = figure.subplots(2, len(steps), sharey=True, sharex=True)
        for number, (step, column) in enumerate(zip(steps, panels.T, strict=True)):
            before = steps[number - 1]["slate"] if number else []
            _published(column[0], step, films, before)
            _believed(column[1], step, films, before)
            column[0].set_title(f"{number + 1}. {_titles(step, before)}", fontsize=11)
        panels[0, 0].set_ylabel("published", fontsize=12, labelpad=10)
        panels[1, 0].set_ylabel("believed then", fontsize=12, labelpad=10)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=2, fontsize=9.5)
        panels[0, 0].set_xlim(right=WIDEST)
        figure.suptitle(
            f"One release: {found['users']} users, {SLOTS} of {len(films)} films, "
            f"epsilon {found['epsilon']:.3g}, delta {found['delta']:g}",
            x=0.01,
            ha="left",
            fontsize=13,
        )
        for axes in panels[1]:
            axes.set_xlabel("share of users", color=FAINT)
        return write(figure, path)


def _titles(step: dict[str, Any], before: list[str]) -> str:
    if step["question"] == "singles":
        return "singles: what each film\nis worth by itself"
    if step["question"] == "rest":
        return f"the rest: what is left\nafter {' and '.join(before)}"
    return f"a row: what the others\nlose when {before[-1]} joins"


def _published(axes: Axes, step: dict[str, Any], films: list[str], before: list[str]) -> None:
    rows = -np.arange(len(films))
    axes.barh(rows, step["without noise"], 0.62, color="#dfe7ee", label="without noise, which nobody sees")
    axes.errorbar(
        step["published"],
        rows,
        xerr=step["deviation"],
        fmt="o",
        color=COLOURS[0],
        markersize=4.5,
        elinewidth=1.4,
        capsize=2.5,
        label="published, and one deviation of the noise",
    )
    _films(axes, films)


def _believed(axes: Axes, step: dict[str, Any], films: list[str], before: list[str]) -> None:
    picked = [film for film in step["slate"] if film not in before]
    for place, (film, mean, unsure) in enumerate(zip(films, step["believed"], step["unsure"], strict=True)):
        if film in before:
            axes.annotate("in the slate", (0.004, -place), color=COLOURS[1], va="center", fontsize=9)
            continue
        colour = COLOURS[1] if film in picked else COLOURS[2]
        axes.barh(-place, mean, 0.62, color=colour, alpha=0.85 if film in picked else 0.45)
        axes.errorbar(mean, -place, xerr=unsure, color=INK, elinewidth=1.1, capsize=2.5)
        if film in picked:
            axes.annotate(
                f"pick {film}",
                (mean + unsure, -place),
                (6, 0),
                textcoords="offset points",
                color=COLOURS[1],
                va="center",
                fontsize=10,
                weight="bold",
            )
    _films(axes, films)


def _films(axes: Axes, films: list[str]) -> None:
    axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_yticks(-np.arange(len(films)), films)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(False, axis="y")


def main(path: Path) -> None:
    result = release()
    for step in result["steps"]:
        print(
            f"{step['question']:<14} noise {step['deviation']:.3f}   slate so far: {', '.join(step['slate'])}"
        )
    print(f"Picture in {draw(result, path)}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/one-release.png"))
