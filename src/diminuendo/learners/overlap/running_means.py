"""Means of rows that were published for the same question more than once, for as many questions as there is room.

A row holds weighted sums over users, with noise. `units[a]` is what all users who were asked about item a could add
to its sum at most, so the mean is sum / units; it is 0 where no user was asked. Measurements count by their precision,
item by item. A question may have several parts, published together with the same noise.

*Rows of other sets.* What others lose by an item after one set is about what they lose by it after another. So rows of
the same item after other sets take part, each as a measurement that is off by about a third of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.types import Floats, Ints


class Measured(NamedTuple):
    """Weighted sums over users, with noise, as published."""

    sums: Ints | Floats
    """One number per item; or (parts, items), where several were published together."""
    units: Floats
    """For each item what users can add to its sum at most; 0 where no user was asked about it."""
    sigma: float
    """The deviation of the noise."""

    @property
    def rows(self) -> Ints | Floats:
        """(parts, items)."""
        return self.sums.reshape(-1, len(self.units))


def units_since(weights: Floats, first_batch: Ints) -> Floats:
    """[a]: the weight of all users from the batch on in which item a appeared; [j] of `weights`: from batch j on."""
    return np.append(weights, 0.0)[np.minimum(first_batch, len(weights))]


OFF = 0.3
"""By which share of itself a row after one set differs from the row after another, about."""


class RunningMeans:
    """Rows by key; when there is no room, the one used longest ago makes way."""

    def __init__(self, room: int, width: int, size: int, parts: int = 1) -> None:
        self._keys: Ints = np.full((room, width), -1, dtype=np.int64)
        self._sums: Floats = np.zeros((room, parts, size))  # each times its precision
        self._precisions: Floats = np.zeros((room, parts, size))
        self._used: Ints = np.zeros(room + 1, dtype=np.int64)  # when each was; the last entry is the clock
        self.arrays = (self._keys, self._sums, self._precisions, self._used)

    def add(self, *measurements: tuple[Sequence[int], Measured]) -> None:
        """Take one more measurement of each of these keys."""
        places = self._places()
        for key, measured in measurements:
            place = self._claim(places, key)
            _add_up(measured.rows, measured.units, measured.sigma, self._sums[place], self._precisions[place])

    def put(self, key: Sequence[int], means: Floats, deviations: Floats) -> None:
        """What is known of this key already, in place of whatever was."""
        place = self._claim(self._places(), key)
        self._precisions[place] = deviations**-2.0
        self._sums[place] = means * self._precisions[place]

    def preview(self, key: Sequence[int], *more: Measured) -> tuple[Floats, Floats]:
        """The mean of this key with more measurements, part by part, and its deviation, infinite where nothing was
        measured. Changes nothing."""
        place = self._places().get(self._padded(key))
        sums = np.zeros(self._sums.shape[1:]) if place is None else self._sums[place].copy()
        precisions = np.zeros_like(sums) if place is None else self._precisions[place].copy()
        for each in more:
            _add_up(each.rows, each.units, each.sigma, sums, precisions)
        return _divided(sums, precisions)

    def preview_each(
        self, keys: Sequence[Sequence[int]], more: Sequence[Measured] | None
    ) -> tuple[Floats, Floats]:
        """(keys, items): as `preview` for many keys of one part, each with one more measurement, if there are any."""
        places = self._places()
        size = (len(keys), self._sums.shape[2])
        sums, precisions = np.zeros(size), np.zeros(size)
        for number, key in enumerate(keys):
            if (place := places.get(self._padded(key))) is not None:
                sums[number], precisions[number] = self._sums[place, 0], self._precisions[place, 0]
        for number, each in enumerate(more or ()):
            here = slice(number, number + 1)
            _add_up(each.rows, each.units, each.sigma, sums[here], precisions[here])
        return _divided(sums, precisions)

    def pooled_over_prefixes(
        self, key: Sequence[int], measured: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """A mean and its deviation, joined by rows of the same last item after other sets."""
        before, item = set(key[:-1]), key[-1]
        mean, deviation = measured
        precision = deviation**-2.0
        total = np.where(precision > 0, mean, 0.0) * precision
        for place in np.flatnonzero(self._used[:-1] > 0).tolist():
            known = [other for other in self._keys[place].tolist() if other >= 0]
            if known[-1:] == [item] and set(known[:-1]) != before:
                other, apart = _divided(self._sums[place].copy(), self._precisions[place].copy())
                weight = np.hypot(apart, OFF * np.maximum(other, 0.0)) ** -2.0
                total, precision = total + weight * other, precision + weight
        return _divided(total, precision)

    def _places(self) -> dict[tuple[int, ...], int]:
        """The place of every key that is used."""
        used = np.flatnonzero(self._used[:-1])
        return dict(zip(map(tuple, self._keys[used].tolist()), used.tolist(), strict=True))

    def _padded(self, key: Sequence[int]) -> tuple[int, ...]:
        return (*key, *[-1] * (self._keys.shape[1] - len(key)))

    def _claim(self, places: dict[tuple[int, ...], int], key: Sequence[int]) -> int:
        """The place of this key, perhaps in the stead of another; `places` follows."""
        padded = self._padded(key)
        place = places.get(padded)
        if place is None:
            place = int(np.argmin(self._used[:-1]))
            places.pop(tuple(self._keys[place].tolist()), None)
            places[padded] = place
            self._keys[place], self._precisions[place], self._sums[place] = padded, 0.0, 0.0
        self._used[-1] += 1
        self._used[place] = self._used[-1]
        return place

    def forget(self) -> None:
        """All of them."""
        self._keys[:], self._sums[:], self._precisions[:], self._used[:] = -1, 0.0, 0.0, 0


def _divided(sums: Floats, precisions: Floats) -> tuple[Floats, Floats]:
    """Means in place of sums, and deviations in place of precisions: infinite where nothing was measured."""
    _divide(sums, precisions)
    return sums, precisions


@kernel
def _add_up(rows: Ints | Floats, units: Floats, sigma: float, sums: Floats, precisions: Floats) -> None:
    """One more measurement of every part, item by item."""
    for part in range(len(sums)):
        for item in range(len(units)):
            precisions[part, item] += (units[item] / sigma) ** 2
            sums[part, item] += units[item] / sigma**2 * rows[part, item]


@kernel
def _divide(sums: Floats, precisions: Floats) -> None:
    for part in range(len(sums)):
        for item in range(sums.shape[1]):
            precision = precisions[part, item]
            sums[part, item] = sums[part, item] / precision if precision > 0 else 0.0
            precisions[part, item] = 1 / math.sqrt(precision) if precision > 0 else np.inf
