"""A front end: placements kept up to date, leases tidied, and a canary that shows that answers can be stored."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, TypeVar

import msgspec

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front.names import Names
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.serving import Serving
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.front.writer import Writer
from diminuendo.service.log import Log
from diminuendo.service.store import AnswerRow, Store

T = TypeVar("T")
LOOKS_EVERY, SINGS_EVERY = 0.5, 2.0
"""Seconds between looks for menus, and between canaries."""
BEHIND = 0.02
"""Seconds by which this process's idea of the store's clock is behind it, at most twice that; it is left alone as long
as that is so. How long the store takes to tell the time depends on who else writes, and answers have times by it."""
CANARIES = 0
"""The placement that canaries belong to: none."""
CANARY_BYTES = 128


class Front:
    """One front-end process."""

    def __init__(self, store: Store, tokens: Tokens, names: Names, name: str, log: Log) -> None:
        self.store, self.name, self.log = store, name, log
        self.by_name: dict[str, Placement] = {}
        self.sang_at: float | None = None
        """When a canary was last stored, by the store's clock."""
        self.away = False
        """Whether the store did not answer when it was last asked."""
        self._offset: float | None = None
        self._since, self._known = 0.0, 0  # menus of before are known, and placements up to that number
        self._looking = Lock()
        self._parts = (tokens, names)
        self._unread, self._faults = set[int](), 0  # placements that cannot be read, and how often that was

    async def start(self) -> None:
        """Begin: on the loop that serves."""
        loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="store")
        self.writer = Writer(self.store, loop)
        self.serving = Serving(*self._parts, self.writer)
        await self.look()
        self._tasks = [
            asyncio.create_task(self._again(LOOKS_EVERY, self.look)),
            asyncio.create_task(self._again(SINGS_EVERY, self.sing)),
        ]
        self.log.say("started", front=self.name)

    async def stop(self) -> None:
        """End: what waits is kept, and leases are reported."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for place in self.by_name.values():
            await place.rounds.close()
        await asyncio.get_running_loop().run_in_executor(None, self.writer.close)
        self._pool.shutdown(wait=False)
        self.log.say("stopped", front=self.name)

    async def ask(self, call: Callable[..., T], *given: Any) -> T:
        """A call of the store, which may block."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *given)

    def clock(self) -> float:
        """What the store's clock says, or a little less; an age ago where that is not known yet."""
        return -1.0 if self._offset is None else time.monotonic() + self._offset

    async def look(self) -> None:
        """Look for placements and menus, and tidy leases."""
        before = {name: place.in_effect() for name, place in self.by_name.items()}
        try:
            await self.ask(self._look)
        except Exception as error:  # people are shown what is known
            self._away(True)
            self.log.fault(error)
        else:
            self._away(False)
        for name, place in list(self.by_name.items()):
            await place.rounds.tidy()
            now = place.in_effect()
            if now is not None and now != before.get(name):
                self.log.say("menu", front=self.name, placement=name, version=now[0].version)

    def _look(self) -> None:
        with self._looking:
            began = time.monotonic()
            found = self.store.now() - time.monotonic() - BEHIND
            if self._offset is None or abs(found - self._offset) > BEHIND:
                self._offset = found
            faults, (since, versions) = self._faults, self.store.published(self._since)
            for row in self.store.placements(self._known):  # after that: whatever has a menu is known then
                with self._by_itself(row.number):
                    place = Placement(self.store, row, self._pool, self.clock)
                    self.serving.placements[row.number] = place
                    self.by_name[row.name] = place
                self._known = row.number
            for place in list(self.by_name.values()):
                with self._by_itself(place.number):
                    place.looked(versions.get(place.number, 0), began)
            if self._faults == faults:  # else it is asked for again: nobody seals to an older key
                self._since = since

    @contextmanager
    def _by_itself(self, number: int) -> Iterator[None]:
        """Whatever cannot be read of a placement takes no other along; it is logged once."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            self._faults += 1
            if number not in self._unread:
                self._unread.add(number)
                self.log.fault(error)

    async def sing(self) -> None:
        """Store an answer that belongs to nobody, as answers are stored, and say that it went well.

        The note says which menus were seen: a store that was restored from a copy knows older ones. One that has
        forgotten the last note was restored meanwhile: rounds of it were shown before, and nothing more of it is shown.
        """
        noted = (await self.ask(self.store.beats)).get(self.name, (0.0, ""))[0]
        if self.sang_at is not None and noted < self.sang_at:
            for place in self.by_name.values():
                place.went_back = True
        seen = {place.name: (found[0].version, found[1].menu.head) for place, found in self._seen()}
        row = AnswerRow(CANARIES, int.from_bytes(self.name.encode()[-7:]), os.urandom(CANARY_BYTES))
        await self.writer.keep((row,))
        self.sang_at = await self.ask(self.store.beat, self.name, msgspec.json.encode(seen).decode())

    @property
    def spent(self) -> dict[str, tuple[float, ...]]:
        """By population what was spent and its budget, as epsilons: by the menus that are in effect."""
        found = dict[str, tuple[float, ...]]()
        for place, (_, chooser) in self._seen():
            name = place.row.population
            if chooser.menu.spent:
                found[name] = max(chooser.menu.spent, found.get(name, ()))
        return found

    def _seen(self) -> list[tuple[Placement, Any]]:
        return [(place, found) for place in self.by_name.values() if (found := place.in_effect()) is not None]

    def _away(self, away: bool) -> None:
        if away != self.away:
            self.away = away
            self.log.say("store away" if away else "store back", front=self.name)

    async def _again(self, seconds: float, work: Callable[[], Any]) -> None:
        while True:
            with suppress(Exception):
                await work()
            await asyncio.sleep(seconds)
