"""What commands share: two consoles, progress bars, files to be written, and what the system says, as sentences."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
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

from diminuendo._compile_progress import Reporter, reported_by


def _load_plugins(context: typer.Context, said: list[str] | None) -> list[str] | None:
    """Import the plugins that were named, before the command looks anything up."""
    if not context.resilient_parsing:
        for each in said or ():
            from diminuendo._plugins import load

            load(each)
    return said


Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        callback=_load_plugins,
        help="A file or module that registers learners or streams of your own; give it again for more.",
    ),
]
"""An option of every command that looks up names."""

console = Console()
errors = Console(stderr=True)

MEMORY = 1800.0
"""Seconds that the time left is judged by: runs of many users report rarely."""


def say(line: str, style: str | None = None) -> None:
    """A line on the screen, as it is."""
    console.print(line, style=style, highlight=False, markup=False)


def say_plainly(line: str) -> None:
    """A line on the error console, as it is."""
    errors.print(line, highlight=False, markup=False, soft_wrap=True)


def write_json(what: str, file: Path | None, content: Any) -> None:
    """Write it to the file, where one is asked for, and say so."""
    if file is not None:
        file.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
        say(f"{what}: {file}")


class _Counted(ProgressColumn):
    def render(self, task: Task) -> Text:
        """How much is done of how much, where that is known, as 1,000/2,000."""
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

    with bars, reported_by(_compiling_bar(bars)) if errors.is_terminal else nullcontext():
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


NO_FOLDER = "{name} is a file; expected a folder. Name another folder, or move that file away."
NO_PERMISSION = "There is no permission for {name}. Name a place of your own, or ask for the permission."

SENTENCES = {
    errno.EEXIST: NO_FOLDER,
    errno.ENOTDIR: NO_FOLDER,
    errno.EISDIR: "{name} is a folder; expected a file. Name a file in it.",
    errno.ENOENT: "There is no file or folder {name}. Check how it is spelled, or make its folder first.",
    errno.EACCES: NO_PERMISSION,
    errno.EPERM: NO_PERMISSION,
    errno.EROFS: "{name} is on a disk that cannot be written to. Name another place.",
    errno.ENOSPC: "The disk is full; {name} was not written. Make room, or name a place on another disk.",
    errno.ENAMETOOLONG: "{name} is too long a name. Name a shorter one.",
}


def make_room(*files: Path | None) -> None:
    """Make the folders of files that are to be written, and raise now, before the work, what writing would raise."""
    for file in files:
        if file is None or str(file) == "-":
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        file.open("a").close()
        if not there:
            file.unlink()


def sentence(error: Exception) -> str:
    """The error in words: those of ours as they are, the system's where there are words for it."""
    if not isinstance(error, OSError) or error.errno not in SENTENCES or not isinstance(error.filename, str):
        return str(error)
    name = Path(error.filename)
    if SENTENCES[error.errno] == NO_FOLDER:  # perhaps not this one, but one on the way to it
        name = next((place for place in (*reversed(name.parents), name) if place.is_file()), name)
    return SENTENCES[error.errno].format(name=name)
