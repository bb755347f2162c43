"""Following one private running sum: people add to it, and slates depend on what was published of it.

Between two releases the law of slates does not change. Slates, and coins, are therefore post-processing of the
releases, and every draw is free.

Guarantee  rounded Gaussian noise on one sum, paid for when the learner is made (docs/maths/released.md, Theorem R1).
Assumes    nothing about people: gains are clipped, in whole ticks. One answer per round; what comes after its batch
           has closed has said nothing.
Excludes   timing, and the memory of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from diminuendo._snapshots import MOST_DEVIATIONS
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.released.menu import DrawsFromPoint, DrawsInTurn, ExpertsInTurn, PointMenu
from diminuendo.learners.released.released_sum import Gains, ReleasedSum
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.process_guard import all_or_nothing
from diminuendo.streams.people import People
from diminuendo.sums.snapshots import sums_as_extra
from diminuendo.types import Floats, Items, Objective

AT_ONCE = 1 << 12
"""Rounds that are replayed in one go: more would let Ctrl-C wait, fewer take longer."""


class Follower(Protocol):
    """The public side: how slates follow from what was published. It is never told anything else, and never changed."""

    def following(self, before: Floats, published: Floats) -> Follower:
        """The follower from now on: the running sum, `before` at the last release, was published."""
        ...

    def restored(self, n_releases: int, published: Floats) -> Follower:
        """The follower from what a snapshot says was published last; refuses what could not have come about."""
        ...

    def menu(self, first: int, end: int | None, words: int) -> PointMenu | ExpertsInTurn:
        """What is shown from round `first` on, before round `end`."""
        ...

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What a snapshot holds besides what was published."""
        ...

    def bound(self, deviations: tuple[float, float], ticks: int) -> float:
        """On the expected regret, for noise of these deviations at the first release and at the last, in people."""
        ...


Chooses: TypeAlias = DrawsFromPoint | DrawsInTurn
"""What draws the slates of a batch, and their public words."""


