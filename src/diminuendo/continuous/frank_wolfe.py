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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from diminuendo import _validate
from diminuendo.continuous import plan as plans
from diminuendo.continuous.domains import FAR, Domain
from diminuendo.continuous.gradient_sums import GammaSums, GaussianSums, GradientSums, OpenSums
from diminuendo.continuous.objectives import DRObjective
from diminuendo.continuous.plan import Facts
from diminuendo.errors import InvalidInput, WrongFeedback
from diminuendo.experts.pftal import ftrl_points, pftal_points
from diminuendo.privacy.budget import Budget, Guarantee, Unit, no_privacy
from diminuendo.privacy.custody import Custody, refuse_copies
from diminuendo.privacy.events import Event, Gaussian, Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins, SystemCoins
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.types import Floats

Noise = Literal["gamma", "gaussian"]


@dataclass(frozen=True, slots=True, eq=False)
class PointDecision:
    """What `choose` returns: the point to play, and the ticket with which to answer."""

    round: int
    """Counts from 0."""
    point: Floats = field(repr=False)
    """(n,) read-only."""


@dataclass(frozen=True)
class Claim:
    """What the paper says of Algorithm 4 with these parameters, its constant taken as 1."""

    epsilon: float
    delta: float
    regret: float


class MetaFrankWolfe:
    """K copies of an online linear maximiser over `domain`, for `rounds` rounds."""

    def __init__(
        self,
        domain: Domain,
        rounds: int,
        *,
        gradient_bound: float,
        smoothness: float,
        noise: Noise | None = None,
        calibration: Literal["tight", "paper"] = "tight",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        copies: int | None = None,
        releases: int | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        name: str = "frank-wolfe",
    ) -> None:
        if not isinstance(domain, Domain):
            raise InvalidInput(f"domain must be a Domain such as Box([1.0, 1.0]); got {domain!r}.")
        _validate.one_of(noise, (None, "gamma", "gaussian"), "noise")
        _validate.one_of(calibration, ("tight", "paper"), "calibration")
        self.domain, self.noise, self.calibration = domain, noise, calibration
        self.facts = Facts(domain.n, rounds, domain.radius, domain.spread, gradient_bound, smoothness)
        self.epsilon, self.delta = _validate.positive_float(epsilon, "epsilon"), _validate.delta(delta)
        self.coins: Coins = SystemCoins() if coins is None else coins
        self._secret, self._custody = SecretRandomness(self.coins), Custody()
        self._unit = Unit() if ledger is None else ledger.budget.unit
        self._sums = self._made(copies, releases, ledger, name)
        self._starts = (0, *self.plan.schedule.ends)
        self._issued = np.zeros(1, dtype=np.int64)
        self._answered = np.zeros(max(self.plan.schedule.sizes), dtype=np.bool_)  # in the open batch
        self._aim(self._leaders(np.zeros((self.plan.copies, domain.n)), 0))

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
            self.plan = plans.open_plan(
                self.facts, copies if copies is None else _validate.positive_int(copies, "copies")
            )
            return OpenSums(self.facts, self.plan)
        if self.noise == "gamma":
            budget = Budget(self.epsilon, 0.0, self._unit, "pure")
            each = cast(Laplace, budget.share()).epsilon
            if self.calibration == "paper":
                self.plan = plans.paper_plan(self.facts, each)
            else:
                self.plan = plans.gamma_plan(self.facts, each, copies, releases)
            paid = Ledger(budget) if ledger is None else ledger
            return GammaSums(self.facts, self.plan, each, paid, name, padded=self.calibration == "tight")
        budget = Budget(self.epsilon, self.delta, self._unit)
        cost = cast(Gaussian, budget.share())
        self.plan = plans.gaussian_plan(self.facts, cost.rho, copies, releases)
        return GaussianSums(self.facts, self.plan, cost, Ledger(budget) if ledger is None else ledger, name)

    def __repr__(self) -> str:
        how = "not private" if self.noise is None else f"{self.noise} noise"
        return (
            f"<MetaFrankWolfe: {self.plan.copies} copies on {self.domain.n} entries, {how}, "
            f"{self.rounds} of {self.facts.rounds} rounds>"
        )

    @property
    def rounds(self) -> int:
        """How many decisions were made so far."""
        return int(self._issued[0])

    @property
    def event(self) -> Event | None:
        """What the whole run costs; paid for when the learner was made."""
        return self._sums.event

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
        return Claim(self.epsilon, 0.0, plans.printed_regret(self.facts, self.epsilon))

    def bound(self) -> float:
        """No more than this is, in expectation, (1 - 1/e) of the best fixed point's payoff minus ours."""
        return self.plan.bound(self.facts)

    def choose(self) -> PointDecision:
        """The point for the next person. Batches close here and nowhere else."""
        with self._custody.lock:
            return self._next()

    def _next(self) -> PointDecision:
        self._admit(1)
        closed = self.plan.schedule.closed_by(self.rounds)
        if self._sums.released < closed:
            self._aim(self._leaders(self._sums.release(self._secret), self._starts[closed]))
            self._answered[:] = False
        number = self.rounds
        self._issued[0] = number + 1
        return PointDecision(number, self._point)

    def observe(self, decision: PointDecision, objective: DRObjective) -> None:
        """What the person feels about points. Late and second answers change nothing, and look the same."""
        if not callable(getattr(objective, "gradients", None)):
            raise WrongFeedback(
                "Expected an objective with gradients(points), as in diminuendo.continuous; "
                f"got {type(objective).__name__}."
            )
        if self._place(decision) is None:
            return
        try:
            said = np.asarray(objective.gradients(self._probes.copy()), dtype=np.float64)
        except Exception:  # whatever goes wrong inside, it is what this person said: nothing
            said = np.zeros(0)
        with self._custody.lock:
            place = self._place(decision)  # asked again: an objective is foreign code
            if place is None:
                return
            self._answered[place] = True
            if said.shape == self._probes.shape and self._sums.released < self.plan.releases:
                self._sums.add(said)

    def replay(self, objectives: Sequence[DRObjective]) -> Floats:
        """Choose and observe for all of them; returns the points, (rounds, n)."""
        self._admit(len(objectives))
        points = np.empty((len(objectives), self.domain.n))
        for t, objective in enumerate(objectives):
            decision = self.choose()
            points[t] = decision.point
            self.observe(decision, objective)
        return points

    def __getstate__(self) -> dict[str, Any]:
        raise refuse_copies(self)

    def _admit(self, rounds: int) -> None:
        self._custody.check()
        if self.rounds + rounds > self.facts.rounds:
            raise InvalidInput(
                f"This learner was made for {self.facts.rounds} rounds; {self.rounds} are over and {rounds} more "
                "were asked for. Make another one."
            )

    def _place(self, decision: PointDecision) -> int | None:
        """Where in the open batch a decision lies that may still be answered."""
        if not 0 <= decision.round < self.rounds:
            raise InvalidInput(
                f"Round {decision.round} was never chosen here ({self.rounds} rounds so far). "
                "Answer with the decision that choose() returned, to the learner that returned it."
            )
        place = decision.round - self._starts[self._sums.released]
        if place < 0:
            return None
        if not np.array_equal(decision.point, self._point):
            raise InvalidInput(
                f"Round {decision.round} played another point. Answer with the decision that choose() returned, "
                "to the learner that returned it."
            )
        return None if self._answered[place] else place

    def _leaders(self, sums: Floats, rounds: int) -> Floats:
        """What each copy proposes after so many rounds."""

        def project(rows: Floats) -> Floats:
            return self.domain.project(np.clip(rows, -FAR, FAR))

        if self.plan.leader == "ftrl":
            return ftrl_points(project, sums, self.plan.parameter, self.domain.centre)
        return pftal_points(project, sums, self.plan.parameter, rounds) if rounds else sums

    def _aim(self, vertices: Floats) -> None:
        """From the copies' points follow the point to play and the points to ask about."""
        self._vertices = vertices
        climbed = np.cumsum(vertices, axis=0) / len(vertices)
        self._probes = np.vstack([np.zeros((1, self.domain.n)), climbed[:-1]])
        self._point = climbed[-1].copy()
        self._point.flags.writeable = False

    def snapshot(self) -> bytes:
        """All that was learned, without any randomness. As private as what people said."""
        sums = np.frombuffer(self._sums.snapshot(), dtype=np.uint8)
        return snapshots.packed(self._facts(), [self._issued, self._answered, self._vertices, sums])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a learner that was made with the same arguments.

        With the same ledger, releases that were made since are published as they were. To go on with another ledger
        from a snapshot that somebody else goes on from too is a second run, which nobody paid for.
        """
        found = snapshots.read(snapshot, self._facts())
        mine = [self._issued, self._answered, self._vertices]
        if [(a.shape, a.dtype) for a in found[:-1]] != [(a.shape, a.dtype) for a in mine]:
            raise InvalidInput("The snapshot does not fit; it was cut short or altered.")
        issued, answered, vertices, sums = found
        if not (0 <= issued[0] <= self.facts.rounds and np.isfinite(vertices).all()):
            raise InvalidInput("The snapshot is of rounds that there are not; it was altered.")
        self._sums.restore(sums.tobytes())
        self._issued[:], self._answered[:] = issued, answered
        self._aim(vertices)

    def _facts(self) -> dict[str, str]:
        shape = {key: np.asarray(value).tolist() for key, value in vars(self.domain).items()}
        return {"learner": repr((type(self.domain).__name__, shape, self.facts, self.plan, self.noise))}
