"""The store, as far as both databases do alike: the same SQL, each transaction a script of statements.

A script is a generator. It yields statements and their values, is sent the rows, and returns its result. Statements are
written as for PostgreSQL, with the schema `diminuendo.` and values `$1`; SQLite translates both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

from diminuendo.errors import InvalidInput, StoreUnavailable, refuse_copies
from diminuendo.service.records import Report, read
from diminuendo.service.store import (
    NO_HEARTBEAT,
    AnswerRow,
    Change,
    EventRow,
    Heartbeat,
    IdBlock,
    IdBlockRow,
    Leader,
    MenuRow,
    PlacementRow,
    Publication,
    QuotaResult,
    UserRound,
    adopt,
)
from diminuendo.service.store.fencing import FencedWrite, next_fencing_token

if TYPE_CHECKING:
    from diminuendo.privacy.books import Books

T = TypeVar("T")
Script = Generator[tuple[str, tuple[Any, ...]], list[Any], T]

AT_ONCE = 10_000
"""Answers that are read at a time; others may write in between."""
LONGEST_ID_BLOCK = 60
"""Seconds: the longest life of an ID block. Rounds after it stay open until it has expired."""
PART = 2**19
"""Bytes of a snapshot that are written at a time."""
CLOCK = "SELECT diminuendo.advance_clock()", ()
"""The time of a transaction. On PostgreSQL all public writes wait for it, so it comes last where work takes long."""


def check_id_block(count: int, seconds: float) -> None:
    """Refuse what is no ID block."""
    if count < 0 or not 0 < seconds <= LONGEST_ID_BLOCK:
        raise InvalidInput(
            f"An ID block is of some rounds, for some time, at most {LONGEST_ID_BLOCK} seconds; got {count} and "
            f"{seconds}."
        )


class Store(ABC):
    """What front ends, trainers and operators call. Methods that need nothing of one database alone are here."""

    __getstate__ = refuse_copies
    place = ""
    """Where the store is, for error messages."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # What each database does in its own way.

    @abstractmethod
    def now(self) -> float:
        """What the store's clock says, in seconds."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database, when all writers of this process have ended."""

    @abstractmethod
    def rows(self, query: str, *values: Any) -> list[Any]:
        """All rows that a query selects."""

    @abstractmethod
    def transact(self, script: Callable[[], Script[T]], fence: FencedWrite | None = None) -> T:
        """Run a script in one transaction; refused if it is fenced and another trainer leads."""

    @abstractmethod
    def check_fence(self, fence: FencedWrite) -> None:
        """Refuse if another trainer leads, or the ledger lacks an entry that this one knows."""

    def write_barrier(self) -> None:  # noqa: B027  # SQLite has one writer: nothing to wait for
        """Wait until all transactions that are open now have ended."""

    @abstractmethod
    def _visible_id_blocks(self, placement: int, first: int) -> list[Any]:
        raise NotImplementedError

    def _gently(self) -> AbstractContextManager[None]:
        """Around one write of many: afterwards there is room for others."""
        return nullcontext()

    # Public facts, by operators.

    @abstractmethod
    def add_population(self, name: str, spec: bytes) -> None:
        """A new population; refused if there is one of that name."""

    @abstractmethod
    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number; refused if there is one of that name."""

    @abstractmethod
    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and reserve no further round by any menu so far; its number."""

    def populations(self) -> dict[str, bytes]:
        """By name, the spec of each."""
        return dict(self.rows("SELECT name, spec FROM diminuendo.populations ORDER BY number"))

    def placements(self, after: int = 0) -> list[PlacementRow]:
        """All of them, in the order in which they were made; or those after the one of that number."""
        columns = "number, name, population, spec, made_at"
        result = self.rows(
            f"SELECT {columns} FROM diminuendo.placements WHERE number > $1 ORDER BY number", after
        )
        return [PlacementRow(*row) for row in result]

    def events(self, placement: int, after: int = 0) -> list[EventRow]:
        """What operators did after the event of that number, in order."""
        columns, which = "seq, placement, at, kind, body, by", "placement = $1 AND seq > $2"
        query = f"SELECT {columns} FROM diminuendo.events WHERE {which} ORDER BY seq"
        return [EventRow(*row) for row in self.rows(query, placement, after)]

    def history(self) -> list[str]:
        """The populations that are not closed and have paid for, published or reserved anything."""
        return self.transact(adopt.history)

    def adopt(self) -> list[str]:
        """Close these populations for good, with their placements, and begin new ones of the same names, specs and
        placements (adopt.py); the names that they are closed under. No other process may use the store meanwhile."""
        return self.transact(adopt.adoption)

    # Front ends.

    def menus(self, placement: int, after: int = 0) -> list[MenuRow]:
        """Menus later than that version, in order; also those that take effect later."""
        columns, which = "version, body, effective_at", "placement = $1 AND version > $2"
        query = f"SELECT {columns} FROM diminuendo.menus WHERE {which} ORDER BY version"
        return [MenuRow(*row) for row in self.rows(query, placement, after)]

    def published(self, since: float) -> tuple[float, dict[int, int]]:
        """By number the placements of which menus were published at that time or later; of each the last version. The
        cost does not grow with the number of placements where nothing happened.

        Before it, since when to ask the next time: whatever this call did not return is published at that time or
        later. There is no barrier: a trainer that publishes holds the clock from when it has its time until it
        has committed, so menus become readable in the order of their times.
        """
        result = self.rows(
            "SELECT placement, max(version), max(at) FROM diminuendo.menus WHERE at >= $1 GROUP BY placement",
            since,
        )
        return max((at for *_, at in result), default=since), {
            number: version for number, version, _ in result
        }

    @abstractmethod
    def reserve_ids(
        self, placement: int, count: int, seconds: float, report: Report | None
    ) -> IdBlock | None:
        """The next rounds, at most `count`, for `seconds`; None if the menu in effect has no round left.

        The menu is the latest in effect; rounds before its first one that were not reserved are never shown.
        `report`: what became of the previous ID block, stored in the same transaction. With a `count` of 0 the report
        comes alone.
        """

    @abstractmethod
    def put(self, answers: Sequence[AnswerRow], user_rounds: Sequence[UserRound] = ()) -> list[QuotaResult]:
        """Count rounds of users and store feedback, in one transaction; what became of the rounds, in order.

        Of each round the first response is stored. A second one changes nothing, and takes as long. Each has the time
        that it comes with, unless that is in the future, or more than `STORED_WITHIN` ago. Rows of no placement, and
        feedback before the GC low-water mark, are left out and take nothing else along.
        """

    @abstractmethod
    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Delete the feedback to these rounds, and accept none any more: a tombstone stays."""

    @abstractmethod
    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of a pseudonym: those within the quota, and the last one. The caller does not
        learn which; they stay counted."""

    # The trainer.

    @abstractmethod
    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements that were made at that time or later, or of which rounds were reserved since then,
        or that operators changed; of each the latest. This costs nothing where nothing happened.

        Before it, since when to ask the next time: whatever this call did not return is written at that time or later.
        """

    @abstractmethod
    def heartbeat(self, name: str, note: str = "") -> float:
        """Write that a process is well, with a public note; the time of it. Nothing is written earlier after that,
        except feedback: by `STORED_WITHIN` at most."""

    @abstractmethod
    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The ledger entries that are visible by now, but for the first `after`."""

    @abstractmethod
    def visible_releases(self, population: str, name: str | None) -> list[tuple[str, bytes]]:
        """Names and contents of the releases that are visible by now; `name`: that one alone."""

    def acquire_leadership(self, population: str, trainer: str, after: int | None = None) -> int:
        """Become the only trainer of a population; the fencing token, larger than the last by a random step. Fenced
        writes that are open now are waited for.

        The previous leader writes nothing of the population any more: all fenced calls compare their fencing token.
        `after`: refused (`Superseded`) unless the last fencing token is that one, 0 if the population never
        had a leader. An empty name releases leadership.
        """
        self._check_population(population)

        def acquire() -> Script[int]:
            ((last,),) = yield (
                "INSERT INTO diminuendo.trainers VALUES ($1, 0, '') ON CONFLICT (population) "
                "DO UPDATE SET fencing_token = trainers.fencing_token RETURNING fencing_token",
                (population,),
            )
            fencing_token = next_fencing_token(population, int(last), after)
            yield (
                "UPDATE diminuendo.trainers SET fencing_token = $2, name = $3 WHERE population = $1",
                (population, fencing_token, trainer),
            )
            yield CLOCK
            return fencing_token

        return self.transact(acquire)

    def leaders(self) -> dict[str, Leader]:
        """By population its leader; those that never had one are left out."""
        result = self.rows("SELECT population, fencing_token, name FROM diminuendo.trainers")
        return {population: Leader(fencing_token, name) for population, fencing_token, name in result}

    def _changes(self, since: float) -> dict[int, Change]:
        result = self.rows(
            "SELECT placement, max(reserved), max(event) FROM ("
            "SELECT placement, past AS reserved, 0 AS event FROM diminuendo.id_blocks WHERE at >= $1 "
            "UNION ALL SELECT placement, 0, seq FROM diminuendo.events WHERE at >= $1 "
            "UNION ALL SELECT number, 0, 0 FROM diminuendo.placements WHERE made_at >= $1) AS changes "
            "GROUP BY placement",
            since,
        )
        return {placement: Change(reserved, event) for placement, reserved, event in result}

    def heartbeat_after(self, name: str, note: str, last: Heartbeat) -> float | None:
        """Write a heartbeat if the last one of that name was that one, `NO_HEARTBEAT` if there was none; else write
        nothing, and return None. Both in one transaction."""

        def heartbeat() -> Script[float | None]:
            ((at,),) = yield CLOCK
            result = yield "SELECT at, note FROM diminuendo.heartbeats WHERE name = $1", (name,)
            if (tuple(result[0]) if result else NO_HEARTBEAT) != last:
                return None
            yield (
                "INSERT INTO diminuendo.heartbeats VALUES ($1, $2, $3) "
                "ON CONFLICT (name) DO UPDATE SET at = excluded.at, note = excluded.note",
                (name, at, note),
            )
            return float(at)

        result = self.transact(heartbeat)
        self.write_barrier()
        return result

    def heartbeats(self) -> dict[str, Heartbeat]:
        """By name the last heartbeat."""
        result = self.rows("SELECT name, at, note FROM diminuendo.heartbeats")
        return {name: (at, note) for name, at, note in result}

    def drop_heartbeats(self, names: Iterable[str]) -> None:
        """Delete the heartbeats of these names."""
        dropped = list(names)

        def drop() -> Script[None]:
            for name in dropped:
                yield "DELETE FROM diminuendo.heartbeats WHERE name = $1", (name,)

        self.transact(drop)

    def id_blocks(self, placement: int, first: int) -> list[IdBlockRow]:
        """All ID blocks from the one that begins with round `first` on, in order; none before the GC low-water mark of
        the menu in effect."""
        return [
            IdBlockRow(first, end, version, at, expires_at, read(Report, said), reported_at)
            for first, end, version, at, expires_at, said, reported_at in self._visible_id_blocks(
                placement, first
            )
        ]

    def answers(self, placement: int, first: int, end: int) -> Iterator[AnswerRow]:
        """The feedback to rounds from `first` to before `end`, in the order of rounds; no tombstones."""
        which = "placement = $1 AND round >= $2 AND round < $3 AND encrypted IS NOT NULL"
        columns = "placement, round, encrypted, at"
        query = f"SELECT {columns} FROM diminuendo.answers WHERE {which} ORDER BY round LIMIT {AT_ONCE}"
        while result := self.rows(query, placement, first, end):
            yield from (AnswerRow(*row) for row in result)
            first = result[-1][1] + 1

    def erased(self, placement: int, first: int, end: int) -> list[tuple[int, float]]:
        """Rounds with a tombstone, and since when."""
        which = "placement = $1 AND round >= $2 AND round < $3 AND encrypted IS NULL"
        query = f"SELECT round, at FROM diminuendo.answers WHERE {which} ORDER BY round"
        return self.rows(query, placement, first, end)

    def stop_id_blocks(self, fencing_token: int, placement: int) -> int:
        """Reserve no further round until a menu that is published later is in effect; the next one to be.

        An operator's event does so too; the trainer repeats it, since menus may have been published meanwhile.
        """

        def stop() -> Script[int]:
            ((number,),) = yield (
                "UPDATE diminuendo.counters SET stopped = (SELECT coalesce(max(version), 0) FROM diminuendo.menus "
                "WHERE placement = $1) WHERE placement = $1 RETURNING next",
                (placement,),
            )
            yield CLOCK
            return int(number)

        return self.transact(stop, self._fence(fencing_token, placement))

    def publish(self, fencing_token: int, publication: Publication) -> float:
        """Menu, limits, snapshot and deletions, at once; when it takes effect. Refused (`Superseded`) if
        another trainer leads, and if the version is not one more than the last.

        A menu that is written after its time takes effect at the next publish interval, and never when it is ready.
        Tombstones stay.

        All of the snapshot but its last part is written beforehand, part by part, so that no other writer
        waits for it. Only the snapshot of the last menu is ever read.
        """
        new = publication
        fence, last = self._fence(fencing_token, new.placement), self._version(new.placement)
        self._drop_parts(fence, new.placement, last)  # of a trainer that was killed
        if new.version == last + 1:
            for number, part in enumerate(_parts(new)[:-1]):
                with self._gently():
                    self.transact(_run((_PUT_PART, (new.placement, new.version, number, part))), fence)
        effective = self.transact(lambda: _publication(fence, new), fence)
        with suppress(StoreUnavailable):  # it is published; the next publication drops them
            self._drop_parts(fence, new.placement, new.version)
        return effective

    def _drop_parts(self, fence: FencedWrite, placement: int, but: int) -> None:
        """Drop snapshots of all versions but one, part by part."""
        which = "placement = $1 AND version <> $2"
        for row in self.rows(
            f"SELECT placement, version, part FROM diminuendo.snapshot_parts WHERE {which}", placement, but
        ):
            with self._gently():
                self.transact(_run((_DROP_PART, tuple(row))), fence)

    def _version(self, placement: int) -> int:
        """The version of the last menu that was published."""
        ((version,),) = self.rows(_LAST_VERSION, placement)
        return version or 0

    def allow(self, fencing_token: int, placement: int, past: int, effective_at: float) -> None:
        """From that time on rounds before `past` may be reserved by the last menu, and by none published before it.

        Between two publications rounds are closed, and as many others may be reserved: without this a batch of more
        rounds than may be in flight would never end.
        """
        statement = (
            "INSERT INTO diminuendo.allowed SELECT $1, coalesce(max(version), 0), $2, $3 FROM diminuendo.menus "
            "WHERE placement = $1 ON CONFLICT (placement, version, past) DO UPDATE SET effective_at = "
            "excluded.effective_at"
        )
        script = _run((statement, (placement, past, effective_at)), CLOCK)
        self.transact(script, self._fence(fencing_token, placement))

    def add_key(self, fencing_token: int, placement: int, number: int, encrypted: bytes) -> None:
        """Store a private key of the trainer, encrypted; in place of what is there under that number."""
        statement = (
            "INSERT INTO diminuendo.trainer_keys VALUES ($1, $2, $3) "
            "ON CONFLICT (placement, number) DO UPDATE SET encrypted = excluded.encrypted"
        )
        script = _run((statement, (placement, number, encrypted)))
        self.transact(script, self._fence(fencing_token, placement))

    def keys_of(self, placement: int) -> dict[int, bytes]:
        """By number, the encrypted private keys of a placement that were not dropped."""
        return dict(
            self.rows("SELECT number, encrypted FROM diminuendo.trainer_keys WHERE placement = $1", placement)
        )

    def drop_keys(self, fencing_token: int, placement: int, numbers: Iterable[int]) -> None:
        """Delete these keys. SQLite overwrites what it deletes, PostgreSQL when it vacuums."""
        statement = "DELETE FROM diminuendo.trainer_keys WHERE placement = $1 AND number = $2"
        script = _run(*((statement, (placement, number)) for number in numbers))
        self.transact(script, self._fence(fencing_token, placement))

    def snapshot(self, placement: int) -> bytes | None:
        """The last snapshot that was published, encrypted; None where there is none."""
        result = self.rows(
            "SELECT encrypted FROM diminuendo.snapshot_parts WHERE placement = $1 AND version = "
            "(SELECT max(version) FROM diminuendo.menus WHERE placement = $1) ORDER BY part",
            placement,
        )
        return b"".join(part for (part,) in result) if result else None

    def books(self, population: str, fencing_token: int | None) -> Books:
        """The ledger of a population and its releases; without a fencing token what is visible by now."""
        from diminuendo.service.store.books import StoreBooks

        self._check_population(population)
        fence = None if fencing_token is None else FencedWrite(population, fencing_token)
        return StoreBooks(self, population, fence)

    def _check_population(self, name: str) -> None:
        if not self.rows("SELECT 1 FROM diminuendo.populations WHERE name = $1", name):
            raise InvalidInput(f"There is no population {name!r}; make it first.")

    def _fence(self, fencing_token: int, placement: int) -> FencedWrite:
        result = self.rows("SELECT population FROM diminuendo.placements WHERE number = $1", placement)
        if not result:
            raise InvalidInput(f"There is no placement of number {placement}.")
        return FencedWrite(result[0][0], fencing_token)


