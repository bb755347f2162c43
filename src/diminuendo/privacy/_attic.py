"""The attic: arrays by name, in memory as long as they are small together, in a nameless file beyond that.

A ledger that is not on disk must remember every vector it has published, since none may be drawn twice. With a million
items that is more than all else a learner holds. What was published longest ago goes to a nameless file (drawers.py)
first, and what is too large by itself at once; it is read again if anybody asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from diminuendo.privacy.drawers import SMALL, NamelessFile
from diminuendo.types import Ints


class _Place(NamedTuple):
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Attic:
    """Whoever calls sees to it that only one thread does."""

    def __init__(self, room: int = SMALL) -> None:
        self._room, self._held = room, 0
        self._here: dict[str, Ints] = {}
        self._away: dict[str, _Place] = {}
        self._file, self._end = NamelessFile(), 0

    def __repr__(self) -> str:
        return f"<Attic of {len(self._here) + len(self._away)}>"

    def __contains__(self, name: str) -> bool:
        return name in self._here or name in self._away

    def __getitem__(self, name: str) -> Ints:
        """A copy."""
        if name in self._here:
            return self._here[name].copy()
        place = self._away[name]
        found = np.empty(place.shape, dtype=place.dtype)
        self._file.read(place.offset, found)
        return found

    def __setitem__(self, name: str, values: Ints) -> None:
        """To be kept for good, under a name that is new."""
        self._here[name] = np.ascontiguousarray(values)
        self._held += self._here[name].nbytes
        while self._held > self._room and self._put_away(next(iter(self._here))):
            pass
        if name in self._here:
            self._here[name] = np.array(values)  # whoever gave it may change it

    def _put_away(self, name: str) -> bool:
        values = self._here[name]
        try:
            self._file.write(self._end, values)
        except OSError:  # no room there either: it stays
            return False
        self._away[name] = _Place(self._end, values.shape, values.dtype)
        self._end += values.nbytes
        self._held -= values.nbytes
        del self._here[name]
        return True

    def __getstate__(self) -> dict[str, Any]:
        """A copy has everything in memory, and a file of its own when it needs one."""
        every = {name: self[name] for name in [*self._away, *self._here]}
        held = sum(values.nbytes for values in every.values())
        return {
            "_room": self._room,
            "_held": held,
            "_here": every,
            "_away": {},
            "_file": NamelessFile(),
            "_end": 0,
        }
