"""Means of rows that were published for the same question more than once, for as many questions as there is room.

A row holds weighted sums over people, with noise. An item is measured by the people since it appeared: `units[j]` is
the weight of everybody from batch j on, and an item that appeared in batch j has the mean sum / units[j]. Measurements
count by their precision, which is a number for each question and batch of appearance, not for each item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diminuendo._numba import kernel
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
        _add_up(self._sums[place], units / sigma**2, since, sums)
        self._weights[place] += (units / sigma) ** 2
        return self._mean(place, since)

    def would_be(
        self, key: Sequence[int], sums: Ints | Floats, units: Floats, sigma: float, since: Ints
    ) -> tuple[Floats, Floats]:
        """What `add` would return. Changes nothing."""
        here = self._found(key)
        held = np.zeros(len(since)) if here is None else self._sums[here].copy()
        _add_up(held, units / sigma**2, since, sums)
        weights = (units / sigma) ** 2
        return _divided(held, weights if here is None else weights + self._weights[here], since)

    def get(self, key: Sequence[int], since: Ints) -> tuple[Floats, Floats]:
        """The mean so far and its deviation, infinite where nothing was measured. Changes nothing."""
        here = self._found(key)
        if here is None:
            return np.zeros(len(since)), np.full(len(since), np.inf)
        return self._mean(here, since)

    def _mean(self, place: int, since: Ints) -> tuple[Floats, Floats]:
        return _divided(self._sums[place].copy(), self._weights[place], since)

    def _place(self, key: Sequence[int]) -> int:
        place = self._found(key)
        if place is None:
            place = int(np.argmin(self._used[:-1]))
            self._keys[place], self._weights[place], self._sums[place] = self._padded(key), 0.0, 0.0
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
        keys, sums, weights, used = self._keys, self._sums, self._weights, self._used
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


def _divided(sums: Floats, weights: Floats, since: Ints) -> tuple[Floats, Floats]:
    """Means in place of sums, and deviations: infinite where nothing was measured."""
    deviations = np.empty(len(sums))
    _divide(sums, weights, since, deviations)
    return sums, deviations


@kernel
def _add_up(total: Floats, each: Floats, since: Ints, sums: Ints | Floats) -> None:
    """total += what was measured, by the factor of the batch in which an item appeared; 0 for those that have not."""
    for item in range(len(total)):
        if since[item] < len(each):
            total[item] += each[since[item]] * sums[item]


@kernel
def _divide(sums: Floats, weights: Floats, since: Ints, deviations: Floats) -> None:
    for item in range(len(sums)):
        weight = weights[since[item]] if since[item] < len(weights) else 0.0
        sums[item] = sums[item] / weight if weight > 0 else 0.0
        deviations[item] = 1 / math.sqrt(weight) if weight > 0 else np.inf
