"""Findings: what one attack on one guarantee showed, and what counted guesses prove about epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from diminuendo.types import Floats

EPSILON_ROUNDING = 2.0**-30
"""How far rounding may have moved an epsilon: laws are multiplied and added up in double precision, where one step errs
by 2**-53 of its value. Thousands of steps stay far below this; no fault worth finding is as small."""


@dataclass(frozen=True)
class Finding:
    """One attack on one guarantee, and how far it got. It never says that a learner is private.

    Attributes
    ----------
    method : {"exact", "pathwise", "black box"}
        Which attack.
    subject : str
        Whose guarantee.
    about : str
        Which adjacent inputs, in words.
    claimed : float
        The epsilon of the guarantee.
    delta : float
        At which delta.
    shown : float
        Lower bound on the true epsilon at this delta; 0 if nothing was shown.
    confidence : float
        Of the lower bound; 1 if nothing is left to chance.
    runs : int
        How many runs it took.
    detail : dict
        Further numbers.
    uncharged : str
        What the charge to the ledger does not cover, if the finding is about that. Then the guarantee has lost its
        proof; epsilon itself may still be smaller (Theorem W4 of docs/maths/audit-paths.md).
    silent : bool
        Whether nothing was published that depends on users, so that nothing was tested.

    Notes
    -----
    An event with probability p in one world and q in the other shows epsilon >= log((p - delta) / q); counts are
    turned into bounds by Clopper and Pearson (Theorems U1 and U2 of docs/maths/audit.md).

    Examples
    --------
    >>> from diminuendo.audit import Finding
    >>> finding = Finding("black box", "mine", "item 0 / item 1", 1.0, 1e-6, shown=1.75, confidence=0.999, runs=500)
    >>> print(finding)
    claimed 1.00, attacker can show at least 1.75, VIOLATION (99.9 % confidence)

    """

    method: str
    subject: str
    about: str
    claimed: float
    delta: float
    shown: float
    confidence: float
    runs: int
    detail: dict[str, Any] = field(default_factory=dict)
    uncharged: str = ""
    silent: bool = False

    @property
    def violation(self) -> bool:
        """Whether more was shown than promised, beyond rounding."""
        return not self.shown <= self.claimed + EPSILON_ROUNDING * max(1.0, self.claimed)

    def __str__(self) -> str:
        if self.silent and not self.violation:
            return f"claimed {self.claimed:.2f}, but nothing was released: nothing was tried"
        verdict = "VIOLATION" if self.violation else "no violation"
        sure = "certain" if self.confidence == 1 else f"{100 * self.confidence:.8g} % confidence"
        if self.uncharged:
            return f"{self.uncharged}, charged {self.claimed:.2f}, {verdict} ({sure})"
        return f"claimed {self.claimed:.2f}, attacker can show at least {self.shown:.2f}, {verdict} ({sure})"

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain values. An infinite epsilon is the word "infinite"."""
        return {
            "method": self.method,
            "learner": self.subject,
            "neighbours": self.about,
            "epsilon_claimed": _plain(self.claimed),
            "delta": self.delta,
            "epsilon_shown": _plain(self.shown),
            "violation": self.violation,
            "confidence": self.confidence,
            "runs": self.runs,
            "uncharged": self.uncharged,
            "silent": self.silent,
            "detail": self.detail,
        }


def share(shown: float, claimed: float) -> float:
    """How much of what is claimed was shown."""
    if claimed == 0:
        return 0.0 if shown == 0 else math.inf
    return 0.0 if math.isinf(claimed) else shown / claimed


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "infinite"


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
        result = np.log(np.maximum(p - delta, 0.0) / q)
    return np.asarray(np.maximum(np.nan_to_num(result, nan=0.0, neginf=0.0), 0.0))
