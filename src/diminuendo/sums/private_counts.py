"""Private counts: users add to bins that are opened together, published once with noise, and then wiped.

    counts = PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=ledger)
    counts.open(sensitivity=[1, 1, 2, 2, 2])    # five bins; how much one user may move at most, in all of theirs
    counts.add([3], [1])                        # one user: a unit in bin 3
    published = counts.release(secret)          # one number per bin, in units, with noise

Several histograms may be open at once, each for users of its own. They are published in the order in which they were
opened, unless `release` and `forget` name another. How many bins there are, and what they are for, may depend on
everything published before: nothing is published twice about the same user, so nothing is composed. The caller decides
at `choose()`, by public facts, to which bins a user may add. The `sensitivity` of these bins is the largest L1 distance
between any two contributions to them: 1 if a user adds up to one unit to one given bin (a reward, yes or no), 2 if they
add a unit to one of several (which slot was clicked; none at all is allowed).

Guarantee  (epsilon, 0), whatever users report: each bin has discrete Laplace noise of scale sensitivity / epsilon
           (docs/maths/counts.md, Theorem B1).
Assumes    one `add` per round, to bins that were the user's when their slate was chosen; bins open and close at public
           times. All bins are published, also those to which no user added.
Excludes   timing, and the memory of the process: bins hold users' contributions.
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
        self._histograms: list[Ints] = []

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: number {self.number}, {len(self._histograms)} lots open>"

    @property
    def number(self) -> int:
        """The number of the oldest lot that is open; where none is, how many were opened."""
        return self._numbers[0] if self._numbers else self._opened

    @abstractmethod
    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, in whole numbers: as it was kept before a crash, or as drawn now."""

    @abstractmethod
    def release(self, secret: SecretRandomness, histogram: int = 0) -> Floats:
        """Publish every cell of a lot, the oldest unless told otherwise, in units; the cells are still there."""

    @abstractmethod
    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, histogram: int = 0) -> Ints:
        """Something public about a lot: as it was kept before a crash, or as it is now."""

    def open(self, sensitivity: Any) -> None:
        """Open a histogram.

        Parameters
        ----------
        sensitivity : sequence of int
            One for each bin: the largest L1 distance between two contributions of one user, in units, from 1 to
            1024.

        Raises
        ------
        InvalidInput
            If a sensitivity is out of range.
        """
        result = np.asarray(sensitivity)
        whole = result.ndim == 1 and np.issubdtype(result.dtype, np.integer)
        if not whole or ((result < 1) | (result > LARGEST_SENSITIVITY)).any():
            raise InvalidInput(
                f"sensitivity must be whole numbers from 1 to {LARGEST_SENSITIVITY}, one per cell; "
                f"got {sensitivity!r}."
            )
        sensitivities, histograms = (
            [*self._sensitivities, result.astype(np.int64)],
            [*self._histograms, np.zeros(len(result), np.int64)],
        )
        numbers = [*self._numbers, self._opened]
        # In one go: they stay in step, whatever fails.
        self._sensitivities, self._histograms, self._numbers, self._opened = (
            sensitivities, histograms, numbers, self._opened + 1,
        )  # fmt: skip

    def skip(self) -> None:
        """The next histogram is never opened: no user adds to it, and nothing is published of it."""
        self._opened += 1

    def add(self, cells: Any, ticks: Any, histogram: int = -1) -> None:
        """Add contributions, each clipped to at most one unit.

        Parameters
        ----------
        cells : sequence of int
            Bins.
        ticks : sequence of int
            Fixed-point units for each of them.
        histogram : int, default -1
            Which open histogram, the oldest first.
        """
        np.add.at(
            self._histograms[histogram],
            np.asarray(cells, dtype=np.int64),
            np.clip(_validate.numbers(ticks, "ticks", None), 0, self.ticks),
        )

    def add_one(self, cell: int, ticks: int, histogram: int = -1) -> None:
        """One contribution, clipped as in `add`; for one cell this takes a tenth of the time."""
        clipped, cells = 0 if ticks < 0 else min(ticks, self.ticks), self._histograms[histogram]
        cells[cell] = cells.item(cell) + clipped

    def exact(self, histogram: int = 0) -> Floats:
        """Return every bin without noise, in units. As private as users' feedback."""
        return np.asarray(self._histograms[histogram] / self.ticks) if self._histograms else np.zeros(0)

    def forget(self, histogram: int = 0) -> None:
        """Wipe a histogram that was published."""
        self._histograms[histogram][:] = 0
        del self._histograms[histogram], self._sensitivities[histogram], self._numbers[histogram]

    def scale(self, sensitivity: int) -> float:
        """Return the scale of the Laplace noise in bins of a sensitivity, in fixed-point units."""
        return noise.checked_scale(
            calibrate.laplace_scale(self.event.epsilon, sensitivity * self.ticks), "scale"
        )

    def arrays(self) -> dict[str, Ints]:
        """For a snapshot: as private as what users said. The names are those of a format."""
        result = {
            "number": np.array([self.number]),
            "cells": np.concatenate([np.zeros(0, np.int64), *self._histograms]),
        }
        if self.number + len(self._numbers) != self._opened:  # some were published before older ones
            result["numbers"] = np.array([*self._numbers, self._opened])
        return result

    def take(self, arrays: dict[str, Any]) -> None:
        """Go on from what `arrays` gave, with lots opened as they were then."""
        first, ends = int(arrays["number"][0]), np.cumsum([len(histogram) for histogram in self._histograms])
        numbers = arrays.get("numbers")
        if numbers is None:
            numbers = np.arange(first, first + len(self._histograms) + 1)
        *self._numbers, self._opened = numbers.tolist()
        for histogram, written in zip(self._histograms, np.split(arrays["cells"], ends), strict=False):
            histogram[:] = written


