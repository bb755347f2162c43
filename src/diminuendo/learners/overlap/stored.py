"""Memory of users: they are stored, and queried at every release.

What items are worth to a user by themselves is clipped at each release and bounds all that is published about them; a
row or a function can be queried what items lose as others join, or what they add around a slate (participants.py).
Rows and rest of one user come out of their singles, so a whole chain costs no more than twice the first query, whatever
k is.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.engines import Engine, Threads
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.users import NO_ROUND, UserStore
from diminuendo.learners.overlap.contexts.cells import Asked, ReleasedCells
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.memory import heard_rows
from diminuendo.learners.overlap.participants import StoredParticipants, Terms
from diminuendo.learners.overlap.running_means import Measured, units_since
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.users import Users
from diminuendo.sums.chains.around import AroundRelease
from diminuendo.sums.chains.cells import CellRelease, SharedFocus, ValueColumn
from diminuendo.sums.chains.cost import asked_around, asked_from
from diminuendo.sums.chains.focus import Focus
from diminuendo.sums.chains.release import ChainRelease, Joined, OtherChain
from diminuendo.sums.chains.stored import StoredUsers
from diminuendo.sums.chains.users.participants import Participants
from diminuendo.sums.clip import Clip
from diminuendo.types import Floats, Ints, Items, Objective


class UsersMemory:
    """Everybody since memory began."""

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
            asked=lambda weights, factors: self._asked(weights, factors),
        )
        self.users = UserStore(frame.n_items, self._values.n_types)
        self._engine = engine or Threads()

    def __repr__(self) -> str:
        return f"<UsersMemory, {self._frame.n_items} items>"

    def __len__(self) -> int:
        """How many users are stored: as private as whether somebody answered."""
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
        """Drop everybody who came in these rounds: as if they had said nothing, for releases that are not begun."""
        self.users.erase(rounds)

    def forget(self, before: int) -> None:
        """Tastes have changed: drop everybody of batches before that one."""
        self.users.forget(before)

    def _asked(self, weights: Ints, factors: Floats) -> Participants:
        """Everybody, as they are now."""
        terms = Terms(weights, factors, self._items.first_batch.copy(), self._clip)
        return StoredParticipants(self.users.blocks, self.users.functions, terms, self._engine)

    # The door.

    def begin_release(self, number: int, first: int, focus: Focus) -> StoredQuestions:
        """Begin release `number` of users from batch `first` on; paid for here."""
        secret, (weights, units) = self._frame.secret, self._weights(number, first)
        with self._frame.guard.answers:  # who has answered is frozen for the whole release
            release = self._values.focused(number, weights, self._plan.sigmas[number], focus, secret)
        return StoredQuestions(release, units * release.factors, secret)

    def begin_around(self, number: int, first: int, slate: Items, focus: Focus) -> StoredAround:
        """In place of `begin_release`: one question around this slate, at the same price."""
        secret, (weights, units) = self._frame.secret, self._weights(number, first)
        around = slate.copy()  # items may retire before it is asked
        with self._frame.guard.answers:
            sigmas = self._plan.sigmas[number]
            release = self._values.around(number, weights, sigmas, around.tolist(), focus, secret)
        return StoredAround(release, units * release.factors, around, secret)

    def begin_by_type(
        self, number: int, first: int, focus: SharedFocus
    ) -> tuple[StoredQuestions, ReleasedCells]:
        """As `begin_release`, with a chain for each type of users, and with cells of columns."""
        secret, (weights, units) = self._frame.secret, self._weights(number, first)
        with self._frame.guard.answers:
            sigmas = self._plan.sigmas[number]
            release, cells = self._values.in_contexts(number, weights, sigmas, focus, secret)
        units = units * release.factors
        return StoredQuestions(release, units, secret), self._cells(cells, weights, units)

    def begin_around_by_type(
        self, number: int, first: int, slate: Items, focus: SharedFocus
    ) -> tuple[StoredAround, ReleasedCells]:
        """As `begin_around`, with cells of columns besides."""
        secret, (weights, units) = self._frame.secret, self._weights(number, first)
        around = slate.copy()
        with self._frame.guard.answers:
            sigmas = self._plan.sigmas[number]
            release, cells = self._values.around_in_contexts(
                number, weights, sigmas, around.tolist(), focus, secret
            )
        units = units * release.factors
        return StoredAround(release, units, around, secret), self._cells(cells, weights, units)

    def _cells(self, release: CellRelease, weights: Ints, units: Floats) -> ReleasedCells:
        frame, answers = self._frame, self._frame.answers_in(self._plan.schedule.ends)[: len(weights)]
        asked = Asked(
            weights, float(weights @ answers), units, frame.feedback_window.response_rate, release.limit
        )
        return ReleasedCells(
            partial(release.cells, secret=frame.secret),
            partial(release.counts, secret=frame.secret),
            release.deviations,
            asked,
        )

    def asked_around(self, number: int) -> bool | None:
        """Whether release `number` was begun before a crash, and asked around a slate; None: it was not begun."""
        return asked_around(self._values.ledger, self._values.name, number)

    def _weights(self, number: int, first: int) -> tuple[Ints, Floats]:
        """With what users of each batch enter a release, and for each item what all of them can add to its sum."""
        plan = self._plan
        weights = plan.weights[number, : number + 1].copy()
        weights[:first] = 0
        sizes = self._frame.answers_in(plan.schedule.ends)
        sizes[: number + 1] *= self._clip.ticks * weights
        sizes[number + 1 :] = 0.0
        return weights, units_since(np.cumsum(sizes[::-1])[::-1], self._items.first_batch)

    def asked_from(self, number: int) -> int | None:
        """The first batch that release `number` asked, if that was begun before a crash."""
        return asked_from(self._values.ledger, self._values.name, number)

    # What a snapshot holds: users too. Python functions cannot be written down; who is one is left out.

    def extra(self) -> dict[str, NDArray[Any]]:
        """Users who can be written down, and how many have come."""
        return self.users.written() | {"added": np.array([self._values.added])}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Store everybody again."""
        added = found.get("added", np.zeros(0))
        if added.shape != (1,) or not len(found.get("batches", ())) <= added[0] <= self._plan.schedule.rounds:
            raise InvalidInput("The snapshot holds users who could not have been added; it was altered.")
        self._values.added = int(added[0])
        self.users.read(found)


