"""Which items there are, since when, and which slots may show them. All of it is public.

Catalogues change: an item that is not there yet is not shown and not learned about, and once it appears it is judged
by the people who come from the next batch on. An item that retires is not shown any more; what people say about it is
still kept, so it may come back as if it had never left. Slots may have items of their own (`eligible`): a row of books,
a row of films.

With `eligible`, the next item of a slate is the best that fits any slot still free (greedy over pairs of slot and item,
at least half the best assignment for monotone submodular functions: Fisher, Nemhauser and Wolsey 1978).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items

NOT_YET = 1 << 40
"""Later than any batch."""


class ItemAvailability:
    """Items, and the slots that may show them."""

    def __init__(self, n_items: int, slots: int, absent: Iterable[int] = (), eligible: Any = None) -> None:
        self.n_items, self.slots = n_items, slots
        self.first_batch: Ints = np.zeros(n_items, dtype=np.int64)
        """The batch from which on people are asked about an item, or NOT_YET."""
        self.retired_in: Ints = np.full(n_items, NOT_YET, dtype=np.int64)
        """The batch in which an item retired, or NOT_YET."""
        self.absent = tuple(sorted(int(item) for item in self._items(absent)))
        self.first_batch[list(self.absent)] = NOT_YET
        self.eligible = None if eligible is None else _eligible(eligible, n_items, slots)
        self.arrays = (self.first_batch, self.retired_in)

    def __repr__(self) -> str:
        return f"<ItemAvailability: {int(self.available.sum())} of {self.n_items} items>"

    def appear(self, items: Iterable[int], batch: int) -> None:
        """Items are there from now on; those that were not before, for people of `batch` and later."""
        found = self._items(items)
        new = found[self.first_batch[found] == NOT_YET]
        self.first_batch[new], self.retired_in[found] = batch, NOT_YET

    def retire(self, items: Iterable[int], batch: int) -> None:
        """Items are not shown any more."""
        self.retired_in[self._items(items)] = batch

    @property
    def available(self) -> NDArray[np.bool_]:
        """Which items may be shown."""
        found: NDArray[np.bool_] = (self.first_batch < NOT_YET) & (self.retired_in == NOT_YET)
        return found

    @property
    def unrestricted(self) -> bool:
        """Whether every slot may show every item."""
        return self.eligible is None and bool(self.available.all())

    def pick(self, gains: Floats, slate: Items) -> tuple[int, int] | None:
        """The best slot still free and item not yet shown; None where there is none."""
        may = self.available
        may[slate[slate != EMPTY_SLOT]] = False
        best = None
        for slot in np.flatnonzero(slate == EMPTY_SLOT):
            fits = may if self.eligible is None else may & self.eligible[slot]
            if fits.any():
                item = int(np.argmax(np.where(fits, gains, -np.inf)))
                if best is None or gains[item] > gains[best[1]]:
                    best = int(slot), item
            if self.eligible is None:
                break
        return best

    def lists(self) -> tuple[Ints, Items]:
        """For each slot where its items begin and end, and the items, one slot after the other."""
        rows = [
            self.available & (True if self.eligible is None else self.eligible[slot])
            for slot in range(self.slots)
        ]
        items = [np.flatnonzero(row).astype(np.int32) for row in rows]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in items])])
        return starts.astype(np.int64), np.concatenate(items)

    def sound(self) -> bool:
        """Whether this, as read from a snapshot, can have come about."""
        return all(bool(((times >= 0) & (times <= NOT_YET)).all()) for times in self.arrays)

    def _items(self, items: Iterable[int]) -> Ints:
        return np.array(
            [_validate.whole(item, 0, self.n_items - 1, "item") for item in items], dtype=np.int64
        )


def _eligible(given: Any, n_items: int, slots: int) -> NDArray[np.bool_]:
    """(slots, items) of yes and no; or for each slot the numbers of its items."""
    rows = list(given)
    if len(rows) != slots:
        raise InvalidInput(
            f"eligible must say for each of {slots} slots which items it shows; got {len(rows)} rows."
        )
    found = np.zeros((slots, n_items), dtype=np.bool_)
    for slot, row in enumerate(rows):
        entries = np.asarray(row)
        if entries.dtype == np.bool_ and entries.shape == (n_items,):
            found[slot] = entries
        else:
            found[slot, [_validate.whole(item, 0, n_items - 1, "eligible item") for item in row]] = True
        if not found[slot].any():
            raise InvalidInput(f"Slot {slot} has no eligible item; leave the slot out instead.")
    return found
