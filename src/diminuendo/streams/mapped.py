"""Users of a file larger than memory: their table lies in files on disk, which are mapped and not read.

Compiled code walks such a table as any other, and the system keeps in memory what is in use. So everything that takes
`Users` takes these, with the same results.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family, blank_table
from diminuendo.streams.column_names import roles
from diminuendo.streams.read_as import ReadAs, Scale
from diminuendo.streams.rows import item_labels, users_of
from diminuendo.streams.sources import open_file
from diminuendo.streams.users import Users
from diminuendo.types import Progress

KINDS = {"starts": np.int64, "columns": np.int32, "values": np.float64}
"""The arrays of each part of a table, and their types."""
TOGETHER = 1 << 12
"""Users who are in memory at a time while the table is written."""


class MappedUsers(Users):
    """Users whose rows are files in a folder. A pickle holds the name of that folder."""

    def __init__(
        self,
        family: Family,
        n_items: int,
        folder: str,
        users: int,
        *,
        name: str,
        labels: Sequence[str] | None,
    ) -> None:
        blank = family.rows(blank_table(family, n_items), n_items)
        super().__init__(family, tuple(blank), n_items, name=name, labels=labels)
        self._folder, self._length = folder, users
        self._map()

    def _map(self) -> None:
        rows = []
        for part, width in enumerate(self.family.columns(self.n_items)):
            starts, columns, values = (
                _mapped(Path(self._folder, f"{name}{part}"), kind) for name, kind in KINDS.items()
            )
            rows.append(SparseRows(starts, columns, values, (self._length, width)))
        self.table = self.family.with_rows(blank_table(self.family, self.n_items), rows)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"table": None, "_state_of": (None, 0)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._map()


def out_of_core(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    columns: Sequence[str] | None = None,
    scale: Scale | None = None,
    progress: Progress | None = None,
) -> MappedUsers:
    """Map the users of a Parquet file that is larger than memory.

    Parameters
    ----------
    path : str or Path
        A Parquet file of rows: who wants what, and perhaps how much. Rows of a user are adjacent; a user is a round.
    family : Family, optional
        Form of the objectives. By default `NoisyOr()`.
    n_items : int, optional
        If given, items are numbers from 0 to `n_items` - 1.
    columns, scale
        As in `ReadAs`.
    progress : callable, optional
        Called with numbers of bytes just read.

    Returns
    -------
    Users
        Their table is written to a temporary folder (TMPDIR), 12 bytes for each row of the file. The folder is readable
        by its owner alone and is removed with the users.

    Raises
    ------
    InvalidInput
        If it is no Parquet file, or rows of a user are not adjacent.
    """
    pieces = _Pieces(Path(path), family or NoisyOr(), n_items, columns, scale, progress)
    folder = Path(tempfile.mkdtemp(prefix="diminuendo-"))
    with ExitStack() as stack:
        ends, files = dict[int, int](), dict[str, Any]()
        for piece in pieces:
            for part, rows in enumerate(piece.family.rows(piece.table, piece.n_items)):
                starts = rows.indptr[1:] + ends[part] if part in ends else rows.indptr
                ends[part] = int(starts[-1])
                for (name, kind), array in zip(KINDS.items(), (starts, rows.indices, rows.data), strict=True):
                    file = f"{name}{part}"
                    if file not in files:
                        files[file] = stack.enter_context(Path(folder, file).open("wb"))
                    array.astype(kind, copy=False).tofile(files[file])
    users = MappedUsers(
        piece.family, piece.n_items, str(folder), pieces.users, name=piece.name, labels=pieces.labels
    )
    weakref.finalize(users, shutil.rmtree, folder, ignore_errors=True)
    return users


def _mapped(path: Path, kind: Any) -> NDArray[Any]:
    return np.asarray(np.memmap(path, kind, mode="r")) if path.stat().st_size else np.zeros(0, dtype=kind)


class _Pieces:
    """The users of a Parquet file, TOGETHER at a time: the file is read once for users and items, then by pieces."""

    def __init__(
        self,
        path: Path,
        family: Family,
        n_items: int | None,
        columns: Sequence[str] | None,
        scale: Scale | None,
        progress: Progress | None,
    ) -> None:
        if not (path.is_file() and path.name.endswith(".parquet")):
            raise InvalidInput(f"Expected a Parquet file, which can be read in pieces; got {path.name}.")
        self._path, self._family, self._n_items = path, family, n_items
        self.labels: list[str] | None = None
        with open_file(path, progress) as source:
            parts = roles(ReadAs(columns=columns, scale=scale), source.header, source.name)
            used = [name for name in (parts.user, parts.item, parts.value) if name is not None]
            self._read_as = ReadAs(columns=used, scale=scale, round="user")
            user, item = (source.cell(name, text=True) for name in used[:2])
            source.read(
                "CREATE TABLE heads AS SELECT row, hash(user) AS user, user IS NULL AS is_missing FROM (SELECT "
                f"file_row_number AS row, {user} AS user, lag({user}) OVER () AS before FROM {source.relation}) "
                "WHERE row = 0 OR user IS DISTINCT FROM before"
            )
            ((self.users, different, is_missing, n_rows),) = source.rows(
                "SELECT count(*), count(DISTINCT user), coalesce(bool_or(is_missing), false), "
                f"(SELECT count(*) FROM {source.relation}) FROM heads",
                *source.parameters,
            )
            for is_wrong, what in (
                (not n_rows, "has no rows"),
                (is_missing, "has rows without a user"),
                (different < self.users, "has rows of a user that lie apart"),
            ):
                if is_wrong:
                    raise InvalidInput(
                        f"{path.name} {what}. To be read in pieces, rows of a user must be adjacent (side by side)."
                    )
            heads = source.arrays("SELECT row FROM heads ORDER BY row")["row"]
            self._ends = [*heads[TOGETHER::TOGETHER].tolist(), n_rows]
            if n_items is None:
                source.rows(
                    f"CREATE TABLE usable AS SELECT DISTINCT {item} AS item FROM {source.relation} WHERE item IS NOT "
                    "NULL",
                    *source.parameters,
                )
                self.labels = item_labels(source, parts.item)
        _validate.positive_int(n_items if self.labels is None else len(self.labels), "n_items")

    def __iter__(self) -> Iterator[Users]:
        first, name = 0, self._path.name.split(".")[0]
        for end in self._ends:
            with open_file(self._path) as source:
                # DuckDB reads only the row groups in which these rows lie.
                rows = f"file_row_number BETWEEN {first} AND {end - 1}"
                source.relation = f"(SELECT * FROM {source.relation} WHERE {rows})"
                yield users_of(source, self._read_as, self._family, self._n_items, name, self.labels)
            first = end
