"""Query weights of one release, by public choice: a weight for each item, and a share of the budget for singletons.

A user who wants many things is clipped, so each of their wishes counts little. Where only a few items can still be
picked, wishes among the others drown them. The weights multiply a user's value of each item by a factor of at most 1,
anew at every release, before clipping. And where users want few things, marginal losses say little, and singletons may
have more of what a release costs. Both are functions of what was published before, so they cost nothing
(docs/maths/overlap.md, Theorem F1). They are stored with the release before anything of it is drawn. Means of what is
published divide by the weights again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.clip import Rule, clip_row
from diminuendo.types import Floats, Ints

FULL = 256
"""The weight of an item in full focus; all others have less, at least 1."""
SHARES = 1024
"""The share of singles is a whole number of parts of this size."""


class QueryWeights(NamedTuple):
    """Public choices for one release."""

    weights: Ints
    """A whole number from 1 to FULL for each item."""
    singletons: int
    """How many of SHARES parts of the cost go into singles; the others into rows and the rest."""

    @property
    def factors(self) -> Floats:
        """What is said of each item is multiplied by this before it is clipped."""
        result: Floats = self.weights / FULL
        return result

    @property
    def share(self) -> Fraction:
        """Of the cost, for singles."""
        return Fraction(self.singletons, SHARES)

    def kept(self, paid: Paid, secret: SecretRandomness) -> QueryWeights:
        """This focus, kept with a release that was paid for; or the one that was kept with it before a crash."""
        written = paid.once("focus", lambda: np.concatenate([[self.singletons], self.weights]), secret)
        return checked_query_weights(QueryWeights(written[1:], int(written[0])), len(self.weights))


def checked_query_weights(query_weights: QueryWeights, n_items: int) -> QueryWeights:
    """A focus after validation."""
    if not isinstance(query_weights.singletons, int) or not 0 < query_weights.singletons < SHARES:
        raise InvalidInput(
            f"The share of singles is between 0 and {SHARES} parts; got {query_weights.singletons}."
        )
    return QueryWeights(checked_weights(query_weights.weights, n_items), query_weights.singletons)


def checked_weights(weights: Ints, n_items: int) -> Ints:
    """The weights of items after validation."""
    result = np.array(weights)
    if result.shape != (n_items,) or not np.issubdtype(result.dtype, np.integer):
        raise InvalidInput(
            f"A focus has a whole number for each of {n_items} items; got shape {result.shape}."
        )
    if result.min() < 1 or result.max() > FULL:
        raise InvalidInput(f"Weights are from 1 to {FULL}; got {result.min()} to {result.max()}.")
    return result.astype(np.int64)


@kernel
def clip_weighted(
    rule: Rule,
    starts: Ints,
    items: Ints,
    values: Floats,
    factors: Floats,
    row: Floats,
    scratch: Ints,
    ticks: Ints,
    scales: Floats,
) -> None:
    """All users' values, times the factors of their items, clipped; `scales`: by what each user was multiplied.

    Users may lie in the midst of others: ticks begin with the first of them.
    """
    base = starts[0]
    for user in range(len(starts) - 1):
        low, size = starts[user], starts[user + 1] - starts[user]
        for j in range(size):
            row[j] = factors[items[low + j]] * values[low + j]
        scales[user] = clip_row(rule, row, 0, size, scratch)
        for j in range(size):
            ticks[low - base + j] = scratch[j]
