r"""Belief: what each item would add to the slate so far, given everything that was published about it.

For every item a mean and a variance. Three kinds of numbers come in, each with noise of known deviation:

    singles   what an item is worth by itself. Most items are worth little, few much: a prior of normal scales around
              0, whose shares are fitted to the numbers themselves.
    a row     what an item loses when another one joins. It loses a share of what it had: none, about a twentieth, ..,
              nearly all; how common each share is in this row is fitted to the row itself. Given the share, gains and
              losses are jointly normal, so the row corrects the gain in the way of a Kalman filter, and a loss that
              could not be measured is taken for what losses usually are.
    the rest  what is left after the last item of a chain, measured directly.

All of this is computed from what was published, so it costs no privacy. Nothing is fitted but how common scales and
shares are, by expectation maximisation over items. Numbers lie part by part, so that compiled loops run along items;
`tests/learners/plain_posterior.py` has the same formulas as one would write them in numpy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.types import Floats

SCALES, STEPS = 14, 30
SOME, LAST = 4096, 4
"""Where there are more items than SOME, how common parts are is fitted to about as many of them, evenly spread, and
only in the LAST steps to all."""
SHARES = np.array([0.0, 0.05, 0.12, 0.25, 0.45, 0.7, 0.95])
SPREADS = np.array([0.0, 0.03, 0.05, 0.08, 0.12, 0.15, 0.08])
"""Shares of a gain that can be lost, and how far around them: together they cover everything from 0 to 1."""

TILE = 512
"""Items that are looked at together: all their numbers stay in the fastest memory meanwhile."""

LEAST = 1e-18
"""Variances are at least this."""


class Parts(NamedTuple):
    """What an item may be like, one entry per part."""

    share: Floats
    """How much of what it had is measured ..."""
    own: Floats
    """... and the variance around that: by itself, ..."""
    spread: Floats
    """... and in proportion to the square of what it had."""
    goes: bool
    """Whether what is measured goes, and the rest stays; else it is what stays."""


LOSSES = Parts(SHARES, np.zeros_like(SHARES), SPREADS**2, goes=True)


class Posterior(NamedTuple):
    """Independent normal beliefs, one per item. An item of which nothing is known has mean 0."""

    mean: Floats
    variance: Floats

    def condition_on_losses(self, row: Floats, deviation: Floats) -> Posterior:
        """After an item joined: `row` measures what every item lost."""
        return _posterior(self, row, deviation, LOSSES) if np.isfinite(deviation).any() else self

    def condition_on_gains(self, gains: Floats, deviation: Floats) -> Posterior:
        """After gains themselves were measured."""
        old, new = 1 / self.variance, deviation**-2.0
        return Posterior((old * self.mean + new * gains) / (old + new), 1 / (old + new))


def from_singletons(singletons: Floats, deviation: Floats) -> Posterior:
    """What is believed of items by themselves. Where the deviation is infinite, nothing was measured."""
    known = np.isfinite(deviation)
    if not known.any():
        return Posterior(np.zeros(len(singletons)), np.ones(len(singletons)))
    smallest = float(deviation[known].min()) / 10
    largest = 1.5 * max(float(np.abs(singletons[known]).max()), 2 * smallest)
    scales = np.concatenate([[smallest / 10], np.geomspace(smallest, largest, SCALES)])
    none = np.zeros_like(scales)
    nothing = Posterior(np.zeros(len(singletons)), np.zeros(len(singletons)))
    return _posterior(nothing, singletons, deviation, Parts(none, scales**2, none, goes=False))


def _posterior(had: Posterior, measured: Floats, deviation: Floats, parts: Parts) -> Posterior:
    """What is believed after a measurement, parts being as common as all items together say.

    Where nothing was measured an item has the shares of all.
    """
    known = np.isfinite(deviation)
    counts = known.astype(np.float64)
    noise, seen = np.where(known, deviation, 1.0) ** 2, np.where(known, measured, 0.0)
    likely, scratch = np.empty((len(parts.share), len(seen))), np.empty(len(seen))
    _powers(had, seen, noise, parts, likely, scratch)
    np.exp(likely, out=likely)
    _weigh(had, noise, parts, likely)
    likely[:, ~known] = 1.0
    common = np.full(len(likely), 0.5 / (len(likely) - 1))
    common[0] = 0.5
    room, stride = (np.empty((len(likely), TILE)), np.empty(TILE)), len(seen) // SOME
    if stride > 1:
        some = np.ascontiguousarray(likely[:, ::stride])
        _fit_common(some, counts[::stride].copy(), common, *room, STEPS - LAST)
        _fit_common(likely, counts, common, *room, LAST)
    else:
        _fit_common(likely, counts, common, *room, STEPS)
    result = Posterior(np.empty_like(seen), np.empty_like(seen))
    _mix(had, seen, noise, counts, parts, likely, common, result, scratch)
    return result


@kernel
def _powers(
    had: Posterior, seen: Floats, noise: Floats, parts: Parts, powers: Floats, nearest: Floats
) -> None:
    """The logarithm of how likely the measurement is, but for its scale; 0 for the nearest part."""
    mean, variance = had
    nearest[:] = np.inf
    for part in range(len(powers)):
        share, own, spread, row = parts.share[part], parts.own[part], parts.spread[part], powers[part]
        for i in range(len(row)):
            varies = share * share * variance[i] + own + spread * (mean[i] * mean[i] + variance[i]) + noise[i]
            surprise = seen[i] - share * mean[i]
            row[i] = -0.5 * surprise * surprise / varies
            nearest[i] = min(nearest[i], -row[i])
    for part in range(len(powers)):
        row = powers[part]
        for i in range(len(row)):
            row[i] += nearest[i]


@kernel
def _weigh(had: Posterior, noise: Floats, parts: Parts, likely: Floats) -> None:
    """The scale of each part's density."""
    mean, variance = had
    for part in range(len(likely)):
        share, own, spread, row = parts.share[part], parts.own[part], parts.spread[part], likely[part]
        for i in range(len(row)):
            row[i] /= math.sqrt(
                share * share * variance[i] + own + spread * (mean[i] * mean[i] + variance[i]) + noise[i]
            )


