"""Bounds: what counted guesses prove about epsilon.

An event that happens with chance p in one world and q in the other shows that epsilon is at least log((p - delta) / q).
Chances are not known but counted, so p is taken as small and q as large as the counts allow (Clopper and Pearson), and
what is left is true except with the stated chance (docs/maths/audit.md, Theorems U1 and U2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from diminuendo.types import Floats


def at_least(hits: ArrayLike, runs: int, alpha: float) -> Floats:
    """The chance of an event that came `hits` times is at least this, except with chance `alpha`."""
    counted = np.asarray(hits, dtype=np.float64)
    low = stats.beta.ppf(alpha, np.maximum(counted, 1.0), runs - np.maximum(counted, 1.0) + 1.0)
    return np.asarray(np.where(counted > 0, low, 0.0), dtype=np.float64)


def at_most(hits: ArrayLike, runs: int, alpha: float) -> Floats:
    """The chance of an event that came `hits` times is at most this, except with chance `alpha`."""
    return np.asarray(1.0 - at_least(runs - np.asarray(hits, dtype=np.float64), runs, alpha))


def epsilon_shown(hits: ArrayLike, others: ArrayLike, runs: int, delta: float, alpha: float) -> Floats:
    """Epsilon is at least this, except with chance `alpha`, when an event came `hits` and `others` times in the worlds.

    Both worlds were run `runs` times; half of alpha goes to each bound. 0 where nothing is shown.
    """
    p, q = at_least(hits, runs, alpha / 2), at_most(others, runs, alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(np.maximum(p - delta, 0.0) / q)
    return np.asarray(np.maximum(np.nan_to_num(found, nan=0.0, neginf=0.0), 0.0))
