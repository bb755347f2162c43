"""What another policy would have earned with the users of a log, and how sure that is.

    print(evaluate(log, (3, 1)))                                                # always valid, and wide
    print(evaluate(log, (3, 1), method="doubly-robust", interval="normal"))     # for many rounds

The estimand is the mean reward of the policy in the logged rounds, with these very users. All that is random is the
coins of the log, and their probabilities are known.

Privacy    none: an estimate reads feedback. evaluate/private.py has one that may be published.
Assumes    propensities are right; every round that was chosen is in the log, or left out by what was public before it;
           the policy does not depend on this feedback; who responds late does not react to what was published or shown
           meanwhile. Except for inverse-propensity with `always`: whatever the policy shows could have been shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.evaluate import intervals
from diminuendo.evaluate.estimators import METHODS, weights_of
from diminuendo.evaluate.log import Log
from diminuendo.evaluate.policies import as_policy
from diminuendo.types import Floats

FEWEST = 30
"""A normal interval needs an effective sample of this many rounds, and this many rounds behind its width."""
SURE = 5.0
"""Something that the policy would show could not be shown, if weights are on average this many deviations below 1.
Where weights happen to be small their deviation looks small too, so it takes more of them than a normal law would."""

Interval = Literal["always", "normal", "released"]
"""The last is that of a private estimate: it holds at any number of rounds, each release by itself."""


@dataclass(frozen=True)
class Estimate:
    """What a policy would have earned per round, on average. As private as users' feedback, unless `private` is True.

    Attributes
    ----------
    value : float
        The point estimate. An unbiased one may leave [0, 1].
    low, high : float
        Confidence interval, within [0, 1].
    confidence : float
        As given.
    method, interval : str
        As given; the interval of a private estimate is "released".
    rounds : int
        Number of rounds in the log.
    effective : float
        Effective sample size: (sum of weights)**2 / sum of squared weights.
    support : float
        Mean weight: near 1 if all that the policy shows could have been shown, or near the share that could.
    largest_weight : float
        Largest weight.
    logged : float
        Mean reward of the log itself; NaN in a private estimate.
    private : bool, default False
        Whether it may be published.

    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    interval: Interval
    rounds: int
    effective: float
    support: float
    largest_weight: float
    logged: float
    private: bool = False

    def __str__(self) -> str:
        note = "may be published" if self.private else "not private"
        if self.interval == "released" and not self.private:
            note = "for simulation only: its noise can be foreseen"
        return (
            f"{self.value:.3f}, with confidence {self.confidence:g} from {self.low:.3f} to {self.high:.3f} "
            f"({self.method}, {self.interval}; {note})\n"
            f"{self.rounds:,} rounds, worth {self.effective:,.0f} of the policy's own; mean weight "
            f"{self.support:.2f}, largest {self.largest_weight:.3g}"
            + ("" if math.isnan(self.logged) else f"; the log itself earned {self.logged:.3f}")
        )


