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
        done, open_ = np.zeros(1, dtype=np.int64), np.zeros((self.levels, size), dtype=np.int64)

        def encode(batch: Ints) -> Ints:
            done[0] += 1
            top = int(done[0] & -done[0]).bit_length() - 1  # the level of the highest node that is complete
            rows = np.empty((top + 1, size), dtype=np.int64)
            rows[0] = batch
            for level in range(top):
                rows[level + 1] = rows[level] + open_[level]  # the sister to its left was complete before
            open_[:top], open_[top] = 0, rows[top]
            return rows

        return Encoder((done, open_), encode)

    def decoder(self, size: int) -> Decoder:
        """Remembers one estimate per level."""
        done, nodes = np.zeros(1), np.zeros((self.levels, size))

        def decode(rows: Ints) -> Floats:
            done[0] += 1
            node = rows[0].astype(np.float64)
            for level in range(1, len(rows)):
                share = self._variances[level]  # inverse-variance weights: the own release has variance 1
                node = share * rows[level] + (1 - share) * (node + nodes[level - 1])
            nodes[: len(rows) - 1], nodes[len(rows) - 1] = 0, node
            return np.asarray(nodes.sum(axis=0))

        return Decoder((done, nodes), decode)

    def variance(self, release: int) -> float:
        """The nodes in the binary digits of the number of releases."""
        return sum(v for level, v in enumerate(self._variances) if release >> level & 1)