class ReleasedPolicy(MenuPolicy):
    """Follows one released sum, as its follower says; `gains`: what people contribute, by the menu of their batch."""

    reader = Objectives()
    budget: Budget
    _chooser: Chooses

    def __init__(
        self,
        frame: Frame,
        budget: Budget,
        options: dict[str, Any],
        released: ReleasedSum,
        follower: Follower,
        gains: Callable[[Any], Gains],
        *,
        proof: str = "docs/maths/released.md, Theorem R1",
        purpose: str = "releases of one running sum",
    ) -> None:
        self.frame, self.budget, self.proof, self.purpose = frame, budget, proof, purpose
        self.released, self.follower, self._gains_by = released, follower, gains
        self.sums, self.options = {"sum": released.sum}, options
        self._words = np.zeros(frame.decisions.remembered, dtype=np.int64)  # public coins of open decisions
        self._chooser = self._choosing_in(0, follower)
        # First rounds of menus, and what people contribute from there on.
        self._laws: list[tuple[int, Gains]] = [(frame.rounds, gains(self._chooser.menu))]

    # What is promised.

    def regret_bound(self, rounds: int | None = None) -> float | None:
        """What is proved of the expected regret of the whole run to (1 - 1/e) of the best slate.

        Nothing, where answers are waited for: following late costs more.
        """
        if self.frame.patience.ahead:
            return None
        deviation, last = self.released.sum.deviation, len(self.released.sum.schedule)
        return self.follower.bound((deviation(1), deviation(last)), self.released.clip.ticks)

    # Public: the law of slates, from what was published.

    def _choosing_in(self, batch: int, follower: Follower) -> Chooses:
        """From this round on, to the end of the batch: draws by what the follower makes of releases."""
        frame, end = self.frame, self.frame.published_at(self.released.schedule.ends[batch])
        return follower.menu(frame.rounds, end, frame.public.passed).chooser()

    def draw(self, row: Items, probe: Items) -> bool:
        """One slate of the menu, and the public word that goes with it."""
        if self.draw_rows(row[None, :], probe[None, :]) == 0:
            return False
        self._words[self.frame.rounds % len(self._words)] = self._chooser.words[0]
        return True

    # The door: the running sum, paid for when it was made, drawn once and durable before it is seen.

    def due(self) -> bool:
        """Whether a batch is settled that was not published; the last one never is."""
        return self.released.due(self.frame.settled)

    def release(self) -> None:
        """Publish the running sum, and follow it."""
        released, frame = self.released, self.frame
        with frame.guard.defer_interrupt():
            follower = self.follower.following(released.published, released.publish(frame.secret))
            chooser = self._choosing_in(int(released.n_releases[0]) + 1, follower)
            gains = self._gains_by(chooser.menu)
            with frame.guard.answers, frame.guard.lock:
                if chooser.menu.first < frame.rounds:  # others have chosen meanwhile
                    chooser = replace(chooser.menu, first=frame.rounds, words=frame.public.passed).chooser()
                laws = self._laws_with(gains)
                with all_or_nothing((released.published, released.n_releases)):  # what fails is done again
                    released.take_over()
                    self.follower, self._chooser, self._laws = follower, chooser, laws

    def _laws_with(self, gains: Gains) -> list[tuple[int, Gains]]:
        """From the next round on people contribute by the new menu; by those before, as long as they may answer."""
        settled = self.frame.settled
        past = [first for first, _ in self._laws[1:] if first <= settled]
        return [*self._laws[len(past) :], (self.frame.rounds, gains)]

    # Private: what people would have gained, into the sum.

    def learn(self, place: int, answer: Objective) -> None:
        """Add what she would have gained, if her batch is still open."""
        decisions, released = self.frame.decisions, self.released
        row, word, number = decisions.rows[place], int(self._words[place]), decisions.round_at(place)
        for first, gains in reversed(self._laws):
            if first <= number:
                released.add_answer(answer, row, word, released.schedule.batch_of(number), gains)
                return

    def replay(self, people: People, slates: Items, done: int) -> int:
        """To the end of the batch, or to the next release, at most: everybody before is counted by then."""
        frame, released = self.frame, self.released
        batch = released.schedule.batch_of(frame.rounds)
        end = self.stop(people, done, released.schedule.ends[batch], self.menu.end, frame.rounds + AT_ONCE)
        drawn = self.draw_rows(slates[done:end])
        if drawn and released.is_open(batch):
            words, shown = self._chooser.words, slates[done : done + drawn]
            released.add_people(people, done, shown, words, batch, self._laws[-1][1])
        return done + drawn

    # What a snapshot holds: the sum too, as private as what people said.

    def state(self) -> Any:
        """What was published, the public coins of open decisions, and what the follower keeps."""
        return self.released.n_releases, self.released.published, self._words, *self.follower.arrays()

    def extra(self) -> dict[str, NDArray[Any]]:
        """The sum, as private as what people said."""
        if self.released.under_way:
            raise InvalidInput("A release is under way; call choose() again before a snapshot.")
        return sums_as_extra(self.sums)

    def restored(self) -> None:
        """Refuse releases that could not have been made; the menu follows, from this round on."""
        released = self.released
        made, last = int(released.n_releases[0]), len(released.schedule) - 1
        most = released.schedule.rounds + MOST_DEVIATIONS * released.sum.deviation(len(released.sum.schedule))
        sound = (
            made == released.sum.batch
            and made <= last
            and (np.abs(released.published) <= most).all()
            and (self._words >= 0).all()
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
        self.follower = self.follower.restored(made, released.published)
        self._chooser = self._choosing_in(made, self.follower)
        # Who was shown a slate by an earlier menu, and has not answered, has said nothing.
        began = self.frame.published_at(released.schedule.ends[made - 1]) if made else 0
        began = self.frame.rounds if began is None else min(began, self.frame.rounds)
        self._laws = [(began, self._gains_by(self._chooser.menu))]
