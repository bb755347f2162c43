"""Rows of whole numbers, most of them 0: only entries that anybody touched are held.

An encoder remembers something for every entry of a sum, and among a million items most are of interest to nobody for a
long time. The entries that somebody added to are listed in order, with what is remembered of each. Once they are every
other entry, there is nothing to gain from a list, and all of them are held. Which it is, and how much memory it takes,
is as private as what people said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.types import Ints

MANY = 2
"""All entries are held when one in so many was touched."""


class Touched:
    """(rows, size) whole numbers, at first 0. To snapshots it is an array."""

    dtype = np.dtype(np.int64)

    def __init__(self, rows: int, size: int) -> None:
        self.shape = rows, size
        self._places: Ints | None = np.zeros(0, dtype=np.int64)  # rising; None: all
        self._values = np.zeros((rows, 0), dtype=np.int64)

    def __repr__(self) -> str:
        return f"<Touched, {self.shape}>"

    def with_those_of(self, entries: NDArray[Any]) -> tuple[Ints | None, Ints]:
        """Where numbers are held, now also wherever `entries` are not 0; None: everywhere. And the numbers."""
        if self._places is not None:
            touched = entries != 0
            touched[self._places] = True
            self._hold(touched)
        return self._places, self._values

    def _hold(self, touched: NDArray[np.bool_]) -> None:
        """These entries from now on, among which are all that were held before."""
        assert self._places is not None, "a list can grow, and all is all"
        every = MANY * np.count_nonzero(touched) > self.shape[1]
        places = None if every else np.flatnonzero(touched)
        if places is None or len(places) > len(self._places):
            values = np.zeros(
                (self.shape[0], self.shape[1] if places is None else len(places)), dtype=np.int64
            )
            before = self._places if places is None else np.searchsorted(places, self._places)
            values[:, before] = self._values
            self._places, self._values = places, values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A copy of all of it."""
        found = np.zeros(self.shape, dtype=np.int64)
        found[:, slice(None) if self._places is None else self._places] = self._values
        return found.astype(self.dtype if dtype is None else dtype, copy=False)

    def __setitem__(self, where: Any, values: Any) -> None:
        """All of it anew."""
        assert where is ..., "a snapshot holds everything"
        every = np.asarray(values)
        self.__init__(*self.shape)  # type: ignore[misc]  # as it was made
        places, held = self.with_those_of(np.asarray(every.any(axis=0)))
        held[:] = every if places is None else every[:, places]
