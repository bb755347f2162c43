"""A menu: what is shown next, to which rounds and with what chance. Plain public data.

A menu can be written down and read back. A process that holds a menu and public coins can choose for the menu's rounds,
slate for slate as the learner would, and knows nothing of anybody's answer: menus are made of what was published.

What draws by a menu is its `Chooser`: it keeps tables that make draws fast, and what is left of a block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from diminuendo import _snapshots
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.types import EMPTY_SLOT, Ints, Items


@dataclass(frozen=True, eq=False)
class Menu(ABC):
    """What holds for all kinds of menus. A field is a number or a text, or an array."""

    kind: ClassVar[str]
    n_items: int
    slots: int
    first: int
    """The first round that it is for."""
    end: int | None
    """The round with which the next menu begins; None: it holds for ever."""
    words: int
    """How many words of its public coins the learner had used when the menu began."""

    @abstractmethod
    def chooser(self) -> Chooser:
        """What draws the slates of its rounds, from the first on."""

    def to_bytes(self) -> bytes:
        """As bytes; the same menu gives the same bytes."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        arrays = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        facts = {name: part for name, part in parts.items() if name not in arrays}
        return _snapshots.packed({"menu": self.kind} | facts, arrays)

    @classmethod
    def from_parts(cls, facts: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """The menu that was written down as these facts and arrays."""
        try:
            return cls(**facts | arrays)
        except TypeError as error:
            raise InvalidInput(f"These bytes are not a menu of kind {cls.kind!r}: {error}") from error


class Chooser(ABC):
    """Draws the slates of a menu's rounds, one after the other."""

    menu: Menu

    @abstractmethod
    def draw(self, number: int, slates: Items, probes: Items, coins: PublicWords) -> int:
        """Fill in the slates, and probes, of rounds from `number` on; how many, before more words are needed.

        All of them are rounds of the menu. Where words run out nothing of that round has happened.
        """

    @abstractmethod
    def propensity(self, number: int, row: Items) -> float | None:
        """With what probability `row`, the last slate drawn, was shown in round `number`; None where it is not said."""


@dataclass(frozen=True, eq=False)
class OneSlate(Menu):
    """Everybody is shown the same slate."""

    kind: ClassVar[str] = "one slate"
    slate: Items

    def chooser(self) -> Chooser:
        """What shows the one slate."""
        return _Shows(self)


class _Shows(Chooser):
    def __init__(self, menu: OneSlate) -> None:
        self.menu: OneSlate = menu

    def draw(self, number: int, slates: Items, probes: Items, coins: PublicWords) -> int:
        """The one slate, for all rounds."""
        slates[:] = self.menu.slate
        return len(slates)

    def propensity(self, number: int, row: Items) -> float:
        """One: the slate is certain."""
        return 1.0


@dataclass(frozen=True, eq=False)
class RandomSlates(Menu):
    """Everybody is shown k distinct items at random."""

    kind: ClassVar[str] = "random slates"

    def chooser(self) -> Chooser:
        """What draws random slates."""
        return _DrawsAtRandom(self)


class _DrawsAtRandom(Chooser):
    def __init__(self, menu: RandomSlates) -> None:
        self.menu: RandomSlates = menu

    def draw(self, number: int, slates: Items, probes: Items, coins: PublicWords) -> int:
        """Uniformly, without replacement."""
        return int(draw_random_slates(self.menu.n_items, slates, 0, coins))

    def propensity(self, number: int, row: Items) -> float:
        """One among all ordered choices."""
        return 1 / math.perm(self.menu.n_items, self.menu.slots)


@dataclass(frozen=True, eq=False)
class RandomFromLists(Menu):
    """Everybody is shown random items, slot by slot from the slot's own list, nothing twice.

    For where some items are not there, or slots have items of their own.
    """

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


@inline
def _distinct(n_items: int, row: Items, coins: PublicWords) -> bool:
    """k of n without replacement in random order (Floyd's sampling, then a shuffle)."""
    begin(coins)
    k = len(row)
    for i in range(k):
        item = below(n_items - k + i + 1, coins)
        if item == UNFINISHED:
            undo(coins)
            return False
        for j in range(i):
            if row[j] == item:
                item = n_items - k + i
                break
        row[i] = item
    for i in range(k - 1, 0, -1):
        j = below(i + 1, coins)
        if j == UNFINISHED:
            undo(coins)
            return False
        row[i], row[j] = row[j], row[i]
    return True


@kernel
def draw_random(n_items: int, row: Items, coins: PublicWords) -> bool:
    """One random slate; False, nothing used, to be resumed."""
    return _distinct(n_items, row, coins)


@kernel
def draw_random_slates(n_items: int, slates: Items, done: int, coins: PublicWords) -> int:
    """Random slates from `done` on; how far it came."""
    while done < slates.shape[0] and _distinct(n_items, slates[done], coins):
        done += 1
    return done


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
