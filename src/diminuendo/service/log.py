"""The log: JSON lines with fields and values from closed lists. Neither feedback nor texts of errors get in."""

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
FIELDS = frozenset(
    {
        *("front", "trainer", "placement", "population", "version", "did"),
        *("state", "trace", "error", "where", "why"),
    }
)
"""The fields of a line; all public. `why` is one of `reasons.REASONS`."""
AGAIN = 60.0
"""Seconds after which a continuing failure is logged again."""
ROOT = Path(__file__).parents[1]


class Log:
    """Writes lines with what the lists above allow."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._logged: dict[tuple[str, ...], float] = {}  # when a fault was last logged by `seldom`
        self._lock = threading.Lock()

    def say(self, happened: Happened, **fields: str | int) -> None:
        """One line."""
        assert fields.keys() <= FIELDS, "the log has a closed list of fields"
        assert fields.get("why", reasons.UNLISTED) in reasons.REASONS, "the log has a closed list of reasons"
        line = msgspec.json.encode({"at": round(time.time(), 3), "happened": happened, **fields}).decode()
        with suppress(OSError):  # the log may be on the full disk; nothing stops for that
            print(line, file=self._out or sys.stderr, flush=True)

    def fault(self, error: BaseException, trace: str = "", **fields: str) -> None:
        """An internal error: its type and the line of our code, not its text. If the store is unavailable, also why."""
        if isinstance(error, StoreUnavailable):
            fields["why"] = why(error)
        self.say("fault", trace=trace, error=type(error).__name__, where=_where(error), **fields)

    def seldom(self, error: BaseException, **fields: str) -> None:
        """The same for errors that repeat: one line a minute for each type of error and line of code."""
        which, now = (type(error).__name__, _where(error), why(error)), time.monotonic()
        with self._lock:
            if now < self._logged.get(which, -AGAIN) + AGAIN:
                return
            self._logged[which] = now
        self.fault(error, **fields)


class StoreWatch:
    """Whether a process reaches its store. Changes are logged with the reason, and failures again once a minute.

    Only operations at public times are reported to it: a failure to store feedback would reveal when a user responded.
    """

    def __init__(self, log: Log, **whose: str) -> None:
        self._log, self._whose, self._lock = log, whose, threading.Lock()
        self._failed: dict[str, str] = {}  # operations that fail, and why
        self._logged: dict[str, float] = {}  # when each reason was last logged

    @property
    def why(self) -> str:
        """Why the store is not reached; empty if it is."""
        return next(iter(list(self._failed.values())), "")

    def failed(self, what: str, error: BaseException) -> None:
        """An operation failed."""
        reason, now = why(error), time.monotonic()
        with self._lock:
            self._failed[what] = reason
            new = now >= self._logged.get(reason, -AGAIN) + AGAIN
            if new:
                self._logged[reason] = now
                self._log.say("store away", why=reason, **self._whose)
        if not isinstance(error, StoreUnavailable):
            self._log.seldom(error, **self._whose)

    def well(self, what: str) -> None:
        """An operation succeeded."""
        with self._lock:
            if self._failed.pop(what, None) is not None and not self._failed:
                self._logged.clear()
                self._log.say("store back", **self._whose)


def why(error: BaseException) -> str:
    """Why the store is unavailable, from the closed list."""
    result = error.why if isinstance(error, StoreUnavailable) else ""
    return result if result in reasons.REASONS else reasons.UNLISTED


def _where(error: BaseException) -> str:
    """The last line of our code in the traceback."""
    where, step = "", error.__traceback__
    while step is not None:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            where = f"{path.relative_to(ROOT)}:{step.tb_lineno}"
        step = step.tb_next
    return where
