"""What is said while kernels are compiled: who waits is told why, once; where all is on disk, nothing is said.

`_jit` says when it begins with a kernel that is not on disk, and when it is done. That goes to the *teller* of this
process. At first that is one line on stderr, if somebody sits there: stderr is a terminal, and this is no worker. The
command line puts its own teller in place, and so do workers, who have no screen.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

LINE = "diminuendo compiles for this machine, for up to a minute. What is compiled is kept; next time begins at once."

Teller: TypeAlias = Callable[[str | None], None]
"""Called with the name of a kernel that is being compiled, and with None when that is done."""


class Once:
    """A teller that says one line, the first time, however many kernels follow."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say: Callable[[str], None] | None = say

    def __call__(self, kernel: str | None) -> None:
        say, self._say = self._say, None
        if say is not None:
            say(LINE)


def _to_who_sits_there(line: str) -> None:
    if multiprocessing.parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


_teller: Teller = Once(_to_who_sits_there)
_depth = 0  # of kernels within kernels; numba compiles in one thread at a time


def begin(kernel: str) -> None:
    """A kernel that is not on disk is being compiled."""
    global _depth
    _depth += 1
    if _depth == 1:
        tell(kernel)


def end() -> None:
    """It is done, or was given up."""
    global _depth
    _depth -= 1
    if _depth == 0:
        tell(None)


def tell(kernel: str | None) -> None:
    """Tell the teller. That it can say nothing, as where stderr is closed, is no reason to fail."""
    with suppress(OSError, ValueError):
        _teller(kernel)


def hereafter(teller: Teller) -> Teller:
    """Put a teller in place; returns the one before."""
    global _teller
    before, _teller = _teller, teller
    return before


@contextmanager
def told_by(teller: Teller) -> Iterator[None]:
    """Let this teller speak for a while."""
    before = hereafter(teller)
    try:
        yield
    finally:
        hereafter(before)
