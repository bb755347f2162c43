"""What commands share: two consoles and progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from diminuendo.types import Progress as Tick

console = Console()
errors = Console(stderr=True)

MEMORY = 1800.0
"""Seconds that the time left is judged by: runs of many people report rarely."""


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Tick]]:
    """Bars on the error console: call with a description and a size, get a function to advance by."""
    bars = Progress(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f}", justify="right"),
        TimeRemainingColumn(),
        console=errors,
        speed_estimate_period=MEMORY,
        transient=True,  # done, or failed: then what matters is what is printed next
    )
    with bars:

        def begin(what: str, size: int) -> Tick:
            task = bars.add_task(what, total=max(1, size))
            return lambda done: bars.advance(task, done)

        yield begin
