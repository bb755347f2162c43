r"""The posterior of a swap query, which items are swapped, and what is still known after a swap.

A swap query of a slate (sums/greedy_queries/swap.py) measures R, what each item would add to it, and D_i, what the item
of slot i keeps others from adding. So item x in the place of a_i would be worth R(x) + D_i(x), and a_i D_i(a_i).
Where x is better by SURE deviations they are swapped: else the best of k N noisy numbers would always be. A swap is
*local* if x serves mostly the users whom a_i served. Any number of local swaps may be made at once, of others one.

After a swap the slate is another one, and so are R and the D_i; but not by much. Most items have nothing to do with the
one that left, and R moves by at most what that one kept from them. So what was measured stays, as a measurement that is
off by about a third of itself; but nothing is known of what the new item keeps from others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.posterior import Posterior, from_singletons
from diminuendo.learners.overlap.query_weights import ranks
from diminuendo.learners.overlap.running_means import OFF
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

SURE, LOCAL = 1.5, 0.6
"""By how many deviations an item must be better; and which share of what it would be worth must come from users whom
the old one serves, for a swap to be local."""


class Carried(NamedTuple):
    """Means and deviations of all parts around a slate that was not asked around yet."""

    means: Floats
    deviations: Floats


class Swaps(NamedTuple):
    """Items that would be better in some slot, one entry each; the best is the largest by these in turn."""

    gain: Floats
    local: NDArray[np.bool_]
    slot: Ints
    item: Items


class SwapPosterior:
    """What is believed of the rest, and of what each slot keeps; from means and deviations of all parts."""

    def __init__(self, slate: Items, means: Floats, deviations: Floats) -> None:
        self.slate, self._means, self._deviations = slate, means, deviations
        self.residual, *self.contributions = map(from_singletons, means, deviations)

    def __repr__(self) -> str:
        return f"<SwapPosterior: {self.slate.tolist()}>"

    def worth(self, slot: int) -> tuple[Floats, Floats]:
        """What each item would be worth in the place of a slot's item, and that one where it is; and the variance."""
        kept, item = self.contributions[slot], self.slate[slot]
        mean, variance = self.residual.mean + kept.mean, self.residual.variance + kept.variance
        if item != EMPTY_SLOT:
            mean[item], variance[item] = kept.mean[item], kept.variance[item]
        return mean, variance

    def standing(self, items: ItemAvailability) -> tuple[Floats, Floats]:
        """The best rank of each item for any slot, and how many want it, about."""
        wanted = np.maximum(self.residual.mean, 0.0) + np.sqrt(self.residual.variance)
        places = np.full(len(wanted), float(len(wanted)))
        for slot, item in enumerate(self.slate.tolist()):
            wanted += np.maximum(self.contributions[slot].mean, 0.0)
            shown = [] if item == EMPTY_SLOT else [item]
            among = np.append(items.rivals(self.slate, slot), shown).astype(np.int64)
            np.minimum(places, ranks(self.worth(slot)[0], among), out=places)
        return places, wanted

    def better(self, slot: int, items: ItemAvailability) -> Swaps:
        """Items that are surely better in that slot."""
        item = int(self.slate[slot])
        (mean, variance), rivals = self.worth(slot), items.rivals(self.slate, slot)
        gain = mean[rivals] - mean[item]
        sure = np.flatnonzero(gain > SURE * np.sqrt(variance[rivals] + variance[item]))
        result = rivals[sure] if item != EMPTY_SLOT else rivals[:0]
        local = self.contributions[slot].mean[result] >= LOCAL * mean[result]
        return Swaps(gain[sure][: len(result)], local, np.full(len(result), slot), result)

    def carried(self, slate: Items) -> Carried:
        """What is known around another slate, some of whose items are new."""
        new = np.flatnonzero(slate != self.slate)
        means, off = (
            self._means.copy(),
            np.array([_third(part) for part in (self.residual, *self.contributions)]),
        )
        back = np.maximum(means[1 + new], 0.0).sum(axis=0)  # items that left kept this much from others
        means[0] += back / 2
        off[0] += back / 2
        off[1 + new] = np.inf
        off[:, np.append(self.slate[new], slate[new])] = np.inf
        return Carried(means, np.hypot(self._deviations, off))


def swapped(swap: SwapPosterior, items: ItemAvailability) -> Items:
    """The slate with the best swaps made, each slot and item once; of swaps that are not local the best alone.

    Each keeps to the rules beside those that were made before it; what is pinned is not swapped.
    """
    slate, remote_rounds = swap.slate.copy(), False
    result = [swap.better(slot, items) for slot in range(len(slate))]
    swaps = Swaps(*(np.concatenate(part) for part in zip(*result, strict=True)))
    waiting, taken = set(swaps.slot.tolist()), set[int]()
    for best in np.lexsort(swaps[::-1])[::-1].tolist():
        if not waiting:
            break
        local, slot, item = bool(swaps.local[best]), int(swaps.slot[best]), int(swaps.item[best])
        free = slot in waiting and item not in taken and (local or not remote_rounds)
        if free and items.fitted.room(slate, slot, item):
            slate[slot] = item
            waiting.remove(slot)
            taken.add(item)
            remote_rounds |= not local
    return slate


def _third(part: Posterior) -> Floats:
    return OFF * np.maximum(part.mean, 0.0)
