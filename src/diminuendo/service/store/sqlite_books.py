"""The rows of books in a SQLite store."""

from __future__ import annotations

import sqlite3

from diminuendo.errors import refuse_copies
from diminuendo.service.store.led import Led
from diminuendo.service.store.sqlite_file import SqliteFile

ALL = 2**62
"""More lines than any ledger has."""


class SqliteRows:
    """Rows of one population's books; `shown`: those that are shown by now alone."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile, population: str, *, shown: bool) -> None:
        self._file, self._population, self._shown = file, population, shown
        self.place = f"{file.path} (population {population})"

    def lines(self) -> list[bytes]:
        """All lines, in order."""
        query = "SELECT line FROM ledger WHERE population = ? AND seq < ? ORDER BY seq"
        return [line for (line,) in self._file.rows(query, self._population, self._most())]

    def check(self, led: Led) -> None:
        """Refuse unless it is led."""
        self._file.check_leads(led)

    def add_line(self, led: Led, line: bytes) -> bool:
        """One more line after those that are known; whether nobody else had written one there."""
        with self._file.writing(led) as at:
            try:
                self._file.execute(
                    "INSERT INTO ledger (population, seq, line, at) VALUES (?, ?, ?, ?)",
                    *(self._population, led.lines, line, at),
                )
            except sqlite3.IntegrityError:
                return False
        return True

    def releases(self) -> list[str]:
        """The names of all releases."""
        query = "SELECT name FROM releases WHERE population = ? AND line < ?"
        return [name for (name,) in self._file.rows(query, self._population, self._most())]

    def release(self, name: str) -> bytes | None:
        """The release of that name; None where there is none."""
        query = "SELECT body FROM releases WHERE population = ? AND name = ? AND line < ?"
        result = self._file.rows(query, self._population, name, self._most())
        return result[0][0] if result else None

    def add_release(self, led: Led, name: str, body: bytes) -> None:
        """Keep a release that is entered in the next line, unless there is one of that name."""
        with self._file.writing(led):
            self._file.execute(
                "INSERT OR IGNORE INTO releases (population, name, body, line) SELECT ?, ?, ?, "
                "coalesce(max(seq) + 1, 0) FROM ledger WHERE population = ?",
                *(self._population, name, body, self._population),
            )

    def _most(self) -> int:
        """Lines before this one are there, and releases that are entered in them."""
        return self._file.shown(self._population) if self._shown else ALL
