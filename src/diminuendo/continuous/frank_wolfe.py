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
Assumes    gradient_bound, smoothness and the horizon are public; nothing is tuned on the people it protects. Objectives
           may be anything: what they say is cut to size.
Excludes   timing, and the memory of the process.
References Perez-Salazar & Cummings (2021), AISTATS, Algorithm 4; Chen, Hassani & Karbasi (2018), AISTATS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from diminuendo import _validate
from diminuendo.continuous import frank_wolfe_plan
from diminuendo.continuous.domains import Domain
from diminuendo.continuous.frank_wolfe_plan import Facts
from diminuendo.continuous.gradient_sums import GammaSums, GradientSums, OpenSums, TickSums
from diminuendo.continuous.learner import PointLearner
from diminuendo.errors import InvalidInput
from diminuendo.experts.noisy_leader import ftrl_points, pftal_points
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.types import Floats

NoiseKind = Literal["gamma", "gaussian"]


@dataclass(frozen=True)
class Claim:
    """What the paper says of Algorithm 4 with these parameters, its constant taken as 1."""

    epsilon: float
    delta: float
    regret: float


class MetaFrankWolfe(PointLearner):
    """K copies of an online linear maximiser over `domain`, for `rounds` rounds."""

    plan: frank_wolfe_plan.FrankWolfePlan

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
        coins: Coins | None = None,
        name: str = "frank-wolfe",
    ) -> None:
        super().__init__(domain, coins, ledger)
        _validate.one_of(noise, (None, "gamma", "gaussian"), "noise")
        _validate.one_of(calibration, ("tight", "paper"), "calibration")
        self.noise, self.calibration = noise, calibration
        self.facts = Facts(domain.n, rounds, domain.radius, domain.spread, gradient_bound, smoothness)
        self.epsilon, self.delta = _validate.positive_float(epsilon, "epsilon"), _validate.delta(delta)
        self._sums = self._made(copies, releases, ledger, name)
        self._open()

    def _made(
        self, copies: int | None, releases: int | None, ledger: Ledger | None, name: str
    ) -> GradientSums:
        if self.calibration == "paper" and (self.noise != "gamma" or copies or releases):
            raise InvalidInput(
                "calibration='paper' is Algorithm 4 as printed: noise='gamma', its own number of copies, "
                "a release after every round. Leave copies and releases out."
            )
        if self.noise is None:
            if ledger is not None or releases is not None:
                raise InvalidInput("Without noise there are no releases to pay for; choose noise='gaussian'.")
            self.plan = frank_wolfe_plan.open_plan(
                self.facts, copies if copies is None else _validate.positive_int(copies, "copies")
            )
            return OpenSums(self.facts, self.plan.copies)
        if self.noise == "gamma":
            budget = Budget(self.epsilon, 0.0, self._unit, "pure")
            each = cast(Laplace, budget.share()).epsilon
            if self.calibration == "paper":
                self.plan = frank_wolfe_plan.paper_plan(self.facts, each)
            else:
                self.plan = frank_wolfe_plan.gamma_plan(self.facts, each, copies, releases)
            paid = Ledger(budget) if ledger is None else ledger
            return GammaSums(self.facts, self.plan, each, paid, name, padded=self.calibration == "tight")
        budget = Budget(self.epsilon, self.delta, self._unit)
        cost = cast(Gaussian, budget.share())
        self.plan = frank_wolfe_plan.gaussian_plan(self.facts, cost.rho, copies, releases)
        paid, plan = Ledger(budget) if ledger is None else ledger, self.plan
        return TickSums(self.facts, plan.copies, plan.schedule, cost, paid, name, "sqrt-toeplitz")

    def __repr__(self) -> str:
        how = "not private" if self.noise is None else f"{self.noise} noise"
        return (
            f"<MetaFrankWolfe: {self.plan.copies} copies on {self.domain.n} entries, {how}, "
            f"{self.rounds} of {self.facts.rounds} rounds>"
        )

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
    def guarantee(self) -> Guarantee:
        """What is proved about everything this learner lets out."""
        secure, whom = self.coins.secure, str(self._unit)
        if self.event is None:
            return no_privacy(secure)
        if self.noise == "gamma":
            proof = "docs/maths/continuous.md, Theorem C1"
            return Guarantee(self.epsilon, 0.0, whom, proof, secure, exact=False)
        counting = Budget(self.epsilon, self.delta, self._unit).counting
        worth = min(self.epsilon, counting.epsilon(self.event, self.delta, self._unit.rounds))
        return Guarantee(worth, self.delta, whom, "docs/maths/continuous.md, Theorem C2", secure)

    @property
    def claim(self) -> Claim | None:
        """What the paper claims, for pure privacy only. The diameter is taken as sqrt(2) radius, the most it can be."""
        if self.noise != "gamma":
            return None
        return Claim(self.epsilon, 0.0, frank_wolfe_plan.printed_regret(self.facts, self.epsilon))

    def bound(self) -> float:
        """No more than this is, in expectation, (1 - 1/e) of the best fixed point's payoff minus ours."""
        return self.plan.bound(self.facts)

    @property
    def _copies(self) -> int:
        return self.plan.copies

    def _follow(self, sums: Floats, rounds: int) -> None:
        """What each copy proposes after `rounds` rounds."""
        if self.plan.leader == "ftrl":
            leaders = ftrl_points(self._project, sums, self.plan.parameter, self.domain.centre)
        else:
            leaders = pftal_points(self._project, sums, self.plan.parameter, rounds) if rounds else sums
        self._aim(leaders)

    def _aim(self, vertices: Floats) -> None:
        """From the copies' points follow the point to play and the points to ask about."""
        self._vertices = vertices
        climbed = np.cumsum(vertices, axis=0) / len(vertices)
        self._probes = np.vstack([np.zeros((1, self.domain.n)), climbed[:-1]])
        self._play(climbed[-1])

    def _toss(self, place: int) -> None:
        """No coins: everybody of a batch is asked about the same points."""

    def _asked(self, place: int) -> Floats:
        return self._probes.copy()
