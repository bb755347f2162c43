"""What is published of each value of each column, besides a chain or an around: sums in cells, and counts.

Where users have contexts (streams/contexts.py), a release may tell apart what users of each value of a column say of
items by themselves: a *cell* is a value and an item. All cells are published, also those that no user is in. A user
is in one value of each column, so a whole column costs what the singleton values of all users together cost, however
many values it has; also where a user's value is as private as their answer, because a release is charged as if a
user's two versions touched different numbers anyway (docs/maths/contexts.md, Theorem X1). Where values are private,
how many users have each is published with noise too.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cost import shared_deviations
from diminuendo.sums.greedy_queries.participants import Participants
from diminuendo.sums.greedy_queries.query_weights import SHARES, checked_weights
from diminuendo.types import Ints


class ValueColumn(NamedTuple):
    """One column, as sums see it."""

    size: int
    """How many values it has."""
    of_type: Ints
    """The value of each type of users; -1: not known, and in no cell."""


class SharedQueryWeights(NamedTuple):
    """Public choices for one release in contexts: weights of items, and how many of SHARES parts of the cost go where.

    Shares are whole numbers, not negative, and add up to SHARES at most.
    """

    weights: Ints
    """A whole number from 1 to FULL for each item (query_weights.py)."""
    singletons: int
    """Into singleton values of all users; 0 for a swap query."""
    others: int
    """Into rows and rests, or into the question around a slate."""
    cells: tuple[int, ...]
    """Into the cells of each column."""
    counts: tuple[int, ...]
    """Into how many users have each value of each column."""

    def kept(self, paid: Paid, secret: SecretRandomness) -> SharedQueryWeights:
        """This focus, kept with a release that was paid for; or the one that was kept with it before a crash."""
        shares = [self.singletons, self.others, *self.cells, *self.counts]
        written = paid.once("focus", lambda: np.concatenate([shares, self.weights]), secret)
        first, columns = len(shares), len(self.cells)
        singletons, others, *split = (int(share) for share in written[:first])
        result = SharedQueryWeights(
            written[first:], singletons, others, tuple(split[:columns]), tuple(split[columns:])
        )
        return checked_shares(result, len(self.weights), columns)


def checked_shares(query_weights: SharedQueryWeights, n_items: int, columns: int) -> SharedQueryWeights:
    """A focus in contexts after validation."""
    shares = (query_weights.singletons, query_weights.others, *query_weights.cells, *query_weights.counts)
    whole = all(isinstance(share, int) and 0 <= share <= SHARES for share in shares)
    if not whole or sum(shares) > SHARES or query_weights.others == 0:
        raise InvalidInput(f"Shares are from 0 to {SHARES} parts, and add up to that at most; got {shares}.")
    if (len(query_weights.cells), len(query_weights.counts)) != (columns, columns):
        raise InvalidInput(f"There is a share for the cells and the counts of each of {columns} columns.")
    return query_weights._replace(weights=checked_weights(query_weights.weights, n_items))


class Deviations(NamedTuple):
    """Of the noise on each part of a release; infinite where it is not published."""

    singletons: float
    others: float
    cells: tuple[float, ...]
    counts: tuple[float, ...]


def deviations(
    query_weights: SharedQueryWeights, cost: Fraction, clip: Clip, sizes: Sequence[int], others: int
) -> Deviations:
    """The deviations with which a release costs no more than `cost`; `others`: by what rows, or arounds, shift."""
    n_items = len(query_weights.weights)
    cells = [clip.sensitivity_squared(n_items * size) for size in sizes]
    shifts = [clip.sensitivity_squared(n_items), others, *cells, *([2 * clip.limit**2] * len(sizes))]
    shares = (query_weights.singletons, query_weights.others, *query_weights.cells, *query_weights.counts)
    result = shared_deviations(
        cost, [(Fraction(share, SHARES), shift) for share, shift in zip(shares, shifts, strict=True)]
    )
    columns = len(sizes)
    return Deviations(result[0], result[1], result[2 : 2 + columns], result[2 + columns :])


class CellRelease:
    """The cells and the counts of one release over a frozen set of users. Each column is drawn as a whole, once."""

    __getstate__ = refuse_copies

    def __init__(
        self,
        users: Participants,
        columns: Sequence[ValueColumn],
        clip: Clip,
        paid: Paid,
        apart: Deviations,
        n_items: int,
    ) -> None:
        self._users, self._columns, self._paid = users, columns, paid
        self.deviations, self.limit, self._n_items = apart, clip.limit, n_items

    def __repr__(self) -> str:
        return f"<CellRelease {self._paid.name}, {len(self._columns)} columns>"

    def cells(self, column: int, secret: SecretRandomness) -> Ints | None:
        """(values, items): the weighted sums of what each item is worth by itself, with noise; None: no share."""
        sigma, (size, of_type) = self.deviations.cells[column], self._columns[column]
        if np.isinf(sigma):
            return None
        part, shape = f"cells{column:04d}", (size, self._n_items)
        total = None if self._paid.has(part) else self._users.sums((), of_type, size)

        def draw() -> Ints:
            assert total is not None
            return rounded_normal.rounded_normal(total, sigma, secret).ravel()

        return self._paid.once(part, draw, secret).reshape(shape)

    def counts(self, column: int, secret: SecretRandomness) -> Ints | None:
        """For each value the sum of weights of its users, in ticks, with noise; None where it has no share."""
        sigma, (size, of_type) = self.deviations.counts[column], self._columns[column]
        if np.isinf(sigma):
            return None

        part = f"counts{column:04d}"
        total = None if self._paid.has(part) else self._users.counts(of_type, size, self.limit)

        def draw() -> Ints:
            assert total is not None
            return rounded_normal.rounded_normal(total, sigma, secret)

        return self._paid.once(part, draw, secret)
