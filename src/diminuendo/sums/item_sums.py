"""Sums over people, several for each item, of those items only that anybody cared about.

An item gets a column when it is first named, and columns lie in the order in which items came. Among a million items
most have none for a long time. How many there are, and whose, is as private as what people said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import kernel
from diminuendo.types import Ints, Items

FIRST = 1024
"""Columns for which there is room at first; then for twice as many, and so on."""
NONE = -1


class ItemSums:
    """(rows, items) whole numbers, at first 0. To snapshots it is an array."""

    dtype = np.dtype(np.int64)

    def __init__(self, rows: int, n_items: int) -> None:
        self.shape = rows, n_items
        self._column: Items = np.full(n_items, NONE, dtype=np.int32)
        self._items: Items = np.zeros(min(FIRST, n_items), dtype=np.int32)
        self._cells: Ints = np.zeros((rows, len(self._items)), dtype=np.int64)
        self._count: Ints = np.zeros(1, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<ItemSums, {self.shape}>"

    @property
    def items(self) -> Items:
        """Those that have a column, in the order of columns."""
        return self._items[: self._count[0]]

    @property
    def cells(self) -> Ints:
        """(rows, columns) the numbers themselves."""
        return self._cells[:, : self._count[0]]

    def columns(self, items: NDArray[Any]) -> Ints:
        """The column of each of these items, new ones where there was none."""
        found = np.empty(len(items), dtype=np.int64)
        done = 0
        while (done := int(_number(items, done, self._column, self._items, self._count, found))) < len(items):
            wider = min(2 * len(self._items), self.shape[1])
            names, cells = np.zeros(wider, dtype=np.int32), np.zeros((self.shape[0], wider), dtype=np.int64)
            names[: len(self._items)], cells[:, : len(self._items)] = self._items, self._cells
            self._items, self._cells = names, cells
        return found

    def add(self, row: int, columns: Ints, numbers: Ints, often: int) -> None:
        """To one row, at these columns: so many times these numbers."""
        _add(columns, numbers, often, self._cells[row])

    def rows(self, which: Sequence[int] | Ints) -> Ints:
        """(rows, items) a copy of some rows, with every item."""
        found = np.zeros((len(which), self.shape[1]), dtype=np.int64)
        found[:, self.items] = self.cells[which]
        return found

    def wipe(self, row: int) -> None:
        """0 in that row."""
        self._cells[row] = 0

    def clear(self) -> None:
        """0 everywhere, and nobody has named anything."""
        self._cells[:], self._column[:], self._count[0] = 0, NONE, 0

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A copy of all of it."""
        found = self.rows(np.arange(self.shape[0]))
        return found.astype(self.dtype if dtype is None else dtype, copy=False)

    def __setitem__(self, where: Any, values: Any) -> None:
        """All of it anew."""
        assert where is ..., "a snapshot holds everything"
        every = np.asarray(values)
        self.clear()
        items = np.flatnonzero(every.any(axis=0))
        columns = self.columns(items)  # first: there may be more room afterwards
        self._cells[:, columns] = every[:, items]


@kernel
def _number(items: NDArray[Any], done: int, column: Items, names: Items, count: Ints, found: Ints) -> int:
    """Columns of items from `done` on; how far it came before there was no room for another."""
    while done < len(items):
        item = items[done]
        if column[item] == NONE:
            if count[0] == len(names):
                return done
            column[item], names[count[0]] = count[0], item
            count[0] += 1
        found[done] = column[item]
        done += 1
    return done


@kernel
def _add(columns: Ints, numbers: Ints, often: int, total: Ints) -> None:
    for j in range(len(columns)):
        total[columns[j]] += often * numbers[j]
