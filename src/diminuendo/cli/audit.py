"""The command `audit`: tries to break what learners promise, and says how far it got."""

from __future__ import annotations

import math
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from diminuendo.cli.screen import Plugins, console, make_room, progress_bars, say, say_plainly, write_json

if TYPE_CHECKING:
    from diminuendo.audit import Audit, Finding

PLOT = "audit.png"


def audit_command(
    learner: Annotated[
        list[str] | None,
        typer.Option(help="Which learner; may be repeated. Default: all that promise anything."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The privacy budget that learners are given.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The privacy budget that learners are given.")] = 1e-6,
    quick: Annotated[bool, typer.Option("--quick", help="About two minutes; less is shown.")] = False,
    faults: Annotated[
        bool, typer.Option("--faults", help="Leave out these learners' noise; the audit must find it.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all findings to this file.")] = None,
    out: Annotated[Path | None, typer.Option(help="Put plot and findings into this folder.")] = None,
    jobs: Annotated[int, typer.Option(help="Runs at the same time; -1: one per core.")] = -1,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the audit that printed this seed. Default: a new one.")
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Attack the guarantees of learners. Exit code 1 if one leaks more, or if missing noise is overlooked."""
    from diminuendo.audit import EFFORTS, audit
    from diminuendo.learners import Setting
    from diminuendo.types import FEEDBACKS

    for kind in FEEDBACKS:
        Setting(2, 1, 4, kind, epsilon, delta)  # refused before any work is done
    make_room(json_file, out / PLOT if out else None)
    effort = EFFORTS["quick" if quick else "full"]
    try:
        with progress_bars() as bars:
            result = audit(
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
    show_audit(result)
    if out is not None:
        # Here, because matplotlib takes its time to load.
        from diminuendo.audit.figure import audit_shares, plot_audit

        say(f"Plot: {plot_audit(audit_shares(result), out / PLOT)}")
        json_file = json_file or out / "audit.json"
    write_json("Findings", json_file, result.as_json())
    if not result.passed:
        raise typer.Exit(1)


def _players(names: list[str]) -> list[str]:
    """Learners by name; a role stands for all who play it."""
    from diminuendo.learners import ROLES

    return [player for name in names for player in (ROLES[name].values() if name in ROLES else (name,))]


def show_audit(result: Audit) -> None:
    """Print a line for each learner, and then what it comes to."""
    from diminuendo.audit import METHODS
    from diminuendo.audit.variants import BEHIND

    methods = tuple(reversed(METHODS))  # the one that shows most comes first
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("planted fault" if result.faults else "learner", no_wrap=not result.faults)
    for name in ("claimed", *methods):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    remarkable = result.overlooked if result.faults else result.violators + result.silent
    whose = [subject.partition(BEHIND)[0] for subject in result.subjects]
    together = sorted(result.subjects, key=lambda subject: whose.index(subject.partition(BEHIND)[0]))
    for subject in result.subjects if result.faults else together:
        style = "bold" if subject in remarkable else None
        variant = "" if result.faults else subject.partition(BEHIND)[2]
        table.add_row(f"  {variant}" if variant else subject, *_cells(result, subject, methods), style=style)
    for name in result.unsuitable:
        table.add_row(name, *["-"] * (1 + len(methods)), "UNSUITABLE", style="bold")
    console.print(table)
    for line in _sentences(result):
        say(line)


def _cells(result: Audit, subject: str, methods: tuple[str, ...]) -> list[str]:
    by_method = result.about(subject)
    claimed = max(finding.claimed for finding in by_method.values())
    broken = subject in result.violators
    if result.faults:
        verdict = "found" if broken else "OVERLOOKED"
    else:
        verdict = "VIOLATION" if broken else "no violation" if math.isfinite(claimed) else "no guarantee"
        verdict = "NOTHING TRIED" if subject in result.silent else verdict
    return [_number(claimed), *(_shown(by_method.get(method), claimed) for method in methods), verdict]


def _shown(finding: Finding | None, claimed: float) -> str:
    """What was shown; of how much, where that setting claims something else."""
    if finding is None:
        return "-"
    same = finding.claimed == claimed or _number(finding.claimed) == _number(claimed)
    return _number(finding.shown) + ("" if same else f"/{_number(finding.claimed)}")


def _number(epsilon: float) -> str:
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.2f}"


def _sentences(result: Audit) -> list[str]:
    runs = sum(finding.runs for finding in result.findings)
    lines = []
    count = len(result.subjects)
    if result.faults:
        lines.append(f"{count - len(result.overlooked)} of {count} planted faults were found.")
        if result.overlooked:
            lines.append(f"NOT FOUND: {', '.join(result.overlooked)}. This audit cannot be relied on.")
    elif result.violators:
        lines.append(
            f"BROKEN: {', '.join(result.violators)}: an attack shows more than the guarantee allows."
        )
    lines += [f"UNSUITABLE: {name} was not attacked: {why}." for name, why in result.unsuitable.items()]
    if result.silent and not result.faults:
        lines.append(
            f"NOTHING TRIED: {', '.join(result.silent)}: nothing was released in any round. An audit shows "
            "something about a learner only if its streams are long enough for its releases."
        )
    elif not result.faults and not result.violators and result.subjects:
        tried = result.learners
        who = tried[0] if len(tried) == 1 else f"any of {len(tried)} learners"
        more = f", tried in {count} ways" if count > len(tried) else ""
        lines.append(f"Nothing was found against {who}{more}.")
    if result.findings:
        sure = min(finding.confidence for finding in result.findings)
        lines.append(
            f"Each number is a lower bound, right with {100 * sure:.5g} % confidence or more; all of them together "
            f"with {100 * result.confidence:.5g} %. Seed {result.seed}, {result.effort}, {runs:,} runs."
        )
    if result.promise_nothing:
        lines.append(f"Left out, because they have no guarantee: {', '.join(result.promise_nothing)}.")
    return lines
