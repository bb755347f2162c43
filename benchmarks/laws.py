"""Whether somebody drew by a known law: a chi-square test over groups of items.

The law may change from draw to draw, as long as it does not depend on what was drawn. Then how often each group
of items came up has a known mean and covariance, and its distance from the mean, measured by the covariance, is
close to chi-square. Items are put into groups of like expected counts, and directions that hardly vary are left
out, since counts are close to normal only where they are large.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.report import Disagreement
from diminuendo.types import Floats, Ints

GROUPS = 20

LEAST_VARIANCE = 10.0
"""Combinations of counts that vary less than this are left out."""

FALSE_ALARM = 1e-9
"""A fair competitor is called unfair this rarely, so that a run that stops has found something."""


class Law:
    """How often each group of items comes up in one draw from each of laws[0], laws[1], ..."""

    def __init__(self, laws: Floats, groups: int = GROUPS) -> None:
        self.laws = laws
        self.group = _grouped(laws.sum(axis=0), groups)
        inside = np.stack([laws[:, self.group == group].sum(axis=1) for group in range(self.group.max() + 1)])
        self.mean: Floats = inside.sum(axis=1)
        self.covariance: Floats = np.diag(self.mean) - inside @ inside.T

    @property
    def spread(self) -> float:
        """Over how many items draws are spread: the average of exp(entropy)."""
        logs = np.log(self.laws, where=self.laws > 0, out=np.zeros_like(self.laws))
        return float(np.exp(-(self.laws * logs).sum(axis=1)).mean())

    def p_value(self, drawn: Ints, times: int) -> float:
        """Of the items that came up when all the laws were drawn from so many times."""
        counts = np.bincount(self.group[drawn.ravel()], minlength=len(self.mean))
        variances, directions = np.linalg.eigh(times * self.covariance)
        free = variances > LEAST_VARIANCE
        if not free.any():
            raise ValueError(f"{drawn.size} draws are too few to tell one law from another.")
        apart = directions[:, free].T @ (counts - times * self.mean)
        return float(stats.chi2.sf((apart**2 / variances[free]).sum(), int(free.sum())))

    def check(self, who: str, drawn: Ints, times: int) -> float:
        """The p-value; a Disagreement where it is too small for chance."""
        found = self.p_value(drawn, times)
        if found < FALSE_ALARM:
            raise Disagreement(f"{who} does not draw by the law that it should follow: p = {found:.1e}.")
        return found


def _grouped(expected: Floats, groups: int) -> Ints:
    """The group of each item: likely ones first, about as much in each group."""
    order = np.argsort(-expected, kind="stable")
    before = np.cumsum(expected[order]) - expected[order]
    wanted = np.minimum(before * groups / expected.sum(), groups - 1).astype(np.int64)
    group = np.empty(len(expected), dtype=np.int64)
    group[order] = np.unique(wanted, return_inverse=True)[
        1
    ]  # a likely item may span several: leave none empty
    return group
