"""One population while a trainer leads it: its ledger and its placements, each by itself.

What goes wrong with one placement is kept to it: it is begun again from its last snapshot, a little later each time,
and a public note says that it waits, and not why. Of why, the log has the kind of error and the line of code.
"""

from __future__ import annotations

import heapq
import math
import traceback
from collections.abc import Collection, Sequence

import msgspec

from diminuendo.errors import LedgerInUse, Superseded
from diminuendo.privacy.ledger import Ledger
from diminuendo.service.records import PlacementSpec, PopulationSpec
from diminuendo.service.store import PlacementRow
from diminuendo.service.trainer.assignment import NOBODY
from diminuendo.service.trainer.high_water_marks import HighWaterMarks, LedgerHeads
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.made import budget_of
from diminuendo.service.trainer.placement import Parts, Placement
from diminuendo.service.trainer.private_keys import FolderKeys, StoreKeys

LONGEST_WAIT = 60.0
"""Seconds at most until a placement that failed is tried again."""
WAITS = "waits, and is tried again"


class Population:
    """A population while this trainer leads it; earlier leaders write nothing of it any more."""

    def __init__(self, name: str, fencing_token: int, since: float, parts: Parts) -> None:
        """`since`: when that was, by the store's clock."""
        self.name, self.fencing_token, self.since, self._parts = name, fencing_token, since, parts
        self.stopped = False
        """Whether nothing is released any more: the store was rolled back."""
        self.placements: dict[int, Placement] = {}
        """Those that are well, by number."""
        self.failures: dict[int, str] = {}
        """Of those that wait: what kind of error it was, and where. For the operator's eyes."""
        self.ledger: Ledger | None = None
        self._failed: dict[int, tuple[float, float]] = {}  # until when each waits, and how long that was
        self._numbers = set[int]()  # of all that were ever begun
        self._heads = LedgerHeads(parts.store, name, fencing_token)
        private_keys = None if parts.masters is None else StoreKeys(parts.store, fencing_token, parts.masters)
        self._private_keys, self._keys = private_keys, Keys(parts.folder, private_keys)

    def __repr__(self) -> str:
        return f"<Population {self.name}, fencing token {self.fencing_token}>"

    def step(
        self,
        rows: Sequence[PlacementRow],
        now: float,
        until: float | None,
        listens: float,
        noted: Collection[str],
    ) -> None:
        """All that is to be done for these placements, in the order of time; notes when each is due next.

        `until`: as `Placement.look` takes it. `listens`: until when nothing is released but first menus. `noted`: those
        of which a note says that they wait.
        """
        due_at, looked = self._parts.due_at, set[int]()
        turns = [(0.0 if row.number in self.placements else row.made_at, row.number, row) for row in rows]
        heapq.heapify(turns)
        while turns:
            _, number, row = heapq.heappop(turns)
            first = number not in looked or number not in self.placements
            if first and (waits := self._failed.get(number, (0.0, 0.0))[0]) > now:
                due_at[number] = waits
                continue
            looked.add(number)
            try:
                placement = self._of(row)
                if placement.version and listens > now:
                    due_at[number] = listens
                    continue
                if first:
                    placement.look(until)
                else:
                    placement.follow()
                at = placement.next
            except Superseded:
                raise
            except Exception as error:
                due_at[number] = self._fail(row, now, error)
                continue
            if at < math.inf:
                heapq.heappush(turns, (at, number, row))
                continue
            if row.name in noted or number in self._failed:  # all went well
                self._parts.store.heartbeat(f"placement {row.name}")
            self._failed.pop(number, None)
            self.failures.pop(number, None)
            due_at[number] = placement.moment

    def _fail(self, row: PlacementRow, now: float, error: Exception) -> float:
        """Begin a placement again later, and say that it waits; when."""
        again = self._begin_again(
            row, now
        )  # first: nothing goes on from half a step, though the store be away
        if self._parts.store.leaders().get(self.name, NOBODY).fencing_token != self.fencing_token:
            raise Superseded(f"Another trainer leads population {self.name!r}.") from None
        self._parts.log.fault(error, placement=row.name)
        where = traceback.extract_tb(error.__traceback__)[-1]
        self.failures[row.number] = f"{type(error).__name__} in {where.name}, line {where.lineno}"
        self._parts.store.heartbeat(f"placement {row.name}", WAITS)
        return again

    def lacks(self, row: PlacementRow, high_water_marks: HighWaterMarks) -> bool:
        """Whether a front end has seen of a placement what is not in the store."""
        placement = self.placements.get(row.number)
        return any(
            (placement is not None and version > placement.version) or not self._heads.has(head)
            for version, head in high_water_marks.of(row.name)
        )

    def _of(self, row: PlacementRow) -> Placement:
        if row.number not in self.placements:
            self._numbers.add(row.number)
            if self._private_keys is not None:
                self._private_keys.take_over(row.number, FolderKeys(self._parts.folder))
            ledger, parts = self._opened(row).named(row.name), self._parts
            self.placements[row.number] = Placement(row, parts, self.fencing_token, self._keys, ledger)
        return self.placements[row.number]

    def _opened(self, row: PlacementRow) -> Ledger:
        if self.ledger is None:
            store, budget = self._parts.store, None
            books, head = store.books(self.name, self.fencing_token), self._keys.noted(self.name)
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
        except LedgerInUse:  # the last entry was interrupted: it is opened again, and so are its placements
            self.ledger = None
            self.placements.clear()
            self._parts.due_at.update(dict.fromkeys(self._numbers, 0.0))
        except Superseded:
            raise
        except Exception:  # it could not be opened either
            self.ledger = None
        return now + wait
