"""The application: puts the commands together, in the order in which help lists them."""

from __future__ import annotations

from typing import Annotated

import typer

import diminuendo
from diminuendo.cli.audit import audit_command
from diminuendo.cli.learners import learners_command
from diminuendo.cli.ledger import ledger_command
from diminuendo.cli.options import for_typer
from diminuendo.cli.plan import plan_command
from diminuendo.cli.serve import apply_command, check_command, serve_command
from diminuendo.cli.simulate import demo, simulate_command, streams_command
from diminuendo.cli.store import move_command, roles_command

app = typer.Typer(
    help="Recommendations that learn from clicks and reveal no user.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _say_version(requested: bool) -> None:
    if requested:
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
app.command("check")(for_typer(check_command))
app.command("apply")(for_typer(apply_command))
app.command("serve")(for_typer(serve_command))
app.command("move")(for_typer(move_command))
app.command("roles")(for_typer(roles_command))
app.command("audit")(audit_command)
app.command("plan")(plan_command)
app.command("learners")(learners_command)
app.command("streams")(streams_command)
app.command("ledger")(ledger_command)


@app.command()
def version() -> None:
    """Print the version."""
    print(diminuendo.__version__)
