"""Whole numbers that grow in number, in as few bits as hold them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.types import Ints

KINDS = (np.int8, np.int16, np.int32, np.int64)


class Numbers:
    """A row of whole numbers to which others are added at the end. What was handed out stays as it is."""

    def __init__(self, first: Sequence[int] | NDArray[Any] = ()) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype=np.int8)
        self._size = 0
        self.extend(np.asarray(first, dtype=np.int64))

    def __repr__(self) -> str:
        return f"<Numbers: {self._size}>"

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> NDArray[Any]:
        """All of them, of some width, read-only and without copying."""
        found = self._room[: self._size]
        found.flags.writeable = False
        return found

    def extend(self, more: Ints) -> None:
        """These after the others; arrays grow by half, so that each number is copied a few times at most."""
        if not len(more):
            return
        low, high = int(more.min()), int(more.max())
        fits = (kind for kind in KINDS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
        kind = np.promote_types(self._room.dtype, next(fits))
        self._make_room(self._size + len(more), kind)
        self._room[self._size : self._size + len(more)] = more
        self._size += len(more)

    def repeat(self, number: int, times: int) -> None:
        """One number, `times` times."""
        self.extend(np.array([number]))
        self._make_room(self._size + times - 1, self._room.dtype)
        self._room[self._size : self._size + times - 1] = number
        self._size += times - 1

    def _make_room(self, size: int, kind: Any) -> None:
        if size > len(self._room) or kind != self._room.dtype:
            room = np.empty(max(size, len(self._room) + len(self._room) // 2), dtype=kind)
            room[: self._size] = self._room[: self._size]
            self._room = room
