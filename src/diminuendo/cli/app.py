"""The commands. What they need is loaded in them, so that help and the version come at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import diminuendo
from diminuendo.cli.audit import audit_command
from diminuendo.cli.names import FEEDBACKS
from diminuendo.cli.screen import loading, make_room
from diminuendo.cli.simulate import demo, simulate_command

if TYPE_CHECKING:
    from diminuendo.types import FeedbackKind

app = typer.Typer(
    help="Private online choice: show k of N things to a stream of people, learn from each, reveal nobody.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        print(diminuendo.__version__)
        raise typer.Exit


@app.callback()
def _before_commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command("simulate")(simulate_command)
app.command("audit")(audit_command)


@app.command("plan")
def plan_command(
    items: Annotated[int, typer.Option(help="How many things there are.")],
    slots: Annotated[int, typer.Option(help="How many of them are shown to each person.")],
    rounds: Annotated[int, typer.Option(help="How many people will come.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Privacy budget; 0 for pure privacy.")] = 1e-6,
    feedback: Annotated[str, typer.Option(help=f"What comes back: {', '.join(FEEDBACKS)}.")] = "full",
    store: Annotated[
        bool, typer.Option("--store/--no-store", help="Whether what people said may be kept in memory.")
    ] = True,
    adversarial: Annotated[
        bool, typer.Option("--adversarial", help="Take what has a bound that holds whatever people want.")
    ] = False,
    cares_about: Annotated[
        float | None, typer.Option(help="How many things one person cares about, if that is known.")
    ] = None,
    visits: Annotated[int, typer.Option(help="Rounds that one person may have; they share the budget.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Draw loss against epsilon into this file, .png or .svg.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all of it to this file; - for the screen.")
    ] = None,
) -> None:
    """Which learner to take, what it promises, and what a budget will cost; from public facts alone."""
    with loading():
        from diminuendo import _validate
        from diminuendo.cli.plan import plottable, show_plan
        from diminuendo.cli.screen import console, progress_bars
        from diminuendo.plan import plan

    kind = cast("FeedbackKind", _validate.one_of(feedback, FEEDBACKS, "--feedback"))
    found = plan(
        items,
        slots,
        rounds,
        epsilon=epsilon,
        delta=delta,
        feedback=kind,
        store_people=store,
        adversarial=adversarial,
        cares_about=cares_about,
        visits=visits,
    )
    if plot is not None:
        plottable(found, plot)  # refused before any work is done
    make_room(plot, json_file)
    with progress_bars() as bars:
        found = found.with_prices(progress=bars)
    written = json.dumps(found.as_json(), indent=2, allow_nan=False)
    if plot is not None:
        from diminuendo.simulate.figures.prices import (
            plot_prices,  # here, because matplotlib takes its time to load
        )

        plot_prices(found, plot)
    if str(json_file) == "-":
        print(written)
        return
    show_plan(found)
    if plot is not None:
        console.print(f"Plot: {plot}", highlight=False, markup=False)
    if json_file is not None:
        json_file.write_text(written + "\n")
        console.print(f"Numbers: {json_file}", highlight=False, markup=False)


@app.command()
def learners(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the catalogue to this file; - for the screen.")
    ] = None,
) -> None:
    """What learners there are, what each promises, proves and keeps, and when to take it."""
    with loading():
        from diminuendo.cli.learners import learners_as_json, show_learners
        from diminuendo.cli.screen import console

    make_room(json_file)
    written = json.dumps(learners_as_json(), indent=2, ensure_ascii=False)
    if str(json_file) == "-":
        print(written)
        return
    show_learners()
    if json_file is not None:
        json_file.write_text(written + "\n")
        console.print(f"Catalogue: {json_file}", highlight=False, markup=False)


@app.command()
def streams() -> None:
    """What streams have a name, and what files can be read."""
    with loading():
        from rich import box
        from rich.table import Table

        from diminuendo.cli.screen import console
        from diminuendo.streams import BUILTIN

    table = Table(title="Built-in streams", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("name")
    table.add_column("people", justify="right")
    table.add_column("items", justify="right")
    table.add_column("objective")
    for name, make in BUILTIN.items():
        people = make()
        table.add_row(name, f"{len(people):,}", f"{people.n_items:,}", people.family_name)
    console.print(table)
    console.print(
        "Files: scipy CSR [bold].npz[/] (row = person, column = item, value in [0, 1]); ratings "
        "[bold].csv[/], [bold].csv.gz[/], [bold].parquet[/] with columns person,item,value; baskets "
        "[bold].txt[/], [bold].txt.gz[/], one line of item numbers per person."
    )


@app.command()
def ledger(
    file: Annotated[Path, typer.Argument(help="A ledger file, in use or not.")],
    head: Annotated[str | None, typer.Option(help="A head noted earlier that the file must contain.")] = None,
    last: Annotated[int, typer.Option(help="Show so many of the latest charges.")] = 10,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write what it says to this file.")] = None,
) -> None:
    """Check a privacy ledger line by line and say what was spent on what."""
    with loading():
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        from diminuendo.cli.screen import console
        from diminuendo.privacy.events import to_json
        from diminuendo.privacy.ledger import audit
        from diminuendo.privacy.ledger_file import load

    make_room(json_file)
    found = audit(file, expect=head)
    budget = found.budget
    table = Table(box=box.SIMPLE)
    for name in ("charge", "what for", "cost by itself, epsilon"):
        table.add_column(name, justify="right" if name.endswith("epsilon") else "left")
    for number, charge in list(enumerate(found.charges, start=1))[-last:] if last > 0 else []:
        alone = budget.counting.epsilon(charge.event, budget.delta, budget.unit.rounds)
        table.add_row(f"{number} {to_json(charge.event)['kind']}", escape(charge.note) or "-", f"{alone:.4g}")
    lines = [
        f"Budget   {budget}",
        f"Spent    epsilon {found.spent():.6g} of {budget.epsilon:g}, in {len(found.charges)} charges",
        f"Drawn    {len(found.drawn)} releases"
        + ("" if found.guarantee().secure_coins else ", seeded: worth nothing"),
        f"Checked  every line fits the one before; head {found.head}",
    ]
    if torn := load(file).torn:
        lines.append("Note     the last line is unfinished, as after a crash; nothing was drawn on it")
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)
    if found.charges and last > 0:
        console.print(table)
    if json_file is not None:
        charges = [{"charge": to_json(charge.event), "note": charge.note} for charge in found.charges]
        said = {"budget": budget.as_json(), "spent": found.spent(), "head": found.head, "torn": torn}
        released = [drawn.body() for drawn in found.drawn]
        json_file.write_text(json.dumps(said | {"charges": charges, "releases": released}, indent=2) + "\n")


@app.command()
def version() -> None:
    """Print the version."""
    print(diminuendo.__version__)
