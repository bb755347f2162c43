"""The embedded store: one SQLite file, and nothing else to run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from diminuendo.errors import InvalidInput
from diminuendo.service.records import Report
from diminuendo.service.store import (
    STORED_WITHIN,
    AnswerRow,
    Change,
    IdBlock,
    QuotaResult,
    UserRound,
)
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.sql import Script, Store, T, check_id_block
from diminuendo.service.store.sqlite_file import SqliteFile


class SqliteStore(Store):
    """A store in the file of that path. `wall` is the clock that it starts from."""

    def __init__(self, path: str | Path, wall: Callable[[], float] = time.time) -> None:
        self._file = SqliteFile(path, wall)
        self.place = str(self._file.path)

    def __repr__(self) -> str:
        return f"<SqliteStore {self._file.path}>"

    def close(self) -> None:
        """Close the file, when all writers of this process have ended."""
        self._file.close()

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All rows that a query selects."""
        return self._file.rows(query, *values)

    def transact(self, script: Callable[[], Script[T]], fence: FencedWrite | None = None) -> T:
        """Run a script in one transaction; refused if it is fenced and another trainer leads."""
        with self._file.writing(fence):
            return self._file.run(script())

    def check_fence(self, fence: FencedWrite) -> None:
        """Refuse if another trainer leads, or the ledger lacks an entry that this one knows."""
        self._file.check_fence(fence)

    def _gently(self) -> AbstractContextManager[None]:
        return self._file.gently()

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        return self._file.now()

    # Public spec, by operators.

    def add_population(self, name: str, spec: bytes) -> None:
        """A new population."""
        with self._file.writing():
            if not self._file.execute(
                "INSERT OR IGNORE INTO populations (name, spec) VALUES (?, ?)", name, spec
            ):
                raise InvalidInput(f"There is a population {name!r} already; give this one another name.")

    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number."""
        with self._file.writing() as at:
            if self.rows("SELECT 1 FROM placements WHERE name = ?", name):
                raise InvalidInput(f"There is a placement {name!r} already; give this one another name.")
            self._check_population(population)
            ((number,),) = self.rows(
                "INSERT INTO placements (name, population, spec, made_at) VALUES (?, ?, ?, ?) RETURNING number",
                *(name, population, spec, at),
            )
            self._file.execute("INSERT INTO counters (placement) VALUES (?)", number)
            return int(number)

    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and reserve no further round by any menu so far; its number."""
        with self._file.writing() as at:
            self._check_placement(placement)
            self._file.execute(
                "UPDATE counters SET stopped = ? WHERE placement = ?", self._version(placement), placement
            )
            ((seq,),) = self.rows(
                "INSERT INTO events (placement, at, kind, body, by) VALUES (?, ?, ?, ?, ?) RETURNING seq",
                *(placement, at, kind, body, by),
            )
            return int(seq)

    # Front ends.

    def reserve_ids(
        self, placement: int, count: int, seconds: float, report: Report | None
    ) -> IdBlock | None:
        """The next rounds, at most `count`, for `seconds`, by the latest menu in effect."""
        check_id_block(count, seconds)
        if report is None and (count == 0 or self._left(placement, self.now()) is None):
            return None  # nothing to write
        with self._file.writing() as at:
            if report is not None:
                self._file.execute(
                    "UPDATE id_blocks SET report = ?, reported_at = ? "
                    "WHERE placement = ? AND first = ? AND report IS NULL",
                    *(msgspec.json.encode(report), at, placement, report.first),
                )
            if count == 0 or (left := self._left(placement, at)) is None:
                return None
            version, first, past = left
            result = IdBlock(first, min(first + count, past), version, at, at + seconds)
            self._file.execute("UPDATE counters SET next = ? WHERE placement = ?", result.end, placement)
            self._file.execute(
                "INSERT INTO id_blocks (placement, first, past, version, at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                *(placement, result.first, result.end, result.version, result.at, result.expires_at),
            )
            return result

    def _left(self, placement: int, at: float) -> tuple[int, int, int] | None:
        """The version of the menu in effect, its next round, and the one before which it ends; None: no round left."""
        result = self.rows(
            "SELECT version, max(first, next), max(past, coalesce((SELECT max(allowed.past) FROM allowed "
            "WHERE placement = $1 AND version = menus.version AND effective_at <= $2), 0)), stopped "
            "FROM menus JOIN counters USING (placement) "
            "WHERE placement = $1 AND effective_at <= $2 ORDER BY version DESC LIMIT 1",
            *(placement, at),
        )
        if not result:
            self._check_placement(placement)
            return None
        ((version, first, past, stopped),) = result
        return (version, first, past) if version > stopped and first < past else None

    def _check_placement(self, placement: int) -> None:
        if not self.rows("SELECT 1 FROM counters WHERE placement = ?", placement):
            raise InvalidInput(f"There is no placement of number {placement}.")

    def put(self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()) -> list[QuotaResult]:
        """Count rounds of users and store feedback; a second response to a round takes as long, and changes nothing."""
        with self._file.writing(public=False) as at:
            marks = dict(self.rows("SELECT placement, gc_low_water_mark FROM counters"))
            for row in answers:
                arrived = row.at if at - STORED_WITHIN <= row.at <= at else at
                if row.round < marks.get(row.placement, float("inf")) or not self._file.execute(
                    "INSERT OR IGNORE INTO answers (placement, round, at, encrypted) VALUES (?, ?, ?, ?)",
                    *(row.placement, row.round, arrived, row.encrypted),
                ):
                    self._file.pad(len(row.encrypted))
            if not answers and not user_rounds:
                self._file.pad(1)
            return [self._count(each, each.placement in marks) for each in user_rounds]

    def _count(self, new: UserRound, exists: bool) -> QuotaResult:
        """Count one round of a user, in a transaction; nothing counts for a placement that does not exist."""
        which = "placement = ? AND user_id = ?"
        result = self.rows(
            f"SELECT rounds, last, key FROM user_rounds WHERE {which}", new.placement, new.user_id
        )
        rounds, last, key = (json.loads(result[0][0]), *result[0][1:]) if result else ([], -1, b"")
        before = last if new.key and new.key == key else new.round
        if not exists or before in (*rounds, last):
            self._file.pad(1)
            return QuotaResult(before in rounds, before)
        if counts := len(rounds) < new.max_rounds_per_user:
            rounds.append(new.round)
        self._file.execute(
            "INSERT OR REPLACE INTO user_rounds (placement, user_id, rounds, last, key) VALUES (?, ?, ?, ?, ?)",
            *(new.placement, new.user_id, json.dumps(rounds), new.round, new.key),
        )
        return QuotaResult(counts, new.round)

    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Delete the feedback to these rounds, and accept none any more: a tombstone stays."""
        wanted = list(rounds)
        with self._file.writing(public=False) as at:
            self._erase(placement, wanted, at)

    def _erase(self, placement: int, rounds: Iterable[int], at: float) -> None:
        self._check_placement(placement)
        changed = [
            self._file.execute(
                "INSERT INTO answers (placement, round, at, encrypted) VALUES (?, ?, ?, NULL) ON CONFLICT DO UPDATE "
                "SET encrypted = NULL, at = excluded.at WHERE encrypted IS NOT NULL",
                *(placement, number, at),
            )
            for number in rounds
        ]
        if not any(changed):
            self._file.pad(1)

    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of a pseudonym."""
        with self._file.writing(public=False) as at:
            result = self.rows(
                "SELECT rounds, last FROM user_rounds WHERE placement = ? AND user_id = ?", placement, user_id
            )
            self._erase(placement, sorted({*json.loads(result[0][0]), result[0][1]}) if result else [], at)

    # The trainer.

    def acquire_leadership(self, population: str, trainer: str, after: int | None = None) -> int:
        """Become the leader of a population; the fencing token."""
        self._file.tidies()
        return super().acquire_leadership(population, trainer, after)

    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements to which something happened at that time or later; of each the latest."""
        ((then,),) = self.rows("SELECT at FROM clock")  # first: no earlier time is written later
        return then, self._changes(since)

    def heartbeat(self, name: str, note: str = "") -> float:
        """Write that a process is well, with a public note; the time of it."""
        with self._file.writing() as at:
            self._file.execute("INSERT OR REPLACE INTO heartbeats VALUES (?, ?, ?)", name, at, note)
            return at

    def _visible_id_blocks(self, placement: int, first: int) -> list[Any]:
        return self.rows(
            "SELECT first, past, version, at, expires_at, report, reported_at FROM id_blocks "
            "WHERE placement = $1 AND first >= $2 AND past > coalesce((SELECT max(gc_low_water_mark) FROM menus "
            "WHERE placement = $1 AND effective_at <= $3), -1) ORDER BY first",
            *(placement, first, self.now()),
        )

    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The ledger entries that are visible by now, but for the first `after`."""
        query = "SELECT line FROM ledger WHERE population = ? AND seq >= ? AND seq < ? ORDER BY seq"
        return [
            line for (line,) in self.rows(query, population, after, self._file.visible_entries(population))
        ]

    def visible_releases(self, population: str, name: str | None) -> list[tuple[str, bytes]]:
        """Names and contents of the releases that are visible by now; `name`: that one alone."""
        return self.rows(
            "SELECT name, body FROM releases WHERE population = $1 AND line < $2 AND ($3 IS NULL OR name = $3)",
            *(population, self._file.visible_entries(population), name),
        )
