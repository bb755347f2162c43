"""The trainer's loop: of the populations that it leads, every placement to which something has happened.

Several trainers, on any machines, share the populations of a store (assignment.py). The cost grows with what happens:
one query returns the placements with new ID blocks or events, and a table of times those that have reached a public
time. If another trainer leads a population, the store refuses what this one writes of it, and it gives up that one
alone. The name of a trainer has a random suffix, so two processes of one name, as on cloned machines, are two trainers.
A trainer that was killed is superseded after `SILENT` seconds; one that is stopped hands over at once.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from diminuendo.errors import LedgerDamaged, StoreUnavailable, Superseded
from diminuendo.learners.base.engines import Engine
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.log import Log, StoreWatch
from diminuendo.service.store import DAY, INSTANCE, NO_HEARTBEAT, Heartbeat, PlacementRow, Store, rolled_back
from diminuendo.service.store.fencing import is_closed
from diminuendo.service.trainer.assignment import NOBODY, Assignment
from diminuendo.service.trainer.high_water_marks import LISTENS, STOPPED, HighWaterMarks
from diminuendo.service.trainer.placement import Parts, Placement
from diminuendo.service.trainer.population import Population
from diminuendo.service.trainer.private_keys import read_masters
from diminuendo.service.trainer.warm_up import WarmUps

POLL, LOOKS, HEARTBEAT_EVERY = 0.05, 1.0, 2.0
"""Seconds: between two queries for changes; between looks at the assignment; between heartbeats."""
AT_ONCE = 100
"""Populations that are acquired between two steps: each is a transaction of its own."""
WELL = "well"
"""The public note of a trainer's heartbeat."""
LEAVES = 5.0
"""Seconds for which a trainer that is stopped hands over what it leads."""


