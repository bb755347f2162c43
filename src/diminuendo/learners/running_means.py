"""Means of rows that were published for the same question more than once, for as many questions as there is room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.types import Floats, Ints


class RunningMeans:
    """Rows by key, each counting by its precision; when there is no room, the one used longest ago makes way."""

    def __init__(self, room: int, width: int, size: int) -> None:
        self._keys: Ints = np.full((room, width), -1, dtype=np.int64)
        self._sums: Floats = np.zeros((room, size))
        self._weights: Floats = np.zeros(room)
        self._used: Ints = np.zeros(
            room + 1, dtype=np.int64
        )  # when each was used; the last entry is the clock
        self.arrays = (self._keys, self._sums, self._weights, self._used)

    def add(self, key: Sequence[int], row: Floats, deviation: float) -> tuple[Floats, float]:
        """Take one more measurement; returns the mean over all of this key, and its deviation."""
        wanted = np.full(self._keys.shape[1], -1, dtype=np.int64)
        wanted[: len(key)] = key
        here = np.flatnonzero((self._keys == wanted).all(axis=1) & (self._weights > 0))
        place = int(here[0]) if len(here) else int(np.argmin(self._used[:-1]))
        if not len(here):
            self._keys[place], self._sums[place], self._weights[place] = wanted, 0.0, 0.0
        weight = deviation**-2
        self._sums[place] += weight * row
        self._weights[place] += weight
        self._used[-1] += 1
        self._used[place] = self._used[-1]
        return self._sums[place] / self._weights[place], float(self._weights[place] ** -0.5)

    def forget(self) -> None:
        """All of them."""
        self._keys[:], self._sums[:], self._weights[:], self._used[:] = -1, 0.0, 0.0, 0

    def sound(self, n_items: int, far: float) -> bool:
        """Whether these rows, as read from a snapshot, can have come about: shares of people, and noise."""
        keys, sums, weights, used = self.arrays
        with np.errstate(invalid="ignore"):
            within = np.abs(sums) <= (weights + far * np.sqrt(weights))[:, None]
        return bool(
            np.isfinite(weights).all()
            and (weights >= 0).all()
            and within.all()
            and ((keys >= -1) & (keys < n_items)).all()
            and (used >= 0).all()
        )
