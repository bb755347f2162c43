"""What lazy experts run with: how long batches are, how fast they learn, and how often each may draw again.

All of it follows from public facts. For each length of batches there is a largest rate at which coins and draws fit
into the budget; of these, the length is taken whose bound on the regret is least (docs/maths/lazy.md, Theorems Z3 and
Z5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import scipy

from diminuendo.errors import InvalidInput
from diminuendo.experts.lazy import MOST_LOST
from diminuendo.experts.lazy_items import ITEM_TICKS
from diminuendo.learners.released.hedge_bound import curvature
from diminuendo.learners.released.released_sum import MOST_WAITING
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed, ContinuousGaussian, Event, Repeated, Selections
from diminuendo.privacy.rounding import lowered
from diminuendo.randomness.shares import FINE
from diminuendo.sums.schedule import Schedule, equal

MOST_RELEASES = 1 << 17
"""Each is kept by the ledger: all together in less than 100 megabytes of memory, or as files."""

CLOSE = 1 - 2.0**-30
"""How close to the budget a rate is sought: floats err by less."""

SAFE = 1 + 2.0**-30
"""More than what the library's normal quantiles err by, at the differences that matter."""


@dataclass(frozen=True)
class LazyPlan:
    """Batches as equal as may be, of `rounds` rounds in all, and experts of that rate, per unit of gain."""

    n_items: int
    slots: int
    rounds: int
    n_batches: int
    rate: float

    @property
    def schedule(self) -> Schedule:
        """When batches close."""
        return equal(self.rounds, self.n_batches)

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest rounds of a batch, and the most."""
        return self.rounds // self.n_batches, -(-self.rounds // self.n_batches)

    @property
    def coins(self) -> int:
        """How many coins each expert tosses: after the first batch it draws anyway, and after the last nobody comes."""
        return max(0, self.n_batches - 2)

    @cached_property
    def most(self) -> int:
        """How often each expert may draw: more often with probability 1 / (k T) at most, were there no limit."""
        if self.n_batches == 1:
            return 0
        chance = -math.expm1(-MOST_LOST * self.rate * self.sizes[1])
        return 1 + binomial_cap(self.coins, chance, 1 / (self.slots * self.rounds))

    @property
    def coin(self) -> float:
        """The mu of one coin: one person moves a loss, which is 1 for each round at least, by 1 at most."""
        return coin_mu(self.rate, self.sizes[0]) if self.coins else 0.0

    @property
    def event(self) -> Event:
        """What the whole run costs (Theorem Z3)."""
        draws = Selections(self.slots * self.most, 2 * self.rate)
        return Composed((Repeated(ContinuousGaussian(self.coin), self.slots), draws))

    @property
    def rho(self) -> float:
        """The same, in floats."""
        return self.slots * (self.coin**2 + self.most * self.rate**2) / 2

    @property
    def bound(self) -> float:
        """On the expected regret to (1 - 1/e) of the best slate (Theorem Z5)."""
        k, (least, longest) = self.slots, self.sizes
        many = self.rounds - least * self.n_batches  # batches that have a round more
        squares = many * longest**2 + (self.n_batches - many) * least**2
        rounding = k * self.rounds * (1 / ITEM_TICKS + self.n_items / FINE)
        return (
            k * math.log(max(2, self.n_items)) / self.rate
            + self.rate * curvature(k, self.rate * longest) * squares
            + 1
            + rounding
        )


def coin_mu(rate: float, least: int) -> float:
    """How far two coins are apart that survive losses of `least` and of one more, in deviations (Lemma Z2)."""
    closer, farther = (-float(scipy.special.ndtri_exp(-rate * loss)) for loss in (least, least + 1))
    return (farther - closer) * SAFE


def binomial_cap(count: int, chance: float, tail: float) -> int:
    """The least number that `count` coins exceed with probability at most `tail`."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        if scipy.special.betainc(middle + 1.0, count - middle, chance) <= tail:
            high = middle
        else:
            low = middle
    return high


def fastest(n_items: int, slots: int, rounds: int, n_batches: int, limit: float) -> LazyPlan | None:
    """The plan with that number of batches and the best rate that costs at most `limit`; None: there is none."""

    def at(log_rate: float) -> LazyPlan:
        return LazyPlan(n_items, slots, rounds, n_batches, math.exp(log_rate))

    # Where privacy does not matter, the rate that makes the bound least but for its convexity; faster is not better.
    per_batch = slots * math.log(max(2, n_items)) / (curvature(slots, 0.0) * n_batches)
    high = min(0.0, math.log(n_batches / rounds) + math.log(per_batch) / 2)
    if at(high).rho <= limit:
        return at(high)
    low = high - 40.0
    if at(low).rho > limit:
        return None
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).rho <= limit else (low, middle)
    return at(low)


def lazy_plan(n_items: int, slots: int, rounds: int, budget: Budget, ahead: int = 0) -> LazyPlan:
    """The plan whose bound is least; where answers come late, with no more batches waiting than there is room for."""
    limit, shortest = float(budget.limit) * CLOSE, max(1, math.ceil(ahead / MOST_WAITING))
    shortest = max(shortest, math.ceil(rounds / MOST_RELEASES))
    found: dict[int, LazyPlan] = {}

    def tried(people: float) -> float:
        n_batches = max(min(2, rounds), math.ceil(rounds / max(shortest, people)))
        if n_batches not in found:
            plan = fastest(n_items, slots, rounds, n_batches, limit)
            if plan is not None:
                found[n_batches] = plan
        return found[n_batches].bound if n_batches in found else math.inf

    best = min((2.0**power for power in range(rounds.bit_length())), key=tried)
    min((best * 2.0 ** (step / 4) for step in (-3, -2, -1, 1, 2, 3)), key=tried)
    if not found:
        raise InvalidInput(f"epsilon = {budget.epsilon} is too small for {slots} slots: no rate is above 0.")
    plan = min(found.values(), key=lambda one: one.bound)
    return LazyPlan(n_items, slots, rounds, plan.n_batches, affordable(plan, budget))


def affordable(plan: LazyPlan, budget: Budget) -> float:
    """The rate of the plan, or the next below it whose exact cost is within the budget."""
    sizes = plan.n_items, plan.slots, plan.rounds, plan.n_batches
    return lowered(
        plan.rate, lambda rate: budget.counting.tally(LazyPlan(*sizes, rate).event).total <= budget.limit
    )
