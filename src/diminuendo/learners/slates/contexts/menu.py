"""The menu of groups: the slate of each round for each group, and which group each type is in. Public."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.menu import Chooser, Menu, check_lists
from diminuendo.learners.base.rules.lists import NO_ITEMS, all_items
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

    def __post_init__(self) -> None:
        check_lists(self)
        groups, slates, decks, chances = self.groups, self.slates, self.decks, self.chances
        sound = (
            groups.ndim == 1
            and len(groups) > 0
            and slates.ndim == decks.ndim == chances.ndim == 2
            and slates.shape[1] == self.slots
            and all_items(slates, self.n_items)
            and ((groups >= 0) & (groups < len(decks))).all()
            and self.end == self.first + decks.shape[1]
            and ((decks >= 0) & (decks < len(slates))).all()
            and chances.shape in (decks.shape, (0, decks.shape[1]))
        )
        if self.rankings is not None:
            sound &= self.rankings.ndim == 2 and len(self.rankings) == len(decks)
            sound &= all_items(self.rankings, self.n_items)
        if not sound:
            raise InvalidInput("The menu holds slates that could not have been made; it was altered.")

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
