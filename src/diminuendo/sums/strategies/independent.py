"""Independent batches: each batch is released by itself, once. The running sum is the sum of what was released.

Each person is in one batch, so any number of releases costs what one does (parallel composition), also with Laplace
noise and delta = 0 (docs/maths/sums.md, Theorem S2). The noise of the running sum grows with the number of batches.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diminuendo.sums.strategies.base import Decoder, Encoder, Strategy
from diminuendo.types import Floats, Ints


class Independent(Strategy):
    """Every batch by itself."""

    name: ClassVar[str] = "independent"
    unit = square = total = 1

    def encoder(self, size: int) -> Encoder:
        """An encoder that remembers nothing: each batch is released by itself."""
        return _Itself()

    def decoder(self, size: int) -> Decoder:
        """A decoder that adds up what was released."""
        return _Sum(size)

    def variance(self, release: int) -> float:
        """One for each batch."""
        return float(release)


class _Itself(Encoder):
    arrays: tuple[Ints, ...] = ()

    def encode(self, batch: Ints) -> Ints:
        return batch[None, :].copy()


class _Sum(Decoder):
    def __init__(self, size: int) -> None:
        self._running = np.zeros(size)
        self.arrays = (self._running,)

    def decode(self, rows: Ints) -> Floats:
        self._running += rows[0]
        return self._running.copy()


__all__ = ["Independent"]