def evaluate(
    log: Log,
    policy: Any,
    *,
    method: str = "inverse-propensity",
    interval: Interval = "always",
    confidence: float = 0.95,
    most_weight: float | None = None,
) -> Estimate:
    """Estimate what another policy would have earned in the logged rounds, with a confidence interval. Not private.

    Parameters
    ----------
    log : Log
        Rounds with slates, propensities and rewards.
    policy : Policy or slate or mapping or callable
        A slate; a dict of slates and probabilities; AnyOrder; or a function of the round that returns one of these.
        It must not depend on the feedback that it is judged by.
    method : str, default "inverse-propensity"
        A name in `evaluate.METHODS`.
    interval : {"always", "normal"}, default "always"
        "always" holds at every sample size, also if it is looked at repeatedly; "normal" is about half as wide and
        needs an effective sample size of 30.
    confidence : float, default 0.95
        Between 0 and 1.
    most_weight : float, optional
        Required for doubly robust estimates with "always": how large a weight could have become. A public fact, not
        read off the log; for instance n! / (n - k)! after random slates for one slate.

    Returns
    -------
    Estimate

    Raises
    ------
    InvalidInput
        If the log says too little about the policy for this interval, or propensities cannot be right.

    Notes
    -----
    Unbiased if the policy has support (Theorem V1 of docs/maths/off-policy.md). Only the coins of the log are
    random: users may differ, drift, and react to what was published before their round. Intervals are Theorems V2
    and V3.

    References
    ----------
    Horvitz & Thompson (1952), JASA 47. Dudik, Langford & Li (2011), Doubly robust policy evaluation and learning,
    ICML. Swaminathan & Joachims (2015), The self-normalized estimator for counterfactual learning, NIPS 28.

    Examples
    --------
    >>> from diminuendo.evaluate import Log, evaluate
    >>> log = Log.from_arrays([[0], [1]] * 200, [0.5] * 400, [1.0, 0.0] * 200)
    >>> found = evaluate(log, (0,))  # item 0 always earns 1
    >>> found.value, found.low < 1 <= found.high, found.logged
    (1.0, True, 0.5)
    """
    chosen = _validate.lookup(METHODS, method, "method")
    _validate.one_of(interval, ("always", "normal"), "interval")
    checked_confidence(confidence)
    if len(log) < 2:
        raise InvalidInput(f"An estimate takes two rounds or more; the log has {len(log)}.")
    if interval == "always" and not chosen.in_order:
        raise InvalidInput(
            f"{method!r} has no interval that always holds: its rounds are divided by what comes later. Ask for "
            "interval='normal', or for another method."
        )
    target = as_policy(policy)
    weights = weights_of(log, target)
    if interval == "normal" or chosen.needs_support:
        _refuse_without_support(weights)
    terms = chosen.terms(log, target, weights)
    if interval == "normal":
        if not terms.std():
            raise InvalidInput(
                "All rounds say the same, so a normal interval would have no width; ask for 'always'."
            )
        _refuse_few_that_matter(terms)
        low, high = intervals.normal(terms, confidence)
    elif chosen.needs_support:
        low, high = intervals.always(terms, 1 - terms, confidence, _largest(weights, most_weight))
    else:
        low, high = intervals.always(terms, weights * (1 - log.rewards), confidence)
    refuse_upside_down(low, high, confidence)
    return Estimate(
        float(terms.mean()),
        min(1.0, max(0.0, low)),
        max(0.0, min(1.0, high)),
        confidence,
        method,
        interval,
        *about(weights),
        logged=float(log.rewards.mean()),
    )


def checked_confidence(confidence: float) -> None:
    """Strictly between 0 and 1."""
    if not 0 < _validate.positive_float(confidence, "confidence") < 1:
        raise InvalidInput(f"confidence must be above 0 and below 1; got {confidence!r}.")


def refuse_upside_down(low: float, high: float, confidence: float) -> None:
    """More than 1 would be possible for reward and its opposite together."""
    if low > high:
        raise InvalidInput(
            "The propensities can hardly be right: no mean reward is as large, and as small, as they would have it. "
            f"With right ones this comes with probability {1 - confidence:.2g} at most. Check "
            "how the log was made: every round that was chosen, with the propensity of its decision."
        )


def about(weights: Floats) -> tuple[int, float, float, float]:
    """Rounds, effective rounds, mean weight, largest weight."""
    squares = float(weights @ weights)
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    return len(weights), effective, float(weights.mean()), float(weights.max())


def _refuse_without_support(weights: Floats) -> None:
    rounds, effective, mean, _ = about(weights)
    if effective < FEWEST:
        raise InvalidInput(
            f"The log says as much about this policy as {effective:.1f} rounds of its own would, and this interval "
            f"needs {FEWEST}. Log more rounds, take a policy closer to what was shown (AnyOrder, if orders do not "
            "matter), or ask for method='inverse-propensity' with interval='always', which holds for any number."
        )
    if mean + SURE * float(weights.std(ddof=1)) / math.sqrt(rounds) < 1:
        raise InvalidInput(
            f"Only about {mean:.2f} of what this policy would show could have been shown. Ask for "
            "method='inverse-propensity' with interval='always', which counts the rest as anything from 0 to 1, or "
            "take the stretch of rounds in which it could, as log[:500]."
        )


def _refuse_few_that_matter(terms: Floats) -> None:
    """Many rounds may say nearly the same, and a few all the rest: those few are not normal."""
    apart = terms - terms.mean()
    squares = (apart / np.abs(apart).max()) ** 2
    matter = float(squares.sum()) ** 2 / float(squares @ squares)
    if matter < FEWEST:
        raise InvalidInput(
            f"What rounds differ by is due to a few of them, to fewer than the {FEWEST} that a normal interval needs. "
            "Log more rounds, or ask for method='inverse-propensity' with interval='always', which holds "
            "for any number."
        )


def _largest(weights: Floats, most: float | None) -> float:
    if most is None:
        raise InvalidInput(
            "A doubly robust interval that always holds must know how large weights could have become: give "
            "most_weight, from public facts, not from the log; or ask for interval='normal'."
        )
    if np.any(weights > _validate.positive_float(most, "most_weight") * (1 + 2.0**-40)):
        raise InvalidInput(f"most_weight is {most:g}, and the log has a weight of {weights.max():g}.")
    return float(most)
