r"""What a slate that grows may still take by its rules, and which slot and item come next.

*How good greedy is by rules.* For monotone submodular functions, and compared with the best slate by the same rules:
with caps alone, or with eligible slots alone, greedy keeps at least 1/2 of it, since both are greedy over a matroid
(Fisher, Nemhauser and Wolsey 1978): the sets that keep all caps and have at most k items are the independent sets of a
laminar matroid, and pairs of slot and item with each slot once are those of a partition matroid. With both together
slates are common independent sets of two matroids, and greedy keeps at least 1/3 (same paper). Pinned items come first,
and greedy keeps that share of what can be added to them. Without rules, or with pins alone, it keeps 1 - 1/e.

With caps and pins alone a slate is filled as far as any slate can be. With eligible slots a slot may stay empty
although another choice for an earlier slot would have left something for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diminuendo.offline.rules import OUTSIDE, SlateRules, counted
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

Flags = NDArray[np.bool_]
"""Yes or no for each item."""


class FittedRules:
    """Rules for `n_items` items and `slots` slots; `available` says for each item whether it is there at all.

    A pinned item that is not there is not shown, and its slot is as any other meanwhile. One that is there is shown in
    its slot and in no other.
    """

    def __init__(self, rules: SlateRules | None, n_items: int, slots: int) -> None:
        self.rules = rules if rules else SlateRules()
        self.rules.check(n_items, slots)
        self.n_items, self.slots = n_items, slots
        self.eligible: NDArray[np.bool_] | None = None
        """(slots, items): which items each slot may show; None: all."""
        if self.rules.eligible is not None:
            self.eligible = np.zeros((slots, n_items), dtype=np.bool_)
            for slot, row in enumerate(self.rules.eligible):
                self.eligible[slot, list(row)] = True
        self._pinned: Items = np.full(slots, EMPTY_SLOT, dtype=np.int32)
        for slot, item in self.rules.pinned:
            self._pinned[slot] = item
        self.tree = self.rules.tree(n_items)

    def __repr__(self) -> str:
        return f"<FittedRules: {self.slots} of {self.n_items} items>"

    def pins(self, available: Flags) -> Items:
        """For each slot the item that is pinned to it and there, or EMPTY_SLOT."""
        known = (self._pinned != EMPTY_SLOT) & available[self._pinned]
        return np.where(known, self._pinned, EMPTY_SLOT).astype(np.int32)

    def open_to(self, slate: Items, available: Flags) -> Flags:
        """Items that may join the slate in some slot, besides those that are pinned."""
        may = available.copy()
        shown = slate[slate != EMPTY_SLOT]
        may[shown] = False
        may[self._pinned[self._pinned != EMPTY_SLOT]] = False
        if self.rules.caps:
            may &= ~self._full(slate[None, :])[0]
        return may

    def _full(self, slates: Items) -> NDArray[np.bool_]:
        """(slates, items): items of sets that are full, or inside of a set that is."""
        tree = self.tree
        counts = np.array([counted(tree, slate.astype(np.int64)) for slate in slates])
        full = np.zeros(
            (len(slates), len(tree.most) + 1), dtype=np.bool_
        )  # the last is OUTSIDE, and never full
        full[:, :-1] = counts >= tree.most
        for each in range(len(tree.most) - 1, -1, -1):  # those around it come behind it
            full[:, each] |= full[:, tree.parents[each]]
        result: NDArray[np.bool_] = full[:, tree.inside]
        return result

    def room(self, slate: Items, slot: int, item: int) -> bool:
        """Whether no cap keeps an item from taking the place of what a slot shows."""
        if not self.rules.caps:
            return True
        after = slate.astype(np.int64)
        after[slot] = item
        return bool((counted(self.tree, after) <= self.tree.most).all())

    def rivals(self, slate: Items, slot: int, available: Flags) -> Items:
        """Items that are not shown and could be, in the place of what that slot shows; none where it is pinned."""
        if self.pins(available)[slot] != EMPTY_SLOT:
            return np.zeros(0, dtype=np.int32)
        without = slate.copy()
        without[slot] = EMPTY_SLOT
        may = self.open_to(without, available)
        if slate[slot] != EMPTY_SLOT:
            may[slate[slot]] = False
        if self.eligible is not None:
            may &= self.eligible[slot]
        return np.flatnonzero(may).astype(np.int32)

    def next_items(self, slate: Items, available: Flags) -> Ints:
        """What may come next: an item that is pinned, if one is still missing; else all that fit a slot still free."""
        pins = self.pins(available)
        waiting = pins[(slate == EMPTY_SLOT) & (pins != EMPTY_SLOT)]
        if len(waiting):
            result: Ints = waiting[:1].astype(np.int64)
            return result
        may, free = self.open_to(slate, available), slate == EMPTY_SLOT
        if self.eligible is not None:
            may &= self.eligible[free].any(axis=0)
        return np.flatnonzero(may) if free.any() else np.zeros(0, dtype=np.int64)

    def slot_for(self, item: int, slate: Items, available: Flags) -> int:
        """The slot of an item that comes next: where it is pinned, or the first one still free that may show it."""
        here = self.pins(available) == item
        if not here.any():
            here = slate == EMPTY_SLOT
            if self.eligible is not None:
                here = here & self.eligible[:, item]
        return int(here.argmax())

    def pick(self, gains: Floats, slate: Items, available: Flags) -> tuple[int, int] | None:
        """The next slot and item: what is pinned first, then the best slot still free and item; None: there is none."""
        pins = self.pins(available)
        for slot in np.flatnonzero((slate == EMPTY_SLOT) & (pins != EMPTY_SLOT)).tolist():
            return slot, int(pins[slot])
        may, best = self.open_to(slate, available), None
        for slot in np.flatnonzero(slate == EMPTY_SLOT).tolist():
            fits = may if self.eligible is None else may & self.eligible[slot]
            if fits.any():
                item = int(np.argmax(np.where(fits, gains, -np.inf)))
                if best is None or gains[item] > gains[best[1]]:
                    best = slot, item
            if self.eligible is None:
                break
        return best

    def pick_each(self, gains: Floats, slates: Items, available: Flags) -> Ints:
        """(slates, 2): as `pick`, for each of several slates by its own gains; EMPTY_SLOT where there is none."""
        if self.eligible is not None:
            result = [
                self.pick(mine, slate, available) or (EMPTY_SLOT, EMPTY_SLOT)
                for mine, slate in zip(gains, slates, strict=True)
            ]
            return np.array(result, dtype=np.int64)
        pins, each = self.pins(available), np.arange(len(slates))
        worth = np.where(available, gains, -np.inf)
        rows, shown = np.nonzero(slates != EMPTY_SLOT)
        worth[rows, slates[rows, shown]] = -np.inf
        worth[:, self._pinned[self._pinned != EMPTY_SLOT]] = -np.inf
        if self.rules.caps:
            worth[self._full(slates)] = -np.inf
        item = worth.argmax(axis=1)
        slot = (slates == EMPTY_SLOT).argmax(axis=1)
        fits = (worth[each, item] > -np.inf) & (slates[each, slot] == EMPTY_SLOT)
        waiting = (slates == EMPTY_SLOT) & (pins != EMPTY_SLOT)
        first = waiting.argmax(axis=1)
        pinned = waiting[each, first]
        slots, items = np.where(pinned, first, slot), np.where(pinned, pins[first], item)
        return np.where((fits | pinned)[:, None], np.stack([slots, items], axis=1), EMPTY_SLOT)

    def kept(self, slates: Items, available: Flags) -> Items:
        """What may stay of a slate, or of several, after items have come or gone.

        Where a pinned item is back, neither what has its slot nor, beyond a cap that it counts for, the last of the
        others.
        """
        pins = self.pins(available)
        stays = available[slates] & ((pins == EMPTY_SLOT) | (pins == slates))
        result: Items = np.where(stays, slates, EMPTY_SLOT).astype(np.int32)
        if self.rules.caps:
            for slate in result.reshape(-1, self.slots):
                self._cut(slate, pins)
        return result

    def _cut(self, slate: Items, pins: Items) -> None:
        """Take items out, the last first, until those that are pinned fit beside the others."""
        for slot in np.flatnonzero((pins == EMPTY_SLOT) & (slate != EMPTY_SLOT))[::-1].tolist():
            with_pins = np.where(pins == EMPTY_SLOT, slate, pins).astype(np.int64)
            over = np.flatnonzero(counted(self.tree, with_pins) > self.tree.most)
            if any(self._within(int(slate[slot]), each) for each in over.tolist()):
                slate[slot] = EMPTY_SLOT

    def _within(self, item: int, capped: int) -> bool:
        """Whether an item counts for that set."""
        result = int(self.tree.inside[item])
        while result not in (OUTSIDE, capped):
            result = int(self.tree.parents[result])
        return result == capped
