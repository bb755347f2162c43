"""A slate from one release: ask for singles, pick the best item, ask what the others lose by it, pick the next.

Answers come with noise; means over earlier releases of the same question take part, each counting by its precision, and
what is believed then decides (belief.py). Everything here was published.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from diminuendo.learners.belief import of_singles
from diminuendo.learners.running_means import RunningMeans
from diminuendo.learners.shelf import Shelf
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

FAR = 50.0
"""Published numbers are not so many deviations away from what they can be; what is was altered."""


class Measured(NamedTuple):
    """Weighted sums over people, with noise, as published."""

    sums: Ints | Floats
    units: Floats
    """[j]: the weight of everybody from batch j on, in the units of the sums."""
    sigma: float


class Questions(Protocol):
    """One release: singles once, then rows, then the rest once. None: it cannot be had."""

    def singles(self) -> Measured:
        """What each item is worth by itself."""

    def row(self, item: int) -> Measured | None:
        """What each item loses when this one joins."""

    def rest(self) -> Measured | None:
        """What is left of each item."""


class GreedyChain:
    """Means of everything published, by question; and what items were believed to add to the last slate."""

    def __init__(self, shelf: Shelf, batches: int) -> None:
        n_items, slots = shelf.n_items, shelf.slots
        self._shelf = shelf
        self.gains: Floats = np.zeros(n_items)
        self._worth = RunningMeans(1, 1, n_items, batches)
        self._rows = RunningMeans(2 * slots, slots + 1, n_items, batches)
        self._rests = RunningMeans(4, slots, n_items, batches)

    def begin_with(self, scores: Floats, units: Floats, sigma: float) -> None:
        """A public prior, as if it had been measured."""
        self._worth.add([0], scores * units[0], units, sigma, np.zeros_like(self._shelf.since))
        self.gains[:] = scores

    def slate(self, asked: Questions) -> Items:
        """The slate that is greedy on what is believed, item by item."""
        since = self._shelf.since
        belief = of_singles(*self._worth.add([0], *asked.singles(), since))
        slate: Items = np.full(self._shelf.slots, EMPTY_SLOT, dtype=np.int32)
        chain: list[int] = []
        for left in range(len(slate), 0, -1):
            if left == 1:
                belief = belief.see(*self._mean(self._rests, sorted(chain), asked.rest()))
            found = self._shelf.pick(belief.mean, slate)
            if found is None:
                break
            slot, item = found
            slate[slot] = item
            if left > 1:
                belief = belief.lose(*self._mean(self._rows, [*sorted(chain), item], asked.row(item)))
                chain.append(item)
        self.gains[:] = belief.mean
        return slate

    def _mean(self, means: RunningMeans, key: list[int], found: Measured | None) -> tuple[Floats, Floats]:
        since = self._shelf.since
        return means.get(key, since) if found is None else means.add(key, *found, since)

    def fill(self, slate: Items) -> None:
        """Free slots get the best by what was believed last."""
        while found := self._shelf.pick(self.gains, slate):
            slate[found[0]] = found[1]

    def forget(self) -> None:
        """Tastes have changed."""
        for means in (self._worth, self._rows, self._rests):
            means.forget()

    @property
    def arrays(self) -> Any:
        """For a snapshot."""
        return self.gains, self._worth.arrays, self._rows.arrays, self._rests.arrays

    def sound(self) -> bool:
        """Whether these numbers, as read from a snapshot, can have come about."""
        n_items, measured = self._shelf.n_items, self._worth.arrays[2]
        widest = 1 / np.sqrt(measured[measured > 0].min(initial=1.0))
        return bool(
            (np.abs(self.gains) <= 1 + FAR * widest).all()
            and self._worth.sound(1, FAR)
            and self._rows.sound(n_items, FAR)
            and self._rests.sound(n_items, FAR)
        )
