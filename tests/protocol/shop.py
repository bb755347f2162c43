"""A front end of the service as a simulation drives it: real ID blocks, menus, tokens and writer, in one thread.

Calls of the store are made at once, in the order of the simulation; the writer's groups are written when it says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar, cast
from unittest import mock

from diminuendo.service.front import writer as writers
from diminuendo.service.front.names import Names
from diminuendo.service.front.placement import Placement
from diminuendo.service.front.serving import NotReady, Serving
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.front.writer import Writer
from diminuendo.service.records import Said, Shown
from diminuendo.service.store import Store

T = TypeVar("T")


class AtOnce(Executor):
    """Does what it is given before it returns."""

    def submit(self, fn: Callable[..., T], /, *given: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*given, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class Shop:
    """One front end of one placement."""

    def __init__(self, store: Store, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._loop = asyncio.new_event_loop()
        with mock.patch(
            "diminuendo.service.front.writer.threading.Thread"
        ):  # the simulation writes groups itself
            self._writer = Writer(store, self._loop)
        self._tokens, self._store, self._clock = tokens, store, clock
        self._serving = Serving(tokens, cast(Names, None), self._writer)
        self.place: Placement | None = None

    def look(self) -> None:
        """Look for menus, and say what became of ID blocks."""
        if self.place is None:
            (row,) = self._store.placements()
            self.place = Placement(self._store, row, AtOnce(), self._clock)
            self._serving.placements[row.number] = self.place
        self.place.refresh()
        self._run(self.place.rounds.tidy())

    def show(self) -> tuple[str, Shown] | None:
        """Somebody comes; None where there is no menu yet."""
        if self.place is None:
            return None
        try:
            token = self._run(self._serving.decide(self.place, 0, ())).token
        except NotReady:
            return None
        return token, self._tokens.open(token)

    def answer(self, tokens: list[str]) -> list[str]:
        """These answer at the same time, and all are content; those that were acknowledged."""
        waiting = []
        for token in tokens:
            try:
                place, shown = self._serving.shown(token)
                said = Said(shown, reward=1.0)
                waiting.append((token, self._writer.keep(self._serving.row(place, said, self._clock()))))
            except Exception:  # it does not know the placement yet, or is not ready
                continue
        self._write()
        return [token for token, kept in waiting if kept.done() and kept.exception() is None]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        task = self._loop.create_task(work)
        while not task.done():
            self._loop.run_until_complete(asyncio.sleep(0))
            self._write()
        return task.result()

    def _write(self) -> None:
        if group := self._writer._gathered():
            writers._tell(group, self._writer._kept(group))

    def close(self) -> None:
        """It is gone."""
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
