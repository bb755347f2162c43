"""A menu ready to choose by: which slate a round shows to whom, and with what chance.

The chance of a slate is that inside an ID block (docs/maths/late.md, Theorem L2): among the rounds of the ID block that
are left, those that show the same slate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec

from diminuendo.service.front import backfill
from diminuendo.service.front.backfill import Excluded
from diminuendo.service.records import Lists, PublicMenu

Slate = tuple[int, ...]
NO_LISTS = Lists((0, 0), ())
"""No stand-ins are known: slots stay empty."""
FEW = 100
"""Items excluded: with more it may take longer than others should wait for the loop."""


class Chooser:
    """Chooses by one menu."""

    def __init__(self, menu: PublicMenu, names: Sequence[str], hidden: bool, sampled: bool = False) -> None:
        """`names`: the shop's, of its items. `hidden`: slates are private, and no chance is said.

        `sampled`: some users are outside of a public sample. Where slates are dealt they see another one than those
        inside, and their chances would depend on an ID block that they have no part in: none is said then, of anybody.
        """
        self.menu = menu
        self._names = names
        self._says = menu.propensities and not hidden and not (sampled and menu.kind in ("rounds", "groups"))
        self._written: dict[Slate, msgspec.Raw] = {}
        same: dict[Slate, int] = {}
        self._same = [same.setdefault(slate, len(same)) for slate in menu.slates]
        self._random_chance = _random_chance(menu) if self._says and menu.kind == "random" else None

    def row(self, number: int, type_: int) -> int:
        """The row of `slates` that is shown in a round to a user of that type."""
        menu = self.menu
        if menu.kind == "one":
            return 0
        if menu.kind == "types":
            return type_
        if menu.kind == "rounds":
            return menu.shown[number - menu.first]
        return menu.decks[menu.groups[type_]][number - menu.first]

    def slate(self, number: int, type_: int, excluded: Collection[int] = ()) -> Slate:
        """What is shown in a round to a user of that type, without the excluded items."""
        menu = self.menu
        if menu.kind == "random":
            assert menu.lists is not None
            result = backfill.drawn(menu.lists, menu.slots)
        else:
            result = menu.slates[self.row(number, type_)]
        return self._without(result, type_, excluded) if excluded else result

    def fallback(self, type_: int, excluded: Collection[int] = ()) -> Slate:
        """What is shown if no round is left, without the excluded items."""
        return self._without(self.menu.fallback, type_, excluded) if excluded else self.menu.fallback

    def outside(self, type_: int, excluded: Collection[int] = ()) -> Slate:
        """What is shown outside of a public sample: what the menu shows; where slates are dealt, the leading one."""
        if self.menu.kind in ("rounds", "groups"):
            return self.fallback(type_, excluded)
        return self.slate(self.menu.first, type_, excluded)

    def _without(self, slate: Slate, type_: int, excluded: Collection[int]) -> Slate:
        menu = self.menu
        lists = menu.lists or NO_LISTS
        own: Slate = ()
        if menu.own:
            place = menu.groups[type_] if menu.kind == "groups" else type_
            own = menu.own[place if len(menu.own) > 1 else 0]
        request = excluded if isinstance(excluded, Excluded) else Excluded(excluded)
        return request.without(lists, own, menu.ranking, slate)

    def takes_long(self, excluded: Collection[int]) -> bool:
        """Whether finding stand-ins may take longer than others should wait: for many items that are excluded, or where
        caps and lists of single slots keep items away, through which it has to look for one that fits."""
        lists = self.menu.lists
        return bool(excluded) and (
            len(excluded) > FEW or (lists is not None and (len(lists.starts) > 2 or bool(lists.most)))
        )

    def written(self, slate: Slate) -> msgspec.Raw:
        """A slate in the shop's names, as JSON; null for a slot that is empty."""
        result = self._written.get(slate)
        if result is None:
            names = [None if item < 0 else self._names[item] for item in slate]
            result = msgspec.Raw(msgspec.json.encode(names))
            if len(self._written) < 1000:
                self._written[slate] = result
        return result

    def bag(self, first: int, end: int) -> Bag:
        """The chances of the rounds of an ID block."""
        return Bag(self, first, end)

    def chances(self, first: int, end: int, group: int) -> list[float]:
        """Of each round of an ID block, with what chance it shows what it shows to users of a group."""
        menu, low, high = self.menu, first - self.menu.first, end - self.menu.first
        deck = menu.shown if menu.kind == "rounds" else menu.decks[group]
        left: dict[int, int] = {}
        result = []
        for many, row in enumerate(reversed(deck[low:high]), start=1):
            slate = self._same[row]
            left[slate] = left.get(slate, 0) + 1
            result.append(left[slate] / many)
        return result[::-1]

    def certain(self) -> float | None:
        """The chance of every slate, where it does not depend on what is left of an ID block; None where none
        is said."""
        return (1.0 if self.menu.kind in ("one", "types") else self._random_chance) if self._says else None

    @property
    def dealt(self) -> bool:
        """Whether chances depend on what is left of an ID block."""
        return self._says and self.menu.kind in ("rounds", "groups")


class Bag:
    """What the rounds of one ID block show, and so with what chance each does."""

    def __init__(self, chooser: Chooser, first: int, end: int) -> None:
        self._chooser, self._first, self._end = chooser, first, end
        self._certain = chooser.certain()
        self._chances: dict[int, list[float]] = {}

    def chance(self, number: int, type_: int) -> float | None:
        """The propensity of the slate of that round for a user of that type; None if it is not said."""
        chooser = self._chooser
        if not chooser.dealt:
            return self._certain
        group = chooser.menu.groups[type_] if chooser.menu.kind == "groups" else 0
        if group not in self._chances:
            self._chances[group] = chooser.chances(self._first, self._end, group)
        return self._chances[group][number - self._first]


def _random_chance(menu: PublicMenu) -> float | None:
    """One among all ordered choices, where all slots have one list and no rule is in the way; else it is not said."""
    lists = menu.lists
    if lists is None or len(lists.starts) > 2 or lists.pinned or lists.most or len(lists.items) < menu.slots:
        return None
    return 1 / math.perm(len(lists.items), menu.slots)
