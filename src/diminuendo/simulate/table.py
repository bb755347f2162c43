"""The result of a simulation as a table for the terminal."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.table import Table
from scipy.special import stdtrit

from diminuendo.simulate.run import NOTE, Result, Simulation


def mean_and_half_width(values: list[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 percent interval (Student's t); NaN for one value."""
    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return float(np.mean(values)), float(stdtrit(len(values) - 1, 0.975)) * error


def by_learner(simulation: Simulation) -> dict[str, list[Result]]:
    """Results grouped by learner, in the order of the simulation."""
    groups: dict[str, list[Result]] = {}
    for result in simulation.results:
        groups.setdefault(result.learner, []).append(result)
    return groups


def as_table(simulation: Simulation) -> Table:
    """Learners against hindsight, best first."""
    stream, base = simulation.stream, simulation.benchmarks
    table = Table(
        title=f"{stream['name']}: {stream['rounds']:,} people, {stream['items']:,} items, "
        f"{len(base.greedy.slate)} slots, {stream['objective']}, {simulation.results[0].feedback} feedback",
        caption=f"Hindsight shows one slate to everybody. {NOTE}",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("who chooses", no_wrap=True)
    for column in ("payoff", "± 95%", "of greedy", "worst", "people/s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("privacy", no_wrap=True)
    best = base.optimum
    bounds = "optimum, proven" if best.proven else f"optimum, ≤ {best.upper:.4f}"
    table.add_row(
        bounds,
        f"{best.lower:.4f}",
        "",
        _ratio(best.lower, base.greedy.value),
        "",
        "",
        "hindsight",
        style="dim",
    )
    table.add_row(
        "greedy", f"{base.greedy.value:.4f}", "", "1.000", "", "", "hindsight", style="dim", end_section=True
    )
    groups = by_learner(simulation)
    for name in sorted(groups, key=lambda name: -float(np.mean([r.mean_payoff for r in groups[name]]))):
        runs = groups[name]
        payoffs = [run.mean_payoff for run in runs]
        mean, half = mean_and_half_width(payoffs)
        speed = runs[0].rounds / float(np.median([run.seconds for run in runs]))
        first = runs[0]
        promise = "none" if first.epsilon is None else f"ε={first.epsilon:.2g} δ={_short(first.delta)}"
        table.add_row(
            name,
            f"{mean:.4f}",
            "" if np.isnan(half) else f"{half:.4f}",
            _ratio(mean, base.greedy.value),
            _ratio(min(payoffs), base.greedy.value),
            f"{speed / 1000:,.0f}k",
            promise,
        )
    return table


def _short(delta: float | None) -> str:
    """1e-6 rather than 1e-06."""
    return f"{delta:.1g}".replace("e-0", "e-")


def _ratio(value: float, reference: float) -> str:
    return f"{value / reference:.3f}" if reference > 0 else "-"
