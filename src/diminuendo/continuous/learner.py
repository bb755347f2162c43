"""The rounds of learners that play points: choose, observe, replay, snapshots.

What is played follows from running sums of gradients alone. Points change only when sums are released, after batches of
rounds that are fixed beforehand; feedback counts until the batch of its round closes, which a later `choose` does. A
subclass defines at which points users are asked for gradients, and what is played when sums are released.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.continuous.domains import FARTHEST_POINT, Domain
from diminuendo.continuous.frank_wolfe_plan import Spec
from diminuendo.continuous.gradient_sums import GradientSums
from diminuendo.continuous.objectives import DRObjective
from diminuendo.errors import InvalidInput, WrongFeedback, refuse_copies
from diminuendo.privacy.budget import Budget, Guarantee, Unit, no_privacy
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard, call_untrusted
from diminuendo.randomness.sources import RandomSource, SystemSource
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class PointDecision:
    """What `choose` returns: the point to play, and the identity with which to report feedback.

    Attributes
    ----------
    round : int
        From 0.
    point : ndarray of float, shape (n,)
        Read-only.

    """

    round: int
    point: Floats = field(repr=False)


class PointLearner(ABC):
    """Base class of learners that play points of a domain, for a number of rounds that is fixed beforehand.

    See Also
    --------
    BoostedAscent, MetaFrankWolfe
    """

    plan: Any
    """Public, with a `schedule`, whose last batch is never released, and a `bound` on the regret."""
    _kinds: tuple[str, ...]
    """Of noise."""
    _theorem: str
    """Of docs/maths/continuous.md, what is proved about privacy."""
    _budget: Budget
    """Where there is noise."""

    def __init__(
        self,
        domain: Domain,
        rounds: int,
        gradient_bound: float,
        smoothness: float,
        noise: str | None,
        epsilon: float,
        delta: float,
        releases: int | None,
        ledger: Ledger | None,
        rng: RandomSource | None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise InvalidInput(f"domain must be a Domain such as Box([1.0, 1.0]); got {domain!r}.")
        self.domain = domain
        self.noise = _validate.one_of(noise, (None, *self._kinds), "noise")
        self.spec = Spec(domain.n, rounds, domain.radius, domain.spread, gradient_bound, smoothness)
        self.epsilon, self.delta = _validate.positive_float(epsilon, "epsilon"), _validate.delta(delta)
        if noise is None and (ledger is not None or releases is not None):
            raise InvalidInput("Without noise there are no releases to pay for; choose noise='gaussian'.")
        self.rng: RandomSource = SystemSource() if rng is None else rng
        self._secret, self._guard = SecretRandomness(self.rng), ProcessGuard()
        self._unit = Unit() if ledger is None else ledger.budget.unit
        self._issued = np.zeros(1, dtype=np.int64)

    def _open(self, sums: GradientSums, copies: int) -> None:
        """The plan is made and the sums, of `copies` gradients of each user, are paid for: the first point."""
        self._sums = sums
        self._starts = (0, *self.schedule.ends)
        self._answered = np.zeros(max(self.schedule.sizes), dtype=np.bool_)  # in the open batch
        self._follow(np.zeros((copies, self.domain.n)), 0)

    def __repr__(self) -> str:
        how = "not private" if self.noise is None else f"{self.noise} noise"
        copies = f": {len(self._vertices)} copies" if len(self._vertices) > 1 else ""
        rounds = f"{self.rounds} of {self.spec.rounds} rounds"
        return f"<{type(self).__name__}{copies} on {self.domain.n} entries, {how}, {rounds}>"

    @property
    def schedule(self) -> Schedule:
        """When points may change."""
        schedule: Schedule = self.plan.schedule
        return schedule

    @property
    def rounds(self) -> int:
        """The number of decisions so far."""
        return int(self._issued[0])

    @property
    def event(self) -> Event | None:
        """The cost of the whole run, charged when the learner was made; None without noise."""
        return self._sums.event

    @property
    def guarantee(self) -> Guarantee:
        """What is proved about everything that this learner publishes. `exact` is False for Gamma-norm noise."""
        if self.event is None:
            return no_privacy(self.rng.secure)
        exact, budget, proof = (
            self.noise != "gamma",
            self._budget,
            f"docs/maths/continuous.md, {self._theorem}",
        )
        worth = budget.worth_of(self.event)
        return Guarantee(worth, budget.delta, str(self._unit), proof, self.rng.secure, exact=exact)

    def bound(self) -> float:
        """Return the proved bound on expected regret against (1 - 1/e) of the best fixed point, over all rounds."""
        return float(self.plan.bound(self.spec))

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it runs with, by name."""

    @abstractmethod
    def _follow(self, sums: Floats, rounds: int) -> None:
        """Aim where sums (copies, n) of `rounds` rounds lead."""

    @abstractmethod
    def _played(self, vertices: Floats) -> Floats:
        """The point to play, from what was followed."""

    @abstractmethod
    def _asked(self, place: int) -> Floats:
        """(copies, n): where the user at that place of the open batch is asked for gradients. A copy."""

    def _toss(self, place: int) -> None:  # noqa: B027  some ask everybody of a batch about the same points
        """Public coins for the round at that place of the open batch, whether it will be answered or not."""

    def choose(self) -> PointDecision:
        """Return the point for the next user. Batches close here and nowhere else.

        Returns
        -------
        PointDecision

        Raises
        ------
        InvalidInput
            If all rounds are over, or a release failed before: then restore a snapshot.
        """
        with self._guard.lock:
            self._admit(1)
            number = self.rounds
            closed = self.schedule.closed_by(number)
            if self._sums.released < closed:
                with self._guard.learning():
                    self._follow(self._sums.release(self._secret), self._starts[closed])
                    self._answered[:] = False
            self._toss(number - self._starts[closed])
            self._issued[0] = number + 1
            return PointDecision(number, self._point)

    def observe(self, decision: PointDecision, objective: DRObjective) -> None:
        """Report a user's objective on points.

        Parameters
        ----------
        decision : PointDecision
            As `choose` returned it.
        objective : DRObjective
            Asked for gradients at points that the learner chooses; they are clipped to `gradient_bound`.

        Raises
        ------
        WrongFeedback
            If the objective has no gradients.
        InvalidInput
            If the decision is not of this learner.

        Notes
        -----
        Late and repeated feedback changes nothing and looks the same.
        """
        with self._guard.user_code():
            gradients: Any = call_untrusted(lambda: getattr(objective, "gradients", None))
        if not callable(gradients):
            raise WrongFeedback(
                "Expected an objective with gradients(points), as in diminuendo.continuous; "
                f"got {type(objective).__name__}."
            )
        if (place := self._place(decision)) is None:
            return
        asked = self._asked(place)
        shape = asked.shape
        with self._guard.user_code():
            said = call_untrusted(lambda: _validate.as_floats(gradients(asked)))
        with self._guard.lock:
            if (place := self._place(decision)) is None:  # asked again: an objective is foreign code
                return
            self._answered[place] = True
            if said is not None and said.shape == shape and self._sums.released < len(self.schedule) - 1:
                self._sums.add(said)

    def replay(self, objectives: Sequence[DRObjective]) -> Floats:
        """Choose and observe for all users.

        Parameters
        ----------
        objectives : sequence of DRObjective
            In the order of arrival.

        Returns
        -------
        ndarray of float, shape (rounds, n)
            The points.

        Raises
        ------
        InvalidInput
            If fewer rounds are left.
        """
        self._admit(len(objectives))
        points = np.empty((len(objectives), self.domain.n))
        for t, objective in enumerate(objectives):
            decision = self.choose()
            points[t] = decision.point
            self.observe(decision, objective)
        return points

    __getstate__ = refuse_copies

    def _admit(self, rounds: int) -> None:
        self._guard.check()
        if self.rounds + rounds > self.spec.rounds:
            raise InvalidInput(
                f"This learner was made for {self.spec.rounds} rounds; {self.rounds} are over and {rounds} more "
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

    def _project(self, rows: Floats) -> Floats:
        return self.domain.project(np.clip(rows, -FARTHEST_POINT, FARTHEST_POINT))

    def _aim(self, vertices: Floats) -> None:
        """Set what was followed from the last release, (copies, n), and the point that is played."""
        self._vertices = vertices
        self._point = self._played(vertices).copy()
        self._point.flags.writeable = False

    def snapshot(self) -> bytes:
        """Return all that was learned, without secret randomness. As private as users' feedback."""
        sums = np.frombuffer(self._sums.snapshot(), dtype=np.uint8)
        return snapshots.packed(self._made_with(), [*self._arrays(), sums])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a learner that was made with the same arguments.

        Parameters
        ----------
        snapshot : bytes
            As `snapshot` returned it.

        Raises
        ------
        InvalidInput
            If the snapshot does not fit.

        Notes
        -----
        With the same ledger, releases that were made since are published as they were. With another ledger it would
        be a second run, which was not paid for.
        """
        *arrays, sums = snapshots.read(snapshot, self._made_with())
        self._sums.restore(sums.tobytes())
        snapshots.fill(self._arrays(), arrays)
        self._aim(self._vertices)

    def _arrays(self) -> list[NDArray[Any]]:
        """What a snapshot holds besides the sums; filled in again in place."""
        return [self._issued, self._answered, self._vertices]

    def _made_with(self) -> dict[str, str]:
        shape = {key: np.asarray(value).tolist() for key, value in vars(self.domain).items()}
        return {"learner": repr((type(self.domain).__name__, shape, self.spec, self.plan, self.noise))}
