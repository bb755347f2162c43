r"""Rates and exploring: by the formulas of the paper, or by what privacy really costs.

`paper`  the constants of Perez-Salazar and Cummings, letter by letter, with no privacy cost computed at all. An
         exploring rate above 1 is held at 1, with a warning that says how many rounds it would take.
`tight`  rates from the theorems of docs/maths/paper.md (P1 and P2) and the accountant, exploring by minimising the
         proved bound on the regret (P3). Everything is a function of public facts. Algorithm 3 is then capped, and
         redraws one expert at a time (bandit_dp.py); with `paper` it is as printed.

Notation of the paper: N items, k slots, T rounds, eta the rate, gamma the share of exploring rounds. A user who has m
rounds moves scores m times as far (docs/maths/accounting.md, Theorem A9): spans are m times as long, and the paper's
formulas, which are in proportion to epsilon, have epsilon / m.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import scipy

from diminuendo import _validate
from diminuendo.errors import InvalidInput, OutOfRange
from diminuendo.learners.base.setting import Setting
from diminuendo.privacy import calibrate, curves

Calibration = Literal["paper", "tight"]
Resample = Literal["all", "own", "every"]

FASTEST = 1.0
"""Beyond this the bounds on the regret say nothing; a lower rate only helps privacy."""

CALIBRATIONS: dict[str, tuple[str | bool, ...]] = {"calibration": ("tight", "paper")}
"""The option of a learner that says where its constants come from."""

NOT_FOR_USE = "to reproduce the paper; not for use"
"""When to take what has the paper's own constants."""

MOST = 0.5
"""More exploring than this is asked for only where the bound says nothing; then half the rounds should be of use."""


@dataclass(frozen=True)
class Exploring:
    """How a bandit learner explores and how fast it learns."""

    share: float
    """gamma: the probability that a round explores."""
    cap: int | None
    """The most explorations, of one expert ("own") or of all together ("all"); None: as they come."""
    rate: float
    """eta."""


def checked(calibration: Calibration) -> Calibration:
    """One of the two there are."""
    return _validate.one_of(calibration, ("paper", "tight"), "calibration")


def accountant_for(delta: float) -> Literal["zcdp", "pure"]:
    """How a budget is counted: with no delta, purely."""
    return "zcdp" if delta > 0 else "pure"


def private_rate(epsilon: float, delta: float, draws: int, span: float) -> float:
    """The largest rate, at most 1, at which `draws` draws cost (epsilon, delta)."""
    if draws == 0:
        return FASTEST
    return min(FASTEST, calibrate.selection_rate(epsilon, delta, draws, span, accountant_for(delta)))


# The paper's formulas. log(k / delta) needs a delta.


def paper_rate(slots: int, draws: float, epsilon: float, delta: float) -> float:
    """eps / (k sqrt(32 n log(k/delta))) for n draws of each expert: Algorithms 2 and 3, and both appendices.

    With one slot it is the rate of Proposition 2.
    """
    return epsilon / (slots * math.sqrt(32 * draws * math.log(slots / _positive(delta))))


def paper_claim(slots: int, draws: float, rate: float, delta: float) -> float:
    """The epsilon that the paper's analysis gives for a rate: `paper_rate` solved for epsilon."""
    return rate / paper_rate(slots, draws, 1.0, delta)


def paper_exploring(n_items: int, slots: int, rounds: int) -> float:
    """gamma = k ((16 N log N)^2 / T)^(1/3) of Algorithm 3, as printed: it may exceed 1."""
    return slots * math.cbrt((16 * n_items * math.log(n_items)) ** 2 / rounds)


def rounds_for_paper_exploring(n_items: int, slots: int) -> float:
    """From how many rounds on the formula gives a probability: k^3 (16 N log N)^2."""
    return float(slots) ** 3 * (16 * n_items * math.log(n_items)) ** 2


def _positive(delta: float) -> float:
    if not delta > 0:
        raise InvalidInput(
            f"The paper's constants need a delta above 0; got {delta!r}. With delta = 0 use calibration='tight'."
        )
    return delta


def _probability(share: float, formula: str, needed: float) -> float:
    if share <= 1:
        return share
    warnings.warn(
        f"The paper's exploring rate {formula} is {share:.4g}, not a probability; it would need {needed:.2g} rounds. "
        "It is held at 1: every round explores, and slates are short.",
        OutOfRange,
        stacklevel=5,
    )
    return 1.0


# What each algorithm runs with.


