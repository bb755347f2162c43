r"""A private running sum: people add vectors, and the sum so far is published with noise, a known number of times.

    total = PrivateSum(size=294, rounds=30_000, releases=20, cost=budget.share())
    ledger.charge(total.event)                 # all releases together, before the first
    total.add(vector)                          # or total.add(values, indices)
    published = total.release(secret)          # the running sum, in units, with noise

A contribution is clipped to whole ticks (clip.py) and added to the open batch. A release closes the batch, combines
batches by the strategy (strategy.py) in whole numbers, adds discrete noise to every entry, keeps the result on disk,
and only then decodes and returns it. An empty batch is released like any other.

Guarantee  `event`: with Gaussian noise rho-zCDP, rho = sensitivity^2 * square / (2 sigma^2) (docs/maths/sums.md,
           Theorems S1 and S3); with Laplace noise (epsilon, 0), epsilon = sensitivity * total / scale (Theorem S2).
Assumes    one `add` per person-round, whose vector depends on that person and on what was published before, and on
           nobody else; batches closed by public facts. The quota of rounds per person is kept by whoever calls.
Excludes   timing, and the memory of the process: batches and encoders hold what people said.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from diminuendo import _validate
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.privacy import calibrate
from diminuendo.privacy.accountants import rounded_up
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.releases import Releases
from diminuendo.randomness import noise
from diminuendo.randomness.coins import SecretRandomness
from diminuendo.sums.clip import Clip, add_dense, add_sparse, as_floats, sparse_row
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.types import Floats, Ints

ROOM = 1 << 61
"""No number inside may exceed this; what could is refused before anybody arrives."""


class Collector:
    """Clips and adds up what people contribute to the open batch. Several machines may each have one."""

    def __init__(self, size: int, clip: Clip, rounds: int) -> None:
        self.size = _validate.positive_int(size, "size")
        self.rounds = _validate.positive_int(rounds, "rounds")
        self.clip = clip
        self._batch = np.zeros(self.size, dtype=np.int64)
        self._marks = np.zeros(2, dtype=np.int64)  # the open batch, and how often somebody added
        self._scratch = np.zeros(self.size, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} entries, batch {self.batch} open>"

    @property
    def batch(self) -> int:
        """The open batch: whoever's slate is chosen now belongs to it."""
        return int(self._marks[0])

    def add(self, values: Any, indices: Any = None, *, batch: int | None = None) -> None:
        """One person's contribution: a whole vector, or values at rising indices.

        `batch` is the one that was open when her slate was chosen; if it has closed, nothing is added, and the reply
        is the same.
        """
        if indices is None:
            row = as_floats(values)
            if row.shape != (self.size,):
                raise InvalidInput(f"Expected a vector of {self.size} numbers; got shape {row.shape}.")
            places = None
        else:
            row, places = sparse_row(values, indices, self.size)
        if self.clip.norm == "cell" and (places is None or len(places) != 1):
            raise InvalidInput("This sum takes one entry per person: add([value], [cell]).")
        if self._counts(1, batch):
            if places is None:
                add_dense(self.clip.rule(), row, self._scratch, self._batch)
            else:
                starts = np.array([0, len(places)])
                add_sparse(self.clip.rule(), starts, places, row, self._scratch, self._batch)

    def add_rows(self, rows: Any, *, batch: int | None = None) -> None:
        """Many people's contributions at once: one per row of a scipy CSR matrix."""
        matrix = sparse.csr_array(rows)
        if matrix.shape[1] != self.size:
            raise InvalidInput(f"Expected rows of {self.size} numbers; got a matrix of shape {matrix.shape}.")
        matrix.sum_duplicates()  # also sorts; a place that came twice would count twice
        values, places = as_floats(matrix.data), matrix.indices.astype(np.int64, copy=False)
        if self.clip.norm == "cell" and (np.diff(matrix.indptr) > 1).any():
            raise InvalidInput("This sum takes one entry per person; some rows have more.")
        if self._counts(matrix.shape[0], batch):
            starts = matrix.indptr.astype(np.int64, copy=False)
            add_sparse(self.clip.rule(), starts, places, values, self._scratch, self._batch)

    def _counts(self, people: int, batch: int | None) -> bool:
        """Whether so many contributions to that batch still count; they are counted if so."""
        if batch is not None and batch != self.batch:
            if batch > self.batch:
                raise InvalidInput(f"Batch {batch} has not begun; batch {self.batch} is open.")
            return False
        if self._marks[1] + people > self.rounds:
            raise InvalidInput(f"More than the {self.rounds} contributions that this sum was made for.")
        self._marks[1] += people
        return True

    def _take(self) -> Ints:
        taken = self._batch.copy()
        self._batch[:] = 0
        self._marks[0] += 1
        return taken


