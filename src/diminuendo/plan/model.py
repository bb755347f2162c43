"""The public model: synthetic users, from public facts alone, behind every forecast of a plan.

Each of them wants each item or not, independently: the item of rank r with probability

    p_r = min(top, c / r),    c such that they want `cares_about` items on average,    top = 1/3 + 2/3 cares_about / N.

So appeal falls like Zipf's law, and a third of all users at most want the same thing (more where users want a good
part of everything). A user is happy with a slate that has any item they want. Which item has which rank is drawn
from a seed. Nothing here is an estimate: it is a stated assumption, the same for all who state the same facts.

`half_way` forecasts after how many users half the way from random choice to hindsight is made. At release b, with t_b
users so far, the learner sees of an item of appeal p (a share of users)

    p / sqrt(m) + normal noise,    variance p (1 - p) / (m t_b)  from users being a sample,
                                   and     s_b^2                 from privacy (noise.py),

where m is what a user cares about: singles are clipped to length 1. In the model items do not stand in for each other
more than chance has it, so the slate is the k items that look best. Its mean reward is computed from drawn noise, with
a fixed seed, and the forecast is the first release after which it is at least half way from random choice to greedy.
Left out: noise in what items take from each other, and that old releases averaged fewer users.

References Zipf (1949), Human Behavior and the Principle of Least Effort.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import optimize, sparse

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback_window import NO_FEEDBACK_WINDOW, FeedbackWindow
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.objectives import NoisyOr
from diminuendo.plan.noise import deviations
from diminuendo.streams.users import Users
from diminuendo.types import Floats

NUMBERS = 400_000
"""About how many numbers of noise are drawn for each release."""
TYPICAL = 4.0
"""How many items a user is taken to care about by default: a shopping basket, a visit of a web site."""
ROWS_AT_ONCE = 1_000_000
"""Random numbers held at the same time."""


@dataclass(frozen=True)
class PublicModel:
    """N items of which a user wants `cares_about` on average."""

    n_items: int
    cares_about: float
    appeal: Floats = field(init=False, repr=False, compare=False)
    """The probability that a user wants the item of each rank."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "appeal", _appeal(self.n_items, self.cares_about))

    def greedy(self, slots: int) -> float:
        """What the most wanted items earn on average; users want items independently, so this is greedy's slate."""
        return float(1 - np.prod(1 - self.appeal[:slots]))

    def random(self, slots: int) -> float:
        """What random slates earn on average, but for items that would come twice."""
        return float(1 - (1 - self.appeal.mean()) ** slots)

    def dealt(self, rng: np.random.Generator | int, *, items: int | None = None) -> Floats:
        """The appeal of item 0, 1, ... among the `users` of that seed."""
        result: Floats = np.random.default_rng(rng).permutation(self.appeal[:items])
        return result

    def users(self, count: int, seed: int, *, items: int | None = None) -> Users:
        """`count` users of the model; with `items`, what they want of the most wanted items only."""
        rng = np.random.default_rng(seed)
        appeal = self.dealt(rng, items=items)
        kept = len(appeal)
        rows = max(1, ROWS_AT_ONCE // kept)
        parts = [
            sparse.csr_array((rng.random((min(rows, count - low), kept)) < appeal).astype(np.float64))
            for low in range(0, count, rows)
        ]
        return Users(NoisyOr(), sparse.csr_array(sparse.vstack(parts)), kept, name="public-model")


def assumed(cares_about: float | None, n_items: int) -> float:
    """The number of items a user cares about: what was said, or what is typical."""
    if cares_about is None:
        return min(TYPICAL, max(1.0, n_items / 4))
    result = _validate.positive_float(cares_about, "cares_about")
    if result > n_items:
        raise InvalidInput(
            f"cares_about must be at most the number of items: got {result:g} of {n_items}. It is how many "
            "items one user cares about on average."
        )
    return result


def half_way(
    plan: OverlapPlan, model: PublicModel, slots: int, feedback_window: FeedbackWindow = NO_FEEDBACK_WINDOW
) -> int | None:
    """After how many users slates earn half way from random to greedy; None where that is not before the end."""
    low, high = model.random(slots), model.greedy(slots)
    if high - low < 1e-9:  # everything is as good as anything else
        return None
    wanted = (low + high) / 2
    times = plan.schedule.ends[: plan.releases]
    for time, deviation in zip(times, deviations(plan, model.cares_about), strict=True):
        answers = feedback_window.response_rate * time
        if reward(model, slots, answers, float(deviation)) >= wanted:
            published = time + feedback_window.ahead
            return published if published <= plan.schedule.rounds else None
    return None


def reward(model: PublicModel, slots: int, users: float, deviation: float) -> float:
    """The mean reward of the slate that looks best after `users` users, with noise of that deviation in users."""
    rng = np.random.default_rng(0)
    appeal, shown = model.appeal, 1 / math.sqrt(max(1.0, model.cares_about))
    spread = np.sqrt(shown**2 * appeal * (1 - appeal) / users + (deviation / users) ** 2)
    draws = min(200, max(8, NUMBERS // model.n_items))
    looks: Floats = shown * appeal + spread * rng.standard_normal((draws, model.n_items))
    slates = np.argpartition(-looks, slots - 1, axis=1)[:, :slots]
    return float(1 - np.prod(1 - appeal[slates], axis=1).mean())


def _appeal(n_items: int, cares_about: float) -> Floats:
    ranks = np.arange(1, n_items + 1, dtype=np.float64)
    top = 1 / 3 + 2 / 3 * cares_about / n_items

    def excess(scale: float) -> float:
        return float(np.minimum(top, scale / ranks).sum()) - cares_about

    most = top * n_items  # then every item is at the top, which is at least cares_about / n_items
    scale = most if excess(most) <= 0 else optimize.brentq(excess, 0.0, most, xtol=1e-12)
    result: Floats = np.minimum(top, scale / ranks)
    return result
