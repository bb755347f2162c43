"""Overlap greedy's policy: answers of releases in, beliefs and slates out; the parts are given.

Private is what `memory` and `rewards` hold (stored.py, memory.py). What is shown between releases, and what
the next release asks, is the part `shown`: one slate for everybody (global_slate.py), or one for each type of users
(contexts/slate_per_context.py). It is made of what was published. Besides, one number per batch is published,
the reward, which tells whether tastes have changed (drift.py): then memory begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._snapshots import named
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.menu import Chooser, Menu
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.setting import Prior
from diminuendo.learners.base.users import NO_ROUND
from diminuendo.learners.health import EARLY, LEARNED, LEAST, LED, GaussianNoise, Signal, floor_for
from diminuendo.learners.overlap.drift import DriftTest
from diminuendo.learners.overlap.global_slate import Occasion, Shown
from diminuendo.learners.overlap.memory import NO_RESPONSE, RewardMemory, answer_of
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.learners.overlap.stored import UsersMemory
from diminuendo.offline.rules import SlateRules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Composed, Event
from diminuendo.privacy.process_guard import all_or_nothing, call_untrusted
from diminuendo.streams.contexts import NOBODY
from diminuendo.streams.users import Users
from diminuendo.types import Ints, Items, Objective

WISHES, REWARDS = "what items are worth, alone and together", "has taste changed?"
"""What users are asked at releases; the last is one reward per batch."""


@dataclass(frozen=True)
class PublicParts:
    """All that follows from the arguments of overlap greedy, before anybody comes."""

    frame: Frame
    budget: Budget
    known_horizon: bool
    """Whether it is known how many users will come."""
    plan: OverlapPlan
    items: ItemAvailability
    prior: Prior | None
    retention: int | None = None
    """For how many rounds users are kept; None: for good, or until tastes change."""


class Position:
    """How far a run has come: three public numbers, in one array, as snapshots hold them."""

    def __init__(self) -> None:
        self.array: Ints = np.zeros(3, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<Position: {self.made} releases>"

    @property
    def made(self) -> int:
        """The number of releases made."""
        return int(self.array[0])

    @made.setter
    def made(self, releases: int) -> None:
        self.array[0] = releases

    @property
    def memory_begins(self) -> int:
        """The batch with which memory begins: users before it are forgotten."""
        return int(self.array[1])

    @memory_begins.setter
    def memory_begins(self, batch: int) -> None:
        self.array[1] = batch

    @property
    def rewards_seen(self) -> int:
        """The number of batches whose rewards were looked at."""
        return int(self.array[2])

    @rewards_seen.setter
    def rewards_seen(self, batches: int) -> None:
        self.array[2] = batches


class OverlapPolicy(MenuPolicy):
    """Publishes what `memory` keeps, release by release, and shows what follows from it."""

    reader = Objectives()
    remote_rounds = True
    budget: Budget
    signal: Signal

    def __init__(self, public: PublicParts, memory: UsersMemory, rewards: RewardMemory, shown: Shown) -> None:
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
        self._begun: Callable[[], Any] | None = None  # a release that is paid for and not finished yet
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
        frame, made = self.frame, self._position.made
        end = frame.published_at(self.plan.schedule.ends[made])
        return self._shown.menu(frame.rounds, end, frame.public.passed, released=made > 0)

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
        self._shown.items_changed(released=self._position.made > 0)
        self._chooser = self._next_menu().chooser()

    @property
    def remembers_from(self) -> int:
        """The round from which on it remembers: before that tastes have changed, as published rewards say."""
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

    # The door: each answer of a release is paid for, drawn once and durable before it is seen.

    def due(self) -> bool:
        """Whether a batch is settled that was not released yet. After the last nobody comes, so it is not released."""
        return self._position.made < min(self.plan.releases, self.plan.schedule.closed_by(self.frame.closed))

    def release(self) -> None:
        """Publish the reward of the batch that is over, then a chain of answers; the next slate follows."""
        position, number, guard = self._position, self._position.made, self.frame.guard
        if position.rewards_seen == number:  # else this release was begun before, and could not be finished
            with all_or_nothing(
                (position.array, self._rewards.earned, *self._drift.arrays, self.signal.array)
            ):
                self._look_at_rewards(number)
        first, users = self._asked_first(number), self._remembered(number)
        occasion = Occasion(number, first, users, self._drift.mean, position.memory_begins)
        if self._begun is None:
            self._begun = self._shown.begin(occasion)
        picked = self._begun()
        with guard.answers, guard.lock, self._all_or_nothing():
            if (old := self.plan.kept_from(number + 1)) > self.plan.kept_from(number):
                with guard.learning():
                    self._memory.forget(old)
            self._shown.take(picked, occasion, self.items.first_batch > number)
            if number == 0:  # where rounds are chosen elsewhere, the menu takes effect a little later
                ahead = 0 if self.frame.feedback_window.seconds is None else self.frame.feedback_window.ahead
                self.signal.array[LEARNED] = self.frame.rounds + ahead
            position.made = number + 1
            self._chooser, self._begun = self._next_menu().chooser(), None

    def _remembered(self, number: int) -> int:
        """The number of users in memory at that release, whether or not they answered."""
        ends, begins = self.plan.schedule.ends, self._asked_first(number)
        return ends[number] - (ends[begins - 1] if begins else 0)

    def _asked_first(self, number: int) -> int:
        """The first batch that release `number` asks: since tastes changed, and not too old for it. Public."""
        return max(self._position.memory_begins, self.plan.kept_from(number))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A release is taken in; should that fail, all that is public is as before. Of means over releases, which may
        be large, only what changes is kept meanwhile."""
        means = self._shown.means
        theirs = {id(array) for each in means for array in each.arrays}
        with ExitStack() as stack:
            for each in means:
                stack.enter_context(each.all_or_nothing())
            others = (array for array in self._public_arrays() if id(array) not in theirs)
            stack.enter_context(all_or_nothing(others))
            yield

    def _public_arrays(self) -> Iterable[NDArray[Any]]:
        """All arrays of what is public that a release may change."""
        return named("", self.state()).values()

    def _look_at_rewards(self, number: int) -> None:
        """Publish what this batch earned, and see whether tastes have changed. At first, slates are random."""
        frame, (first, *_) = self.frame, self.plan.schedule.ends
        begun = self.plan.schedule.ends[number - 1] if number else 0
        tells = begun >= (frame.published_at(first) or first) or self._prior is not None
        users = frame.answers_in(self.plan.schedule.ends)[number]
        earned, deviation = self._rewards.publish(number, users, frame.secret)
        with frame.guard.answers, frame.guard.lock:
            changed, asked = tells and self._drift.changed(earned, deviation), self._memory.asked_from(number)
            # Of random slates that much is expected. Some are shown after the first release, too: see `release`.
            at_random = self._prior is None and not 0 <= self.signal.array[LEARNED] <= begun
            chosen = frame.slots / frame.n_items if at_random else 1.0
            noise = GaussianNoise(deviation * users, 1 / self._rewards.ticks)
            rounds = self.plan.schedule.ends[number] - begun
            answers = users if len(frame.silent_rounds(begun, begun + rounds)) < rounds else 0.0
            self.signal.add(earned * users, chosen * answers, rounds, noise, drifted=changed)
            # What was charged before a crash is not charged otherwise, though others came and the divisor changed.
            # Where it is asked alone in any case, the charge does not say whether tastes had changed.
            alone = self.plan.kept_from(number) == number
            if changed if asked is None or alone else asked == number:
                self._position.memory_begins = number
                with all_or_nothing(self._public_arrays()):
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
        if batch >= self._asked_first(self._position.made):
            with self.frame.guard.learning():
                self._memory.keep(answer, batch, kind, number, said.singles)

    def learn_all(self, places: Ints, answers: Sequence[Objective] | Users) -> None:
        """As `learn`, each with the round in which she came; many users of one table and batch together."""
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
        if batch >= self._asked_first(self._position.made):
            types = decisions.types[places] if len(decisions.types) else NOBODY
            with self.frame.guard.learning():
                self._memory.keep_rows(users, 0, len(users), batch, types, rounds)

    def erase(self, rounds: Ints) -> None:
        """Releases that are not begun do not ask the users of these rounds."""
        self._memory.erase(rounds)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the batch, or to the next release: should it fail, everybody before it has been counted."""
        schedule, frame = self.plan.schedule, self.frame
        batch = min(schedule.closed_by(frame.rounds), len(schedule) - 1)
        end = self.stop(users, done, schedule.ends[batch], self.menu.end)
        stop = done + self.draw_rows(slates[done:end])
        if stop > done:
            shown, types, mask = slates[done:stop], frame.coming[: stop - done], frame.response_mask
            if mask is not None and len(types):
                types = np.where(mask[: stop - done], types, NO_RESPONSE)
            first, last = done, stop
            if frame.sampled is not None:  # in a table of their own: nobody else is kept with them
                inside = np.flatnonzero(frame.sampled[: stop - done])
                users, shown, types = (
                    users[done + inside],
                    shown[inside],
                    types[inside] if len(types) else types,
                )
                first, last = 0, len(inside)
            if last > first:
                self._rewards.add_rows(users.values_of(shown, first), batch)
                if batch >= self._asked_first(self._position.made):
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
        if self.items.absent:
            result["absent"] = list(self.items.absent)
        if (rules := self.items.rules) and rules == SlateRules(eligible=rules.eligible, may_be_empty=True):
            result["eligible"] = [list(row) for row in rules.eligible or ()]  # as it has always been written
        elif rules:
            result["rules"] = rules.config()
        return result

    def state(self) -> Any:
        """The slate that is shown, where the run is, and what was published."""
        slates, picked, focus = self._shown.arrays
        learned = (picked, self._drift.arrays, self.items.arrays, focus)
        return slates, self._position.array, self._rewards.earned, learned

    def extra(self) -> dict[str, NDArray[Any]]:
        """Users and their rewards."""
        if self._rewards.published != self._position.rewards_seen:
            raise InvalidInput("A release is under way that could not be kept; call release() again first.")
        return self._memory.extra() | {"rewards": self._rewards.written(), "health": self.signal.array}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Remember users and rewards again."""
        self._rewards.read(found.pop("rewards", None))
        self.signal.take(found.pop("health", None))
        self._memory.take_extra(found)

    def restored(self) -> None:
        """Refuse releases that could not have been made; the menu follows."""
        position, frame = self._position, self.frame
        made, looked = position.made, position.rewards_seen
        sound = (
            0 <= position.memory_begins <= looked
            and 0 <= made <= looked == self._rewards.published <= made + 1
            and made <= self.plan.releases
            and made <= self.plan.schedule.closed_by(frame.closed)
            and self._rewards.sound(self.plan.schedule.rounds, made)
            and self._shown.sound()
            and self._drift.sound()
            and self.items.sound()
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
        self._chooser = self._next_menu().chooser()
