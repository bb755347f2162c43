"""Oracle: any Python function of a set.

The most general objective and the slowest: gains cost one call per item. Nothing is compiled, so a
stream of oracles is replayed round by round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diminuendo import _validate
from diminuendo._validate import as_float
from diminuendo.types import Floats, SlateLike


class Oracle:
    """An objective given as a function of a frozenset of items.

    >>> likes_pairs = Oracle(lambda items: min(1.0, len(items) / 2), n_items=4)
    >>> likes_pairs.value([0, 3])
    1.0
    """

    __slots__ = ("function", "n_items")

    def __init__(self, function: Callable[[frozenset[int]], float], n_items: int) -> None:
        self.function = function
        self.n_items = _validate.positive_int(n_items, "n_items")

    def __repr__(self) -> str:
        return f"<Oracle over {self.n_items} items>"

    def value(self, slate: SlateLike) -> float:
        """f(slate)."""
        return as_float(self.function(frozenset(_validate.slate(slate, self.n_items))))

    def gains(self, prefix: SlateLike) -> Floats:
        """f(prefix + a) - f(prefix) for every item a; shape (n_items,)."""
        items = frozenset(_validate.slate(prefix, self.n_items))
        before = as_float(self.function(items))
        found = np.zeros(self.n_items)
        for item in set(range(self.n_items)) - items:
            found[item] = as_float(self.function(items | {item})) - before
        return found
