"""One slate for all users: what is shown between releases, and what the next release queries.

At each release users answer a greedy query sequence: the singleton values of all items; the marginal losses when the
best one joins; and so on; at last the residual. The slate is greedy on the posterior then. Once a slate is a decent
one, releases make swap queries instead: what each item would add to it, and what each shown item keeps others from
adding; then items are swapped. Query weights put more weight on items that can still be picked (query_weights.py).

All of it is public: it is made of what was published (pick.py, swap.py, query_weights.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.menu import Menu, OneSlate
from diminuendo.learners.base.setting import Prior
from diminuendo.learners.overlap.pick import Picked, SlatePicker
from diminuendo.learners.overlap.query_weights import NextQueryWeights
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.learners.overlap.stored import UsersMemory
from diminuendo.types import EMPTY_SLOT, Ints, Items

SETTLED, SEQUENCES = 12.0, 2
"""Swap queries begin once a slate earns SETTLED nu of users for each slot (schedule.py), after SEQUENCES sequences."""


class ReleaseContext(NamedTuple):
    """What is known of a release before it begins."""

    number: int
    first: int
    """The first batch that is asked."""
    users: int
    """How many users are remembered, whether or not they answered."""
    reward: float
    """What slates earned since memory began, on average, as published."""
    since: int
    """The batch since which nothing is forgotten of what was published: `first`, or one whose users are forgotten."""


class GlobalSlate:
    """The slate of the last release; before the first the best by a prior, or random ones."""

    def __init__(
        self,
        items: ItemAvailability,
        plan: OverlapPlan,
        prior: Prior | None,
        memory: UsersMemory,
        *,
        prefixes: int = 1,
    ) -> None:
        self._items, self._plan, self._prior, self._memory = items, plan, prior, memory
        self.picker = SlatePicker(items, prefixes=prefixes)
        self.query_weights = NextQueryWeights(items.n_items, items.slots, plan.nu)
        self.slate: Items = np.full(items.slots, EMPTY_SLOT, dtype=np.int32)
        if prior is not None:
            if plan.releases:
                self.picker.begin_with(prior.scores, float(prior.users), plan.first_noise)
            self.picker.fill(self.slate)

    def __repr__(self) -> str:
        return f"<GlobalSlate: {self.slate.tolist()}>"

    def menu(self, first: int, end: int | None, words: int, *, released: bool) -> Menu:
        """The slate, if there is one: by a release, or by a prior. Else random ones."""
        items = self._items
        if not self.shows(released):
            return items.random_menu(first, end, words)
        more: dict[str, Any] = {
            "lists": items.lists_for_exclusions(),
            "ranking": items.ranking(self.picker.gains),
        }
        return OneSlate(items.n_items, items.slots, first, end, words, self.slate.copy(), **more)

    def shows(self, released: bool) -> bool:
        """Whether there is a slate to be shown: by a release, or by a prior."""
        return released or self._prior is not None

    def release(self, context: ReleaseContext) -> Picked:
        """Charge and draw a release: a greedy query sequence, or a swap query of the slate that is shown."""
        number, first, users, *_ = context
        before = self._memory.was_swap(number)  # if this release was already charged, it stays what it was
        if self.settled(context) if before is None else before:
            swap = self._memory.begin_swap(number, first, self.slate, self.query_weights.for_swap(users))
            return self.picker.improved(swap)
        return self.picker.slate(
            self._memory.begin_release(number, first, self.query_weights.for_sequence(users))
        )

    def settled(self, context: ReleaseContext) -> bool:
        """Whether the slate that is shown is worth improving: what it earned stands out from noise and prior."""
        number, _, users, reward, since = context
        return (
            number - since >= SEQUENCES
            and (self._prior is None or users >= self._prior.users)
            and users * reward >= SETTLED * self._items.slots * self._plan.nu
            and bool((self.slate != EMPTY_SLOT).all())
        )

    def take(self, picked: Picked, context: ReleaseContext, new: NDArray[np.bool_]) -> None:
        """Go on from what was published, and show the slate."""
        self.picker.take(picked)
        if picked.standing is not None:
            self.query_weights.follow(picked.standing, context.users / self._plan.schedule.ends[0])
            self.query_weights.widen(new)
        self.slate[:] = picked.slate

    def forget(self) -> None:
        """After drift: nothing that was published before counts any more."""
        self.picker.forget()
        self.query_weights.widen()

    def appear(self, items: Ints) -> None:
        """These items are there from now on."""
        self.query_weights.widen(items)

    def items_changed(self, *, released: bool) -> None:
        """Items that are gone make way for the best of those that are there."""
        self.slate[:] = self._items.kept(self.slate)
        if self.shows(released):
            self.picker.fill(self.slate)

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """For a snapshot: the slate, what was learned, and what the next release pays attention to."""
        return self.slate, self.picker.arrays, self.query_weights.arrays
