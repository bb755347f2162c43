"""The numbers of one simulation: the answer in three of them, and all of them in a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from diminuendo.simulate.digits import upwards, upwards_short
from diminuendo.simulate.plot import middle_epsilon
from diminuendo.simulate.plot_privacy import shares
from diminuendo.simulate.plot_style import mean_and_band
from diminuendo.simulate.result import Result, Simulation

COLUMNS = (
    "learner",
    "played by",
    "ε asked",
    "ε proved",
    "δ",
    "payoff",
    "± 95 %",
    "of greedy",
    "worst run",
    "regret",
    "people/s",
)


class Headline(NamedTuple):
    """One number of the answer, and whose it is."""

    share: str
    whose: str


def main_learner(simulation: Simulation) -> str:
    """Whom the report is about: `private`, else the first that promises something, else the first."""
    names = list(simulation.by_learner())
    promising = [run.learner for run in simulation.results if run.epsilon is not None and run.epsilon > 0]
    return "private" if "private" in names else (promising or names)[0]


def headlines(simulation: Simulation) -> Iterator[Headline]:
    """What the main learner earns, what one without privacy does, what chance does."""
    groups, about = simulation.by_learner(middle_epsilon(simulation)), main_learner(simulation)
    wanted = [about, *(name for name in ("nonprivate", "random") if name in groups and name != about)]
    for name in wanted:
        runs = groups[name]
        mean, half = mean_and_band(shares(runs, simulation)[:, None])
        asked = "" if runs[0].asked_epsilon is None else f" at epsilon {runs[0].asked_epsilon:g}"
        yield Headline(_percent(float(mean[0])), f"{name}{asked}{_give_or_take(100 * float(half[0]))}")
    if "random" not in groups:
        base = simulation.benchmarks
        share = base.random / base.greedy.value if base.greedy.value else 1.0
        yield Headline(_percent(share), "random choice")


def table_rows(simulation: Simulation) -> Iterator[list[str]]:
    """Hindsight, then every learner at every epsilon."""
    base = simulation.benchmarks
    best, reference = base.optimum, base.greedy.value
    bound = "optimum, proven" if best.proven else f"optimum, at most {best.upper:.4f}"
    nothing = [""] * 4
    yield [bound, *nothing, f"{best.lower:.4f}", "", _ratio(best.lower, reference), "", "", ""]
    yield ["greedy in hindsight", *nothing, f"{reference:.4f}", "", _ratio(reference, reference), "", "", ""]
    groups: dict[tuple[str, float | None], list[Result]] = {}
    for run in simulation.results:
        groups.setdefault((run.learner, run.asked_epsilon), []).append(run)
    for (name, asked), runs in groups.items():
        first, payoffs = runs[0], np.array([[run.mean_payoff] for run in runs])
        mean, half = (float(part[0]) for part in mean_and_band(payoffs))
        yield [
            name,
            first.played_by,
            "" if asked is None else f"{asked:g}",
            "nothing" if first.epsilon is None else upwards(first.epsilon),
            "" if first.delta is None else upwards_short(first.delta),
            f"{mean:.4f}",
            "" if np.isnan(half) else f"{half:.4f}",
            _ratio(mean, reference),
            _ratio(float(payoffs.min()), reference),
            f"{np.mean([run.regret for run in runs]):.4f}",
            f"{first.rounds / max(1e-9, float(np.median([run.seconds for run in runs]))):,.0f}",
        ]


def _ratio(value: float, reference: float) -> str:
    return f"{value / reference:.3f}" if reference > 0 else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def _give_or_take(half: float) -> str:
    """Nothing for one run, of which nobody knows."""
    if np.isnan(half):
        return ""
    return " (±\N{NO-BREAK SPACE}" + (f"{half:.0f})" if half >= 9.5 else f"{half:.1g})")
