r"""How many copies, how many releases, how fast: by the paper's formulas, or where our proved bound is least.

Everything is a function of public facts: n entries, T rounds, R the radius of the domain, G a bound on gradients, beta
on how fast they change, and the budget. With K copies, each of expected regret at most B (docs/maths/continuous.md,
Theorem C3),

    (1 - 1/e) best - reward  <=  c_K (B + beta R^2 T / (2K)),     c_K = 1 - (1 - 1/K)^K .

More copies make smaller steps and cost more noise: B grows with sqrt(K) where all copies share one Gaussian release
(Theorem C2), with K where each pays by itself (Theorem C1). More releases learn faster and cost more noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.experts import noisy_leader
from diminuendo.sums.clip import Clip
from diminuendo.sums.gamma_tree import node_scale
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.sums.strategies.toeplitz import SqrtToeplitz

MOST_COPIES = 256
MOST_RELEASES = 1023
"""The most releases by default: each release draws noise for every entry of every copy."""

STEEPEST = 1e100
"""No gradient bound above it, nor below its inverse."""

GRADIENT_TICKS = 1 << 16
"""Whole numbers to one G, for noise that is exact."""


@dataclass(frozen=True)
class Spec:
    """Public facts of a run."""

    n: int
    rounds: int
    radius: float
    spread: float
    """No point of the domain is further from its centre, where FTRL begins."""
    gradient_bound: float
    smoothness: float

    def __post_init__(self) -> None:
        if _validate.positive_int(self.rounds, "rounds") < 2:
            raise InvalidInput("rounds must be at least 2: what one user says can only help the next.")
        steep = _validate.positive_float(self.gradient_bound, "gradient_bound")
        if not 1 / STEEPEST <= steep <= STEEPEST:
            raise InvalidInput(
                f"gradient_bound must be between {1 / STEEPEST:g} and {STEEPEST:g}: squares of other numbers do not "
                f"fit into floats; got {steep:g}. Measure gradients in another unit."
            )
        if self.smoothness != 0:
            _validate.positive_float(self.smoothness, "smoothness")


@dataclass(frozen=True)
class FrankWolfePlan:
    """What a run is made with. `noise`, `stray` and `floor` are what its regret pays for privacy (Theorems C5, C6)."""

    copies: int
    schedule: Schedule
    """The point stays within a batch; the last batch is never released."""
    leader: Literal["ftrl", "pftal"]
    parameter: float
    """eta of FTRL, H of PFTAL."""
    noise: float = 0.0
    stray: float = 0.0
    floor: float = 0.0

    @property
    def releases(self) -> int:
        """How often sums are published."""
        return len(self.schedule) - 1

    def bound(self, spec: Spec) -> float:
        """The proved bound on the expected (1 - 1/e)-regret."""
        steep = spec.gradient_bound
        if self.leader == "pftal":
            regret = noisy_leader.pftal_bound(spec.radius, steep, spec.rounds, self.parameter, self.noise)
        else:
            sizes, eta = self.schedule.sizes, self.parameter
            regret = noisy_leader.ftrl_bound(spec.spread, steep, sizes, eta, self.noise, self.stray)
        return reach(self.copies) * (regret + self.floor + steps_price(spec, self.copies))


def reach(copies: int) -> float:
    """1 - (1 - 1/K)^K: the share of the best that K steps reach; from 1 for one step down to 1 - 1/e."""
    return 1 - (1 - 1 / copies) ** copies


def steps_price(spec: Spec, copies: int) -> float:
    """What K steps lose because they are not infinitely small."""
    return spec.smoothness * spec.radius**2 * spec.rounds / (2 * copies)


def open_plan(spec: Spec, copies: int | None = None) -> FrankWolfePlan:
    """Without privacy: a new point every round; by default enough copies that steps cost no more than learning."""
    if copies is not None:
        copies = _validate.positive_int(copies, "copies")
    else:
        learning = spec.spread * spec.gradient_bound * math.sqrt(spec.rounds)
        wanted = steps_price(spec, 1) / learning
        copies = max(1, min(MOST_COPIES, math.ceil(wanted)))
    return _tuned(spec, copies, spec.rounds)


def paper_plan(spec: Spec, epsilon: float) -> FrankWolfePlan:
    """K = T^(1/4) / log^1.25 T, as in Algorithm 4, rounded and at least 1; H as printed, for a copy's epsilon / K."""
    copies = max(1, round(spec.rounds**0.25 / math.log(spec.rounds) ** 1.25))
    schedule = equal(spec.rounds, spec.rounds)
    noise = noisy_leader.gamma_length(spec.n, *gamma_noise(spec, epsilon, copies, len(schedule) - 1))
    curvature = noisy_leader.paper_curvature(spec.n, spec.rounds, epsilon / copies)
    return FrankWolfePlan(copies, schedule, "pftal", curvature, noise)


