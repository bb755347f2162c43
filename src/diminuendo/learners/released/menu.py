"""Two kinds of menu of a batch: a point from which slates are rounded, and shares that experts draw by in turn.

Both follow from what was published before the batch. What a person will contribute may depend on one public word, which
is drawn with her slate: the chooser draws it too, so that nobody who chooses by the menu is out of step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.capped_simplex import draw_pivotal
from diminuendo.learners.base import propensity
from diminuendo.learners.base.menu import Chooser, Menu, SlatesFromPoint
from diminuendo.randomness.shares import GuideTable, draw_other, guided
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below_masked, undo
from diminuendo.streams.contexts import NOBODY
from diminuendo.types import Ints, Items

WORD = 1 << 62
"""A public word is a number below this ..."""
WORD_MASK = np.uint64(WORD - 1)
"""... for which random words are cut with this."""


@dataclass(frozen=True, eq=False)
class PointMenu(SlatesFromPoint):
    """Slates from a point, and a public word for each of them."""

    kind: ClassVar[str] = "point of the capped simplex"

    def chooser(self) -> DrawsFromPoint:
        """Draws slates, and a public word for each."""
        return DrawsFromPoint(self)


class DrawsFromPoint(Chooser):
    """Pivotal rounding, slate by slate."""

    def __init__(self, menu: PointMenu) -> None:
        self.menu: PointMenu = menu
        self._guide = guided(menu.ends[:, None])
        self.words: Ints = np.zeros(0, dtype=np.int64)
        """The public words of the rounds that were drawn last."""

    def draw(
        self, number: int, slates: Items, probes: Items, coins: PublicWords, types: Ints = NOBODY
    ) -> int:
        """Item a with the probability that the point gives it."""
        self.words = np.zeros(len(slates), dtype=np.int64)
        return int(_draw_pivotal_slates(self._guide, slates, self.words, coins))

    def propensity(self, number: int, row: Items) -> float:
        """The chance of that row by pivotal rounding."""
        return float(propensity.pivotal(self.menu.ends, row))


@dataclass(frozen=True, eq=False)
class ExpertsInTurn(Menu):
    """Each slot's expert draws by its own shares, one after the other, among the items that are not shown yet."""

    kind: ClassVar[str] = "experts in turn"
    ends: Ints
    """(N + 1, k) running sums of the experts' shares."""

    def __post_init__(self) -> None:
        sound = (
            self.ends.shape == (self.n_items + 1, self.slots)
            and not self.ends[0].any()
            and (np.diff(self.ends, axis=0) > 0).all()
        )
        if not sound:
            raise InvalidInput("These running sums are not those of experts' shares.")

    def chooser(self) -> DrawsInTurn:
        """What draws slates by this menu."""
        return DrawsInTurn(self)


class DrawsInTurn(Chooser):
    """Expert after expert, slate by slate."""

    def __init__(self, menu: ExpertsInTurn) -> None:
        self.menu: ExpertsInTurn = menu
        self._guide = guided(menu.ends)
        self.words: Ints = np.zeros(0, dtype=np.int64)
        """Zeros: what people contribute takes no coins."""

    def draw(
        self, number: int, slates: Items, probes: Items, coins: PublicWords, types: Ints = NOBODY
    ) -> int:
        """Each slot in proportion to its expert's shares."""
        self.words = np.zeros(len(slates), dtype=np.int64)
        return int(_draw_slates_in_turn(self._guide, slates, coins))

    def propensity(self, number: int, row: Items) -> float:
        """The chance of that row, expert after expert."""
        return float(propensity.in_turn(self._guide.ends.T, row))


@kernel
def _draw_pivotal_slates(guide: GuideTable, slates: Items, words: Ints, coins: PublicWords) -> int:
    """Slates by pivotal rounding, and a public word for each of them; how many, before more words are needed."""
    for done in range(len(slates)):
        begin(coins)
        going = draw_pivotal(guide, slates[done], coins)
        word = below_masked(WORD, WORD_MASK, coins) if going else UNFINISHED
        if word == UNFINISHED:
            undo(coins)
            return done
        words[done] = word
    return len(slates)


@kernel
def _draw_slates_in_turn(guide: GuideTable, slates: Items, coins: PublicWords) -> int:
    """Each slot by its expert, among the items that are not shown yet; how many, before more words are needed."""
    for done in range(len(slates)):
        begin(coins)
        row = slates[done]
        for slot in range(len(row)):
            item = draw_other(guide, slot, row, slot, coins)
            if item == UNFINISHED:
                undo(coins)
                return done
            row[slot] = item
    return len(slates)
