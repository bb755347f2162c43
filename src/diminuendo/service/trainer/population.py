"""One population while a trainer leads it: its ledger and its placements, each by itself.

What goes wrong with one placement is kept to it: it is begun again from its last snapshot, a little later each time,
and a public note says that it waits, and not why. Of why, the log has the kind of error and the line of code.
"""

from __future__ import annotations

import heapq
import math
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from diminuendo.errors import LedgerInUse, Superseded
from diminuendo.learners.base.engines import Engine
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec
from diminuendo.service.store import PlacementRow, Store
from diminuendo.service.trainer.agenda import Agenda
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.made import budget_of
from diminuendo.service.trainer.placement import Marks, Placement
from diminuendo.service.trainer.private_keys import FolderKeys, StoreKeys
from diminuendo.service.trainer.rehearsal import Rehearsals
from diminuendo.service.trainer.sharing import NOBODY
from diminuendo.service.trainer.witnesses import Heads, Witnesses

LONGEST_WAIT = 60.0
"""Seconds at most until a placement that failed is tried again."""
WAITS = "waits, and is tried again"


@dataclass(frozen=True)
class Parts:
    """What all populations of a trainer share."""

    store: Store
    folder: Path
    """Of keys and heads; not where the store is."""
    masters: dict[bytes, bytes] | None
    """Master keys, where secret halves of keys are in the store."""
    agenda: Agenda
    rng: Callable[[], RandomSource | None]
    marks: Marks
    log: Log
    rehearsals: Rehearsals
    written: Callable[[], float]
    """A time that is written down, before which nothing is written later."""
    engine: Engine | None = None
    """Where users are kept whom learners keep; None: in this process."""


class Population:
    """A population from when it is led; whoever led it before writes nothing of it any more."""

    def __init__(self, name: str, epoch: int, since: float, parts: Parts) -> None:
        """`since`: when that was, by the store's clock."""
        self.name, self.epoch, self.since, self._parts = name, epoch, since, parts
        self.stopped = False
        """Whether nothing is released any more: the store was put back."""
        self.placements: dict[int, Placement] = {}
        """Those that are well, by number."""
        self.failures: dict[int, str] = {}
        """Of those that wait: what kind of error it was, and where. For the operator's eyes."""
        self.ledger: Ledger | None = None
        self._failed: dict[int, tuple[float, float]] = {}  # until when each waits, and how long that was
        self._numbers = set[int]()  # of all that were ever begun
        self._heads = Heads(parts.store, name, epoch)
        private_keys = None if parts.masters is None else StoreKeys(parts.store, epoch, parts.masters)
        self._private_keys, self._keys = private_keys, Keys(parts.folder, private_keys)

    def __repr__(self) -> str:
        return f"<Population {self.name}, epoch {self.epoch}>"

    def step(
        self,
        rows: Sequence[PlacementRow],
        now: float,
        until: float | None,
        listens: float,
        noted: Collection[str],
    ) -> dict[int, float]:
        """All that is to be done for these placements, in the order of time; when each is to be looked at next.

        `until`: as `Placement.look` takes it. `listens`: until when nothing is released but first menus. `noted`: those
        of which a note says that they wait.
        """
        known, moments, looked = {row.number: row for row in rows}, dict[int, float](), set[int]()
        turns = [(0.0 if row.number in self.placements else row.made_at, row.number) for row in rows]
        heapq.heapify(turns)
        while turns:
            number = turns[0][1]
            row, first = known[number], number not in looked
            looked.add(number)
            if first and (waits := self._failed.get(number, (0.0, 0.0))[0]) > now:
                moments[number], at = waits, math.inf
            else:
                at = self._turn(row, now, until, listens, first, moments)
            if at < math.inf:
                heapq.heapreplace(turns, (at, number))
                continue
            heapq.heappop(turns)
            if number not in moments:  # all went well
                if row.name in noted or number in self._failed:
                    self._parts.store.beat(f"placement {row.name}")
                self._failed.pop(number, None)
                self.failures.pop(number, None)
                moments[number] = self.placements[number].moment
        return moments

    def _turn(
        self, row: PlacementRow, now: float, until: float | None, listens: float, first: bool,
        moments: dict[int, float],
    ) -> float:  # fmt: skip
        """Look at a placement at first, then follow what happened next; when that happened which is next after it."""
        try:
            placement = self._of(row)
            if placement.version and listens > now:
                moments[row.number] = listens
                return math.inf
            if first:
                placement.look(until)
            else:
                placement.follow()
            return placement.next
        except Superseded:
            raise
        except Exception as error:
            again = self._begin_again(
                row, now
            )  # first: the store may be away, and nothing goes on from half a step
            if self._parts.store.leaders().get(self.name, NOBODY).epoch != self.epoch:
                raise Superseded(f"Somebody else leads population {self.name!r}.") from None
            self._parts.log.fault(error, placement=row.name)
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.failures[row.number] = f"{type(error).__name__} in {where.name}, line {where.lineno}"
            self._parts.store.beat(f"placement {row.name}", WAITS)
            moments[row.number] = again
            return math.inf

    def lacks(self, row: PlacementRow, witnesses: Witnesses) -> bool:
        """Whether somebody has seen of a placement what is not in the store."""
        placement = self.placements.get(row.number)
        return any(
            (placement is not None and version > placement.version) or not self._heads.has(head)
            for version, head in witnesses.of(row.name)
        )

    def _of(self, row: PlacementRow) -> Placement:
        if row.number not in self.placements:
            self._numbers.add(row.number)
            if self._private_keys is not None:
                self._private_keys.take_over(row.number, FolderKeys(self._parts.folder))
            ledger, parts = self._opened(row).named(row.name), self._parts
            self.placements[row.number] = Placement(
                row,
                parts.store,
                self.epoch,
                self._keys,
                ledger,
                parts.marks,
                parts.rng(),
                parts.written,
                parts.rehearsals,
                parts.engine,
            )
        return self.placements[row.number]

    def _opened(self, row: PlacementRow) -> Ledger:
        if self.ledger is None:
            store, budget = self._parts.store, None
            books, head = store.books(self.name, self.epoch), self._keys.noted(self.name)
            if not books.lines.read():
                spec = msgspec.json.decode(store.populations()[self.name], type=PopulationSpec)
                budget = budget_of(spec, msgspec.json.decode(row.spec, type=PlacementSpec))
            self.ledger = Ledger.on(books, budget, expect=head)
        return self.ledger

    def _begin_again(self, row: PlacementRow, now: float) -> float:
        """Forget what is in memory of a placement, and try later. Where its ledger has failed, so have its others."""
        self.placements.pop(row.number, None)
        wait = min(LONGEST_WAIT, 2 * self._failed.get(row.number, (0.0, 0.5))[1])
        self._failed[row.number] = now + wait, wait
        try:
            self._opened(row).named(row.name).release_names()
        except LedgerInUse:  # the last entry was interrupted: it is opened again, and so is whoever is on it
            self.ledger = None
            self.placements.clear()
            for number in self._numbers:
                self._parts.agenda.put(number, 0.0)
        except Superseded:
            raise
        except Exception:  # it could not be opened either
            self.ledger = None
        return now + wait
