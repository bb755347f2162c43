r"""Private counts: people add to cells that are opened together, published once with noise, and then forgotten.

    counts = PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=ledger)
    counts.open(sensitivity=[1, 1, 2, 2, 2])    # five cells; how much one person may move at most, in all of hers
    counts.add([3], [1])                        # one person: a tick in cell 3
    published = counts.release(secret)          # one number per cell, in units, with noise

Cells that are opened together are a *lot*. Several may be open at once, each for people of its own: they are published
in the order in which they were opened, unless `release` and `forget` are told otherwise.
How many cells there are, and what they are for, may depend on everything published before: nothing is published twice
about the same person, so there is nothing to plan ahead and no running total to protect. Whoever calls decides at
`choose()`, by public facts, which cells a person may add to. They are cells of equal `sensitivity`, the largest L1
distance between any two contributions to them: 1 where she adds up to one unit to one given cell (a payoff, yes or no),
2 where she adds a unit to one of several (which slot was clicked; none at all is allowed). `ExactCounts` are published
as they are: they show what the noise costs.

Guarantee  (epsilon, 0), whatever people say: each cell has discrete Laplace noise of scale sensitivity / epsilon
           (docs/maths/counts.md, Theorem B1).
Assumes    one `add` per person-round, to cells that were hers when her slate was chosen; cells open and close at public
           times. All cells are published, also where nobody added anything.
Excludes   timing, and the memory of the process: cells hold what people said.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats, Ints

LARGEST_SENSITIVITY = 1 << 10
"""Noise for more than this would drown anything."""


class Counts(ABC):
    """Cells that are opened, filled and published, one set after the other; how they are published, subclasses say."""

    noisy: ClassVar[bool]
    """Whether what is published has noise."""

    def __init__(self, cost: Laplace, ticks: int) -> None:
        if not isinstance(cost, Laplace) or cost.epsilon <= 0:
            raise InvalidInput(f"cost must be a Laplace event with epsilon above 0; got {cost!r}.")
        self.ticks = _validate.positive_int(ticks, "ticks")
        self.event = cost
        self._opened = 0
        self._numbers: list[int] = []  # of the open lots, the oldest first: how many were opened before each
        self._sensitivities: list[Ints] = []  # of the cells of each open lot, the oldest first
        self._lots: list[Ints] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: number {self.number}, {len(self._lots)} lots open>"

    @property
    def number(self) -> int:
        """The number of the oldest lot that is open; where none is, how many were opened."""
        return self._numbers[0] if self._numbers else self._opened

    @abstractmethod
    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, in whole numbers: as it was kept before a crash, or as drawn now."""

    @abstractmethod
    def release(self, secret: SecretRandomness, lot: int = 0) -> Floats:
        """Publish every cell of a lot, the oldest unless told otherwise, in units; the cells are still there."""

    @abstractmethod
    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, lot: int = 0) -> Ints:
        """Something public about a lot: as it was kept before a crash, or as it is now."""

    def open(self, sensitivity: Any) -> None:
        """A new lot of cells, with how much one person may move at most in each."""
        found = np.asarray(sensitivity)
        whole = found.ndim == 1 and np.issubdtype(found.dtype, np.integer)
        if not whole or ((found < 1) | (found > LARGEST_SENSITIVITY)).any():
            raise InvalidInput(
                f"sensitivity must be whole numbers from 1 to {LARGEST_SENSITIVITY}, one per cell; "
                f"got {sensitivity!r}."
            )
        sensitivities, lots = (
            [*self._sensitivities, found.astype(np.int64)],
            [*self._lots, np.zeros(len(found), np.int64)],
        )
        numbers = [*self._numbers, self._opened]
        # In one go: they stay in step, whatever fails.
        self._sensitivities, self._lots, self._numbers, self._opened = (
            sensitivities, lots, numbers, self._opened + 1,
        )  # fmt: skip

    def skip(self) -> None:
        """The next lot is never opened: nobody adds to it, and nothing is published of it."""
        self._opened += 1

    def add(self, cells: Any, ticks: Any, lot: int = -1) -> None:
        """Contributions, clipped to whole ticks of at most one unit each: to each of `cells` those of `ticks`.

        `lot`: which of the open lots, the oldest first; without it, the one that was opened last.
        """
        np.add.at(
            self._lots[lot],
            np.asarray(cells, dtype=np.int64),
            np.clip(_validate.numbers(ticks, "ticks", None), 0, self.ticks),
        )

    def add_one(self, cell: int, ticks: int, lot: int = -1) -> None:
        """One contribution, clipped as in `add`; for one cell this takes a tenth of the time."""
        clipped, cells = 0 if ticks < 0 else min(ticks, self.ticks), self._lots[lot]
        cells[cell] = cells.item(cell) + clipped

    def exact(self, lot: int = 0) -> Floats:
        """Every cell of a lot as it is, in units: as private as what people said."""
        return np.asarray(self._lots[lot] / self.ticks) if self._lots else np.zeros(0)

    def forget(self, lot: int = 0) -> None:
        """A lot was published, the oldest unless told otherwise; wipe it out."""
        self._lots[lot][:] = 0
        del self._lots[lot], self._sensitivities[lot], self._numbers[lot]

    def scale(self, sensitivity: int) -> float:
        """The scale of the noise that `cost` pays for in cells of that sensitivity, in ticks."""
        return noise.checked_scale(
            calibrate.laplace_scale(self.event.epsilon, sensitivity * self.ticks), "scale"
        )

    def arrays(self) -> dict[str, Ints]:
        """For a snapshot: as private as what people said. The names are those of a format."""
        found = {
            "number": np.array([self.number]),
            "cells": np.concatenate([np.zeros(0, np.int64), *self._lots]),
        }
        if self.number + len(self._numbers) != self._opened:  # some were published before older ones
            found["numbers"] = np.array([*self._numbers, self._opened])
        return found

    def take(self, arrays: dict[str, Any]) -> None:
        """Go on from what `arrays` gave, with lots opened as they were then."""
        first, ends = int(arrays["number"][0]), np.cumsum([len(lot) for lot in self._lots])
        numbers = arrays.get("numbers")
        if numbers is None:
            numbers = np.arange(first, first + len(self._lots) + 1)
        *self._numbers, self._opened = numbers.tolist()
        for lot, written in zip(self._lots, np.split(arrays["cells"], ends), strict=False):
            lot[:] = written


