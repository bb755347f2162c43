r"""Where gradients are added up: as they are, with Gamma-norm noise, or in whole ticks with exact noise.

Each takes one user's gradients, K of n entries, cuts them (NaN and negative entries are 0, nothing is longer than G)
and adds them to the open batch; `release` closes the batch and returns the running sums of everything released so far,
with noise. Releases are stored with the ledger before they are used: after a crash they are published as they were.

Guarantee  Gamma: epsilon (docs/maths/continuous.md, Theorem C1; real arithmetic). Ticks: what Theorems C2 and C9 say
           (exact).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.continuous import frank_wolfe_plan
from diminuendo.continuous.frank_wolfe_plan import FrankWolfePlan, Spec
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.events import ContinuousGaussian, Event, Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.gamma_tree import GammaTree
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats

HAIR = 1 - 2.0**-40
"""Gradients that are too long are scaled to a hair less than the bound, so that rounding cannot exceed it."""


def clipped(gradients: Any, bound: float) -> Floats:
    """Rows of numbers in [0, bound], none longer than the bound, whatever was given."""
    rows = cut(gradients, bound)
    units = rows / bound  # in [0, 1]: the square of a tiny bound would be 0, of a huge one infinite
    lengths = np.sqrt((units * units).sum(axis=1, keepdims=True))
    return np.asarray(rows * np.where(lengths > 1, HAIR / np.maximum(lengths, 1.0), 1.0))


def cut(gradients: Any, bound: float) -> Floats:
    """Numbers in [0, bound]; what is not a number is 0."""
    return np.asarray(np.fmin(np.fmax(np.asarray(gradients, dtype=np.float64), 0.0), bound))


class GradientSums(ABC):
    """Running sums of K gradients."""

    __getstate__ = refuse_copies

    event: Event | None
    """What all releases together cost."""
    _spec: dict[str, str]
    _arrays: list[NDArray[Any]]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    @property
    @abstractmethod
    def released(self) -> int:
        """How many releases were made."""

    @abstractmethod
    def add(self, gradients: Floats) -> None:
        """One user's gradients, (K, n), to the open batch."""

    @abstractmethod
    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch; the running sums, (K, n)."""

    def snapshot(self) -> bytes:
        """All of it, without any randomness. As private as what users said."""
        return snapshots.packed(self._spec, self._arrays)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of sums that were made with the same arguments."""
        snapshots.unpack(snapshot, self._spec, self._arrays)


class OpenSums(GradientSums):
    """No noise, no privacy."""

    event = None

    def __init__(self, spec: Spec, copies: int) -> None:
        self._bound, self._spec = spec.gradient_bound, {"sums": "open"}
        self._done, self._total = np.zeros(1, dtype=np.int64), np.zeros((copies, spec.n))
        self._arrays = [self._done, self._total]

    @property
    def released(self) -> int:
        """How many releases were made."""
        return int(self._done[0])

    def add(self, gradients: Floats) -> None:
        """Add clipped gradients to the sum."""
        self._total += clipped(gradients, self._bound)

    def release(self, secret: SecretRandomness) -> Floats:
        """The sum so far, without noise."""
        self._done += 1
        return self._total.copy()


class GammaSums(GradientSums):
    """Trees with Gamma-norm noise, each copy at epsilon / K. `padded`: every release has the noise of as many nodes."""

    def __init__(
        self, spec: Spec, plan: FrankWolfePlan, epsilon: float, ledger: Ledger, name: str, padded: bool
    ) -> None:
        self._bound, self._padded = spec.gradient_bound, padded
        _, scale = frank_wolfe_plan.gamma_noise(spec, epsilon, plan.copies, plan.releases)
        self._tree = GammaTree(plan.copies, spec.n, plan.releases, scale)
        self._batch = np.zeros((plan.copies, spec.n))
        self._arrays = [*self._tree.arrays, self._batch]
        self._due: Floats | None = None  # drawn, but not kept yet because that failed, as on a full disk
        self.event = Laplace(epsilon)
        about = f"{plan.copies} x {spec.n} gradients, gamma noise, {plan.releases} releases of {spec.rounds} rounds"
        self._spec = {"sums": f"{about}, {scale!r}, {padded}"}
        self._paid = ledger.buy(self.event, name, about)

    @property
    def released(self) -> int:
        """How many releases were made."""
        return int(self._tree.arrays[0][0]) - (self._due is not None)

    def add(self, gradients: Floats) -> None:
        """To the open batch, each copy's gradient cut to G by itself."""
        self._batch += clipped(gradients, self._bound)

    def release(self, secret: SecretRandomness) -> Floats:
        """The new node is drawn once and kept; what is played follows from it, and from nodes kept before."""
        done, _, published = self._tree.arrays
        if self._due is None:
            self._tree.add(self._batch, secret)
            self._batch[:] = 0.0
            node = published[_lowest_digit(int(done[0]))].copy()
            self._due = np.stack([node, self._padding(int(done[0]), secret)])
        drawn = self._due
        stored = self._paid.once(f"{int(done[0]) - 1:06d}", lambda: drawn.view(np.int64), secret)
        if stored.shape != drawn.shape:
            raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
        self._due = None
        node, padding = stored.view(np.float64)
        published[_lowest_digit(int(done[0]))] = node
        return np.asarray(published.sum(axis=0) + padding)

    def _padding(self, done: int, secret: SecretRandomness) -> Floats:
        """Noise for the nodes that this running sum does not have: the same law for every release. Costs no privacy."""
        copies, n = self._batch.shape
        missing = (self._tree.levels - done.bit_count()) * self._padded
        if missing == 0:
            return np.zeros((copies, n))
        tree = GammaTree(copies * missing, n, 1, self._tree.scale)
        drawn = tree.add(np.zeros((copies * missing, n)), secret)
        return np.asarray(drawn.reshape(missing, copies, n).sum(axis=0))

    def snapshot(self) -> bytes:
        """Tree and open batch."""
        if self._due is not None:
            raise InvalidInput("A release is under way that could not be kept; call choose() again first.")
        return super().snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot; a release that was under way is forgotten."""
        super().restore(snapshot)
        self._due = None


class TickSums(GradientSums):
    """One sum of K n entries, cut together and released together, in whole ticks."""

    def __init__(
        self,
        spec: Spec,
        copies: int,
        schedule: Schedule,
        cost: Gaussian | ContinuousGaussian | Laplace,
        ledger: Ledger,
        name: str,
        strategy: str,
    ) -> None:
        self._shape, self._unit = (copies, spec.n), spec.gradient_bound
        self._sum = PrivateSum(
            copies * spec.n,
            schedule=Schedule(schedule.ends[:-1]),  # no user comes after the last batch
            cost=cost,
            ledger=ledger,
            strategy=strategy,
            clip=frank_wolfe_plan.tick_clip(copies),
            name=name,
        )
        self.event = self._sum.event

    @property
    def released(self) -> int:
        """How many releases were made."""
        return len(self._sum.schedule) - self._sum.left

    def add(self, gradients: Floats) -> None:
        """Add to the open batch, all copies' gradients cut together to sqrt(K) G."""
        self._sum.add((cut(gradients, self._unit) / self._unit).ravel(), batch=self.released)

    def release(self, secret: SecretRandomness) -> Floats:
        """The running sums, with noise."""
        return self._unit * self._sum.release(secret).reshape(self._shape)

    def snapshot(self) -> bytes:
        """The snapshot of the private sum."""
        return self._sum.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        self._sum.restore(snapshot)


def _lowest_digit(number: int) -> int:
    """The place of the lowest 1 among the binary digits."""
    return (number & -number).bit_length() - 1
