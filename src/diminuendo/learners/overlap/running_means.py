"""Means of rows that were published for the same question more than once, for as many questions as there is room.

A row holds weighted sums over users, with noise. `units[a]` is what all users who were asked about item a could add
to its sum at most, so the mean is sum / units; it is 0 where nobody was asked. Measurements count by their precision,
item by item. A question may have several parts, published together with the same noise.

*Rows of other sets.* What others lose by an item after one set is about what they lose by it after another. So rows of
the same item after other sets take part, each as a measurement that is off by about a third of itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.types import Floats, Ints


class Measured(NamedTuple):
    """Weighted sums over users, with noise, as published."""

    sums: Ints | Floats
    """One number per item; or (parts, items), where several were published together."""
    units: Floats
    """For each item what users can add to its sum at most; 0 where nobody was asked about it."""
    sigma: float
    """The deviation of the noise."""

    @property
    def rows(self) -> Ints | Floats:
        """(parts, items)."""
        return self.sums.reshape(-1, len(self.units))


def units_since(weights: Floats, first_batch: Ints) -> Floats:
    """[a]: the weight of everybody from the batch on in which item a appeared; [j] of `weights`: from batch j on."""
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
        self._before: dict[int, tuple[Ints, Floats, Floats]] | None = (
            None  # of places that were changed since
        )

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """A piece of work that adds to these means; should it fail, they are as before, and it may be tried again."""
        used, self._before = self._used.copy(), {}
        try:
            yield
        except BaseException:
            for place, (key, sums, precisions) in self._before.items():
                self._keys[place], self._sums[place], self._precisions[place] = key, sums, precisions
            self._used[:] = used
            raise
        finally:
            self._before = None

    def add(self, key: Sequence[int], found: Measured) -> None:
        """Take one more measurement."""
        place = self._place(key)
        _add_up(found.rows, found.units, found.sigma, self._sums[place], self._precisions[place])

    def add_each(self, found: Sequence[tuple[Sequence[int], Measured]]) -> None:
        """As `add`, for many keys at once."""
        known = self._known() if len(found) > 1 else None
        for key, measured in found:
            place = self._place(key) if known is None else self._place_among(known, key)
            _add_up(measured.rows, measured.units, measured.sigma, self._sums[place], self._precisions[place])

    def put(self, key: Sequence[int], means: Floats, deviations: Floats) -> None:
        """What is known of this key already, in place of whatever was."""
        place = self._place(key)
        self._precisions[place] = deviations**-2.0
        self._sums[place] = means * self._precisions[place]

    def would_be(self, key: Sequence[int], *found: Measured) -> tuple[Floats, Floats]:
        """The mean of this key with more measurements, part by part, and the deviation. Changes nothing."""
        here = self._found(key)
        sums = np.zeros(self._sums.shape[1:]) if here is None else self._sums[here].copy()
        precisions = np.zeros_like(sums) if here is None else self._precisions[here].copy()
        for each in found:
            _add_up(each.rows, each.units, each.sigma, sums, precisions)
        return _divided(sums, precisions)

    def would_be_each(
        self, keys: Sequence[Sequence[int]], found: Sequence[Measured] | None
    ) -> tuple[Floats, Floats]:
        """(keys, items): as `would_be` for many keys of one part, each with what was found for it, if anything."""
        known = self._known()
        places = [known.get(self._padded_key(key)) for key in keys]
        size = (len(keys), self._sums.shape[2])
        sums, precisions = np.zeros(size), np.zeros(size)
        for number, place in enumerate(places):
            if place is not None:
                sums[number], precisions[number] = self._sums[place, 0], self._precisions[place, 0]
        for number, each in enumerate(found or ()):
            here = slice(number, number + 1)
            _add_up(each.rows, each.units, each.sigma, sums[here], precisions[here])
        return _divided(sums, precisions)

    def get(self, key: Sequence[int]) -> tuple[Floats, Floats]:
        """The mean so far and its deviation, infinite where nothing was measured. Changes nothing."""
        here = self._found(key)
        return self._nothing() if here is None else self._mean(here)

    def with_others(self, key: Sequence[int], measured: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """A mean and its deviation, joined by rows of the same last item after other sets."""
        before, item = set(key[:-1]), key[-1]
        mean, deviation = measured
        precision = deviation**-2.0
        total = np.where(precision > 0, mean, 0.0) * precision
        for place in np.flatnonzero(self._used[:-1] > 0).tolist():
            known = [other for other in self._keys[place].tolist() if other >= 0]
            if known[-1:] == [item] and set(known[:-1]) != before:
                other, apart = self._mean(place)
                weight = np.hypot(apart, OFF * np.maximum(other, 0.0)) ** -2.0
                total, precision = total + weight * other, precision + weight
        return _divided(total, precision)

    def _nothing(self) -> tuple[Floats, Floats]:
        _, parts, size = self._sums.shape
        return np.zeros((parts, size)), np.full((parts, size), np.inf)

    def _mean(self, place: int) -> tuple[Floats, Floats]:
        return _divided(self._sums[place].copy(), self._precisions[place].copy())

    def _known(self) -> dict[tuple[int, ...], int]:
        """The place of every key that is used."""
        used = np.flatnonzero(self._used[:-1])
        return dict(zip(map(tuple, self._keys[used].tolist()), used.tolist(), strict=True))

    def _padded_key(self, key: Sequence[int]) -> tuple[int, ...]:
        return (*key, *[-1] * (self._keys.shape[1] - len(key)))

    def _place_among(self, known: dict[tuple[int, ...], int], key: Sequence[int]) -> int:
        """As `_place`, by a table of places, which stays right."""
        padded = self._padded_key(key)
        place = known.get(padded)
        if place is None:
            place = int(np.argmin(self._used[:-1]))
            known.pop(tuple(self._keys[place].tolist()), None)
        known[padded] = place
        return self._use(place, key)

    def _place(self, key: Sequence[int]) -> int:
        place = self._found(key)
        return self._use(int(np.argmin(self._used[:-1])) if place is None else place, key)

    def _use(self, place: int, key: Sequence[int]) -> int:
        """This place is this key's; whatever else was there makes way."""
        padded = self._padded(key)
        if self._before is not None and place not in self._before:
            kept = self._keys[place].copy(), self._sums[place].copy(), self._precisions[place].copy()
            self._before[place] = kept
        if self._used[place] == 0 or (self._keys[place] != padded).any():
            self._keys[place], self._precisions[place], self._sums[place] = padded, 0.0, 0.0
        self._used[-1] += 1
        self._used[place] = self._used[-1]
        return place

    def _found(self, key: Sequence[int]) -> int | None:
        here = np.flatnonzero((self._keys == self._padded(key)).all(axis=1) & (self._used[:-1] > 0))
        return int(here[0]) if len(here) else None

    def _padded(self, key: Sequence[int]) -> Ints:
        result = np.full(self._keys.shape[1], -1, dtype=np.int64)
        result[: len(key)] = key
        return result

    def forget(self) -> None:
        """All of them."""
        self._keys[:], self._sums[:], self._precisions[:], self._used[:] = -1, 0.0, 0.0, 0

    def sound(self, n_items: int) -> bool:
        """Whether these rows, as read from a snapshot, can have come about.

        How large they are tells nothing: epsilon decides about noise, and more users may answer than was said.
        """
        keys, sums, precisions, used = self.arrays
        return bool(
            np.isfinite(precisions).all()
            and (precisions >= 0).all()
            and np.isfinite(sums).all()
            and ((keys >= -1) & (keys < n_items)).all()
            and (used >= 0).all()
        )


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
