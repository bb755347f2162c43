r"""Leaders on the capped simplex: points of [0, 1]^N with sum k that follow sums of gains, and slates drawn from them.

The leader with rate eta is the x that maximises <sums, x> - (entropy penalty) / eta, that is x_a = min(1, exp(eta
sums_a - level)). Its rate falls with what following has cost so far: rate = k log(N/k) / cost, where each step adds
to the cost by how much the best value in hindsight grew beyond what the point itself gained (a Bregman divergence,
never negative). No horizon, no scale and no noise level has to be known for that (docs/maths/osm.md, Theorem J2).

A slate is drawn from a point by pivotal rounding of the items in order: k different items, item a with probability
x_a. Along running sums of x one unit fills up after the other, and each takes two searches and two coins. Searches are
guided (shares.py), so a slate costs O(k). Probabilities are whole multiples of 2^-40 and draws follow them exactly
(Lemma J3).

References Hazan (2016), FnT Optimization 2, for leaders with a penalty; De Rooij, Van Erven, Grunwald & Koolen
           (2014), JMLR 15, for rates that follow the cost; Deville & Tille (1998), Biometrika 85; Chauvet (2012),
           Bernoulli 18, for pivotal sampling in order.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo._numba import inline
from diminuendo.randomness.shares import GuideTable, seek
from diminuendo.randomness.words import UNFINISHED, PublicWords, below
from diminuendo.types import Floats, Ints, Items

ONE = 1 << 40
"""The whole number that stands for probability 1."""


def spread(n_items: int, slots: int) -> float:
    """Return k log(N / k): how far the entropy penalty of a slate is above that of the uniform point.

    Parameters
    ----------
    n_items, slots : int
        N and k.

    Returns
    -------
    float
    """
    return slots * math.log(n_items / slots)


def leader(sums: Floats, slots: int, rate: float) -> tuple[Floats, float]:
    """The point of the capped simplex that follows sums of gains: entropic follow-the-regularized-leader.

    Parameters
    ----------
    sums : array of shape (n_items,)
        What each item has gained so far, with or without noise.
    slots : int
        k, what the entries of the point add up to.
    rate : float
        eta > 0, the learning rate.

    Returns
    -------
    point : array of shape (n_items,)
        `min(1, exp(eta sums - level))`, with the level at which entries add up to k.
    value : float
        The maximum: <sums, x> less the penalty, which is 0 for the uniform point.

    Notes
    -----
    It maximises <sums, x> less the entropy penalty over eta; its regret is Lemma J4 of docs/maths/osm.md.

    Examples
    --------
    >>> point, _ = leader(np.array([3.0, 1.0, 1.0, 1.0]), 2, 1.0)
    >>> print(point.round(3))
    [1.    0.333 0.333 0.333]
    """
    top = float(sums.max())
    scaled = rate * (sums - top)
    falling = -np.sort(-scaled)
    # The logarithm of what the items from m on weigh together.
    rest = np.logaddexp.accumulate(falling[::-1])[::-1][:slots]
    levels = rest - np.log(slots - np.arange(slots))
    level = float(levels[np.argmax(falling[:slots] <= levels)])  # as few items at 1 as possible
    logs = np.minimum(0.0, scaled - level)
    x = np.exp(logs)
    penalty = float(x @ logs) + spread(len(sums), slots)
    return x, float(x @ (sums - top)) + slots * top - penalty / rate


def step_cost(sums: Floats, step: Floats, slots: int, rate: float) -> float:
    """Return by how much the leader's value grows when a step comes in, beyond what the present leader gains.

    Parameters
    ----------
    sums : ndarray of float, shape (n_items,)
        What each item has gained so far.
    step : ndarray of float, shape (n_items,)
        What each item gains now.
    slots : int
        k.
    rate : float
        Learning rate.

    Returns
    -------
    float
        At least 0: a Bregman divergence.

    Examples
    --------
    >>> import numpy as np
    >>> from diminuendo.extend import step_cost
    >>> round(step_cost(np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0]), 2, 0.5), 4)
    0.1012
    """
    x, before = leader(sums, slots, rate)
    return max(0.0, leader(sums + step, slots, rate)[1] - before - float(x @ step))


def running(x: Floats, slots: int) -> Ints:
    """(N+1,) running sums of x in units of 2^-40, each step at most 1, the last exactly `slots`."""
    units = np.clip(np.floor(x * ONE), 0, ONE).astype(np.int64)
    # What rounding left over is spread as evenly as it can be.
    while missing := slots * ONE - int(units.sum()):
        room = ONE - units if missing > 0 else units
        share = -(-abs(missing) // max(1, int((room > 0).sum())))
        step = np.minimum(room, share)
        step = np.clip(abs(missing) - (np.cumsum(step) - step), 0, step)
        units += step if missing > 0 else -step
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(units)])


@inline
def draw_pivotal(guide: GuideTable, row: Items, rng: PublicWords) -> bool:
    """Fill `row` with different items, item a with probability (ends[a+1] - ends[a]) / ONE; False: to be resumed.

    `guide`: to running sums of the point, those of its only expert.
    Who is left over from the units before has `rest` to go on with. In each unit the items that lie in it whole, and
    who is left over, are played off against each other; the one who stays meets the item that crosses the border.
    """
    left, rest = -1, 0
    for unit in range(len(row)):
        border = (unit + 1) * ONE
        crossing = seek(guide, 0, border - 1)
        inside = border - guide.ends[crossing, 0]
        beyond = guide.ends[crossing + 1, 0] - border
        stays = left
        if inside < ONE:
            place = below(ONE - inside, rng)
            if place == UNFINISHED:
                return False
            if place >= rest:
                stays = seek(guide, 0, unit * ONE + place)
        toss = below(ONE - beyond, rng)
        if toss == UNFINISHED:
            return False
        if toss < inside:
            row[unit], left = crossing, stays
        else:
            row[unit], left = stays, crossing
        rest = beyond
    return True
