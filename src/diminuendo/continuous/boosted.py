r"""Boosted ascent: one gradient per user, one leader, (1 - 1/e) of the best. What we recommend beside Algorithm 4.

A round plays x. Public randomness says how far on the way from 0 to x the user is asked for a gradient: at z x, where z
in [0, 1] has density e^z / (e - 1). Times (1 - 1/e) that is, in expectation, the gradient at x of another function,
whose uphill directions lead to (1 - 1/e) of the best from everywhere. The leader follows sums of it (FTRL).

    learner = BoostedAscent(domain, rounds=10_000, gradient_bound=1.0, noise="gaussian")
    decision = learner.choose()
    learner.observe(decision, objective)       # late, twice or never: nothing visible happens

Gradients are published batch by batch, each with noise of its own: a user is in one batch, so any number of releases
costs what one does. Running sums with less noise exist, but gradients depend on the point, hence on noise in it, and
what is proved of such sums is then no better (docs/maths/continuous.md, after Theorem C10).

With batches of B rounds, noise of mean square v in every release, T rounds in all, D and G as in frank_wolfe_plan.py,
and the best rate eta, the proved bound (Theorem C10) is

    (1 - 1/e) best - reward  <=  (1 - 1/e) D sqrt(G^2 sum of B^2 + v (number of releases))  +  what ticks cut off .

Batches of q rounds are best where q is about sqrt(v)/G: when noise is as long as what a batch can say. Longer ones make
users wait, shorter ones add up noise. That does not depend on T.

Regret     `bound()`: against (1 - 1/e) of every fixed point, expected, also if users react to what is played (Theorem
           C10). Needs no smoothness.
Guarantee  noise=None: none. "gaussian": (epsilon, delta); "laplace": (epsilon, 0). Both in exact whole-number
           arithmetic (Theorem C9).
Assumes    gradient_bound and the horizon are public; nothing is tuned on the users it protects. Objectives may be
           anything: what they say is cut to size.
Excludes   timing, and the memory of the process.
References Zhang et al. (2022), ICML, boosting via non-oblivious function; Agarwal & Singh (2017), ICML, for FTRL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.continuous.domains import Domain
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, Spec, tick_clip
from diminuendo.continuous.gradient_sums import GradientSums, OpenSums, TickSums
from diminuendo.continuous.learner import PointLearner
from diminuendo.experts.noisy_leader import ftrl_points
from diminuendo.privacy import calibrate
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise as noise_laws
from diminuendo.randomness.sources import RandomSource
from diminuendo.sums.schedule import Schedule, equal
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats

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

    def bound(self, spec: Spec) -> float:
        """The proved bound on the expected (1 - 1/e)-regret."""
        squares = ONE_MINUS_1_OVER_E**2 * _squares(spec, len(self.schedule), self.square)
        return spec.spread**2 / (2 * self.rate) + self.rate / 2 * squares + self.floor


def boosted_plan(spec: Spec, cost: Cost | None, releases: int | None = None) -> BoostedPlan:
    """The plan with the least bound; without a cost there is no noise, and a release after every round."""
    if cost is None:
        return _tuned(spec, spec.rounds, 0.0, 0.0)
    square = noise_square(spec, cost)
    cut_off = math.sqrt(spec.n) * spec.radius * spec.gradient_bound / GRADIENT_TICKS
    floor = ONE_MINUS_1_OVER_E * spec.rounds * cut_off
    if releases is not None:
        batches = _validate.whole(releases, 1, spec.rounds - 1, "releases") + 1
    else:
        # Over whole m the squares are convex, with a kink at T / q for every whole q: the least is beside one.
        wanted = spec.rounds / best_size(math.sqrt(square) / spec.gradient_bound)
        near = {min(spec.rounds, max(2, whole)) for whole in (math.floor(wanted), math.ceil(wanted))}
        batches = min(sorted(near), key=lambda count: _squares(spec, count, square))
    return _tuned(spec, batches, square, floor)


def best_size(ratio: float) -> int:
    """The whole q with q (q - 1) <= ratio^2 <= q (q + 1)."""
    return max(1, math.ceil(math.sqrt(ratio * ratio + 0.25) - 0.5))


def noise_square(spec: Spec, cost: Cost) -> float:
    """At least the mean square length of the noise of a release, n numbers, each batch by itself (Theorem C9)."""
    clip, n = tick_clip(1), spec.n
    if isinstance(cost, Laplace):
        scale = noise_laws.checked_scale(calibrate.laplace_scale(cost.epsilon, clip.sensitivity(n)), "scale")
        entry = math.sqrt(2) * scale
    else:
        rho = Fraction(cost.rho) if isinstance(cost, Gaussian) else Fraction(cost.mu) ** 2 / 2
        entry = noise_laws.checked_scale(calibrate.gaussian_sigma(rho, clip.sensitivity_squared(n)), "sigma")
        entry += 0.0 if isinstance(cost, Gaussian) else 0.5  # rounding moves a number by no more
    return n * (entry * spec.gradient_bound / GRADIENT_TICKS) ** 2


def _tuned(spec: Spec, batches: int, square: float, floor: float) -> BoostedPlan:
    rate = spec.spread / (ONE_MINUS_1_OVER_E * math.sqrt(_squares(spec, batches, square)))
    return BoostedPlan(equal(spec.rounds, batches), rate, square, floor)


def _squares(spec: Spec, batches: int, square: float) -> float:
    """G^2 times the sum of squared sizes of `batches` nearly equal batches, and the noise of all but the last."""
    size, longer = divmod(spec.rounds, batches)
    sizes = longer * (size + 1) ** 2 + (batches - longer) * size**2
    return spec.gradient_bound**2 * sizes + (batches - 1) * square


class BoostedAscent(PointLearner):
    """Boosted ascent: one gradient per user, one leader. The learner of points that we recommend.

    Parameters
    ----------
    domain : Domain
        Points that may be played.
    rounds : int
        Horizon.
    gradient_bound : float
        No gradient is longer; gradients that are longer are clipped. Public.
    noise : {"gaussian", "laplace"}, optional
        None: not private.
    epsilon : float, default 1.0
        Privacy budget.
    delta : float, default 1e-6
        For Gaussian noise.
    releases : int, optional
        Number of releases. By default the number with the least proved bound.
    ledger : Ledger, optional
        Charged when the learner is made. By default one in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    name : str, default "boosted-ascent"
        Name of the releases in the ledger.

    Raises
    ------
    InvalidInput
        If arguments do not go together.
    OverBudget
        If the ledger cannot pay.

    Notes
    -----
    Replacing one round: (epsilon, delta)-DP with Gaussian and (epsilon, 0)-DP with Laplace noise, both in exact
    integer arithmetic (Theorem C9 of docs/maths/continuous.md). Regret is Theorem C10; it holds also if users react
    to what is played, and needs no smoothness.

    References
    ----------
    Zhang et al. (2022), Stochastic continuous submodular maximization: boosting via non-oblivious function, ICML.
    Agarwal & Singh (2017), The price of differential privacy for online learning, ICML.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.continuous import BoostedAscent, CappedSimplex, multilinear
    >>> import diminuendo as dim
    >>> learner = BoostedAscent(
    ...     CappedSimplex(3, total=2), 1_000, gradient_bound=1.0, noise="laplace", rng=SeededSource(1)
    ... )
    >>> decision = learner.choose()
    >>> learner.observe(decision, multilinear(dim.user(dim.NoisyOr(), {0: 0.5}, n_items=3)))
    >>> decision.point.round(3).tolist(), learner.guarantee.delta, learner.guarantee.proof
    ([0.5, 0.5, 0.5], 0.0, 'docs/maths/continuous.md, Theorem C9')
    """

    plan: BoostedPlan
    _kinds = ("gaussian", "laplace")
    _theorem = "Theorem C9"

    def __init__(
        self,
        domain: Domain,
        rounds: int,
        *,
        gradient_bound: float,
        noise: Literal["gaussian", "laplace"] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        releases: int | None = None,
        ledger: Ledger | None = None,
        rng: RandomSource | None = None,
        name: str = "boosted-ascent",
    ) -> None:
        super().__init__(domain, rounds, gradient_bound, 0.0, noise, epsilon, delta, releases, ledger, rng)
        sums = self._planned(releases, ledger, name)
        # Of the open batch: where on the way users are asked.
        self._parts = np.zeros(max(self.schedule.sizes))
        self._open(sums, copies=1)

    def _planned(self, releases: int | None, ledger: Ledger | None, name: str) -> GradientSums:
        """Make the plan; the sums that it wants, paid for."""
        if self.noise is None:
            self.plan = boosted_plan(self.spec, None)
            return OpenSums(self.spec, copies=1)
        if self.noise == "laplace":
            self._budget = Budget(self.epsilon, 0.0, self._unit, "pure")
        elif ledger is None or ledger.budget.accountant == "continuous-gaussian":
            self._budget = Budget(self.epsilon, self.delta, self._unit, "continuous-gaussian")
        else:
            self._budget = Budget(self.epsilon, self.delta, self._unit)
        cost = self._budget.share()
        self.plan = boosted_plan(self.spec, cost, releases)
        return TickSums(
            self.spec, 1, self.schedule, cost, ledger or Ledger(self._budget), name, "independent"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it runs with."""
        return {"releases": self.plan.releases, "eta": self.plan.rate}

    def _follow(self, sums: Floats, rounds: int) -> None:
        self._aim(ftrl_points(self._project, ONE_MINUS_1_OVER_E * sums, self.plan.rate, self.domain.centre))

    def _played(self, vertices: Floats) -> Floats:
        return np.asarray(vertices[0])

    def _toss(self, place: int) -> None:
        self._parts[place] = part_of_the_way(int(self.rng.public(1)[0]))

    def _asked(self, place: int) -> Floats:
        return np.asarray(self._parts[place] * self._vertices)

    def _arrays(self) -> list[NDArray[Any]]:
        return [*super()._arrays(), self._parts]


def part_of_the_way(word: int) -> float:
    """z = log(1 + u (e - 1)), whose density on [0, 1] is e^z / (e - 1), from the 53 highest bits of a word."""
    u = ((word >> 11) + 0.5) / (1 << 53)
    return math.log1p(u * (math.e - 1))
