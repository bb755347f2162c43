"""The command `audit`: tries to break what learners promise, and says how far it got."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Annotated

import typer

from diminuendo.cli.files import make_room
from diminuendo.cli.loading import loading
from diminuendo.cli.names import FEEDBACKS

PLOT = "audit.png"


def audit_command(
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose promise, or with --faults which fault; give it again for more. Default: all."
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="What learners are asked to promise.")] = 1.0,
    delta: Annotated[float, typer.Option(help="What learners are asked to promise.")] = 1e-6,
    quick: Annotated[bool, typer.Option("--quick", help="Less than a minute; less is shown.")] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="Plant faults and see whether the audit finds them all.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all findings to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Put plot and findings into this folder.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at the same time; -1: one per core.")] = -1,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the audit that printed this seed. Default: a new one.")
    ] = None,
) -> None:
    """Try to break what learners promise. Exit code 1 where one leaks more, or where a planted fault is overlooked."""
    with loading():
        from diminuendo.audit import EFFORTS, audit
        from diminuendo.cli.screen import console, progress_bars, say_plainly
        from diminuendo.cli.show_audit import show_audit
        from diminuendo.learners import Setting

    for kind in FEEDBACKS:
        Setting(2, 1, 4, kind, epsilon, delta)  # refused before any work is done
    make_room(json_file, out / PLOT if out else None)
    effort = EFFORTS["quick" if quick else "full"]
    try:
        with progress_bars() as bars:
            found = audit(
                None if learner is None else _players(learner),
                epsilon=epsilon,
                delta=delta,
                effort=effort,
                seed=secrets.randbits(32) if seed is None else seed,
                faults=faults,
                jobs=jobs,
                progress=bars,
            )
    except KeyboardInterrupt:
        say_plainly("Interrupted. An audit keeps nothing until it is done; run it again.")
        raise typer.Exit(130) from None
    show_audit(found)
    if out is not None:
        from diminuendo.audit.plot_audit import plot_audit  # here, because matplotlib takes its time to load

        console.print(f"Plot: {plot_audit(found, out / PLOT)}", highlight=False, markup=False)
        json_file = json_file or out / "audit.json"
    if json_file is not None:
        json_file.write_text(json.dumps(found.as_json(), indent=2, allow_nan=False) + "\n")
        console.print(f"Findings: {json_file}", highlight=False, markup=False)
    if not found.passed:
        raise typer.Exit(1)


def _players(names: list[str]) -> list[str]:
    """Learners by name; a role stands for all who play it."""
    from diminuendo.learners import ROLES

    return [player for name in names for player in (ROLES[name].values() if name in ROLES else (name,))]