class Trainer:
    """One trainer of a store."""

    def __init__(
        self,
        store: Store,
        keys: str | Path,
        *,
        name: str = "trainer",
        instance: str = "",
        in_store: bool = False,
        listens: float = LISTENS,
        rng: Callable[[], RandomSource | None] = lambda: None,
        reached: Callable[[str], None] = lambda point: None,
        log: Log | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`keys`: the folder of its keys, which is not where the store is. `instance`: the suffix of its name; random,
        unless given. `in_store`: whether the private keys are in the store, encrypted with a master key that lies in
        the folder. `listens`: seconds from when it leads until it pays for anything. `rng`, `reached`: for tests.
        `engine`: where users are stored whom learners keep; without, here."""
        rolled_back.refuse_unknown(store, Path(keys))
        self.slot, self.name = name, f"{name}{INSTANCE}{instance or secrets.token_hex(4)}"
        self._store, self._folder, self._log = store, Path(keys), log or Log()
        self._assignment, self._high_water_marks = Assignment(self.name), HighWaterMarks()
        self._due_at = dict[int, float]()  # by number of a placement, the time after which it is due
        self._parts = Parts(
            store, self._folder, read_masters(self._folder) if in_store else None, self._due_at, rng, reached,
            self._log, WarmUps(), self._write_time, engine,
        )  # fmt: skip
        self.held: dict[str, Population] = {}
        """The populations that it leads, by name."""
        self._rows: dict[int, PlacementRow] = {}
        self._numbers: dict[str, list[int]] = {}  # by population
        self._since = 0.0  # what happened before is known
        self._last, self._sending, self._rolled_back = NO_HEARTBEAT, threading.Lock(), False
        self._looked, self._written = 0.0, 0.0
        self._notes: dict[str, Heartbeat] = {}  # all heartbeats, when it looked last
        self._pause = listens
        self._watch = StoreWatch(self._log, trainer=name)
        for each in store.populations():
            if is_closed(each):
                self._log.say("closed", trainer=name, population=each)

    def __repr__(self) -> str:
        return f"<Trainer {self.name} of {', '.join(self.held)}>"

    @property
    def placements(self) -> dict[int, Placement]:
        """Those that are well, by number."""
        return {number: each for one in self.held.values() for number, each in one.placements.items()}

    @property
    def failures(self) -> dict[int, str]:
        """Of those that wait: what kind of error it was, and where. For the operator's eyes."""
        return {number: error for one in self.held.values() for number, error in one.failures.items()}

    def run(self, go_on: Callable[[], bool] = lambda: True, poll: float = POLL) -> None:
        """Until `go_on` says no. If the store is away, try again."""
        with self._heartbeats():
            while go_on():
                self._watched("step", self.step)
                time.sleep(poll)
        self.leave()

    def _watched(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except StoreUnavailable as error:
            self._watch.failed(what, error)
        else:
            self._watch.well(what)

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Send heartbeats beside the loop: a release may take longer than others wait for one."""
        over = threading.Event()

        def send() -> None:
            while not over.wait(HEARTBEAT_EVERY):
                self._watched("beat", self._send_heartbeat)

        thread = threading.Thread(target=send, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def step(self) -> None:
        """All that is to be done by now."""
        now, self._written = self._store.now(), 0.0
        if now >= self._last[0] + HEARTBEAT_EVERY:
            self._send_heartbeat()
        if self._rolled_back:
            raise LedgerDamaged(
                "The store has forgotten when this trainer was well: it was rolled back while it ran. Put the newest "
                "one back; or begin new populations, with a new store, for users to come."
            )
        if now >= self._looked + LOOKS:
            self._look(now)
        due, until = self._due(now), None
        if any(len(self._numbers[name]) > 1 for name in due):  # then what was earlier comes first
            until = self._write_time()
            due = self._due(until)
        noted = {name.removeprefix("placement ") for name, (_, note) in self._notes.items() if note}
        for name, rows in due.items():
            if (population := self.held.get(name)) is None or population.stopped:
                self._forget(row.number for row in rows)
                continue
            listens = max(population.since + self._pause, now + POLL) if self._listens(population) else 0.0
            try:
                population.step(rows, now, until, listens, noted)
            except Superseded:
                self._lose(population)

    def leave(self) -> None:
        """Hand over what it leads, so that no population waits for a trainer that has stopped."""
        until = time.monotonic() + LEAVES
        with suppress(StoreUnavailable):
            for population in list(self.held.values()):
                if time.monotonic() < until:
                    with suppress(Superseded):
                        self._hand_over(population)
            self._store.drop_heartbeats([self.name])

    # What happened.

    def _due(self, now: float) -> dict[str, list[PlacementRow]]:
        """By population the placements to which something happened that they do not know, or that are due."""
        since, changes = self._store.changed(self._since)
        for number, change in changes.items():
            if number not in self._rows:
                self._read_rows()
            if (population := self.held.get(self._rows[number].population)) is not None:
                placement = population.placements.get(number)
                if placement is None or not placement.knows(change):
                    self._due_at[number] = 0.0
        self._since, result = since, dict[str, list[PlacementRow]]()
        for _, number in sorted((at, number) for number, at in self._due_at.items() if at < now):
            result.setdefault(self._rows[number].population, []).append(self._rows[number])
        return result

    def _forget(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._due_at.pop(number, None)

    def _read_rows(self) -> None:
        rows = {row.number: row for row in self._store.placements()}
        numbers = {name: list[int]() for name in self._store.populations()}
        for row in rows.values():
            numbers[row.population].append(row.number)
        self._rows, self._numbers = rows, numbers  # both or neither: the store may be away in between

    def _write_time(self) -> float:
        """A time before which nothing is written later; one for all that is done in a step."""
        if not self._written:
            self._written = self._store.heartbeat(f"barrier of {self.slot}")
        return self._written

    def _send_heartbeat(self) -> None:
        """Send a heartbeat, unless the store has forgotten the last one; then note in the folder how far it has come.

        The row of this process tells others that it is well, and goes with it. The row of its name without a suffix
        stays: the folder's high-water mark refers to it.
        """
        with self._sending:
            at = self._store.heartbeat_after(self.name, WELL, self._last)
            if at is None:  # or the store could not say that the last one was written
                at = self._store.heartbeats().get(self.name, NO_HEARTBEAT)[0]
                self._rolled_back = self._rolled_back or at <= self._last[0]
                if self._rolled_back:
                    return
            self._last = at, WELL
            at = self._store.heartbeat(self.slot)
            try:
                rolled_back.note(self._folder, self.slot, at)
            except OSError as error:  # the disk is full: an earlier mark stays, and the next one is tried
                self._log.seldom(error, trainer=self.slot)

    # Leadership.

    def _look(self, now: float) -> None:
        """Acquire and hand over as the assignment says, and compare what front ends have seen."""
        self._notes = self._store.heartbeats()
        leaders = (
            self._store.leaders()
        )  # after the notes: no other trainer of its populations published those
        for population in list(self.held.values()):
            if leaders.get(population.name, NOBODY).fencing_token != population.fencing_token:
                self._lose(population)
        names = [name for name in self._store.populations() if not is_closed(name)]
        shares = self._assignment.look(names, leaders, self._notes, self.held, now)
        for name in shares.give:
            with suppress(Superseded):
                self._hand_over(self.held[name])
        for name, after in shares.take[:AT_ONCE]:
            with suppress(Superseded):  # another trainer was first
                self._acquire(name, after)
        self._looked = now if len(shares.take) <= AT_ONCE else 0.0
        gone = [name for name, (at, _) in self._notes.items() if INSTANCE in name and at < now - DAY]
        if gone:
            self._store.drop_heartbeats(gone)
        self._compare()

    def _acquire(self, name: str, after: int) -> None:
        fencing_token = self._store.acquire_leadership(name, self.name, after)
        population = Population(name, fencing_token, self._store.now(), self._parts)
        population.stopped = bool(self._notes.get(f"population {name}", NO_HEARTBEAT)[1])
        self.held[name] = population
        self._log.say("acquired", trainer=self.slot, population=name)
        if name not in self._numbers:
            self._read_rows()
        self._due_at.update(dict.fromkeys(self._numbers[name], 0.0))

    def _hand_over(self, population: Population) -> None:
        """Between two steps, so that nothing is under way."""
        self._lose(population)
        self._store.acquire_leadership(population.name, "", population.fencing_token)

    def _lose(self, population: Population) -> None:
        del self.held[population.name]
        self._forget(self._numbers.get(population.name, ()))
        self._log.say("released", trainer=self.slot, population=population.name)

    # Whether the store is what users have seen.

    def _listens(self, population: Population) -> bool:
        """Whether a front end may not have said yet what it has seen."""
        return self._pause > 0 and self._looked < population.since + self._pause

    def _compare(self) -> None:
        """Stop populations of which a front end has seen what is not in the store."""
        self._high_water_marks.read(self._notes)
        for row in self._rows.values():
            population = self.held.get(row.population)
            if (
                population is not None
                and not population.stopped
                and population.lacks(row, self._high_water_marks)
            ):
                population.stopped = True
                self._store.heartbeat(f"population {population.name}", STOPPED)
                self._log.say("rolled back", trainer=self.slot, population=population.name)
