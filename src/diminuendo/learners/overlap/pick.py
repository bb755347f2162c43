"""A slate from one release: ask for singles, pick the best item, ask what the others lose by it, pick the next.

Answers come with noise; means over earlier releases of the same question take part, each counting by its precision, and
what is believed then decides (belief.py). Everything here was published.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from diminuendo import _validate
from diminuendo._snapshots import MOST_DEVIATIONS
from diminuendo.errors import InvalidInput
from diminuendo.learners.overlap.belief import of_singles
from diminuendo.learners.overlap.items import ItemAvailability
from diminuendo.learners.overlap.running_means import RunningMeans
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


class Measured(NamedTuple):
    """Weighted sums over people, with noise, as published."""

    sums: Ints | Floats
    units: Floats
    """[j]: the weight of everybody from batch j on, in the units of the sums."""
    sigma: float


class Told(NamedTuple):
    """What was published without being asked for: what others lose when `item` joins those before it."""

    item: int | None
    """None: no item joins, and `found` is what is left after those before."""
    before: Sequence[int]
    """In rising order."""
    found: Measured


class Questions(Protocol):
    """One release: singles, then rows, then the rest. None: it cannot be had.

    Should something fail in between, the release begins again, and what was published stays what it is.
    """

    told: Sequence[Told]
    """What was published at once, before any question: to be taken in once."""

    def begin(self) -> None:
        """From the start, for the first time or again."""

    def singles(self) -> Measured:
        """What each item is worth by itself."""

    def row(self, item: int) -> Measured | None:
        """What each item loses when this one joins."""

    def rest(self) -> Measured | None:
        """What is left of each item."""


class Picked(NamedTuple):
    """A slate, and what it was picked by."""

    slate: Items
    chain: list[int]
    """The items whose rows were asked for, in order."""
    gains: Floats
    """What each item would add to the slate, as is believed."""
    published: list[tuple[RunningMeans, list[int], Measured]]
    """The answers, and the means that they belong to."""


class SlatePicker:
    """Means of everything published, by question; and what items were believed to add to the last slate.

    `fallback_rows`: whether a row that was not measured is replaced by the row of that item after another set.
    """

    def __init__(self, items: ItemAvailability, batches: int, *, fallback_rows: bool) -> None:
        n_items, slots = items.n_items, items.slots
        self._items, self._fallback_rows = items, fallback_rows
        self.gains: Floats = np.zeros(n_items)
        self._worth = RunningMeans(1, 1, n_items, batches)
        self._rows = RunningMeans(2 * slots, slots + 1, n_items, batches)
        self._rests = RunningMeans(4, slots, n_items, batches)

    def begin_with(self, scores: Floats, units: Floats, sigma: float) -> None:
        """A public prior, as if it had been measured."""
        self._worth.add([0], scores * units[0], units, sigma, np.zeros_like(self._items.first_batch))
        self.gains[:] = scores

    def take_in(self, told: Iterable[Told]) -> None:
        """Rows and rests that were published before the first item is picked."""
        for item, before, found in told:
            means, key = (self._rests, [*before]) if item is None else (self._rows, [*before, item])
            means.add(key, *found, self._items.first_batch)

    def slate(self, asked: Questions) -> Picked:
        """The slate that is greedy on what is believed with these answers. Nothing is changed until `take`."""
        asked.begin()
        new: list[tuple[RunningMeans, list[int], Measured]] = []

        def mean(means: RunningMeans, key: list[int], found: Measured | None) -> tuple[Floats, Floats]:
            if found is not None:
                new.append((means, key, found))
                return means.would_be(key, *found, self._items.first_batch)
            known = means.fallback if means is self._rows and self._fallback_rows else means.get
            return known(key, self._items.first_batch)

        belief = of_singles(*mean(self._worth, [0], asked.singles()))
        slate: Items = np.full(self._items.slots, EMPTY_SLOT, dtype=np.int32)
        chain: list[int] = []
        for left in range(len(slate), 0, -1):
            if left == 1:
                belief = belief.see(*mean(self._rests, sorted(chain), asked.rest()))
            picked = self._items.pick(belief.mean, slate)
            if picked is None:
                break
            slot, item = picked
            slate[slot] = item
            if left > 1:
                belief = belief.lose(*mean(self._rows, [*sorted(chain), item], asked.row(item)))
                chain.append(item)
        return Picked(slate, chain, belief.mean, new)

    def take(self, picked: Picked) -> None:
        """Go on from what was published for this slate: once for each release."""
        for means, key, found in picked.published:
            means.add(key, *found, self._items.first_batch)
        self.gains[:] = picked.gains

    def fill(self, slate: Items) -> None:
        """Free slots get the best by what was believed last."""
        while found := self._items.pick(self.gains, slate):
            slate[found[0]] = found[1]

    def forget(self) -> None:
        """Tastes have changed: nothing that was published before counts any more."""
        for means in (self._worth, self._rows, self._rests):
            means.forget()

    @property
    def arrays(self) -> Any:
        """For a snapshot."""
        return self.gains, self._worth.arrays, self._rows.arrays, self._rests.arrays

    def sound(self) -> bool:
        """Whether these numbers, as read from a snapshot, can have come about."""
        n_items, measured = self._items.n_items, self._worth.arrays[2]
        widest = 1 / np.sqrt(measured[measured > 0].min(initial=1.0))
        return bool(
            (np.abs(self.gains) <= 1 + MOST_DEVIATIONS * widest).all()
            and self._worth.sound(1, MOST_DEVIATIONS)
            and self._rows.sound(n_items, MOST_DEVIATIONS)
            and self._rests.sound(n_items, MOST_DEVIATIONS)
        )


class Prior(NamedTuple):
    """What is known of items before anybody comes: public."""

    scores: Floats
    """Which share of people each item pleases."""
    people: int
    """As how many people that counts."""


def checked_prior(scores: Any, people: int | None, n_items: int, otherwise: int) -> Prior | None:
    """A public prior at the door, counting as `people`, or as `otherwise` people where that is None."""
    found = None if scores is None else _checked_scores(scores, n_items)
    many = otherwise if people is None else _validate.positive_int(people, "prior_people")
    return None if found is None else Prior(found, many)


def _checked_scores(scores: Any, n_items: int) -> Floats:
    found = np.array(scores, dtype=np.float64)
    if found.shape != (n_items,) or not ((found >= 0) & (found <= 1)).all():
        raise InvalidInput(
            f"prior must say for each of {n_items} items which share of people it pleases, from 0 to 1."
        )
    return found
