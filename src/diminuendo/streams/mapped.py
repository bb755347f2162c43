"""Users of a file larger than memory: their table lies in files on disk, which are mapped and not read.

Compiled code walks such a table as any other, and the system keeps in memory what is in use. So everything that takes
`Users` takes these, with the same results.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._sparse import SparseRows
from diminuendo.objectives.family import Family, blank_table
from diminuendo.streams.pieces import Pieces
from diminuendo.streams.users import Users

KINDS = {"starts": np.int64, "columns": np.int32, "values": np.float64}
"""The arrays of each part of a table, and what is in them."""
TOGETHER = 1 << 12
"""Users who are in memory at a time while the table is written."""


class MappedUsers(Users):
    """Users whose rows are files in a folder. Pickled, they are the name of that folder."""

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
        nobody = family.rows(blank_table(family, n_items), n_items)
        super().__init__(family, tuple(nobody), n_items, name=name, labels=labels)
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


def out_of_core(path: str | Path, family: Family | None = None, **how: Any) -> MappedUsers:
    """Map the users of a Parquet file that is larger than memory.

    Parameters
    ----------
    path : str or Path
        A Parquet file of rows: who wants what, and perhaps how much. Rows of a user are adjacent; a user is a round.
    family : Family, optional
        How to read the rows. Default: `NoisyOr()`.
    how
        `columns`, `scale`, `n_items` and `progress`, as `read` takes them.

    Returns
    -------
    Users
        Their table is written to a temporary folder (TMPDIR), 12 bytes for each row of the file. The folder is readable
        by its owner alone and is removed with the users.
    """
    pieces = Pieces(path, family, users=TOGETHER, **how)
    folder = Path(tempfile.mkdtemp(prefix="diminuendo-"))
    with ExitStack() as stack:
        ends = dict[int, int]()
        files = dict[str, Any]()

        def append(part: int, *arrays: NDArray[Any]) -> None:
            for (name, kind), array in zip(KINDS.items(), arrays, strict=True):
                path = Path(folder, f"{name}{part}")
                if path.name not in files:
                    files[path.name] = stack.enter_context(path.open("wb"))
                array.astype(kind, copy=False).tofile(files[path.name])

        for piece in pieces:
            for part, rows in enumerate(piece.family.rows(piece.table, piece.n_items)):
                starts = rows.indptr[1:] + ends[part] if part in ends else rows.indptr
                append(part, starts, rows.indices, rows.data)
                ends[part] = int(starts[-1])
    users = MappedUsers(
        piece.family, piece.n_items, str(folder), pieces.users, name=piece.name, labels=pieces.labels
    )
    weakref.finalize(users, shutil.rmtree, folder, ignore_errors=True)
    return users


def _mapped(path: Path, kind: Any) -> NDArray[Any]:
    return np.asarray(np.memmap(path, kind, mode="r")) if path.stat().st_size else np.zeros(0, dtype=kind)
