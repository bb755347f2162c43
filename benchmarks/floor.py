"""The floor: the least that anybody must do, as fast as the machine can do it.

Whoever learns from a person must read her row and add something to a total per slot and item; whoever
chooses greedily must count once how many people want each item. The kernels here do that and nothing
else: no draws, no gains worked out, no bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numba
import numpy as np

from diminuendo import People
from diminuendo.types import EMPTY_SLOT, Ints, Items


class Additions(NamedTuple):
    """Person t adds amounts[j] to totals[columns[j], s], for j in her row and s below depth[t]."""

    starts: Ints
    columns: Items
    amounts: Ints
    depth: Ints
    slots: int
    n_items: int

    def fresh_totals(self) -> Ints:
        """Totals of 0, of which the machine has already provided every page."""
        totals = np.empty((self.n_items, self.slots), dtype=np.int64)
        totals.fill(0)
        return totals

    def run(self, totals: Ints) -> Ints:
        """Do them all."""
        scatter(self.starts, self.columns, self.amounts, self.depth, totals)
        return totals


def additions(people: People, slates: Items) -> Additions:
    """The additions that learning from `people`, shown these slates, comes to.

    A person who has certainly clicked something before a slot has nothing to add there, so she does not.
    """
    slots = slates.shape[1]
    depth = np.zeros(len(people), dtype=np.int64)
    for slot in range(slots):
        before = np.full_like(slates, EMPTY_SLOT)
        before[:, :slot] = slates[:, :slot]
        depth += people.values(before) < 1.0
    (matrix,) = people.matrices
    amounts = np.floor(matrix.data * 2**20).astype(np.int64)
    return Additions(people.table.starts, people.table.columns, amounts, depth, slots, people.n_items)


def _scatter(starts: Ints, columns: Items, amounts: Ints, depth: Ints, totals: Ints) -> None:
    for t in range(len(starts) - 1):
        for j in range(starts[t], starts[t + 1]):
            for slot in range(depth[t]):
                totals[columns[j], slot] += amounts[j]


def _count(columns: Items, totals: Ints) -> None:
    for j in range(len(columns)):
        totals[columns[j]] += 1


_compile = cast(Callable[..., Any], numba.njit(nogil=True, error_model="numpy"))
scatter: Callable[..., None] = _compile(_scatter)
count: Callable[..., None] = _compile(_count)
