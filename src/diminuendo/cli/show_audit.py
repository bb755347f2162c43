"""An audit for the terminal."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table

from diminuendo.audit import METHODS, Audit
from diminuendo.audit.finding import Finding
from diminuendo.cli.screen import console

COLUMNS = tuple(reversed(METHODS))
"""What shows most first."""


def show_audit(found: Audit) -> None:
    """A line for each learner, then what it comes to."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("planted fault" if found.faults else "learner", no_wrap=not found.faults)
    for name in ("claimed", *COLUMNS):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for subject in found.subjects:
        table.add_row(subject, *_cells(found, subject), style="bold" if _remarkable(found, subject) else None)
    console.print(table)
    for line in _sentences(found):
        console.print(line, highlight=False, markup=False)


def _remarkable(found: Audit, subject: str) -> bool:
    return subject in (found.overlooked if found.faults else found.violators)


def _cells(found: Audit, subject: str) -> list[str]:
    by_method = found.about(subject)
    claimed = max(finding.claimed for finding in by_method.values())
    broken = subject in found.violators
    if found.faults:
        verdict = "found" if broken else "OVERLOOKED"
    else:
        verdict = "VIOLATION" if broken else "no violation" if math.isfinite(claimed) else "promises nothing"
    return [_number(claimed), *(_shown(by_method.get(method), claimed) for method in COLUMNS), verdict]


def _shown(finding: Finding | None, claimed: float) -> str:
    """What was shown; of how much, where that setting claims something else."""
    if finding is None:
        return "-"
    same = finding.claimed == claimed or _number(finding.claimed) == _number(claimed)
    return _number(finding.shown) + ("" if same else f"/{_number(finding.claimed)}")


def _number(epsilon: float) -> str:
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.2f}"


def _sentences(found: Audit) -> list[str]:
    runs = sum(finding.runs for finding in found.findings)
    lines = []
    count = len(found.subjects)
    if found.faults:
        lines.append(f"{count - len(found.overlooked)} of {count} planted faults were found.")
        if found.overlooked:
            lines.append(f"NOT FOUND: {', '.join(found.overlooked)}. This audit cannot be relied on.")
    elif found.violators:
        lines.append(f"BROKEN: {', '.join(found.violators)}: more can be shown than was promised.")
    else:
        who = found.subjects[0] if count == 1 else f"any of {count} learners"
        lines.append(f"Nothing was found against {who}.")
    sure = min((finding.confidence for finding in found.findings), default=1.0)
    lines.append(
        f"Each number is a lower bound, right with {100 * sure:.5g} % confidence or more; all of them together with "
        f"{100 * found.confidence:.5g} %. Seed {found.seed}, {found.effort}, {runs:,} runs."
    )
    if found.promise_nothing:
        lines.append(f"Left out, because they promise nothing: {', '.join(found.promise_nothing)}.")
    return lines
