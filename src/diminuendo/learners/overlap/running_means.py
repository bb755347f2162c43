"""Means of rows that were published for the same question more than once, for as many questions as there is room.

A row holds weighted sums over people, with noise. An item is measured by the people since it appeared: `units[j]` is
the weight of everybody from batch j on, and an item that appeared in batch j has the mean sum / units[j]. Measurements
count by their precision, which is a number for each question and batch of appearance, not for each item.

*Fallback rows.* Where people are not kept, which rows are measured is known beforehand: those along chains that were
picked before. When another item is picked, nobody may have been asked what the others lose by it after just this set.
Then the row of the same item after the nearest set stands in, as a measurement that is off by about a third of itself.
An item that never joined any chain is taken to cost the others nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from diminuendo._numba import kernel
from diminuendo.types import Floats, Ints

OFF = 0.3
"""By which share of itself a row after one set differs from the row after another, about."""


class RunningMeans:
    """Rows by key; when there is no room, the one used longest ago makes way."""

    def __init__(self, room: int, width: int, size: int, batches: int) -> None:
        self._keys: Ints = np.full((room, width), -1, dtype=np.int64)
        self._sums: Floats = np.zeros((room, size))
        self._weights: Floats = np.zeros((room, batches))
        self._used: Ints = np.zeros(room + 1, dtype=np.int64)  # when each was; the last entry is the clock
        self.arrays = (self._keys, self._sums, self._weights, self._used)

    def add(
        self, key: Sequence[int], sums: Ints | Floats, units: Floats, sigma: float, first_batch: Ints
    ) -> tuple[Floats, Floats]:
        """Take one more measurement; returns the mean over all of this key, and the deviation, item by item."""
        place = self._place(key)
        _add_up(self._sums[place], units / sigma**2, first_batch, sums)
        self._weights[place] += (units / sigma) ** 2
        return self._mean(place, first_batch)

    def would_be(
        self, key: Sequence[int], sums: Ints | Floats, units: Floats, sigma: float, first_batch: Ints
    ) -> tuple[Floats, Floats]:
        """What `add` would return. Changes nothing."""
        here = self._found(key)
        held = np.zeros(len(first_batch)) if here is None else self._sums[here].copy()
        _add_up(held, units / sigma**2, first_batch, sums)
        weights = (units / sigma) ** 2
        return _divided(held, weights if here is None else weights + self._weights[here], first_batch)

    def get(self, key: Sequence[int], first_batch: Ints) -> tuple[Floats, Floats]:
        """The mean so far and its deviation, infinite where nothing was measured. Changes nothing."""
        here = self._found(key)
        if here is None:
            return np.zeros(len(first_batch)), np.full(len(first_batch), np.inf)
        return self._mean(here, first_batch)

    def fallback(self, key: Sequence[int], first_batch: Ints) -> tuple[Floats, Floats]:
        """As `get`, but of the row of the same last item after the nearest set, where there is none after this set."""
        before, item = set(key[:-1]), key[-1]
        apart = []
        for place in np.flatnonzero(self._used[:-1] > 0).tolist():
            known = [other for other in self._keys[place].tolist() if other >= 0]
            if known[-1:] == [item]:
                apart.append((len(before ^ set(known[:-1])), place))
        if not apart:
            return np.zeros(len(first_batch)), np.full(len(first_batch), np.inf)
        distance, place = min(apart)
        mean, deviation = self._mean(place, first_batch)
        return mean, np.hypot(deviation, OFF * np.maximum(mean, 0.0)) if distance else deviation

    def _mean(self, place: int, first_batch: Ints) -> tuple[Floats, Floats]:
        return _divided(self._sums[place].copy(), self._weights[place], first_batch)

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


def _divided(sums: Floats, weights: Floats, first_batch: Ints) -> tuple[Floats, Floats]:
    """Means in place of sums, and deviations: infinite where nothing was measured."""
    deviations = np.empty(len(sums))
    _divide(sums, weights, first_batch, deviations)
    return sums, deviations


@kernel
def _add_up(total: Floats, each: Floats, first_batch: Ints, sums: Ints | Floats) -> None:
    """total += what was measured, by the factor of the batch in which an item appeared; 0 for those that have not."""
    for item in range(len(total)):
        if first_batch[item] < len(each):
            total[item] += each[first_batch[item]] * sums[item]


@kernel
def _divide(sums: Floats, weights: Floats, first_batch: Ints, deviations: Floats) -> None:
    for item in range(len(sums)):
        weight = weights[first_batch[item]] if first_batch[item] < len(weights) else 0.0
        sums[item] = sums[item] / weight if weight > 0 else 0.0
        deviations[item] = 1 / math.sqrt(weight) if weight > 0 else np.inf
