"""What commands share: two consoles, progress bars, and what is said while kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from diminuendo._numba.progress import Reporter, reported_by

console = Console()
errors = Console(stderr=True)

MEMORY = 1800.0
"""Seconds that the time left is judged by: runs of many people report rarely."""


def say_plainly(line: str) -> None:
    """A line on the error console, as it is."""
    errors.print(line, highlight=False, markup=False, soft_wrap=True)


class _Counted(ProgressColumn):
    """How much is done of how much, where that is known."""

    def render(self, task: Task) -> Text:
        """As 1,000/2,000."""
        return Text("" if task.total is None else f"{task.completed:,.0f}/{task.total:,.0f}", justify="right")


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """Bars on the error console: call with a description and a size, get a function to advance by."""
    bars = Progress(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}"),
        BarColumn(),
        _Counted(),
        TimeRemainingColumn(),
        console=errors,
        speed_estimate_period=MEMORY,
        transient=True,  # done, or failed: then what matters is what is printed next
    )

    def begin(what: str, size: int) -> Callable[[int], None]:
        task = bars.add_task(what, total=max(1, size))
        return lambda done: bars.advance(task, done)

    with bars:
        if not errors.is_terminal:
            yield begin
            return
        with reported_by(_compiling_bar(bars)):
            yield begin


def _compiling_bar(bars: Progress) -> Reporter:
    """A further bar, there while something is being compiled."""
    task = bars.add_task("", total=None, visible=False)
    count = 0

    def tell(kernel: str | None) -> None:
        nonlocal count
        count += kernel is not None
        what = f"compiling for this machine, kept for next time: kernel {count}"
        bars.update(task, description=what, visible=kernel is not None, refresh=True)

    return tell
