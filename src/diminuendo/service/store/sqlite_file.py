"""A SQLite file that any number of processes of one machine write to, one at a time, in whole transactions.

A process has one connection. What it has written is synced before the call returns, and where it is public together
with the latest time, so that the clock goes on from there when a wall clock is set back: it never goes backwards, and
never stands still. What SQLite complains of becomes `StoreUnavailable`, with fixed words; so does a file that is not at
its path any more, since another was put there: what is written to it is lost, and nothing of it is acknowledged.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from diminuendo.errors import InvalidInput, StoreUnavailable, refuse_copies
from diminuendo.service.store import DAY, reasons
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.schema import APPLICATION, STEPS, statements

if TYPE_CHECKING:
    from diminuendo.service.store.sql import Script

T = TypeVar("T")
TIMEOUT = 5.0
"""Seconds for which one process waits until another has written."""

SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",  # what is deleted is overwritten
    "journal_size_limit = 67108864",
    "wal_autocheckpoint = 16384",  # pages: trainers do it earlier, so that no feedback waits for it
)
TIDIES = "wal_autocheckpoint = 1000"
SMALL, PAGE = 512, 4096
"""Bytes: what is written in place of something is rounded up to multiples, and of each size there is one row, so that
writing it costs as much whatever was written before."""
AGAIN = 0.0005
"""Seconds after which a process that waits until another has written asks again; SQLite's own pauses grow to 100 ms."""
RESTS = 3.0
"""How many times as long as a large write took there is room for others before the next."""


class Moved(NamedTuple):
    """Where a store was moved to."""

    to: str
    identity: str
    """Of the store there."""


