"""Slates of the items there are, by the rules: the best for some draws, those of wanted items, random ones. Public.

Without rules, and while all items are there, any items make a slate in any order, and compiled code searches for the
best one. With rules the same search is made item by item: pinned items first, then the best of those that still fit;
then each slot that is not pinned is offered what could stand there instead.
"""

from __future__ import annotations

import numpy as np

from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.slates.model import NO_PAIR, Draws, Neighbours, best_for_slot, best_slate
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


class SlateBuilder:
    """Makes slates; nothing else knows of rules, or of items that come and go."""

    def __init__(self, items: ItemAvailability) -> None:
        self.items = items

    @property
    def free(self) -> bool:
        """Whether any items may be shown together, in any order."""
        return not self.items.rules and bool(self.items.available.all())

    @property
    def n_available(self) -> int:
        """How many items there are now."""
        return int(self.items.available.sum())

    @property
    def free_slots(self) -> int:
        """How many slots have no item that is pinned to them."""
        return int((self.items.pinned == EMPTY_SLOT).sum())

    def best(self, draws: Draws, which: Ints, neighbours: Neighbours, passes: int) -> Items:
        """The slate that pays most on average over some draws: greedily, then by `passes` over its slots."""
        if self.free:
            slate: Items = np.zeros(self.items.slots, dtype=np.int32)
            best_slate(draws, which, neighbours, slate, passes)
            return slate
        return self._best_by_rules(_Growing(draws, which, neighbours, self.items.slots), passes)

    def _best_by_rules(self, growing: _Growing, passes: int) -> Items:
        items, slate, slots = self.items, self._empty(), list[int]()
        while len(left := items.next_items(slate)):
            item = int(left[0]) if left[0] in items.pinned else growing.offer(len(slots), left)[0]
            slots.append(items.slot_for(item, slate))
            slate[slots[-1]] = item
            growing.put(item, len(slots) - 1)
        for _ in range(passes):
            moved = False
            for place, slot in enumerate(slots):
                rivals = items.rivals(slate, slot)
                if len(rivals):
                    item, worth = growing.offer(place, rivals)
                    if worth > growing.worth * (1 + 1e-9):
                        growing.put(item, place)
                        slate[slot], growing.worth, moved = item, worth, True
            if not moved:
                break
        return slate

    def containing(self, wanted: Items) -> Items:
        """A slate of these items, the first of them first, as far as they fit; filled up with others if they do not."""
        preference = np.full(self.items.n_items, -np.inf)
        for rank, item in enumerate(wanted.tolist()):
            preference[item] = max(preference[item], -rank)
        unwanted = np.isneginf(preference)
        preference[unwanted] = -len(wanted) - np.flatnonzero(unwanted)
        return self._preferring(preference)

    def _preferring(self, preference: Floats, slate: Items | None = None) -> Items:
        """A slate, or this one filled up: again and again what is preferred most of all that still fits."""
        result = self._empty() if slate is None else slate.copy()
        while (picked := self.items.pick(preference, result)) is not None:
            result[picked[0]] = picked[1]
        return result

    def random(self, rng: np.random.Generator, many: int) -> Items:
        """Random slates that show every item once, if `many` are enough; items come twice where no others are left."""
        n, k = self.items.n_items, self.items.slots
        if self.free:
            order = rng.permutation(n)
            order = np.concatenate([order, order[: -n % k]]).astype(np.int32)  # the last slate is filled up
            return np.asarray(order.reshape(-1, k)[:many], dtype=np.int32)
        preference, slates = rng.permutation(n).astype(np.float64), list[Items]()
        waiting = n
        while len(slates) < many:
            slate = self._preferring(preference)
            preference[slate[slate != EMPTY_SLOT]] -= n  # behind all that were not shown yet
            unshown = int((preference[self.items.available] >= 0).sum())
            if slates and unshown == waiting:  # what is left fits nowhere
                break
            waiting = unshown
            slates.append(slate)
        return np.array(slates, dtype=np.int32)

    def ordered(self, slate: Items, keys: Ints | Items) -> Items:
        """The slate with the least keys, one for each slot, first, as far as its items may change places."""
        if self.items.rules.eligible is not None:
            return slate
        pinned = self.items.pinned != EMPTY_SLOT
        moving = np.flatnonzero(~pinned)
        delay = (slate == EMPTY_SLOT)[moving]
        result = slate.copy()
        result[moving] = slate[moving][np.lexsort((keys[moving], delay))]
        return result

    def any_slate(self) -> Items:
        """A slate, whatever users want: the items with the least numbers."""
        return self._preferring(-np.arange(self.items.n_items, dtype=np.float64))

    def mended(self, slate: Items, gains: Floats) -> Items:
        """The slate without what is no longer there, filled up with what gains most."""
        return slate if self.obeyed(slate) else self._preferring(gains, self.items.kept(slate))

    def obeyed(self, slates: Items) -> bool:
        """Whether all items of one slate, or of several, are there, and those that are pinned are in their slots."""
        pins = self.items.pinned
        stays = (self.items.kept(slates) == slates) & ((pins == EMPTY_SLOT) | (slates == pins))
        if (eligible := self.items.fitted.eligible) is not None:
            stays &= (slates == EMPTY_SLOT) | eligible[np.arange(self.items.slots), slates]
        return bool(stays.all())

    def _empty(self) -> Items:
        return np.full(self.items.slots, EMPTY_SLOT, dtype=np.int32)


class _Growing:
    """Items that were chosen one after the other, and what a slate with another one would pay."""

    def __init__(self, draws: Draws, which: Ints, neighbours: Neighbours, slots: int) -> None:
        n_items = draws.appeals.shape[1]
        self._draws, self._which, self._neighbours = draws, which, neighbours
        self._chosen: Items = np.full(slots, EMPTY_SLOT, dtype=np.int32)
        self._length = 0
        self._pair_of = np.full((slots, n_items), NO_PAIR, dtype=np.int64)
        self._beside, self._room = np.zeros(n_items, dtype=np.int64), np.empty(n_items)
        self.worth = 0.0
        """What the items pay together, summed over draws, as far as they were offered."""

    def offer(self, place: int, items: Ints | Items) -> tuple[int, float]:
        """Which of these items pays most at that place, and what all pay then; it is not put there yet."""
        used = np.ones(len(self._room), dtype=np.bool_)
        used[items] = False
        length = max(self._length, place + 1)
        item, worth = best_for_slot(
            place,
            length,
            self._chosen,
            used,
            self._draws,
            self._which,
            self._pair_of,
            self._beside,
            self._room,
        )
        if place == self._length:
            self.worth = worth
        return int(item), float(worth)

    def put(self, item: int, place: int) -> None:
        """The item is at that place from now on."""
        before = int(self._chosen[place])
        if before != EMPTY_SLOT:
            self._beside[self._known(before)[0]] -= 1
        others, pairs = self._known(item)
        self._beside[others] += 1
        self._pair_of[place], self._chosen[place] = NO_PAIR, item
        self._pair_of[place, others] = pairs
        self._length = max(self._length, place + 1)

    def _known(self, item: int) -> tuple[Ints, Ints]:
        """The items that were shown together with that one, and the numbers of the pairs."""
        here = slice(self._neighbours.starts[item], self._neighbours.starts[item + 1])
        return self._neighbours.items[here], self._neighbours.pairs[here]
