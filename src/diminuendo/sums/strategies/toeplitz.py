r"""The square root of the prefix sum: the best explicit strategy for up to a few hundred releases.

Release b is the sum over j <= b of r_{b-j} times batch j, where r_0, r_1, ... are the coefficients of 1/sqrt(1-x):
1, 1/2, 3/8, ... Decoding by the same coefficients gives running sums, since 1/sqrt(1-x) squared is 1/(1-x). Here
the coefficients are rounded to whole multiples of 1/UNIT and the decoder inverts the rounded ones. Batches are kept,
one vector each.
References Fichtenberger, Henzinger & Upadhyay (2023), ICML; Henzinger, Upadhyay & Upadhyay (2023), SODA.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from diminuendo.sums.strategies.base import Decoder, Encoder, Strategy
from diminuendo.types import Floats, Ints

UNIT = 1 << 12


class SqrtToeplitz(Strategy):
    """Weights fall as 1/sqrt(age)."""

    name: ClassVar[str] = "sqrt-toeplitz"
    unit = UNIT

    def __init__(self, releases: int) -> None:
        super().__init__(releases)
        steps = np.arange(1, self.releases)
        roots = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
        self.weights = np.rint(UNIT * roots).astype(np.int64)
        self.square = sum(int(weight) ** 2 for weight in self.weights)
        self.total = int(self.weights.sum())
        self._inverse = prefix_weights(self.weights)

    def encoder(self, size: int) -> Encoder:
        """Remembers every batch."""
        done, batches = np.zeros(1, dtype=np.int64), np.zeros((self.releases, size), dtype=np.int64)

        def encode(batch: Ints) -> Ints:
            batches[done[0]] = batch
            done[0] += 1
            return np.asarray(self.weights[: done[0]][None, ::-1] @ batches[: done[0]])

        return Encoder((done, batches), encode)

    def decoder(self, size: int) -> Decoder:
        """Remembers every release."""
        done, releases = np.zeros(1), np.zeros((self.releases, size))

        def decode(rows: Ints) -> Floats:
            releases[int(done[0])] = rows[0]
            done[0] += 1
            return np.asarray(self._inverse[: int(done[0])][::-1] @ releases[: int(done[0])])

        return Decoder((done, releases), decode)

    def variance(self, release: int) -> float:
        """Of the weights with which releases enter the estimate."""
        return float((self._inverse[:release] ** 2).sum())


def prefix_weights(weights: Ints) -> Floats:
    """b with b * weights = (1, 1, ...) as power series: the last release enters with b_0, the one before with b_1."""
    series = weights.astype(np.float64)
    result = np.empty(len(series))
    for n in range(len(series)):  # the n-th coefficient of the product is 1
        result[n] = (1.0 - series[1 : n + 1] @ result[:n][::-1]) / series[0]
    return result
