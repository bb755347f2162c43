r"""Weights t_j / t_b of people who are asked again at every release, stored or added up; averages over releases.

A weight that falls with every release needs people to be stored (stored.py). But t_j / t_b is h_j g_b with h_j in
proportion to t_j and g_b = 1 / t_b: so in running sums people of batch j are added h_j times, once and for all, and
instead of multiplying the sum by g_b its noise is divided by it (docs/maths/overlap.md, Theorem O2).

The h_j are whole numbers and grow with time, so at last a sum could overflow: before that happens sums begin anew,
and h_j is small again. With the first release after 75 people this comes after some twenty million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import ROOM
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

UNIT = 4096
"""The whole number that stands for a weight of 1."""


LEAST = 256
"""How often people are added at least: rounding h_j down to a whole number then takes off 1/256 at most."""


@dataclass(frozen=True)
class RunningWeights:
    """For each release. All public."""

    often: Ints = field(repr=False)
    """How often people of the batch that it closes are added: h_j."""
    first: Ints = field(repr=False)
    """The first batch that is in the sums then."""
    growth: Floats = field(repr=False)
    """With noise of deviation growth * s each batch's squares add up to s^-2 at most."""

    def __len__(self) -> int:
        return len(self.often)

    def matrix(self, batches: int) -> Ints:
        """(releases, batches): how often people of a batch are in a release."""
        found = np.zeros((len(self), batches), dtype=np.int64)
        for release, first in enumerate(self.first):
            found[release, first : release + 1] = self.often[first : release + 1]
        return found

    def check(self, schedule: Schedule, clip: Clip) -> None:
        """Refuse weights with which a sum could overflow."""
        for release, first in enumerate(self.first):
            people = slice(int(first), release + 1)
            if _most(schedule.sizes[people], self.often[people], clip) > ROOM:
                raise InvalidInput(
                    f"{schedule.ends[release]:,} people of {clip.ticks} ticks could overflow; take fewer ticks."
                )


def running_weights(schedule: Schedule, releases: int, clip: Clip) -> RunningWeights:
    """The weights for the first `releases` batches, each released when it closes."""
    ends = np.array(schedule.ends[:releases], dtype=np.float64)
    often, first = np.zeros((2, releases), dtype=np.int64)
    growth = np.ones(releases)
    low = 0
    while low < releases:
        high, found = low + 1, _together(ends[low : low + 1])
        while high < releases:
            more = _together(ends[low : high + 1])
            if _most(schedule.sizes[low : high + 1], more[0], clip) > ROOM:
                break
            high, found = high + 1, more
        (often[low:high], growth[low:high]), first[low:high] = found, low
        low = high
    return RunningWeights(often, first, growth)


def _together(ends: Floats) -> tuple[Ints, Floats]:
    """For releases between which sums are kept."""
    norms = np.sqrt((np.tril(ends[None, :] / ends[:, None]) ** 2).sum(axis=0))
    unit = LEAST / (ends / norms).min()
    return np.floor(unit * ends / norms).astype(np.int64), unit * ends


def _most(sizes: Sequence[int], often: Ints, clip: Clip) -> int:
    return clip.largest * sum(int(size) * int(times) for size, times in zip(sizes, often, strict=True))
