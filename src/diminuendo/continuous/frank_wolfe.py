r"""Online Frank-Wolfe for monotone DR-submodular functions: Algorithm 4, with and without privacy.

K copies of an online linear maximiser each propose a point; their mean x is played. Copy j learns from the gradient at
x^j, the mean with only the copies before it counted: where a slow climb from 0 to x stands after j of K steps.

    learner = MetaFrankWolfe(domain, rounds=10_000, gradient_bound=1.0, smoothness=0.5, noise="gaussian")
    decision = learner.choose()
    learner.observe(decision, objective)       # late, twice or never: nothing visible happens

Regret     `bound()`: against (1 - 1/e) of the best fixed point, expected, for a stream that does not react to what is
           played (docs/maths/continuous.md, Theorems C3, C5, C6).
Guarantee  noise=None: none. "gaussian": (epsilon, delta), exact whole-number arithmetic, all copies released together
           (Theorem C2). "gamma": (epsilon, 0), each copy epsilon / K, proved for real arithmetic only (Theorem C1).
Assumes    gradient_bound, smoothness and the horizon are public; nothing is tuned on the users it protects. Objectives
           may be anything: what they say is cut to size.
Excludes   timing, and the memory of the process.
Readable   paper/algorithms.py, `continuous` and `meta_frank_wolfe`: the same points from the same words.
References Perez-Salazar & Cummings (2021), AISTATS, Algorithm 4; Chen, Hassani & Karbasi (2018), AISTATS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from diminuendo import _validate
from diminuendo.continuous import frank_wolfe_plan
from diminuendo.continuous.domains import Domain
from diminuendo.continuous.gradient_sums import GammaSums, GradientSums, OpenSums, TickSums
from diminuendo.continuous.learner import PointLearner
from diminuendo.errors import InvalidInput
from diminuendo.experts.noisy_leader import ftrl_points, pftal_points
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.sources import RandomSource
from diminuendo.types import Floats

NoiseKind = Literal["gamma", "gaussian"]


@dataclass(frozen=True)
class Claim:
    """What the paper says of Algorithm 4 with these parameters, its constant taken as 1.

    Attributes
    ----------
    epsilon, delta : float
        The privacy that it claims.
    regret : float
        The regret that it claims.
    """

    epsilon: float
    delta: float
    regret: float


class MetaFrankWolfe(PointLearner):
    """Algorithm 4: K copies of an online linear maximiser climb a DR-submodular function together.

    To read it: `paper.algorithms.continuous` and `meta_frank_wolfe`. `BoostedAscent` is what we recommend.

    Parameters
    ----------
    domain : Domain
        Points that may be played.
    rounds : int
        Horizon.
    gradient_bound : float
        No gradient is longer; gradients that are longer are clipped. Public.
    smoothness : float
        Lipschitz constant of gradients. Public.
    noise : {"gaussian", "gamma"}, optional
        None: not private.
    calibration : {"tight", "paper"}, default "tight"
        "paper": as printed, with Gamma-norm noise, its own number of copies and a release after every round.
    epsilon : float, default 1.0
        Privacy budget.
    delta : float, default 1e-6
        For Gaussian noise.
    copies, releases : int, optional
        By default those with the least proved bound.
    ledger : Ledger, optional
        Charged when the learner is made. By default one in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    name : str, default "frank-wolfe"
        Name of the releases in the ledger.

    Raises
    ------
    InvalidInput
        If arguments do not go together.
    OverBudget
        If the ledger cannot pay.

    Notes
    -----
    Replacing one round: "gaussian" is (epsilon, delta)-DP in exact integer arithmetic, all copies released together
    (Theorem C2 of docs/maths/continuous.md). "gamma" is (epsilon, 0)-DP in real arithmetic only (Theorem C1); it is
    drawn in floats. Regret is Theorems C3, C5 and C6.

    References
    ----------
    Perez-Salazar & Cummings (2021), AISTATS, Algorithm 4. Chen, Hassani & Karbasi (2018), Online continuous
    submodular maximization, AISTATS.

    Examples
    --------
    >>> from diminuendo import SeededSource
    >>> from diminuendo.continuous import Box, ConcaveOfLinear, MetaFrankWolfe
    >>> learner = MetaFrankWolfe(
    ...     Box([1.0, 1.0]), 100, gradient_bound=1.0, smoothness=1.0, noise="gaussian", rng=SeededSource(1)
    ... )
    >>> learner.observe(learner.choose(), ConcaveOfLinear([0.5, 0.25]))
    >>> round(learner.guarantee.epsilon, 6), learner.guarantee.delta, learner.guarantee.proof
    (1.0, 1e-06, 'docs/maths/continuous.md, Theorem C2')
    """

    plan: frank_wolfe_plan.FrankWolfePlan
    _kinds = ("gamma", "gaussian")

    def __init__(
        self,
        domain: Domain,
        rounds: int,
        *,
        gradient_bound: float,
        smoothness: float,
        noise: NoiseKind | None = None,
        calibration: Literal["tight", "paper"] = "tight",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        copies: int | None = None,
        releases: int | None = None,
        ledger: Ledger | None = None,
        rng: RandomSource | None = None,
        name: str = "frank-wolfe",
    ) -> None:
        super().__init__(
            domain, rounds, gradient_bound, smoothness, noise, epsilon, delta, releases, ledger, rng
        )
        self.calibration = _validate.one_of(calibration, ("tight", "paper"), "calibration")
        if calibration == "paper" and (noise != "gamma" or copies or releases):
            raise InvalidInput(
                "calibration='paper' is Algorithm 4 as printed: noise='gamma', its own number of copies, "
                "a release after every round. Leave copies and releases out."
            )
        self._open(self._planned(copies, releases, ledger, name), self.plan.copies)

    def _planned(
        self, copies: int | None, releases: int | None, ledger: Ledger | None, name: str
    ) -> GradientSums:
        """Make the plan; the sums that it wants, paid for."""
        if self.noise is None:
            self.plan = frank_wolfe_plan.open_plan(self.spec, copies)
            return OpenSums(self.spec, self.plan.copies)
        if self.noise == "gamma":
            self._theorem, self._budget = "Theorem C1", Budget(self.epsilon, 0.0, self._unit, "pure")
        else:
            self._theorem, self._budget = "Theorem C2", Budget(self.epsilon, self.delta, self._unit)
        paid, cost = ledger or Ledger(self._budget), self._budget.share()
        if isinstance(cost, Laplace):
            if self.calibration == "paper":
                self.plan = frank_wolfe_plan.paper_plan(self.spec, cost.epsilon)
            else:
                self.plan = frank_wolfe_plan.gamma_plan(self.spec, cost.epsilon, copies, releases)
            return GammaSums(
                self.spec, self.plan, cost.epsilon, paid, name, padded=self.calibration == "tight"
            )
        self.plan = frank_wolfe_plan.gaussian_plan(self.spec, cast(Gaussian, cost).rho, copies, releases)
        return TickSums(self.spec, self.plan.copies, self.plan.schedule, cost, paid, name, "sqrt-toeplitz")

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it runs with."""
        plan = self.plan
        return {
            "copies": plan.copies,
            "releases": plan.releases,
            "leader": plan.leader,
            "eta" if plan.leader == "ftrl" else "H": plan.parameter,
        }

    @property
    def claim(self) -> Claim | None:
        """What the paper claims, for Gamma-norm noise only. The diameter is taken as sqrt(2) * radius, its maximum."""
        if self.noise != "gamma":
            return None
        spec, radius = self.spec, self.spec.radius
        size = spec.gradient_bound, radius, math.sqrt(2) * radius, spec.smoothness
        regret = frank_wolfe_plan.printed_regret(spec.n, spec.rounds, self.epsilon, *size)
        return Claim(self.epsilon, 0.0, regret)

    def _follow(self, sums: Floats, rounds: int) -> None:
        """Each copy proposes a point."""
        if self.plan.leader == "ftrl":
            self._aim(ftrl_points(self._project, sums, self.plan.parameter, self.domain.centre))
        else:
            self._aim(pftal_points(self._project, sums, self.plan.parameter, rounds) if rounds else sums)

    def _played(self, vertices: Floats) -> Floats:
        climbed = np.cumsum(vertices, axis=0) / len(vertices)
        self._probes = np.vstack([np.zeros((1, self.domain.n)), climbed[:-1]])
        return np.asarray(climbed[-1])

    def _asked(self, place: int) -> Floats:
        return self._probes.copy()
