"""Greedy on all sums of a release, where not every question was asked.

Which rows were measured is known beforehand: those along chains that were picked before. When another item is picked,
nobody may have been asked what the others lose by it after just this set. Then the row of the same item after the
nearest set is taken instead, as a measurement that is off by about a third of itself. An item that never joined any
chain is taken to cost the others nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.learners.overlap.items import Shelf
from diminuendo.learners.overlap.pick import GreedyChain, Measured
from diminuendo.learners.overlap.running_means import RunningMeans
from diminuendo.types import Floats, Ints

OFF = 0.3
"""By which share of itself a row after one set differs from the row after another, about."""


class NearbyChain(GreedyChain):
    """Takes in all rows and rests of a release before it picks; `before` is in order."""

    def __init__(self, shelf: Shelf, batches: int) -> None:
        super().__init__(shelf, batches)
        self._rows = NearbyRows(2 * shelf.slots, shelf.slots + 1, shelf.n_items, batches)

    def take_in(self, item: int, before: Sequence[int], found: Measured) -> None:
        """What others lose when `item` joins those before; or, where none joins (negative), what is left after them."""
        means, key = (self._rows, [*before, item]) if item >= 0 else (self._rests, [*before])
        means.add(key, *found, self._shelf.since)


class NearbyRows(RunningMeans):
    """Where nothing was measured after a set, what was measured after the nearest."""

    def get(self, key: Sequence[int], since: Ints) -> tuple[Floats, Floats]:
        """The mean of the nearest row and its deviation, infinite where there is none. Changes nothing."""
        before, item = set(key[:-1]), key[-1]
        apart = []
        for place in np.flatnonzero(self._used[:-1] > 0).tolist():
            known = [other for other in self._keys[place].tolist() if other >= 0]
            if known[-1:] == [item]:
                apart.append((len(before ^ set(known[:-1])), place))
        if not apart:
            return np.zeros(len(since)), np.full(len(since), np.inf)
        distance, place = min(apart)
        mean, deviation = self._mean(place, since)
        return mean, np.hypot(deviation, OFF * np.maximum(mean, 0.0)) if distance else deviation
