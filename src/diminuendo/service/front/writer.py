"""The writer: one thread that keeps answers and counts visits, all who wait in one transaction.

While one group is being committed the next one gathers, so a busy store is written to seldom and much at once. What one
entry holds fails no other: where a group cannot be kept for a reason that is not the store's, each is kept by itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from diminuendo.errors import StoreUnavailable
from diminuendo.service.store import NO_PLACEMENT, AnswerRow, QuotaResult, Store, UserRound, reasons

MOST_AT_ONCE = 2_000
"""Entries of one transaction."""
GATHERS = 0.003
"""Seconds for which a group waits at most until it is as large as the last one: a commit costs as much as many rows."""
MOST_WAITING = 20_000
"""Entries that may wait; then requests are refused, to be tried again."""


class Entry(NamedTuple):
    """What one request wants kept; its future becomes what was counted."""

    answers: Sequence[AnswerRow]
    user_rounds: Sequence[UserRound]
    kept: asyncio.Future[list[QuotaResult]]


class Writer:
    """Keeps what is handed to it, in groups."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`failed` receives faults of our code: in decisions and write probes alone, never in feedback."""
        self._store, self._loop, self._failed = store, loop, failed
        self._waiting: list[Entry] = []
        self._lock, self._ready, self._full = threading.Lock(), threading.Event(), threading.Event()
        self._enough, self._over = 0, False
        self._thread = threading.Thread(target=self._work, name="writer", daemon=True)
        self._thread.start()

    def keep(
        self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()
    ) -> asyncio.Future[list[QuotaResult]]:
        """Done when all of it is durable; `StoreUnavailable` where it could not be kept. Called on the loop."""
        kept: asyncio.Future[list[QuotaResult]] = self._loop.create_future()
        with self._lock:
            waiting = len(self._waiting)
            full = self._over or waiting >= MOST_WAITING
            if not full:
                self._waiting.append(Entry(answers, user_rounds, kept))
        if full:
            kept.set_exception(
                StoreUnavailable("Too many wait to be kept; try again in a moment.", reasons.MANY_WAIT)
            )
        elif waiting == 0:
            self._ready.set()
        elif waiting + 1 == self._enough:
            self._full.set()
        return kept

    def close(self) -> None:
        """Keep what waits, and stop. Futures are done once the loop has run on."""
        with self._lock:
            self._over = True
        self._ready.set()
        self._full.set()
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._ready.wait()
            self._ready.clear()
            while group := self._gathered():
                for first in range(0, len(group), MOST_AT_ONCE):
                    part = group[first : first + MOST_AT_ONCE]
                    result = self._kept(part)
                    try:
                        self._loop.call_soon_threadsafe(_tell, part, result)
                    except RuntimeError:  # the loop is gone, and with it all requests that waited
                        return
            if self._over:
                return

    def _gathered(self) -> list[Entry]:
        """All who wait; where fewer do than were in the last group, a moment later. Visits of those who have given up
        are not counted: no slate was shown."""
        self._full.clear()
        if 0 < len(self._waiting) < self._enough and not self._over:
            self._full.wait(GATHERS)
        with self._lock:
            waiting, self._waiting = self._waiting, []
        group = [entry for entry in waiting if entry.answers or not entry.kept.cancelled()]
        self._enough = len(group) or self._enough
        return group

    def _kept(self, group: list[Entry]) -> list[list[QuotaResult] | str]:
        """For each entry what was counted; or why it could not be kept."""
        answers = [row for entry in group for row in entry.answers]
        user_rounds = [row for entry in group for row in entry.user_rounds]
        try:
            counted = iter(self._store.put(answers, user_rounds))
        except StoreUnavailable as error:
            return [error.why or reasons.UNLISTED] * len(group)
        except Exception as error:
            if len(group) == 1:
                if all(row.placement == NO_PLACEMENT for row in answers):
                    self._failed(error)
                return [reasons.UNLISTED]
            return [self._kept([entry])[0] for entry in group]
        return [[next(counted) for _ in entry.user_rounds] for entry in group]


def _tell(group: list[Entry], found: list[list[QuotaResult] | str]) -> None:
    for entry, counted in zip(group, found, strict=True):
        if entry.kept.done():  # the client has gone
            continue
        if isinstance(counted, str):
            entry.kept.set_exception(StoreUnavailable("The store cannot be written to now.", counted))
        else:
            entry.kept.set_result(counted)
