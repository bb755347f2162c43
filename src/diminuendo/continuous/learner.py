"""The rounds of learners that play points: choose, observe, replay; late and second answers; snapshots.

What is played follows from running sums of gradients alone. Points change only when sums are released, after batches of
rounds that are fixed beforehand; an answer counts until the batch of its round closes, which a later `choose` does. A
subclass says which points a person is asked about, and what is played when sums come out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diminuendo.continuous.domains import FARTHEST_POINT, Domain
from diminuendo.continuous.frank_wolfe_plan import Facts
from diminuendo.continuous.gradient_sums import GradientSums
from diminuendo.continuous.objectives import DRObjective
from diminuendo.errors import InvalidInput, WrongFeedback
from diminuendo.privacy.budget import Guarantee, Unit
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import ProcessGuard, refuse_copies
from diminuendo.randomness.coins import Coins, SystemCoins
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums import snapshots
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class PointDecision:
    """What `choose` returns: the point to play, and the ticket with which to answer."""

    round: int
    """The number of the round, counted from 0."""
    point: Floats = field(repr=False)
    """The point, an array of shape (n,) that cannot be written to."""


class PointLearner(ABC):
    """Plays points of a domain for a number of rounds that is fixed beforehand."""

    facts: Facts
    noise: str | None
    plan: Any
    """Public, with a `schedule`: the last batch of it is never released."""
    _sums: GradientSums
    _vertices: Floats
    """(copies, n) what was followed from the last release."""
    _point: Floats

    def __init__(self, domain: Domain, coins: Coins | None, ledger: Ledger | None) -> None:
        if not isinstance(domain, Domain):
            raise InvalidInput(f"domain must be a Domain such as Box([1.0, 1.0]); got {domain!r}.")
        self.domain = domain
        self.coins: Coins = SystemCoins() if coins is None else coins
        self._secret, self._guard = SecretRandomness(self.coins), ProcessGuard()
        self._unit = Unit() if ledger is None else ledger.budget.unit
        self._issued = np.zeros(1, dtype=np.int64)

    def _open(self) -> None:
        """The plan is made and the sums are paid for: the first point."""
        self._starts = (0, *self.schedule.ends)
        self._answered = np.zeros(max(self.schedule.sizes), dtype=np.bool_)  # in the open batch
        self._follow(np.zeros((self._copies, self.domain.n)), 0)

    @property
    def schedule(self) -> Schedule:
        """When points may change."""
        schedule: Schedule = self.plan.schedule
        return schedule

    @property
    def rounds(self) -> int:
        """How many decisions were made so far."""
        return int(self._issued[0])

    @property
    def event(self) -> Event | None:
        """What the whole run costs; paid for when the learner was made."""
        return self._sums.event

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The public numbers that it runs with."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is proved about everything this learner lets out."""

    @abstractmethod
    def bound(self) -> float:
        """No more than this is, in expectation, (1 - 1/e) of the best fixed point's payoff minus ours."""

    @property
    @abstractmethod
    def _copies(self) -> int:
        """How many gradients one person is asked for."""

    @abstractmethod
    def _follow(self, sums: Floats, rounds: int) -> None:
        """What to play after `rounds` rounds, from sums (copies, n)."""

    @abstractmethod
    def _aim(self, vertices: Floats) -> None:
        """Set the point that is played."""

    @abstractmethod
    def _asked(self, place: int) -> Floats:
        """(copies, n): where the person at that place of the open batch is asked for gradients. A copy."""

    @abstractmethod
    def _toss(self, place: int) -> None:
        """Public coins for the round at that place of the open batch, whether it will be answered or not."""

    def _learned(self) -> list[Any]:
        """Arrays that go into snapshots, besides the rounds; changed in place or set by `_aim`."""
        return [self._vertices]

    def choose(self) -> PointDecision:
        """The point for the next person. Batches close here and nowhere else."""
        with self._guard.lock:
            return self._next()

    def _next(self) -> PointDecision:
        self._admit(1)
        closed = self.schedule.closed_by(self.rounds)
        if self._sums.released < closed:
            self._follow(self._sums.release(self._secret), self._starts[closed])
            self._answered[:] = False
        number = self.rounds
        self._toss(number - self._starts[closed])
        self._issued[0] = number + 1
        return PointDecision(number, self._point)

    def observe(self, decision: PointDecision, objective: DRObjective) -> None:
        """What the person feels about points. Late and second answers change nothing, and look the same."""
        if not callable(getattr(objective, "gradients", None)):
            raise WrongFeedback(
                "Expected an objective with gradients(points), as in diminuendo.continuous; "
                f"got {type(objective).__name__}."
            )
        place = self._place(decision)
        if place is None:
            return
        asked = self._asked(place)
        shape = asked.shape
        try:
            said = np.asarray(objective.gradients(asked), dtype=np.float64)
        except Exception:  # whatever goes wrong inside, it is what this person said: nothing
            said = np.zeros(0)
        with self._guard.lock:
            place = self._place(decision)  # asked again: an objective is foreign code
            if place is None:
                return
            self._answered[place] = True
            if said.shape == shape and self._sums.released < len(self.schedule) - 1:
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
        self._guard.check()
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

    def _project(self, rows: Floats) -> Floats:
        return self.domain.project(np.clip(rows, -FARTHEST_POINT, FARTHEST_POINT))

    def _play(self, point: Floats) -> None:
        self._point = point.copy()
        self._point.flags.writeable = False

    def snapshot(self) -> bytes:
        """All that was learned, without any secret randomness. As private as what people said."""
        sums = np.frombuffer(self._sums.snapshot(), dtype=np.uint8)
        return snapshots.packed(self._facts(), [self._issued, self._answered, *self._learned(), sums])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a learner that was made with the same arguments.

        With the same ledger, releases that were made since are published as they were. To go on with another ledger
        from a snapshot that somebody else goes on from too is a second run, which nobody paid for.
        """
        found = snapshots.read(snapshot, self._facts())
        mine = [self._issued, self._answered, *self._learned()]
        if [(a.shape, a.dtype) for a in found[:-1]] != [(a.shape, a.dtype) for a in mine]:
            raise InvalidInput("The snapshot does not fit; it was cut short or altered.")
        issued, answered, vertices, *more, sums = found
        numbers = [vertices, *more]
        if not (0 <= issued[0] <= self.facts.rounds and all(np.isfinite(a).all() for a in numbers)):
            raise InvalidInput("The snapshot is of rounds that there are not; it was altered.")
        self._sums.restore(sums.tobytes())
        self._issued[:], self._answered[:] = issued, answered
        for array, value in zip(self._learned()[1:], more, strict=True):
            array[:] = value
        self._aim(vertices)

    def _facts(self) -> dict[str, str]:
        shape = {key: np.asarray(value).tolist() for key, value in vars(self.domain).items()}
        return {"learner": repr((type(self.domain).__name__, shape, self.facts, self.plan, self.noise))}
