r"""A forecast under the public model: after how many people half the way from random choice to hindsight is made.

At release b, with t_b people so far, the learner sees of an item of appeal p (a share of people, see model.py)

    p / sqrt(m) + normal noise,    variance p (1 - p) / (m t_b)  from people being a sample,
                                   and     s_b^2                 from privacy (noise.py),

where m is what a person cares about: singles are clipped to length 1. In the model items do not stand in for each other
more than chance has it, so the slate is the k items that look best. Its mean payoff is computed from drawn noise, with
a fixed seed, and the forecast is the first release after which it is at least half way from random choice to greedy.

Left out: noise in what items take from each other, and that old releases averaged fewer people.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo.learners.overlap_plan import OverlapPlan
from diminuendo.plan.model import PublicModel
from diminuendo.plan.noise import deviations
from diminuendo.types import Floats

NUMBERS = 400_000
"""Of noise to draw for each release, about."""


def half_way(plan: OverlapPlan, model: PublicModel, slots: int) -> int | None:
    """After so many people, slates earn half way from random to greedy; None when that is not before the end."""
    low, high = model.random(slots), model.greedy(slots)
    if high - low < 1e-9:  # everything is as good as anything else
        return None
    wanted = (low + high) / 2
    times = plan.schedule.ends[: plan.releases]
    for time, deviation in zip(times, deviations(plan), strict=True):
        if payoff(model, slots, time, float(deviation)) >= wanted:
            return time
    return None


def payoff(model: PublicModel, slots: int, people: int, deviation: float) -> float:
    """The mean payoff of the slate that looks best after so many people, with noise of that deviation in people."""
    rng = np.random.default_rng(0)
    appeal, shown = model.appeal, 1 / math.sqrt(max(1.0, model.cares_about))
    spread = np.sqrt(shown**2 * appeal * (1 - appeal) / people + (deviation / people) ** 2)
    draws = min(200, max(8, NUMBERS // model.n_items))
    looks: Floats = shown * appeal + spread * rng.standard_normal((draws, model.n_items))
    slates = np.argpartition(-looks, slots - 1, axis=1)[:, :slots]
    return float(1 - np.prod(1 - appeal[slates], axis=1).mean())
