"""Which items there are, since when, and by which rules slates are made of them. All of it is public.

Catalogues change: an item that is not there yet is not shown and not learned about, and once it appears it is judged
by the users who come from the next batch on. An item that retires is not shown any more; what users say about it is
still kept, so it may come back as if it had never left.

Rules say which slots may show which items, which are always shown, and of which only a few (offline/rules.py). The
next item of a slate is the best that they leave, for any slot still free; offline/fitting.py says how good that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.learners.base.menu import Menu, RandomFromLists, RandomSlates
from diminuendo.learners.base.rules.lists import Lists
from diminuendo.offline.fitting import FittedRules
from diminuendo.offline.rules import SlateRules
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

NOT_YET = 1 << 40
"""Later than any batch."""
RANKED = 64
"""How many items are ranked behind a slate, where users may exclude some; where there are rules, all of them are."""


class ItemAvailability:
    """Items, and the rules for slates of them. `exclusions`: whether users may exclude items: then menus say what
    else may be shown."""

    def __init__(
        self,
        n_items: int,
        slots: int,
        absent: Iterable[int] = (),
        rules: SlateRules | None = None,
        *,
        exclusions: bool = False,
    ) -> None:
        self.n_items, self.slots, self.exclusions = n_items, slots, exclusions
        self.first_batch: Ints = np.zeros(n_items, dtype=np.int64)
        """The batch from which on users are asked about an item, or NOT_YET."""
        self.retired_in: Ints = np.full(n_items, NOT_YET, dtype=np.int64)
        """The batch in which an item retired, or NOT_YET."""
        self.absent = tuple(sorted(int(item) for item in self._items(absent)))
        self.first_batch[list(self.absent)] = NOT_YET
        self.fitted = FittedRules(rules, n_items, slots)
        self.arrays = (self.first_batch, self.retired_in)

    def __repr__(self) -> str:
        return f"<ItemAvailability: {int(self.available.sum())} of {self.n_items} items>"

    def appear(self, items: Iterable[int], batch: int) -> None:
        """Items are there from now on; those that were not before, for users of `batch` and later."""
        result = self._items(items)
        new = result[self.first_batch[result] == NOT_YET]
        self.first_batch[new], self.retired_in[result] = batch, NOT_YET

    def retire(self, items: Iterable[int], batch: int) -> None:
        """Items are not shown any more."""
        self.retired_in[self._items(items)] = batch

    @property
    def rules(self) -> SlateRules:
        """By which slates are made."""
        return self.fitted.rules

    @property
    def available(self) -> NDArray[np.bool_]:
        """Which items may be shown."""
        result: NDArray[np.bool_] = (self.first_batch < NOT_YET) & (self.retired_in == NOT_YET)
        return result

    @property
    def pinned(self) -> Items:
        """For each slot the item that is pinned to it and there, or EMPTY_SLOT."""
        return self.fitted.pins(self.available)

    # Slates, one item after the other.

    def open_to(self, slate: Items) -> NDArray[np.bool_]:
        """Items that may join the slate in some slot, besides those that are pinned."""
        return self.fitted.open_to(slate, self.available)

    def next_items(self, slate: Items) -> Ints:
        """What may come next: an item that is pinned, if one is still missing; else all that fit a slot still free."""
        return self.fitted.next_items(slate, self.available)

    def slot_for(self, item: int, slate: Items) -> int:
        """The slot of an item that comes next: where it is pinned, or the first one still free that may show it."""
        return self.fitted.slot_for(item, slate, self.available)

    def pick(self, gains: Floats, slate: Items) -> tuple[int, int] | None:
        """The next slot and item: what is pinned first, then the best slot still free and item; None: there is none."""
        return self.fitted.pick(gains, slate, self.available)

    def pick_each(self, gains: Floats, slates: Items) -> Ints:
        """(slates, 2): as `pick`, for each of several slates by its own gains; EMPTY_SLOT where there is none."""
        return self.fitted.pick_each(gains, slates, self.available)

    def kept(self, slates: Items) -> Items:
        """What may stay of a slate, or of several, after items have come or gone."""
        return self.fitted.kept(slates, self.available)

    def rivals(self, slate: Items, slot: int) -> Items:
        """Items that are not shown and could be, in the place of what that slot shows; none where it is pinned."""
        return self.fitted.rivals(slate, slot, self.available)

    # For menus.

    def lists(self) -> Lists:
        """What each slot may show; where all may show the same, one list."""
        available, pins = self.available, self.pinned
        if self.rules.pinned:
            available[pins[pins != EMPTY_SLOT]] = False
        rows = (
            [available] if self.fitted.eligible is None else [available & row for row in self.fitted.eligible]
        )
        items = [np.flatnonzero(row).astype(np.int32) for row in rows]
        starts = np.cumsum([0, *map(len, items)], dtype=np.int64)
        result = Lists(starts, np.concatenate(items))
        if self.rules.pinned:
            result = result._replace(pinned=pins)
        return result._replace(**self.fitted.tree._asdict()) if self.rules.caps else result

    def lists_for_exclusions(self) -> Lists | None:
        """What may take the place of what a user excludes; None where users may exclude nothing."""
        return self.lists() if self.exclusions else None

    def ranking(self, gains: Floats) -> Items | None:
        """What takes the place of what a user excludes, the best first; None where users may exclude nothing."""
        if not self.exclusions:
            return None
        may = np.flatnonzero(self.available)
        best = may[np.argsort(-gains[may], kind="stable")].astype(np.int32)
        return best if self.rules else best[: RANKED + self.slots]

    def random_menu(self, first: int, end: int | None, words: int) -> Menu:
        """Random slates of the items there are, by the rules."""
        sizes = self.n_items, self.slots, first, end, words
        if self.rules or not self.available.all():
            return RandomFromLists(*sizes, lists=self.lists())
        return RandomSlates(*sizes, lists=self.lists_for_exclusions())

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """What was known of items before the first round, as far as there is anything to say."""
        result: dict[str, Any] = {"absent": list(self.absent)} if self.absent else {}
        return result | ({"rules": self.rules.config()} if self.rules else {})

    def changed(self) -> dict[str, NDArray[Any]]:
        """Which items have come and gone; nothing, where they are as at first."""
        at_first = (self.first_batch == NOT_YET) == np.isin(np.arange(self.n_items), self.absent)
        if at_first.all() and (self.retired_in == NOT_YET).all():
            return {}
        return {"items.first": self.first_batch, "items.retired": self.retired_in}

    def take_changed(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take out of `arrays` what `changed` gave."""
        for array, name in zip(self.arrays, ("items.first", "items.retired"), strict=True):
            if (times := arrays.pop(name, None)) is not None:
                array[:] = times

    def sound(self) -> bool:
        """Whether this, as read from a snapshot, can have come about."""
        return all(bool(((times >= 0) & (times <= NOT_YET)).all()) for times in self.arrays)

    def obeyed(self, slate: Items) -> bool:
        """Whether a slate, as read from a snapshot, keeps to the rules."""
        eligible, shown = self.fitted.eligible, np.flatnonzero(slate != EMPTY_SLOT)
        fits = eligible is None or bool(eligible[shown, slate[shown]].all())
        return not self.rules or (fits and bool((self.kept(slate) == slate).all()))

    def _items(self, items: Iterable[int]) -> Ints:
        return np.array(
            [_validate.whole(item, 0, self.n_items - 1, "item") for item in items], dtype=np.int64
        )
