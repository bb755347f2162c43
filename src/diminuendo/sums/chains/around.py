r"""One release around a slate: what each item would add to it, and what each shown item keeps others from adding.

For a public slate of a_1 .. a_k every person enters with one vector of k + 1 parts:

    rest     R(x) = g(x | slate)
    keeps    D_i(x) = g(x | slate without a_i) - g(x | slate)

times the focus of the release, clipped as one vector. There is one draw, and nothing in it depends on another part of
the same release, so it costs what any vector of that length costs, for any functions whatever (docs/maths/overlap.md,
Theorem F2). R + D_i says what each item would be worth in the place of a_i, and D_i(a_i) what a_i is worth there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.chains.release import Answers, OtherChain
from diminuendo.sums.clip import Clip, Rule, clip_row
from diminuendo.types import EMPTY_SLOT, Floats, Ints

EASE = 1.4
"""A person is first scaled so that her singles are at most this long: what she counts then hardly depends on how well
the slate serves her already."""


class AroundRelease:
    """One release over a frozen set of people, of what they say around a slate. Drawn as a whole, once."""

    __getstate__ = refuse_copies

    def __init__(
        self,
        people: Answers,
        slate: Ints,
        clip: Clip,
        paid: Paid,
        sigma: float,
        factors: Floats,
    ) -> None:
        n_items = len(factors)
        self._people, self._n_items, self._clip, self._paid = people, n_items, clip, paid
        self.starts, self.items, self.values = people.starts, people.items, people.values
        self.slate, self.sigma, self.factors = slate, sigma, factors

    def __repr__(self) -> str:
        return f"<AroundRelease {self._paid.name}, {len(self.slate)} items>"

    def publish(self, gains: Iterable[tuple[int, Floats]], secret: SecretRandomness) -> Ints:
        """(parts, items) weighted sums in ticks times weights, with noise: the rest, then what each slot keeps.

        `gains`: of some people after the others, the first of them and (parts, entries): what each of their entries
        would add to the slate, and then to the slate without the item of each slot. Any numbers will do. Nobody is
        looked at where it was drawn before a crash.
        """
        shape = (len(self.slate) + 1, self._n_items)
        # People are asked before the ledger is held: their functions may take their time, and others use it too.
        total = None if self._paid.has("around") else self._total(shape, gains)

        def draw() -> Ints:
            assert total is not None
            noisy = rounded_normal.rounded_normal(total, self.sigma, secret)
            return np.concatenate([self.slate, noisy.ravel()])

        kept = self._paid.once("around", draw, secret)
        size = len(self.slate)
        if len(kept) != size + shape[0] * shape[1] or (kept[:size] != self.slate).any():
            raise OtherChain("This release was drawn around another slate before; it is not drawn again.")
        return kept[size:].reshape(shape)

    def _total(self, shape: tuple[int, int], gains: Iterable[tuple[int, Floats]]) -> Ints:
        total, place = np.zeros(shape, dtype=np.int64), np.full(self._n_items, -1, dtype=np.int64)
        shown = np.flatnonzero(self.slate != EMPTY_SLOT)
        place[self.slate[shown]] = shown
        most = shape[0] * int(np.diff(self.starts).max(initial=0))
        room = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
        done, rule, ease = 0, self._clip.rule, EASE * self._clip.bound
        for first, found in gains:
            # Somebody who says nothing may be looked at again; nobody else.
            if not 0 <= first < len(self.starts) or self.starts[first] != self.starts[done]:
                raise InvalidInput("People come one after the other, each once.")
            if found.ndim != 2 or len(found) != shape[0]:
                raise InvalidInput(
                    f"Expected {shape[0]} parts, the whole slate first; got shape {found.shape}."
                )
            done = _add_around(
                rule, self._people, first, found, self.factors, place, ease, *room, total.reshape(-1)
            )
        return total


def checked_slate(slate: Sequence[int] | Ints, n_items: int) -> Ints:
    """A slate at the door: different items, and empty slots."""
    given = np.array(slate)
    shown = given[given != EMPTY_SLOT]
    whole = given.ndim == 1 and (np.issubdtype(given.dtype, np.integer) or len(given) == 0)
    if not whole or ((shown < 0) | (shown >= n_items)).any() or len(set(shown.tolist())) < len(shown):
        raise InvalidInput(f"A slate has different items from 0 to {n_items - 1}; got {given.tolist()}.")
    return given.astype(np.int64)


@kernel
def _add_around(
    rule: Rule,
    people: Answers,
    first: int,
    gains: Floats,
    factors: Floats,
    place: Ints,
    ease: float,
    row: Floats,
    at: Ints,
    ticks: Ints,
    total: Ints,
) -> int:
    """Add what people say from number `first` on, as many as have entries in `gains`, each clipped as one vector.

    Returns who comes next. What an item adds lies between 0 and what it is worth by itself.
    """
    begin, person, n_items = people.starts[first], first, len(factors)
    while person < len(people.starts) - 1 and people.starts[person + 1] - begin <= gains.shape[1]:
        low, high = people.starts[person], people.starts[person + 1]
        square, size = 0.0, 0
        for j in range(low, high):
            single = factors[people.items[j]] * people.values[j]
            square += single * single
        scale = min(1.0, ease / math.sqrt(square)) if square > 0.0 else 0.0
        for j in range(low, high):
            item, most = people.items[j], people.values[j]
            slot, weight = place[item], factors[item] * scale
            rest = _between(gains[0, j - begin], most) if slot < 0 else 0.0
            if rest > 0.0:
                row[size], at[size] = weight * rest, item
                size += 1
            for part in range(1, gains.shape[0]):
                if slot < 0 or slot == part - 1:
                    kept = _between(gains[part, j - begin], most) - rest
                    if kept > 0.0:
                        row[size], at[size] = weight * kept, part * n_items + item
                        size += 1
        clip_row(rule, row, 0, size, ticks)
        for j in range(size):
            total[at[j]] += people.weights[person] * ticks[j]
        person += 1
    return person


@inline
def _between(gain: float, most: float) -> float:
    """A gain cut to what it can be; 0 where it is not a number."""
    return min(gain, most) if gain > 0.0 else 0.0
