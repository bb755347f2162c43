r"""What is believed of the cells of a column: the whole, and as much of a deviation from it as the numbers bear out.

Each cell (value g, item a) has a measured rate z with variance V: noise, and chance in who came. Without contexts it
would be the rate of all users, `centre`, which is itself known with variance v only. What it really is is one of

    c centre + deviation of variance r^2 m_a max(m) + q^2

where c is 1 (it deviates from the whole) or 0 (it has nothing to do with it: some want nothing of what all others
want), and m_a is what item a is worth to all users. How common each case is is fitted to all cells of the column
together, by expectation maximisation that begins with "no deviation": deviations must earn their place, or the best of
many noisy numbers would always look like one. All of it is computed from what was published.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from diminuendo._numba import inline, kernel
from diminuendo.types import Floats

RELATIVE = np.concatenate([[0.0], np.geomspace(0.03, 4.0, 8), np.zeros(6)])
ABSOLUTE = np.concatenate([np.zeros(9), [0.0005, 0.003, 0.01, 0.03, 0.1, 0.3]])
CENTRED = np.concatenate([np.ones(9), np.zeros(6)])
"""The cases: r, q and c of each. The first is no deviation."""
N_CASES = len(CENTRED)
STEPS, SOME = 30, 4096
"""Steps of the fit, and to about how many cells, evenly spread."""
RARE = 1e-4
"""Cases that are less common than this are left out of what is believed."""
CAUTION, KEPT = 5.0, 0.01
"""As if CAUTION cells had been seen that do not deviate; and KEPT of each case, so that none dies out."""


class Cells(NamedTuple):
    """What was measured of a column, and the whole that it is compared with."""

    rates: Floats
    """(values, items)."""
    variances: Floats
    """(values, items): of noise and of chance; infinite where too little is known."""
    centres: Floats
    """(values, items): what is believed without this column."""
    centre_variance: Floats
    """Of each item."""
    scales: Floats
    """Of each item: m_a max(m)."""


def begin_common() -> Floats:
    """How common each case is before anything was seen."""
    result = np.full(N_CASES, 0.02 / (N_CASES - 1))
    result[0] = 0.98
    return result


def fit(cells: Cells, common: Floats) -> Floats:
    """How common each case is, beginning with what it was."""
    known = np.flatnonzero(np.isfinite(cells.variances).any(axis=1))
    if len(known) == 0:
        return common
    n_items = cells.rates.shape[1]
    stride = max(1, len(known) * n_items // SOME)
    flat = np.arange(0, len(known) * n_items, stride)
    rows, columns = known[flat // n_items], flat % n_items
    live = np.isfinite(cells.variances[rows, columns])
    rows, columns = rows[live], columns[live]
    likely = np.empty((len(rows), N_CASES))
    _likelihood(
        cells.rates[rows, columns],
        cells.variances[rows, columns],
        cells.centres[rows, columns],
        cells.centre_variance[columns],
        cells.scales[columns],
        CENTRED,
        RELATIVE,
        ABSOLUTE,
        likely,
    )
    result = common.copy()
    _fit(likely, float(stride), CAUTION, KEPT, STEPS, np.empty(N_CASES), result)
    return result


def cell_posterior(cells: Cells, common: Floats) -> tuple[Floats, Floats]:
    """(values, items): means and variances of what cells really are."""
    mean, variance = np.empty_like(cells.rates), np.empty_like(cells.rates)
    likely = np.flatnonzero(common > RARE)
    cases = CENTRED[likely], RELATIVE[likely], ABSOLUTE[likely], np.log(common[likely])
    _mix(*cells, *cases, np.empty(len(likely)), mean, variance)
    return mean, variance


@inline
def _variance_of(
    centred: float, relative: float, absolute: float, centre_variance: float, scale: float
) -> float:
    """By how much cells of one case vary."""
    return centred * centre_variance + relative**2 * scale + absolute**2


@kernel
def _likelihood(
    rates: Floats,
    variances: Floats,
    centres: Floats,
    centre_variance: Floats,
    scales: Floats,
    centred: Floats,
    relative: Floats,
    absolute: Floats,
    likely: Floats,
) -> None:
    """How likely each cell's rate is in each case, but for a factor of its own."""
    for i in range(len(rates)):
        nearest = -np.inf
        for case in range(len(centred)):
            own = _variance_of(centred[case], relative[case], absolute[case], centre_variance[i], scales[i])
            spread = own + variances[i]
            off = rates[i] - centred[case] * centres[i]
            likely[i, case] = -0.5 * off * off / spread - 0.5 * math.log(spread)
            nearest = max(nearest, likely[i, case])
        for case in range(len(centred)):
            likely[i, case] = math.exp(likely[i, case] - nearest)


@kernel
def _fit(
    likely: Floats, each: float, caution: float, kept: float, steps: int, total: Floats, common: Floats
) -> None:
    """How common each case is, by expectation maximisation; every row stands for `each` cells."""
    for _ in range(steps):
        total[:] = kept
        total[0] += caution
        for i in range(len(likely)):
            whole = 0.0
            for case in range(len(common)):
                whole += common[case] * likely[i, case]
            for case in range(len(common)):
                total[case] += each * common[case] * likely[i, case] / whole
        whole = 0.0
        for case in range(len(common)):
            whole += total[case]
        for case in range(len(common)):
            common[case] = total[case] / whole


@kernel
def _mix(
    rates: Floats,
    variances: Floats,
    centres: Floats,
    centre_variance: Floats,
    scales: Floats,
    centred: Floats,
    relative: Floats,
    absolute: Floats,
    log_common: Floats,
    powers: Floats,
    mean: Floats,
    variance: Floats,
) -> None:
    """The mean and the variance of each cell, over all cases; of what was not measured, those of the whole."""
    for g in range(rates.shape[0]):
        for a in range(rates.shape[1]):
            if not variances[g, a] < np.inf:
                mean[g, a], variance[g, a] = centres[g, a], centre_variance[a]
                continue
            nearest = -np.inf
            for case in range(len(powers)):
                own = _variance_of(
                    centred[case], relative[case], absolute[case], centre_variance[a], scales[a]
                )
                spread = own + variances[g, a]
                off = rates[g, a] - centred[case] * centres[g, a]
                powers[case] = log_common[case] - 0.5 * off * off / spread - 0.5 * math.log(spread)
                nearest = max(nearest, powers[case])
            whole, first, second = 0.0, 0.0, 0.0
            for case in range(len(powers)):
                own = _variance_of(
                    centred[case], relative[case], absolute[case], centre_variance[a], scales[a]
                )
                pull = own / (own + variances[g, a])
                here = centred[case] * centres[g, a]
                here += pull * (rates[g, a] - here)
                weight = math.exp(powers[case] - nearest)
                whole += weight
                first += weight * here
                second += weight * (here * here + own * (1 - pull))
            mean[g, a] = first / whole
            variance[g, a] = max(second / whole - mean[g, a] * mean[g, a], 1e-18)
