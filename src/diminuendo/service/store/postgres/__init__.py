"""The store on a PostgreSQL server, for sites of several machines.

If a connection is lost during a commit, it is unknown whether the commit happened, and `StoreUnavailable` is raised.
A retry is safe: feedback, rounds of users, erasures and heartbeats are stored once; an ID block that no front end
received is one whose rounds nobody was shown; and a trainer that begins again reads the ledger, releases and menus as
they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from diminuendo.errors import InvalidInput, StoreUnavailable
from diminuendo.service.records import Report
from diminuendo.service.store import (
    AnswerRow,
    Change,
    IdBlock,
    Publication,
    QuotaResult,
    UserRound,
    adopt,
)
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.postgres.schema import FRONT_ENDS
from diminuendo.service.store.postgres.server import BEGIN, NoTables, PostgresServer, check_fence, run, shown
from diminuendo.service.store.sql import FORGET, Script, Store, T, check_id_block

__all__ = ["PostgresStore", "find_postgres", "shown"]


def find_postgres(address: str) -> PostgresStore | None:
    """The store in the database of that address, or None if it has no tables of ours yet. Nothing is created."""
    try:
        return PostgresStore(address, make=False)
    except NoTables:
        return None


class PostgresStore(Store):
    """A store in the database of that address."""

    def __init__(self, address: str, *, make: bool = True) -> None:
        self._server = PostgresServer(address, make=make)
        self.place = self._server.name
        self._latest, self._lock = 0.0, threading.Lock()

    def __repr__(self) -> str:
        return f"<PostgresStore {self._server.name}>"

    def close(self) -> None:
        """Close the connections, when all writers of this process have ended."""
        self._server.close()

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All rows that a query selects."""
        return self._server.rows(query, *values)

    def transact(self, script: Callable[[], Script[T]], fence: FencedWrite | None = None) -> T:
        """Run a script in one transaction; refused if it is fenced and another trainer leads."""
        return self._server.writing(lambda db: run(db, script()), fence)

    def check_fence(self, fence: FencedWrite) -> None:
        """Refuse if another trainer leads, or the ledger lacks an entry that this one knows."""
        self._server.run(lambda db: check_fence(db, fence), BEGIN)

    def write_barrier(self) -> None:
        """Wait until all transactions that are open now have ended."""
        self.rows("SELECT diminuendo.write_barrier()")

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        ((result,),) = self.rows("SELECT diminuendo.instant()")
        with self._lock:
            self._latest = max(self._latest, float(result))
            return self._latest

    # Public spec, by operators.

    def add_population(self, name: str, spec: bytes) -> None:
        """A new population."""
        ((new,),) = self._server.rows("SELECT diminuendo.add_population($1, $2)", name, spec, again=False)
        if not new:
            raise InvalidInput(f"There is a population {name!r} already; give this one another name.")

    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number."""
        self._check_population(population)
        values = (name, population, spec)
        ((number,),) = self._server.rows("SELECT diminuendo.add_placement($1, $2, $3)", *values, again=False)
        if number is None:
            raise InvalidInput(f"There is a placement {name!r} already; give this one another name.")
        return int(number)

    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and reserve no further round by any menu so far; its number."""
        values = (placement, kind, body, by)
        ((seq,),) = self._server.rows("SELECT diminuendo.add_event($1, $2, $3, $4)", *values, again=False)
        return int(seq)

    def adopt(self) -> list[str]:
        """Close the populations with a history, and begin new ones in their place, when no fenced write is open."""

        def alone() -> Script[list[str]]:
            yield "LOCK TABLE diminuendo.trainers IN EXCLUSIVE MODE", ()
            return (yield from adopt.adoption())

        return self.transact(alone)

    # Front ends.

    def reserve_ids(
        self, placement: int, count: int, seconds: float, report: Report | None
    ) -> IdBlock | None:
        """The next rounds, at most `count`, for `seconds`, by the latest menu in effect."""
        check_id_block(count, seconds)
        if report is None and count == 0:
            return None
        first, body = (None, None) if report is None else (report.first, msgspec.json.encode(report))
        result = self.rows(
            "SELECT * FROM diminuendo.reserve_ids($1, $2, $3, $4, $5)", placement, count, seconds, first, body
        )
        return IdBlock(*result[0]) if result else None

    def put(self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()) -> list[QuotaResult]:
        """Count rounds of users and store feedback; a second response to a round takes as long, and changes nothing."""
        feedback = [(row.placement, row.round, row.encrypted, row.at) for row in answers]
        rounds = [
            (row.placement, row.user_id, row.max_rounds_per_user, row.round, row.key) for row in user_rounds
        ]
        result = [QuotaResult(False, row.round) for row in user_rounds]
        query = "SELECT * FROM diminuendo.put($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        for nth, counts, number in self.rows(query, *_columns(feedback, 4), *_columns(rounds, 5)):
            result[nth - 1] = QuotaResult(counts, number)
        return result

    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Delete the feedback to these rounds, and accept none any more: a tombstone stays."""
        self.rows("SELECT diminuendo.erase($1, $2)", placement, list(rounds))

    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of a pseudonym."""
        self.rows("SELECT diminuendo.erase_user($1, $2)", placement, user_id)

    # The trainer.

    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements to which something happened at that time or later; of each the latest."""
        result = self._changes(since)
        if not result:
            return since, result
        then = self.now()
        self.write_barrier()  # what has an earlier time is there now
        return max(since, then), self._changes(since)

    def heartbeat(self, name: str, note: str = "") -> float:
        """Write that a process is well, with a public note; the time of it. All writers of that time are waited for,
        except by front ends: no round is closed at their times."""
        ((at,),) = self.rows("SELECT diminuendo.heartbeat($1, $2)", name, note)
        if not name.startswith(FRONT_ENDS):
            self.write_barrier()
        return float(at)

    def publish(self, fencing_token: int, publication: Publication) -> float:
        """Menu, limits, snapshot and deletions, at once; when it takes effect."""
        effective = super().publish(fencing_token, publication)

        def forget() -> Script[None]:
            yield FORGET, (publication.placement, publication.gc_low_water_mark)

        with suppress(StoreUnavailable):  # writers of that moment did not know the new GC low-water mark
            self.write_barrier()
            self.transact(forget, self._fence(fencing_token, publication.placement))
        return effective

    def _visible_id_blocks(self, placement: int, first: int) -> list[Any]:
        return self.rows(
            "SELECT * FROM diminuendo.visible_id_blocks($1, $2) ORDER BY first", placement, first
        )

    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The ledger entries that are visible by now, but for the first `after`."""
        query = "SELECT line FROM diminuendo.visible_ledger($1, $2) ORDER BY seq"
        return [line for (line,) in self.rows(query, population, after)]

    def visible_releases(self, population: str, name: str | None) -> list[tuple[str, bytes]]:
        """Names and contents of the releases that are visible by now; `name`: that one alone."""
        query = "SELECT name, body FROM diminuendo.visible_releases($1) WHERE $2::text IS NULL OR name = $2"
        return self.rows(query, population, name)


def _columns(rows: list[tuple[Any, ...]], many: int) -> list[list[Any]]:
    """Rows as columns, of which there are that many, also where there is no row."""
    return [[row[column] for row in rows] for column in range(many)]
