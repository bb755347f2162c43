"""A private running sum: users add vectors, and the sum so far is published with noise, a known number of times.

    budget = Budget(epsilon=1.0, delta=1e-6)
    ledger = Ledger.open("population.ledger", budget)
    total = PrivateSum(294, schedule=equal(rounds=30_000, batches=20), cost=budget.share(), ledger=ledger)
    total.add(vector)                          # or total.add(values, indices)
    published = total.release(secret)          # the running sum, in units, with noise

A contribution is clipped to integers (clip.py) and added to the open batch. A release closes the batch, combines
batches by the strategy (strategies/base.py) in integers, adds discrete noise to every entry, stores the result with
the ledger, and only then decodes and returns it. An empty batch is released like any other. All releases are charged
when the sum is made. After a crash, make it again with the same arguments and `restore` a snapshot: releases made
since then are published as they were, not drawn again; what was added since the snapshot is lost.

Guarantee  `event`: with Gaussian noise rho-zCDP, rho = sensitivity^2 * square / (2 sigma^2) (docs/maths/sums.md,
           Theorem S1); with Laplace noise (epsilon, 0), epsilon = sensitivity * total / scale (Theorem S2).
Assumes    one `add` per round, whose vector depends on that user and on what was published before, and on no other
           user; releases at public times (schedule.py). Whatever a user reports in one round is one vector: stack it,
           so that it is clipped together. The caller limits the rounds of a user.
Excludes   timing, and the memory of the process: batches and encoders hold users' contributions.
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
"""No number inside may exceed this; what could is refused before any user arrives."""


class RunningSum(OpenBatch, ABC):
    """A sum that is published after each batch of the schedule; how, subclasses say."""

    def snapshot(self) -> bytes:
        """What was added and released so far. As private as what users said."""
        later = sorted(self._later)
        parts = [self._cells, self._marks, *self._arrays()]
        if later:
            parts += [np.array(later), np.stack([self._later[batch] for batch in later])]
        return snapshots.packed({"sum": repr(self._spec())}, parts)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a sum that was made with the same arguments."""
        result = snapshots.read(snapshot, {"sum": repr(self._spec())})
        arrays = [self._cells, self._marks, *self._arrays()]
        here, later = result[: len(arrays)], result[len(arrays) :]
        snapshots.fill(arrays, here)
        self._later = dict(zip(later[0].tolist(), later[1], strict=True)) if later else {}

    def _spec(self) -> tuple[Any, ...]:
        """The arguments that it was made with."""
        return self.size, self.clip, self.schedule.ends

    @abstractmethod
    def _arrays(self) -> list[Any]:
        """What it remembers besides the open batch; changed in place."""


