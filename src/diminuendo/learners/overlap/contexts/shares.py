r"""How the cost of a release is shared out between all users, the values of columns, and rows; by what was published.

Until a column's gate opens it gets a small share, and only once the whole is known well enough to be compared with:

    e_j      .3 / m of the cost, or .03 / m where the column is useless, times how well the whole is known, times
             min(1, users in the segment of a random user / (4 nu))

so contexts that tell nothing cost at most .3 of the budget: deviations are at most 1.2 times what they would be
(docs/maths/contexts.md, Theorem X3). As gates open, by the weight of the evidence, most of what singles have goes to
the columns that tell something, and a quarter of what rows have. Where contexts are private, a twentieth goes into
counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from diminuendo.learners.overlap.contexts.columns import Evidence
from diminuendo.sums.greedy_queries.cells import SharedQueryWeights
from diminuendo.sums.greedy_queries.query_weights import SHARES
from diminuendo.types import Ints

TRIAL, USELESS = 0.3, 0.03
"""What all columns together get until their gates open; and once nothing was found in them."""
EARLY_NUS = 4.0
"""A segment of EARLY_NUS nu of users may have a slate of its own."""
ROWS_GIVE, SEGMENTS_TAKE = 0.25, 0.9
"""With all gates open: what rows give of their share, and what columns take of that of singles."""
COUNTS = 0.05
"""Into counts of private contexts."""
LEAST = 0.02
"""With a smaller share than this nothing could be told apart, and nothing is published; a column that was found useless
is looked at with whatever it gets, in case that changes."""


def trial_shares(
    evidence: Sequence[Evidence], known: float, sizes: Sequence[float], nu: float
) -> list[float]:
    """What each column gets for being looked at; `sizes`: users in the segment of a random user."""
    each = len(evidence)
    return [
        (USELESS if result.useless else TRIAL) / each * known * min(1.0, size / (EARLY_NUS * nu))
        for result, size in zip(evidence, sizes, strict=True)
    ]


def open_sizes(evidence: Sequence[Evidence], sizes: Sequence[float], users: float) -> float:
    """How many users a slate is made for: all users, or, as far as gates are open, those of a segment."""
    weight, size = max((result.weight, -size) for result, size in zip(evidence, sizes, strict=True))
    return max(1.0, (1 - weight) * users + weight * -size)  # by noisy counts a segment may seem empty


def shared_query_weights(
    weights: Ints,
    evidence: Sequence[Evidence],
    trial: Sequence[float],
    *,
    singletons: float,
    private: bool,
    swap: bool,
) -> SharedQueryWeights:
    """The shares of one release; `singles`: which share would go into singles if there were no contexts."""
    open_weight = max(result.weight for result in evidence)
    total = sum(result.weight for result in evidence)
    looked = (1 - open_weight) * sum(trial)
    rows = (1 - singletons) * (1 - ROWS_GIVE * open_weight - looked)
    cells = [
        (1 - open_weight) * share
        + (SEGMENTS_TAKE * open_weight * (1 - rows - looked) * result.weight / total if total else 0.0)
        for result, share in zip(evidence, trial, strict=True)
    ]
    part = SHARES * (1 - COUNTS if private else 1.0)
    each = tuple(
        int(part * share) if share >= LEAST or result.useless else 0
        for result, share in zip(evidence, cells, strict=True)
    )
    counts = tuple(int(SHARES * COUNTS / len(cells)) if private else 0 for _ in cells)
    left = SHARES - sum(each) - sum(counts)
    if swap:
        return SharedQueryWeights(weights, 0, left, each, counts)
    others = max(1, min(left - 1, round(part * rows)))
    return SharedQueryWeights(weights, left - others, others, each, counts)
