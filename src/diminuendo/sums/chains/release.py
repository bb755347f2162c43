"""One release of stored people: a chain of questions, each answered in the light of those before (see stored.py)."""

from __future__ import annotations

from collections.abc import Callable
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
from diminuendo.sums.chains.sets_by_type import no_items
from diminuendo.sums.clip import Clip
from diminuendo.types import EMPTY_SLOT, Floats, Ints


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
    types: Ints
    """What is known of each person, as a number (streams/contexts.py); 0 where there are no contexts."""

    def __repr__(self) -> str:
        return "<Answers>"


class _Begun(NamedTuple):
    """A row that is not published yet, or is and was not counted: it is asked for again as it was."""

    items: Ints
    asked: NDArray[np.bool_]
    after: Ints
    """What those who are asked have left after it, entry by entry."""
    lost: Ints
    """(questions, items): what those of each question lose together, with weights."""
    replayed: bool
    """Whether it was drawn before a crash."""

    def __repr__(self) -> str:
        return f"<_Begun, items {self.items.tolist()}>"


class OtherChain(InvalidInput):
    """This release was begun before, along another chain."""


class Joined(NamedTuple):
    """One row of a release."""

    items: Ints
    """The item that joined the chain of each type; EMPTY_SLOT where none did."""
    questions: Ints
    """Which question people of each type were asked; -1: none. Types that share a set and an item share a question."""
    sums: Ints
    """(questions, items), as published."""


