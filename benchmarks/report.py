"""What a benchmark says: a table of numbers, and sentences about it. Printed, and kept as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

Cell: TypeAlias = str | float | int | bool

HOLDS, FAILS = "holds", "DOES NOT HOLD"


class Disagreement(Exception):
    """Two competitors did not compute the same thing, so their times must not be compared."""


@dataclass
class Part:
    """One benchmark: its table, and what is to be known about it."""

    name: str
    title: str
    columns: Sequence[str]
    rows: list[Sequence[Cell]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)
    """What follows from the rows: exponents, ratios, differences."""

    def print(self, console: Console) -> None:
        """The table, with the sentences below it."""
        table = Table(title=self.title, title_justify="left", title_style="bold")
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="left" if index == 0 else "right")
        for row in self.rows:
            table.add_row(*(shown(cell) for cell in row))
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False, soft_wrap=True)
        console.print()

    def as_json(self) -> dict[str, Any]:
        """The same as plain data: one mapping per row."""
        kept = asdict(self)
        kept["rows"] = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        del kept["columns"]
        return kept

    def as_markdown(self) -> str:
        """The same for a page."""
        lines = [
            f"### {self.title}",
            "",
            _line(self.columns),
            _line(["---", *["---:"] * (len(self.columns) - 1)]),
        ]
        lines += [_line([shown(cell) for cell in row]) for row in self.rows]
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes), ""])

    @property
    def verdicts(self) -> list[str]:
        """The sentences that say whether a claim holds."""
        return [note for note in self.notes if note.startswith((HOLDS, FAILS))]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def shown(cell: Cell) -> str:
    """A number with four figures, as people write it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 10_000 else f"{cell:.4g}"
    return cell


def verdict(claim: str, holds: bool) -> str:
    """A claim and whether this run bears it out."""
    return f"{HOLDS if holds else FAILS}: {claim}"
