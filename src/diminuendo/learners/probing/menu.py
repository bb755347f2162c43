"""The menu of a block: the shares that experts draw by, and the probes that public coins place in its rounds.

All of it is public: shares follow from what was published before the block, probes from public numbers and coins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base import propensity
from diminuendo.learners.base.decisions import NO_PROBE
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.probing.draw import FULL, INSERTED, SHORT, count_cells, draw_rounds
from diminuendo.randomness.shares import guided
from diminuendo.randomness.words import PublicWords
from diminuendo.types import Ints, Items

CHANCES: dict[int, Callable[[Ints, Items, propensity.Probes], float]] = {
    SHORT: propensity.ended_by_probes,
    INSERTED: propensity.moved_by_probes,
}
"""The chance of a slate, by what a probe shows. FULL is not here: experts who name the same item draw again, and which
of them did has 2^k cases."""


@dataclass(frozen=True, eq=False)
class ExpertsWithProbes(Menu):
    """Experts draw a slate for each person; in some rounds of the block an item is tried in a slot."""

    kind: ClassVar[str] = "experts with probes"
    shows: int
    """What a probe shows: SHORT, FULL or INSERTED (draw.py)."""
    rounds: int
    """The rounds of the block, from the first of this menu on, in which its probes are made."""
    ends: Ints
    """(N + 1, k) running sums of the experts' shares."""
    probes: NDArray[Any]
    """The probes to be made, in any order: each a cell, slot * N + item, plus any multiple of k N."""

    def __post_init__(self) -> None:
        sound = (
            self.shows in (SHORT, FULL, INSERTED)
            and self.ends.shape == (self.n_items + 1, self.slots)
            and not self.ends[0].any()
            and (np.diff(self.ends, axis=0) > 0).all()
            and self.probes.ndim == 1
            and len(self.probes) <= self.rounds
            and (self.probes >= 0).all()
        )
        if not sound:
            raise InvalidInput("These shares and probes are not those of a block.")

    def chooser(self) -> ChoosesWithProbes:
        """Draws its slates, with probes of its own to cross off."""
        return ChoosesWithProbes(self, self.probes.copy(), np.array([len(self.probes)]))


class ChoosesWithProbes(Chooser):
    """Draws the slates of a block, and crosses off the probes that were made.

    The first left[0] of `probes_to_come` are still to be made. Both arrays are given, and changed in place: a learner
    writes them into its snapshots.
    """

    def __init__(self, menu: ExpertsWithProbes, probes_to_come: NDArray[Any], left: Ints) -> None:
        self.menu: ExpertsWithProbes = menu
        self._guide = guided(menu.ends)
        self._probes_to_come, self._left = probes_to_come, left
        self._last_cell = NO_PROBE  # what the round that was drawn last has probed
        self.count()

    def count(self) -> None:
        """Count the probes that are still to be made, cell by cell."""
        cells = self.menu.slots * self.menu.n_items
        self._counts: NDArray[np.uint8] = np.zeros(cells, dtype=np.uint8)  # MOST_PROBES at most of each
        count_cells(self._probes_to_come, self._left[0], self._counts)

    def draw(self, number: int, slates: Items, probes: Items, coins: PublicWords) -> int:
        """Experts' slates, changed where a round probes."""
        drawn = int(
            draw_rounds(
                self._guide,
                self.menu.shows,
                self._probes_to_come,
                self._counts,
                self._left,
                self._rounds_to_come(number),
                slates,
                probes,
                coins,
            )
        )
        if drawn:
            slot, item = int(probes[drawn - 1, 0]), int(probes[drawn - 1, 1])
            self._last_cell = NO_PROBE if slot == NO_PROBE else slot * self.menu.n_items + item
        return drawn

    def propensity(self, number: int, row: Items) -> float | None:
        """Over all that experts and coins might have done in that round, given the probes that were left before it."""
        if self.menu.shows not in CHANCES:
            return None
        left_before = int(self._left[0]) + (self._last_cell != NO_PROBE)
        before = propensity.Probes(self._counts, self._last_cell, left_before, self._rounds_to_come(number))
        return float(CHANCES[self.menu.shows](self._guide.ends.T, row, before))

    def _rounds_to_come(self, number: int) -> int:
        """Rounds of the block from `number` on; of no matter where all probes are made."""
        return max(1, self.menu.first + self.menu.rounds - number)
