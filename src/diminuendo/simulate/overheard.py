"""What workers compile, told by the process that waits for them: a worker has no screen.

Workers add a line to a file for every kernel that they begin to compile, and an empty one when it is done. The process
that started them looks at that file now and then, and tells it as if it compiled by itself.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from diminuendo import _compiling

EVERY = 0.2
"""Seconds between two looks."""


@contextmanager
def overheard() -> Iterator[Path]:
    """The file to which workers may report, and which is listened to as long as this lasts."""
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
    _compiling.hereafter(partial(_write, file))


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
                _compiling.tell(kernel or None)
        seen = len(written)
    if under_way:
        _compiling.tell(None)
