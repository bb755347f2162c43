"""The drift test: one published reward per batch, compared with those before."""

from __future__ import annotations

import math

import numpy as np

from diminuendo.types import Floats

DROP, SURE = 0.25, 3.0
"""A change is a drop of more than the share DROP, and by more than SURE deviations."""


class DriftTest:
    """The mean of published rewards since the last change, each counting by its precision."""

    def __init__(self) -> None:
        self.arrays: tuple[Floats] = (np.zeros(2),)  # weighted sum, and sum of weights

    def changed(self, reward: float, deviation: float) -> bool:
        """Whether the new reward is so low that users must have changed; then it is the first of a new memory."""
        (seen,) = self.arrays
        weight = deviation**-2
        if seen[1] > 0:
            mean, spread = seen[0] / seen[1], math.sqrt(deviation**2 + 1 / seen[1])
            if reward < (1 - DROP) * mean - SURE * spread:
                seen[:] = 0.0  # the reward of a slate that is out of date says nothing about the next
                return True
        seen += (weight * reward, weight)
        return False

    @property
    def mean(self) -> float:
        """The reward of slates since the last change, on average; 0 where none was published."""
        total, weight = self.arrays[0].tolist()
        return total / weight if weight > 0 else 0.0
