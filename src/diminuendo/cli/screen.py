"""What commands share: two consoles and progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from diminuendo.types import Progress as Tick

console = Console()
errors = Console(stderr=True)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Tick]]:
    """Bars on the error console: call with a description and a size, get a function to advance by."""
    bars = Progress(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,  # done, or failed: then what matters is what is printed next
    )
    with bars:

        def begin(what: str, size: int) -> Tick:
            task = bars.add_task(what, total=max(1, size))
            return lambda done: bars.advance(task, done)

        yield begin


@contextmanager
def interruptible(out: Path | None) -> Iterator[None]:
    """Say, when interrupted, what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "Nothing is kept without --out."
        if out is not None:
            kept = f"Finished runs are kept in {out}; the same command goes on from there."
        errors.print(f"Interrupted. {kept}", highlight=False, markup=False)
        raise typer.Exit(130) from None
