"""Snapshots in a SQLite store, written and dropped part by part: while somebody writes, whoever answers waits."""

from __future__ import annotations

from diminuendo.errors import refuse_copies
from diminuendo.service.store import Publication
from diminuendo.service.store.given import PART
from diminuendo.service.store.led import Led
from diminuendo.service.store.sqlite_file import SqliteFile


class SqliteSnapshots:
    """The sealed snapshots of all placements; of each, the one of its last menu is read."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def begin(self, led: Led, new: Publication) -> None:
        """All of a snapshot but for its last part; nobody reads it yet."""
        for number, first in enumerate(_firsts(new)[:-1]):
            with self._file.gently(), self._file.writing(led):
                self._put(new, number, first)

    def end(self, new: Publication) -> None:
        """Its last part, in the transaction that publishes it; a small one of before is dropped at once."""
        self._put(new, len(_firsts(new)) - 1, _firsts(new)[-1])
        older = "placement = ?1 AND version < ?2"
        self._file.execute(
            f"DELETE FROM snapshot_parts WHERE {older} AND "
            f"(SELECT sum(length(sealed)) FROM snapshot_parts WHERE {older}) <= ?3",
            *(new.placement, new.version, PART),
        )

    def drop(self, led: Led, placement: int, but: int) -> None:
        """Drop snapshots of all versions but one, part by part."""
        which = "placement = ? AND version <> ?"
        for (row,) in self._file.rows(f"SELECT rowid FROM snapshot_parts WHERE {which}", placement, but):
            with self._file.gently(), self._file.writing(led):
                self._file.execute("DELETE FROM snapshot_parts WHERE rowid = ?", row)

    def read(self, placement: int, version: int) -> bytes | None:
        """The one of that version, as a whole; None where there is none."""
        result = self._file.rows(
            "SELECT sealed FROM snapshot_parts WHERE placement = ? AND version = ? ORDER BY part",
            *(placement, version),
        )
        return b"".join(part for (part,) in result) if result else None

    def _put(self, new: Publication, number: int, first: int) -> None:
        self._file.execute(
            "INSERT INTO snapshot_parts VALUES (?, ?, ?, ?)",
            *(new.placement, new.version, number, new.snapshot[first : first + PART]),
        )


def _firsts(new: Publication) -> range:
    """The bytes that parts begin with."""
    return range(0, max(1, len(new.snapshot)), PART)
