r"""Private counts: people add to cells that are opened together, published once with noise, and then forgotten.

    counts = PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=ledger)
    counts.open(apart=[1, 1, 2, 2, 2])         # five cells; what one person may move at most, all her cells together
    counts.add([3], [1])                       # one person: a tick in cell 3
    published = counts.release(secret)         # one number per cell, in units, with noise

How many cells there are, and what they are for, may depend on everything published before: nothing is published twice
about the same person, so there is nothing to plan ahead and no running total to protect. Whoever calls decides at
`choose()`, by public facts, which cells a person may add to. They are cells of equal `apart`, the largest L1 distance
between any two contributions to them: 1 where she adds up to one unit to one given cell (a payoff, yes or no), 2 where
she adds a unit to one of several (which slot was clicked; none at all is allowed).

Guarantee  (epsilon, 0), whatever people say: each cell has discrete Laplace noise of scale apart / epsilon
           (docs/maths/counts.md, Theorem B1).
Assumes    one `add` per person-round, to cells that were hers when her slate was chosen; cells open and close at public
           times. All cells are published, also where nobody added anything.
Excludes   timing, and the memory of the process: cells hold what people said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats, Ints

MOST_APART = 1 << 10
"""Noise for more than this would drown anything."""


class PrivateCounts:
    """Cells that are opened, filled and published, one lot after the other."""

    def __init__(
        self, *, cost: Laplace, ticks: int, ledger: Ledger, name: str = "counts", about: str = ""
    ) -> None:
        if not isinstance(ledger, Ledger):
            raise InvalidInput(f"Private counts are paid for on a Ledger; got {ledger!r}.")
        if not isinstance(cost, Laplace) or cost.epsilon <= 0:
            raise InvalidInput(f"cost must be a Laplace event with epsilon above 0; got {cost!r}.")
        self.ticks = _validate.positive_int(ticks, "ticks")
        self.event = cost
        self._paid = ledger.buy(
            self.event, name, f"{about}each person in one lot of counts, {self.ticks} ticks"
        )
        self._lot = 0
        self._apart: Ints = np.zeros(0, dtype=np.int64)
        self._cells: Ints = np.zeros(0, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<PrivateCounts: lot {self._lot}, {len(self._cells)} cells>"

    @property
    def lot(self) -> int:
        """How many lots were published."""
        return self._lot

    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, in whole numbers: as it was kept before a crash, or as drawn now, and kept.

        So whoever goes on from an old snapshot, or begins anew on the same ledger, goes through the same lots and is
        given what was published; people who come again, or others in their place, are in no second lot.
        """
        return self._paid.once(f"{self._lot:06d}.plan", draw, secret)

    def open(self, apart: Any) -> None:
        """New cells, with what one person may move at most in each."""
        found = np.asarray(apart)
        whole = found.ndim == 1 and np.issubdtype(found.dtype, np.integer)
        if not whole or ((found < 1) | (found > MOST_APART)).any():
            raise InvalidInput(
                f"apart must be whole numbers from 1 to {MOST_APART}, one per cell; got {apart!r}."
            )
        self._apart = found.astype(np.int64)
        self._cells = np.zeros(len(found), dtype=np.int64)

    def add(self, cells: Any, ticks: Any) -> None:
        """Contributions, clipped to whole ticks of at most one unit each: to each of `cells` those of `ticks`."""
        np.add.at(self._cells, np.asarray(cells, dtype=np.int64), np.clip(ticks, 0, self.ticks))

    def add_one(self, cell: int, ticks: int) -> None:
        """The same for one cell."""
        clipped = 0 if ticks < 0 else min(ticks, self.ticks)
        self._cells[cell] = self._cells.item(cell) + clipped

    def release(self, secret: SecretRandomness) -> Floats:
        """Publish every cell, in units. Drawn once and kept before it is seen; the cells are still there."""
        found = self._paid.once(f"{self._lot:06d}", lambda: self._drawn(secret), secret)
        if found.shape != self._cells.shape:
            raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
        return np.asarray(found / self.ticks)

    def exact(self) -> Floats:
        """Every cell as it is: for learners that promise nothing."""
        return np.asarray(self._cells / self.ticks)

    def _drawn(self, secret: SecretRandomness) -> Ints:
        drawn = np.zeros(len(self._cells), dtype=np.int64)
        for apart in np.unique(self._apart):
            here = self._apart == apart
            drawn[here] = noise.laplace(self._cells[here], self.scale(int(apart)), secret)
        return drawn

    def forget(self) -> None:
        """The lot was published; its cells are wiped out."""
        self._cells[:] = 0
        self._cells, self._apart = self._cells[:0], self._apart[:0]
        self._lot += 1

    def scale(self, apart: int) -> float:
        """Of the noise in cells that are so far apart, in ticks."""
        return noise.checked_scale(calibrate.laplace_scale(self.event.epsilon, apart * self.ticks), "scale")

    def arrays(self) -> dict[str, Ints]:
        """For a snapshot: as private as what people said."""
        return {"lot": np.array([self._lot]), "cells": self._cells.copy()}

    def take(self, arrays: dict[str, Any], people: int) -> None:
        """Go on from what `arrays` gave, with cells opened as they were then; refuse what `people` cannot have said."""
        lot, cells = arrays.get("lot"), arrays.get("cells")
        sound = (
            isinstance(lot, np.ndarray)
            and isinstance(cells, np.ndarray)
            and lot.dtype == cells.dtype == np.int64
            and lot.shape == (1,)
            and cells.shape == self._cells.shape
            and lot[0] >= 0
            and (cells >= 0).all()
            and (cells <= people * self.ticks).all()
        )
        if not sound or lot is None or cells is None:
            raise InvalidInput("The snapshot holds counts that could not have come about; it was altered.")
        self._lot, self._cells[:] = int(lot[0]), cells
