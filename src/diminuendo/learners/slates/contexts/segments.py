"""Who comes: the segments that users are in, and which share of all users each of them is.

Types that are public are counted as they come. Of private ones only what was published counts: noisy numbers of users
who answered. Before there are any, all segments are taken to be of one size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.streams.contexts import Contexts
from diminuendo.types import Floats, Ints

MOST_HIDDEN = 64
"""Of private contexts, cells of all segments are published, whoever arrived. So segments are no more than these."""
LEAST_SHARE = 1e-6
"""No share is taken to be smaller, so that it can be divided by."""


def segments_of(contexts: Contexts) -> Ints:
    """The segment of each type. Private ones, where they are too many, are told apart by their first columns only."""
    types = np.arange(contexts.n_types)
    if not contexts.private or contexts.n_types <= MOST_HIDDEN:
        return types
    values, result = contexts.values_of(types) + 1, np.zeros(contexts.n_types, dtype=np.int64)
    for column, size in zip(values.T, contexts.sizes, strict=True):
        finer = result * (size + 1) + column
        if finer.max() >= MOST_HIDDEN:
            return result if result.any() else np.minimum(finer, MOST_HIDDEN - 1)
        result = finer
    return result


class SegmentShares:
    """How often users of each segment come, as far as it is public."""

    def __init__(self, contexts: Contexts) -> None:
        self.private, self.segment_of = contexts.private, segments_of(contexts)
        self.n_segments = int(self.segment_of.max()) + 1
        self._seen = np.zeros((3, self.n_segments))  # users, out of how many, and the variance of their noise

    def saw(self, segments: Ints) -> None:
        """Users of these segments came, and that is public."""
        self._seen[0] += np.bincount(segments, minlength=self.n_segments)
        self._seen[1] += len(segments)

    def published(self, segment: int, users: float, rounds: float, variance: float) -> None:
        """In `rounds` rounds this number of users of a segment came, with noise of that variance."""
        self._seen[:, segment] += users, rounds, variance

    def shares(self) -> Floats:
        """Which share of all users each segment is: of one size at first, and then as was seen."""
        users, rounds, noise = self._seen
        guess = 1.0 / self.n_segments
        seen = users / np.maximum(rounds, 1)
        unsure = (noise + np.maximum(users, 1)) / np.maximum(rounds, 1) ** 2
        trust = np.where(rounds > 0, guess / (guess + unsure / guess), 0.0)
        result = np.maximum(guess + trust * (seen - guess), LEAST_SHARE)
        return np.asarray(result / result.sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a snapshot. The names are those of a format."""
        return {"coming": self._seen}

    def take(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take out of `found` what `arrays` gave."""
        self._seen[:] = arrays.pop("coming")
