"""Where the budget went: for what a learner pays with its people's privacy, and who pays.

Read off what a learner says about itself before anybody comes: its events and its plan, all of it public. One record
for each purpose:

    {"what": "what each item is worth alone", "unit": "mu^2", "until": [80, 120, ...], "shares": [.89, .88, ...]}

A round before round until[0] is charged shares[0] of what one round may cost, one after that and before until[1] is
charged shares[1], and so on. Where everybody has one round, that is a share of the budget asked for; where a person may
have several, they share the budget, and one round may cost only as much as leaves enough for the others. Shares are in
the unit that the learner's accountant adds up, so that those of several purposes may be added: a person all of whose
rounds are charged 1 has paid the whole epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.private import PrivateLearner
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.learners.hedge.private_draws import PrivateDraws
from diminuendo.learners.overlap.learner import Overlap
from diminuendo.learners.probing.private import PrivateBlocks
from diminuendo.learners.released.learner import ReleasedSums
from diminuendo.learners.slates.blocks import DealtRounds
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed, Event, Laplace, NormalColumns

UNITS = {"pure": "epsilon", "zcdp": "rho", "continuous-gaussian": "mu^2"}
"""What each accountant adds up."""

ONE_PURPOSE: dict[type, str] = {
    DealtRounds: "one question to each person",
    EpochGreedy: "the slate drawn after her epoch",
    PrivateDraws: "draws of items from secret scores",
    PrivateBlocks: "one probe of each person",
    ReleasedSums: "releases of one running sum",
    FiPure: "releases of one running sum",
}
"""What a learner pays for that pays for one thing only. Of any other we say the next."""
ANYTHING = "everything that it lets out"

SINGLES, ROWS, PAYOFFS = "what each item is worth alone", "how much items overlap", "has taste changed?"
"""What overlap learners ask people at their releases; the last is one payoff per batch."""


def spending(learner: Learner) -> list[dict[str, Any]]:
    """Records as above, plain enough for JSON; none for a learner that promises nothing or asks nobody."""
    if not isinstance(learner, PrivateLearner) or math.isinf(learner.guarantee.epsilon):
        return []
    budget, until = _budget(learner), [learner.horizon]
    if isinstance(learner, Overlap):
        until = list(learner.plan.schedule.ends)
    return [
        {
            "what": what,
            "unit": UNITS[budget.accountant],
            "until": until,
            "shares": list(_shares(event, budget, len(until))),
        }
        for what, event in _purposes(learner).items()
    ]


def _budget(learner: PrivateLearner) -> Budget:
    if isinstance(learner, FiPure):  # keeps an epsilon only
        return Budget(learner.epsilon, 0.0, learner.unit, "pure")
    budget: Budget = learner.budget  # type: ignore[attr-defined]  # every other one has it
    return budget


def _purposes(learner: PrivateLearner) -> dict[str, Event]:
    """What it pays for, and the cost of it. All together they cost what the learner says the run costs."""
    if isinstance(learner, FiPure):
        return {ONE_PURPOSE[FiPure]: Laplace(learner.one_round)}
    if not isinstance(learner, Overlap):
        said = [what for kind, what in ONE_PURPOSE.items() if isinstance(learner, kind)]
        return {(said or [ANYTHING])[0]: learner.events}  # type: ignore[attr-defined]
    plan, unit = learner.plan, 2.0 * learner.clip.ticks**2  # the square of how far one person moves a release
    parts: list[list[Event]] = [[], []]
    for row, sigmas in zip(plan.weights, plan.sigmas, strict=True):
        for part, sigma in zip(parts, sigmas, strict=True):
            part.append(
                NormalColumns(0, tuple(unit * (int(w) / sigma) ** 2 for w in row), partition="people")
            )
    return {SINGLES: Composed(tuple(parts[0])), ROWS: Composed(tuple(parts[1])), PAYOFFS: plan.drift}


@lru_cache(maxsize=64)
def _shares(event: Event, budget: Budget, batches: int) -> tuple[float, ...]:
    """What a round of each batch is charged, as a share of all that one round may cost, whatever the seed."""
    tally, limit = budget.counting.tally(event), budget.limit
    paid = [tally.common] * batches
    for (_, batch), cost in tally.columns.items():
        if batch < batches:
            paid[batch] += cost
    return tuple(float(cost / limit) for cost in paid)