_LAST_VERSION = "SELECT max(version) FROM diminuendo.menus WHERE placement = $1"
_PUT_PART = "INSERT INTO diminuendo.snapshot_parts VALUES ($1, $2, $3, $4)"
_DROP_PART = "DELETE FROM diminuendo.snapshot_parts WHERE placement = $1 AND version = $2 AND part = $3"
_IN_EFFECT = (
    "coalesce((SELECT max({}) FROM diminuendo.menus WHERE placement = $1 AND effective_at <= $2), -1)"
)
"""Of the menus of a placement that are in effect by some time, the largest value of a column."""


def _run(*statements: tuple[str, tuple[Any, ...]]) -> Callable[[], Script[None]]:
    """A script of statements whose rows are not needed."""

    def script() -> Script[None]:
        for each in statements:
            _ = yield each

    return script


def _parts(new: Publication) -> list[bytes]:
    return [new.snapshot[first : first + PART] for first in range(0, max(1, len(new.snapshot)), PART)]


def _publication(fence: FencedWrite, new: Publication) -> Script[float]:
    number, mark, parts = new.placement, new.gc_low_water_mark, _parts(new)
    ((last,),) = yield _LAST_VERSION, (number,)
    if new.version != (last or 0) + 1:
        raise InvalidInput(
            f"Menu {new.version} does not follow {last or 0}, the last one; publish {(last or 0) + 1}."
        )
    yield _PUT_PART, (number, new.version, len(parts) - 1, parts[-1])
    older = "placement = $1 AND version < $2"
    yield (  # a small one is dropped at once
        f"DELETE FROM diminuendo.snapshot_parts WHERE {older} AND (SELECT sum(length(encrypted)) "
        f"FROM diminuendo.snapshot_parts WHERE {older}) <= CAST($3 AS bigint)",
        (number, new.version, PART),
    )
    yield FORGET, (number, mark)
    yield (  # after all that takes long: front ends that reserve rounds wait for this row
        "UPDATE diminuendo.counters SET gc_low_water_mark = $2 WHERE placement = $1 AND gc_low_water_mark < $2",
        (number, mark),
    )
    ((at,),) = yield CLOCK
    effective = new.effective_at
    if new.publish_interval and effective < at:
        effective = math.ceil(at / new.publish_interval) * new.publish_interval
    past = new.most if new.end is None else min(new.end, new.most)
    yield (
        "INSERT INTO diminuendo.menus (placement, version, first, past, effective_at, body, gc_low_water_mark, at, "
        "lines) SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max(seq) + 1, 0) FROM diminuendo.ledger "
        "WHERE population = $9",
        (number, new.version, new.first, past, effective, new.menu, mark, at, fence.population),
    )
    # By the menus in effect: when something was published must not show.
    yield (
        f"DELETE FROM diminuendo.id_blocks WHERE placement = $1 AND past <= {_IN_EFFECT.format('gc_low_water_mark')}",
        (number, at),
    )
    yield (
        f"DELETE FROM diminuendo.allowed WHERE placement = $1 AND version < {_IN_EFFECT.format('version')}",
        (number, at),
    )
    return effective


FORGET = "DELETE FROM diminuendo.answers WHERE placement = $1 AND round < $2 AND encrypted IS NOT NULL"
"""Feedback before the GC low-water mark is in a snapshot, or published."""
