"""Hits a day: what private choice, hindsight, today's slate and chance earn from the users of one day.

Numbers are means over the whole run, learning included. Privacy costs what `nonprivate` earns more than the private
learner from the same users; where `nonprivate` was not run, hindsight stands in for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.simulate.result import Simulation
from diminuendo.simulate.table import TODAY, main_learner, mean_and_band
from diminuendo.streams.per_day import PerDay

GREEDY, CHANCE = "greedy in hindsight", "random slates"


class Hits(NamedTuple):
    """What one of them earns in a day."""

    who: str
    hits: float
    half: float
    """Half the width of the 95 percent interval over runs; NaN where there are no runs, or one."""
    cost: float | None
    """What privacy costs a day; None for those who are not private."""
    gain: float | None
    """How much more than today's slate; None where nobody said what that is."""


def hits_a_day(simulation: Simulation) -> list[Hits]:
    """Hindsight, no privacy, the main learner at every epsilon, today's slate and chance; nothing without a day."""
    day, today, about = simulation.per_day, simulation.today, main_learner(simulation)
    if day is None:
        return []
    groups: dict[tuple[str, float | None], list[float]] = {}
    for run in simulation.results:
        groups.setdefault((run.learner, run.asked_epsilon), []).append(run.mean_reward)
    users, base = day.users, simulation.benchmarks
    without = float(np.mean(groups.get(("nonprivate", None), base.greedy.value)))

    def row(who: str, reward: float, half: float = np.nan, *, private: bool = False) -> Hits:
        cost = users * (without - reward) if private else None
        gain = None if today is None or who == TODAY else users * (reward - today.value)
        return Hits(who, users * reward, users * half, cost, gain)

    rows = [row(GREEDY, base.greedy.value)]
    for name in dict.fromkeys(("nonprivate", about)):
        for (learner, asked), rewards in groups.items():
            if learner == name:
                who = name if asked is None else f"{name}, ε {asked:g}"
                rows.append(row(who, *mean_and_band(rewards), private=asked is not None))
    if today is not None:
        rows.append(row(TODAY, today.value))
    if about != "random":
        rows.append(row(CHANCE, float(np.mean(groups.get(("random", None), base.random)))))
    return rows


def hits_table(simulation: Simulation, day: PerDay) -> tuple[list[str], list[list[str]]]:
    """The numbers as words: names of columns, and rows."""
    rows = hits_a_day(simulation)
    columns = {
        "learner": [one.who for one in rows],
        f"{day.hits} a day": [day.said(one.hits) for one in rows],
        "privacy costs": ["" if one.cost is None else day.said(one.cost) for one in rows],
        "over today": ["" if one.gain is None else day.signed(one.gain) for one in rows],
        "± 95 %": ["" if np.isnan(one.half) else day.said(one.half) for one in rows],
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    return list(told), [list(row) for row in zip(*told.values(), strict=True)]


def hits_said(simulation: Simulation, day: PerDay) -> str:
    """What the numbers are, in a few sentences."""
    said = (
        f"For the {day.users:,.10g} users of a day, on average over the whole run, learning included; a reward of 1 "
        "counts as one."
    )
    if any(one.cost is not None for one in hits_a_day(simulation)):
        compared = "nonprivate" if "nonprivate" in simulation.by_learner() else "hindsight"
        said += f" Privacy costs what {compared} earns more."
    if simulation.today is not None:
        labels = simulation.stream.get("labels")
        names = [str(item) if labels is None else labels[item] for item in simulation.today.slate]
        said += f" Today everybody is shown {'; '.join(names)}."
    return said