class SqliteFile:
    """The file of that path, with tables of ours; made if there is none. `wall` is the clock that it starts from.

    Only a move (`moving`) opens a store that was moved, and processes that have it open write nothing.
    """

    __getstate__ = refuse_copies

    def __init__(
        self, path: str | Path, wall: Callable[[], float] = time.time, *, moving: bool = False
    ) -> None:
        self.path, self._whole = Path(path), Path(path).absolute()
        self._lock, self._owner = threading.RLock(), os.getpid()
        self._wall, self._latest, self._ahead, self._at = wall, 0.0, 0.0, 0.0
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._opened = _place(self._whole)
        except OSError as error:
            raise InvalidInput(f"Cannot open {path}: {error.strerror}.") from error
        self._db = sqlite3.connect(
            self.path,
            timeout=TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        for name in ("instant", "advance_clock"):  # the time of a transaction, for statements
            self._db.create_function(name, 0, lambda: self._at)
        try:
            with self._alone():
                self._prepare()
                self._check_place()
            if (moved := self.moved()) is not None and not moving:
                raise InvalidInput(
                    f"{path} was moved to {moved.to}; name that store, and begin nothing with this one."
                )
        except BaseException:
            self._db.close()
            raise

    def __repr__(self) -> str:
        return f"<SqliteFile {self.path}>"

    def close(self) -> None:
        """Close the file, when all writers of this process have ended."""
        with self._lock:
            self._db.close()

    def _prepare(self) -> None:
        """Make the tables, or bring them up to date; refuse what others have made."""
        db = self._db
        version, application, tables = db.execute(  # at once: another process may be making them now
            "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_user_version, pragma_application_id"
        ).fetchone()
        if application != APPLICATION and (tables or application or version):
            raise InvalidInput(f"{self.path} is a file of another kind; give the store a file of its own.")
        if version > len(STEPS):
            raise InvalidInput(
                f"{self.path} was written by a newer diminuendo (tables of version {version}); this one knows "
                f"{len(STEPS)}. Install that version."
            )
        for setting in SETTINGS:
            db.execute(f"PRAGMA {setting}").fetchall()
        if version < len(STEPS):
            with self._transaction():
                (version,) = db.execute(
                    "PRAGMA user_version"
                ).fetchone()  # another process may have been faster
                for step in STEPS[version:]:
                    for statement in statements(step):
                        db.execute(statement)
                db.execute(f"PRAGMA user_version = {len(STEPS)}")
                db.execute(f"PRAGMA application_id = {APPLICATION}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other thread uses the connection; what SQLite complains of is said in our words."""
        if os.getpid() != self._owner:
            raise StoreUnavailable(
                f"{self.path} was opened before this process was forked; open it here.", reasons.FORKED
            )
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                name = getattr(error, "sqlite_errorname", "") or ""
                known = [words for code, words in reasons.SQLITE.items() if name.startswith(code)]
                why = known[0] if known else reasons.CLOSED
                raise StoreUnavailable(f"The store {self.path} is not available: {why}.", why) from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._begin()
        try:
            self._check_place()
            yield
            self._db.execute("COMMIT")
            self._check_place()  # once more: nothing is acknowledged that was written beside it
        except BaseException:
            if self._db.in_transaction:  # not where SQLite has rolled back itself
                self._db.execute("ROLLBACK")
            raise

    def _check_place(self) -> None:
        """Refuse a file that is not the one at its path; a few microseconds."""
        try:
            there = _place(self._whole) == self._opened
        except OSError:
            there = False
        if not there:
            raise StoreUnavailable(
                f"The file at {self.path} is not the one that was opened: it was moved, replaced or deleted. "
                "Nothing is written any more. Stop the site, put the newest file back, and start it again.",
                reasons.REPLACED,
            )

    def _begin(self) -> None:
        """Be the one who writes; patiently."""
        until = time.monotonic() + TIMEOUT
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    self._db.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                        raise
                time.sleep(AGAIN)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {1000 * TIMEOUT:.0f}")

    @contextmanager
    def gently(self) -> Iterator[None]:
        """For one write of many: afterwards there is room for others."""
        began = time.monotonic()
        yield
        time.sleep(RESTS * (time.monotonic() - began))

    def tidies(self) -> None:
        """Let this connection move what was written from the log into the file."""
        with self._alone():
            self._db.execute(f"PRAGMA {TIDIES}")

    @contextmanager
    def writing(self, fence: FencedWrite | None = None, *, public: bool = True) -> Iterator[float]:
        """One transaction, at the time that it yields; if it is fenced, refused unless its trainer still leads.

        The clock advances with public writes alone: else, once a wall clock is set back, all times would tell when the
        last response came.
        """
        with self._alone(), self._transaction():
            if fence is not None:
                self.check_fence(fence)
            at = self._time(public)
            if public:
                self.execute("UPDATE clock SET at = ?", at)
            self._at = at
            yield at

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What a query finds."""
        with self._alone():
            return self._db.execute(_translated(query), values).fetchall()

    def execute(self, statement: str, *values: Any) -> int:
        """One statement of a transaction; how many rows it changed."""
        return self._db.execute(statement, values).rowcount

    def run(self, script: Script[T]) -> T:
        """Run a script in a transaction; its result."""
        try:
            statement, values = next(script)
            while True:
                statement, values = script.send(self.rows(statement, *values))
        except StopIteration as over:
            result: T = over.value
            return result

    def pad(self, size: int) -> None:
        """In place of a write that would have changed nothing, one of that many bytes: without any page to write a
        commit does not sync, and how long it takes would tell that the round was answered before."""
        step = SMALL if size <= PAGE else PAGE
        size = step * max(1, -(-size // step))
        self.execute(  # random, since what is equal would not be written
            "INSERT INTO padding VALUES (?1, randomblob(?1)) ON CONFLICT DO UPDATE SET random = excluded.random",
            size,
        )

    def visible_entries(self, population: str) -> int:
        """How many lines of a ledger are shown by now (store/__init__.py)."""
        now = self.now()
        ((by_menus, by_days),) = self.rows(
            "SELECT (SELECT max(lines) FROM menus JOIN placements ON number = placement "
            "WHERE population = ? AND effective_at <= ?), (SELECT max(seq) FROM ledger "
            "WHERE population = ? AND at < ?)",
            *(population, now, population, DAY * (now // DAY - 1)),
        )
        return max(by_menus or 0, 0 if by_days is None else by_days + 1)

    def check_fence(self, fence: FencedWrite) -> None:
        """Refuse where another trainer leads, or the ledger lacks what this one knows."""
        result = self.rows(
            "SELECT fencing_token, (SELECT line FROM ledger WHERE population = ?1 AND seq = ?2) FROM trainers "
            "WHERE population = ?1",
            *(fence.population, fence.lines - 1),
        )
        fence.check(*result[0] if result else (0, None))

    def moved(self) -> Moved | None:
        """Where all of this was moved to."""
        ((said,),) = self.rows("SELECT moved FROM clock")
        return None if said is None else Moved(**json.loads(said))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The file as it is now, while others may write."""
        with self._alone():
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.execute("ROLLBACK")

    def _time(self, public: bool = True) -> float:
        ((kept, moved),) = self.rows("SELECT at, moved FROM clock")
        if moved is not None:
            raise StoreUnavailable(
                f"The store {self.path} was moved, and nothing is written to it any more.", reasons.MOVED
            )
        wall = self._wall()
        ahead = max(self._ahead, kept - wall, self._latest - wall)
        result: float = max(kept, self._latest, wall + ahead)  # the sum was rounded
        if public:
            self._ahead, self._latest = ahead, result
        return result

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        with self._alone():
            self._check_place()
            return self._time()


@cache
def _translated(statement: str) -> str:
    """A statement of either store as SQLite takes it."""
    return statement.replace("diminuendo.", "").replace("$", "?")


def _place(path: Path) -> tuple[int, int]:
    """Which file is at a path."""
    result = os.stat(path)
    return result.st_dev, result.st_ino
