"""The trainer's loop: of the populations that it leads, every placement to which something has happened.

Several trainers, on any machines, share the populations of a store (sharing.py). What costs time is what happens: one
question tells which placements have new leases or events, and the agenda which ones have come to a public moment.
Where another trainer leads a population, what this one writes of it is refused; it lets go of that one alone. Of two
that have the same name, as machines have that were cloned, the one that began later goes on, and the other steps aside
until nobody has beaten under that name for a while.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from diminuendo.errors import LedgerDamaged, StoreUnavailable, Superseded
from diminuendo.learners.base.engines import Engine
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.log import Log, StoreWatch
from diminuendo.service.store import NO_BEAT, PlacementRow, Store, rolled_back
from diminuendo.service.store.led import is_closed
from diminuendo.service.trainer.agenda import Agenda
from diminuendo.service.trainer.placement import Marks, NoMarks, Placement
from diminuendo.service.trainer.population import Parts, Population
from diminuendo.service.trainer.private_keys import read_masters
from diminuendo.service.trainer.rehearsal import Rehearsals
from diminuendo.service.trainer.sharing import NOBODY, SILENT, Sharing
from diminuendo.service.trainer.witnesses import LISTENS, STOPPED, Witnesses

POLL, LOOKS, BEAT = 0.05, 1.0, 2.0
"""Seconds: between two questions what changed; between looks at who leads what; between beats."""
AT_ONCE = 100
"""Populations that are taken between two steps: each is a write of its own."""
WELL = "well"
"""What a trainer notes that has not stopped; how much was spent menus say, when they are in effect."""
LEAVES = 5.0
"""Seconds for which a trainer that is stopped hands over what it leads."""


class Trainer:
    """One trainer of a store, known by its name; of several that have the same one works."""

    def __init__(
        self,
        store: Store,
        keys: str | Path,
        *,
        name: str = "trainer",
        in_store: bool = False,
        instance: str = "",
        listens: float = LISTENS,
        rng: Callable[[], RandomSource | None] = lambda: None,
        marks: Marks | None = None,
        log: Log | None = None,
        engine: Engine | None = None,
    ) -> None:
        """`keys`: the folder of its keys, which is not where the store is. `in_store`: whether their secret halves are
        in the store, sealed with a master key that lies in the folder. `instance`: what tells it from others of its
        name; drawn, unless given. `listens`: seconds from when it leads until it pays for anything. `rng`: for tests.
        `engine`: where users are kept whom learners keep; without, here."""
        self._last = store.beats().get(name, NO_BEAT)  # under its name: it beats on top of that alone
        rolled_back.refuse_unknown(store, Path(keys))
        self._note = f"{WELL} {instance or secrets.token_hex(4)}"
        self._aside, self._says = False, threading.Lock()
        self.name, self._store, self._folder, self._log = name, store, Path(keys), log or Log()
        self._agenda, self._sharing, self._witnesses = Agenda(), Sharing(name), Witnesses()
        self._parts = Parts(
            store, self._folder, read_masters(self._folder) if in_store else None, self._agenda, rng,
            NoMarks() if marks is None else marks, self._log, Rehearsals(), self._write_time, engine,
        )  # fmt: skip
        self.led: dict[str, Population] = {}
        """The populations that it leads, by name."""
        self._rows: dict[int, PlacementRow] = {}
        self._numbers: dict[str, list[int]] = {}  # by population
        self._since = 0.0  # what happened before is known
        self._tried: dict[str, int] = {}  # epochs after which it may lead, though the store did not say so
        self._before: dict[str, int] | None = None  # epochs of whoever had its name before it began
        self._beat, self._looked, self._written, self._older = 0.0, 0.0, 0.0, False
        self._notes: dict[str, tuple[float, str]] = {}  # everybody's, when it looked last
        self._pause = listens
        self._watch = StoreWatch(self._log, trainer=name)
        for each in store.populations():
            if is_closed(each):
                self._log.say("closed", trainer=name, population=each)

    def __repr__(self) -> str:
        return f"<Trainer {self.name} of {', '.join(self.led)}>"

    @property
    def placements(self) -> dict[int, Placement]:
        """Those that are well, by number."""
        return {number: each for one in self.led.values() for number, each in one.placements.items()}

    @property
    def failures(self) -> dict[int, str]:
        """Of those that wait: what kind of error it was, and where. For the operator's eyes."""
        return {number: said for one in self.led.values() for number, said in one.failures.items()}

    def run(self, go_on: Callable[[], bool] = lambda: True, poll: float = POLL) -> None:
        """Until `go_on` says no. Where the store is away, it is asked again."""
        with self._beating():
            while go_on():
                try:
                    self.step()
                except StoreUnavailable as error:
                    self._watch.failed("step", error)
                else:
                    self._watch.well("step")
                time.sleep(poll)
        self.leave()

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Beat beside the loop: a release may take longer than others wait for a beat."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT):
                try:
                    self._say_well()
                except StoreUnavailable as error:
                    self._watch.failed("beat", error)
                else:
                    self._watch.well("beat")

        thread = threading.Thread(target=beat, name="beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def step(self) -> None:
        """All that is to be done by now."""
        now, self._written = self._store.now(), 0.0
        if now >= self._beat + BEAT:
            self._say_well()
        if self._older:
            raise LedgerDamaged(
                "The store does not know any more when this trainer was well: it was put back while it ran. Put the "
                "newest one back; or begin new populations, with a new store, for users to come."
            )
        if self._aside or not self._beat:
            for each in list(self.led.values()):
                self._let_go(each)
            return
        if now >= self._looked + LOOKS:
            self._look(now)
        due, until = self._due(now), None
        if any(len(self._numbers[name]) > 1 for name in due):  # then what was earlier comes first
            until = self._write_time()
            due = self._due(until)
        noted = {name.removeprefix("placement ") for name, (_, note) in self._notes.items() if note}
        for name, rows in due.items():
            if (population := self.led.get(name)) is None or population.stopped:
                for row in rows:
                    self._agenda.drop(row.number)
                continue
            listens = max(population.since + self._pause, now + POLL) if self._listens(population) else 0.0
            try:
                for number, moment in population.step(rows, now, until, listens, noted).items():
                    self._agenda.put(number, moment)
            except Superseded:
                self._let_go(population)

    def leave(self) -> None:
        """Hand over what it leads, so that nobody waits for a trainer that is not there any more."""
        until = time.monotonic() + LEAVES
        with suppress(StoreUnavailable):
            for population in list(self.led.values()):
                if time.monotonic() < until:
                    with suppress(Superseded):
                        self._hand_over(population)
            if self._beat and not self._aside:
                self._store.beat_after(self.name, "", self._last)

    # What happened.

    def _due(self, now: float) -> dict[str, list[PlacementRow]]:
        """By population the placements to which something has happened that they do not know, or whose moment it is."""
        since, changes = self._store.changed(self._since)
        for number, change in changes.items():
            placement = self._placement(number)
            if placement is None or not placement.knows(change):
                self._put(number)
        self._since, result = since, dict[str, list[PlacementRow]]()
        for number in self._agenda.due(now):
            result.setdefault(self._rows[number].population, []).append(self._rows[number])
        return result

    def _placement(self, number: int) -> Placement | None:
        """A placement that is open."""
        row = self._rows.get(number)
        population = None if row is None else self.led.get(row.population)
        return None if population is None else population.placements.get(number)

    def _put(self, number: int) -> None:
        """Something has happened to a placement."""
        if number not in self._rows:
            self._read_rows()
        if self._rows[number].population in self.led:
            self._agenda.put(number, 0.0)

    def _read_rows(self) -> None:
        rows = {row.number: row for row in self._store.placements()}
        numbers = {name: list[int]() for name in self._store.populations()}
        for row in rows.values():
            numbers[row.population].append(row.number)
        self._rows, self._numbers = rows, numbers  # both or neither: the store may be away in between

    def _write_time(self) -> float:
        """A time before which nothing is written later; one for all that is done in a step."""
        if not self._written:
            self._written = self._store.beat(f"settled by {self.name}")
        return self._written

    # Beats.

    def _say_well(self) -> None:
        """Beat, unless the store has forgotten the last one, or somebody else beats under this name."""
        with self._says:
            if self._aside and self._others():
                return
            at = self._store.beat_after(self.name, self._note, self._last)
            if at is None:
                self._hear()
                # who begins goes first; and its own note is there where the store could not say that it was kept
                self._aside = bool(self._beat) and self._last[1] != self._note
                if self._aside:
                    self._log.say("name taken", trainer=self.name)
                return
            if self._aside:
                self._aside, self._before, self._looked = False, None, 0.0
                self._log.say("name free", trainer=self.name)
            self._last, self._beat = (at, self._note), at
            try:
                rolled_back.note(self._folder, self.name, at)
            except OSError as error:  # no room for it: then an earlier time is noted, and it is tried again
                self._log.seldom(error, trainer=self.name)

    def _hear(self) -> None:
        """Who beat last under its name, and whether the store has forgotten a later time."""
        result = self._store.beats().get(self.name, NO_BEAT)
        self._older = self._older or result[0] < self._last[0]
        if result[0] >= self._last[0]:
            self._last = result

    def _others(self) -> bool:
        """Whether somebody else of its name may still be there."""
        self._hear()
        at, note = self._last
        return self._older or (bool(note) and self._store.now() < at + SILENT)

    # Who leads what.

    def _look(self, now: float) -> None:
        """Take what is to be led, hand over what is not, and compare what front ends have seen."""
        self._notes = self._store.beats()
        leaders = (
            self._store.leaders()
        )  # after the notes: of what it leads, nobody else published what is in them
        for population in list(self.led.values()):
            if leaders.get(population.name, NOBODY).epoch != population.epoch:
                self._let_go(population)
        own = {name: leader.epoch for name, leader in leaders.items() if leader.name == self.name}
        self._before = own if self._before is None else self._before
        gone = [
            name
            for name, epoch in own.items()
            if epoch == self._before.get(name) or epoch > self._tried.get(name, epoch)
        ]
        shares = self._sharing.look(
            [name for name in self._store.populations() if not is_closed(name)], leaders, self._notes,
            {name: each.epoch for name, each in self.led.items()}, gone, now,
        )  # fmt: skip
        for name in shares.give:
            with suppress(Superseded):
                self._hand_over(self.led[name])
        for name, after in shares.take[:AT_ONCE]:
            self._lead(name, after)
        self._looked = now if len(shares.take) <= AT_ONCE else 0.0
        self._compare()

    def _lead(self, name: str, after: int) -> None:
        self._tried[name] = after
        with suppress(Superseded):  # somebody was faster
            population = Population(
                name, self._store.lead(name, self.name, after), self._store.now(), self._parts
            )
            population.stopped = bool(self._notes.get(f"population {name}", (0.0, ""))[1])
            self.led[name] = population
            self._log.say("led", trainer=self.name, population=name)
            if name not in self._numbers:
                self._read_rows()
            for number in self._numbers[name]:
                self._agenda.put(number, 0.0)
        del self._tried[name]

    def _hand_over(self, population: Population) -> None:
        """Between two steps, so that nothing is under way."""
        self._let_go(population)
        self._store.lead(population.name, "", population.epoch)

    def _let_go(self, population: Population) -> None:
        del self.led[population.name]
        for number in self._numbers.get(population.name, ()):
            self._agenda.drop(number)
        self._log.say("let go", trainer=self.name, population=population.name)

    # Whether the store is what users have seen.

    def _listens(self, population: Population) -> bool:
        """Whether a front end may not have said yet what it has seen."""
        return self._pause > 0 and self._looked < population.since + self._pause

    def _compare(self) -> None:
        """Stop populations of which somebody has seen what is not in the store."""
        self._witnesses.hear(self._notes)
        for row in self._rows.values():
            population = self.led.get(row.population)
            if population is not None and not population.stopped and population.lacks(row, self._witnesses):
                population.stopped = True
                self._store.beat(f"population {population.name}", STOPPED)
                self._log.say("put back", trainer=self.name, population=population.name)