class StoredQuestions:
    """One release over everybody who is kept. What was published once is the answer ever after."""

    def __init__(
        self,
        release: ChainRelease,
        units: Floats,
        secret: SecretRandomness,
    ) -> None:
        self._release, self._units, self._secret = release, units, secret
        self._singles: Measured | None = None
        self._asked, self._remote_rounds = (
            0,
            False,
        )  # how many rows were asked for; whether along another chain

    def __repr__(self) -> str:
        return "<StoredQuestions>"

    def begin(self) -> None:
        """From the start, for the first time or again."""
        self._asked, self._remote_rounds = 0, False

    def singles(self) -> Measured:
        """What each item is worth by itself."""
        if self._singles is None:
            self._singles = Measured(
                self._release.singles(self._secret), self._units, self._release.sigmas[0]
            )
        return self._singles

    def row(self, item: int) -> Measured | None:
        """What each item loses when this one joins everybody's chain."""
        result = self.row_by_type(np.full(self._release.n_types, item))
        return None if result is None else result[1]._replace(sums=result[1].sums[0])

    def row_by_type(self, items: Ints) -> tuple[Ints, Measured] | None:
        """The question of each type, -1 for none, and what was published for each question, as these items join.

        None: it cannot be had; after a crash only what was drawn before it can.
        """
        self._asked += 1
        before = self._release.joined
        if self._asked <= len(before) and not self._remote_rounds:
            joined = before[self._asked - 1]
            self._remote_rounds = bool((joined.items != items).any())  # the catalogue has changed since
            return None if self._remote_rounds else self._measured(joined)
        if self._remote_rounds or not self._release.goes_on():
            return None
        try:
            self._release.row_by_type(items, self._secret)
        except OtherChain:
            self._remote_rounds = True
            return None
        return self._measured(self._release.joined[-1])

    def _measured(self, joined: Joined) -> tuple[Ints, Measured]:
        return joined.questions, Measured(joined.sums, self._units, self._release.sigmas[1])

    def rest(self) -> Measured | None:
        """What is left of each item, where everybody has the same chain."""
        result = self.rest_by_type()
        return None if result is None else result[1]._replace(sums=result[1].sums[0])

    def rest_by_type(self) -> tuple[Ints, Measured] | None:
        """The number of each type's set, and what is left for the users of each set; None: it cannot be had."""
        if self._remote_rounds:
            return None
        if self._release.goes_on(rest=True):
            self._release.rest_by_type(self._secret)
        result = self._release.what_is_left
        if result is None:
            return None
        return self._release.sets()[0], Measured(result, self._units, self._release.sigmas[1])


class StoredAround:
    """One release around a slate, over everybody who is kept."""

    def __init__(
        self,
        release: AroundRelease,
        units: Floats,
        slate: Items,
        secret: SecretRandomness,
    ) -> None:
        self._release, self._units, self._secret = release, units, secret
        self.slate = slate

    def __repr__(self) -> str:
        return "<StoredAround>"

    def answers(self) -> Measured | None:
        """What was published; None where that was around another slate."""
        try:
            result = self._release.publish(self._secret)
        except OtherChain:
            return None
        return Measured(result, self._units, self._release.sigma)
