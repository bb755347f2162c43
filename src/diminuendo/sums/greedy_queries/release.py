"""One release over stored users: a greedy query sequence, each query in the light of those before (see stored.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.ledger import Paid
from diminuendo.randomness import rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.greedy_queries.participants import Participants, Prefix
from diminuendo.types import EMPTY_SLOT, Floats, Ints


class SetsByType(NamedTuple):
    """Sets are numbered in the order in which types first have them."""

    of_type: Ints
    """The number of each type's set."""
    sets: tuple[frozenset[int], ...]

    def joining(self, items: Ints) -> tuple[Ints, list[tuple[frozenset[int], int]]]:
        """As an item joins each type's chain, EMPTY_SLOT: none. For each type a number, the same for types that share
        a set and an item; and for each number the set, without the item, and the item."""
        codes = (len(self.sets) * items.astype(np.int64)) + self.of_type
        _, first, number = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        types = first[order]
        of_each = zip(self.of_type[types].tolist(), items[types].tolist(), strict=True)
        return rank[number], [(self.sets[before], item) for before, item in of_each]

    def joined_by(self, items: Ints) -> SetsByType:
        """After these items have joined. One set may come of several, by different items."""
        number, each = self.joining(items)
        known: dict[frozenset[int], int] = {}
        grown = (before if item == EMPTY_SLOT else before | {item} for before, item in each)
        result = np.array([known.setdefault(after, len(known)) for after in grown], dtype=np.int64)
        return SetsByType(result[number], tuple(known))


def no_items(n_types: int) -> SetsByType:
    """Before the first item joins."""
    return SetsByType(np.zeros(n_types, dtype=np.int64), (frozenset(),))


class OtherSequence(InvalidInput):
    """This release was begun before, along another query sequence."""


class Joined(NamedTuple):
    """The marginal losses of one step, as published."""

    items: Ints
    """The item that joined the sequence of each type; EMPTY_SLOT where none did."""
    questions: Ints
    """Which question users of each type were asked; -1: none. Types that share a set and an item share a question."""
    sums: Ints
    """(questions, items)."""


class GreedyRelease:
    """One release over a frozen set of users: singleton values, marginal losses for each item that joins, the residual.

    Singleton values are what losses and residual add up to, user by user; losses and residual together are no longer
    than they are. Users of each of `n_types` types have a query sequence of their own. Where types have the same set so
    far, and the same item joins it, that is one question, and is published once. `factors` multiply users' values of
    each item before clipping; `sigmas`: the deviations of noise on singleton values, and on losses and the residual.

    If drawing fails, begin the release again, as after a crash: what was drawn is what it is, and what others have lost
    by then is not known any more, so nothing but the parts that were drawn can be had.
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
        self._whole: Ints | None = None  # singleton values without noise, where they are known
        self._lost: Ints = np.zeros(len(factors), dtype=np.int64)  # by all steps so far, of all users
        self.joined: list[Joined] = []
        """The steps that were published."""
        self.sets = no_items(n_types)
        """The items that have joined."""
        self._finished = False
        self._replayed = False  # whether steps came from before a crash; gains may have been others then

    def __repr__(self) -> str:
        return f"<GreedyRelease {self._paid.name}, {len(self.joined)} items>"

    def singletons(self, secret: SecretRandomness) -> Ints:
        """The weighted sum of what each item is worth by itself, in units times weights, with noise."""
        whole = None if self._paid.has("singles") else self._exact_singletons()
        result: Ints
        (result,) = self._once("singles", np.array([-1]), 1, whole, self.sigmas[0], secret)
        return result

    def _exact_singletons(self) -> Ints:
        if self._whole is None:
            self._whole = self._users.sums((), np.zeros(self.n_types, dtype=np.int64), 1)
        return self._whole

    def losses_by_type(self, items: Ints, secret: SecretRandomness) -> Ints:
        """(questions, items): the weighted sum of what each item loses when those of `items` join, with noise.

        `items`: for each type the item that joins; EMPTY_SLOT: none, and users of that type are not queried.
        """
        chosen = np.array(items, dtype=np.int64)
        part = self._part()
        number, each = self.sets.joining(chosen)
        if any(item in before for before, item in each):
            raise InvalidInput("An item joins a query sequence once.")
        is_one = np.array([item != EMPTY_SLOT for _, item in each])
        questions, many = np.where(is_one, np.cumsum(is_one) - 1, -1)[number], int(is_one.sum())
        replayed = self._from_before(part)
        lost = None if replayed else self._users.losses(self._prefix, chosen, questions, many)
        result = self._once(part, chosen, many, lost, self.sigmas[1], secret)
        # What is lost by a step is taken off once, or the residual would say more than is charged.
        if lost is not None:
            self._lost = self._lost + lost.sum(axis=0)
        self._replayed = replayed
        self.joined.append(Joined(chosen, questions, result))
        self.sets = self.sets.joined_by(chosen)
        return result

    @property
    def _prefix(self) -> Prefix:
        return tuple(step.items for step in self.joined)

    def residual_by_type(self, secret: SecretRandomness) -> Ints:
        """(sets, items): the weighted sum of what is left, for users of each set (see `sets`). Then it is over."""
        replayed, many = self._from_before("rest"), len(self.sets.sets)
        total = None if replayed else self._exact_residuals(many)  # before the ledger is held
        result = self._once("rest", np.array([len(self.joined)]), many, total, self.sigmas[1], secret)
        self._finished = True
        return result

    def _exact_residuals(self, many: int) -> Ints:
        """(sets, items): what is left. The users of one set are all users: singletons without what was lost."""
        if many == 1:
            return self._exact_singletons() - self._lost
        return self._users.sums(self._prefix, self.sets.of_type, many)

    def goes_on(self, residual: bool = False) -> bool:
        """Whether the next losses, or the residual, can be had: after a crash only what was drawn before it."""
        return not self._finished and self._can_be_had("rest" if residual else self._part())

    def _can_be_had(self, part: str) -> bool:
        """Whether this part was drawn, or nothing was that it would have to agree with and is not known here."""
        unknown = self._replayed or self._paid.has(self._part()) or self._paid.has("rest")
        return self._paid.has(part) or not unknown

    def _part(self) -> str:
        return f"row{len(self.joined):04d}"

    def _from_before(self, part: str) -> bool:
        """Whether this part, or one before it, was drawn before a crash. Refuses what cannot be had."""
        if self._finished or not self._can_be_had(part):
            raise InvalidInput(
                "This release is over, or was interrupted: what it had not drawn then it will not, since what users "
                "have lost so far is not known any more. Go on with what there is; begin another release for more."
            )
        return self._replayed or self._paid.has(part)

    def _once(
        self, what: str, about: Ints, many: int, total: Ints | None, sigma: float, secret: SecretRandomness
    ) -> Ints:
        """(many, items): weighted sums, with noise; `total`: without, None where they were drawn before.

        Stored with what they are about: sequences that were begun go on as they began, or not at all.
        """

        def draw() -> Ints:
            assert total is not None
            return np.concatenate([about, rounded_normal.rounded_normal(total, sigma, secret).ravel()])

        stored = self._paid.once(what, draw, secret)
        before, sums = stored[: len(about)], stored[len(about) :]
        if len(sums) != many * self._n_items or (before != about).any():
            raise OtherSequence(
                f"{what} was drawn for {before.tolist()} before, not {about.tolist()}; one release is one sequence."
            )
        return sums.reshape(many, self._n_items)
