"""Bounds: what no slate can exceed."""

from __future__ import annotations

import math

import numpy as np

from diminuendo.offline.total import total
from diminuendo.streams.people import Stream
from diminuendo.types import Floats, Slate

ONE_MINUS_1_OVER_E = 1 - math.exp(-1)
"""What greedy keeps of the best possible, and what the regret of this field is measured against."""


def top_sum(gains: Floats, count: int) -> float:
    """The sum of the `count` largest entries."""
    if count >= len(gains):
        return float(gains.sum())
    return float(np.partition(gains, len(gains) - count)[len(gains) - count :].sum())


def data_bound(stream: Stream, chain: Slate, slots: int) -> float:
    """An upper bound on the best mean value of `slots` items, from the data instead of from 1 - 1/e.

    For monotone submodular F the best slate is worth at most F(S) plus the k largest gains given S. That
    holds for every prefix S of `chain` (greedy's, say); the smallest of these bounds is returned.
    """
    summed = total(stream)
    best = top_sum(summed.gains(), slots)
    for item in chain:
        summed.add(item)
        best = min(best, summed.value() + top_sum(summed.gains(), slots))
    return best / max(1, len(stream))
