"""ID blocks: rounds that a front end may show, fetched before they are needed, and what it says became of them.

An ID block is as large as about half a second of traffic, and lasts somewhat longer, by the store's clock: until it has
expired none of its rounds is closed, so a long one delays learning. Where none can be had, because the block
is shown out or the store is away, there is no round, and no request waits long to learn so.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime

from diminuendo.service.front.choose import Bag, Chooser
from diminuendo.service.records import ID_BLOCK_HOLDS, ID_BLOCK_LASTS, Report
from diminuendo.service.store import IdBlock
from diminuendo.service.store.sql import Store

MOST, FEWEST_AHEAD = 500, 8
"""Rounds of an ID block at most; an ID block is fetched ahead where the last one was at least as large as this."""
AHEAD = 0.5
"""The next ID block is fetched once no more than this share of the last one is left."""
TIMEOUT = 0.25
"""Seconds: a request that needs an ID block waits for it until this long after the store was asked for one. So a store
that hangs holds up the first request and no later one: nor a request for hundreds, each of which would wait. A request
with a user's name waits as long for the round to be counted."""
REMEMBERED = 500
"""ID blocks whose deadlines are remembered, for requests that are sent again: those of minutes."""
PAUSE = 0.1
"""Seconds for which the store is not asked again, after it had no round."""

Find = Callable[[IdBlock], Chooser | None]
"""From an ID block to what chooses by its menu; None where its menu is older than one that was seen: it is not used."""


class Taken:
    """One ID block, while its rounds are shown."""

    def __init__(self, id_block: IdBlock, chooser: Chooser, requested_at: float, deadline: float) -> None:
        self.id_block, self.chooser = id_block, chooser
        self.bag: Bag = chooser.bag(id_block.first, id_block.end)
        self.next = id_block.first
        self.until = requested_at + (id_block.expires_at - id_block.at)
        """By this process's clock, which began to count before the store's did."""
        self.feedback_until = datetime.fromtimestamp(id_block.expires_at + deadline, UTC).isoformat(
            timespec="milliseconds"
        )
        self.waiting = 0
        """Users who are being counted: the outcome of their rounds is not known yet."""
        self._silent: list[int] = []
        self._types: list[int] = []

    def open(self, now: float) -> bool:
        """Whether there is a round left to show."""
        return self.next < self.id_block.end and now < self.until

    def take(self, type_: int) -> int:
        """The next round, for a user of that type."""
        number = self.next
        self.next = number + 1
        self._types.append(type_)
        return number

    def silence(self, number: int) -> None:
        """That round gets no response."""
        self._silent.append(number)

    def report(self, types: bool) -> Report:
        """What became of it."""
        used = self.next - self.id_block.first
        return Report(
            self.id_block.first, used, tuple(sorted(self._silent)), tuple(self._types) if types else ()
        )


