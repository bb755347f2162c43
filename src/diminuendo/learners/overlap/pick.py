"""A slate from one release: query singleton values, pick the best item, query marginal losses, pick the next.

Answers are noisy. Means over earlier releases of the same query take part, each weighted by its precision, and the
posterior then decides (posterior.py). Everything here was published.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.posterior import from_singletons
from diminuendo.learners.overlap.query_weights import Standing, ranks
from diminuendo.learners.overlap.running_means import Measured, RunningMeans
from diminuendo.learners.overlap.stored import StoredQuestions, StoredSwap
from diminuendo.learners.overlap.swap import Carried, SwapPosterior, swapped
from diminuendo.types import EMPTY_SLOT, Floats, Items


class Picked(NamedTuple):
    """A slate, and what it was picked by."""

    slate: Items
    prefix: list[int]
    """The items whose rows were asked for, in order."""
    gains: Floats
    """What each item would add to the slate, as is believed."""
    published: list[tuple[RunningMeans, list[int], Measured]]
    """The answers, and the means that they belong to."""
    standing: Standing | None
    """How items stand now; None where nothing was published."""
    carried: Carried | None = None
    """After a swap: what is known around the new slate."""


class SlatePicker:
    """Means of everything published, by question; and what items were believed to add to the last slate.

    `prefixes`: how many query sequences there may be at once.
    """

    def __init__(self, items: ItemAvailability, *, prefixes: int = 1) -> None:
        n_items, slots = items.n_items, items.slots
        self._items = items
        self.gains: Floats = np.zeros(n_items)
        self.worth = RunningMeans(1, 1, n_items)
        self.rows = RunningMeans(slots * (1 + prefixes), slots + 1, n_items)
        self.residuals = RunningMeans(3 + prefixes, slots, n_items)
        self._swaps = RunningMeans(1, slots, n_items, parts=slots + 1)
        self.means = (self.worth, self.rows, self.residuals, self._swaps)

    def begin_with(self, scores: Floats, users: float, sigma: float) -> None:
        """A public prior, as if it had been measured."""
        self.worth.add(([0], Measured(scores * users, np.full(len(scores), users), sigma)))
        self.gains[:] = scores

    def slate(self, release: StoredQuestions) -> Picked:
        """The slate that is greedy on the posterior, given these answers. Nothing is changed until `take`."""
        new: list[tuple[RunningMeans, list[int], Measured]] = []

        def mean(means: RunningMeans, key: list[int], result: Measured | None) -> tuple[Floats, Floats]:
            published = [] if result is None else [result]
            new.extend((means, key, each) for each in published)
            measured = means.preview(key, *published)
            if means is self.rows and published:
                measured = means.pooled_over_prefixes(key, measured)
            (row,), (deviation,) = measured
            return row, deviation

        singletons, deviation = mean(self.worth, [0], release.singletons())
        posterior = from_singletons(singletons, deviation)
        wanted = np.maximum(posterior.mean, 0.0) + np.sqrt(posterior.variance)
        slate: Items = np.full(self._items.slots, EMPTY_SLOT, dtype=np.int32)
        prefix: list[int] = []
        places = np.full(len(singletons), float(len(singletons)))
        for left in range(len(slate), 0, -1):
            if left == 1:
                posterior = posterior.condition_on_gains(
                    *mean(self.residuals, sorted(prefix), release.residual())
                )
            picked = self._items.pick(posterior.mean, slate)
            if picked is None or picked[1] not in self._items.pinned:  # else there is nothing to choose
                may = np.flatnonzero(self._items.open_to(slate))
                np.minimum(places, ranks(posterior.mean, may), out=places)
            if picked is None:
                break
            slot, item = picked
            slate[slot], places[item] = item, 1.0
            if left > 1:
                posterior = posterior.condition_on_losses(
                    *mean(self.rows, [*sorted(prefix), item], release.losses(item))
                )
                prefix.append(item)
        standing = _standing(places, wanted, slate, float(singletons.sum()))
        return Picked(slate, prefix, posterior.mean, new, standing)

    def improved(self, release: StoredSwap) -> Picked:
        """The slate that was queried, with items swapped that are surely better. Changes nothing until `take`."""
        result = release.answers()
        if result is None:
            return Picked(self._full(release.slate, self.gains), [], self.gains.copy(), [], None)
        key = release.slate.tolist()
        swap = SwapPosterior(release.slate, *self._swaps.preview(key, result))
        slate = self._full(swapped(swap, self._items), swap.residual.mean)
        standing = _standing(*swap.standing(self._items), release.slate, None)
        carried = swap.carried(slate) if (slate != release.slate).any() else None
        return Picked(slate, [], swap.residual.mean, [(self._swaps, key, result)], standing, carried)

    def take(self, picked: Picked) -> None:
        """Go on from what was published for this slate: once for each release."""
        for means in self.means:
            means.add(*[(key, result) for into, key, result in picked.published if into is means])
        if picked.carried is not None:
            self._swaps.put(picked.slate.tolist(), *picked.carried)
        self.gains[:] = picked.gains

    def fill(self, slate: Items) -> None:
        """Free slots get the best by what was believed last."""
        slate[:] = self._full(slate, self.gains)

    def _full(self, slate: Items, gains: Floats) -> Items:
        """The slate without items that are not there any more, and with the best in their place and in free slots."""
        result = self._items.kept(slate)
        while best := self._items.pick(gains, result):
            result[best[0]] = best[1]
        return result

    def forget(self) -> None:
        """After drift: nothing that was published before counts any more."""
        for means in self.means:
            means.forget()

    @property
    def arrays(self) -> Any:
        """For a snapshot."""
        return self.gains, tuple(means.arrays for means in self.means)


def _standing(places: Floats, wanted: Floats, slate: Items, wishes: float | None) -> Standing | None:
    shown = slate[slate != EMPTY_SLOT]
    return Standing(places, wanted, float(np.median(wanted[shown])), wishes) if len(shown) else None
