r"""Boosted ascent: one gradient per person, one leader, (1 - 1/e) of the best. What we recommend beside Algorithm 4.

A round plays x. A public coin says how far on the way from 0 to x the person is asked for her gradient: at z x, where z
in [0, 1] has density e^z / (e - 1). Times (1 - 1/e) that is, in expectation, the gradient at x of another function,
whose uphill directions lead to (1 - 1/e) of the best from everywhere. The leader follows sums of it (FTRL).

    learner = BoostedAscent(domain, rounds=10_000, gradient_bound=1.0, noise="gaussian")
    decision = learner.choose()
    learner.observe(decision, objective)       # late, twice or never: nothing visible happens

Gradients are published batch by batch, each with noise of its own: a person is in one batch, so any number of releases
costs what one does. Running sums with less noise exist, but gradients depend on the point, hence on noise in it, and
what is proved of such sums is then no better (docs/maths/continuous.md, after Theorem C10).

Regret     `bound()`: against (1 - 1/e) of every fixed point, expected, also if people react to what is played (Theorem
           C10). Needs no smoothness.
Guarantee  noise=None: none. "gaussian": (epsilon, delta); "laplace": (epsilon, 0). Both in exact whole-number
           arithmetic (Theorem C9).
Assumes    gradient_bound and the horizon are public; nothing is tuned on the people it protects. Objectives may be
           anything: what they say is cut to size.
Excludes   timing, and the memory of the process.
References Zhang et al. (2022), ICML, boosting via non-oblivious function; Agarwal & Singh (2017), ICML, for FTRL.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from diminuendo import _validate
from diminuendo.continuous.boosted_plan import BoostedPlan, boosted_plan
from diminuendo.continuous.domains import Domain
from diminuendo.continuous.frank_wolfe_plan import Facts
from diminuendo.continuous.gradient_sums import GradientSums, OpenSums, TickSums
from diminuendo.continuous.learner import PointLearner
from diminuendo.errors import InvalidInput
from diminuendo.experts.noisy_leader import ftrl_points
from diminuendo.privacy.budget import Budget, Guarantee, no_privacy
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats


class BoostedAscent(PointLearner):
    """One leader over `domain`, for `rounds` rounds, fed with one gradient per person."""

    plan: BoostedPlan

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
        coins: Coins | None = None,
        name: str = "boosted-ascent",
    ) -> None:
        super().__init__(domain, coins, ledger)
        _validate.one_of(noise, (None, "gaussian", "laplace"), "noise")
        self.noise = noise
        self.facts = Facts(domain.n, rounds, domain.radius, domain.spread, gradient_bound, smoothness=0.0)
        self.epsilon, self.delta = _validate.positive_float(epsilon, "epsilon"), _validate.delta(delta)
        self._sums = self._made(releases, ledger, name)
        self._parts = np.zeros(
            max(self.schedule.sizes)
        )  # of the open batch: where on the way people are asked
        self._open()

    def _made(self, releases: int | None, ledger: Ledger | None, name: str) -> GradientSums:
        if self.noise is None:
            if ledger is not None or releases is not None:
                raise InvalidInput("Without noise there are no releases to pay for; choose noise='gaussian'.")
            self.plan = boosted_plan(self.facts, None)
            return OpenSums(self.facts, copies=1)
        if self.noise == "laplace":
            self._budget = Budget(self.epsilon, 0.0, self._unit, "pure")
        elif ledger is None or ledger.budget.accountant == "continuous-gaussian":
            self._budget = Budget(self.epsilon, self.delta, self._unit, "continuous-gaussian")
        else:
            self._budget = Budget(self.epsilon, self.delta, self._unit)
        cost = self._budget.share()
        self.plan = boosted_plan(self.facts, cost, releases)
        paid = Ledger(self._budget) if ledger is None else ledger
        return TickSums(self.facts, 1, self.schedule, cost, paid, name, "independent")

    def __repr__(self) -> str:
        how = "not private" if self.noise is None else f"{self.noise} noise"
        return (
            f"<BoostedAscent on {self.domain.n} entries, {how}, {self.rounds} of {self.facts.rounds} rounds>"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it runs with."""
        return {"releases": self.plan.releases, "eta": self.plan.rate}

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about everything this learner lets out."""
        if self.event is None:
            return no_privacy(self.coins.secure)
        budget = self._budget
        worth = min(self.epsilon, budget.counting.epsilon(self.event, budget.delta, self._unit.rounds))
        proof = "docs/maths/continuous.md, Theorem C9"
        return Guarantee(worth, budget.delta, str(self._unit), proof, self.coins.secure)

    def bound(self) -> float:
        """No more than this is, in expectation, (1 - 1/e) of a fixed point's payoff minus ours."""
        return self.plan.bound(self.facts)

    @property
    def _copies(self) -> int:
        return 1

    def _follow(self, sums: Floats, rounds: int) -> None:
        self._aim(ftrl_points(self._project, ONE_MINUS_1_OVER_E * sums, self.plan.rate, self.domain.centre))

    def _aim(self, vertices: Floats) -> None:
        self._vertices = vertices
        self._play(vertices[0])

    def _toss(self, place: int) -> None:
        self._parts[place] = part_of_the_way(int(self.coins.public(1)[0]))

    def _asked(self, place: int) -> Floats:
        return np.asarray(self._parts[place] * self._vertices)

    def _learned(self) -> list[Any]:
        return [self._vertices, self._parts]


def part_of_the_way(word: int) -> float:
    """z = log(1 + u (e - 1)), whose density on [0, 1] is e^z / (e - 1), from the 53 highest bits of a word."""
    u = ((word >> 11) + 0.5) / (1 << 53)
    return math.log1p(u * (math.e - 1))
