"""The menu of a block: its slates, and which of them each round shows. Public."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.base.rules.lists import NO_ITEMS
from diminuendo.randomness.words import PublicWords
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import Ints, Items


@dataclass(frozen=True, eq=False)
class AssignedSlates(Menu):
    """Each round shows one of a few slates; which one was shuffled beforehand with public coins."""

    kind: ClassVar[str] = "assigned slates"
    slates: Items
    """One row per slate."""
    assigned: Items
    """For each round, from `first` on, the row of `slates` that it shows."""
    seen_before: bool
    """Whether its rounds may have been seen before a restart: they are certain then, not drawn."""
    ranking: Items | None = field(default=None, kw_only=True)
    """What takes the place of what a user excludes, the best first."""

    def chooser(self) -> Chooser:
        """Shows each round its slate."""
        return _ShowsAssigned(self)

    @property
    def backfill(self) -> tuple[Items, Items]:
        """The ranking, for everybody."""
        return NO_ITEMS[None, :], NO_ITEMS if self.ranking is None else self.ranking


class _ShowsAssigned(Chooser):
    def __init__(self, menu: AssignedSlates) -> None:
        self.menu: AssignedSlates = menu

    def draw(self, number: int, slates: Items, probes: Items, rng: PublicWords, types: Ints = NOBODY) -> int:
        """The slates that rounds from `number` on were assigned to; no more words are needed."""
        menu, turn = self.menu, number - self.menu.first
        slates[:] = menu.slates[menu.assigned[turn : turn + len(slates)]]
        return len(slates)

    def propensity(self, number: int, row: Items) -> float | None:
        """The share of the slate among the rounds of the block from `number` on; None for rounds seen before."""
        menu = self.menu
        if menu.seen_before:
            return None
        turn = number - menu.first
        chance: float = self._remaining_same.item(turn) / (len(menu.assigned) - turn)
        return chance

    @cached_property
    def _remaining_same(self) -> Ints:
        return remaining_same(self.menu.slates, self.menu.assigned)


def remaining_same(slates: Items, assigned: Items) -> Ints:
    """For each round, how many rounds from it on show the same items in the same order, whatever they ask."""
    same = np.unique(slates, axis=0, return_inverse=True)[1].reshape(-1)[assigned]
    order = np.argsort(same, kind="stable")
    ends = np.cumsum(np.bincount(same))
    remaining = np.empty(len(assigned), dtype=np.int64)
    remaining[order] = ends[same[order]] - np.arange(len(assigned))
    return remaining
