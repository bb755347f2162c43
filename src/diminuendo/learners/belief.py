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
shares are, by expectation maximisation over items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._jit import kernel
from diminuendo.types import Floats

SCALES, STEPS = 14, 30
SHARES = np.array([0.0, 0.05, 0.12, 0.25, 0.45, 0.7, 0.95])
SPREADS = np.array([0.0, 0.03, 0.05, 0.08, 0.12, 0.15, 0.08])
"""Shares of a gain that can be lost, and how far around them: together they cover everything from 0 to 1."""


class Belief(NamedTuple):
    """Independent normal beliefs, one per item. An item of which nothing is known has mean 0."""

    mean: Floats
    variance: Floats

    def lose(self, row: Floats, deviation: Floats) -> Belief:
        """After an item joined: `row` measures what every item lost."""
        known = np.isfinite(deviation)
        if not known.any():
            return self
        noise = np.where(known, deviation, 1.0)[:, None] ** 2
        had, spread = self.mean[:, None], self.variance[:, None]
        own = SPREADS**2 * (had * had + spread)
        lost = SHARES**2 * spread + own  # the variance of the loss, before it is measured
        measured = lost + noise
        surprise = np.where(known, row, 0.0)[:, None] - SHARES * had
        fit = -0.5 * (np.log(measured) + surprise**2 / measured)
        shares = _posterior(fit, known)
        along = SHARES * spread - lost  # the covariance of what stays with what is measured
        stays = (1 - SHARES) * had + np.where(known[:, None], along / measured * surprise, 0.0)
        left = (1 - SHARES) ** 2 * spread + own - np.where(known[:, None], along**2 / measured, 0.0)
        return _mixed(shares, stays, left)

    def see(self, gains: Floats, deviation: Floats) -> Belief:
        """After gains themselves were measured."""
        old, new = 1 / self.variance, deviation**-2.0
        return Belief((old * self.mean + new * gains) / (old + new), 1 / (old + new))


def of_singles(singles: Floats, deviation: Floats) -> Belief:
    """What is believed of items by themselves. Where the deviation is infinite, nothing was measured."""
    known = np.isfinite(deviation)
    if not known.any():
        return Belief(np.zeros(len(singles)), np.ones(len(singles)))
    smallest = float(deviation[known].min()) / 10
    largest = 1.5 * max(float(np.abs(singles[known]).max()), 2 * smallest)
    scales = np.concatenate([[smallest / 10], np.geomspace(smallest, largest, SCALES)])
    noise = np.where(known, deviation, 1.0)[:, None] ** 2
    seen = np.where(known, singles, 0.0)[:, None]
    whole = noise + scales**2
    shares = _posterior(-0.5 * (np.log(whole) + seen**2 / whole), known)
    trust = np.where(known[:, None], scales**2 / whole, 0.0)
    return _mixed(shares, trust * seen, scales**2 * (1 - trust))


def _posterior(fit: Floats, known: NDArray[np.bool_]) -> Floats:
    """(items, parts): how likely each part is for each item, parts being as common as all items together say.

    Where nothing was measured an item has the shares of all. Half an item of each kind is added, so that none dies out.
    """
    likely: Floats = np.exp(fit - fit.max(axis=1, keepdims=True))
    likely[~known] = 1.0
    common = np.full(fit.shape[1], 0.5 / (fit.shape[1] - 1))
    common[0] = 0.5
    _fit_common(likely, known, common, np.empty_like(common))
    likely *= common
    likely /= likely.sum(axis=1, keepdims=True)
    return likely


@kernel
def _fit_common(likely: Floats, known: NDArray[np.bool_], common: Floats, counts: Floats) -> None:
    parts = len(common)
    for _ in range(STEPS):
        counts[:] = 0.5
        for item in range(len(likely)):
            if known[item]:
                whole = 0.0
                for part in range(parts):
                    whole += likely[item, part] * common[part]
                for part in range(parts):
                    counts[part] += likely[item, part] * common[part] / whole
        whole = 0.0
        for part in range(parts):
            whole += counts[part]
        for part in range(parts):
            common[part] = counts[part] / whole


def _mixed(shares: Floats, means: Floats, variances: Floats) -> Belief:
    """One normal belief with the mean and variance of a mixture."""
    mean = (shares * means).sum(axis=1)
    second = (shares * (variances + means**2)).sum(axis=1)
    return Belief(mean, np.maximum(second - mean**2, 1e-18))
