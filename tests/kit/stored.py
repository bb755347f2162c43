"""Stored people with doors of their own: tests add them by hand, and begin plain chains, which are the oracle of focus.

Learners add people through `learners/base/kept` and begin every release with a focus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from diminuendo.privacy import calibrate
from diminuendo.privacy.events import ContinuousGaussian, Gaussian
from diminuendo.sums.batch import csr_rows
from diminuendo.sums.chains.cost import squared_shifts
from diminuendo.sums.chains.release import ChainRelease
from diminuendo.sums.chains.stored import StoredPeople
from diminuendo.sums.clip import gains_row
from diminuendo.types import Ints


class PeopleByHand(StoredPeople):
    """What each item is worth to people by itself, each person with the batch she belongs to."""

    def add(self, values: Any, indices: Any = None, *, batch: int, kind: int = 0) -> None:
        """One person of that batch and of the type `kind`."""
        row, places = gains_row(values, indices, self.n_items)
        self.admit(1, batch)
        self.entries.add(places, row.copy(), batch, kind)

    def add_rows(self, rows: Any, *, batch: int) -> None:
        """Many people of one batch at once: one per row of a scipy CSR matrix."""
        starts, places, values = csr_rows(rows, self.n_items)
        people = len(starts) - 1
        self.admit(people, batch)
        self.entries.add_rows(starts, places, values, batch, np.zeros(people, dtype=np.int64))

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        self.entries.put_together()
        self.entries.keep_only(self.entries.batches.array >= before)

    def snapshot(self) -> bytes:
        """Everybody who is stored."""
        return self.packed(self.entries.arrays())

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of people that were stored under the same arguments."""
        self.entries.fill(self.unpacked(snapshot))

    def sigmas(self, weights: Ints, cost: Gaussian | ContinuousGaussian, singles: float = 0.5) -> Any:
        """Deviations of noise on singles and on rows with which releases with these weights cost `cost` together.

        `weights`: (releases, batches). `singles`: the share of the cost that they get.
        """
        square = max(int(total) for total in (weights.astype(object) ** 2).sum(axis=0))
        rho = cost.rho if isinstance(cost, Gaussian) else cost.mu**2 / 2
        return tuple(
            calibrate.gaussian_sigma(rho * share * (1 - 2.0**-48), squared * square)
            for share, squared in zip(
                (singles, 1 - singles), squared_shifts(self.n_items, self.clip), strict=True
            )
        )

    def release(
        self, number: int, weights: Sequence[int] | Ints, sigmas: tuple[float, float]
    ) -> ChainRelease:
        """Begin release `number` without a focus: people of batch j enter with weights[j]."""
        whole, factors = np.array(weights), np.ones(self.n_items)
        paid = self._bought(number, whole, sigmas, "a chain over")
        return ChainRelease(self.stored(whole, factors), paid, sigmas, factors)
