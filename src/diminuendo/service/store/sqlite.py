"""The embedded store: one SQLite file, and nothing else to run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.service.records import Report
from diminuendo.service.store import (
    DAY,
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
from diminuendo.service.store.given import AT_ONCE, arrived, check_lease, is_answer, is_number, report_of
from diminuendo.service.store.led import Led, next_epoch
from diminuendo.service.store.sqlite_file import SqliteFile
from diminuendo.service.store.sqlite_snapshots import SqliteSnapshots
from diminuendo.service.store.sqlite_visits import SqliteVisits

if TYPE_CHECKING:
    from diminuendo.privacy.books import Books

IN_EFFECT = "coalesce((SELECT max({}) FROM menus WHERE placement = ? AND effective_at <= ?), -1)"
"""Of the menus of a placement that are in effect by some time, the largest of a column."""


class SqliteStore:
    """A store in the file of that path. `wall` is the clock that it starts from."""

    __getstate__ = refuse_copies

    def __init__(self, path: str | Path, wall: Callable[[], float] = time.time) -> None:
        self._file = SqliteFile(path, wall)
        self._snapshots, self._visits = SqliteSnapshots(self._file), SqliteVisits(self._file)

    def __repr__(self) -> str:
        return f"<SqliteStore {self._file.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file, when whoever writes has done so."""
        self._file.close()

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        return self._file.now()

    # Public facts, by operators.

    def add_population(self, name: str, spec: bytes) -> None:
        """A new population."""
        with self._file.writing():
            if not self._file.execute(
                "INSERT OR IGNORE INTO populations (name, facts) VALUES (?, ?)", name, spec
            ):
                raise InvalidInput(f"There is a population {name!r} already; give this one another name.")

    def populations(self) -> dict[str, bytes]:
        """By name, the facts of each."""
        return dict(self._file.rows("SELECT name, facts FROM populations ORDER BY number"))

    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number."""
        with self._file.writing() as at:
            if self._file.rows("SELECT 1 FROM placements WHERE name = ?", name):
                raise InvalidInput(f"There is a placement {name!r} already; give this one another name.")
            self._check_population(population)
            ((number,),) = self._file.rows(
                "INSERT INTO placements (name, population, facts, made_at) VALUES (?, ?, ?, ?) RETURNING number",
                *(name, population, spec, at),
            )
            self._file.execute("INSERT INTO counters (placement) VALUES (?)", number)
            return int(number)

    def placements(self, after: int = 0) -> list[PlacementRow]:
        """All of them, in the order in which they were made; or those after the one of that number."""
        columns = "number, name, population, facts, made_at"
        result = self._file.rows(f"SELECT {columns} FROM placements WHERE number > ? ORDER BY number", after)
        return [PlacementRow(*row) for row in result]

    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and hand out no further round by any menu so far; its number."""
        with self._file.writing() as at:
            self._counter(placement)
            self._stop(placement)
            ((seq,),) = self._file.rows(
                "INSERT INTO events (placement, at, kind, body, by) VALUES (?, ?, ?, ?, ?) RETURNING seq",
                *(placement, at, kind, body, by),
            )
            return int(seq)

    def events(self, placement: int, after: int = 0) -> list[EventRow]:
        """What operators did after the event of that number, in order."""
        columns, which = "seq, placement, at, kind, body, by", "placement = ? AND seq > ?"
        result = self._file.rows(f"SELECT {columns} FROM events WHERE {which} ORDER BY seq", placement, after)
        return [EventRow(*row) for row in result]

    def remember_request(self, key: str, digest: bytes, reply: bytes) -> tuple[bytes, bytes]:
        """An operator's request by its Idempotency-Key: digest and reply of the first of this day."""
        with self._file.writing() as at:
            self._file.execute("DELETE FROM requests WHERE at < ?", at - DAY)
            self._file.execute("INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?)", key, digest, reply, at)
            ((first, said),) = self._file.rows("SELECT digest, reply FROM requests WHERE key = ?", key)
            return first, said

    def end_request(self, key: str, reply: bytes) -> None:
        """What came of an operator's request, in place of the reply that is remembered."""
        with self._file.writing():
            self._file.execute("UPDATE requests SET reply = ? WHERE key = ?", reply, key)

    def history(self) -> list[str]:
        """The populations, not closed, of which something was paid for, published or handed out."""
        return self._file.run(adopt.history())

    def adopt(self) -> list[str]:
        """Close these, and begin new ones in their place."""
        with self._file.writing() as at:
            return self._file.run(adopt.adoption(at))

    # Front ends.

    def menus(self, placement: int, after: int = 0) -> list[MenuRow]:
        """Menus later than that version, in order; also those that take effect later."""
        columns, which = "version, body, effective_at", "placement = ? AND version > ?"
        result = self._file.rows(
            f"SELECT {columns} FROM menus WHERE {which} ORDER BY version", placement, after
        )
        return [MenuRow(*row) for row in result]

    def published(self, since: float) -> tuple[float, dict[int, int]]:
        """By number the placements of which menus were published at that time or later; of each the last version."""
        result = self._file.rows(
            "SELECT placement, max(version), max(at) FROM menus WHERE at >= ? GROUP BY placement", since
        )
        return max((at for *_, at in result), default=since), {
            number: version for number, version, _ in result
        }

    def lease(self, placement: int, count: int, seconds: float, report: Report | None) -> Lease | None:
        """The next rounds, at most `count`, for `seconds`, by the latest menu in effect."""
        check_lease(count, seconds)
        if report is None and (count == 0 or self._left(placement, self.now()) is None):
            return None  # nothing to write
        with self._file.writing() as at:
            if report is not None:
                self._file.execute(
                    "UPDATE leases SET report = ?, reported_at = ? "
                    "WHERE placement = ? AND first = ? AND report IS NULL",
                    *(msgspec.json.encode(report), at, placement, report.first),
                )
            if count == 0 or (left := self._left(placement, at)) is None:
                return None
            version, first, past = left
            result = Lease(first, min(first + count, past), version, at, at + seconds)
            self._file.execute("UPDATE counters SET next = ? WHERE placement = ?", result.end, placement)
            self._file.execute(
                "INSERT INTO leases (placement, first, past, version, at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                *(placement, result.first, result.end, result.version, result.at, result.expires_at),
            )
            return result

    def _left(self, placement: int, at: float) -> tuple[int, int, int] | None:
        """The version of the menu in effect, its next round, and the one before which it ends; None: no round left."""
        result = self._file.rows(
            "SELECT version, max(first, next), max(past, coalesce((SELECT max(allowed.past) FROM allowed "
            "WHERE placement = ? AND version = menus.version AND effective_at <= ?), 0)), stopped "
            "FROM menus JOIN counters USING (placement) "
            "WHERE placement = ? AND effective_at <= ? ORDER BY version DESC LIMIT 1",
            *(placement, at, placement, at),
        )
        if not result:
            self._counter(placement)
            return None
        ((version, first, past, stopped),) = result
        return (version, first, past) if version > stopped and first < past else None

    def _counter(self, placement: int, column: str = "next") -> int:
        result = self._file.rows(f"SELECT {column} FROM counters WHERE placement = ?", placement)
        if not result:
            raise InvalidInput(f"There is no placement of number {placement}.")
        return int(result[0][0])

    def put(self, answers: Sequence[AnswerRow], visits: Sequence[VisitRow] = ()) -> list[Counted]:
        """Count visits and keep answers; a second answer to a round takes as long, and changes nothing."""
        told = [row for row in answers if is_answer(row)]
        with self._file.writing(public=False) as at:
            wanted = {row.placement for row in told}
            taken = {number: self._taken_from(number) for number in wanted}
            for row in told:
                if row.round < taken[row.placement] or not self._file.execute(
                    "INSERT OR IGNORE INTO answers (placement, round, at, sealed) VALUES (?, ?, ?, ?)",
                    *(row.placement, row.round, arrived(row, at), row.sealed),
                ):
                    self._file.pad(len(row.sealed))
            if not told and not visits:
                self._file.pad(1)
            return [self._visits.count(visit) for visit in visits]

    def _taken_from(self, placement: int) -> float:
        """The first round to which answers are taken."""
        result = self._file.rows("SELECT forgotten FROM counters WHERE placement = ?", placement)
        return float(result[0][0]) if result else float("inf")

    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Answers to these rounds are gone, and none is taken any more: a tombstone stays."""
        asked = [number for number in rounds if is_number(number)]
        with self._file.writing(public=False) as at:
            self._erase(placement, asked, at)

    def _erase(self, placement: int, rounds: Iterable[int], at: float) -> None:
        self._counter(placement)
        changed = [
            self._file.execute(
                "INSERT INTO answers (placement, round, at, sealed) VALUES (?, ?, ?, NULL) ON CONFLICT DO UPDATE "
                "SET sealed = NULL, at = excluded.at WHERE sealed IS NOT NULL",
                *(placement, number, at),
            )
            for number in rounds
        ]
        if not any(changed):
            self._file.pad(1)

    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of somebody who has a name."""
        with self._file.writing(public=False) as at:
            self._erase(placement, self._visits.rounds_of(placement, user_id), at)

    # The trainer.

    def lead(self, population: str, trainer: str, after: int | None = None) -> int:
        """Be the one trainer of a population from now on; its epoch."""
        self._file.tidies()
        self._check_population(population)
        with self._file.writing():
            result = self._file.rows("SELECT epoch FROM trainers WHERE population = ?", population)
            epoch = next_epoch(population, int(result[0][0]) if result else 0, after)
            self._file.execute("INSERT OR REPLACE INTO trainers VALUES (?, ?, ?)", population, epoch, trainer)
            return epoch

    def leaders(self) -> dict[str, Leader]:
        """By population who leads it."""
        result = self._file.rows("SELECT population, epoch, name FROM trainers")
        return {population: Leader(epoch, name) for population, epoch, name in result}

    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements to which something happened at that time or later; of each the latest."""
        ((then,),) = self._file.rows("SELECT at FROM clock")  # first: nobody writes an earlier time later
        result = self._file.rows(
            "SELECT placement, max(leased), max(event) FROM ("
            "SELECT placement, past AS leased, 0 AS event FROM leases WHERE at >= ? "
            "UNION ALL SELECT placement, 0, seq FROM events WHERE at >= ? "
            "UNION ALL SELECT number, 0, 0 FROM placements WHERE made_at >= ?) GROUP BY placement",
            *(since, since, since),
        )
        return then, {placement: Change(leased, event) for placement, leased, event in result}

    def beat(self, name: str, note: str = "") -> float:
        """Say that somebody is well, with a public note; when that was."""
        with self._file.writing() as at:
            self._beat(name, at, note)
            return at

    def beat_after(self, name: str, note: str, last: Beat) -> float | None:
        """The same, where the last beat of that name was that one; else nothing is written."""
        with self._file.writing() as at:
            if self.beats().get(name, NO_BEAT) != last:
                return None
            self._beat(name, at, note)
            return at

    def _beat(self, name: str, at: float, note: str) -> None:
        self._file.execute("INSERT OR REPLACE INTO beats (name, at, note) VALUES (?, ?, ?)", name, at, note)

    def beats(self) -> dict[str, Beat]:
        """Who was well when, last."""
        return {name: (at, note) for name, at, note in self._file.rows("SELECT name, at, note FROM beats")}

    def leases(self, placement: int, first: int) -> list[LeaseRow]:
        """All leases from the one that begins with round `first` on, in order."""
        result = self._file.rows(
            "SELECT first, past, version, at, expires_at, report, reported_at FROM leases "
            f"WHERE placement = ? AND first >= ? AND past > {IN_EFFECT.format('forgets')} ORDER BY first",
            *(placement, first, placement, self.now()),
        )
        return [
            LeaseRow(first, end, version, at, expires_at, report_of(said), reported_at)
            for first, end, version, at, expires_at, said, reported_at in result
        ]

    def answers(self, placement: int, first: int, end: int) -> Iterator[AnswerRow]:
        """What was answered to rounds from `first` to before `end`, in the order of rounds; no tombstones."""
        which = "placement = ? AND round >= ? AND round < ? AND sealed IS NOT NULL"
        query = (
            f"SELECT placement, round, sealed, at FROM answers WHERE {which} ORDER BY round LIMIT {AT_ONCE}"
        )
        while result := self._file.rows(query, placement, first, end):
            yield from (AnswerRow(*row) for row in result)
            first = result[-1][1] + 1

    def erased(self, placement: int, first: int, end: int) -> list[tuple[int, float]]:
        """Rounds with a tombstone, and since when."""
        which = "placement = ? AND round >= ? AND round < ? AND sealed IS NULL"
        return self._file.rows(
            f"SELECT round, at FROM answers WHERE {which} ORDER BY round", placement, first, end
        )

    def stop_leases(self, epoch: int, placement: int) -> int:
        """No further round is handed out until a menu that is published later is in effect; the next one to be."""
        with self._file.writing(self._led(epoch, placement)):
            self._stop(placement)
            return self._counter(placement)

    def _stop(self, placement: int) -> None:
        self._file.execute(
            "UPDATE counters SET stopped = ? WHERE placement = ?", self._version(placement), placement
        )

    def _version(self, placement: int) -> int:
        """The version of the last menu that was published."""
        ((version,),) = self._file.rows("SELECT max(version) FROM menus WHERE placement = ?", placement)
        return version or 0

    def publish(self, epoch: int, publication: Publication) -> float:
        """Menu, limits, snapshot and deletions, at once; when it takes effect."""
        new, number, before = publication, publication.placement, publication.forget_before
        led = self._led(epoch, number)
        last = self._version(number)
        self._snapshots.drop(led, number, last)  # of one who was killed
        if new.version == last + 1:
            self._snapshots.begin(led, new)
        with self._file.writing(led) as at:
            effective = new.effective_at
            if new.tick and effective < at:
                effective = math.ceil(at / new.tick) * new.tick
            forgotten = self._counter(number, "forgotten")
            if new.version != (last := self._version(number)) + 1:
                raise InvalidInput(
                    f"Menu {new.version} does not follow {last}, the last one; publish {last + 1}."
                )
            past = new.most if new.end is None else min(new.end, new.most)
            self._file.execute(
                "INSERT INTO menus (placement, version, first, past, effective_at, body, forgets, at, lines) "
                "SELECT ?, ?, ?, ?, ?, ?, ?, ?, coalesce(max(seq) + 1, 0) FROM ledger "
                "WHERE population = (SELECT population FROM placements WHERE number = ?)",
                *(number, new.version, new.first, past, effective, new.menu, before, at, number),
            )
            self._snapshots.end(new)
            self._file.execute(
                "DELETE FROM answers WHERE placement = ? AND round < ? AND sealed IS NOT NULL", number, before
            )
            self._file.execute(  # of what is in effect: when something was published is nobody's business
                f"DELETE FROM leases WHERE placement = ? AND past <= {IN_EFFECT.format('forgets')}",
                *(number, number, at),
            )
            self._file.execute(
                f"DELETE FROM allowed WHERE placement = ? AND version < {IN_EFFECT.format('version')}",
                *(number, number, at),
            )
            self._file.execute(
                "UPDATE counters SET forgotten = ? WHERE placement = ?", max(before, forgotten), number
            )
        self._snapshots.drop(led, number, new.version)
        return effective

    def allow(self, epoch: int, placement: int, past: int, effective_at: float) -> None:
        """From that time on rounds before `past` may be leased by the last menu."""
        with self._file.writing(self._led(epoch, placement)):
            self._file.execute(
                "INSERT OR REPLACE INTO allowed (placement, version, past, effective_at) VALUES (?, ?, ?, ?)",
                *(placement, self._version(placement), past, effective_at),
            )

    def keep_key(self, epoch: int, placement: int, number: int, sealed: bytes) -> None:
        """Keep the secret half of a key, sealed; in place of what is there under that number."""
        with self._file.writing(self._led(epoch, placement)):
            self._file.execute(
                "INSERT OR REPLACE INTO trainer_keys VALUES (?, ?, ?)", placement, number, sealed
            )

    def kept_keys(self, placement: int) -> dict[int, bytes]:
        """By number, the sealed halves of a placement's keys that were not dropped."""
        return dict(self._file.rows("SELECT number, sealed FROM trainer_keys WHERE placement = ?", placement))

    def drop_keys(self, epoch: int, placement: int, numbers: Iterable[int]) -> None:
        """Throw these halves away; what SQLite deletes is overwritten."""
        with self._file.writing(self._led(epoch, placement)):
            self._file.execute_all(
                "DELETE FROM trainer_keys WHERE placement = ? AND number = ?",
                [(placement, number) for number in numbers],
            )

    def snapshot(self, placement: int) -> bytes | None:
        """The last one that was published, sealed; None where there is none."""
        return self._snapshots.read(placement, self._version(placement))

    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The lines of a ledger that are shown by now, but for the first `after`."""
        which, most = "population = ? AND seq >= ? AND seq < ?", self._file.shown(population)
        result = self._file.rows(
            f"SELECT line FROM ledger WHERE {which} ORDER BY seq", population, after, most
        )
        return [line for (line,) in result]

    def books(self, population: str, epoch: int | None) -> Books:
        """The ledger of a population and what was released on it; without an epoch what is shown by now."""
        from diminuendo.service.store.books import StoreBooks
        from diminuendo.service.store.sqlite_books import SqliteRows

        self._check_population(population)
        led = None if epoch is None else Led(population, epoch)
        return StoreBooks(SqliteRows(self._file, population, shown=led is None), led)

    def _check_population(self, name: str) -> None:
        if not self._file.rows("SELECT 1 FROM populations WHERE name = ?", name):
            raise InvalidInput(f"There is no population {name!r}; make it first.")

    def _led(self, epoch: int, placement: int) -> Led:
        """What the trainer of that epoch writes of a placement."""
        result = self._file.rows("SELECT population FROM placements WHERE number = ?", placement)
        if not result:
            raise InvalidInput(f"There is no placement of number {placement}.")
        return Led(result[0][0], epoch)