class ChainRelease:
    """One release over a frozen set of people: each item's value alone, one row per item that joins, then the rest.

    Singles are what rows and rest add up to, person by person; rows and rest together are no longer than they are.
    People of each of `n_types` types have a chain of their own; where types have the same set so far, and the same item
    joins it, that is one question, and is published once. `factors` multiply what people say of each item before it is
    clipped; `sigmas`: the deviations of noise on singles, and on rows and the rest.
    """

    __getstate__ = refuse_copies

    def __init__(
        self,
        people: Answers,
        clip: Clip,
        paid: Paid,
        sigmas: tuple[float, float],
        factors: Floats,
        n_types: int = 1,
    ) -> None:
        self._n_items, self.n_types = len(factors), n_types
        self._ceiling, self._paid, self.sigmas = clip.ceiling, paid, sigmas
        self.starts, self.items, self.types, self.factors = people.starts, people.items, people.types, factors
        self._weights = people.weights
        self._left, self._scales = clipped(people, clip, factors)
        self.joined: list[Joined] = []
        """The rows that were published."""
        self.what_is_left: Ints | None = None
        """The rest as published, (sets, items): then it is over."""
        self._sets = no_items(n_types)  # the items that have joined
        self._replayed = False  # whether rows came from before a crash; gains may have been others then
        self._begun: _Begun | None = None

    def __repr__(self) -> str:
        return f"<ChainRelease {self._paid.name}, {len(self.joined)} items>"

    @property
    def rows(self) -> list[tuple[int, Ints]]:
        """The items that have joined, and their rows as published, where there is one type."""
        return [(int(row.items[0]), row.sums[0]) for row in self.joined]

    def singles(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in ticks times weights, with noise."""
        if self.joined:
            raise InvalidInput("Singles come before the first item joins.")
        nothing, everybody = np.array([-1]), np.zeros(self.n_types, dtype=np.int64)
        found: Ints
        (found,) = self._once(
            "singles", nothing, 1, lambda: self._sums_of(everybody, 1), self.sigmas[0], secret
        )
        return found

    def row(
        self, item: int, gains: Any, secret: SecretRandomness, asked: NDArray[np.bool_] | None = None
    ) -> Ints:
        """The weighted sum of what each item loses when `item` joins the chain of everybody, with noise."""
        item = _validate.whole(item, 0, self._n_items - 1, "item")
        found: Ints = self.row_by_type(np.full(self.n_types, item), gains, secret, asked)[0]
        return found

    def row_by_type(
        self, items: Ints, gains: Any, secret: SecretRandomness, asked: NDArray[np.bool_] | None = None
    ) -> Ints:
        """(questions, items): the weighted sum of what each item loses when those of `items` join, with noise.

        `items`: for each type the item that joins its chain; EMPTY_SLOT: none, and people of that type are not asked.
        `gains`: what each stored entry (see `items`) would add after her chain with the new item. Any numbers will do.
        `asked`: of whom there are gains; the others lose nothing. Without it, of everybody.

        If it fails, as on a full disk, the same row may be asked for again: it is of the gains that were given first.
        """
        now = as_floats(gains)
        if now.shape != self.items.shape:
            raise InvalidInput(f"Expected one gain per stored entry; got shape {now.shape}.")
        chosen = self._checked(items)
        if asked is None:
            asked = np.ones(len(self._weights), dtype=np.bool_)
        if asked.shape != self._weights.shape:
            raise InvalidInput(f"Expected yes or no for each stored person; got shape {asked.shape}.")
        part, pending = self._part(), self._begun
        questions, many = self._questions(chosen)
        if pending is not None and (pending.items == chosen).all():
            begun = pending
        else:
            replayed, whose = self._from_before(part), questions[self.types]
            asked = asked & (whose >= 0)
            after, lost = np.empty_like(self._left), np.zeros((many, self._n_items), dtype=np.int64)
            said = now, asked, self.factors, self._ceiling, chosen[self.types]
            fall(self.starts, self.items, self._scales, *said, self._left, after)
            add_losses(self.starts, self.items, asked, self._left, after, self._weights, whose, lost)
            begun = self._begun = _Begun(chosen, asked, after, lost, replayed)
        try:
            found = self._once(part, chosen, many, lambda: begun.lost, self.sigmas[1], secret)
        except OtherChain:
            self._begun = pending  # which can still be had
            raise
        # Only now: else it may be tried again.
        take(self.starts, begun.asked, begun.after, self._left)
        self.joined, self._sets, self._replayed, self._begun = (
            [*self.joined, Joined(chosen, questions, found)],
            self._sets.joined_by(chosen),
            begun.replayed,
            None,
        )
        return found

    def _checked(self, items: Ints) -> Ints:
        """An item for each type, at the door."""
        chosen = np.array(items)
        if chosen.shape != (self.n_types,):
            raise InvalidInput(f"Expected an item for each of {self.n_types} types; got {len(items)}.")
        if chosen.dtype.kind not in "iu" or chosen.min() < EMPTY_SLOT or chosen.max() >= self._n_items:
            raise InvalidInput(f"Items are whole numbers from {EMPTY_SLOT} to {self._n_items - 1}.")
        return chosen.astype(np.int64)

    def _questions(self, chosen: Ints) -> tuple[Ints, int]:
        """For each type the number of its question as these items join, -1 for none; and how many there are."""
        number, each = self._sets.joining(chosen)
        for before, item in each:
            if item in before:
                raise InvalidInput(f"An item joins a chain once; {item} is in it: {sorted(before)}.")
        is_one = np.array([item != EMPTY_SLOT for _, item in each])
        numbers: Ints = np.where(is_one, np.cumsum(is_one) - 1, -1)
        return numbers[number], int(is_one.sum())

    def sets(self) -> tuple[Ints, int]:
        """For each type the number of its set so far, and how many different ones there are."""
        return self._sets.of_type, len(self._sets.sets)

    def rest(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what is left of each item after everybody's chain, with the noise of rows: one type."""
        found: Ints = self.rest_by_type(secret)[0]
        return found

    def rest_by_type(self, secret: SecretRandomness) -> Ints:
        """(sets, items): the weighted sum of what is left, for people of each set (see `sets`). Then it is over."""
        self._from_before("rest")
        whose, many = self.sets()
        so_far = np.array([len(self.joined)])
        self.what_is_left = self._once(
            "rest", so_far, many, lambda: self._sums_of(whose, many), self.sigmas[1], secret
        )
        return self.what_is_left

    def _sums_of(self, whose: Ints, many: int) -> Ints:
        """(many, items): the weighted sums of what is left, of people of types that are put together so."""
        total = np.zeros((many, self._n_items), dtype=np.int64)
        add_weighted(self.starts, self.items, self._left, self._weights, whose[self.types], total)
        return total

    def goes_on(self, rest: bool = False) -> bool:
        """Whether the next row, or the rest, can be had: after a crash only what was drawn before it."""
        return self.what_is_left is None and self._can_be_had("rest" if rest else self._part())

    def _can_be_had(self, part: str) -> bool:
        """Whether this part was drawn, or nothing was that it would have to agree with and is not known here."""
        unknown = self._replayed or self._paid.has(self._part()) or self._paid.has("rest")
        return self._paid.has(part) or not unknown

    def _part(self) -> str:
        return _row(len(self.joined))

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

    def _once(
        self,
        what: str,
        about: Ints,
        many: int,
        total: Callable[[], Ints],
        sigma: float,
        secret: SecretRandomness,
    ) -> Ints:
        """(many, items): weighted sums, with noise.

        Kept with what they are about: chains that were begun go on as they began, or not at all.
        """
        kept = self._paid.once(
            what,
            lambda: np.concatenate([about, rounded_normal.rounded_normal(total(), sigma, secret).ravel()]),
            secret,
        )
        before, sums = kept[: len(about)], kept[len(about) :]
        if len(sums) != many * self._n_items or (before != about).any():
            raise OtherChain(
                f"{what} was drawn for {before.tolist()} before, not {about.tolist()}; one release is one chain."
            )
        return sums.reshape(many, self._n_items)


def clipped(people: Answers, clip: Clip, factors: Floats) -> tuple[Ints, Floats]:
    """What people say, times the factors of their items, clipped to ticks; and by what each was multiplied."""
    ticks, scales = np.zeros(len(people.items), dtype=np.int64), np.empty(len(people.weights))
    room = np.empty(len(factors)), np.empty(len(factors), dtype=np.int64)
    clip_focused(clip.rule, people.starts, people.items, people.values, factors, *room, ticks, scales)
    return ticks, scales


@kernel
def add_weighted(starts: Ints, items: Ints, ticks: Ints, weights: Ints, whose: Ints, total: Ints) -> None:
    """Add everybody's ticks to the row of the total that is hers, if any, each as often as her weight says."""
    for person in range(len(starts) - 1):
        row = whose[person]
        if row >= 0:
            for j in range(starts[person], starts[person + 1]):
                total[row, items[j]] += weights[person] * ticks[j]


@kernel
def add_losses(
    starts: Ints,
    items: Ints,
    asked: NDArray[np.bool_],
    left: Ints,
    after: Ints,
    weights: Ints,
    whose: Ints,
    total: Ints,
) -> None:
    """Add to their rows of the total what those who are asked lose, each as often as her weight says."""
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                total[whose[person], items[j]] += weights[person] * (left[j] - after[j])


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
    joined: Ints,
    left: Ints,
    after: Ints,
) -> None:
    """What those who are asked have left after an item has joined, each person's own of `joined`.

    What is left never rises and never falls below 0, so all losses together are at most what was there.
    """
    for person in range(len(starts) - 1):
        if asked[person]:
            for j in range(starts[person], starts[person + 1]):
                if items[j] == joined[person] or not gains[j] > 0.0:
                    after[j] = 0
                else:
                    gain = factors[items[j]] * min(gains[j], ceiling)
                    after[j] = min(left[j], int(scales[person] * gain))
