"""What a report says, in plain text: the answer in three numbers, and all numbers in a table.

The guarantee in words is that of privacy/sentence.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from diminuendo.privacy.sentence import upwards
from diminuendo.simulate.result import Result, Simulation
from diminuendo.simulate.table import (
    TODAY,
    baseline_rewards,
    earned,
    main_learner,
    mean_and_band,
    share_of,
    speed,
    upwards_short,
)

COLUMNS = (
    "learner",
    "algorithm",
    "ε asked",
    "ε proved",
    "δ",
    "reward",
    "± 95 %",
    "of greedy",
    "worst run",
    "regret to greedy",
    "users/s",
)


class Headline(NamedTuple):
    """One share of greedy's reward, and whose it is."""

    share: str
    whose: str


def headlines(simulation: Simulation) -> Iterator[Headline]:
    """The shares of the main learner, of one without privacy, of random slates, and of today's slate."""
    groups, about = simulation.by_learner(simulation.middle_epsilon), main_learner(simulation)
    wanted = [about, *(name for name in ("nonprivate", "random") if name in groups and name != about)]
    for name in wanted:
        runs = groups[name]
        mean, half = mean_and_band(simulation.shares(runs))
        at = "" if runs[0].asked_epsilon is None else f" at epsilon {runs[0].asked_epsilon:g}"
        yield Headline(_percent(mean), f"{name}{at}{_give_or_take(100 * half)}")
    if "random" not in groups:
        base = simulation.benchmarks
        share = base.random / base.greedy.value if base.greedy.value else 1.0
        yield Headline(_percent(share), "random slates")
    if simulation.today is not None:
        base = simulation.benchmarks
        share = simulation.today.value / base.greedy.value if base.greedy.value else 1.0
        yield Headline(_percent(share), TODAY)


def table_rows(simulation: Simulation) -> Iterator[list[str]]:
    """Hindsight, then every learner at every epsilon."""
    reference = simulation.benchmarks.greedy.value
    for name, value in baseline_rewards(simulation).items():
        place = "" if name == TODAY or name.startswith("optimum") else " in hindsight"
        cells = f"{value:.4f}", "", share_of(value, reference), "", "", ""
        yield [name.strip() + place, *[""] * 4, *cells]
    groups: dict[tuple[str, float | None], list[Result]] = {}
    for run in simulation.results:
        groups.setdefault((run.learner, run.asked_epsilon), []).append(run)
    for (name, epsilon), runs in groups.items():
        first = runs[0]
        yield [
            name,
            first.played_by,
            "" if epsilon is None else f"{epsilon:g}",
            "none" if first.epsilon is None else upwards(first.epsilon),
            "" if first.delta is None else upwards_short(first.delta),
            *earned(runs, reference),
            f"{np.mean([run.regret_to_greedy for run in runs]):.4f}",
            f"{speed(runs):,.0f}",
        ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _give_or_take(half: float) -> str:
    """Half the width of the interval; empty for one run, which has none."""
    if np.isnan(half):
        return ""
    return " (±\N{NO-BREAK SPACE}" + (f"{half:.0f})" if half >= 9.5 else f"{half:.1g})")


def seeded_note(guarantee: Mapping[str, Any]) -> str:
    """The caveat for seeded randomness, as in every simulation; empty for the operating system's."""
    if guarantee["secure_rng"] or not guarantee["epsilon"]:
        return ""
    return (
        "The runs of this report were seeded, so that they can be repeated; a reader of the seed can undo the noise. "
        "The sentence is about the same learner with the same settings and the operating system's random numbers."
    )
