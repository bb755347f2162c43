"""Ordered Hedge the plain way: the readable reference, in numpy, with a Python loop over users.

The same algorithm as the compiled learner `hedge`, written from its definition: one expert per slot draws
an item with probability in proportion to exp(rate * total gain). Each user then tells what every item
would have added to the slots before: for noisy-or, her chance to click it, times the chance that she
clicked nothing before. Each round looks at every item; that is what the compiled learner avoids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from diminuendo.learners.hedge.full import ATTEMPTS
from diminuendo.types import Floats, Items


def adaptive_rate(seen: float, n_items: int) -> float:
    """sqrt(log N / (1 + L)), at most 1, rounded down to a power of sqrt 2; `seen` is L."""
    wanted = min(1.0, math.sqrt(math.log(n_items) / (1.0 + seen)))
    return float(2.0 ** (math.floor(2.0 * math.log2(wanted)) / 2.0))


def new_item_law(law: Floats, shown: Items) -> Floats:
    """The law of the first new item in ATTEMPTS draws from `law`, or else of any new item."""
    again = float(law[shown].sum())  # the chance that a draw must be repeated
    tries = sum(again**attempt for attempt in range(ATTEMPTS))
    result = law * tries + again**ATTEMPTS / (len(law) - len(shown))
    result[shown] = 0.0
    return result


class PlainHedge:
    """k ordered Hedge experts over noisy-or users."""

    def __init__(
        self, n_items: int, slots: int, rate_rule: Callable[[float, int], float] = adaptive_rate
    ) -> None:
        self.n_items = n_items
        self.rate_rule = rate_rule
        self.totals = np.zeros((slots, n_items))
        self.own = np.zeros(slots)
        self.rates = np.full(slots, rate_rule(0.0, n_items))

    def laws(self) -> Floats:
        """How likely each expert is to draw each item; shape (slots, n_items)."""
        powers = self.rates[:, None] * (self.totals - self.totals.max(axis=1, keepdims=True))
        weights = np.exp(powers)
        laws: Floats = weights / weights.sum(axis=1, keepdims=True)
        return laws

    def choose(self, rng: np.random.Generator) -> Items:
        """One item per slot, all different."""
        laws = self.laws()
        slate = np.empty(len(laws), dtype=np.int32)
        for slot, law in enumerate(laws):
            passed = np.cumsum(new_item_law(law, slate[:slot])) <= rng.random()
            slate[slot] = min(int(passed.sum()), self.n_items - 1)  # a sum may round to just below 1
        return slate

    def learn(self, slate: Items, items: Items, chances: Floats) -> float:
        """What one user says who clicks `items` with these chances; returns her value of the slate."""
        missed = 1.0
        new = np.ones(len(items), dtype=bool)  # what is not yet shown can still gain
        for slot, shown in enumerate(slate):
            if missed == 0.0:
                break  # she has certainly clicked something; later slots learn that nothing gains
            gains = missed * chances * new
            self.totals[slot, items] += gains
            here = items == shown
            self.own[slot] += gains[here].sum()
            seen = max(self.totals[slot].max(), self.own[slot])
            self.rates[slot] = min(self.rates[slot], self.rate_rule(seen, self.n_items))
            missed *= 1.0 - chances[here].sum()
            new &= ~here
        return 1.0 - missed

    def replay(self, users: Iterable[tuple[Items, Floats]], rng: np.random.Generator) -> Floats:
        """Choose and learn for each user, given as (items, chances); returns their values."""
        return np.array([self.learn(self.choose(rng), items, chances) for items, chances in users])
