"""A plan as a table for the terminal."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table

from diminuendo.cli.screen import console
from diminuendo.plan import Candidate, Plan
from diminuendo.privacy.budget import Guarantee


def show_plan(found: Plan) -> None:
    """Every candidate, the recommended one marked, and why."""
    setting = found.setting
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    rows = [_row(one, setting.rounds) for one in found.candidates]
    shown = [name for name in rows[0] if name == "learner" or any(row[name] for row in rows)]
    for name in shown:
        table.add_column(name, justify="left" if name == "learner" else "right", no_wrap=True)
    for one, row in zip(found.candidates, rows, strict=True):
        best = one.name == found.recommended
        row["learner"] = ("→ " if best else "  ") + row["learner"]
        table.add_row(*(row[name] for name in shown), style="bold" if best else None)
    console.print(
        f"{setting.slots} of {setting.n_items:,} things for {setting.rounds:,} people, {setting.feedback} feedback, "
        f"epsilon {setting.epsilon:g}, delta {setting.delta:g}",
        highlight=False,
    )
    console.print(table)
    console.print(
        "ε: proved here, and by the paper's own analysis. Regret: proved, at most this much per person below "
        "(1 - 1/e) of the best slate; - where that says nothing.",
        style="dim",
        highlight=False,
    )
    for note in dict.fromkeys(note for one in found.candidates for note in one.notes):
        console.print(f"Note: {note}", highlight=False, markup=False)
    for name, reason in found.left_out.items():
        console.print(f"Left out: {name}. {reason}", highlight=False, markup=False)
    console.print(f"Recommended: {found.recommended}. {found.why}", highlight=False, markup=False)


def _row(one: Candidate, rounds: int) -> dict[str, str]:
    return {
        "learner": one.name,
        "ε": _epsilon(one.guarantee),
        "paper's ε": "" if one.claim is None else _epsilon(one.claim),
        "rate": f"{one.parameters['eta']:.3g}" if "eta" in one.parameters else "",
        "explores": f"{one.parameters['gamma']:.3f}" if "gamma" in one.parameters else "",
        "regret": f"{one.bound / rounds:.3f}" if one.bound and one.says_something(rounds) else "-",
    }


def _epsilon(guarantee: Guarantee) -> str:
    return "none" if math.isinf(guarantee.epsilon) else f"{guarantee.epsilon:.3g}"
