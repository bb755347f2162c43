"""Users of a large Parquet file, some after the others: in pieces, of which only one need be in memory at a time.

The rows of the file say who wants what, and perhaps how much (rows.py); the rows of a user are adjacent, and a user is
a round. The file is read once for its users and items, and then piece by piece. Pieces hold the users that the whole
file holds, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.column_names import roles
from diminuendo.streams.read_as import ReadAs, Scale
from diminuendo.streams.rows import item_labels, users_of
from diminuendo.streams.sources import open_file
from diminuendo.streams.users import Users
from diminuendo.types import Progress

USERS = 1 << 16
"""In a piece, unless you say otherwise."""


class Pieces:
    """The users of a Parquet file; to go through them again, begin again.

    Parameters
    ----------
    path
        A Parquet file in which the rows of a user are adjacent.
    family
        The family of objectives.
    users
        How many users are in a piece.
    n_items
        If given, items are numbers from 0.
    columns
        Names of the columns of user, item and value; by default guessed by their names.
    scale
        The value that means nothing and the one that means everything.
    progress
        Called with bytes of the file, as it is looked through.
    """

    def __init__(
        self,
        path: str | Path,
        family: Family | None = None,
        *,
        users: int = USERS,
        n_items: int | None = None,
        columns: Any = None,
        scale: Scale | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._path, self._family = Path(path), NoisyOr() if family is None else family
        self._most = _validate.positive_int(users, "users")
        if not (self._path.is_file() and self._path.name.endswith(".parquet")):
            raise InvalidInput(
                f"Expected a Parquet file, which can be read in pieces; got {self._path.name}."
            )
        self._scale, self.name, self.family_name = scale, self._path.name.split(".")[0], self._family.name
        with open_file(self._path, progress) as source:
            parts = roles(ReadAs(columns=columns, scale=scale), source.header, source.name)
            self._columns = [parts.user, parts.item, *([] if parts.value is None else [parts.value])]
            user, item = (source.cell(name, text=True) for name in self._columns[:2])
            source.read(
                "CREATE TABLE heads AS SELECT row, hash(user) AS user, user IS NULL AS is_nobody FROM (SELECT "
                f"file_row_number AS row, {user} AS user, lag({user}) OVER () AS before FROM {source.relation}) "
                "WHERE row = 0 OR user IS DISTINCT FROM before"
            )
            ((self._users, different, nobody, self._rows),) = source.rows(
                "SELECT count(*), count(DISTINCT user), coalesce(bool_or(is_nobody), false), "
                f"(SELECT count(*) FROM {source.relation}) FROM heads",
                *source.parameters,
            )
            if not self._rows:
                raise self._refused("has no rows")
            if nobody:
                raise self._refused("has rows in which nobody is named")
            if different < self._users:
                raise self._refused("has rows of a user that lie apart")
            heads = source.arrays("SELECT row FROM heads ORDER BY row")["row"]
            self._labels: list[str] | None = None
            if n_items is None:
                source.rows(
                    f"CREATE TABLE usable AS SELECT DISTINCT {item} AS item FROM {source.relation} WHERE item IS NOT "
                    "NULL",
                    *source.parameters,
                )
                self._labels = item_labels(source, parts.item)
        self._ends = np.append(heads[self._most :: self._most], self._rows)
        self.n_items = _validate.positive_int(
            n_items if self._labels is None else len(self._labels), "n_items"
        )

    def __repr__(self) -> str:
        return f"<Pieces: {self.name}, {len(self):,} pieces, {self._users:,} users, {self.n_items:,} items>"

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self._ends)

    @property
    def labels(self) -> tuple[str, ...] | None:
        """What items are called, where they are not numbers."""
        return None if self._labels is None else tuple(self._labels)

    @property
    def users(self) -> int:
        """How many users there are in all of them."""
        return int(self._users)

    def __iter__(self) -> Iterator[Users]:
        """One piece after the other."""
        first = 0
        for end in self._ends.tolist():
            yield self._piece(first, end)
            first = end

    def _refused(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"{self._path.name} {what}. To be read in pieces, rows of a user must be adjacent (side by side)."
        )

    def _piece(self, first: int, end: int) -> Users:
        """The users whose rows are from `first` to `end` - 1; DuckDB reads only the row groups that they are in."""
        read_as = ReadAs(columns=self._columns, scale=self._scale, round="user")
        with open_file(self._path) as source:
            source.relation = (
                f"(SELECT * FROM {source.relation} WHERE file_row_number BETWEEN {first} AND {end - 1})"
            )
            n_items = self.n_items if self._labels is None else None
            return users_of(source, read_as, self._family, n_items, self.name, self._labels)
