"""Statistical checks with one named false-alarm rate.

Each test that uses `assert_follows` must also use `assert_rejects` on a nearby wrong law: a check that
cannot fail proves nothing. With seeds fixed, a test that passes once passes always; ALPHA is the chance that a
correct program was refused when its seed was first chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

ALPHA = 1e-6
"""The chance that a correct sampler fails one check."""


def p_value(draws: Sequence[int] | NDArray[np.integer], law: NDArray[np.float64]) -> float:
    """Pearson's chi-square test that draws follow the law; cells expected fewer than 5 times are pooled.

    Where the pool is expected fewer than 5 times, the rarest other cell joins it: two draws where a tenth of one is
    expected would be called impossible. What has no chance at all is kept apart, and refused if it is drawn.
    """
    counts = np.bincount(np.asarray(draws), minlength=len(law)).astype(float)
    expected = law * counts.sum()
    rare = (expected > 0) & (expected < 5)
    if rare.any() and expected[rare].sum() < 5 and (expected >= 5).any():
        rare[np.argmin(np.where(expected >= 5, expected, np.inf))] = True
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    if counts[~keep].sum() > 0:
        return 0.0
    counts, expected = counts[keep], expected[keep]
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, max(1, len(counts) - 1)))


def assert_follows(draws: Sequence[int] | NDArray[np.integer], law: NDArray[np.float64]) -> None:
    """The draws are what the law would give, at the one false-alarm rate."""
    p = p_value(draws, law)
    assert p > ALPHA, f"draws do not follow their law: p = {p:.2e}"


def assert_rejects(draws: Sequence[int] | NDArray[np.integer], wrong: NDArray[np.float64]) -> None:
    """The check has power: it tells these draws from a nearby wrong law."""
    p = p_value(draws, wrong)
    assert p < ALPHA, f"the check cannot tell the draws from a wrong law: p = {p:.2e}"
