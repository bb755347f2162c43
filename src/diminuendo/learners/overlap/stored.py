"""Memory of users: they are stored, and queried at every release.

What items are worth to a user by themselves is clipped at each release and bounds all that is published about them; a
row or a function can be queried what items lose as others join, or what they add around a slate (participants.py).
Rows and rest of one user come out of their singles, so a whole chain costs no more than twice the first query, whatever
k is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.engines import Engine, Threads
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.users import NO_ROUND, UserStore
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.memory import heard_rows
from diminuendo.learners.overlap.participants import StoredParticipants, Terms
from diminuendo.learners.overlap.running_means import Measured, units_since
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.users import Users
from diminuendo.sums.clip import Clip
from diminuendo.sums.greedy_queries.cells import CellRelease, SharedQueryWeights, ValueColumn
from diminuendo.sums.greedy_queries.cost import charged_from, was_swap
from diminuendo.sums.greedy_queries.participants import Participants
from diminuendo.sums.greedy_queries.query_weights import QueryWeights
from diminuendo.sums.greedy_queries.release import GreedyRelease, OtherSequence
from diminuendo.sums.greedy_queries.stored import StoredUsers
from diminuendo.sums.greedy_queries.swap import SwapRelease
from diminuendo.types import Floats, Ints, Items, Objective


class UsersMemory:
    """All users since memory began."""

    def __init__(
        self,
        frame: Frame,
        plan: OverlapPlan,
        items: ItemAvailability,
        ledger: Ledger,
        clip: Clip,
        counts: TypeCounts | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._frame, self._plan, self._items, self._clip, self._counts = frame, plan, items, clip, counts
        columns = [] if counts is None else map(ValueColumn, counts.contexts.sizes, counts.values.T.copy())
        self._values = StoredUsers(
            frame.n_items,
            schedule=plan.schedule,
            ledger=ledger,
            clip=clip,
            columns=list(columns),
            participants=lambda weights, factors: self._participants(weights, factors),
        )
        self.users = UserStore(frame.n_items, self._values.n_types)
        self._engine = engine or Threads()

    def __repr__(self) -> str:
        return f"<UsersMemory, {self._frame.n_items} items>"

    def __len__(self) -> int:
        """How many users are stored: as private as whether a user answered."""
        return len(self.users)

    # Private.

    def record_arrivals(self, batch: int, types: Ints) -> None:
        """Users of these types came in that batch, whose answers count. Public."""
        if self._counts is not None:
            self._counts.record_arrivals(batch, types)

    def keep(
        self,
        user: Objective,
        batch: int,
        kind: int = 0,
        round: int = NO_ROUND,
        said: tuple[Ints, Floats] | None = None,
    ) -> None:
        """Store a user of that batch and of the context id `kind`; `said`: as `UserStore.add` takes it."""
        self._values.admit(1, batch)
        self.users.add(user, batch, kind, round, *([] if said is None else [said]))

    def keep_rows(
        self, users: Users, low: int, high: int, batch: int, types: Ints, rounds: Ints | int = NO_ROUND
    ) -> None:
        """Store the users from `low` to `high` - 1, all of one batch, and their types, if there are contexts."""
        rows, kinds = heard_rows(low, high, types)
        self._values.admit(len(rows), batch)
        self.users.add_rows(users.family, users.table, rows, batch, kinds if len(kinds) else 0, rounds)

    def erase(self, rounds: Ints) -> None:
        """Drop all users who came in these rounds: as if they had said nothing, for releases that are not begun."""
        self.users.erase(rounds)

    def forget(self, before: int) -> None:
        """After drift: drop all users of batches before that one."""
        self.users.forget(before)

    def _participants(self, weights: Ints, factors: Floats) -> Participants:
        """All users, as they are now."""
        terms = Terms(weights, factors, self._items.first_batch.copy(), self._clip)
        return StoredParticipants(self.users.blocks, self.users.functions, terms, self._engine)

    # The privacy boundary.

    def begin_release(self, number: int, first: int, query_weights: QueryWeights) -> StoredQuestions:
        """Begin release `number` of users from batch `first` on; charged here."""
        weights, units = self._weights(number, first)
        with self._frame.guard.answers:  # who has responded is frozen for the whole release
            release = self._values.begin_greedy(
                number, weights, self._plan.sigmas[number], query_weights, self._frame.secret
            )
        return StoredQuestions(release, units * release.factors, self._frame.secret)

    def begin_swap(self, number: int, first: int, slate: Items, query_weights: QueryWeights) -> StoredSwap:
        """In place of `begin_release`: one swap query of this slate, at the same price."""
        weights, units = self._weights(number, first)
        shown = slate.copy()  # items may retire before it is drawn
        with self._frame.guard.answers:
            release = self._values.swap(
                number, weights, self._plan.sigmas[number], shown.tolist(), query_weights, self._frame.secret
            )
        return StoredSwap(release, units * release.factors, shown, self._frame.secret)

    def begin_by_type(
        self, number: int, first: int, query_weights: SharedQueryWeights
    ) -> tuple[StoredQuestions, ReleasedCells]:
        """As `begin_release`, with a query sequence for each type of users, and with cells of columns."""
        weights, units = self._weights(number, first)
        with self._frame.guard.answers:
            release, cells = self._values.in_contexts(
                number, weights, self._plan.sigmas[number], query_weights, self._frame.secret
            )
        units = units * release.factors
        return StoredQuestions(release, units, self._frame.secret), self._cells(cells, weights, units)

    def begin_swap_by_type(
        self, number: int, first: int, slate: Items, query_weights: SharedQueryWeights
    ) -> tuple[StoredSwap, ReleasedCells]:
        """As `begin_swap`, with cells of columns besides."""
        weights, units = self._weights(number, first)
        shown = slate.copy()
        with self._frame.guard.answers:
            release, cells = self._values.swap_in_contexts(
                number, weights, self._plan.sigmas[number], shown.tolist(), query_weights, self._frame.secret
            )
        units = units * release.factors
        return StoredSwap(release, units, shown, self._frame.secret), self._cells(cells, weights, units)

    def _cells(self, release: CellRelease, weights: Ints, units: Floats) -> ReleasedCells:
        answers = self._frame.answers_in(self._plan.schedule.ends)[: len(weights)]
        return ReleasedCells(release, weights, float(weights @ answers), units, self._frame)

    def was_swap(self, number: int) -> bool | None:
        """Whether release `number` was charged before as a swap query; None: it was not charged."""
        return was_swap(self._values.ledger, self._values.name, number)

    def _weights(self, number: int, first: int) -> tuple[Ints, Floats]:
        """With what users of each batch enter a release, and for each item what all of them can add to its sum."""
        plan = self._plan
        weights = plan.weights[number, : number + 1].copy()
        weights[:first] = 0
        sizes = self._frame.answers_in(plan.schedule.ends)
        sizes[: number + 1] *= self._clip.ticks * weights
        sizes[number + 1 :] = 0.0
        return weights, units_since(np.cumsum(sizes[::-1])[::-1], self._items.first_batch)

    def charged_from(self, number: int) -> int | None:
        """The first batch that release `number` asked, if that was begun before a crash."""
        return charged_from(self._values.ledger, self._values.name, number)

    # What a snapshot holds: users too. Python functions cannot be written down; these users are left out.

    def extra(self) -> dict[str, NDArray[Any]]:
        """Users who can be written down, and how many have come."""
        return self.users.written() | {"added": np.array([self._values.added])}

    def take_extra(self, extra: dict[str, NDArray[Any]]) -> None:
        """Store all users again."""
        self._values.added = int(extra["added"][0])
        self.users.read(extra)


class StoredQuestions:
    """A greedy query sequence over the stored users, as measurements."""

    def __init__(self, release: GreedyRelease, units: Floats, secret: SecretRandomness) -> None:
        self._release, self._units, self._secret = release, units, secret
        self._diverged = False  # the release was drawn along another sequence before a crash

    def __repr__(self) -> str:
        return "<StoredQuestions>"

    def singletons(self) -> Measured:
        """What each item is worth by itself."""
        return Measured(self._release.singletons(self._secret), self._units, self._release.sigmas[0])

    def losses(self, item: int) -> Measured | None:
        """What each item loses when this one joins the sequence of all users."""
        result = self.losses_by_type(np.full(self._release.n_types, item))
        return None if result is None else result[1]._replace(sums=result[1].sums[0])

    def losses_by_type(self, items: Ints) -> tuple[Ints, Measured] | None:
        """The question of each type, -1 for none, and what was published for each question, as these items join.

        None: it cannot be had; after a crash only what was drawn before it can.
        """
        if self._diverged or not self._release.goes_on():
            return None
        try:
            self._release.losses_by_type(items, self._secret)
        except OtherSequence:
            self._diverged = True
            return None
        joined = self._release.joined[-1]
        return joined.questions, Measured(joined.sums, self._units, self._release.sigmas[1])

    def residual(self) -> Measured | None:
        """What is left of each item, where all users have the same sequence."""
        result = self.residual_by_type()
        return None if result is None else result[1]._replace(sums=result[1].sums[0])

    def residual_by_type(self) -> tuple[Ints, Measured] | None:
        """The number of each type's set, and what is left for the users of each set; None: it cannot be had."""
        if self._diverged or not self._release.goes_on(residual=True):
            return None
        result = self._release.residual_by_type(self._secret)
        return self._release.sets.of_type, Measured(result, self._units, self._release.sigmas[1])


