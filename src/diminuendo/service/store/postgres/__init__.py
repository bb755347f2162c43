"""The store on a PostgreSQL server, for sites of several machines.

Where a connection is lost while something is committed, nobody knows whether it was, and `StoreUnavailable` is said.
To try again is no mistake: answers, visits, erasures and beats are kept once, a lease that nobody heard of is one whose
rounds nobody was shown, and a ledger, a release or a menu is found as it is when its trainer begins again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import msgspec

from diminuendo.errors import InvalidInput, StoreUnavailable, refuse_copies
from diminuendo.service.records import Report
from diminuendo.service.store import (
    NO_BEAT,
    AnswerRow,
    Beat,
    Change,
    Counted,
    EventRow,
    Leader,
    Lease,
    LeaseRow,
    MenuRow,
    PlacementRow,
    Publication,
    VisitRow,
    adopt,
)
from diminuendo.service.store.given import AT_ONCE, check_lease, is_answer, is_number, is_visit, report_of
from diminuendo.service.store.led import Led, next_epoch
from diminuendo.service.store.postgres.publishing import forget, last_version, publish
from diminuendo.service.store.postgres.schema import FRONT_ENDS
from diminuendo.service.store.postgres.server import BEGIN, Db, NoTables, PostgresServer, shown

if TYPE_CHECKING:
    from diminuendo.privacy.books import Books

__all__ = ["PostgresStore", "find_postgres", "shown"]


def find_postgres(address: str) -> PostgresStore | None:
    """The store in the database of that address, or None if it has no tables of ours yet. Nothing is created."""
    try:
        return PostgresStore(address, make=False)
    except NoTables:
        return None


class PostgresStore:
    """A store in the database of that address."""

    __getstate__ = refuse_copies

    def __init__(self, address: str, *, make: bool = True) -> None:
        self._server = PostgresServer(address, make=make)
        self._latest, self._lock = 0.0, threading.Lock()

    def __repr__(self) -> str:
        return f"<PostgresStore {self._server.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the server, when whoever writes has done so."""
        self._server.close()

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        ((result,),) = self._server.rows("SELECT diminuendo.instant()")
        with self._lock:
            self._latest = max(self._latest, float(result))
            return self._latest

    # Public facts, by operators.

    def add_population(self, name: str, spec: bytes) -> None:
        """A new population."""
        ((new,),) = self._server.rows("SELECT diminuendo.add_population($1, $2)", name, spec, again=False)
        if not new:
            raise InvalidInput(f"There is a population {name!r} already; give this one another name.")

    def populations(self) -> dict[str, bytes]:
        """By name, the facts of each."""
        return dict(self._server.rows("SELECT name, facts FROM diminuendo.populations ORDER BY number"))

    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number."""
        self._check_population(population)
        given = (name, population, spec)
        ((number,),) = self._server.rows("SELECT diminuendo.add_placement($1, $2, $3)", *given, again=False)
        if number is None:
            raise InvalidInput(f"There is a placement {name!r} already; give this one another name.")
        return int(number)

    def placements(self, after: int = 0) -> list[PlacementRow]:
        """All of them, in the order in which they were made; or those after the one of that number."""
        columns, which = "number, name, population, facts, made_at", "number > $1"
        result = self._server.rows(
            f"SELECT {columns} FROM diminuendo.placements WHERE {which} ORDER BY number", after
        )
        return [PlacementRow(*row) for row in result]

    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and hand out no further round by any menu so far; its number."""
        given = (placement, kind, body, by)
        ((seq,),) = self._server.rows("SELECT diminuendo.add_event($1, $2, $3, $4)", *given, again=False)
        return int(seq)

    def events(self, placement: int, after: int = 0) -> list[EventRow]:
        """What operators did after the event of that number, in order."""
        columns, which = "seq, placement, at, kind, body, by", "placement = $1 AND seq > $2"
        result = self._server.rows(
            f"SELECT {columns} FROM diminuendo.events WHERE {which} ORDER BY seq", placement, after
        )
        return [EventRow(*row) for row in result]

    def remember_request(self, key: str, digest: bytes, reply: bytes) -> tuple[bytes, bytes]:
        """An operator's request by its Idempotency-Key: digest and reply of the first of this day."""
        query, given = "SELECT * FROM diminuendo.remember_request($1, $2, $3)", (key, digest, reply)
        ((first, said),) = self._server.rows(query, *given, again=False)
        return first, said

    def end_request(self, key: str, reply: bytes) -> None:
        """What came of an operator's request, in place of the reply that is remembered."""
        self._server.rows("SELECT diminuendo.end_request($1, $2)", key, reply)

    def history(self) -> list[str]:
        """The populations, not closed, of which something was paid for, published or handed out."""
        return self._server.run(lambda db: _run(db, adopt.history()), BEGIN)

    def adopt(self) -> list[str]:
        """Close these, and begin new ones in their place. Whoever leads one and writes now is waited for."""

        async def adopted(db: Db) -> list[str]:
            await db.execute("LOCK TABLE diminuendo.trainers IN EXCLUSIVE MODE")
            return await _run(db, adopt.adoption(float(await db.fetchval("SELECT diminuendo.tick()"))))

        return self._server.writing(adopted)

    # Front ends.

    def menus(self, placement: int, after: int = 0) -> list[MenuRow]:
        """Menus later than that version, in order; also those that take effect later."""
        columns, which = "version, body, effective_at", "placement = $1 AND version > $2"
        result = self._server.rows(
            f"SELECT {columns} FROM diminuendo.menus WHERE {which} ORDER BY version", placement, after
        )
        return [MenuRow(*row) for row in result]

    def published(self, since: float) -> tuple[float, dict[int, int]]:
        """By number the placements of which menus were published at that time or later; of each the last version.

        Nobody is waited for: who publishes holds the row of the clock from when it has its time until it has committed
        (`tick`), so menus are seen in the order of their times.
        """
        result = self._server.rows(
            "SELECT placement, max(version), max(at) FROM diminuendo.menus WHERE at >= $1 GROUP BY placement",
            since,
        )
        return max((at for *_, at in result), default=since), {
            number: version for number, version, _ in result
        }

    def lease(self, placement: int, count: int, seconds: float, report: Report | None) -> Lease | None:
        """The next rounds, at most `count`, for `seconds`, by the latest menu in effect."""
        check_lease(count, seconds)
        if report is None and count == 0:
            return None
        first, said = (None, None) if report is None else (report.first, msgspec.json.encode(report))
        result = self._server.rows(
            "SELECT * FROM diminuendo.lease($1, $2, $3, $4, $5)", placement, count, seconds, first, said
        )
        return Lease(*result[0]) if result else None

    def put(self, answers: Sequence[AnswerRow], visits: Sequence[VisitRow] = ()) -> list[Counted]:
        """Count visits and keep answers; a second answer to a round takes as long, and changes nothing."""
        told = [(row.placement, row.round, row.sealed, row.at) for row in answers if is_answer(row)]
        whole = [(number, row) for number, row in enumerate(visits) if is_visit(row)]
        came = [(row.placement, row.user_id, row.max_rounds_per_user, row.round, row.key) for _, row in whole]
        columns = (*_columns(told, 4), *_columns(came, 5))
        counted = [Counted(False, row.round) for row in visits]
        query = "SELECT * FROM diminuendo.put($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        result = self._server.rows(query, *columns)
        for nth, counts, number in result:
            counted[whole[nth - 1][0]] = Counted(counts, number)
        return counted

    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Answers to these rounds are gone, and none is taken any more: a tombstone stays."""
        asked = [number for number in rounds if is_number(number)]
        self._server.rows("SELECT diminuendo.erase($1, $2)", placement, asked)

    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of somebody who has a name."""
        self._server.rows("SELECT diminuendo.erase_user($1, $2)", placement, user_id)

    # The trainer.

    def lead(self, population: str, trainer: str, after: int | None = None) -> int:
        """Be the one trainer of a population from now on; its epoch. Whoever leads it and writes now is waited for."""
        self._check_population(population)

        async def lead(db: Db) -> int:
            await db.execute(
                "INSERT INTO diminuendo.trainers VALUES ($1, 0, '') ON CONFLICT DO NOTHING", population
            )
            which = "WHERE population = $1"
            last = await db.fetchval(f"SELECT epoch FROM diminuendo.trainers {which} FOR UPDATE", population)
            epoch = next_epoch(population, int(last), after)
            await db.execute(
                f"UPDATE diminuendo.trainers SET epoch = $2, name = $3 {which}", population, epoch, trainer
            )
            await db.execute("SELECT diminuendo.tick()")
            return epoch

        return self._server.writing(lead)

    def leaders(self) -> dict[str, Leader]:
        """By population who leads it."""
        result = self._server.rows("SELECT population, epoch, name FROM diminuendo.trainers")
        return {population: Leader(epoch, name) for population, epoch, name in result}

    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements to which something happened at that time or later; of each the latest."""
        result = self._changed(since)
        if not result:
            return since, result
        then = self.now()
        self._settle()  # what has an earlier time is there now
        return max(since, then), self._changed(since)

    def _changed(self, since: float) -> dict[int, Change]:
        result = self._server.rows(
            "SELECT placement, max(leased), max(event) FROM ("
            "SELECT placement, past AS leased, 0 AS event FROM diminuendo.leases WHERE at >= $1 "
            "UNION ALL SELECT placement, 0, seq FROM diminuendo.events WHERE at >= $1 "
            "UNION ALL SELECT number, 0, 0 FROM diminuendo.placements WHERE made_at >= $1) AS found GROUP BY placement",
            since,
        )
        return {placement: Change(leased, event) for placement, leased, event in result}

    def beat(self, name: str, note: str = "") -> float:
        """Say that somebody is well, with a public note; when that was. Whoever writes then is waited for, but by front
        ends: nothing is settled at their times."""
        ((at,),) = self._server.rows("SELECT diminuendo.beat($1, $2)", name, note)
        if not name.startswith(FRONT_ENDS):
            self._settle()
        return float(at)

    def beat_after(self, name: str, note: str, last: Beat) -> float | None:
        """The same, where the last beat of that name was that one; else nothing is written."""

        async def beat(db: Db) -> float | None:
            await db.execute("SELECT diminuendo.tick()")  # one at a time
            result = await db.fetch("SELECT at, note FROM diminuendo.beats WHERE name = $1", name)
            if (tuple(result[0]) if result else NO_BEAT) != last:
                return None
            return float(await db.fetchval("SELECT diminuendo.beat($1, $2)", name, note))

        at = self._server.writing(beat)
        self._settle()
        return at

    def _settle(self) -> None:
        """Wait until everybody who writes now has done so."""
        self._server.rows("SELECT diminuendo.settle()")

    def beats(self) -> dict[str, Beat]:
        """Who was well when, last."""
        result = self._server.rows("SELECT name, at, note FROM diminuendo.beats")
        return {name: (at, note) for name, at, note in result}

    def leases(self, placement: int, first: int) -> list[LeaseRow]:
        """All leases from the one that begins with round `first` on, in order."""
        result = self._server.rows(
            "SELECT first, past, version, at, expires_at, report, reported_at FROM diminuendo.leases_shown($1, $2) "
            "ORDER BY first",
            *(placement, first),
        )
        return [
            LeaseRow(first, end, version, at, expires_at, report_of(said), reported_at)
            for first, end, version, at, expires_at, said, reported_at in result
        ]

    def answers(self, placement: int, first: int, end: int) -> Iterator[AnswerRow]:
        """What was answered to rounds from `first` to before `end`, in the order of rounds; no tombstones."""
        which = "placement = $1 AND round >= $2 AND round < $3 AND sealed IS NOT NULL"
        columns = "placement, round, sealed, at"
        query = f"SELECT {columns} FROM diminuendo.answers WHERE {which} ORDER BY round LIMIT {AT_ONCE}"
        while result := self._server.rows(query, placement, first, end):
            yield from (AnswerRow(*row) for row in result)
            first = result[-1][1] + 1

    def erased(self, placement: int, first: int, end: int) -> list[tuple[int, float]]:
        """Rounds with a tombstone, and since when."""
        which = "placement = $1 AND round >= $2 AND round < $3 AND sealed IS NULL"
        query = f"SELECT round, at FROM diminuendo.answers WHERE {which} ORDER BY round"
        return self._server.rows(query, placement, first, end)

    def stop_leases(self, epoch: int, placement: int) -> int:
        """No further round is handed out until a menu that is published later is in effect; the next one to be."""

        async def stop(db: Db) -> int:
            result = await db.fetchval(
                "UPDATE diminuendo.counters SET stopped = $2 WHERE placement = $1 RETURNING next",
                *(placement, await last_version(db, placement)),
            )
            await db.execute(
                "SELECT diminuendo.tick()"
            )  # last, here and below: all that is public waits for it
            return int(result)

        return self._server.writing(stop, self._led(epoch, placement))

    def publish(self, epoch: int, publication: Publication) -> float:
        """Menu, limits, snapshot and deletions, at once; when it takes effect."""
        led = self._led(epoch, publication.placement)
        effective = self._server.writing(lambda db: publish(db, led.population, publication), led)
        with suppress(StoreUnavailable):  # whoever was storing an answer has not known yet what is forgotten
            self._settle()
            self._server.writing(lambda db: forget(db, publication), led)
        return effective

    def allow(self, epoch: int, placement: int, past: int, effective_at: float) -> None:
        """From that time on rounds before `past` may be leased by the last menu."""

        async def allow(db: Db) -> None:
            await db.execute(
                "INSERT INTO diminuendo.allowed VALUES ($1, $2, $3, $4) "
                "ON CONFLICT (placement, version, past) DO UPDATE SET effective_at = excluded.effective_at",
                *(placement, await last_version(db, placement), past, effective_at),
            )
            await db.execute("SELECT diminuendo.tick()")

        self._server.writing(allow, self._led(epoch, placement))

    def keep_key(self, epoch: int, placement: int, number: int, sealed: bytes) -> None:
        """Keep the secret half of a key, sealed; in place of what is there under that number."""

        async def keep(db: Db) -> None:
            await db.execute(
                "INSERT INTO diminuendo.trainer_keys VALUES ($1, $2, $3) "
                "ON CONFLICT (placement, number) DO UPDATE SET sealed = excluded.sealed",
                *(placement, number, sealed),
            )

        self._server.writing(keep, self._led(epoch, placement))

    def kept_keys(self, placement: int) -> dict[int, bytes]:
        """By number, the sealed halves of a placement's keys that were not dropped."""
        query = "SELECT number, sealed FROM diminuendo.trainer_keys WHERE placement = $1"
        return dict(self._server.rows(query, placement))

    def drop_keys(self, epoch: int, placement: int, numbers: Iterable[int]) -> None:
        """Throw these halves away. What PostgreSQL deletes is overwritten when it is vacuumed, which it does itself."""
        gone = list(numbers)

        async def drop(db: Db) -> None:
            which = "placement = $1 AND number = ANY ($2::bigint[])"
            await db.execute(f"DELETE FROM diminuendo.trainer_keys WHERE {which}", placement, gone)

        self._server.writing(drop, self._led(epoch, placement))

    def snapshot(self, placement: int) -> bytes | None:
        """The last one that was published, sealed; None where there is none."""
        result = self._server.rows(
            "SELECT sealed FROM diminuendo.snapshot_parts WHERE placement = $1 ORDER BY version, part",
            placement,
        )
        return b"".join(part for (part,) in result) if result else None

    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The lines of a ledger that are shown by now, but for the first `after`."""
        query = "SELECT line FROM diminuendo.ledger_shown($1, $2) ORDER BY seq"
        return [line for (line,) in self._server.rows(query, population, after)]

    def books(self, population: str, epoch: int | None) -> Books:
        """The ledger of a population and what was released on it; without an epoch what is shown by now."""
        from diminuendo.service.store.books import StoreBooks
        from diminuendo.service.store.postgres.books import PostgresRows

        self._check_population(population)
        led = None if epoch is None else Led(population, epoch)
        return StoreBooks(PostgresRows(self._server, population, shown=led is None), led)

    def _check_population(self, name: str) -> None:
        if not self._server.rows("SELECT 1 FROM diminuendo.populations WHERE name = $1", name):
            raise InvalidInput(_no_population(name))

    def _led(self, epoch: int, placement: int) -> Led:
        """What the trainer of that epoch writes of a placement."""
        result = self._server.rows(
            "SELECT population FROM diminuendo.placements WHERE number = $1", placement
        )
        if not result:
            raise InvalidInput(f"There is no placement of number {placement}.")
        return Led(result[0][0], epoch)


async def _run(db: Db, script: adopt.Script) -> list[str]:
    result: list[Any] | None = None
    try:
        while True:
            statement, values = next(script) if result is None else script.send(result)
            result = [tuple(row) for row in await db.fetch(statement.replace("{s}", "diminuendo."), *values)]
    except StopIteration as over:
        return list(over.value)


def _columns(rows: list[tuple[Any, ...]], many: int) -> list[list[Any]]:
    """Rows as columns, of which there are that many, also where there is no row."""
    return [[row[column] for row in rows] for column in range(many)]


def _no_population(name: str) -> str:
    return f"There is no population {name!r}; make it first."
