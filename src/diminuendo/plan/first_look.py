r"""The first look: how many users and items it takes in, how noisy that is, and whether enough users come.

A learner that publishes slates begins with random ones, no item twice. To see a good item through noise and chance,
each slate is shown to 8 (1 + 1/epsilon) users; where only rewards come back and many users do, to at least 32. Where
this would take more than 15 % of all users only some of the items are shown, and others are tried later
(learners/slates/planner.py).

How far a run comes depends on T / F more than on anything else, where F = ceil(N / k) 8 (1 + 1/epsilon) is how many
users such a first look at everything takes at least. In made-up runs (model.py) of slate-totals and
slate-clicks, two each, with 50 and 150 items, 5 slots, 3 or 12 wishes a user and epsilon .2, 1 and 5, the way that
was made from random choice to hindsight, on average over the run, was

    up to 19 % for T = F / 2,    up to 38 % for T = F,    7 to 58 % for T = 2 F,    29 to 86 % for T = 4 F:

most with clicks, large epsilon and many wishes. Hence, roughly,

    too few users    T < F: a first look at everything would take more users than come
    enough            T >= 4 F: half the way from random choice to hindsight is made, on average over the whole run;
                      with T as it is, where epsilon >= 1 / (T / (4 ceil(N / k) 8) - 1), if that is positive.

One number is published for each slate and its users, with Laplace noise of scale b = 1/epsilon. The difference of two
such numbers exceeds x by noise with probability (2 + x/b) exp(-x/b) / 4, which is 1/20 for x = 3.27 b: two slates must
differ by that many users for the better one to come out ahead 19 times in 20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy import optimize

from diminuendo.learners.base.learner import Learner
from diminuendo.learners.slates.planner import FIRST_SHARE, USERS_PER_SLATE
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.plan.noise import SURE

TOO_FEW, ENOUGH = 1, 4
"""How many first looks the users who come could make: fewer than TOO_FEW are too few, ENOUGH are enough."""
SURE_SCALES = float(optimize.brentq(lambda x: (2 + x) * math.exp(-x) / 4 - (1 - SURE), 0.0, 50.0))
"""How many scales apart two numbers with Laplace noise must be for the larger to look larger 19 times in 20."""


@dataclass(frozen=True)
class FirstLook:
    """What it takes to show every item once, and whether that pays.

    Attributes
    ----------
    users : int
        How many users are shown each of the first slates.
    took : int
        How many users are shown one of the first slates.
    seen : int
        How many items the first slates show.
    whole : int
        How many users it would take to show all items so.
    deviation : float
        Standard deviation of the noise in the total of a slate, in users.
    apart : float
        By how many users two slates must differ for the better one to come out ahead 19 times in 20.
    enough : int
        Forecast: how many users take it half of the way from random slates to hindsight.
    epsilon : float, optional
        Forecast: the epsilon at which the expected users would be enough; None if no epsilon is.
    too_few : bool
        Whether too few users are expected to earn much more than random slates.

    """

    users: int
    took: int
    seen: int
    whole: int
    deviation: float
    apart: float
    enough: int
    epsilon: float | None
    too_few: bool

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain values, as files hold them."""
        return vars(self) | {"sure": SURE}


def first_look(learner: Learner) -> FirstLook | None:
    """The first look of a learner that publishes slates; None for other learners."""
    policy = learner.policy
    if not isinstance(policy, SlatePolicy) or policy.budget is None:
        return None
    rounds, epsilon = policy.planner.horizon, policy.planner.noise.epsilon  # of one round: visits share it
    uncut, slates = policy.planner.users_at_first, math.ceil(learner.n_items / learner.slots)
    look = USERS_PER_SLATE * (1 + 1 / epsilon) * slates
    shown = min(slates, max(1, int(FIRST_SHARE * rounds) // int(uncut)))
    spare = rounds / (ENOUGH * slates * USERS_PER_SLATE) - 1
    return FirstLook(
        int(uncut),
        min(rounds, shown * int(uncut)),
        min(learner.n_items, shown * learner.slots),
        round(slates * uncut),
        math.sqrt(2) / epsilon,
        SURE_SCALES / epsilon,
        round(ENOUGH * look),
        learner.max_rounds_per_user / spare if spare > 0 else None,
        rounds < round(TOO_FEW * look),
    )
