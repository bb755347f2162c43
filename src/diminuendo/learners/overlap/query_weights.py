r"""The query weights of the next release, as a function of what was published: items, and the share of singletons.

*Items.* A user who wants many things is clipped, so that each of their wishes counts little. Weights w, one per item,
multiply a user's values before they are clipped (sums/greedy_queries/query_weights.py): item a is then measured with
a precision in proportion to w_a^2 / sum_c w_c^2 q_c, where q_c is how many users want c. If b_a is how likely it is
that a must be told from an item that is picked, sum_a b_a log(precision of a) is largest for w_a^2 in proportion to
b_a / q_a. The number of contenders is not known, so all numbers of them are taken as equally likely: b = 1/r for the
item of rank r, its best rank for any slot. Noise falls like 1 / users, and with it the number of items that cannot be
told from the best:

    w_a = sqrt((full / r_a) (typical / q_a)), from `least` to 1        full = N/10 t_1/t, at least 3

`typical` is the q of items that are shown. Where wishes fall like 1/rank, r q is constant, and all weights are equal.

*Where users want few items there is nothing to gain.* A user who wants one item is not clipped, and a weight below 1
only makes that wish count less beside the noise. Singleton values of a user with m wishes add up to sqrt(m), so all
published singleton values together tell about how many wishes users have. No user can be made to count by more than
that factor, and no weight is below 1 / sqrt(m). Nor do items overlap for users who want one: marginal losses then say
nothing, and get less of the budget:

    share of singletons = late + (.95 - late) min(1, 12 nu / t)            late = 1/2 + 1/2 / sqrt(m)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.sums.greedy_queries.query_weights import FULL, SHARES, QueryWeights
from diminuendo.types import Floats, Ints

SHARE, FEWEST, FLOOR = 0.1, 3.0, 0.3
"""At the first release this share of all items is in full focus; never fewer than FEWEST; no weight is below FLOOR."""
EARLY, EARLY_NUS = 0.95, 12.0
"""The share of singles in the beginning, and for how many nu of users (schedule.py) that is."""
EASY, MILD = 100.0, 0.5
"""From EASY nu of users for each slot on, weights around a slate fall, to the share MILD of themselves at least:
noise is small then, and users who are clipped count less than others."""


class Standing(NamedTuple):
    """How items stand after a release, one number per item."""

    places: Floats
    """The best rank for any slot; 1 for those that are shown."""
    wanted: Floats
    """How many want it, about: at least what noise cannot exclude."""
    typical: float
    """How many want an item that is shown."""
    wishes: float | None
    """What singles of a user add up to; None where they were not measured."""


class NextQueryWeights:
    """Follows what was published from release to release."""

    def __init__(self, n_items: int, slots: int, nu: float) -> None:
        self._slots, self._nu = slots, nu
        self.weights: Ints = np.full(n_items, FULL, dtype=np.int64)
        self._wishes: Floats = np.ones(1)
        self.arrays = (self.weights, self._wishes)

    def __repr__(self) -> str:
        return f"<NextQueryWeights: {int((self.weights == FULL).sum())} of {len(self.weights)} items in full>"

    @property
    def wishes(self) -> float:
        """What singles of a user add up to, as was published last: at least 1."""
        return max(1.0, float(self._wishes[0]))

    def follow(self, standing: Standing, elapsed: float) -> None:
        """After a release; `elapsed`: how many times as many users are remembered as the first release has."""
        if standing.wishes is not None:
            self._wishes[0] = standing.wishes
        full = max(FEWEST, SHARE * len(self.weights) / elapsed)
        shares = np.sqrt(full / standing.places * (standing.typical / standing.wanted))
        least = max(FLOOR, 1 / self.wishes)
        self.weights[:] = np.rint(FULL * np.clip(shares, least, 1.0)).astype(np.int64)

    def widen(self, items: Ints | NDArray[np.bool_] | slice = slice(None)) -> None:
        """These items, or all, are in full focus again."""
        self.weights[items] = FULL

    def for_sequence(self, users: int) -> QueryWeights:
        """For a chain over that many users."""
        return QueryWeights(
            self.weights.copy(), round(singletons_share(self.wishes, self._nu, users) * SHARES)
        )

    def for_swap(self, users: int) -> QueryWeights:
        """For a release around a slate, over that many users."""
        mild = min(1.0, max(MILD, EASY * self._slots * self._nu / users))
        weights = np.maximum(1, np.rint(mild * self.weights)).astype(np.int64)
        return QueryWeights(weights, SHARES // 2)  # there are no rows to share with


def singletons_share(wishes: float, nu: float, users: float) -> float:
    """The share of what a chain costs that goes into singles, where those of a user add up to `wishes`."""
    delay = min(EARLY, 0.5 + 0.5 / wishes)
    return delay + (EARLY - delay) * min(1.0, EARLY_NUS * nu / users)


SORTED = 4096
"""Of very many items only the best SORTED are put in order; those behind them share one rank."""


def ranks(values: Floats, among: Ints) -> Floats:
    """1 for the largest of the values `among` items, and so on; for items that are not, as many as there are."""
    result = np.full(len(values), float(len(values)))
    if len(among) > 2 * SORTED:
        best = np.argpartition(-values[among], SORTED)[:SORTED]
        result[among] = len(among) / 2
        among = among[best]
    result[among[np.argsort(-values[among])]] = np.arange(1, len(among) + 1)
    return result
