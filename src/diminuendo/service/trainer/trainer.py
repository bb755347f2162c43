"""The trainer's loop: every placement in turn, each by itself, as long as no other trainer leads.

What goes wrong with one placement is kept to it: it is begun again from its last snapshot, a little later each time,
and a public note says that it waits, and not why. Of why, the log has the kind of error and the line of code.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from diminuendo.errors import LedgerInUse, StoreUnavailable, Superseded
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementFacts, PopulationFacts
from diminuendo.service.store import PlacementRow, Store, put_back
from diminuendo.service.trainer.keys import Keys
from diminuendo.service.trainer.made import budget_of
from diminuendo.service.trainer.placement import Marks, NoMarks, Placement

POLL, LONGEST_WAIT, BEAT = 0.05, 60.0, 5.0
"""Seconds: between two looks at the store; at most until a placement that failed is tried again; between beats."""


class Trainer:
    """Leads from when it is made: whoever led before writes nothing any more."""

    def __init__(
        self,
        store: Store,
        keys: str | Path,
        *,
        name: str = "trainer",
        coins: Callable[[], Coins | None] = lambda: None,
        marks: Marks | None = None,
        log: Log | None = None,
    ) -> None:
        """`keys`: the folder of its keys, which is not where the store is. `coins`: for tests."""
        put_back.refuse_older(store, Path(keys))
        self._store, self._keys, self._coins, self._folder = store, Keys(keys), coins, Path(keys)
        self._marks = NoMarks() if marks is None else marks
        self._log = log or Log()
        self.name, self.epochs = (
            name,
            {population: store.lead(population, name) for population in store.populations()},
        )
        self._ledgers: dict[str, Ledger] = {}
        self.placements: dict[int, Placement] = {}
        """Those that are well, by number."""
        self.failures: dict[int, str] = {}
        """Of those that wait: what kind of error it was, and where. For the operator's eyes."""
        self._failed: dict[int, tuple[float, float]] = {}  # until when each waits, and how long that was
        self._beat, self._spent = (
            0.0,
            dict[str, tuple[str, float]](),
        )  # by population: at which head, how much

    def __repr__(self) -> str:
        return f"<Trainer {self.name} of {', '.join(self.epochs)}>"

    def run(self, go_on: Callable[[], bool] = lambda: True, poll: float = POLL) -> None:
        """Until another trainer leads, or `go_on` says no. Where the store is away, it is asked again."""
        while go_on():
            with suppress(StoreUnavailable):
                self.step()
            time.sleep(poll)

    def step(self) -> None:
        """All that is to be done by now."""
        now = self._store.now()
        if now >= self._beat + BEAT:
            self._beat = self._store.beat(self.name, msgspec.json.encode(self._accounts()).decode())
            with suppress(OSError):  # no room for it: then an earlier time is noted, and it is tried again
                put_back.note(self._folder, self._beat)
        for row in self._store.placements():
            if self._failed.get(row.number, (0.0, 0.0))[0] > now:
                continue
            try:
                self._of(row).step()
                self._failed.pop(row.number, None)
                self.failures.pop(row.number, None)
            except Superseded:
                raise
            except Exception as error:
                self._log.fault(error, placement=row.name)
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.failures[row.number] = f"{type(error).__name__} in {where.name}, line {where.lineno}"
                self._begin_again(row, now)

    def _accounts(self) -> dict[str, tuple[float, float]]:
        """Of each population what was spent and its budget, as epsilons: public, as ledgers are."""
        for name, ledger in self._ledgers.items():
            if self._spent.get(name, ("", 0.0))[0] != ledger.head:
                self._spent[name] = ledger.head, ledger.spent()
        return {name: (self._spent[name][1], ledger.budget.epsilon) for name, ledger in self._ledgers.items()}

    def _of(self, row: PlacementRow) -> Placement:
        if row.number not in self.placements:
            ledger = self._ledger(row).named(row.name)
            self.placements[row.number] = Placement(
                row, self._store, self._epoch(row), self._keys, ledger, self._marks, self._coins()
            )
        return self.placements[row.number]

    def _epoch(self, row: PlacementRow) -> int:
        if row.population not in self.epochs:
            self.epochs[row.population] = self._store.lead(row.population, self.name)
        return self.epochs[row.population]

    def _ledger(self, row: PlacementRow) -> Ledger:
        if row.population not in self._ledgers:
            books, head = (
                self._store.books(row.population, self._epoch(row)),
                self._keys.noted(row.population),
            )
            budget = None
            if not books.lines.read():
                facts = msgspec.json.decode(self._store.populations()[row.population], type=PopulationFacts)
                budget = budget_of(facts, msgspec.json.decode(row.facts, type=PlacementFacts))
            self._ledgers[row.population] = Ledger.on(books, budget, expect=head)
        return self._ledgers[row.population]

    def _begin_again(self, row: PlacementRow, now: float) -> None:
        """Forget what is in memory of a placement, and try later. Where its ledger has failed, so have its others."""
        self.placements.pop(row.number, None)
        wait = min(LONGEST_WAIT, 2 * self._failed.get(row.number, (0.0, 0.5))[1])
        self._failed[row.number] = now + wait, wait
        try:
            self._ledger(row).named(row.name).let_go()
        except LedgerInUse:  # the last entry was interrupted: it is opened again, and so is whoever is on it
            del self._ledgers[row.population]
            others = {each.number for each in self._store.placements() if each.population == row.population}
            self.placements = {
                number: each for number, each in self.placements.items() if number not in others
            }
        except Superseded:
            raise
        except Exception:  # it could not be opened either
            self._ledgers.pop(row.population, None)
        self._store.beat(f"placement {row.name}", "waits, and is tried again")
