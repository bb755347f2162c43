r"""One column: means of what was published of its values, and whether they tell anything.

Evidence decides how much of the budget the next release spends on telling values apart, and whether slates differ by
them at all (the *gate*):

    tau^2    how much rates of values differ from the whole, in proportion to it, beyond noise and chance; and its error
    gain     what the best items of each value are believed to earn more than the best items of all users
    weight   the larger of (sqrt(tau^2 - 2 errors) - .3) / .3 and (gain - .01) / .04, from 0 to 1; 0: the gate is closed
    useless  sqrt(tau^2 + 2 errors) < .3: looked at long enough, and nothing there
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo.learners.overlap.contexts.shrink import Cells, begin_common, cell_posterior, fit
from diminuendo.learners.overlap.posterior import Posterior
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.types import Floats

BEST = 20
"""How many of the best items are looked at for evidence."""
SPREAD, SURE = 0.3, 2.0
"""Values differ if tau is more than SPREAD, by SURE errors."""
WORTH, FULLY = 0.01, 0.04
"""A gain of WORTH opens the gate, and one of WORTH + FULLY opens it as far as it goes."""


class Evidence(NamedTuple):
    """Whether a column tells anything, by what was published."""

    weight: float
    useless: bool


class ColumnView(NamedTuple):
    """What is believed of a column after a release."""

    deviations: Floats
    """(values, items): by what a value differs from what is believed without it; 0 while the gate is closed."""
    variances: Floats
    """(values, items): of what is believed of a value, with the whole."""
    evidence: Evidence
    common: Floats


class ColumnMeans:
    """Rates of the values of one column, averaged over releases."""

    def __init__(self, size: int, n_items: int, *, symmetric: bool = False) -> None:
        self._symmetric = symmetric
        self._sums: Floats = np.zeros((size, n_items))  # each times its precision
        self._precisions: Floats = np.zeros(n_items)  # for a value that all users have
        self._shares: Floats = np.zeros(
            size + 1
        )  # of users, each times its precision; and, last, all precisions
        self.common: Floats = begin_common()
        self._evidence: Floats = np.zeros(2)
        self.arrays = (self._sums, self._precisions, self._shares, self.common, self._evidence)

    def __repr__(self) -> str:
        return f"<ColumnMeans: {len(self._sums)} values, {self.evidence}>"

    @property
    def evidence(self) -> Evidence:
        """As the last release left it."""
        return Evidence(float(self._evidence[0]), bool(self._evidence[1]))

    def with_cells(self, measured: Measured, shares: Floats) -> ColumnMeans:
        """These means with one more release, in which each value had this share of users. Changes nothing."""
        updated = ColumnMeans(*self._sums.shape, symmetric=self._symmetric)
        factor = measured.units / measured.sigma**2
        precision = measured.units * factor
        updated._sums[:] = self._sums + factor * measured.sums
        updated._precisions[:] = self._precisions + precision
        weight = float(precision.mean())
        updated._shares[:] = self._shares + weight * np.append(shares, 1.0)
        updated.common[:], updated._evidence[:] = self.common, self._evidence
        return updated

    def take(self, other: ColumnMeans, view: ColumnView | None) -> None:
        """Go on with other means, and with what is believed by them."""
        for mine, theirs in zip(self.arrays, other.arrays, strict=True):
            mine[:] = theirs
        if view is not None:
            self.common[:] = view.common
            self._evidence[:] = view.evidence.weight, view.evidence.useless

    def shares(self) -> Floats:
        """Which share of users each value had, over all releases."""
        return self._shares[:-1] / max(float(self._shares[-1]), 1e-300)

    def look(
        self,
        centres: Floats,
        whole: Posterior,
        users: float,
        slots: int,
        shares: Floats,
        *,
        surely: float,
        opens: bool,
    ) -> ColumnView:
        """What is believed of the values beside `centres`, what is believed without them.

        `users`: how many are remembered; `shares` of them have each value, if it is at least `surely`: below that it
        is not known whether there is any user. `opens`: whether slates may differ by now.
        """
        m = np.maximum(whole.mean, 0.0)
        top = max(float(m.max()), 1e-9)
        rates, variances = np.empty_like(self._sums), np.empty_like(self._sums)
        known = np.where(shares > max(surely, 1e-12), shares, 0.0)
        chance = np.maximum(users * shares, 1.0)
        _measure(
            self._sums,
            self._precisions,
            known,
            0.5 * m,
            chance,
            (2 * top) ** 2,
            self._symmetric,
            rates,
            variances,
        )
        cells = Cells(
            rates,
            variances,
            np.ascontiguousarray(np.broadcast_to(centres, rates.shape)),
            whole.variance,
            np.maximum(m, 1e-4) * top,
        )
        common = fit(cells, self.common)
        low, high = _spread(cells, m) if opens else (0.0, np.inf)
        weight = 0.0
        if low > 0:
            mean, variance = cell_posterior(cells, common)
            deviations = mean - cells.centres
            gain = _gain(cells.centres + deviations, m, shares, slots)
            weight = max(_between((low - SPREAD) / SPREAD), _between((gain - WORTH) / FULLY))
        evidence = Evidence(weight, bool(high < SPREAD))
        if weight == 0.0:
            deviations, variance = np.zeros_like(rates), np.broadcast_to(whole.variance, rates.shape)
        return ColumnView(deviations, variance, evidence, common)

    def forget(self) -> None:
        """After drift: what was published before does not count any more."""
        for part in (self._sums, self._precisions, self._shares, self._evidence):
            part[:] = 0.0
        self.common[:] = begin_common()


@kernel
def _measure(
    sums: Floats,
    precisions: Floats,
    shares: Floats,
    chances: Floats,
    users: Floats,
    most: float,
    symmetric: bool,
    rates: Floats,
    variances: Floats,
) -> None:
    """The rate of each cell, and its variance: of noise, and, for each item, of `chances` among the users of a
    value; infinite where noise is not below `most`, or no share of users is known."""
    for g in range(rates.shape[0]):
        for a in range(rates.shape[1]):
            total, precision = sums[g, a], precisions[a]
            if symmetric:  # both have the same mean: users of value c who want a, and of value a who want c
                total, precision = total + sums[a, g], precision + precisions[g]
            units = shares[g] * precision
            noise = precision / (units * units) if units > 0 else np.inf
            rates[g, a] = total / units if units > 0 else 0.0
            variances[g, a] = noise + chances[a] / users[g] if noise < most else np.inf


def _spread(cells: Cells, m: Floats) -> tuple[float, float]:
    """How far rates of values are from the whole, in proportion to it: at least and at most, by SURE errors."""
    best = np.argsort(-m, kind="stable")[:BEST]
    best = best[m[best] > 0]
    off, noise = cells.rates[:, best] - cells.centres[:, best], cells.variances[:, best]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(np.isfinite(noise), (noise / m[best] ** 2 + 0.25) ** -2.0, 0.0)
        apart = np.where(weights > 0, (off**2 - noise) / m[best] ** 2, 0.0)
    total = float(weights.sum())
    if total == 0:
        return 0.0, np.inf
    tau, error = float((weights * apart).sum()) / total, (2 / total) ** 0.5
    return float(np.sqrt(max(0.0, tau - SURE * error))), float(np.sqrt(max(0.0, tau + SURE * error)))


def _gain(mine: Floats, m: Floats, shares: Floats, slots: int) -> float:
    """What the best items of each value are believed to earn more than the best items of all users."""
    k = min(slots, mine.shape[1])
    top = np.argsort(-m, kind="stable")[:k]
    own = np.partition(mine, mine.shape[1] - k, axis=1)[:, -k:].sum(axis=1)
    return float(shares @ (own - mine[:, top].sum(axis=1))) / max(float(m[top].sum()), 1e-9)


def _between(weight: float) -> float:
    """From 0 to 1."""
    return float(np.clip(weight, 0, 1))
