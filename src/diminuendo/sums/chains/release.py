"""One release of stored people: a chain of questions, each answered in the light of those before (see stored.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._numba import kernel
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.chains.focus import clip_focused
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats, Ints


def _row(number: int) -> str:
    """How a row is called among the parts of a release."""
    return f"row{number:04d}"


FIRST_ROW = _row(0)


class Answers(NamedTuple):
    """What people said, person after person; all of it secret."""

    starts: Ints
    """Where each person's entries begin."""
    items: Ints
    values: Floats
    """What each item is worth to her by itself."""
    weights: Ints
    """Of each person in this release."""

    def __repr__(self) -> str:
        return "<Answers>"


class _Begun(NamedTuple):
    """A row that is not published yet, or is and was not counted: it is asked for again as it was."""

    item: int
    asked: NDArray[np.bool_]
    after: Ints
    """What those who are asked have left after it, entry by entry."""
    lost: Ints
    """What all of them lose by it together, with weights."""
    replayed: bool
    """Whether it was drawn before a crash."""

    def __repr__(self) -> str:
        return f"<_Begun, item {self.item}>"


class OtherChain(InvalidInput):
    """This release was begun before, along another chain."""


class ChainRelease:
    """One release over a frozen set of people: each item's value alone, one row per item that joins, then the rest.

    Singles are what rows and rest add up to, person by person; rows and rest together are no longer than they are.
    `factors` multiply what people say of each item before it is clipped; `sigmas`: the deviations of noise on singles,
    and on rows and the rest.
    """

    __getstate__ = refuse_copies

    def __init__(
        self, people: Answers, clip: Clip, paid: Paid, sigmas: tuple[float, float], factors: Floats
    ) -> None:
        self._n_items = n_items = len(factors)
        self._ceiling, self._paid, self.sigmas = clip.ceiling, paid, sigmas
        self.starts, self.items, self.factors = people.starts, people.items, factors
        self._weights, self._scales = people.weights, np.empty(len(people.weights))
        self._left = np.zeros(len(people.items), dtype=np.int64)
        clip_focused(
            clip.rule,
            self.starts,
            self.items,
            people.values,
            factors,
            np.empty(n_items),
            np.empty(n_items, dtype=np.int64),
            self._left,
            self._scales,
        )
        # The weighted sum of what is left: singles at first, less one row after the other, and the rest at last.
        self._total = np.zeros(n_items, dtype=np.int64)
        add_weighted(self.starts, self.items, self._left, self._weights, self._total)
        self.rows: list[tuple[int, Ints]] = []
        """The items that have joined, and their rows as published."""
        self.what_is_left: Ints | None = None
        """The rest as published: then it is over."""
        self._replayed = False  # whether rows came from before a crash; gains may have been others then
        self._begun: _Begun | None = None

    def __repr__(self) -> str:
        return f"<ChainRelease {self._paid.name}, {len(self.rows)} items>"

    def singles(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in ticks times weights, with noise."""
        if self.rows:
            raise InvalidInput("Singles come before the first item joins.")
        return self._once("singles", -1, self._total, self.sigmas[0], secret)

    def row(
        self, item: int, gains: Any, secret: SecretRandomness, asked: NDArray[np.bool_] | None = None
    ) -> Ints:
        """The weighted sum of what each item loses when `item` joins the chain, with noise.

        `gains`: what each stored entry (see `items`) would add after the chain with `item`. Any numbers will do.
        `asked`: of whom there are gains; the others lose nothing. Without it, of everybody.

        If it fails, as on a full disk, the same row may be asked for again: it is of the gains that were given first.
        """
        now = as_floats(gains)
        if now.shape != self.items.shape:
            raise InvalidInput(f"Expected one gain per stored entry; got shape {now.shape}.")
        item = _validate.whole(item, 0, self._n_items - 1, "item")
        if item in (chain := [joined for joined, _ in self.rows]):
            raise InvalidInput(f"An item joins a chain once; {item} is in it: {chain}.")
        if asked is None:
            asked = np.ones(len(self._weights), dtype=np.bool_)
        if asked.shape != self._weights.shape:
            raise InvalidInput(f"Expected yes or no for each stored person; got shape {asked.shape}.")
        part, before = self._part(), self._begun
        if before is not None and before.item == item:
            begun = before
        else:
            replayed, asked = self._from_before(part), asked.copy()
            after, lost = np.empty_like(self._left), np.zeros(self._n_items, dtype=np.int64)
            said = now, asked, self.factors, self._ceiling, item
            fall(self.starts, self.items, self._scales, *said, self._left, after)
            add_losses(self.starts, self.items, asked, self._left, after, self._weights, lost)
            begun = self._begun = _Begun(item, asked, after, lost, replayed)
        try:
            found = self._once(part, item, begun.lost, self.sigmas[1], secret)
        except OtherChain:
            self._begun = before  # which can still be had
            raise
        # Only now: else it may be tried again.
        take(self.starts, begun.asked, begun.after, self._left)
        self.rows, self._total, self._replayed, self._begun = (
            [*self.rows, (item, found)],
            self._total - begun.lost,
            begun.replayed,
            None,
        )
        return found

    def rest(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what is left of each item after the chain, with the noise of rows. Then it is over."""
        self._from_before("rest")
        self.what_is_left = self._once("rest", len(self.rows), self._total, self.sigmas[1], secret)
        return self.what_is_left

    def goes_on(self, rest: bool = False) -> bool:
        """Whether the next row, or the rest, can be had: after a crash only what was drawn before it."""
        return self.what_is_left is None and self._can_be_had("rest" if rest else self._part())

    def _can_be_had(self, part: str) -> bool:
        """Whether this part was drawn, or nothing was that it would have to agree with and is not known here."""
        unknown = self._replayed or self._paid.has(self._part()) or self._paid.has("rest")
        return self._paid.has(part) or not unknown

    def _part(self) -> str:
        return _row(len(self.rows))

    def _from_before(self, part: str) -> bool:
        """Whether this part, or one before it, was drawn before a crash. Refuses what cannot be had."""
        if self.what_is_left is not None:
            raise InvalidInput("The rest comes last, once; begin another release for more.")
        if not self._can_be_had(part):
            raise InvalidInput(
                "This release was interrupted, and what it had not drawn then it will not: what people have lost "
                "so far is not known any more. Go on with the rows there are; begin another release for others."
            )
        return self._replayed or self._paid.has(part)

    def _once(self, what: str, item: int, total: Ints, sigma: float, secret: SecretRandomness) -> Ints:
        """A weighted sum, with noise.

        Kept with the item it is about: a chain that was begun goes on as it began, or not at all.
        """
        kept = self._paid.once(
            what,
            lambda: np.concatenate([[item], rounded_normal.rounded_normal(total, sigma, secret)]),
            secret,
        )
        if kept[0] != item or len(kept) != len(total) + 1:
            raise OtherChain(
                f"{what} was drawn for item {kept[0]} before, not {item}; one release is one chain."
            )
        return kept[1:]


@kernel
def add_weighted(starts: Ints, items: Ints, ticks: Ints, weights: Ints, total: Ints) -> None:
    """Add everybody's ticks to the total, at their items, each as often as her weight says."""
    for person in range(len(starts) - 1):
        for j in range(starts[person], starts[person + 1]):
            total[items[j]] += weights[person] * ticks[j]


@kernel
def add_losses(
    starts: Ints, items: Ints, asked: NDArray[np.bool_], left: Ints, after: Ints, weights: Ints, total: Ints
) -> None:
    """Add to the total what those who are asked lose, each as often as her weight says."""
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                total[items[j]] += weights[person] * (left[j] - after[j])


@kernel
def take(starts: Ints, asked: NDArray[np.bool_], after: Ints, left: Ints) -> None:
    """From now on those who were asked have left what is in `after`."""
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                left[j] = after[j]


@kernel
def fall(
    starts: Ints,
    items: Ints,
    scales: Floats,
    gains: Floats,
    asked: NDArray[np.bool_],
    factors: Floats,
    ceiling: float,
    joined: int,
    left: Ints,
    after: Ints,
) -> None:
    """What those who are asked have left after an item has joined.

    What is left never rises and never falls below 0, so all losses together are at most what was there.
    """
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                if items[j] == joined or not gains[j] > 0.0:
                    after[j] = 0
                else:
                    gain = factors[items[j]] * min(gains[j], ceiling)
                    after[j] = min(left[j], int(scales[person] * gain))
