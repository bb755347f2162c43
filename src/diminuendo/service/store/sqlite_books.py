"""Books in a SQLite store: lines are unique by their number, releases by their name, and only who leads writes.

Two trainers may draw at the same time. One draw is kept, both read it back, and nobody has seen the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from diminuendo.errors import LedgerDamaged, LedgerInUse, refuse_copies
from diminuendo.privacy.books.releases import check_name, packed, unpacked
from diminuendo.service.store.led import Led
from diminuendo.service.store.sqlite_file import SqliteFile
from diminuendo.types import Ints


class SqliteBooks:
    """The ledger of a population and its releases, for the trainer of that epoch; to be read only without one."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile, population: str, led: Led | None) -> None:
        self.lines = SqliteLines(file, population, led)
        self.releases = SqliteReleases(file, population, led)

    def visits_of(self, learner: str) -> None:
        """The service counts them itself."""

    def close(self) -> None:
        """Write nothing any more; the store stays open."""
        self.lines.closed = True


class SqliteLines:
    """The lines of a ledger. One that somebody else has written at the same place is not written over."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile, population: str, led: Led | None) -> None:
        self._file, self._population, self._led = file, population, led
        self._next, self.closed = 0, False
        self.path = f"{file.path} (population {population})"

    def read(self) -> bytes:
        """All of them, each with its newline; of those to be read only, all that are shown by now."""
        most = 2**62 if self._led is not None else self._file.shown(self._population)
        found = self._file.rows(
            "SELECT seq, line FROM ledger WHERE population = ? AND seq < ? ORDER BY seq",
            self._population,
            most,
        )
        self._next = found[-1][0] + 1 if found else 0
        return b"".join(line for _, line in found)

    def check(self) -> None:
        """Refuse unless this trainer may append."""
        if self._led is None:
            raise LedgerInUse(f"{self.path} was opened to be read only.")
        if self.closed:
            raise LedgerInUse(f"{self.path} is closed, or could not be written to before; open it again.")
        self._file.check_leads(self._led)

    def append(self, line: bytes) -> None:
        """One more line, after those that were read here."""
        self.check()
        self.closed = True  # until it is safe
        with self._file.writing(self._led) as at:
            try:
                self._file.execute(
                    "INSERT INTO ledger (population, seq, line, at) VALUES (?, ?, ?, ?)",
                    *(self._population, self._next, line, at),
                )
            except sqlite3.IntegrityError:
                raise LedgerInUse(
                    f"{self.path} was written to by somebody else since it was read; open it again."
                ) from None
        self._next, self.closed = self._next + 1, False

    def cut(self, size: int) -> None:
        """A line is there as a whole, or not at all."""
        if size != len(self.read()):
            raise LedgerDamaged(f"{self.path} has a line that breaks off. Restore it from a copy.")


class SqliteReleases:
    """What was published, by name."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile, population: str, led: Led | None) -> None:
        self._file, self._population, self._led = file, population, led

    def check(self, name: str) -> None:
        """Refuse names that a release cannot have."""
        check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a release of that name."""
        return bool(self._find(name))

    def names(self) -> list[str]:
        """The names of all releases."""
        which = "population = ? AND line < ?"
        found = self._file.rows(
            f"SELECT name FROM releases WHERE {which} ORDER BY name", self._population, self._most()
        )
        return [name for (name,) in found]

    def once(self, name: str, draw: Callable[[], Ints]) -> Ints:
        """The release of that name; `draw` is called only if there is none yet, and what is kept is returned."""
        check_name(name)
        if not (found := self._find(name)):
            if self._led is None:
                raise LedgerInUse("These books were opened to be read only.")
            drawn = packed(draw())
            with self._file.writing(self._led):
                self._file.execute(  # it is entered in the next line
                    "INSERT OR IGNORE INTO releases (population, name, body, line) SELECT ?, ?, ?, "
                    "coalesce(max(seq) + 1, 0) FROM ledger WHERE population = ?",
                    *(self._population, name, drawn, self._population),
                )
            found = self._find(name)
        return unpacked(found[0], f"{name} of population {self._population}")

    def _find(self, name: str) -> list[bytes]:
        query = "SELECT body FROM releases WHERE population = ? AND name = ? AND line < ?"
        return [body for (body,) in self._file.rows(query, self._population, name, self._most())]

    def _most(self) -> int:
        """Releases that are entered in lines before this one are there."""
        return 2**62 if self._led is not None else self._file.shown(self._population)
