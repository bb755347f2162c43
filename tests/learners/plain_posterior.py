"""Beliefs as one would write them in numpy: what the compiled ones of posterior.py are compared with."""

from __future__ import annotations

import numpy as np

from diminuendo.learners.overlap.posterior import SCALES, SHARES, SPREADS, STEPS


def from_singletons(singletons: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normal scales around 0."""
    known = np.isfinite(deviation)
    smallest = deviation[known].min() / 10
    largest = 1.5 * max(np.abs(singletons[known]).max(), 2 * smallest)
    scales = np.concatenate([[smallest / 10], np.geomspace(smallest, largest, SCALES)])
    noise = np.where(known, deviation, 1.0)[:, None] ** 2
    seen = np.where(known, singletons, 0.0)[:, None]
    whole = noise + scales**2
    shares = _shares(-0.5 * (np.log(whole) + seen**2 / whole), known)
    trust = np.where(known[:, None], scales**2 / whole, 0.0)
    return _mixed(shares, trust * seen, scales**2 * (1 - trust))


def condition_on_losses(
    mean: np.ndarray, variance: np.ndarray, row: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What is left, where `row` measures what was lost."""
    known = np.isfinite(deviation)
    noise = np.where(known, deviation, 1.0)[:, None] ** 2
    had, spread = mean[:, None], variance[:, None]
    own = SPREADS**2 * (had * had + spread)
    lost = SHARES**2 * spread + own
    measured = lost + noise
    surprise = np.where(known, row, 0.0)[:, None] - SHARES * had
    shares = _shares(-0.5 * (np.log(measured) + surprise**2 / measured), known)
    along = SHARES * spread - lost
    stays = (1 - SHARES) * had + np.where(known[:, None], along / measured * surprise, 0.0)
    left = (1 - SHARES) ** 2 * spread + own - np.where(known[:, None], along**2 / measured, 0.0)
    return _mixed(shares, stays, left)


def _shares(fit: np.ndarray, known: np.ndarray) -> np.ndarray:
    likely = np.exp(fit - fit.max(axis=1, keepdims=True))
    likely[~known] = 1.0
    common = np.full(fit.shape[1], 0.5 / (fit.shape[1] - 1))
    common[0] = 0.5
    for _ in range(STEPS):
        weighed = likely[known] * common
        counts = 0.5 + (weighed / weighed.sum(axis=1, keepdims=True)).sum(axis=0)
        common = counts / counts.sum()
    likely *= common
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))


def _mixed(shares: np.ndarray, means: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = (shares * means).sum(axis=1)
    return mean, (shares * (variances + means**2)).sum(axis=1) - mean**2
