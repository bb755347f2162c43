"""Where the budget went, as pictures: for what rounds were charged, and which (spending.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from diminuendo.simulate.figures.style import COLOURS, FAINT, panel, short, thousands
from diminuendo.types import Floats

Spending = list[dict[str, Any]]
SIGNS = {"epsilon": "ε", "rho": "\N{GREEK SMALL LETTER RHO}", "mu^2": "μ²"}
"""What is added up, by its letter."""
HATCHES = ("", "//", "\\\\", "xx", "--", "||")
"""So that purposes can be told apart without colours."""


def spending_figure(spent: dict[str, Spending]) -> Figure:
    """One bar per learner: what a round was charged on average, for each purpose."""
    learners = {name: records for name, records in spent.items() if records}
    purposes = list(dict.fromkeys(record["what"] for records in learners.values() for record in records))
    figure, axes = panel(1.5 + 0.42 * len(learners) + 0.2 * len(purposes))
    for row, records in enumerate(learners.values()):
        done = 0.0
        for record in records:
            share = average(record)
            axes.barh(-row, share, left=done, height=0.62, **_paint(purposes.index(record["what"])))
            done += share
        axes.annotate(
            _percent(done), (done, -row), textcoords="offset points", xytext=(5, 0), va="center", fontsize=9.5
        )
    names = [f"{name} ({SIGNS[records[0]['unit']]})" for name, records in learners.items()]
    axes.set_yticks([-row for row in range(len(learners))], names)
    axes.set(xlabel="charged for the average round", xlim=(0, 1.2), ylim=(0.5 - len(learners), 0.5))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.grid(False, axis="y")
    figure.legend(
        handles=[Patch(label=what, **_paint(number)) for number, what in enumerate(purposes)],
        loc="outside upper left",
        fontsize=9.5,
    )
    return figure


def arrival_figure(name: str, records: Spending) -> Figure:
    """What each round was charged, by when it was."""
    figure, axes = panel(3.2 + 0.2 * len(records))
    until = np.array(records[0]["until"], dtype=np.float64)
    edges, floor = np.concatenate([[0.0], until]), np.zeros(len(until))
    for number, record in enumerate(records):
        top = floor + np.array(record["shares"])
        axes.stairs(top, edges, baseline=floor, fill=True, label=record["what"], **_paint(number))
        floor = top
    axes.axhline(1, color=FAINT, linestyle="--", linewidth=1)
    axes.set(xlabel="round", title=f"{short(name)}: charged for it", xlim=(0, until[-1]))
    axes.set_ylim(0, max(1.08, 1.05 * float(floor.max())))
    axes.set_yticks([0, 0.5, 1.0], ["0", "half", "all"])
    thousands(axes)
    figure.legend(loc="outside upper left", fontsize=9.5)
    return figure


def varies(records: Spending) -> bool:
    """Whether charges depend on the round."""
    return any(len(record["until"]) > 1 for record in records)


def average(record: dict[str, Any]) -> float:
    """What the average round was charged."""
    users: Floats = np.diff(np.array(record["until"], dtype=np.float64), prepend=0.0)
    return float(users @ np.array(record["shares"]) / users.sum())


def _paint(number: int) -> dict[str, Any]:
    """Pale with dark lines. Pale, not transparent: under lines SVG files forget how transparent a colour was."""
    dark = np.array(to_rgb(COLOURS[number % len(COLOURS)]))
    hatch = HATCHES[number % len(HATCHES)]
    return {"facecolor": tuple((1 + dark) / 2), "edgecolor": tuple(dark), "hatch": hatch, "linewidth": 0.8}


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.095 else f"{100 * share:.2g} %"