def gamma_plan(spec: Spec, epsilon: float, copies: int | None, releases: int | None) -> FrankWolfePlan:
    """Pure noise, each copy at epsilon / K, padded so that it has the same law in every release (Theorem C6)."""

    def plan_for(copies: int, releases: int) -> FrankWolfePlan:
        noise = noisy_leader.gamma_length(spec.n, *gamma_noise(spec, epsilon, copies, releases))
        return _tuned(spec, copies, releases + 1, noise)

    return _least(spec, plan_for, copies, releases)


def gaussian_plan(spec: Spec, rho: float, copies: int | None, releases: int | None) -> FrankWolfePlan:
    """Gaussian noise on all copies together, at rho."""

    def plan_for(copies: int, releases: int) -> FrankWolfePlan:
        square, variance = _strategy(releases)
        raw = math.sqrt(tick_clip(copies).sensitivity_squared(spec.n * copies) * square / (2 * rho))
        tick = spec.gradient_bound / GRADIENT_TICKS
        noise = math.sqrt(spec.n * variance) * raw * tick
        stray = 2 * spec.n * math.sqrt(releases * variance) * tick  # Lemma C6b
        floor = spec.rounds * math.sqrt(spec.n) * spec.radius * tick
        return _tuned(spec, copies, releases + 1, noise, stray, floor)

    return _least(spec, plan_for, copies, releases)


def gamma_noise(spec: Spec, epsilon: float, copies: int, releases: int) -> tuple[int, float]:
    """How many nodes make up a running sum at most, and the scale of the noise in each: sensitivity sqrt(2) G."""
    levels = releases.bit_length()
    return levels, node_scale(levels, math.sqrt(2) * spec.gradient_bound, epsilon / copies)


def tick_clip(copies: int) -> Clip:
    """All copies' gradients together, in units of G: length at most sqrt(K), and a tick so that rounding cuts none."""
    return Clip(
        bound=(math.ceil(math.sqrt(copies) * GRADIENT_TICKS) + 1) / GRADIENT_TICKS, ticks=GRADIENT_TICKS
    )


@cache
def _strategy(releases: int) -> tuple[int, float]:
    strategy = SqrtToeplitz(releases)
    return strategy.square, strategy.variance(releases)


def _tuned(
    spec: Spec, copies: int, batches: int, noise: float = 0.0, stray: float = 0.0, floor: float = 0.0
) -> FrankWolfePlan:
    schedule = equal(spec.rounds, batches)
    rate = noisy_leader.best_rate(spec.spread, spec.gradient_bound, schedule.sizes, stray)
    return FrankWolfePlan(copies, schedule, "ftrl", rate, noise, stray, floor)


def _least(
    spec: Spec, plan_for: Callable[[int, int], FrankWolfePlan], copies: int | None, releases: int | None
) -> FrankWolfePlan:
    """The plan with the least bound, where copies or releases are left open."""
    some = _grid(MOST_COPIES) if copies is None else [_validate.positive_int(copies, "copies")]
    if releases is None:
        most = min(spec.rounds - 1, MOST_RELEASES)
        often: Iterable[int] = {most} | {(1 << j) - 1 for j in range(1, most.bit_length())}
    else:
        often = [_validate.whole(releases, 1, spec.rounds - 1, "releases")]
    plans = (plan_for(k, count) for k in some for count in sorted(often))
    return min(plans, key=lambda plan: plan.bound(spec))


def _grid(most: int) -> list[int]:
    """1, 2, 3, .. and then ever further apart, by a tenth."""
    result = [1]
    while result[-1] < most:
        result.append(min(most, max(result[-1] + 1, math.floor(result[-1] * 1.1))))
    return result


def printed_regret(
    n: int, rounds: int, epsilon: float, gradient: float, radius: float, diameter: float, smoothness: float
) -> float:
    """The paper's Lemma 5, its constant taken as 1."""
    log = math.log(rounds) ** 1.25
    size = gradient + math.sqrt(n / (epsilon * rounds**0.75)) * log**2 * diameter
    return float(rounds**0.75 * log * (math.sqrt(n) * size**2 / epsilon + smoothness * radius**2))
