"""Ticks: gains as whole numbers, so that what is private is exact."""

from __future__ import annotations

import math

from diminuendo._numba import inline

TICKS = 1 << 20
"""Whole numbers to one unit of gain."""


@inline
def to_ticks(gain: float) -> int:
    """A gain as whole ticks from 0 to TICKS, whatever was given: NaN and negative count as 0, too much as 1."""
    if not gain > 0.0:
        return 0
    return int(math.floor(min(gain, 1.0) * TICKS))
