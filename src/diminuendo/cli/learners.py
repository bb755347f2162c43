"""The command `learners`: guarantee, regret bound, what each learner stores, and when to use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from diminuendo.cli.screen import Plugins, console, make_room, say

SPEC = ("learner", "feedback", "privacy", "regret", "stores")
"""Columns of the list."""


def learners_command(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the catalogue to this file; - for the screen.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """What learners there are: guarantee, regret bound, what each stores, and when to use it."""
    make_room(json_file)
    records = learners_as_json()
    written = json.dumps(records, indent=2, ensure_ascii=False)
    if str(json_file) == "-":
        print(written)
        return
    show_learners(records)
    if json_file is not None:
        json_file.write_text(written + "\n")
        say(f"Catalogue: {json_file}")


def learners_as_json() -> list[dict[str, Any]]:
    """One record for each learner, the recommended ones first: what is printed, and what it is."""
    from diminuendo.learners import LEARNERS, ROLES
    from diminuendo.learners.base.entry import spelled

    recommended = list(ROLES["private"].values())
    return [
        {
            "learner": name,
            "feedback": sorted(learner.reads),
            "summary": learner.summary,
            "roles": [role for role, players in ROLES.items() if name in players.values()],
            **vars(learner.advice),
            "options": {option: list(map(spelled, values)) for option, values in learner.choices.items()},
        }
        for name, learner in sorted(LEARNERS.items(), key=lambda each: each[0] not in recommended)
    ]


def show_learners(records: list[dict[str, Any]]) -> None:
    """Print the roles first, because most users want one of these; then all learners."""
    from diminuendo.learners import ABOUT, ROLES
    from diminuendo.learners.recommend import READ_SO

    roles = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    roles.add_column("role", no_wrap=True)
    roles.add_column("purpose, and the learner for each feedback")
    for role, by_feedback in ROLES.items():
        plays = ", ".join(f"{learner} ({feedback})" for feedback, learner in by_feedback.items())
        roles.add_row(role, f"{ABOUT[role]}: {plays}")
    console.print(roles)
    console.print(_lines(records))
    taking = dict[str, list[str]]()
    for record in records:
        for option, values in record["options"].items():
            taking.setdefault(f"{option}={'|'.join(values)}", []).append(record["learner"])
    options = "; ".join(f"{option} ({', '.join(names)})" for option, names in taking.items())
    say(f"Options, the default first, go behind the name, as in fi-dp:calibration=paper: {options}.")
    say(READ_SO, style="dim")


def _lines(records: list[dict[str, Any]]) -> Text:
    """Two lines for each learner: its properties, and when to use it."""
    rows = [tuple(SPEC), *map(_spec, records)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    head, *lines_of_learners = ("  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)
    lines = Text(f"{head}\n", style="bold")
    for record, spec in zip(records, lines_of_learners, strict=True):
        lines.append(f"{spec}\n", style="not bold")
        lines.append(f"    use it {record['when']}\n", style="not bold dim")
    return lines


def _spec(record: dict[str, Any]) -> tuple[str, ...]:
    reads = record["feedback"]
    feedback = "any" if len(reads) > 1 else reads[0]
    return record["learner"], feedback, record["guarantee"], record["bound"], record["memory"]