class Rounds:
    """The rounds of one placement that this front end may show."""

    def __init__(
        self,
        store: Store,
        placement: int,
        deadline: float,
        types: bool,
        find: Find,
        pool: Executor,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`types`: whether types are public, and reported. `pool`: where calls of the store may block. `failed`: told
        of what goes wrong with them."""
        self._store, self._placement, self._find, self._pool = store, placement, find, pool
        self._deadline, self._types, self._failed = deadline, types, failed
        self._taken: Taken | None = None
        self._ahead: Taken | None = None
        self._ended: deque[Taken] = deque()
        self._deadlines: deque[tuple[int, str]] = deque(maxlen=REMEMBERED)  # by first round
        self._asking: asyncio.Task[None] | None = None
        self._not_before = self._asked = 0.0
        self._size, self._counted, self._since = 1, 0, time.monotonic()
        self._waiting = 0  # rounds that requests wait for
        self.id_blocks = self.shown = self.lost = 0
        """How many ID blocks there were, rounds of theirs that were shown, and that never will be."""

    def current(self) -> Taken | None:
        """An ID block with a round left; None where none is at hand."""
        taken, now = self._taken, time.monotonic()
        if taken is None or not taken.open(now):
            taken = self._turn(now)
            if taken is None:
                return None
        if (
            self._ahead is None
            and self._asking is None
            and self._size >= FEWEST_AHEAD
            and taken.id_block.end - taken.next <= AHEAD * self._size
        ):
            self._ask(now)
        return taken

    async def wait(self, wanted: int = 1) -> Taken | None:
        """An ID block with a round left, fetched if need be; None where none can be had soon."""
        until = time.monotonic() + TIMEOUT
        self._waiting += wanted
        try:
            while (taken := self.current()) is None:
                now = time.monotonic()
                asking = self._asking or self._ask(now)
                left = min(until, self._asked + TIMEOUT) - now
                if asking is None or left <= 0:
                    return None
                await asyncio.wait({asking}, timeout=left)
            return taken
        finally:
            self._waiting -= wanted

    def feedback_until(self, number: int) -> str | None:
        """Until when an answer counts to a round that was shown before, or a little earlier; None: not known here.

        ID blocks are handed out in the order of rounds and of time, and all last equally long. So where the round's own
        ID block is another front end's, the last one of here that came before it ends no later.
        """
        return next((until for first, until in reversed(self._deadlines) if first <= number), None)

    async def tidy(self) -> None:
        """End what has expired, and report ID blocks even if no request comes any more."""
        now = time.monotonic()
        if self._taken is None or not self._taken.open(now):
            self._turn(now)
        while self._asking is None and (over := self._told()) is not None:
            if not await self._call(0, over):
                break

    async def close(self) -> None:
        """Show no more rounds, and say so."""
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=1.0)
        for taken in (self._taken, self._ahead):
            if taken is not None:
                self._end(taken)
        self._taken = self._ahead = None
        with suppress(Exception):
            await self.tidy()

    def _turn(self, now: float) -> Taken | None:
        """From an ID block that is over to the one that was fetched ahead."""
        if self._taken is not None:
            self._end(self._taken)
        self._taken, self._ahead = self._ahead, None
        if self._taken is not None and not self._taken.open(now):
            self._end(self._taken)
            self._taken = None
        return self._taken

    def _end(self, taken: Taken) -> None:
        self._ended.append(taken)
        self.shown += taken.next - taken.id_block.first
        self.lost += taken.id_block.end - taken.next

    def _told(self) -> Taken | None:
        """The first ID block that is over and of which everything is known."""
        for taken in self._ended:
            if not taken.waiting:
                self._ended.remove(taken)
                return taken
        return None

    def _ask(self, now: float) -> asyncio.Task[None] | None:
        """Fetch an ID block of about half a second of traffic, unless there was none a moment ago."""
        if now < self._not_before:
            return None
        used = self.shown + (self._taken.next - self._taken.id_block.first if self._taken else 0)
        many = round(ID_BLOCK_HOLDS * (used - self._counted) / max(now - self._since, 1e-3))
        self._since, self._counted = now, used
        self._size = min(max(many, self._waiting, 1), max(2 * self._size, self._waiting, FEWEST_AHEAD), MOST)
        self._asking, self._asked = asyncio.create_task(self._fetch(self._size)), now
        return self._asking

    async def _fetch(self, count: int) -> None:
        try:
            if not await self._call(count, self._told()):
                self._not_before = time.monotonic() + PAUSE
        finally:
            self._asking = None

    async def _call(self, count: int, over: Taken | None) -> bool:
        """Ask the store for rounds, and say what became of an ID block that is over; whether it went well."""
        requested_at, loop = time.monotonic(), asyncio.get_running_loop()
        report = None if over is None else over.report(self._types)
        try:
            id_block, chooser = await loop.run_in_executor(self._pool, self._reserved, count, report)
        except Exception as error:  # whatever is wrong with the store, users are shown fallback slates
            self._failed(error)
            if over is not None:
                self._ended.appendleft(over)
            return False
        if count and id_block is not None and chooser is not None:
            self._ahead = Taken(id_block, chooser, requested_at, self._deadline)
            self._deadlines.append((id_block.first, self._ahead.feedback_until))
            self.id_blocks += 1
        return count == 0 or self._ahead is not None

    def _reserved(self, count: int, report: Report | None) -> tuple[IdBlock | None, Chooser | None]:
        id_block = self._store.reserve_ids(self._placement, count, ID_BLOCK_LASTS, report)
        return id_block, None if id_block is None else self._find(id_block)
