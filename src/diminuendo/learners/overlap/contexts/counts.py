"""Which share of users is of each type, and has each value: exact where contexts are public, else as published.

Public contexts are counted when users come, batch by batch, so that what is published of a value can be divided by the
users who have it. Where contexts are private nothing may depend on how many users have a value: each release
publishes that with noise, and only what was published is used.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from diminuendo.streams.contexts import Contexts
from diminuendo.types import Floats, Ints


class TypeCounts:
    """Users by type, where that is public; else shares by value that were published."""

    def __init__(self, contexts: Contexts, batches: int) -> None:
        self.contexts, sizes = contexts, contexts.sizes
        self.values = contexts.values_of(np.arange(contexts.n_types))
        """(types, columns): the value of each type, -1: not known."""
        counted = (0, 0) if contexts.private else (batches, contexts.n_types)
        self._by_type = np.zeros(counted, dtype=np.int32)
        # Of private contexts: shares as they were published, each times its precision; and, last, all precisions.
        self._published = tuple(np.zeros(size + 1 if contexts.private else 0) for size in sizes)
        self.arrays = (self._by_type, *self._published)

    def __repr__(self) -> str:
        return f"<TypeCounts: {self.contexts}>"

    def record_arrivals(self, batch: int, types: Ints) -> None:
        """Users of these types came in that batch, whose answers count. Private contexts are not counted."""
        if not self.contexts.private:
            np.add.at(self._by_type[batch], types, 1)

    def publish(self, column: int, shares: Floats, deviation: float) -> None:
        """Of private contexts: shares of users by value, as published, with noise of that deviation."""
        precision = deviation**-2.0
        self._published[column][:-1] += precision * shares
        self._published[column][-1] += precision

    def published(self, column: int) -> tuple[Floats, float]:
        """Of private contexts: the shares published so far, on average, and the deviation of their noise."""
        *result, precision = self._published[column]
        if precision == 0:
            return np.zeros(len(result)), np.inf
        return np.array(result) / precision, float(precision**-0.5)

    def type_shares(self, weights: Ints, response_rate: float, users: float) -> Floats:
        """Which share of the users who answer is of each type, those of batch j counting weights[j] times.

        `users`: all who answer, with their weights. Of private contexts: as was published, columns independent.
        """
        if not self.contexts.private:
            counted: Floats = weights.astype(np.float64) @ self._by_type[: len(weights)]
            return response_rate * counted / users
        return self._published_types()

    def _published_types(self) -> Floats:
        """Shares of types by those of values, columns independent."""
        result = np.ones(self.contexts.n_types)
        for column, values in enumerate(self.values.T):
            shares = np.maximum(self.published(column)[0], 0.0)
            result *= np.append(shares, max(0.0, 1.0 - shares.sum()))[values]  # -1, not known, is the last
        return result

    def shares_since(self, first: int, number: int, users: float) -> Floats:
        """Which share of the users of batches from `first` to `number` is of each type."""
        since = np.arange(number + 1) >= first
        return self.type_shares(since.astype(np.int64), 1.0, max(1.0, users))

    def forget(self) -> None:
        """After drift, perhaps other users arrive: what was published before does not count any more."""
        for part in self._published:
            part[:] = 0.0

    def with_counts(self, released: Callable[[int], tuple[Floats, float] | None]) -> TypeCounts:
        """These with what a release says of each column: shares, and the deviation of their noise. Changes nothing."""
        updated = copy.copy(self)
        updated._published = tuple(part.copy() for part in self._published)
        for column in range(len(self.contexts.columns)):
            counted = released(column)
            if counted is not None:
                updated.publish(column, *counted)
        return updated

    def value_shares(self, column: int, type_shares: Floats) -> Floats:
        """The shares of the values of one column, by those of types."""
        values = self.values[:, column]
        known = values >= 0
        result: Floats = np.zeros(self.contexts.sizes[column])
        np.add.at(result, values[known], type_shares[known])
        return result

    def present(self) -> Ints:
        """The types that may have a slate of their own: all, where contexts are private; else those that came."""
        if self.contexts.private:
            return np.arange(self.contexts.n_types)
        arrived = self._by_type.sum(axis=0) > 0
        arrived[0] = True
        return np.flatnonzero(arrived)

    def together(self, column: int, other: int, type_shares: Floats) -> Floats:
        """(values of one, values of the other): which share of users with a value has each value of another column."""
        mine, others = self.values[:, column], self.values[:, other]
        both = (mine >= 0) & (others >= 0)
        result = np.zeros((self.contexts.sizes[column], self.contexts.sizes[other]))
        np.add.at(result, (mine[both], others[both]), type_shares[both])
        return result / np.maximum(self.value_shares(column, type_shares), 1e-12)[:, None]
