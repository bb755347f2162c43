"""Menus of overlap learners: besides one slate, and random slates, random slates from lists of items.

Once something was published, or where a public prior is given, everybody is shown one slate; before that slates are
random. Where some items are not there, or slots have items of their own, each slot draws from a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.types import EMPTY_SLOT, Ints, Items


@dataclass(frozen=True, eq=False)
class RandomFromLists(Menu):
    """Everybody is shown random items, slot by slot from the slot's own list, nothing twice."""

    kind: ClassVar[str] = "random slates from lists"
    starts: Ints
    """Where each slot's items begin, and, last, where they all end."""
    items: Items

    def __post_init__(self) -> None:
        starts, items = self.starts, self.items
        sound = (
            starts.shape == (self.slots + 1,)
            and starts[0] == 0
            and (starts[1:] >= starts[:-1]).all()
            and items.shape == (starts[-1],)
            and ((items >= 0) & (items < self.n_items)).all()
        )
        if not sound:
            raise InvalidInput("The menu holds lists of items that could not have been made; it was altered.")

    def chooser(self) -> Chooser:
        """What draws each slot from its list."""
        return _DrawsFromLists(self)


class _DrawsFromLists(Chooser):
    def __init__(self, menu: RandomFromLists) -> None:
        self.menu: RandomFromLists = menu

    def draw(self, number: int, slates: Items, probes: Items, coins: PublicWords) -> int:
        """Each item that is left to a slot equally likely."""
        return int(draw_from_lists(self.menu.starts, self.menu.items, slates, 0, coins))

    def propensity(self, number: int, row: Items) -> None:
        """Is not said."""


@kernel
def draw_from_lists(starts: Ints, items: Items, slates: Items, done: int, coins: PublicWords) -> int:
    """Random slates from `done` on, slot by slot, nothing twice; a slot for which nothing is left stays empty."""
    while done < slates.shape[0]:
        begin(coins)
        row = slates[done]
        for slot in range(len(row)):
            row[slot] = EMPTY_SLOT
        for slot in range(len(row)):
            low, high = starts[slot], starts[slot + 1]
            left = high - low
            for j in range(
                low, high if left <= slot else low
            ):  # with more items than slots before, some are left
                for earlier in range(slot):
                    left -= row[earlier] == items[j]
            while left > 0 and row[slot] == EMPTY_SLOT:
                place = below(high - low, coins)
                if place == UNFINISHED:
                    undo(coins)
                    return done
                item = items[low + place]
                for earlier in range(slot):
                    if row[earlier] == item:
                        item = EMPTY_SLOT
                row[slot] = item
        done += 1
    return done
