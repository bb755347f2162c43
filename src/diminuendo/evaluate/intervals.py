r"""Intervals for what a policy would have earned: users are as they are, only the coins of the log are random.

    normal   for many rounds, by the martingale central limit theorem. Narrower; looked at once
             (docs/maths/off-policy.md, Theorem V2)
    always   for any number of rounds, any users and however often one looks: a nonnegative process that starts at 1
             and on average does not grow exceeds 1/alpha with probability alpha at most (Theorem V3)

For the second, think of a gambler who bets, at a fixed rate, that terms are larger than claimed: each term X turns
their capital by 1 + rate (X - guess), where the guess was made before. If the means of X were m on average they should
have no more than exp(rate n m - rate sum of guesses), so capital beyond that is evidence against m. Rates are mixed,
since the best one is unknown beforehand; they do not change with time, so it does not matter how means change.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, stats

from diminuendo.types import Floats

STEPS: Floats = np.arange(1.0, 41.0)
RATES: Floats = np.exp2(-STEPS)
"""What is bet of the most that can be lost. The best rate falls like the root of the number of rounds: 40 halvings
serve for more rounds than any log will have."""
SHARES: Floats = 1 / (STEPS * (STEPS + 1))
"""How much of the capital is bet at each rate; a little less than 1 in all."""


def normal(terms: Floats, confidence: float) -> tuple[float, float]:
    """Confidence interval of the mean by the central limit theorem."""
    spread = stats.norm.isf((1 - confidence) / 2) * terms.std(ddof=1) / math.sqrt(len(terms))
    return float(terms.mean() - spread), float(terms.mean() + spread)


def log_capital(terms: Floats, below: float = 0.0) -> tuple[Floats, Floats]:
    """The rates, and for each the log of its capital times exp(rate * sum of guesses): what `least_mean` asks for.

    Terms are never less than -below, and their means, given the past, are from 0 to 1.
    """
    before = np.cumsum(np.concatenate([[0.5], terms[:-1]])) / np.arange(1, len(terms) + 1)
    guesses = np.clip(before, 0.0, 1.0)
    rates = RATES / (1.0 + below)  # a term is never more than 1 + below less than its guess
    surprise, total = terms - guesses, guesses.sum()
    return rates, np.array([np.log1p(rate * surprise).sum() + rate * total for rate in rates])


def least_mean(rates: Floats, capital: Floats, rounds: int, alpha: float) -> float:
    """The least mean, from 0 to 1, that is not told against: the true one is less with probability alpha at most."""

    def against(mean: float) -> float:
        logs = capital - rates * rounds * mean
        top = float(logs.max())
        return top + math.log(float(SHARES @ np.exp(logs - top))) + math.log(alpha)

    if against(0.0) <= 0:
        return 0.0
    if against(1.0) > 0:
        return 1.0
    tolerance = 2.0**-40
    result = optimize.brentq(against, 0.0, 1.0, xtol=tolerance)
    return max(0.0, float(result) - 2 * tolerance)


def always(gained: Floats, missed: Floats, confidence: float, below: float = 0.0) -> tuple[float, float]:
    """From terms for what the policy gains, and those for what it misses: the same, of 1 - reward."""
    alpha = (1 - confidence) / 2
    low = least_mean(*log_capital(gained, below), len(gained), alpha)
    high = 1.0 - least_mean(*log_capital(missed, below), len(missed), alpha)
    return low, high
