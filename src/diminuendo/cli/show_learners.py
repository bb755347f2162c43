"""The catalogue of learners for the terminal and for files."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from diminuendo.cli.screen import console
from diminuendo.learners import ABOUT, LEARNERS, ROLES
from diminuendo.learners.catalogue import CATALOGUE, READ_SO


def show_learners() -> None:
    """Roles first, because most people want one of these; then everybody."""
    roles = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    roles.add_column("role", no_wrap=True)
    roles.add_column("what for, and who plays it")
    for role, by_feedback in ROLES.items():
        plays = ", ".join(f"{learner} ({feedback})" for feedback, learner in by_feedback.items())
        roles.add_row(role, f"{ABOUT[role]}: {plays}")
    console.print(roles)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    widths = {
        "privacy": 8,
        "keeps": 9,
    }  # what is longer takes two lines, so that there is room for when to take it
    for name in ("learner", "feedback", "privacy", "regret", "keeps", "take it"):
        table.add_column(name, no_wrap=name in ("learner", "regret"), max_width=widths.get(name))
    for name, learner in LEARNERS.items():
        entry, reads = CATALOGUE[name], sorted(learner.reads)
        feedback = "any" if len(reads) > 1 else reads[0]
        table.add_row(name, feedback, entry.guarantee, entry.bound, entry.memory, entry.when)
    console.print(table)
    console.print(READ_SO, style="dim", highlight=False, markup=False)


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
