r"""How many releases, and how fast: where the proved bound of boosted ascent is least.

With batches of B rounds, noise of mean square v in every release, T rounds in all, D and G as in
frank_wolfe_plan.py, and the best rate eta (docs/maths/continuous.md, Theorem C10),

    (1 - 1/e) best - payoff  <=  (1 - 1/e) D sqrt(G^2 sum of B^2 + v (number of releases))  +  what ticks cut off .

Batches of q rounds are best where q is about sqrt(v)/G: when noise is as long as what a batch can say. Longer ones make
people wait, shorter ones add up noise. That does not depend on T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from diminuendo import _validate
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, Facts, tick_clip
from diminuendo.privacy import calibrate
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace
from diminuendo.randomness import noise
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import ONE_MINUS_1_OVER_E

Cost = Gaussian | ContinuousGaussian | Laplace


@dataclass(frozen=True)
class BoostedPlan:
    """What a run is made with."""

    schedule: Schedule
    """The point stays within a batch; the last batch is never released."""
    rate: float
    """eta: the point is the projection of the centre plus eta times the sum of (1 - 1/e) gradients."""
    square: float = 0.0
    """The noise in the sum of gradients of one batch has at most this mean square length."""
    floor: float = 0.0
    """What is lost because gradients are cut to whole ticks."""

    @property
    def releases(self) -> int:
        """How often sums are published."""
        return len(self.schedule) - 1

    def bound(self, facts: Facts) -> float:
        """The proved bound on the expected (1 - 1/e)-regret."""
        squares = _squares(facts, len(self.schedule), self.square)
        return (
            facts.spread**2 / (2 * self.rate) + self.rate / 2 * ONE_MINUS_1_OVER_E**2 * squares + self.floor
        )


def boosted_plan(facts: Facts, cost: Cost | None, releases: int | None = None) -> BoostedPlan:
    """The plan with the least bound; without a cost there is no noise, and a release after every round."""
    if cost is None:
        return _tuned(facts, facts.rounds, 0.0, 0.0)
    square = noise_square(facts, cost)
    floor = (
        ONE_MINUS_1_OVER_E
        * facts.rounds
        * math.sqrt(facts.n)
        * facts.radius
        * facts.gradient_bound
        / GRADIENT_TICKS
    )
    if releases is not None:
        batches = _validate.whole(releases, 1, facts.rounds - 1, "releases") + 1
    else:
        # Over whole m the squares are convex, with a kink at T / q for every whole q: the least is beside one.
        wanted = facts.rounds / best_size(math.sqrt(square) / facts.gradient_bound)
        near = {min(facts.rounds, max(2, whole)) for whole in (math.floor(wanted), math.ceil(wanted))}
        batches = min(sorted(near), key=lambda count: _squares(facts, count, square))
    return _tuned(facts, batches, square, floor)


def best_size(ratio: float) -> int:
    """The whole q with q (q - 1) <= ratio^2 <= q (q + 1)."""
    return max(1, math.ceil(math.sqrt(ratio * ratio + 0.25) - 0.5))


def noise_square(facts: Facts, cost: Cost) -> float:
    """At least the mean square length of the noise of a release, n numbers, each batch by itself (Theorem C9)."""
    clip, n = tick_clip(1), facts.n
    if isinstance(cost, Laplace):
        scale = noise.checked_scale(calibrate.laplace_scale(cost.epsilon, clip.sensitivity(n)), "scale")
        entry = math.sqrt(2) * scale
    else:
        rho = Fraction(cost.rho) if isinstance(cost, Gaussian) else Fraction(cost.mu) ** 2 / 2
        entry = noise.checked_scale(calibrate.gaussian_sigma(rho, clip.sensitivity_squared(n)), "sigma")
        entry += 0.0 if isinstance(cost, Gaussian) else 0.5  # rounding moves a number by no more
    return n * (entry * facts.gradient_bound / GRADIENT_TICKS) ** 2


def _tuned(facts: Facts, batches: int, square: float, floor: float) -> BoostedPlan:
    rate = facts.spread / (ONE_MINUS_1_OVER_E * math.sqrt(_squares(facts, batches, square)))
    return BoostedPlan(equal(facts.rounds, batches), rate, square, floor)


def _squares(facts: Facts, batches: int, square: float) -> float:
    """G^2 times the sum of squared sizes of `batches` nearly equal batches, and the noise of all but the last."""
    size, longer = divmod(facts.rounds, batches)
    sizes = longer * (size + 1) ** 2 + (batches - longer) * size**2
    return facts.gradient_bound**2 * sizes + (batches - 1) * square
