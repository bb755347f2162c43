"""One release over stored users: a chain of queries, each in the light of those before (see stored.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.greedy_queries.participants import Participants, Prefix
from diminuendo.sums.greedy_queries.sets_by_type import no_items
from diminuendo.types import EMPTY_SLOT, Floats, Ints


def _row(number: int) -> str:
    """How a row is called among the parts of a release."""
    return f"row{number:04d}"


class _Begun(NamedTuple):
    """A row that is not published yet, or is and was not counted: it is asked for again as it was."""

    items: Ints
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
    """Which question users of each type were asked; -1: none. Types that share a set and an item share a question."""
    sums: Ints
    """(questions, items), as published."""


class GreedyRelease:
    """One release over a frozen set of users: each item's value alone, one row per item that joins, then the rest.

    Singles are what rows and rest add up to, user by user; rows and rest together are no longer than they are.
    Users of each of `n_types` types have a chain of their own; where types have the same set so far, and the same item
    joins it, that is one question, and is published once. `factors` multiply what users say of each item before it is
    clipped; `sigmas`: the deviations of noise on singles, and on rows and the rest.
    """

    __getstate__ = refuse_copies

    def __init__(
        self,
        users: Participants,
        paid: Paid,
        sigmas: tuple[float, float],
        factors: Floats,
        n_types: int = 1,
    ) -> None:
        self._n_items, self.n_types = len(factors), n_types
        self._users, self._paid, self.sigmas, self.factors = users, paid, sigmas, factors
        self._whole: Ints | None = None  # singles without noise, where they are known
        self._lost: Ints = np.zeros(len(factors), dtype=np.int64)  # by all rows so far, of everybody
        self.joined: list[Joined] = []
        """The rows that were published."""
        self.residuals: Ints | None = None
        """The rest as published, (sets, items): then it is over."""
        self._sets = no_items(n_types)  # the items that have joined
        self._replayed = False  # whether rows came from before a crash; gains may have been others then
        self._begun: _Begun | None = None

    def __repr__(self) -> str:
        return f"<GreedyRelease {self._paid.name}, {len(self.joined)} items>"

    @property
    def rows(self) -> list[tuple[int, Ints]]:
        """The items that have joined, and their rows as published, where there is one type."""
        return [(int(row.items[0]), row.sums[0]) for row in self.joined]

    def singletons(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in ticks times weights, with noise."""
        if self.joined:
            raise InvalidInput("Singles come before the first item joins.")
        if not self._paid.has("singles"):
            self._singles_of_all()  # before the ledger is held
        result: Ints
        (result,) = self._once("singles", np.array([-1]), 1, self._singles_of_all, self.sigmas[0], secret)
        return result

    def _singles_of_all(self) -> Ints:
        if self._whole is None:
            self._whole = self._users.sums((), np.zeros(self.n_types, dtype=np.int64), 1)
        return self._whole

    def losses(self, item: int, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item loses when `item` joins the chain of everybody, with noise."""
        item = _validate.whole(item, 0, self._n_items - 1, "item")
        result: Ints = self.losses_by_type(np.full(self.n_types, item), secret)[0]
        return result

    def losses_by_type(self, items: Ints, secret: SecretRandomness) -> Ints:
        """(questions, items): the weighted sum of what each item loses when those of `items` join, with noise.

        `items`: for each type the item that joins its chain; EMPTY_SLOT: none, and users of that type are not queried.
        If it fails, as on a full disk, the same row may be asked for again.
        """
        chosen = self._checked(items)
        part, pending = self._part(), self._begun
        questions, many = self._questions(chosen)
        if pending is not None and (pending.items == chosen).all():
            begun = pending
        else:
            # What was drawn before a crash is what it is: nothing else will be, so nobody need be queried.
            replayed = self._from_before(part)
            lost = np.zeros((many, 0), np.int64) if replayed else self._losses(chosen, questions, many)
            begun = self._begun = _Begun(chosen, lost, replayed)
        try:
            result = self._once(part, chosen, many, lambda: begun.lost, self.sigmas[1], secret)
        except OtherChain:
            self._begun = pending  # which can still be had
            raise
        lost = self._lost if begun.replayed else self._lost + begun.lost.sum(axis=0)
        # In one go: what is lost by a row is taken off once, or the rest would say more than is charged.
        self.joined, self._sets, self._lost, self._replayed, self._begun = (
            [*self.joined, Joined(chosen, questions, result)],
            self._sets.joined_by(chosen),
            lost,
            begun.replayed,
            None,
        )
        return result

    @property
    def _chain(self) -> Prefix:
        return tuple(row.items for row in self.joined)

    def _losses(self, chosen: Ints, questions: Ints, many: int) -> Ints:
        return self._users.losses(self._chain, chosen, questions, many)

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

    def residual(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what is left of each item after everybody's chain, with the noise of rows: one type."""
        result: Ints = self.residual_by_type(secret)[0]
        return result

    def residual_by_type(self, secret: SecretRandomness) -> Ints:
        """(sets, items): the weighted sum of what is left, for users of each set (see `sets`). Then it is over."""
        replayed = self._from_before("rest")
        many = self.sets()[1]
        total = (
            np.zeros((many, 0), dtype=np.int64) if replayed else self._rests(many)
        )  # else before the ledger is held
        so_far = np.array([len(self.joined)])
        self.residuals = self._once("rest", so_far, many, lambda: total, self.sigmas[1], secret)
        return self.residuals

    def _rests(self, many: int) -> Ints:
        """(sets, items): what is left. The users of one set are everybody: singles without what was lost."""
        if many == 1:
            return self._singles_of_all() - self._lost
        return self._users.sums(self._chain, self._sets.of_type, many)

    def goes_on(self, rest: bool = False) -> bool:
        """Whether the next row, or the rest, can be had: after a crash only what was drawn before it."""
        return self.residuals is None and self._can_be_had("rest" if rest else self._part())

    def _can_be_had(self, part: str) -> bool:
        """Whether this part was drawn, or nothing was that it would have to agree with and is not known here."""
        unknown = self._replayed or self._paid.has(self._part()) or self._paid.has("rest")
        return self._paid.has(part) or not unknown

    def _part(self) -> str:
        return _row(len(self.joined))

    def _from_before(self, part: str) -> bool:
        """Whether this part, or one before it, was drawn before a crash. Refuses what cannot be had."""
        if self.residuals is not None:
            raise InvalidInput("The rest comes last, once; begin another release for more.")
        if not self._can_be_had(part):
            raise InvalidInput(
                "This release was interrupted, and what it had not drawn then it will not: what users have lost "
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
