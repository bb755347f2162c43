"""Budget by purpose: what a learner charges each round for.

This follows from the learner's events and plan, which are public and fixed before the first round. One record for each
purpose:

    {"what": "what each item is worth alone", "unit": "mu^2", "until": [80, 120, ...], "shares": [.89, .88, ...]}

A round before round until[0] is charged shares[0] of what one round may cost, one after that and before until[1] is
charged shares[1], and so on. If every user has one round, shares are of the whole budget; if users have
several rounds, these share it, and one round may cost its part. Shares are in the unit that the learner's accountant
adds up, so shares of several purposes may be added. A user all of whose rounds are charged 1 has used the whole
epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from diminuendo.learners.base.learner import Learner
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Event

UNITS = {"pure": "epsilon", "zcdp": "rho", "continuous-gaussian": "mu^2"}
"""What each accountant adds up."""


def spending(learner: Learner) -> list[dict[str, Any]]:
    """Records as above, plain enough for JSON; none for a learner without a guarantee or without queries."""
    budget, policy = learner.budget, learner.policy
    if budget is None or math.isinf(learner.guarantee.epsilon):
        return []
    until = policy.charged_until()
    return [
        {
            "what": what,
            "unit": UNITS[budget.accountant],
            "until": until,
            "shares": list(_shares(event, budget, len(until))),
        }
        for what, event in policy.purposes().items()
    ]


@lru_cache(maxsize=64)
def _shares(event: Event, budget: Budget, batches: int) -> tuple[float, ...]:
    """What a round of each batch is charged, as a share of all that one round may cost, whatever the seed."""
    tally, limit = budget.counting.tally(event), budget.limit
    paid = [tally.common] * batches
    for (_, batch), cost in tally.columns.items():
        if batch < batches:
            paid[batch] += cost
    return tuple(float(cost / limit) for cost in paid)
