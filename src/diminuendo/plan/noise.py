r"""The noise of privacy in users: by how many users two items must differ in appeal to be told apart.

At release r, users of batch j count W_rj, so that sum_j W_rj n_j = u_r of them are asked, and each item's sum has
normal noise of deviation sigma_r (both in ticks). Divided by u_r it is a share of users, with deviation sigma_r / u_r.
Noise of different releases is independent, and the learner averages shares by their precision; so after release b

    s_b = (sum_{r <= b} (u_r / sigma_r)^2)^(-1/2)    is the deviation of every item's share, and
    d_b = t_b s_b                                    the same as a number of the t_b users so far.

(Averages a_r of independent noise with weights p_r = (u_r / sigma_r)^2 have variance
sum p_r^2 p_r^-1 / (sum p_r)^2 = 1 / sum p_r.) Rounding to whole numbers adds 1/12 to sigma_r^2, which is a millionth.

What a user says is clipped to length 1: who wants m items, each fully, counts 1 / sqrt(m) for each of them. Two items
of which D more of such users want one than the other are D / sqrt(m) apart, under noise of deviation sqrt(2) d_b: the
better one comes out ahead with probability Phi(D / (d_b sqrt(2 m))), 19 times in 20 when

    D = 1.645 sqrt(2 m) d_b.

Of what a release costs singles get a share that depends on m (learners/overlap/focus.py). What is said here is for
items that all count alike, as if chains were asked to the end; with a focus, or around a slate, it is less.

This is the noise of privacy alone. That users are a sample of those to come is not in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from diminuendo.learners.base.learner import Learner
from diminuendo.learners.overlap.focus import singles_share
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.sums.chains.cost import split_deviations
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats

SURE = 0.95
"""How often the better of two items is to come out ahead: 19 times in 20."""


@dataclass(frozen=True)
class Noise:
    """The noise of privacy at the last release, in users.

    Attributes
    ----------
    users : int
        How many users came before the last release.
    deviation : float
        Standard deviation of the noise in an item's count of users, each counting one.
    apart : float
        By how many users two items must differ for the better one to come out ahead 19 times in 20.

    """

    users: int
    deviation: float
    apart: float

    def as_json(self) -> dict[str, Any]:
        """Return the noise as plain values, as files hold it."""
        return vars(self) | {"sure": SURE}


def deviations(plan: OverlapPlan, cares_about: float) -> Floats:
    """After each release, the deviation of the noise in every item's count of users so far."""
    wishes, ends = math.sqrt(max(1.0, cares_about)), plan.schedule.ends
    batches = np.array(plan.schedule.sizes, dtype=np.float64)[: plan.weights.shape[1]]
    participants = Clip().ticks * (plan.weights @ batches)
    shares = [singles_share(wishes, plan.nu, end) for end in ends[: plan.releases]]
    sigma = np.array(
        [
            split_deviations(plan.shifts, both, Fraction(share))[0]
            for both, share in zip(plan.sigmas, shares, strict=True)
        ]
    )
    result: Floats = np.array(ends[: plan.releases]) * np.cumsum((participants / sigma) ** 2) ** -0.5
    return result


def apart(deviation: float, cares_about: float) -> float:
    """How many users two items must differ by, when each of these users cares about `cares_about` items."""
    return float(stats.norm.ppf(SURE)) * math.sqrt(2 * max(1.0, cares_about)) * deviation


def noise(plan: OverlapPlan | None, cares_about: float) -> Noise | None:
    """The noise at the last release; None where nothing is released, or not as sums of what users want."""
    if plan is None or plan.releases == 0:
        return None
    last = float(deviations(plan, cares_about)[-1])
    return Noise(plan.schedule.ends[plan.releases - 1], last, apart(last, cares_about))


def releases_of(learner: Learner) -> OverlapPlan | None:
    """When and with what noise a learner publishes what items are worth, if it does."""
    result = getattr(learner.policy, "plan", None)
    return result if isinstance(result, OverlapPlan) else None
