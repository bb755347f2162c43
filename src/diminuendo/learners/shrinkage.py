"""Shrinking noisy rows: most entries are nothing but noise, and should be taken for nothing.

An entry is 0 with probability 1 - p, else normal with mean 0 and variance v; noise of known deviation comes on top. p
and v are fitted to the very row (expectation maximisation), which was published, so this costs no privacy. What is
returned is each entry's mean given what was seen.
"""

from __future__ import annotations

import numpy as np

from diminuendo.types import Floats

STEPS = 30


def shrunk(row: Floats, deviation: float) -> Floats:
    """The posterior mean of every entry."""
    noise = deviation * deviation
    some, spread = 0.1, max(float(np.max(row, initial=0.0)) ** 2 / 4, noise * 1e-3)
    share = np.full(len(row), some)
    for _ in range(STEPS):
        wide = spread + noise
        against = 0.5 * np.log(wide / noise) - 0.5 * row * row * (1 / noise - 1 / wide)
        share = 1 / (1 + (1 - some) / some * np.exp(np.clip(against, -500, 500)))
        mean, left = spread / wide * row, spread * noise / wide
        some = float(np.clip(share.mean(), 1 / len(row), 0.9))
        spread = max(float(share @ (mean * mean + left)) / max(float(share.sum()), 1e-12), noise * 1e-3)
    found: Floats = share * spread / (spread + noise) * row
    return found
