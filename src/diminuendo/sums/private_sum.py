r"""A private running sum: people add vectors, and the sum so far is published with noise, a known number of times.

    budget = Budget(epsilon=1.0, delta=1e-6)
    ledger = Ledger.open("people.ledger", budget)
    total = PrivateSum(294, schedule=equal(rounds=30_000, batches=20), cost=budget.share(), ledger=ledger)
    total.add(vector)                          # or total.add(values, indices)
    published = total.release(secret)          # the running sum, in units, with noise

A contribution is clipped to whole ticks (clip.py) and added to the open batch. A release closes the batch, combines
batches by the strategy (strategies/base.py) in whole numbers, adds discrete noise to every entry, keeps the result with
the ledger, and only then decodes and returns it. An empty batch is released like any other. All releases are paid for
when the sum is made. After a crash, make it again with the same arguments and `restore` a snapshot: releases made
since then are published as they were, not drawn again. What was added since the snapshot is lost. `ExactSum` takes
contributions by the same rules and is published as it is: it shows what the noise costs.

Guarantee  `event`: with Gaussian noise rho-zCDP, rho = sensitivity^2 * square / (2 sigma^2) (docs/maths/sums.md,
           Theorems S1 and S3); with Laplace noise (epsilon, 0), epsilon = sensitivity * total / scale (Theorem S2).
Assumes    one `add` per person-round, whose vector depends on that person and on what was published before, and on
           nobody else; releases at public times (schedule.py). Whatever one person says in one round is one vector:
           stack it, so that it is clipped together. The limit of rounds per person is kept by the caller.
Excludes   timing, and the memory of the process: batches and encoders hold what people said.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import all_or_nothing
from diminuendo.privacy.rounding import raised, rounded_up
from diminuendo.randomness import noise, rounded_normal
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import Schedule
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.types import Floats, Ints

SAMPLERS: dict[type, Callable[[Ints, float, SecretRandomness], Ints]] = {
    Gaussian: lambda rows, scale, secret: noise.gaussian(rows, scale, secret),
    ContinuousGaussian: lambda rows, scale, secret: rounded_normal.rounded_normal(rows, scale, secret),
    Laplace: lambda rows, scale, secret: noise.laplace(rows, scale, secret),
}
"""Which noise belongs to which cost."""

ROOM = 1 << 61
"""No number inside may exceed this; what could is refused before anybody arrives."""


class RunningSum(OpenBatch, ABC):
    """A sum that is published after each batch of the schedule; how, subclasses say."""

    def snapshot(self) -> bytes:
        """What was added and released so far. As private as what people said."""
        later = sorted(self._later)
        parts = [self._cells.entries(), self._marks, *self._arrays()]
        if later:
            parts += [np.array(later), np.stack([self._later[batch].entries() for batch in later])]
        return snapshots.packed({"sum": repr(self._facts())}, parts)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a sum that was made with the same arguments."""
        found = snapshots.read(snapshot, {"sum": repr(self._facts())})
        entries, arrays = self._cells.entries(), self._arrays()
        here, later = found[: 2 + len(arrays)], found[2 + len(arrays) :]
        snapshots.fill([entries, self._marks, *arrays], here)
        self._cells.fill(entries)
        self._later = {}
        if later:
            count = later[0].size
            batches, their = np.zeros(count, dtype=np.int64), np.zeros((count, self.size), np.int64)
            snapshots.fill([batches, their], later)
            for batch, entries in zip(batches.tolist(), their, strict=True):
                self._later[batch] = self._new_cells()
                self._later[batch].fill(entries)

    def _facts(self) -> tuple[Any, ...]:
        """The arguments that it was made with."""
        return self.size, self.clip, self.schedule.ends

    @abstractmethod
    def _arrays(self) -> list[Any]:
        """What it remembers besides the open batch; changed in place."""


