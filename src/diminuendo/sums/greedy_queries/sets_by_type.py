"""The sets of items that the chains of types have come to: each set once, and which of them is each type's.

Types mostly agree, so there are far fewer sets than types, and work on sets is done once for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.types import EMPTY_SLOT, Ints


class SetsByType(NamedTuple):
    """Sets are numbered in the order in which types first have them."""

    of_type: Ints
    """The number of each type's set."""
    sets: tuple[frozenset[int], ...]

    def joining(self, items: Ints) -> tuple[Ints, list[tuple[frozenset[int], int]]]:
        """As an item joins each type's chain, EMPTY_SLOT: none. For each type a number, the same for types that share
        a set and an item; and for each number the set, without the item, and the item."""
        codes = (len(self.sets) * items.astype(np.int64)) + self.of_type
        _, first, number = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        types = first[order]
        of_each = zip(self.of_type[types].tolist(), items[types].tolist(), strict=True)
        return rank[number], [(self.sets[before], item) for before, item in of_each]

    def joined_by(self, items: Ints) -> SetsByType:
        """After these items have joined. One set may come of several, by different items."""
        number, each = self.joining(items)
        known: dict[frozenset[int], int] = {}
        grown = (before if item == EMPTY_SLOT else before | {item} for before, item in each)
        result = np.array([known.setdefault(after, len(known)) for after in grown], dtype=np.int64)
        return SetsByType(result[number], tuple(known))


def no_items(n_types: int) -> SetsByType:
    """Before the first item joins."""
    return SetsByType(np.zeros(n_types, dtype=np.int64), (frozenset(),))
