"""Oracle: any Python function of a set, the most general objective and the slowest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from diminuendo import _validate
from diminuendo._validate import as_float
from diminuendo.types import Floats, SlateLike


class Oracle:
    """An objective given as a Python function of a set of items.

    The most general objective and the slowest: `gains` calls the function once per item, and a stream of oracles is
    replayed round by round.

    Parameters
    ----------
    function : callable
        Takes a frozenset of items and returns a number in [0, 1]. It should be monotone and submodular, and 0 for
        the empty set; `diminuendo.check` looks for violations.
    n_items : int
        Number of items.

    Raises
    ------
    InvalidInput
        If `n_items` is not a positive integer.

    Notes
    -----
    Learners clip gains before they enter a private sum, so a function that breaks the rules costs regret, not
    privacy.

    Examples
    --------
    >>> likes_pairs = Oracle(lambda items: min(1.0, len(items) / 2), n_items=4)
    >>> likes_pairs.value([0, 3])
    1.0
    >>> likes_pairs.gains([0, 3]).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    __slots__ = ("function", "n_items")

    def __init__(self, function: Callable[[frozenset[int]], float], n_items: int) -> None:
        self.function = function
        self.n_items = _validate.positive_int(n_items, "n_items")

    def __repr__(self) -> str:
        return f"<Oracle over {self.n_items} items>"

    def value(self, slate: SlateLike) -> float:
        """Return f(slate).

        Parameters
        ----------
        slate : sequence of int
            Distinct items.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the slate is not of distinct items in range.
        """
        return as_float(self.function(frozenset(_validate.slate(slate, self.n_items))))

    def gains(self, prefix: SlateLike) -> Floats:
        """Return the marginal gain f(prefix + a) - f(prefix) of every item a.

        Parameters
        ----------
        prefix : sequence of int
            Distinct items.

        Returns
        -------
        ndarray of float, shape (n_items,)
            0 for items of the prefix.
        """
        items = frozenset(_validate.slate(prefix, self.n_items))
        before = as_float(self.function(items))
        result = np.zeros(self.n_items)
        for item in set(range(self.n_items)) - items:
            result[item] = as_float(self.function(items | {item})) - before
        return result
