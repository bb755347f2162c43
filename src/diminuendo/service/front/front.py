"""A front end: placements kept up to date, ID blocks tidied, and a write probe that shows that answers can be
stored."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

import msgspec

from diminuendo.errors import StoreUnavailable
from diminuendo.service.front.names import Names
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.serving import Serving
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.front.writer import Writer
from diminuendo.service.log import Log, StoreWatch
from diminuendo.service.store import NO_PLACEMENT, AnswerRow, Store, reasons
from diminuendo.service.store.fencing import CLOSED, is_closed

T = TypeVar("T")
LOOKS_EVERY, PROBES_EVERY = 0.5, 2.0
"""Seconds between looks for menus, and between write probes."""
PROBED_WITHIN = 10.0
"""Seconds since a write probe was stored, at most, of a front end that is ready; one takes as long, at most."""
BEHIND = 0.02
"""Seconds by which this process's idea of the store's clock is behind it, at most twice that; it is left alone as long
as that is so. How long the store takes to tell the time depends on who else writes, and answers have times by it."""
PROBE_BYTES = 128


class Front:
    """One front-end process."""

    def __init__(self, store: Store, tokens: Tokens, names: Names, name: str, log: Log) -> None:
        self.store, self.name, self.log = store, name, log
        self.by_name: dict[str, Placement] = {}
        self.heartbeat_at: float | None = None
        """When a write probe was last stored, by the store's clock."""
        self.looked = False
        """Whether there ever was a look at the store; without, nothing is known of any placement."""
        self.watch = StoreWatch(log, front=name)
        self._probed_at = float("-inf")  # the same as `heartbeat_at`, by this process's clock
        self._offset: float | None = None
        self._since, self._known = 0.0, 0  # menus of before are known, and placements up to that number
        self._looking = Lock()
        self._parts = (tokens, names)
        self._unread, self._faults = set[int](), 0  # placements that cannot be read, and how often that was
        self._signals: dict[str, str] = {}  # by placement: what was last logged of published rewards

    async def start(self) -> None:
        """Begin: on the loop that serves."""
        loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="store")
        self.writer = Writer(self.store, loop, self._failed)
        self.serving = Serving(*self._parts, self.writer)
        await self.look()
        self._tasks = [
            asyncio.create_task(self._again(LOOKS_EVERY, self.look)),
            asyncio.create_task(self._again(PROBES_EVERY, self._probe)),
        ]
        self.log.say("started", front=self.name)

    async def stop(self) -> None:
        """End: what waits is kept, and ID blocks are reported."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for place in self.by_name.values():
            await place.rounds.close()
        await asyncio.get_running_loop().run_in_executor(None, self.writer.close)
        self._pool.shutdown(wait=False)
        self.serving.close()
        self.log.say("stopped", front=self.name)

    async def ask(self, call: Callable[..., T], *given: Any) -> T:
        """A call of the store, which may block."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *given)

    def clock(self) -> float:
        """What the store's clock says, or a little less; an age ago where that is not known yet."""
        return -1.0 if self._offset is None else time.monotonic() + self._offset

    async def look(self) -> None:
        """Look for placements and menus, and tidy ID blocks."""
        before = {name: place.in_effect() for name, place in self.by_name.items()}
        try:
            await self.ask(self._look)
        except Exception as error:  # users are shown what is known
            self.watch.failed("look", error)
        else:
            self.looked = True
            self.watch.well("look")
        for name, place in list(self.by_name.items()):
            await place.rounds.tidy()
            now = place.in_effect()
            if now is not None and now != before.get(name):
                self.log.say("menu", front=self.name, placement=name, version=now[0].version)
            state = "" if now is None else now[1].menu.signal
            if state and state != self._signals.setdefault(name, "too early to tell"):
                self._signals[name] = state
                self.log.say("signal", front=self.name, placement=name, state=state)

    def _look(self) -> None:
        with self._looking:
            began = time.monotonic()
            result = self.store.now() - time.monotonic() - BEHIND
            if self._offset is None or abs(result - self._offset) > BEHIND:
                self._offset = result
            faults, (since, versions) = self._faults, self.store.published(self._since)
            for row in self.store.placements(self._known):  # after that: whatever has a menu is known then
                with self._by_itself(row.number):
                    place = Placement(self.store, row, self._pool, self.clock, self._failed)
                    self.serving.placements[row.number] = place
                    place.before = self._closed(row.name, row.number)
                    self.by_name[row.name] = place
                self._known = row.number
            for place in list(self.by_name.values()):
                with self._by_itself(place.number):
                    place.looked(versions.get(place.number, 0), began)
            if self._faults == faults:  # else they are read again: no feedback is encrypted to an older key
                self._since = since

    def _closed(self, name: str, number: int) -> Placement | None:
        """The last placement that was closed under this name."""
        old = [each for each in self.by_name.values() if each.name.startswith(name + CLOSED)]
        return max((each for each in old if each.number < number), key=lambda each: each.number, default=None)

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

    async def store_probe(self) -> None:
        """Store a response that belongs to no placement, as others are stored, and send a heartbeat.

        The note says which menus were seen: a store that was restored from a copy knows older ones. One that has
        forgotten the last note was restored meanwhile: rounds of it were shown before, and nothing more of it is shown.
        """
        noted = (await self.ask(self.store.heartbeats)).get(self.name, (0.0, ""))[0]
        if self.heartbeat_at is not None and noted < self.heartbeat_at:
            for place in self.by_name.values():
                place.went_back = True
        seen = {place.name: (result[0].version, result[1].menu.head) for place, result in self._seen()}
        row = AnswerRow(NO_PLACEMENT, int.from_bytes(self.name.encode()[-7:]), os.urandom(PROBE_BYTES))
        await self.writer.keep((row,))
        began = time.monotonic()
        self.heartbeat_at = await self.ask(
            self.store.heartbeat, self.name, msgspec.json.encode(seen).decode()
        )
        self._probed_at = began
        self.watch.well("write_probe")

    async def _probe(self) -> None:
        """Store a write probe, and note whether that could be done."""
        try:
            async with asyncio.timeout(PROBED_WITHIN):
                await self.store_probe()
        except TimeoutError:
            self.watch.failed("write_probe", StoreUnavailable("The store did not answer.", reasons.NO_PROBE))
        except Exception as error:
            self.watch.failed("write_probe", error)

    @property
    def unwell(self) -> str:
        """Why answers cannot be stored now, as far as is known, in words of a closed list; empty where they can."""
        delay = time.monotonic() > self._probed_at + PROBED_WITHIN
        return self.watch.why or (reasons.NO_PROBE if delay else "")

    @property
    def spent(self) -> dict[str, tuple[float, ...]]:
        """By population what was spent and its budget, as epsilons: by the menus that are in effect."""
        result = dict[str, tuple[float, ...]]()
        for place, (_, chooser) in self._seen():
            name = place.row.population
            if spent := chooser.menu.spent:
                spent = (spent[1], *spent[1:]) if is_closed(name) else spent  # how much it was is not known
                result[name] = max(spent, result.get(name, ()))
        return result

    def _seen(self) -> list[tuple[Placement, Any]]:
        return [
            (place, result) for place in self.by_name.values() if (result := place.in_effect()) is not None
        ]

    def _failed(self, error: BaseException) -> None:
        """Something else went wrong; it is logged once a minute."""
        self.log.seldom(error, front=self.name)

    async def _again(self, seconds: float, work: Callable[[], Any]) -> None:
        while True:
            try:
                await work()
            except Exception as error:
                self._failed(error)
            await asyncio.sleep(seconds)
