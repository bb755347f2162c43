"""The attic: arrays by name, in memory as long as they are small together, in a nameless file beyond that.

A ledger that is not on disk must remember every vector it has published, since none may be drawn twice. With a million
items that is more than all else a learner holds. What was published longest ago goes to a file that nobody else can
open, and that is gone with the process; it is read again if anybody asks.
"""

from __future__ import annotations

import tempfile
from typing import IO, Any, NamedTuple

import numpy as np

from diminuendo.types import Ints

ROOM = 1 << 22
"""Bytes that stay in memory."""


class _Place(NamedTuple):
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Attic:
    """Whoever calls sees to it that only one thread does."""

    def __init__(self, room: int = ROOM) -> None:
        self._room, self._held = room, 0
        self._here: dict[str, Ints] = {}
        self._away: dict[str, _Place] = {}
        self._file: IO[bytes] | None = None
        self._end = 0

    def __repr__(self) -> str:
        return f"<Attic of {len(self._here) + len(self._away)}>"

    def __contains__(self, name: str) -> bool:
        return name in self._here or name in self._away

    def __getitem__(self, name: str) -> Ints:
        """A copy."""
        if name in self._here:
            return self._here[name].copy()
        place = self._away[name]
        size = int(np.prod(place.shape)) * place.dtype.itemsize
        found = np.frombuffer(self._read(place.offset, size), dtype=place.dtype)
        return found.reshape(place.shape).copy()

    def __setitem__(self, name: str, values: Ints) -> None:
        """To be kept for good, under a name that is new."""
        self._here[name] = np.array(values)
        self._held += self._here[name].nbytes
        while self._held > self._room and len(self._here) > 1 and self._put_away(next(iter(self._here))):
            pass

    def _put_away(self, name: str) -> bool:
        values = self._here[name]
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # as long as this object
            data, done = values.tobytes(), 0
            self._file.seek(self._end)
            while done < len(data):
                done += self._file.write(data[done:])
        except OSError:  # no room there either: it stays
            return False
        self._away[name] = _Place(self._end, values.shape, values.dtype)
        self._end += values.nbytes
        self._held -= values.nbytes
        del self._here[name]
        return True

    def _read(self, offset: int, size: int) -> bytes:
        assert self._file is not None, "whatever is away is in the file"
        parts: list[bytes] = []
        self._file.seek(offset)
        while size > 0:
            part = self._file.read(size)
            if not part:
                raise OSError("The file of what was published has been cut short.")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def __getstate__(self) -> dict[str, Any]:
        """A copy has everything in memory, and a file of its own when it needs one."""
        every = {name: self[name] for name in [*self._away, *self._here]}
        held = sum(values.nbytes for values in every.values())
        return {
            "_room": self._room,
            "_held": held,
            "_here": every,
            "_away": {},
            "_file": None,
            "_end": 0,
        }