class PrivateSum(RunningSum):
    """A running sum of users' vectors, published with noise after each batch of a schedule.

    Parameters
    ----------
    size : int
        Length of the vectors.
    schedule : Schedule
        When batches close.
    cost : Gaussian or Laplace or ContinuousGaussian
        Cost of all releases together, as from `Budget.share`. Its type decides the noise: discrete Gaussian,
        discrete Laplace, or rounded Gaussian.
    ledger : Ledger
        Charged for all releases when the sum is made.
    strategy : str, default "sqrt-toeplitz"
        How batches are combined into releases, by its name in `sums.STRATEGIES`.
    clip : Clip, optional
        Contribution bounding. By default length 1 in 1024 fixed-point units.
    name : str, default "sum"
        Name of the releases in the ledger.

    Attributes
    ----------
    event : Gaussian or Laplace or ContinuousGaussian
        What was charged.
    last : ndarray of float, shape (size,)
        The latest release in this process.

    Raises
    ------
    OverBudget
        If the ledger cannot pay.
    InvalidInput
        If sums could overflow 64 bits, or the cost has no noise.

    Notes
    -----
    rho-zCDP with rho = sensitivity**2 * square / (2 sigma**2) for discrete Gaussian noise (Theorem S1 of
    docs/maths/sums.md), an exact Gaussian curve for rounded Gaussian noise (Theorem S6), and (epsilon, 0)-DP for
    Laplace noise (Theorem S2), replacing one contribution. This assumes one `add` per round, with a vector that
    depends on that user and on what was published before. The caller limits the rounds of a user.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.privacy import Budget, Ledger
    >>> from diminuendo.randomness import SecretRandomness
    >>> from diminuendo.sums import PrivateSum, equal
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> total = PrivateSum(3, schedule=equal(rounds=200, batches=2), cost=budget.share(), ledger=Ledger(budget))
    >>> for _ in range(100):
    ...     total.add([0.0, 1.0, 0.0])
    >>> released = total.release(SecretRandomness(SeededSource(1)))
    >>> released.shape, bool(abs(released[1] - 100) < 5 * total.deviation(1)), total.left
    ((3,), True, 1)
    """

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
    ) -> None:
        super().__init__(size, Clip() if clip is None else clip, schedule)
        if not isinstance(ledger, Ledger):
            raise InvalidInput(f"A private sum is paid for on a Ledger; got {ledger!r}.")
        self.strategy = _validate.lookup(STRATEGIES, strategy, "strategy")(len(schedule))
        most = self.strategy.largest(schedule.rounds * self.clip.largest)
        if most > ROOM:
            raise InvalidInput(
                f"{schedule.rounds:,} users of {self.clip.ticks} ticks could overflow 64 bits with {strategy!r}: "
                f"too much by a factor of {math.ceil(most / ROOM)}. Take fewer ticks, or fewer users."
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
        """The number of releases that are left."""
        return len(self.schedule) - self.batch

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch and publish the running sum.

        Parameters
        ----------
        secret : SecretRandomness
            Source of the noise.

        Returns
        -------
        ndarray of float, shape (size,)
            In units.

        Raises
        ------
        OverBudget
            If all releases have been made.

        Notes
        -----
        Drawn once, and stored with the ledger before it is returned. If it fails, the same release may be tried
        again.
        """
        sampler = SAMPLERS[type(self.event)]
        with self._releasing, all_or_nothing(self._arrays()):
            if self.left < 1:
                raise OverBudget(f"All {len(self.schedule)} releases that were paid for have been made.")
            with self._lock:  # who comes to this batch from now on comes too late
                closed, entries = self._cells, self._cells.copy()
            rows = self._encoder.encode(entries)
            released = self._paid.once(f"{self.batch:06d}", lambda: sampler(rows, self.scale, secret), secret)
            if released.shape != rows.shape:
                raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
            self.last = self._decoder.decode(released) / self.clip.ticks
            with self._lock:
                self._open_next()
        closed[:] = 0
        return self.last

    def deviation(self, release: int) -> float:
        """Return the standard deviation of the noise in every entry of a release.

        Parameters
        ----------
        release : int
            Number of the release, from 1.

        Returns
        -------
        float
            In units.

        Raises
        ------
        InvalidInput
            If there is no such release.
        """
        if not 1 <= _validate.positive_int(release, "release") <= len(self.schedule):
            raise InvalidInput(f"release must be from 1 to {len(self.schedule)}; got {release}.")
        spread = self.scale * (math.sqrt(2) if isinstance(self.event, Laplace) else 1.0)
        return spread * math.sqrt(self.strategy.variance(release)) / self.clip.ticks

    def _spec(self) -> tuple[Any, ...]:
        return (*super()._spec(), self.strategy.name, self.scale, self._paid.name)

    def _arrays(self) -> list[Any]:
        return [*self._encoder.arrays, *self._decoder.arrays]


class ExactSum(RunningSum):
    """A running sum without noise, for comparison. It promises nothing.

    Parameters
    ----------
    size : int
        Length of the vectors.
    schedule : Schedule
        When batches close.
    clip : Clip
        Contribution bounding, as of `PrivateSum`.
    """

    def __init__(self, size: int, *, schedule: Schedule, clip: Clip) -> None:
        super().__init__(size, clip, schedule)
        self._total = np.zeros(self.size, dtype=np.int64)

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch and return the sum so far, in units. `secret` is not used."""
        self._total += self._take()
        return self.last

    @property
    def last(self) -> Floats:
        """The latest sum, in units."""
        return self._total / self.clip.ticks

    def _arrays(self) -> list[Any]:
        return [self._total]
