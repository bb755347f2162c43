r"""From fractions to slates: a point of {0 <= x <= 1, sum x <= k} becomes at most k items, in expectation no worse.

Pivotal rounding: two entries that are not whole yet are played off against each other. Their sum stays, each keeps
its mean, and one of them becomes whole; so on until at most one is left, which is tossed. Exactly k items are shown
when the entries add up to k (docs/maths/continuous.md, Theorem C7). Points are public, so the coins are public too.

References Deville & Tille (1998), Biometrika 85; Srinivasan (2001), FOCS; Chekuri, Vondrak & Zenklusen (2010), FOCS.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness.words import UNFINISHED, PublicCoins, PublicWords, begin, below, undo
from diminuendo.types import Floats, Slate

FINE = 1 << 53
"""A coin is one of this many equally likely numbers."""

WHOLE = 1e-9
"""An entry so close to 0 or 1 is there already: sums of floats do not come out exactly."""


def round_point(point: Any, slots: int, coins: PublicCoins) -> Slate:
    """At most `slots` items, item a with probability point[a]; exactly `slots` when that is the sum."""
    x = np.array(point, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or not ((x >= -WHOLE) & (x <= 1 + WHOLE)).all():
        raise InvalidInput("A point to round is a row of numbers in [0, 1].")
    if not isinstance(coins, PublicCoins):
        raise InvalidInput(f"Rounding takes PublicCoins; got {type(coins).__name__}.")
    count = _validate.slots(slots, len(x))
    if x.sum() > count * (1 + WHOLE):
        raise InvalidInput(f"The entries add up to {x.sum():.9g}, more than the {count} slots.")
    with coins.lock:
        while not _rounded(kept := x.copy(), coins.view):
            coins.resume()
    slate = np.flatnonzero(kept == 1.0)
    return tuple(int(item) for item in slate[:count])


@kernel
def _rounded(x: Floats, coins: PublicWords) -> bool:
    """Make every entry 0 or 1; False when words ran out, and then x is of no use."""
    begin(coins)
    open_ = -1  # the one entry before j that may not be whole
    for j in range(len(x)):
        x[j] = _settled(x[j])
        if x[j] == 0.0 or x[j] == 1.0:
            continue
        if open_ < 0:
            open_ = j
            continue
        drawn = below(FINE, coins)
        if drawn == UNFINISHED:
            undo(coins)
            return False
        toss, both = (drawn + 0.5) / FINE, x[open_] + x[j]
        if both <= 1.0:  # one of them goes to 0
            if toss * both < x[open_]:
                x[open_], x[j] = both, 0.0
            else:
                x[open_], x[j] = 0.0, both
        elif toss * (2.0 - both) < 1.0 - x[j]:  # one of them goes to 1
            x[open_], x[j] = 1.0, both - 1.0
        else:
            x[open_], x[j] = both - 1.0, 1.0
        x[open_], x[j] = _settled(x[open_]), _settled(x[j])
        if x[j] != 0.0 and x[j] != 1.0:
            open_ = j
        elif x[open_] == 0.0 or x[open_] == 1.0:
            open_ = -1
    if open_ >= 0:
        drawn = below(FINE, coins)
        if drawn == UNFINISHED:
            undo(coins)
            return False
        x[open_] = 1.0 if (drawn + 0.5) / FINE < x[open_] else 0.0
    return True


@inline
def _settled(value: float) -> float:
    if value < WHOLE:
        return 0.0
    return 1.0 if value > 1.0 - WHOLE else value