@kernel
def _fit_common(
    likely: Floats, counts: Floats, common: Floats, sums: Floats, weights: Floats, steps: int
) -> None:
    """How common each part is, by expectation maximisation over the items that count.

    Half an item of each kind is added, so that none dies out. Sums run along places in a tile, which a processor
    takes several at a time without changing the order of any addition.
    """
    for _ in range(steps):
        sums[:] = 0.0
        for first in range(0, len(counts), TILE):
            count = counts[first : first + TILE]
            weight = weights[: len(count)]
            weight[:] = 0.0
            for part in range(len(likely)):
                share, row = common[part], likely[part, first : first + TILE]
                for i in range(len(count)):
                    weight[i] += share * row[i]
            for i in range(len(count)):
                weight[i] = count[i] / weight[i]
            for part in range(len(likely)):
                total, row = sums[part], likely[part, first : first + TILE]
                for i in range(len(count)):
                    total[i] += row[i] * weight[i]
        whole = 0.0
        for part in range(len(likely)):
            result = 0.0
            for i in range(TILE):
                result += sums[part, i]
            common[part] = 0.5 + common[part] * result
            whole += common[part]
        for part in range(len(likely)):
            common[part] /= whole


@kernel
def _mix(
    had: Posterior,
    seen: Floats,
    noise: Floats,
    counts: Floats,
    parts: Parts,
    likely: Floats,
    common: Floats,
    out: Posterior,
    whole: Floats,
) -> None:
    """One normal belief with the mean and variance of the mixture of all parts.

    In each part what stays and what is measured are jointly normal; `along` is their covariance.
    """
    mean, variance = had
    first, second = out
    first[:] = 0.0
    second[:] = 0.0
    whole[:] = 0.0
    for part in range(len(likely)):
        share, own, spread, row = parts.share[part], parts.own[part], parts.spread[part], likely[part]
        for i in range(len(row)):
            itself = own + spread * (mean[i] * mean[i] + variance[i])
            varies = share * share * variance[i] + itself
            along = share * variance[i] - varies if parts.goes else varies
            pull = counts[i] * along / (varies + noise[i])
            stays = (1 - share) * mean[i] + pull * (seen[i] - share * mean[i])
            left = (1 - share) * (1 - share) * variance[i] + itself - along * pull
            weight = row[i] * common[part]
            whole[i] += weight
            first[i] += weight * stays
            second[i] += weight * (left + stays * stays)
    for i in range(len(whole)):
        first[i] /= whole[i]
        second[i] = max(second[i] / whole[i] - first[i] * first[i], LEAST)
