r"""A private estimate: what another policy would have earned, in one noisy number that may be published.

    print(evaluate_privately(log, AnyOrder((3, 1)), epsilon=0.1, ledger=ledger, secret=secret))

Weights are public: slates, their chances and the policy are. Rewards are not. The sum of weight * reward moves by at
most the largest weight when one user's reward changes, so that is how much noise it takes. `most_weight` cuts larger
weights off: less noise, and a little less of the policy's reward is seen. The interval knows about both, and about
what could not be shown. It is made as that of `always`, with public bounds where the other looks at rewards; but noise
is drawn for each release, so it holds with its confidence for each release by itself.

Guarantee  (epsilon, 0) beyond what the log's learner has cost, for each round of a user in the log
           (docs/maths/off-policy.md, Theorem V6).
Assumes    which rounds are in the log, and when it is evaluated, are public facts: rounds enter when they are chosen,
           not when they are answered. The policy is fixed beforehand, or a function of what was published before each
           round; so is `most_weight`. Of no user more rounds than the ledger's unit has.
           Ten evaluations are charged ten times: the ledger adds them up.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.evaluate import intervals
from diminuendo.evaluate.estimate import Estimate, about, checked_confidence, refuse_upside_down
from diminuendo.evaluate.estimators import weights_of
from diminuendo.evaluate.log import Log
from diminuendo.evaluate.policies import as_policy
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise as noises
from diminuendo.randomness.words import SecretRandomness, require_secret
from diminuendo.sums.private_counts import PrivateCounts
from diminuendo.types import Floats

WEIGHT_TICKS = 1 << 20
"""Whole numbers to the largest weight."""


def evaluate_privately(
    log: Log,
    policy: Any,
    *,
    epsilon: float,
    ledger: Ledger,
    secret: SecretRandomness,
    most_weight: float | None = None,
    confidence: float = 0.95,
    name: str = "evaluation",
) -> Estimate:
    """Estimate what another policy would have earned, as one noisy number that may be published.

    Parameters
    ----------
    log : Log
        Which rounds are in it must be a public fact.
    policy : Policy or slate or mapping or callable
        As in `evaluate`; fixed beforehand, or a function of what was published.
    epsilon : float
        Cost of this estimate. Each further policy costs as much again.
    ledger : Ledger
        Charged before the noise is drawn.
    secret : SecretRandomness
        Source of the noise.
    most_weight : float, optional
        Larger weights are cut off: less noise, and a little less of the policy's reward is seen. Public.
    confidence : float, default 0.95
        Between 0 and 1.
    name : str, default "evaluation"
        Name of the release in the ledger. Under this name, and for these weights, it is written once.

    Returns
    -------
    Estimate
        With `interval` "released".

    Raises
    ------
    OverBudget
        If the ledger cannot pay.
    InvalidInput
        If the log is empty, or never shows anything that the policy would.

    Notes
    -----
    (epsilon, 0)-DP for each round of a user in the log, beyond what the log's learner has cost: weights are public,
    and one round's reward moves the sum of weight * reward by at most the largest weight (Theorem V6 of
    docs/maths/off-policy.md).

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.evaluate import Log, evaluate_privately
    >>> from diminuendo.privacy import Budget, Ledger
    >>> from diminuendo.randomness import SecretRandomness
    >>> log = Log.from_arrays([[0], [1]] * 2_000, [0.5] * 4_000, [1.0, 0.0] * 2_000)
    >>> ledger, secret = Ledger(Budget(1.0, 0.0, accountant="pure")), SecretRandomness(SeededSource(1))
    >>> found = evaluate_privately(log, (0,), epsilon=0.5, ledger=ledger, secret=secret)
    >>> abs(found.value - 1) < 0.05, ledger.spent()
    (True, 0.5)
    """
    checked_confidence(confidence)
    require_secret(secret)
    noises.checked_scale(calibrate.laplace_scale(epsilon, WEIGHT_TICKS), "The scale of the noise")
    if len(log) < 1:
        raise InvalidInput("The log has no rounds.")
    weights = weights_of(log, as_policy(policy))
    if not weights.any():
        raise InvalidInput(
            "Nothing that the policy would show was ever shown. Nothing was charged: there is nothing to look at."
        )
    if most_weight is not None:
        weights = np.minimum(weights, _validate.positive_float(most_weight, "most_weight"))
    unit = float(weights.max())
    which = hashlib.sha256(weights.tobytes()).hexdigest()[:16]  # another policy needs another name
    description = f"{len(log)} rounds, weights {which} up to {unit:g}, "
    counts = PrivateCounts(
        cost=Laplace(epsilon), ticks=WEIGHT_TICKS, ledger=ledger, name=name, about=description
    )
    counts.open([1])
    shares = np.floor(weights / unit * log.rewards * WEIGHT_TICKS).astype(np.int64)
    counts.add(np.zeros(len(log), dtype=np.int64), shares)
    total = unit * float(counts.release(secret)[0])
    low, high = interval(weights, total, unit * counts.scale(1) / WEIGHT_TICKS, confidence)
    refuse_upside_down(low, high, confidence)
    return Estimate(
        total / len(log),
        low,
        high,
        confidence,
        "inverse-propensity",
        "released",
        *about(weights),
        logged=math.nan,
        private=secret.secure,
    )


def interval(weights: Floats, total: float, scale: float, confidence: float) -> tuple[float, float]:
    """From the published sum and the scale of its noise. Half of what may go wrong is noise, half is chance."""
    alpha, rounds = (1 - confidence) / 4, len(weights)
    noise = scale * math.log(1 / alpha)
    rounding = float(weights.max()) / WEIGHT_TICKS * rounds  # rewards were rounded down
    gained, missed = total - noise, float(weights.sum()) - total - noise - rounding
    low, top = (
        intervals.least_mean(intervals.RATES, _capital(weights, max(0.0, seen)), rounds, alpha)
        for seen in (gained, missed)
    )
    return low, 1.0 - top


def _capital(weights: Floats, total: float) -> Floats:
    """The least that log_capital of weighted rewards can be, with guesses of 0, when they add up to `total`."""
    rates, largest = intervals.RATES, float(weights.max())
    by_largest = total * np.log1p(rates * largest) / largest
    by_squares = rates * total - rates**2 / 2 * float(weights @ weights)
    return np.maximum(by_largest, by_squares)
