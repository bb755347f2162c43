r"""One release around a slate: what each item would add to it, and what each shown item keeps others from adding.

For a public slate of a_1 .. a_k every user enters with one vector of k + 1 parts:

    rest     R(x) = g(x | slate)
    keeps    D_i(x) = g(x | slate without a_i) - g(x | slate)

times the focus of the release, clipped as one vector. There is one draw, and nothing in it depends on another part of
the same release, so it costs what any vector of that length costs, for any functions whatever (docs/maths/overlap.md,
Theorem F2). R + D_i says what each item would be worth in the place of a_i, and D_i(a_i) what a_i is worth there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.greedy_queries.participants import Participants
from diminuendo.sums.greedy_queries.release import OtherSequence
from diminuendo.types import EMPTY_SLOT, Floats, Ints


class SwapRelease:
    """One release over a frozen set of users, of what they say around a slate. Drawn as a whole, once."""

    __getstate__ = refuse_copies

    def __init__(
        self,
        users: Participants,
        slate: Ints,
        paid: Paid,
        sigma: float,
        factors: Floats,
    ) -> None:
        self._users, self._n_items, self._paid = users, len(factors), paid
        self.slate, self.sigma, self.factors = slate, sigma, factors

    def __repr__(self) -> str:
        return f"<SwapRelease {self._paid.name}, {len(self.slate)} items>"

    def publish(self, secret: SecretRandomness) -> Ints:
        """(parts, items) weighted sums in ticks times weights, with noise: the rest, then what each slot keeps.

        No user is queried where it was drawn before a crash.
        """
        shape = (len(self.slate) + 1, self._n_items)
        # Users are queried before the ledger is held: functions may take their time, and others use it too.
        total = None if self._paid.has("around") else self._users.swap(self.slate)

        def draw() -> Ints:
            assert total is not None
            noisy = rounded_normal.rounded_normal(total, self.sigma, secret)
            return np.concatenate([self.slate, noisy.ravel()])

        kept = self._paid.once("around", draw, secret)
        size = len(self.slate)
        if len(kept) != size + shape[0] * shape[1] or (kept[:size] != self.slate).any():
            raise OtherSequence("This release was drawn around another slate before; it is not drawn again.")
        return kept[size:].reshape(shape)


def checked_slate(slate: Sequence[int] | Ints, n_items: int) -> Ints:
    """A slate after validation: different items, and empty slots."""
    given = np.array(slate)
    shown = given[given != EMPTY_SLOT]
    whole = given.ndim == 1 and (np.issubdtype(given.dtype, np.integer) or len(given) == 0)
    if not whole or ((shown < 0) | (shown >= n_items)).any() or len(set(shown.tolist())) < len(shown):
        raise InvalidInput(f"A slate has different items from 0 to {n_items - 1}; got {given.tolist()}.")
    return given.astype(np.int64)
