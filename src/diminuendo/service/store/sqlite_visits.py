"""Visits in a SQLite store: how many rounds of whom count, and which they were."""

from __future__ import annotations

import json

from diminuendo.errors import refuse_copies
from diminuendo.service.store import Counted, VisitRow
from diminuendo.service.store.given import is_visit
from diminuendo.service.store.sqlite_file import SqliteFile


class SqliteVisits:
    """The visits of everybody who has a name."""

    __getstate__ = refuse_copies

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def count(self, visit: VisitRow) -> Counted:
        """One visit, in a transaction; what is none counts for nothing."""
        if not is_visit(visit) or not self._file.rows(
            "SELECT 1 FROM placements WHERE number = ?", visit.placement
        ):
            self._file.pad(1)
            return Counted(False, visit.round)
        who = "placement = ? AND user_id = ?"
        result = self._file.rows(
            f"SELECT rounds, last, key FROM visits WHERE {who}", visit.placement, visit.user_id
        )
        rounds, last, key = (json.loads(result[0][0]), *result[0][1:]) if result else ([], -1, b"")
        before = last if visit.key and visit.key == key else visit.round
        if before in (*rounds, last):
            self._file.pad(1)
            return Counted(before in rounds, before)
        if counts := len(rounds) < visit.max_rounds_per_user:
            rounds.append(visit.round)
        self._file.execute(
            "INSERT OR REPLACE INTO visits (placement, user_id, rounds, last, key) VALUES (?, ?, ?, ?, ?)",
            *(visit.placement, visit.user_id, json.dumps(rounds), visit.round, visit.key),
        )
        return Counted(counts, visit.round)

    def rounds_of(self, placement: int, user_id: bytes) -> list[int]:
        """Her rounds: those that count, and her last one."""
        result = self._file.rows(
            "SELECT rounds, last FROM visits WHERE placement = ? AND user_id = ?", placement, user_id
        )
        return sorted({*json.loads(result[0][0]), result[0][1]}) if result else []
