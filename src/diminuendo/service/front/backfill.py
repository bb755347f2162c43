"""One slate by public lists: drawn at random, or without what one user excludes.

As learners/base/rules does it, in plain Python for one user; tests compare the two. What stands in for an excluded
item follows from public facts and the exclusions alone, without randomness, so no other user is shown anything
different.
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


class Ranked:
    """A ranking without what is excluded, computed as far as it was read."""

    def __init__(self, ranking: Sequence[int], excluded: Collection[int]) -> None:
        self._found: list[int] = []
        self._rest = (item for item in ranking if item != EMPTY and item not in excluded)

    def __iter__(self) -> Iterator[int]:
        at = 0
        while True:
            if at == len(self._found):
                item = next(self._rest, EMPTY)
                if item == EMPTY:
                    return
                self._found.append(item)
            yield self._found[at]
            at += 1


class Excluded:
    """What one request excludes, made ready once for all of its decisions.

    Work grows with the number of excluded items, not with the catalogue, and is not done again for the next decision.
    """

    def __init__(self, items: Collection[int]) -> None:
        self.items = frozenset(items)
        self._ranked: dict[int, tuple[Sequence[int], Ranked]] = {}
        self._runs: dict[tuple[int, int, int], tuple[Lists, dict[int, int]]] = {}
        self._known: dict[tuple[object, ...], tuple[Lists, tuple[int, ...]]] = {}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self.items

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)

    def without(
        self, lists: Lists, own: Sequence[int], ranking: Sequence[int], slate: Sequence[int]
    ) -> tuple[int, ...]:
        """As the function `without`, which it calls once for each slate of one menu."""
        key = id(lists), id(own), id(ranking), tuple(slate)
        if key not in self._known:
            self._known[key] = lists, without(lists, own, ranking, slate, self)
        return self._known[key][1]

    def ranked(self, ranking: Sequence[int]) -> Ranked:
        """A ranking without them."""
        if (
            id(ranking) not in self._ranked
        ):  # kept with what it is of, so that no other has its place in memory
            self._ranked[id(ranking)] = ranking, Ranked(ranking, self.items)
        return self._ranked[id(ranking)][1]

    def runs(self, lists: Lists, low: int, high: int) -> dict[int, int]:
        """By place in a slot's list where an excluded item stands, the first one behind it where none does."""
        key = id(lists), low, high
        if key not in self._runs:
            ends = dict[int, int]()
            for item in sorted(self.items, reverse=True):
                place = bisect_left(lists.items, item, low, high)
                if place < high and lists.items[place] == item:
                    ends[place] = ends.get(place + 1, place + 1)
            self._runs[key] = lists, ends
        return self._runs[key][1]


def without(
    lists: Lists, own: Sequence[int], ranking: Sequence[int], slate: Sequence[int], excluded: Excluded
) -> tuple[int, ...]:
    """A slate without what a user excludes, and with backfill in the slots that become free.

    The best one that fits of the ranking of the user's type, then of the global ranking; then the next one by number,
    cyclically.
    """
    kept = [EMPTY if item in excluded else item for item in slate]
    row = Row(lists, kept)
    for slot, gone in enumerate(slate):
        if gone != EMPTY and kept[slot] == EMPTY:
            low, high = row.bounds(slot)
            ranked = chain(excluded.ranked(own), excluded.ranked(ranking))
            listed = (item for item in ranked if _has(lists.items, low, high, item))
            for item in chain(listed, _behind(lists, low, high, gone, excluded)):
                if row.fits(item):
                    row.put(slot, item)
                    break
    return tuple(row.items)


def _behind(lists: Lists, low: int, high: int, gone: int, excluded: Excluded) -> Iterator[int]:
    """The items of a slot behind the one that left, then those before it, without what is excluded."""
    middle, ends = bisect_right(lists.items, gone, low, high), excluded.runs(lists, low, high)
    for place, end in ((middle, high), (low, middle)):
        while (place := ends.get(place, place)) < end:
            yield lists.items[place]
            place += 1


def _has(items: Sequence[int], low: int, high: int, item: int) -> bool:
    place = bisect_left(items, item, low, high)
    return place < high and items[place] == item