class PrivateSum(RunningSum):
    """A running sum, published once after each batch of the schedule, at a total cost of `cost`."""

    def __init__(
        self,
        size: int,
        *,
        schedule: Schedule,
        cost: Gaussian | Laplace | ContinuousGaussian,
        ledger: Ledger,
        strategy: str = "sqrt-toeplitz",
        clip: Clip | None = None,
        name: str = "sum",
        across: int = 1,
    ) -> None:
        super().__init__(size, Clip() if clip is None else clip, schedule, across)
        if not isinstance(ledger, Ledger):
            raise InvalidInput(f"A private sum is paid for on a Ledger; got {ledger!r}.")
        self.strategy = _validate.lookup(STRATEGIES, strategy, "strategy")(len(schedule))
        most = self.strategy.largest(schedule.rounds * self.clip.largest)
        if most > ROOM:
            raise InvalidInput(
                f"{schedule.rounds:,} people of {self.clip.ticks} ticks could overflow 64 bits with {strategy!r}: "
                f"too much by a factor of {math.ceil(most / ROOM)}. Take fewer ticks, or fewer people."
            )
        self.event: Gaussian | Laplace | ContinuousGaussian
        if isinstance(cost, (Gaussian, ContinuousGaussian)):
            squared = self.clip.sensitivity_squared(self.size) * self.strategy.square
            rho = Fraction(cost.rho) if isinstance(cost, Gaussian) else Fraction(cost.mu) ** 2 / 2
            self.scale = noise.checked_scale(calibrate.gaussian_sigma(rho, squared), "sigma")
            if isinstance(cost, Gaussian):
                self.event = Gaussian(rounded_up(squared / (2 * Fraction(self.scale) ** 2)))
            else:
                exact = squared / Fraction(self.scale) ** 2
                self.event = ContinuousGaussian(
                    raised(math.sqrt(exact), lambda mu: exact <= Fraction(mu) ** 2)
                )
        elif isinstance(cost, Laplace):
            apart = self.clip.sensitivity(self.size) * self.strategy.total
            self.scale = noise.checked_scale(calibrate.laplace_scale(cost.epsilon, apart), "scale")
            self.event = Laplace(rounded_up(apart / Fraction(self.scale)))
        else:
            raise InvalidInput(
                f"cost must be a Gaussian, ContinuousGaussian or Laplace event, as from Budget.share(); got {cost!r}."
            )
        self._encoder, self._decoder = self.strategy.encoder(self.size), self.strategy.decoder(self.size)
        self.last: Floats = np.zeros(self.size)
        """What was published last, in this life."""
        about = f"{self.size} entries, {strategy}, {len(schedule)} releases of {schedule.rounds} rounds, "
        self._paid = ledger.buy(
            self.event, name, about + f"{self.clip.norm} {self.clip.limit}/{self.clip.ticks} ticks"
        )

    @property
    def left(self) -> int:
        """How many releases are left."""
        return len(self.schedule) - self.batch

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch and publish the running sum. Each release is drawn once and kept before it is seen.

        If it fails, as on a full disk, nothing has happened, but what was drawn is drawn: the same release may be tried
        again.
        """
        sampler = SAMPLERS[type(self.event)]
        with self._releasing, all_or_nothing(self._arrays()):
            if self.left < 1:
                raise OverBudget(f"All {len(self.schedule)} releases that were paid for have been made.")
            with self._lock:  # who comes to this batch from now on comes too late
                closed, entries = self._cells, self._cells.entries()
            rows = self._encoder.encode(entries)
            released = self._paid.once(f"{self.batch:06d}", lambda: sampler(rows, self.scale, secret), secret)
            if released.shape != rows.shape:
                raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
            self.last = self._decoder.decode(released) / self.clip.ticks
            with self._lock:
                self._open_next()
        closed.array[...] = 0
        return self.last

    def deviation(self, release: int) -> float:
        """The standard deviation of the noise in every entry, in units, after that number of releases (from 1)."""
        if not 1 <= _validate.positive_int(release, "release") <= len(self.schedule):
            raise InvalidInput(f"release must be from 1 to {len(self.schedule)}; got {release}.")
        spread = self.scale * (math.sqrt(2) if isinstance(self.event, Laplace) else 1.0)
        return spread * math.sqrt(self.strategy.variance(release)) / self.clip.ticks

    def _facts(self) -> tuple[Any, ...]:
        return (*super()._facts(), self.strategy.name, self.scale, self._paid.name)

    def _arrays(self) -> list[Any]:
        return [*self._encoder.arrays, *self._decoder.arrays]


class ExactSum(RunningSum):
    """A running sum that is published as it is, for comparisons: it promises nothing."""

    def __init__(self, size: int, *, schedule: Schedule, clip: Clip) -> None:
        super().__init__(size, clip, schedule)
        self._total = np.zeros(self.size, dtype=np.int64)

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch; the sum so far, in units. Secret words are not needed."""
        self._total += self._take()
        return self.last

    @property
    def last(self) -> Floats:
        """What was published last."""
        return self._total / self.clip.ticks

    def _arrays(self) -> list[Any]:
        return [self._total]