class StoredSwap:
    """A swap query over the stored users, as a measurement."""

    def __init__(self, release: SwapRelease, units: Floats, slate: Items, secret: SecretRandomness) -> None:
        self._release, self._units, self._secret = release, units, secret
        self.slate = slate

    def __repr__(self) -> str:
        return "<StoredSwap>"

    def answers(self) -> Measured | None:
        """What was published; None where that was of another slate."""
        try:
            result = self._release.publish(self._secret)
        except OtherSequence:
            return None
        return Measured(result, self._units, self._release.sigma)


class ReleasedCells:
    """What one release says of the values of columns. `users`: how many answer, each as often as they count."""

    def __init__(
        self, release: CellRelease, weights: Ints, users: float, units: Floats, frame: Frame
    ) -> None:
        self._release, self._weights, self._users, self._units = release, weights, users, units
        self._secret, self._response_rate = frame.secret, frame.feedback_window.response_rate

    def __repr__(self) -> str:
        return "<ReleasedCells>"

    def cells(self, column: int) -> Measured | None:
        """(values, items) sums, divided by what all users could add: to be divided by shares of users too.

        None where the column has no share.
        """
        result = self._release.cells(column, self._secret)
        sigma = self._release.deviations.cells[column]
        return None if result is None else Measured(result, self._units, sigma)

    def type_shares(self, counts: TypeCounts) -> Floats:
        """Which share of the users who answer is of each type, by these counts."""
        return counts.type_shares(self._weights, self._response_rate, self._users)

    def counts(self, column: int) -> tuple[Floats, float] | None:
        """Shares as published now, where contexts are private, and the deviation of their noise; None: no share."""
        result, unit = self._release.counts(column, self._secret), self._release.limit * self._users
        return None if result is None else (result / unit, self._release.deviations.counts[column] / unit)
