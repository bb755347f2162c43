"""The catalogue of learners for the terminal and for files."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from diminuendo.cli.screen import console
from diminuendo.learners import ABOUT, LEARNERS, ROLES
from diminuendo.learners.recommend import CATALOGUE, READ_SO

FACTS = ("learner", "feedback", "privacy", "regret", "keeps")
"""What is said of each in a word or two."""
WIDE = 100
"""Columns of a screen that has room for a sentence beside the facts."""


def show_learners() -> None:
    """Roles first, because most people want one of these; then everybody."""
    roles = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    roles.add_column("role", no_wrap=True)
    roles.add_column("what for, and who plays it")
    for role, by_feedback in ROLES.items():
        plays = ", ".join(f"{learner} ({feedback})" for feedback, learner in by_feedback.items())
        roles.add_row(role, f"{ABOUT[role]}: {plays}")
    console.print(roles)
    console.print(_table() if console.width >= WIDE else _lines())
    console.print(READ_SO, style="dim", highlight=False, markup=False)


def _table() -> Table:
    """A row for each."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    widths = {
        "privacy": 8,
        "keeps": 9,
    }  # what is longer takes two lines, so that there is room for when to take it
    for name in (*FACTS, "take it"):
        table.add_column(name, no_wrap=name in ("learner", "regret"), max_width=widths.get(name))
    for name in LEARNERS:
        table.add_row(*_facts(name), CATALOGUE[name].when)
    return table


def _lines() -> Text:
    """Two lines for each, where there is no room for a column that says when to take it."""
    rows = [FACTS, *map(_facts, LEARNERS)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    head, *told = ("  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)
    lines = Text(f"{head}\n", style="bold")
    for name, facts in zip(LEARNERS, told, strict=True):
        lines.append(f"{facts}\n", style="not bold")
        lines.append(f"    take it {CATALOGUE[name].when}\n", style="not bold dim")
    return lines


def _facts(name: str) -> tuple[str, ...]:
    entry, reads = CATALOGUE[name], sorted(LEARNERS[name].reads)
    return (name, "any" if len(reads) > 1 else reads[0], entry.guarantee, entry.bound, entry.memory)


def learners_as_json() -> list[dict[str, Any]]:
    """One record for each learner: what is printed, and what it is."""
    return [
        {
            "learner": name,
            "feedback": sorted(learner.reads),
            "summary": learner.summary,
            "roles": [role for role, players in ROLES.items() if name in players.values()],
            **vars(CATALOGUE[name]),
        }
        for name, learner in LEARNERS.items()
    ]
