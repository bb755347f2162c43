r"""Leaders on the capped simplex: points of [0, 1]^N with sum k that follow sums of gains, and slates drawn from them.

The leader with rate eta is the x that maximises <sums, x> - (entropy penalty) / eta, that is x_a = min(1, exp(eta
sums_a - level)). Its rate falls with what following has cost so far: rate = k log(N/k) / cost, where each step adds
to the cost by how much the best value in hindsight grew beyond what the point itself gained (a Bregman divergence,
never negative). No horizon, no scale and no noise level has to be known for that (docs/maths/released.md, Theorem R2).

A slate is drawn from a point by pivotal rounding of the items in order: k different items, item a with probability
x_a. Along running sums of x one unit fills up after the other, and each takes one search and one toss. What crosses
the borders of units is known beforehand, and searches are guided (cuts.py), so a slate costs O(k). No coin depends on
what a search finds: places are drawn for several slates, and then looked up together. Probabilities are whole multiples
of 2^-40 and draws follow them exactly (Lemma R4).

References Hazan (2016), FnT Optimization 2, for leaders with a penalty; De Rooij, Van Erven, Grunwald & Koolen
           (2014), JMLR 15, for rates that follow the cost; Deville & Tille (1998), Biometrika 85; Chauvet (2012),
           Bernoulli 18, for pivotal sampling in order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline
from diminuendo.experts.cuts import Cuts, cut, fetch_cut
from diminuendo.randomness.shares import find, mask
from diminuendo.randomness.words import SHORT, UNFINISHED, USED, PublicWords, accepted, below
from diminuendo.types import Floats, Ints, Items, Words

ONE = 1 << 40
"""The whole number that stands for probability 1."""
AT_ONCE = 16
"""Slates whose places are drawn before any is looked up: so many waits for memory pass at the same time."""


def spread(n_items: int, slots: int) -> float:
    """k log(N/k): how far the penalty of a slate is above that of the uniform point."""
    return slots * math.log(n_items / slots)


class Lead(NamedTuple):
    """What there is to know about a leader, but for its point, which follows from it (`leading`)."""

    level: float
    value: float
    """<sums, x> less the penalty, which is 0 for the uniform point."""


def leader(sums: Floats, slots: int, rate: float) -> tuple[Floats, Lead]:
    """The point that follows `sums`, and what it takes to find it again."""
    top = float(sums.max())
    scaled = rate * (sums - top)
    falling = -np.sort(-scaled)
    rest = np.logaddexp.accumulate(falling[::-1])[::-1][
        :slots
    ]  # log of what the items from m on weigh together
    levels = rest - np.log(slots - np.arange(slots))
    level = float(levels[np.argmax(falling[:slots] <= levels)])  # as few items at 1 as possible
    x, logs = _point(scaled, level)
    penalty = float(x @ logs) + spread(len(sums), slots)
    return x, Lead(level, float(x @ (sums - top)) + slots * top - penalty / rate)


def _point(scaled: Floats, level: float) -> tuple[Floats, Floats]:
    """x, and its logarithms."""
    logs = np.minimum(0.0, scaled - level)
    return np.exp(logs), logs


def leading(sums: Floats, rate: float, level: float) -> Floats:
    """The point that follows `sums`, where its level is known: the same numbers, without a search."""
    return _point(rate * (sums - float(sums.max())), level)[0]


def step_cost(sums: Floats, step: Floats, slots: int, rate: float, known: Lead | None = None) -> float:
    """By how much the leader's value grows when `step` comes in, beyond what the leader before it gains.

    `known`: the leader of `sums` at this rate, where somebody has it already.
    """
    if known is None:
        x, known = leader(sums, slots, rate)
    else:
        x = leading(sums, rate, known.level)
    return max(0.0, leader(sums + step, slots, rate)[1].value - known.value - float(x @ step))


def running(x: Floats, slots: int) -> Ints:
    """(N+1,) running sums of x in units of 2^-40, each step at most 1, the last exactly `slots`."""
    units = np.clip(np.floor(x * ONE), 0, ONE).astype(np.int64)
    while missing := slots * ONE - int(
        units.sum()
    ):  # what rounding left over is spread as evenly as it can be
        room = ONE - units if missing > 0 else units
        share = -(-abs(missing) // max(1, int((room > 0).sum())))
        step = np.minimum(room, share)
        step = np.clip(abs(missing) - (np.cumsum(step) - step), 0, step)
        units += step if missing > 0 else -step
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(units)])


@inline
def draw_pivotal(ends: Ints, row: Items, coins: PublicWords) -> bool:
    """Fill `row` with different items, item a with probability (ends[a+1] - ends[a]) / ONE; False: to be resumed.

    Who is left over from the units before has `rest` to go on with. In each unit the items that lie in it whole, and
    who is left over, are played off against each other; the one who stays meets the item that crosses the border.
    """
    left, rest = -1, 0
    for unit in range(len(row)):
        border = (unit + 1) * ONE
        crossing = find(ends, border - 1)
        inside = border - ends[crossing]
        beyond = ends[crossing + 1] - border
        stays = left
        if inside < ONE:
            place = below(ONE - inside, coins)
            if place == UNFINISHED:
                return False
            if place >= rest:
                stays = find(ends, unit * ONE + place)
        toss = below(ONE - beyond, coins)
        if toss == UNFINISHED:
            return False
        if toss < inside:
            row[unit], left = crossing, stays
        else:
            row[unit], left = stays, crossing
        rest = beyond
    return True


class Borders(NamedTuple):
    """Where units end: how much of the item that crosses the border is inside, and how much beyond."""

    cuts: Cuts
    inside: Ints
    beyond: Ints
    masks: Words
    """(k, 2) for the coins below what is not inside, and below what is not beyond (words.py)."""
    places: Ints
    """(AT_ONCE, k) scratch: what is to be looked up."""


def bordered(ends: Ints) -> Borders:
    """Everything about running sums that no coin decides."""
    borders = ONE * np.arange(1, ends[-1] // ONE + 1)
    crossing = np.searchsorted(ends, borders - 1, side="right") - 1
    inside, beyond = borders - ends[crossing], ends[crossing + 1] - borders
    masks = [[mask(ONE - int(part)) for part in both] for both in zip(inside, beyond, strict=True)]
    places = np.zeros((AT_ONCE, len(borders)), dtype=np.int64)
    return Borders(cut(ends), inside, beyond, np.array(masks, dtype=np.uint64), places)


@inline
def draw_places(borders: Borders, row: int, coins: PublicWords) -> bool:
    """For each slot a place in borders.places[row] whose item `draw_pivotal` draws with the same words; False: resume.

    The item that crosses the border holds the last place before it.
    """
    places, words, at = borders.places[row], coins.words, coins.used[USED]
    stays, rest = 0, 0
    for unit in range(len(places)):
        inside, beyond = borders.inside[unit], borders.beyond[unit]
        if inside < ONE:
            at = accepted(ONE - inside, borders.masks[unit, 0], words, at)
            if at == len(words):
                break
            place = int(np.int64(words[at] & borders.masks[unit, 0]))
            stays = unit * ONE + place if place >= rest else stays
            at += 1
        at = accepted(ONE - beyond, borders.masks[unit, 1], words, at)
        if at == len(words):
            break
        toss = int(np.int64(words[at] & borders.masks[unit, 1]))
        at += 1
        crossing = (unit + 1) * ONE - 1
        places[unit], stays = (crossing, stays) if toss < inside else (stays, crossing)
        fetch_cut(borders.cuts, places[unit])
        rest = beyond
    else:
        coins.used[USED] = at
        return True
    coins.used[USED], coins.used[SHORT] = at, 1
    return False