class PrivateSum(Collector):
    """A running sum that may be published `releases` times at a total cost of `cost`."""

    def __init__(
        self,
        size: int,
        *,
        rounds: int,
        releases: int,
        cost: Gaussian | Laplace,
        strategy: str = "sqrt-toeplitz",
        clip: Clip | None = None,
        kept: Releases | None = None,
        name: str = "sum",
    ) -> None:
        super().__init__(size, Clip() if clip is None else clip, rounds)
        self.strategy = _validate.lookup(STRATEGIES, strategy, "strategy")(releases)
        most = self.strategy.largest(self.rounds * self.clip.largest)
        if most > ROOM:
            raise InvalidInput(
                f"{self.rounds:,} people of {self.clip.ticks} ticks could overflow 64 bits with {strategy!r}. "
                f"Take at most {max(1, self.clip.ticks * ROOM // most):,} ticks."
            )
        if isinstance(cost, Gaussian):
            squared = self.clip.sensitivity_squared(self.size) * self.strategy.square
            self.scale = calibrate.gaussian_sigma(cost.rho, squared)
            self.event: Gaussian | Laplace = Gaussian(rounded_up(squared / (2 * Fraction(self.scale) ** 2)))
        elif isinstance(cost, Laplace):
            apart = self.clip.sensitivity(self.size) * self.strategy.total
            self.scale = calibrate.laplace_scale(cost.epsilon, apart)
            self.event = Laplace(rounded_up(apart / Fraction(self.scale)))
        else:
            raise InvalidInput(f"cost must be a Gaussian or a Laplace event; got {cost!r}.")
        self._kept, self._name = Releases() if kept is None else kept, name
        self._due: Ints | None = None  # encoded, but not published yet because that failed, as on a full disk
        self._encoder, self._decoder = self.strategy.encoder(self.size), self.strategy.decoder(self.size)

    @property
    def left(self) -> int:
        """How many releases are left."""
        return self.strategy.releases - self.batch

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch and publish the running sum. Each release is drawn once and kept before it is seen."""
        if self.left < 1 and self._due is None:
            raise OverBudget(f"All {self.strategy.releases} releases that were paid for have been made.")
        if self._due is None:
            self._due = self._encoder.encode(self._take())
        number, rows = self.batch - 1, self._due
        sampler = noise.gaussian if isinstance(self.event, Gaussian) else noise.laplace
        released = self._kept.once(f"{self._name}-{number:06d}", lambda: sampler(rows, self.scale, secret))
        if released.shape != rows.shape:
            raise InvalidInput(
                f"The kept release {self._name}-{number:06d} is of another sum; give sums names."
            )
        self._due = None
        return np.asarray(self._decoder.decode(released) / self.clip.ticks)

    def deviation(self, release: int) -> float:
        """The standard deviation of the noise in every entry, in units, after so many releases (from 1)."""
        spread = self.scale * (1.0 if isinstance(self.event, Gaussian) else math.sqrt(2))
        return spread * math.sqrt(self.strategy.variance(release)) / self.clip.ticks

    def collector(self) -> Collector:
        """For another machine: clips and adds up by the same rule, to be merged before the batch is released."""
        made = Collector(self.size, self.clip, self.rounds)
        made._marks[0] = self.batch
        return made

    def merge(self, other: Collector) -> None:
        """Take over what another machine collected for the open batch; it goes on with the next."""
        if (other.size, other.clip, other.batch) != (self.size, self.clip, self.batch):
            raise InvalidInput(f"Only sums of one kind and batch add up: {self!r} is not like {other!r}.")
        if self._marks[1] + other._marks[1] > self.rounds:
            raise InvalidInput(f"More than the {self.rounds} contributions that this sum was made for.")
        self._marks[1] += other._marks[1]
        other._marks[1] = 0
        self._batch += other._take()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Everything it remembers, for snapshots, changed in place: as private as what people said. No randomness."""
        return self._batch, self._marks, self._encoder.arrays, self._decoder.arrays
