"""Drawers: arrays of published numbers that are looked at in releases only, and lie in a nameless file in between.

With a million items each such array is as large as all that is looked at between releases. A nameless file is one that
nobody else can open and that is gone with the process. Nothing goes there that was not published, or worked out from
what was: what people said stays in memory. Small arrays stay there, too, and large ones where the disk is full.
"""

from __future__ import annotations

import tempfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.types import Floats

SMALL = 1 << 22
"""Bytes that may stay in memory."""


class NamelessFile:
    """Numbers at places of a file, which is made when the first are written."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def write(self, offset: int, values: NDArray[Any]) -> None:
        """Numbers that lie one after the other in memory."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # as long as this object
        left = _bytes(values)
        self._file.seek(offset)
        while len(left):
            left = left[self._file.write(left) :]

    def read(self, offset: int, out: NDArray[Any]) -> None:
        """Fill an array, in the order in which it lies in memory."""
        assert self._file is not None, "what is read was written"
        left = _bytes(out)
        self._file.seek(offset)
        while len(left):
            count = self._file.readinto(left)  # type: ignore[attr-defined]  # unbuffered files have it
            if not count:
                raise OSError("A file of what was published has been cut short.")
            left = left[count:]

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()


def _bytes(values: NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


class Drawer:
    """An array of one dimension or two that begins with 0 everywhere. Rows are fetched, and put back, one by one.

    To look at it is to fetch a copy, by `drawer[row]` or, all of it, by `np.asarray(drawer)`. What is assigned is put
    away. Whoever calls sees to it that only one thread does.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, shape: tuple[int] | tuple[int, int], small: int = SMALL) -> None:
        self.shape = shape
        self._rows, self._width = (1, shape[0]) if len(shape) == 1 else shape
        self._stays = self._rows * self._width * self.dtype.itemsize <= small
        self._here: dict[int, Floats] = {}
        self._away = set[int]()
        self._file = NamelessFile()

    def __repr__(self) -> str:
        return f"<Drawer of {self.shape}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """A copy of all of it."""
        found = np.zeros((self._rows, self._width))
        for row in range(self._rows):
            self._fetch(row, found[row])
        return found.reshape(self.shape).astype(self.dtype if dtype is None else dtype, copy=False)

    def __getitem__(self, where: Any) -> Any:
        """A copy of a row, or of whatever part."""
        if isinstance(where, int | np.integer) and len(self.shape) == 2:
            found = np.zeros(self._width)
            self._fetch(range(self._rows)[where], found)
            return found
        return np.asarray(self)[where]

    def __setitem__(self, where: Any, values: Any) -> None:
        if isinstance(where, int | np.integer) and len(self.shape) == 2:
            self._put(range(self._rows)[where], np.broadcast_to(values, (self._width,)))
            return
        every, whole = values, where is ... or (isinstance(where, slice) and where == slice(None))
        if not whole:
            every = np.asarray(self)
            every[where] = values
        for row, new in enumerate(np.broadcast_to(every, self.shape).reshape(self._rows, self._width)):
            self._put(row, new)

    def clear(self, row: int) -> None:
        """0 again."""
        self._here.pop(row, None)
        self._away.discard(row)

    def _fetch(self, row: int, out: Floats) -> None:
        """Fill in a row; where nothing was put away, `out` stays as it is."""
        if row in self._here:
            out[:] = self._here[row]
        elif row in self._away:
            self._file.read(row * out.nbytes, out)

    def _put(self, row: int, values: Floats) -> None:
        if self._stays or not self._put_away(row, values):
            self._here[row] = np.array(values, dtype=self.dtype)

    def _put_away(self, row: int, values: Floats) -> bool:
        whole = np.ascontiguousarray(values, dtype=self.dtype)
        try:
            self._file.write(row * whole.nbytes, whole)
        except OSError:  # no room there: it stays in memory, which counts from then on
            return False
        self._away.add(row)
        self._here.pop(row, None)
        return True

    def __getstate__(self) -> dict[str, Any]:
        """A copy has everything in memory, and a file of its own when it needs one."""
        every: dict[int, Floats] = {}
        for row in self._away | set(self._here):
            every[row] = np.zeros(self._width)
            self._fetch(row, every[row])
        return vars(self) | {"_here": every, "_away": set(), "_file": NamelessFile()}
