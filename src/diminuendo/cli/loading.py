"""Ctrl-C while things are loaded: one word, and the end.

Python would raise an error in the midst of whatever is just being imported, and much of that is not made for it: some
libraries catch it, others are left half loaded and fail later with an error of their own. There is nothing to be kept
yet, so the process ends at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def loading() -> Iterator[None]:
    """Import in here what takes its time."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield  # somebody else has decided what Ctrl-C does
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(*_: Any) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(130)
