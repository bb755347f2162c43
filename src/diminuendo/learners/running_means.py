"""Means of rows that were published for the same question more than once, for as many questions as there is room.

A row holds weighted sums over people, with noise. An item is measured by the people since it appeared: `units[j]` is
the weight of everybody from batch j on, and an item that appeared in batch j has the mean sum / units[j]. Measurements
count by their precision, which is a number for each question and batch of appearance, not for each item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.types import Floats, Ints


class RunningMeans:
    """Rows by key; when there is no room, the one used longest ago makes way."""

    def __init__(self, room: int, width: int, size: int, batches: int) -> None:
        self._keys: Ints = np.full((room, width), -1, dtype=np.int64)
        self._sums: Floats = np.zeros((room, size))
        self._weights: Floats = np.zeros((room, batches))
        self._used: Ints = np.zeros(room + 1, dtype=np.int64)  # when each was; the last entry is the clock
        self.arrays = (self._keys, self._sums, self._weights, self._used)

    def add(
        self, key: Sequence[int], sums: Ints | Floats, units: Floats, sigma: float, since: Ints
    ) -> tuple[Floats, Floats]:
        """Take one more measurement; returns the mean over all of this key, and the deviation, item by item."""
        place = self._place(key)
        self._sums[place] += _at(units, since) / sigma**2 * sums
        self._weights[place] += (units / sigma) ** 2
        return self._mean(place, since)

    def would_be(
        self, key: Sequence[int], sums: Ints | Floats, units: Floats, sigma: float, since: Ints
    ) -> tuple[Floats, Floats]:
        """What `add` would return. Changes nothing."""
        mean, deviation = self.get(key, since)
        old = np.where(np.isfinite(deviation), deviation, 1.0) ** -2.0 * np.isfinite(deviation)
        each = _at(units, since)
        weights = old + (each / sigma) ** 2
        known = weights > 0
        safe = np.where(known, weights, 1.0)
        found = (old * mean + each / sigma**2 * sums) / safe
        return np.where(known, found, 0.0), np.where(known, safe**-0.5, np.inf)

    def get(self, key: Sequence[int], since: Ints) -> tuple[Floats, Floats]:
        """The mean so far and its deviation, infinite where nothing was measured. Changes nothing."""
        here = self._found(key)
        if here is None:
            return np.zeros(len(since)), np.full(len(since), np.inf)
        return self._mean(here, since)

    def _mean(self, place: int, since: Ints) -> tuple[Floats, Floats]:
        weights = _at(self._weights[place], since)
        known = weights > 0
        safe = np.where(known, weights, 1.0)
        return np.where(known, self._sums[place] / safe, 0.0), np.where(known, safe**-0.5, np.inf)

    def _place(self, key: Sequence[int]) -> int:
        place = self._found(key)
        if place is None:
            place = int(np.argmin(self._used[:-1]))
            self._keys[place], self._sums[place], self._weights[place] = self._padded(key), 0.0, 0.0
        self._used[-1] += 1
        self._used[place] = self._used[-1]
        return place

    def _found(self, key: Sequence[int]) -> int | None:
        here = np.flatnonzero((self._keys == self._padded(key)).all(axis=1) & (self._used[:-1] > 0))
        return int(here[0]) if len(here) else None

    def _padded(self, key: Sequence[int]) -> Ints:
        found = np.full(self._keys.shape[1], -1, dtype=np.int64)
        found[: len(key)] = key
        return found

    def forget(self) -> None:
        """All of them."""
        self._keys[:], self._sums[:], self._weights[:], self._used[:] = -1, 0.0, 0.0, 0

    def sound(self, n_items: int, far: float) -> bool:
        """Whether these rows, as read from a snapshot, can have come about: shares of people, and noise."""
        keys, sums, weights, used = self.arrays
        with np.errstate(invalid="ignore"):
            largest = weights.max(axis=1)
            within = np.abs(sums) <= (largest + far * np.sqrt(largest))[:, None]
        return bool(
            np.isfinite(weights).all()
            and (weights >= 0).all()
            and within.all()
            and ((keys >= -1) & (keys < n_items)).all()
            and (used >= 0).all()
        )


def _at(values: Floats, since: Ints) -> Floats:
    """By item: the entry of the batch in which it appeared; 0 for items that have not."""
    held: Floats = np.append(values, 0.0)[np.minimum(since, len(values))]
    return held
