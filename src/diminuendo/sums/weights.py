"""Weights for people who are asked again at every release, and averages over releases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

UNIT = 4096
"""The whole number that stands for a weight of 1."""


def power_weights(schedule: Schedule) -> Ints:
    """(releases, batches): the weights of batches in releases, t_j / t_b, squares adding up to UNIT^2 a batch."""
    ends = np.array(schedule.ends, dtype=np.float64)
    weights = np.tril(ends[None, :] / ends[:, None])
    weights /= np.sqrt((weights**2).sum(axis=0))
    return np.floor(UNIT * weights).astype(np.int64)


def gls(rates: Sequence[Floats], deviations: Sequence[float]) -> tuple[Floats, float]:
    """The average of independent measurements of one thing, each counting by its precision; and its deviation."""
    spread = np.array([_validate.positive_float(deviation, "deviation") for deviation in deviations])
    found = np.asarray(rates, dtype=np.float64)
    if len(found) != len(spread) or len(found) == 0:
        raise InvalidInput(f"Expected a deviation for each of {len(found)} measurements; got {len(spread)}.")
    precision = spread**-2
    mean = np.tensordot(precision, found, axes=1) / precision.sum()
    return mean, float(precision.sum() ** -0.5)
