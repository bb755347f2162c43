"""The log: JSON lines of public facts, from closed lists. Nothing that a user said gets in, nor an error's text."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from diminuendo.errors import StoreUnavailable
from diminuendo.service.store import reasons

Happened = Literal[
    "started",
    "stopped",
    "menu",
    "signal",
    "store away",
    "store back",
    "operator",
    "fault",
    "acquired",
    "released",
    "rolled back",
    "closed",
]
SPEC = frozenset(
    {
        *("front", "trainer", "placement", "population", "version", "did"),
        *("state", "trace", "error", "where", "why"),
    }
)
"""What a line may say; all of it public. `why` is one of `reasons.REASONS`."""
AGAIN = 60.0
"""Seconds after which what still goes wrong is logged again."""
ROOT = Path(__file__).parents[1]


class Log:
    """Writes lines, and nothing that is not on the lists above."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._said: dict[tuple[str, ...], float] = {}  # when a fault was last logged by `seldom`
        self._lock = threading.Lock()

    def say(self, happened: Happened, **spec: str | int) -> None:
        """One line."""
        assert spec.keys() <= SPEC, "the log has a closed list of facts"
        assert spec.get("why", reasons.UNLISTED) in reasons.REASONS, "the log has a closed list of reasons"
        line = msgspec.json.encode({"at": round(time.time(), 3), "happened": happened, **spec}).decode()
        with suppress(OSError):  # the log may be on the disk that is full; nothing stops for that
            print(line, file=self._out or sys.stderr, flush=True)

    def fault(self, error: BaseException, trace: str = "", **spec: str) -> None:
        """Something of ours that went wrong: which kind of error, and in which line of our code; not what it says.
        Where the store is not available, also why."""
        if isinstance(error, StoreUnavailable):
            spec["why"] = why(error)
        self.say("fault", trace=trace, error=type(error).__name__, where=_where(error), **spec)

    def seldom(self, error: BaseException, **spec: str) -> None:
        """The same, for what may go wrong again at once: one line a minute for each kind of error and line of code."""
        which, now = (type(error).__name__, _where(error), why(error)), time.monotonic()
        with self._lock:
            if now < self._said.get(which, -AGAIN) + AGAIN:
                return
            self._said[which] = now
        self.fault(error, **spec)


class StoreWatch:
    """Whether a process reaches its store, by what it asks of it. It is logged when that changes, with the reason; and
    once a minute for as long as it does not.

    It is told of what happens at public times: were it told of answers that could not be stored, the log would say when
    somebody answered.
    """

    def __init__(self, log: Log, **whose: str) -> None:
        self._log, self._whose, self._lock = log, whose, threading.Lock()
        self._failed: dict[str, str] = {}  # what fails, and why
        self._said: dict[str, float] = {}  # when each reason was last logged

    @property
    def why(self) -> str:
        """The reason why the store is not reached; empty where it is."""
        return next(iter(list(self._failed.values())), "")

    def failed(self, what: str, error: BaseException) -> None:
        """What was asked of the store, and how it failed."""
        reason, now = why(error), time.monotonic()
        with self._lock:
            self._failed[what] = reason
            new = now >= self._said.get(reason, -AGAIN) + AGAIN
            if new:
                self._said[reason] = now
                self._log.say("store away", why=reason, **self._whose)
        if not isinstance(error, StoreUnavailable):
            self._log.seldom(error, **self._whose)

    def well(self, what: str) -> None:
        """What was asked of the store, and went well."""
        with self._lock:
            if self._failed.pop(what, None) is not None and not self._failed:
                self._said.clear()
                self._log.say("store back", **self._whose)


def why(error: BaseException) -> str:
    """Why the store is not available, as far as an error says it."""
    result = error.why if isinstance(error, StoreUnavailable) else ""
    return result if result in reasons.REASONS else reasons.UNLISTED


def _where(error: BaseException) -> str:
    """In which line of our code it was."""
    where, step = "", error.__traceback__
    while step is not None:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            where = f"{path.relative_to(ROOT)}:{step.tb_lineno}"
        step = step.tb_next
    return where