class PrivateCounts(Counts):
    """Counts that are published with noise, each person in one of them, paid for once on a ledger."""

    __getstate__ = refuse_copies

    noisy: ClassVar[bool] = True

    def __init__(
        self, *, cost: Laplace, ticks: int, ledger: Ledger, name: str = "counts", about: str = ""
    ) -> None:
        if not isinstance(ledger, Ledger):
            raise InvalidInput(f"Private counts are paid for on a Ledger; got {ledger!r}.")
        super().__init__(cost, ticks)
        # What a ledger says of them: changed words would not be found on ledgers that were bought from before.
        self._paid = ledger.buy(
            self.event, name, f"{about}each person in one lot of counts, {self.ticks} ticks"
        )

    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, lot: int = 0) -> Ints:
        """Something public about a lot: as it was kept before a crash, or as it is now, and kept."""
        return self._paid.once(f"{self._numbers[lot]:06d}.known", draw, secret)

    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, in whole numbers: as it was kept before a crash, or as drawn now, and kept.

        So whoever goes on from an old snapshot, or begins again on the same ledger, goes through the same cells and is
        given what was published; people who come again, or others in their place, are published no second time.
        """
        return self._paid.once(f"{self._opened:06d}.plan", draw, secret)

    def release(self, secret: SecretRandomness, lot: int = 0) -> Floats:
        """Publish every cell of a lot. Drawn once and kept before it is seen; the cells are still there."""
        found = self._paid.once(f"{self._numbers[lot]:06d}", lambda: self._drawn(secret, lot), secret)
        if found.shape != self._lots[lot].shape:
            raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
        return np.asarray(found / self.ticks)

    def _drawn(self, secret: SecretRandomness, lot: int) -> Ints:
        cells, sensitivities = self._lots[lot], self._sensitivities[lot]
        drawn = np.zeros(len(cells), dtype=np.int64)
        for sensitivity in np.unique(sensitivities):
            here = sensitivities == sensitivity
            drawn[here] = noise.laplace(cells[here], self.scale(int(sensitivity)), secret)
        return drawn


class ExactCounts(Counts):
    """Counts that are published as they are, for learners that promise nothing; `cost`: what privacy would cost."""

    noisy: ClassVar[bool] = False

    def __init__(self, *, cost: Laplace, ticks: int) -> None:
        super().__init__(cost, ticks)

    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, as drawn now: nothing is paid for, so nothing is kept."""
        return draw()

    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, lot: int = 0) -> Ints:
        """Something public about a lot, as it is now."""
        return draw()

    def release(self, secret: SecretRandomness, lot: int = 0) -> Floats:
        """Every cell of a lot as it is, in units."""
        return self.exact(lot)