def full_information(setting: Setting, calibration: Calibration) -> float:
    """The rate of Algorithm 2."""
    k, rounds = setting.slots, setting.rounds
    if checked(calibration) == "paper":
        return paper_rate(k, rounds, setting.epsilon / setting.max_rounds_per_user, setting.delta)
    return private_rate(setting.epsilon, setting.delta, k * (rounds - 1), 2.0 * setting.max_rounds_per_user)


def bandit(setting: Setting, calibration: Calibration, resample: Resample) -> Exploring:
    """Algorithm 3 ("all", or only the expert that learned: "own"), and the direct approach ("every" round)."""
    n, k, rounds = setting.n_items, setting.slots, setting.rounds
    checked(calibration)
    if n == 1:
        rate = private_rate(setting.epsilon, setting.delta, rounds - 1, float(setting.max_rounds_per_user))
        return Exploring(0.0, 0, rate)  # nothing to learn, and log N = 0
    if calibration == "tight":
        return least_bound(setting, resample)
    epsilon = setting.epsilon / setting.max_rounds_per_user
    if resample == "every":
        rate = paper_rate(k, rounds, epsilon, setting.delta)
        needed = (k**3 * n * math.log(n) / epsilon) ** 2 * 32 * math.log(k / setting.delta)
        # The share that minimises gamma T + k^2 N log N / (gamma eta).
        balanced = k * math.sqrt(n * math.log(n) / (rate * rounds))
        return Exploring(_probability(balanced, "of order T^(-1/4)", needed), None, rate)
    share = _probability(
        paper_exploring(n, k, rounds), "k((16 N log N)^2/T)^(1/3)", rounds_for_paper_exploring(n, k)
    )
    rate = paper_rate(k, 2 * share * rounds, epsilon, setting.delta)
    return Exploring(share, max(1, math.floor(2 * share * rounds)), rate)


def exploring_cap(rounds: int, share: float) -> int:
    """A number that is exceeded with probability at most 1/T: stopping there costs at most one unit of regret."""
    low, high = (
        -1,
        rounds,
    )  # more than `high` come up with probability at most 1/T; more than `low`, with more
    while high - low > 1:
        middle = (low + high) // 2
        # The probability that more than `middle` come up.
        if scipy.special.betainc(middle + 1.0, rounds - middle, share) <= 1 / rounds:
            high = middle
        else:
            low = middle
    return min(rounds, high + 1)


def bandit_bound(n_items: int, slots: int, rounds: int, rate: float, share: float) -> float:
    """k eta T + k^2 N log N / (gamma eta) + gamma T: docs/maths/paper.md, Theorem P3."""
    return slots * rate * rounds + slots**2 * n_items * math.log(n_items) / (share * rate) + share * rounds


def least_bound(setting: Setting, resample: Resample, most: float = MOST) -> Exploring:
    """The share of exploring rounds, at most `most`, that makes the bound least; its cap and rate."""
    n, k, rounds = setting.n_items, setting.slots, setting.rounds
    whole = curves.zcdp_rho(setting.epsilon, setting.delta) if setting.delta > 0 else setting.epsilon

    def cap(share: float) -> int:
        if resample == "every":
            return max(1, rounds - 1)
        return exploring_cap(rounds, share / k if resample == "own" else share)

    def rate(share: float) -> float:
        fast = math.sqrt(8 * whole / cap(share)) if setting.delta > 0 else whole / cap(share)
        # Faster than is best without privacy is not better.
        return min(
            FASTEST, fast / setting.max_rounds_per_user, math.sqrt(k * n * math.log(n) / (share * rounds))
        )

    share = math.exp(
        _least(lambda x: bandit_bound(n, k, rounds, rate(math.exp(x)), math.exp(x)), rounds, most)
    )
    exact = private_rate(setting.epsilon, setting.delta, cap(share), float(setting.max_rounds_per_user))
    return Exploring(share, None if resample == "every" else cap(share), min(exact, rate(share)))


def _least(loss: Callable[[float], float], rounds: int, most: float) -> float:
    """Where a loss over log(share) is least, share from 1/T on. It has small steps, so: ever closer scans."""
    low, high = -math.log(2 * rounds), math.log(most)
    for _ in range(4):
        points = [low + (high - low) * i / 100 for i in range(101)]
        best = min(points, key=loss)
        width = (high - low) / 50
        low, high = max(low, best - width), min(high, best + width)
    return best


def presampled_rate(setting: Setting, calibration: Calibration, explorations: int) -> float:
    """The rate once it is known how many rounds explore."""
    if calibration == "paper":
        return paper_rate(
            setting.slots, explorations + 1, setting.epsilon / setting.max_rounds_per_user, setting.delta
        )
    return private_rate(setting.epsilon, setting.delta, explorations, float(setting.max_rounds_per_user))
