"""One release of stored people: a chain of questions, each answered in the light of those before (see stored.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.chains.people.frozen import AskedPeople, FrozenPeople, PeopleLost
from diminuendo.sums.chains.sets_by_type import no_items
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
        people: AskedPeople,
        paid: Paid,
        sigmas: tuple[float, float],
        factors: Floats,
        n_types: int = 1,
    ) -> None:
        self._n_items, self.n_types = len(factors), n_types
        self._people, self._paid, self.sigmas, self.factors = people, paid, sigmas, factors
        self._whole: Ints | None = None  # singles without noise, where they are known
        self._lost: Ints = np.zeros(len(factors), dtype=np.int64)  # by all rows so far, of everybody
        self._cut = False  # whether somebody was lost on the way
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

    @property
    def items(self) -> NDArray[Any]:
        """The items of every stored entry, person after person: in this order `row` takes gains."""
        people = self._here().flat()
        return people.items[people.starts[0] : people.starts[-1]]

    @property
    def starts(self) -> Ints:
        """Where each person's entries begin in `items`, and at last where they end."""
        people = self._here().flat()
        found: Ints = people.starts - people.starts[0]
        return found

    def _here(self) -> FrozenPeople:
        if not isinstance(self._people, FrozenPeople):
            raise InvalidInput("These people are kept elsewhere, and are asked there.")
        return self._people

    def singles(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in ticks times weights, with noise."""
        if self.joined:
            raise InvalidInput("Singles come before the first item joins.")
        if not self._paid.has("singles"):
            self._singles_of_all()  # before the ledger is held
        found: Ints
        (found,) = self._once("singles", np.array([-1]), 1, self._singles_of_all, self.sigmas[0], secret)
        return found

    def _singles_of_all(self) -> Ints:
        if self._whole is None:
            self._whole = self._people.singles(np.zeros(self.n_types, dtype=np.int64), 1)
        return self._whole

    def row(
        self,
        item: int,
        gains: Any,
        secret: SecretRandomness,
        asked: NDArray[np.bool_] | None = None,
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
        `gains`: what each stored entry (see `items`) would add after her chain with the new item, any numbers will do;
        or None, where people can be asked themselves. `asked`: of whom there are gains; the others lose nothing.

        If it fails, as on a full disk, the same row may be asked for again: it is of the gains that were given first.
        """
        said = None if gains is None else self._said(gains, asked)
        chosen = self._checked(items)
        part, pending = self._part(), self._begun
        questions, many = self._questions(chosen)
        if pending is not None and (pending.items == chosen).all():
            begun = pending
        else:
            # What was drawn before a crash is what it is: nothing else will be, so nobody need be asked.
            replayed = self._from_before(part)
            lost = np.zeros((many, 0), np.int64) if replayed else self._losses(chosen, questions, many, said)
            begun = self._begun = _Begun(chosen, lost, replayed)
        try:
            found = self._once(part, chosen, many, lambda: begun.lost, self.sigmas[1], secret)
        except OtherChain:
            self._begun = pending  # which can still be had
            raise
        lost = self._lost
        if not begun.replayed:  # only now: else it may be tried again
            self._take(chosen)
            lost = lost + begun.lost.sum(axis=0)
        # In one go: what is lost by a row is taken off once, or the rest would say more than is charged.
        self.joined, self._sets, self._lost, self._replayed, self._begun = (
            [*self.joined, Joined(chosen, questions, found)],
            self._sets.joined_by(chosen),
            lost,
            begun.replayed,
            None,
        )
        return found

    def _said(self, gains: Any, asked: NDArray[np.bool_] | None) -> tuple[Floats, NDArray[np.bool_]]:
        """What entries add, and of whom that is known, at the door."""
        now, people = as_floats(gains), self._here()
        if now.shape != self.items.shape:
            raise InvalidInput(f"Expected one gain per stored entry; got shape {now.shape}.")
        everybody = np.ones(len(people), dtype=np.bool_) if asked is None else asked
        if everybody.shape != (len(people),):
            raise InvalidInput(f"Expected yes or no for each stored person; got shape {everybody.shape}.")
        return now, everybody

    def _losses(
        self, chosen: Ints, questions: Ints, many: int, said: tuple[Floats, NDArray[np.bool_]] | None
    ) -> Ints:
        try:
            self._singles_of_all()  # before the first row: rows and rest are of the same people
            if said is None:
                return self._people.row(chosen, questions, many)
            return self._here().row(chosen, questions, many, said)
        except PeopleLost:
            self._cut = True
            raise

    def _take(self, chosen: Ints) -> None:
        """People go on. Should some be lost, this row is published all the same, and no other will be."""
        try:
            self._people.take(chosen)
        except PeopleLost:
            self._cut = True

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
        replayed = self._from_before("rest")
        many = self.sets()[1]
        total = (
            np.zeros((many, 0), dtype=np.int64) if replayed else self._rests(many)
        )  # else before the ledger is held
        so_far = np.array([len(self.joined)])
        self.what_is_left = self._once("rest", so_far, many, lambda: total, self.sigmas[1], secret)
        return self.what_is_left

    def _rests(self, many: int) -> Ints:
        """(sets, items): what is left. The people of one set are everybody: singles without what was lost."""
        if many == 1:
            return self._singles_of_all() - self._lost
        try:
            return self._people.sums(self._sets.of_type, many)
        except PeopleLost:
            self._cut = True
            raise

    def goes_on(self, rest: bool = False) -> bool:
        """Whether the next row, or the rest, can be had: after a crash only what was drawn before it."""
        return self.what_is_left is None and self._can_be_had("rest" if rest else self._part())

    def _can_be_had(self, part: str) -> bool:
        """Whether this part was drawn, or nothing was that it would have to agree with and is not known here."""
        alone = (
            part == "rest" and self._whole is not None and self.sets()[1] == 1
        )  # nobody need be asked for it
        unknown = self._replayed or self._paid.has(self._part()) or self._paid.has("rest")
        unknown = unknown or (self._cut and not alone)
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
