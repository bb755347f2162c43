"""Threads that run one at a time: each stops before every transaction of its store until it is told what becomes of it.

So a trainer may be frozen wherever it asks the store for something, for as long as a simulation likes, while another
one goes on; and whatever is played is the same each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from diminuendo.errors import StoreUnavailable
from diminuendo.service.store.sqlite import SqliteStore

GO, LOST_BEFORE, LOST_AFTER, DIE, DIE_AFTER = "go", "lost before", "lost after", "die", "die after"
"""What becomes of a transaction: all goes well; it never arrives; its reply does not; who asked is killed."""
AWAY = "The store is not available: it is away for a moment."


class Killed(BaseException):
    """As if the process were gone."""


class Turn:
    """One thread. It begins when it is first told to go on."""

    def __init__(self, work: Callable[[Turn], None]) -> None:
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._told, self.over, self.error = GO, False, None
        self.idle, self.writes = False, False
        """Whether it stands between two steps; whether what it is about to do would write."""
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    error: BaseException | None

    def _run(self, work: Callable[[Turn], None]) -> None:
        self._go.acquire()
        try:
            if self._told != DIE:
                work(self)
        except Killed:
            pass
        except BaseException as error:  # handed to whoever plays
            self.error = error
        self.over = True
        self._stopped.release()

    def stop(self, *, idle: bool = False, writes: bool = False) -> str:
        """In the thread: wait until one may go on, and what becomes of that."""
        self.idle, self.writes = idle, writes
        self._stopped.release()
        self._go.acquire()
        self.idle = self.writes = False
        if self._told == DIE:
            raise Killed
        return self._told

    def on(self, told: str = GO) -> None:
        """Let it go on until it stops again, or is over."""
        self._told = told
        self._go.release()
        self._stopped.acquire()
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        """Kill it where it stands."""
        if not self.over:
            self.on(DIE)
            self._thread.join()


def taking_turns(store: SqliteStore, ask: Callable[[bool], str]) -> SqliteStore:
    """The same store, whose transactions become what `ask` says; `ask` is told whether they would write."""
    file: Any = store._file
    writing, rows = file.writing, file.rows

    @contextmanager
    def asked_writing(*given: Any, **named: Any) -> Iterator[float]:
        told = ask(True)
        if told == LOST_BEFORE:
            raise StoreUnavailable(AWAY)
        with writing(*given, **named) as at:
            yield at
        if told == LOST_AFTER:
            raise StoreUnavailable(AWAY)
        if told == DIE_AFTER:
            raise Killed

    def asked_rows(query: str, *values: Any) -> list[Any]:
        if not file._db.in_transaction and ask(False) in (LOST_BEFORE, LOST_AFTER):
            raise StoreUnavailable(AWAY)
        result: list[Any] = rows(query, *values)
        return result

    file.writing, file.rows = asked_writing, asked_rows
    file._db.execute("PRAGMA synchronous = OFF")  # nobody pulls a plug here
    return store
