r"""What a strategy is: which combinations of batch sums are released, and how running sums are read from them.

A sum is released in batches. After batch b a strategy releases whole-number combinations of the batches so far, with
fresh noise on each; since it is fixed beforehand which combinations, one user's batch enters all of them with known
weights, and what one user can change in total is their contribution times the norm of those weights
(docs/maths/sums.md, Theorem S1). Decoding, from what was released to an estimate of the running sum, is in floats: it
costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diminuendo import _validate
from diminuendo.types import Floats, Ints


@dataclass(frozen=True, repr=False, eq=False)
class Encoder:
    """From the sum of each batch in turn to the combinations to release. Holds what users contributed."""

    arrays: tuple[Ints, ...]
    """Everything it remembers, for snapshots; changed in place."""
    encode: Callable[[Ints], Ints]
    """(rows, size): the combinations that are due after this batch."""


@dataclass(frozen=True, repr=False, eq=False)
class Decoder:
    """From what was released after each batch in turn to the running sum. Holds nothing that was not released."""

    arrays: tuple[Floats, ...]
    """Everything it remembers, for snapshots; changed in place."""
    decode: Callable[[Ints], Floats]
    """The estimate of the sum over all batches so far, in an array of its own."""


class Strategy(ABC):
    """For up to `releases` batches. All of it is public."""

    name: ClassVar[str]
    unit: int
    """The whole number that stands for a weight of 1."""
    square: int
    """The largest sum of squared weights with which one batch enters all releases."""
    total: int
    """The largest sum of absolute values that one batch is weighed with, for Laplace noise."""

    def __init__(self, releases: int) -> None:
        self.releases = _validate.positive_int(releases, "releases")

    def __repr__(self) -> str:
        return f"<{self.name}, {self.releases} releases>"

    @abstractmethod
    def encoder(self, size: int) -> Encoder:
        """A fresh encoder for vectors of that size."""

    @abstractmethod
    def decoder(self, size: int) -> Decoder:
        """A fresh decoder."""

    @abstractmethod
    def variance(self, release: int) -> float:
        """The variance of the estimate after that number of releases, in units of the variance of the noise."""

    def largest(self, sum_: int) -> int:
        """A bound on any number inside the encoder, when no entry of the running sum exceeds `sum_`."""
        return 2 * self.unit * sum_


class Independent(Strategy):
    """Every batch by itself, once. The running sum is the sum of what was released.

    Each user is in one batch, so any number of releases costs what one does (parallel composition), also with Laplace
    noise and delta = 0 (docs/maths/sums.md, Theorem S2). The noise of the running sum grows with the number of batches.
    """

    name: ClassVar[str] = "independent"
    unit = square = total = 1

    def encoder(self, size: int) -> Encoder:
        """Remembers nothing: each batch is released by itself."""
        return Encoder((), lambda batch: batch[None, :].copy())

    def decoder(self, size: int) -> Decoder:
        """Adds up what was released."""
        running = np.zeros(size)

        def decode(rows: Ints) -> Floats:
            running[:] += rows[0]
            return running.copy()

        return Decoder((running,), decode)

    def variance(self, release: int) -> float:
        """One for each batch."""
        return float(release)