class PrivateCounts(Counts):
    """Histograms of users' contributions, each published once with Laplace noise. A user is in one of them.

    Parameters
    ----------
    cost : Laplace
        Cost of one histogram, and of the whole run.
    ticks : int
        Fixed-point units in one unit.
    ledger : Ledger
        Charged when the counts are made.
    name : str, default "counts"
        Name of the releases in the ledger.
    about : str, default ""
        Public description, kept in the ledger.

    Raises
    ------
    OverBudget
        If the ledger cannot pay.
    InvalidInput
        If the cost is no Laplace event.

    Notes
    -----
    (epsilon, 0)-DP, replacing one round (Theorems B1 and B2 of docs/maths/counts.md): each bin has discrete Laplace
    noise of scale sensitivity / epsilon, where the sensitivity is the largest L1 distance between two contributions
    of one user to the bins. How many bins there are, and what they are for, may depend on everything published
    before. All bins are published, also those to which no user contributed.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.extend import Laplace, Ledger, PrivateCounts
    >>> from diminuendo.privacy import Budget
    >>> from diminuendo.randomness import SecretRandomness
    >>> ledger = Ledger(Budget(1.0, 0.0, accountant="pure"))
    >>> counts = PrivateCounts(cost=Laplace(1.0), ticks=1, ledger=ledger)
    >>> counts.open(sensitivity=[2, 2])  # which of two slots was clicked: one unit in one of two bins
    >>> counts.add([0, 0, 1], [1, 1, 1])  # three users
    >>> counts.release(SecretRandomness(SeededSource(1))).shape, counts.scale(2)
    ((2,), 2.0)
    """

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
            self.event, name, f"{about}each user in one lot of counts, {self.ticks} ticks"
        )

    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, histogram: int = 0) -> Ints:
        """Return a public fact about a histogram: as it was stored before a crash, or as `draw` returns it now."""
        return self._paid.once(f"{self._numbers[histogram]:06d}.known", draw, secret)

    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """Return what the next histogram is for: as it was stored before a crash, or as `draw` returns it now.

        So a learner that goes on from an older snapshot goes through the same histograms, and is given what was
        published.
        """
        return self._paid.once(f"{self._opened:06d}.plan", draw, secret)

    def release(self, secret: SecretRandomness, histogram: int = 0) -> Floats:
        """Publish every bin of a histogram, in units.

        Parameters
        ----------
        secret : SecretRandomness
            Source of the noise.
        histogram : int, default 0
            Which open histogram, the oldest first.

        Returns
        -------
        ndarray of float, shape (n_bins,)
            Drawn once, and stored with the ledger before it is returned. Call `forget` afterwards.
        """
        result = self._paid.once(
            f"{self._numbers[histogram]:06d}", lambda: self._drawn(secret, histogram), secret
        )
        if result.shape != self._histograms[histogram].shape:
            raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
        return np.asarray(result / self.ticks)

    def _drawn(self, secret: SecretRandomness, histogram: int) -> Ints:
        cells, sensitivities = self._histograms[histogram], self._sensitivities[histogram]
        drawn = np.zeros(len(cells), dtype=np.int64)
        for sensitivity in np.unique(sensitivities):
            here = sensitivities == sensitivity
            drawn[here] = noise.laplace(cells[here], self.scale(int(sensitivity)), secret)
        return drawn


class ExactCounts(Counts):
    """Histograms without noise, for learners that promise nothing.

    Parameters
    ----------
    cost : Laplace
        What privacy would cost.
    ticks : int
        Fixed-point units in one unit.
    """

    noisy: ClassVar[bool] = False

    def __init__(self, *, cost: Laplace, ticks: int) -> None:
        super().__init__(cost, ticks)

    def planned(self, draw: Callable[[], Ints], secret: SecretRandomness) -> Ints:
        """What the next lot is for, as drawn now: nothing is paid for, so nothing is kept."""
        return draw()

    def known(self, draw: Callable[[], Ints], secret: SecretRandomness, histogram: int = 0) -> Ints:
        """Something public about a lot, as it is now."""
        return draw()

    def release(self, secret: SecretRandomness, histogram: int = 0) -> Floats:
        """Every cell of a lot as it is, in units."""
        return self.exact(histogram)
