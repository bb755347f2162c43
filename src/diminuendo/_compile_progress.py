"""Says when kernels are compiled, here and in worker processes, so that users know why they wait.

`cache` says when it begins with a kernel that is not on disk, and when it is done. That goes to the *reporter* of this
process. At first that is one line on stderr, if stderr is a terminal and this is no worker. The command line puts its
own reporter in place.

A worker has no screen. It adds a line to a file for every kernel that it begins to compile, and an empty one when it is
done; the process that started it reads that file now and then, and reports as if it compiled by itself.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

LINE = "diminuendo compiles for this machine, for up to a minute. What is compiled is kept; next time begins at once."

EVERY = 0.2
"""Seconds between two looks at what workers compile."""

Reporter: TypeAlias = Callable[[str | None], None]
"""Called with the name of a kernel that is being compiled, and with None when that is done."""


class Once:
    """A reporter that says one line, the first time, however many kernels follow."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say: Callable[[str], None] | None = say

    def __call__(self, kernel: str | None) -> None:
        say, self._say = self._say, None
        if say is not None:
            say(LINE)


def _to_the_terminal(line: str) -> None:
    if multiprocessing.parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


_reporter: Reporter = Once(_to_the_terminal)
_depth = 0  # of kernels within kernels; numba compiles in one thread at a time


def begin(kernel: str) -> None:
    """A kernel that is not on disk is being compiled."""
    global _depth
    _depth += 1
    if _depth == 1:
        report(kernel)


def end() -> None:
    """The kernel is done, or was given up."""
    global _depth
    _depth -= 1
    if _depth == 0:
        report(None)


def report(kernel: str | None) -> None:
    """Call the reporter. That it can say nothing, as where stderr is closed, is no reason to fail."""
    with suppress(OSError, ValueError):
        _reporter(kernel)


def set_reporter(reporter: Reporter) -> Reporter:
    """Put a reporter in place; returns the one before."""
    global _reporter
    before, _reporter = _reporter, reporter
    return before


@contextmanager
def reported_by(reporter: Reporter) -> Iterator[None]:
    """Let this reporter speak for a while."""
    before = set_reporter(reporter)
    try:
        yield
    finally:
        set_reporter(before)


@contextmanager
def reported_by_workers() -> Iterator[Path]:
    """The file to which workers report, and which is read as long as this lasts."""
    with tempfile.TemporaryDirectory(prefix="diminuendo-") as folder:
        file, over = Path(folder) / "compiling", threading.Event()
        listener = threading.Thread(target=_listen, args=(file, over), daemon=True)
        listener.start()
        try:
            yield file
        finally:
            over.set()
            listener.join()


def report_to(file: Path) -> None:
    """In a worker: write what is compiled to `file`, and say nothing."""
    set_reporter(partial(_write, file))


def _write(file: Path, kernel: str | None) -> None:
    with file.open("a") as lines:
        lines.write(f"{kernel or ''}\n")


def _listen(file: Path, over: threading.Event) -> None:
    seen = under_way = 0
    while not over.wait(EVERY):
        written = file.read_text().splitlines() if file.exists() else []
        for kernel in written[seen:]:
            under_way += 1 if kernel else -1
            if kernel or not under_way:
                report(kernel or None)
        seen = len(written)
    if under_way:
        report(None)
