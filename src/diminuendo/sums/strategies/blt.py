r"""Buffered linear Toeplitz: nearly as good as the square root, with a few buffers however long the run.

Release b is batch b plus the sum over buffers of omega_i s_i, where s_i <- theta_i s_i + batch. So an earlier batch
enters with weight c_j = sum_i omega_i theta_i^{j-1} after j further batches, a sum of a few geometric series that
follows the square-root weights closely.

Whole numbers that shrink by a factor below 1 have to be rounded at every step, so the releases are no linear function
of the batches. But rounding down moves apart what differs by v by at most v times what it moves apart what differs by
one: the weights of a single unit, rounded *up* at every step, bound every shift, entry by entry (docs/maths/sums.md,
Theorem S3). `square` and `total` are computed from those.

The parameters minimise the largest variance for the number of releases they stand under; a run takes the first
that are meant for at least its length.
References Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), FOCS; McMahan, Xu & Zhang (2024).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.sums.strategies.base import Decoder, Encoder, Strategy
from diminuendo.types import Floats, Ints

PARAMETERS: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    16: ((0.531683942, 0.954379187), (0.227183075, 0.270983663)),
    64: ((0.727093422, 0.984229889), (0.310256225, 0.170608)),
    256: ((0.84466823, 0.99458315), (0.33330101, 0.10586575)),
    1024: ((0.74328069, 0.97855963, 0.99897283), (0.31138721, 0.12054815, 0.04444176)),
    4096: ((0.5270645, 0.94250481, 0.99516689, 0.9997544), (0.24937642, 0.1780554, 0.05614931, 0.02163733)),
    65536: (
        (0.693491879, 0.967242281, 0.996966604, 0.999727711, 0.999985342),
        (0.292284936, 0.133267955, 0.041814902, 0.01291314, 0.005250346),
    ),
    1 << 20: (
        (0.709317277, 0.971079448, 0.997488189, 0.999784575, 0.999981837, 0.999999059),
        (0.298790539, 0.128990244, 0.03904295, 0.011465961, 0.003411386, 0.00133537),
    ),
}
"""Releases -> (theta, omega)."""

UNIT_BITS = 18
"""A weight of 1 is 2^18: the smallest weights of a million releases are still a hundred or so."""
FACTOR_BITS = 31
"""theta and omega are whole multiples of 2^-31; products are taken in two halves, which fit into 64 bits."""
LOW = (1 << FACTOR_BITS) - 1
FINER = 10
"""Buffers are kept so much finer, in bits, than what all their roundings can add up to."""


class Blt(Strategy):
    """A few decaying buffers."""

    name: ClassVar[str] = "blt"
    unit = 1 << UNIT_BITS

    def __init__(self, releases: int) -> None:
        super().__init__(releases)
        longest = max(PARAMETERS)
        if self.releases > longest:
            raise InvalidInput(
                f"blt has parameters for up to {longest:,} releases; got {releases:,}. Make batches longer."
            )
        theta, omega = PARAMETERS[min(length for length in PARAMETERS if length >= self.releases)]
        self.guard = max(UNIT_BITS, math.ceil(-math.log2(1 - max(theta))) + FINER)
        self.theta, self.omega = (
            np.rint(np.array(part) * 2.0**FACTOR_BITS).astype(np.int64) for part in (theta, omega)
        )
        self.weights = np.empty(self.releases, dtype=np.int64)
        _unit_weights(self.theta, self.omega, self.guard, self.weights)
        self.square = sum(int(weight) ** 2 for weight in self.weights)
        self.total = int(self.weights.sum())
        self._inverse = np.empty(self.releases)
        _prefix_weights(*self._floats, np.zeros(len(self.theta)), self._inverse)

    def encoder(self, size: int) -> Encoder:
        """Remembers the buffers."""
        buffers = np.zeros((len(self.theta), size), dtype=np.int64)

        def encode(batch: Ints) -> Ints:
            earlier = np.zeros(size, dtype=np.int64)
            for theta, omega, buffer in zip(self.theta, self.omega, buffers, strict=True):
                earlier += _times(omega, buffer)
                buffer[:] = _times(theta, buffer)
                buffer += batch << self.guard
            earlier >>= self.guard - UNIT_BITS
            earlier += batch << UNIT_BITS
            return earlier[None, :]

        return Encoder((buffers,), encode)

    def decoder(self, size: int) -> Decoder:
        """Remembers the buffers and the running sum."""
        theta, omega = self._floats
        buffers, running = np.zeros((len(theta), size)), np.zeros(size)

        def decode(rows: Ints) -> Floats:
            batch: Floats = rows[0] / 2.0**UNIT_BITS
            batch -= omega @ buffers
            buffers[:] *= theta[:, None]
            buffers[:] += batch
            running[:] += batch
            return running.copy()

        return Decoder((buffers, running), decode)

    @property
    def _floats(self) -> tuple[Floats, Floats]:
        return self.theta / 2.0**FACTOR_BITS, self.omega / 2.0**FACTOR_BITS

    def variance(self, release: int) -> float:
        """Of the weights with which releases enter the estimate."""
        return float((self._inverse[:release] ** 2).sum()) / self.unit**2

    def largest(self, sum_: int) -> int:
        """In the buffers, or in what they are combined to."""
        return max(sum_ << self.guard, super().largest(sum_))


@kernel
def _unit_weights(theta: Ints, omega: Ints, guard: int, weights: Ints) -> None:
    """What one unit in the first batch can change in each release, everything rounded up."""
    drop = 1 << (guard - UNIT_BITS)
    weights[:] = 0
    for i in range(len(theta)):
        left = 1 << guard
        for j in range(1, len(weights)):
            weights[j] += (omega[i] * left + LOW) >> FACTOR_BITS
            left = (theta[i] * left + LOW) >> FACTOR_BITS
    for j in range(1, len(weights)):
        weights[j] = (weights[j] + drop - 1) // drop
    weights[0] = 1 << UNIT_BITS


@kernel
def _prefix_weights(theta: Floats, omega: Floats, buffers: Floats, weights: Floats) -> None:
    """How the running sum answers, release by release, to one unit in the first; `buffers` start at 0."""
    running = 0.0
    for j in range(len(weights)):
        x = 1.0 if j == 0 else 0.0
        for i in range(len(theta)):
            x -= omega[i] * buffers[i]
        for i in range(len(theta)):
            buffers[i] = theta[i] * buffers[i] + x
        running += x
        weights[j] = running


def _times(factor: int, numbers: Ints) -> Ints:
    """numbers * factor / 2^31, rounded down; exact although the products do not fit into 64 bits."""
    return factor * (numbers >> FACTOR_BITS) + ((factor * (numbers & LOW)) >> FACTOR_BITS)
