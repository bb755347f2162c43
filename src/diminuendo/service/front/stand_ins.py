"""One slate by public lists: drawn at random, or without what one person excludes.

As learners/base/rules does it, in plain Python for one person; tests compare the two. What stands in for an excluded
item follows from public facts and her exclusions alone: no coins, so nobody else is shown anything different.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from random import SystemRandom

from diminuendo.service.records import Lists

EMPTY = -1
TRIES = 16
"""Once this number of draws did not fit, the items that do are listed and one of them drawn."""
_system = SystemRandom()


class Row:
    """A slate while it is filled, and how many items of each capped set are in it."""

    def __init__(self, lists: Lists, row: Sequence[int]) -> None:
        self.lists = lists
        self.items = list(row)
        self._counts = [0] * len(lists.most)
        for item in row:
            self._enter(item)

    def bounds(self, slot: int) -> tuple[int, int]:
        """Where a slot's list begins and ends."""
        starts = self.lists.starts
        place = slot if len(starts) > 2 else 0
        return starts[place], starts[place + 1]

    def put(self, slot: int, item: int) -> None:
        """Fill a slot that is empty."""
        self.items[slot] = item
        self._enter(item)

    def fits(self, item: int) -> bool:
        """Whether an item is not shown yet, and no cap keeps it away."""
        return item not in self.items and all(
            self._counts[each] < self.lists.most[each] for each in self._sets(item)
        )

    def _enter(self, item: int) -> None:
        if item != EMPTY:
            for each in self._sets(item):
                self._counts[each] += 1

    def _sets(self, item: int) -> Iterator[int]:
        each = self.lists.inside[item] if self._counts else EMPTY
        while each >= 0:
            yield each
            each = self.lists.parents[each]


def drawn(lists: Lists, slots: int) -> tuple[int, ...]:
    """A random slate, slot by slot, each item that fits equally likely; where nothing is left a slot stays empty."""
    row = Row(lists, lists.pinned or [EMPTY] * slots)
    for slot, item in enumerate(row.items):
        if item == EMPTY:
            low, high = row.bounds(slot)
            row.put(slot, _one(row, lists.items, low, high))
    return tuple(row.items)


def _one(row: Row, items: Sequence[int], low: int, high: int) -> int:
    if low < high:
        for _ in range(TRIES):
            item = items[_system.randrange(low, high)]
            if row.fits(item):
                return item
    left = [item for item in items[low:high] if row.fits(item)]
    return _system.choice(left) if left else EMPTY


def without(
    lists: Lists, own: Sequence[int], ranking: Sequence[int], slate: Sequence[int], excluded: Collection[int]
) -> tuple[int, ...]:
    """A slate without what a person excludes, and with stand-ins in the slots that become free.

    The best of her type's own that fits, then of everybody's; then the next one by number, and round again.
    """
    kept = [EMPTY if item in excluded else item for item in slate]
    row = Row(lists, kept)
    for slot, gone in enumerate(slate):
        if gone != EMPTY and kept[slot] == EMPTY:
            low, high = row.bounds(slot)
            for item in chain(own, ranking, _behind(lists.items, low, high, gone)):
                listed = item != EMPTY and item not in excluded and _has(lists.items, low, high, item)
                if listed and row.fits(item):
                    row.put(slot, item)
                    break
    return tuple(row.items)


def _behind(items: Sequence[int], low: int, high: int, gone: int) -> Iterator[int]:
    """The items of a slot behind the one that left, then those before it."""
    middle = bisect_right(items, gone, low, high)
    for j in chain(range(middle, high), range(low, middle)):
        yield items[j]


def _has(items: Sequence[int], low: int, high: int, item: int) -> bool:
    place = bisect_left(items, item, low, high)
    return place < high and items[place] == item
