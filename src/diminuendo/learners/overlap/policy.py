"""Overlap greedy's policy: answers of releases in, beliefs and slates out; the parts are given.

Private is what `memory` and `rewards` hold (stored.py, memory.py). What is shown between releases, and what
the next release asks, is the part `shown`: one slate for all users (global_slate.py), or one for each type of users
(contexts/slate_per_context.py). It is made of what was published. Besides, one number per batch is published,
the reward, the test for drift (drift.py): then memory begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.setting import Prior
from diminuendo.learners.base.users import NO_ROUND
from diminuendo.learners.health import EARLY, LEARNED, LEAST, LED, GaussianNoise, Signal, floor_for
from diminuendo.learners.overlap.contexts.slate_per_context import SlatePerContext
from diminuendo.learners.overlap.drift import DriftTest
from diminuendo.learners.overlap.global_slate import GlobalSlate, ReleaseContext
from diminuendo.learners.overlap.memory import NO_RESPONSE, RewardMemory, answer_of
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.learners.overlap.stored import UsersMemory
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed, Event
from diminuendo.privacy.process_guard import call_untrusted
from diminuendo.streams.contexts import NOBODY
from diminuendo.streams.users import Users
from diminuendo.types import Ints, Items, Objective

WISHES, REWARDS = "what items are worth, alone and together", "has taste changed?"
"""What users are asked at releases; the last is one reward per batch."""


@dataclass(frozen=True)
class PublicParts:
    """All that follows from the arguments of overlap greedy, before any user comes."""

    frame: Frame
    budget: Budget
    known_horizon: bool
    """Whether it is known how many users will come."""
    plan: OverlapPlan
    items: ItemAvailability
    prior: Prior | None
    retention: int | None = None
    """For how many rounds users are kept; None: for good, or until drift."""


class _Entry:
    """A number of `Position`."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, position: Position, kind: type[Position]) -> int:
        return int(position.array[self._place])

    def __set__(self, position: Position, value: int) -> None:
        position.array[self._place] = value


