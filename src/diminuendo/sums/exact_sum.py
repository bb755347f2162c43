"""A running sum that is published as it is, without noise: for comparisons, since it promises nothing.

It takes contributions by the same rules as a private sum (private_sum.py): clipped, counted, one batch after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats


class ExactSum(OpenBatch):
    """A running sum of `size` entries that is published as it is after each batch of the schedule."""

    def __init__(self, size: int, *, schedule: Schedule, clip: Clip) -> None:
        super().__init__(size, clip, schedule)
        self._total = np.zeros(self.size, dtype=np.int64)

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch; the sum so far, in units. Secret words are not needed."""
        self._total += self._take()
        return self._total / self.clip.ticks

    def snapshot(self) -> bytes:
        """What was added so far."""
        return snapshots.packed(self._facts(), [self._entries(), self._marks, self._total])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a sum that was made with the same arguments."""
        batch = self._entries()
        snapshots.unpack(snapshot, self._facts(), [batch, self._marks, self._total])
        self._fill(batch)
        if not 0 <= self.batch <= len(self.schedule):
            raise InvalidInput("The snapshot is of a batch that there is not; it was altered.")

    def _facts(self) -> dict[str, Any]:
        return {"sum": repr((self.size, self.clip, self.schedule.ends))}
