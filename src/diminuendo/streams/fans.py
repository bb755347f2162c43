"""Fans: who cares about an item. The columns of a table whose rows are people.

Nobody else ever gains from the item, whatever else is shown, because returns diminish.
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import kernel
from diminuendo.objectives.family import Bag, Table, gains, start
from diminuendo.types import Floats, Ints, Items


def find_fans(table: Table, n_people: int, state: Floats, bag: Bag) -> tuple[Ints, Items]:
    """(starts, fans): the people who care about item a are fans[starts[a]:starts[a+1]], in order."""
    starts = np.zeros(len(bag.slot) + 1, dtype=np.int64)
    _count_fans(table, n_people, state, bag, starts)
    fans = np.empty(starts[-1], dtype=np.int32)
    _list_fans(table, n_people, state, bag, starts[:-1].copy(), fans)
    return starts, fans


@kernel
def _count_fans(table: Table, n: int, state: Floats, bag: Bag, starts: Ints) -> None:
    for t in range(n):
        start(table, t, state, 0)
        for j in range(gains(table, t, state, 0, bag, 0)):
            starts[bag.items[j] + 1] += 1
    for a in range(1, len(starts)):
        starts[a] += starts[a - 1]


@kernel
def _list_fans(table: Table, n: int, state: Floats, bag: Bag, free: Ints, fans: Items) -> None:
    for t in range(n):
        start(table, t, state, 0)
        for j in range(gains(table, t, state, 0, bag, 0)):
            fans[free[bag.items[j]]] = t
            free[bag.items[j]] += 1