class Position:
    """How far a run has come: three public numbers, in one array, as snapshots hold them.

    Attributes
    ----------
    releases : int
        The number of releases made.
    memory_begins : int
        The batch with which memory begins: users before it are forgotten.
    rewards_seen : int
        The number of batches whose rewards were looked at.
    """

    releases, memory_begins, rewards_seen = _Entry(0), _Entry(1), _Entry(2)

    def __init__(self) -> None:
        self.array: Ints = np.zeros(3, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<Position: {self.releases} releases>"


class OverlapPolicy(MenuPolicy):
    """Publishes what `memory` keeps, release by release, and shows what follows from it."""

    reader = Objectives()
    remote_rounds = True
    budget: Budget
    signal: Signal

    def __init__(
        self,
        public: PublicParts,
        memory: UsersMemory,
        rewards: RewardMemory,
        shown: GlobalSlate | SlatePerContext,
    ) -> None:
        self.frame, self.budget, self.plan, self.items = (
            public.frame,
            public.budget,
            public.plan,
            public.items,
        )
        self._known_horizon, self._prior, self._retention = (
            public.known_horizon,
            public.prior,
            public.retention,
        )
        self.proof = f"docs/maths/{'overlap' if self.frame.contexts is None else 'contexts'}.md"
        self._memory, self._rewards, self._shown = memory, rewards, shown
        self._drift = DriftTest()
        self.signal = Signal(self._floor())
        self._position = Position()
        self._chooser = self._next_menu().chooser()

    # What is promised.

    @property
    def events(self) -> Event:
        """What the whole run costs: what is charged, as long as tastes do not change; then, less."""
        return Composed((self._rewards.cost, *self.plan.costs))

    def purposes(self) -> dict[str, Event]:
        """All that is asked about items, and rewards."""
        return {WISHES: Composed(self.plan.costs), REWARDS: self._rewards.cost}

    def charged_until(self) -> list[int]:
        """The ends of batches: users who come earlier are asked more often."""
        return list(self.plan.schedule.ends)

    # Public: what is shown.

    @property
    def chooser(self) -> Chooser:
        """Of the running batch."""
        return self._chooser

    def _next_menu(self) -> Menu:
        """What is shown from the next round on until the next release, unless items change meanwhile."""
        frame, releases = self.frame, self._position.releases
        end = frame.published_at(self.plan.schedule.ends[releases])
        return self._shown.menu(frame.rounds, end, frame.public.passed, released=releases > 0)

    def record_arrivals(self, first: int, types: Ints, counts: NDArray[np.bool_]) -> None:
        """Users of these types came; those whose answers count are counted by type, where that is public."""
        ends = np.array(self.plan.schedule.ends)
        batches = np.searchsorted(ends, first + np.flatnonzero(counts), side="right")
        for batch in np.unique(batches).tolist():
            self._memory.record_arrivals(batch, types[counts][batches == batch])

    # Public: the items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on; those that were not before, for users of the next batch and later."""
        batch, begun = self._now()
        result = list(items)
        self.items.appear(result, batch + begun)
        self._shown.appear(np.array(result, dtype=np.int64))
        self._items_changed()

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        self.items.retire(items, self._now()[0])
        self._items_changed()

    def _now(self) -> tuple[int, bool]:
        """The batch of the next round, and whether it has begun."""
        schedule, rounds = self.plan.schedule, self.frame.rounds
        batch = schedule.closed_by(rounds)
        return batch, rounds > (schedule.ends[batch - 1] if batch else 0)

    def _items_changed(self) -> None:
        self._shown.items_changed(released=self._position.releases > 0)
        self._chooser = self._next_menu().chooser()

    @property
    def remembers_from(self) -> int:
        """The round from which on it remembers: before it there was drift, as published rewards say."""
        begins = self._position.memory_begins
        return self.plan.schedule.ends[begins - 1] if begins else 0

    def _floor(self) -> float:
        """The least reward of chosen slates that the rewards of a part of all rounds tell from silence."""
        ends, ahead = self.plan.schedule.ends, self.frame.feedback_window.ahead
        early = [end for end in ends if end + ahead <= ends[-1] / EARLY]
        if not self._known_horizon:
            return LEAST
        response_rate, variance = self.frame.feedback_window.response_rate, self._rewards.deviation**2
        return floor_for([(many * response_rate, variance) for many in np.diff(early)], LED)

    # The privacy boundary: each answer of a release is paid for, drawn once and durable before it is seen.

    def due(self) -> bool:
        """Whether a batch is settled that was not released yet. After the last no user comes, so it is not released."""
        return self._position.releases < min(
            self.plan.releases, self.plan.schedule.closed_by(self.frame.closed)
        )

    def release(self) -> None:
        """Publish the reward of the batch that is over, then the answers to a release; the next slate follows.

        What fails while it is drawn is tried again at the next round, and what was drawn by then is reused.
        """
        position, number, guard = self._position, self._position.releases, self.frame.guard
        if position.rewards_seen == number:
            self._look_at_rewards(number)
        first, users = self._asked_first(number), self._remembered(number)
        context = ReleaseContext(number, first, users, self._drift.mean, position.memory_begins)
        picked: Any = self._shown.release(context)
        with guard.answers, guard.lock, guard.learning():
            if (old := self.plan.kept_from(number + 1)) > self.plan.kept_from(number):
                self._memory.forget(old)
            self._shown.take(picked, context, self.items.first_batch > number)
            if number == 0:  # where rounds are chosen by front ends, the menu takes effect a little later
                ahead = 0 if self.frame.feedback_window.seconds is None else self.frame.feedback_window.ahead
                self.signal.array[LEARNED] = self.frame.rounds + ahead
            position.releases = number + 1
            self._chooser = self._next_menu().chooser()

    def _remembered(self, number: int) -> int:
        """The number of users in memory at that release, whether or not they answered."""
        ends, begins = self.plan.schedule.ends, self._asked_first(number)
        return ends[number] - (ends[begins - 1] if begins else 0)

    def _asked_first(self, number: int) -> int:
        """The first batch that release `number` asks: since the last drift, and not too old for it. Public."""
        return max(self._position.memory_begins, self.plan.kept_from(number))

    def _look_at_rewards(self, number: int) -> None:
        """Publish what this batch earned, and test for drift. At first, slates are random."""
        frame, (first, *_) = self.frame, self.plan.schedule.ends
        begun = self.plan.schedule.ends[number - 1] if number else 0
        tells = begun >= (frame.published_at(first) or first) or self._prior is not None
        users = frame.answers_in(self.plan.schedule.ends)[number]
        earned, deviation = self._rewards.publish(users, frame.secret)
        with frame.guard.answers, frame.guard.lock, frame.guard.learning():
            drifted, charged = (
                tells and self._drift.changed(earned, deviation),
                self._memory.charged_from(number),
            )
            # Of random slates that much is expected. Some are shown after the first release, too: see `release`.
            at_random = self._prior is None and not 0 <= self.signal.array[LEARNED] <= begun
            chosen = frame.slots / frame.n_items if at_random else 1.0
            noise = GaussianNoise(deviation * users, 1 / self._rewards.ticks)
            rounds = self.plan.schedule.ends[number] - begun
            answers = users if len(frame.silent_rounds(begun, begun + rounds)) < rounds else 0.0
            self.signal.add(earned * users, chosen * answers, rounds, noise, drifted=drifted)
            # If this release was already charged, reuse the window recorded in the ledger: others may have arrived
            # since, and changed the divisor. If its batch is queried alone in any case, the ledger does not tell.
            alone = self.plan.kept_from(number) == number
            if drifted if charged is None or alone else charged == number:
                self._position.memory_begins = number
                self._shown.forget()
                self._memory.forget(number)
            self._position.rewards_seen = number + 1

    # Private: what users say is for the next release.

    def learn(self, place: int, answer: Objective) -> None:
        """Add up the reward, and store the user, unless their batch is forgotten."""
        self._learn(place, answer)

    def _learn(self, place: int, answer: Objective, number: int = NO_ROUND) -> None:
        """As `learn`, of a user who can be erased by the round `number`."""
        decisions = self.frame.decisions
        batch, row = self.plan.schedule.batch_of(decisions.round_at(place)), decisions.rows[place]
        kind = int(decisions.types[place]) if len(decisions.types) else 0
        said = call_untrusted(lambda: answer_of(answer, row, self.frame.n_items))
        if said is None:
            return
        self._rewards.add(said.reward, batch)
        if batch >= self._asked_first(self._position.releases):
            with self.frame.guard.learning():
                self._memory.keep(answer, batch, kind, number, said.singletons)

    def learn_all(self, places: Ints, answers: Sequence[Objective] | Users) -> None:
        """As `learn`, each with the round in which they came; many users of one table and batch together."""
        rounds = self.frame.decisions.rounds_at(places)
        if not isinstance(answers, Users):
            for place, number, answer in zip(places.tolist(), rounds.tolist(), answers, strict=True):
                self._learn(place, answer, number)
            return
        order = np.argsort(rounds)
        users, places, rounds = answers[order], places[order], rounds[order]
        batches = np.searchsorted(self.plan.schedule.ends, rounds, side="right")
        for batch in np.unique(batches).tolist():
            low, high = np.searchsorted(batches, (batch, batch + 1)).tolist()
            self._learn_rows(places[low:high], rounds[low:high], users[low:high], batch)

    def _learn_rows(self, places: Ints, rounds: Ints, users: Users, batch: int) -> None:
        decisions = self.frame.decisions
        self._rewards.add_rows(users.values_of(decisions.rows[places]), batch)
        if batch >= self._asked_first(self._position.releases):
            types = decisions.types[places] if len(decisions.types) else NOBODY
            with self.frame.guard.learning():
                self._memory.keep_rows(users, 0, len(users), batch, types, rounds)

    def erase(self, rounds: Ints) -> None:
        """Releases that are not begun do not ask the users of these rounds."""
        self._memory.erase(rounds)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the batch, or to the next release: should it fail, all users before it have been counted."""
        schedule, frame = self.plan.schedule, self.frame
        batch = min(schedule.closed_by(frame.rounds), len(schedule) - 1)
        end = self.stop(users, done, schedule.ends[batch], self.menu.end)
        stop = done + self.draw_rows(slates[done:end])
        if stop > done:
            shown, types, mask = slates[done:stop], frame.coming[: stop - done], frame.response_mask
            if mask is not None and len(types):
                types = np.where(mask[: stop - done], types, NO_RESPONSE)
            first, last = done, stop
            if frame.sampled is not None:  # in a table of their own: no other user is kept with them
                inside = np.flatnonzero(frame.sampled[: stop - done])
                users, shown, types = (
                    users[done + inside],
                    shown[inside],
                    types[inside] if len(types) else types,
                )
                first, last = 0, len(inside)
            if last > first:
                self._rewards.add_rows(users.values_of(shown, first), batch)
                if batch >= self._asked_first(self._position.releases):
                    self._memory.keep_rows(users, first, last, batch, types)
        return stop

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """The budget, and what is known beforehand: of how many will come, and of items."""
        result: dict[str, Any] = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if not self._known_horizon:
            result["horizon"] = None
        if self._retention is not None:
            result["retention"] = self._retention
        if self._prior is not None:
            result["prior"], result["prior_users"] = self._prior.scores.tolist(), self._prior.users
        if (rules := self.items.rules) and rules == SlateRules(eligible=rules.eligible, may_be_empty=True):
            absent = {"absent": list(self.items.absent)} if self.items.absent else {}
            return result | absent | {"eligible": [list(row) for row in rules.eligible or ()]}
        return result | self.items.config()

    def state(self) -> Any:
        """The slate that is shown, where the run is, and what was published."""
        slates, picked, query_weights = self._shown.arrays
        learned = (picked, self._drift.arrays, self.items.arrays, query_weights)
        return slates, self._position.array, self._rewards.earned, learned

    def extra(self) -> dict[str, NDArray[Any]]:
        """Users and their rewards."""
        return self._memory.extra() | {"rewards": self._rewards.written(), "health": self.signal.array}

    def take_extra(self, extra: dict[str, NDArray[Any]]) -> None:
        """Remember users and rewards again."""
        self._rewards.read(extra.pop("rewards"))
        self.signal.take(extra.pop("health", None))
        self._memory.take_extra(extra)

    def restored(self) -> None:
        """The menu follows."""
        self._chooser = self._next_menu().chooser()
