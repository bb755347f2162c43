"""Regret: how much better one could have done with hindsight.

Everything here looks at what people wanted. It is for evaluation and is not private.
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import kernel
from diminuendo.objectives.family import Bag, Table, add, gains, new_bag, start
from diminuendo.streams.people import People, Stream, shown_before
from diminuendo.types import EMPTY_SLOT, Floats, Items


def expert_regrets(stream: Stream, slates: Items) -> Floats:
    """For each slot: what its best fixed item would have added to the slots before it, minus what was added.

    The sum of those above 0 bounds the (1 - 1/e)-regret of the run (docs/maths/hedge.md, Theorem 2). Per round.
    """
    n, k = slates.shape
    totals, own = np.zeros((k, stream.n_items)), np.zeros(k)
    if isinstance(stream, People):
        bag = new_bag(stream.n_items, stream.family.leaves)
        _add_up(stream.table, slates, np.empty(stream.largest_state), bag, totals, own)
    else:
        for t in range(n):
            prefix: list[int] = []
            for slot, item in enumerate(slates[t]):
                added = stream[t].gains(prefix)
                totals[slot] += added
                if item != EMPTY_SLOT:
                    own[slot] += added[item]
                    prefix.append(int(item))
    regrets: Floats = (totals.max(axis=1) - own) / max(1, n)
    return regrets


@kernel
def _add_up(table: Table, slates: Items, state: Floats, bag: Bag, totals: Floats, own: Floats) -> None:
    for t in range(slates.shape[0]):
        start(table, t, state, 0)
        for slot in range(slates.shape[1]):
            for j in range(gains(table, t, state, 0, bag, 0)):
                item = bag.items[j]
                if not shown_before(slates[t], slot, item):
                    totals[slot, item] += bag.gains[j]
                    if item == slates[t, slot]:
                        own[slot] += bag.gains[j]
            if slates[t, slot] != EMPTY_SLOT:
                add(table, t, state, 0, slates[t, slot])
