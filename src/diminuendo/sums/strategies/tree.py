r"""The binary tree: a node is released when its span of batches is complete; a batch is in one node per level.

Batch b (from 1) completes the nodes over its last 1, 2, 4, ... batches, for each power of two that divides b. A
running sum is read from the few complete nodes that make it up; each of these is in turn known better than by its
own release alone, from the releases below it (Honaker): an estimate of variance v_j at level j has

    v_0 = 1,   1 / v_j = 1 + 1 / (2 v_{j-1}).

Memory grows with the logarithm of the number of releases. Each batch enters floor(log2 releases) + 1 nodes with
weight 1, so Laplace noise works too.
References Dwork, Naor, Pitassi & Rothblum (2010), STOC; Chan, Shi & Song (2011), TISSEC 14; Honaker (2015), TPDP.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diminuendo.sums.strategies.base import Decoder, Encoder, Strategy
from diminuendo.types import Floats, Ints


class Tree(Strategy):
    """All complete nodes of a binary tree."""

    name: ClassVar[str] = "tree"
    unit = 1

    def __init__(self, releases: int) -> None:
        super().__init__(releases)
        self.levels = self.releases.bit_length()
        self.square = self.total = self.levels
        self._variances = [1.0]
        for _ in range(1, self.levels):
            self._variances.append(1 / (1 + 1 / (2 * self._variances[-1])))

    def encoder(self, size: int) -> Encoder:
        """Remembers one sum per level."""
        return _Nodes(self.levels, size)

    def decoder(self, size: int) -> Decoder:
        """Remembers one estimate per level."""
        return _Estimates(self._variances, size)

    def variance(self, release: int) -> float:
        """The nodes in the binary digits of the number of releases."""
        return sum(v for level, v in enumerate(self._variances) if release >> level & 1)


def _due(done: int) -> int:
    """How many nodes the batch with that number completes."""
    return (done & -done).bit_length()


class _Nodes(Encoder):
    def __init__(self, levels: int, size: int) -> None:
        self._done = np.zeros(1, dtype=np.int64)
        self._open = np.zeros((levels, size), dtype=np.int64)
        self.arrays = (self._done, self._open)

    def encode(self, batch: Ints) -> Ints:
        self._done += 1
        rows = np.empty((_due(int(self._done[0])), len(batch)), dtype=np.int64)
        node = batch.copy()
        for level in range(len(rows)):
            rows[level] = node
            if level + 1 < len(rows):
                node = node + self._open[level]  # the sister to its left was complete before
                self._open[level] = 0
            else:
                self._open[level] = node
        return rows


class _Estimates(Decoder):
    def __init__(self, variances: list[float], size: int) -> None:
        self._variances = variances
        self._done = np.zeros(1)
        self._nodes = np.zeros((len(variances), size))
        self.arrays = (self._done, self._nodes)

    def decode(self, rows: Ints) -> Floats:
        self._done += 1
        node = rows[0].astype(np.float64)
        for level in range(1, len(rows)):
            below = node + self._nodes[level - 1]
            self._nodes[level - 1] = 0
            share = self._variances[level]  # inverse-variance weights: the own release has variance 1
            node = share * rows[level] + (1 - share) * below
        self._nodes[len(rows) - 1] = node
        return np.asarray(self._nodes.sum(axis=0))


__all__ = ["Tree"]
