"""The menu of groups: the slate of each round for each group, and which group each type is in. Public."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.base.rules.lists import NO_ITEMS
from diminuendo.randomness.words import PublicWords
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import Floats, Ints, Items


@dataclass(frozen=True, eq=False)
class SlatesByGroup(Menu):
    """Each round has a slate for each group of users, drawn beforehand with public coins."""

    kind: ClassVar[str] = "slates by group"
    groups: Ints
    """For each type, its group."""
    slates: Items
    """One row per slate."""
    decks: Items
    """(groups, rounds): for each group and round, from `first` on, the row of `slates` that is shown."""
    chances: Floats
    """(groups, rounds): the chance of what is shown, NaN where it is not said; of no group, under private contexts."""
    rankings: Items | None = field(default=None, kw_only=True)
    """(groups, any): what takes the place of what a user of a group excludes, the best first."""

    def chooser(self) -> Chooser:
        """Shows each round the slate of its user's group."""
        return _ShowsByGroup(self)

    @property
    def backfill(self) -> tuple[Items, Items]:
        """Of each type those of its group."""
        own = NO_ITEMS[None, :] if self.rankings is None else self.rankings[self.groups]
        return own, NO_ITEMS


class _ShowsByGroup(Chooser):
    def __init__(self, menu: SlatesByGroup) -> None:
        self.menu: SlatesByGroup = menu
        self._last_group = 0

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """The slates of their groups; of type 0, nothing known, for those of whom nothing is said."""
        menu, turns = self.menu, number - self.menu.first + np.arange(len(slates))
        groups = menu.groups[types] if len(types) else np.full(len(slates), menu.groups[0])
        slates[:] = menu.slates[menu.decks[groups, turns]]
        if len(slates):
            self._last_group = int(groups[-1])
        return len(slates)

    def propensity(self, number: int, row: Items) -> float | None:
        """As the deck of the group says; None where contexts are private, and for rounds seen before a restart."""
        if not len(self.menu.chances):
            return None
        chance: float = self.menu.chances.item((self._last_group, number - self.menu.first))
        return None if np.isnan(chance) else chance
