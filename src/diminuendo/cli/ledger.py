"""The command `ledger`: checks a privacy ledger line by line and says what was spent on what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from diminuendo.cli.screen import console, make_room


def ledger_command(
    file: Annotated[Path, typer.Argument(help="A ledger file, in use or not.")],
    head: Annotated[str | None, typer.Option(help="A head noted earlier that the file must contain.")] = None,
    last: Annotated[int, typer.Option(help="Show so many of the latest charges.")] = 10,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write what it says to this file.")] = None,
) -> None:
    """Check a privacy ledger line by line and say what was spent on what."""
    from diminuendo.privacy.books.ledger_file import load
    from diminuendo.privacy.events import to_json
    from diminuendo.privacy.ledger import audit

    make_room(json_file)
    result = audit(file, expect=head)
    budget = result.budget
    table = Table(box=box.SIMPLE)
    for name in ("charge", "purpose", "cost alone, epsilon"):
        table.add_column(name, justify="right" if name.endswith("epsilon") else "left")
    for number, charge in list(enumerate(result.charges, start=1))[-last:] if last > 0 else []:
        alone = budget.counting.epsilon(charge.event, budget.delta, budget.unit.rounds)
        table.add_row(f"{number} {to_json(charge.event)['kind']}", escape(charge.note) or "-", f"{alone:.4g}")
    charged = f"{len(result.charges)} charge{'' if len(result.charges) == 1 else 's'}"
    lines = [
        f"Budget   {budget}",
        f"Spent    epsilon {result.spent():.6g} of {budget.epsilon:g}, in {charged}:",
        "         the largest cost of any one user, not a share of the users; learners charge in advance.",
        "         The budget covers a running learner to its end, unless others charge this ledger.",
        f"Releases {len(result.drawn)}" + ("" if result.guarantee().secure_rng else ", seeded: no privacy"),
        f"Checked  every entry matches the hash of the one before; head {result.head}",
    ]
    if torn := load(file).torn:
        lines.append("Note     the last line is incomplete, as after a crash; nothing was released on it")
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
    if result.charges and last > 0:
        console.print(table)
    if json_file is not None:
        charges = [{"charge": to_json(charge.event), "note": charge.note} for charge in result.charges]
        said = {"budget": budget.as_json(), "spent": result.spent(), "head": result.head, "torn": torn}
        released = [drawn.body() for drawn in result.drawn]
        json_file.write_text(json.dumps(said | {"charges": charges, "releases": released}, indent=2) + "\n")
