"""Overlap greedy's policy: answers of releases in, beliefs and a slate out; what is remembered of people is a part.

At each release people answer a chain of questions: what each item is worth by itself; what every item loses when the
best one joins; and so on; at last what is left. The slate is greedy on what is believed then, and is shown to everybody
until the next release. Before the first release slates are random, or the best by a public prior. One number per batch
besides, the payoff, tells whether tastes have changed: then memory begins anew.

Once a slate is a decent one, and people are kept, releases ask around it instead: what each item would add to it, and
what each shown item keeps others from adding; then items are swapped. What is said of items that can still be picked
counts more (focus.py).

Private is what `memory` and `payoffs` hold (memory.py, stored.py, running.py); everything else is made of what was
published (schedule.py, items.py, belief.py, running_means.py, pick.py, around.py, focus.py, drift.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo._snapshots import MOST_DEVIATIONS, named
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import Chooser, Menu, OneSlate, RandomFromLists, RandomSlates
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.overlap.drift import DriftTest
from diminuendo.learners.overlap.focus import NextFocus
from diminuendo.learners.overlap.items import ItemAvailability
from diminuendo.learners.overlap.memory import AroundMemory, Memory, PayoffMemory
from diminuendo.learners.overlap.person_walk import PersonWalk
from diminuendo.learners.overlap.pick import Picked, Prior, SlatePicker
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Composed, Event
from diminuendo.privacy.process_guard import all_or_nothing, said_by
from diminuendo.streams.people import People
from diminuendo.types import EMPTY_SLOT, Ints, Items, Objective

WISHES, PAYOFFS = "what items are worth, alone and together", "has taste changed?"
"""What people are asked at releases; the last is one payoff per batch."""
SETTLED, CHAINS = 12.0, 2
"""A slate is asked around once it earns SETTLED nu of people for each slot (schedule.py), after CHAINS chains."""


@dataclass(frozen=True)
class PublicParts:
    """All that follows from the arguments of an overlap learner, before anybody comes."""

    frame: Frame
    budget: Budget
    known_horizon: bool
    """Whether it is known how many people will come."""
    plan: OverlapPlan
    items: ItemAvailability
    prior: Prior | None


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
        """The batch with which memory begins: people before it are forgotten."""
        return int(self.array[1])

    @memory_begins.setter
    def memory_begins(self, batch: int) -> None:
        self.array[1] = batch

    @property
    def payoffs_seen(self) -> int:
        """The number of batches whose payoffs were looked at."""
        return int(self.array[2])

    @payoffs_seen.setter
    def payoffs_seen(self, batches: int) -> None:
        self.array[2] = batches


class OverlapPolicy(MenuPolicy):
    """Greedy on released singles, rows and rests of what `memory` keeps."""

    reader = Objectives()
    budget: Budget

    def __init__(
        self,
        public: PublicParts,
        memory: Memory,
        payoffs: PayoffMemory,
        *,
        around: AroundMemory | None = None,
        fallback_rows: bool = False,
    ) -> None:
        self.frame, self.budget, self.plan, self.items = (
            public.frame,
            public.budget,
            public.plan,
            public.items,
        )
        self._known_horizon, self._prior = public.known_horizon, public.prior
        self._memory, self._payoffs, self._around = memory, payoffs, around
        self._picker = SlatePicker(self.items, fallback_rows=fallback_rows, arounds=around is not None)
        self._focus = NextFocus(self.frame.n_items, self.frame.slots, self.plan.nu)
        self._drift = DriftTest()
        self._walk = PersonWalk(self.frame.n_items)
        self._position = Position()
        self._slate: Items = np.full(self.frame.slots, EMPTY_SLOT, dtype=np.int32)
        self._begun: Callable[[], Picked] | None = None  # a release that is paid for and not finished yet
        if self._prior is not None:
            self._begin_with(self._prior)
        self._chooser = self._next_menu().chooser()

    # What is promised.

    @property
    def events(self) -> Event:
        """What the whole run costs: what is charged, as long as tastes do not change; then, less."""
        return Composed((self._payoffs.cost, *self.plan.costs))

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        budget = self.budget
        spent = ACCOUNTANTS[budget.accountant].epsilon(self.events, budget.delta, self.frame.visits)
        proof, epsilon = "docs/maths/overlap.md", min(spent, budget.epsilon)
        return Guarantee(epsilon, budget.delta, str(self.frame.unit), proof, self.frame.coins.secure)

    def purposes(self) -> dict[str, Event]:
        """All that is asked about items, and payoffs."""
        return {WISHES: Composed(self.plan.costs), PAYOFFS: self._payoffs.cost}

    def charged_until(self) -> list[int]:
        """The ends of batches: people who come earlier are asked more often."""
        return list(self.plan.schedule.ends)

    # Public: the slate of the last release; before the first the best by a prior, or random ones.

    @property
    def chooser(self) -> Chooser:
        """Of the running batch."""
        return self._chooser

    @property
    def _shows_one(self) -> bool:
        """Whether there is a slate to be shown to everybody: by a release, or by a prior."""
        return self._position.made > 0 or self._prior is not None

    def _next_menu(self) -> Menu:
        """What is shown from the next round on until the next release, unless items change meanwhile."""
        frame, end = self.frame, self.frame.published_at(self.plan.schedule.ends[self._position.made])
        if self._shows_one:
            return OneSlate(
                frame.n_items, frame.slots, frame.rounds, end, frame.public.passed, self._slate.copy()
            )
        if self.items.unrestricted:
            return RandomSlates(frame.n_items, frame.slots, frame.rounds, end, frame.public.passed)
        starts, items = self.items.lists()
        return RandomFromLists(
            frame.n_items, frame.slots, frame.rounds, end, frame.public.passed, starts, items
        )

    def _begin_with(self, prior: Prior) -> None:
        """Starting scores, and the slate that is best by them: it is known already what people will be asked about."""
        plan, gains = self.plan, self._picker.gains
        if plan.releases:
            self._picker.begin_with(prior.scores, float(prior.people), plan.first_noise)
        self._picker.fill(self._slate)
        shown = self._slate[self._slate != EMPTY_SLOT]
        order = shown[np.argsort(-gains[shown], kind="stable")]
        self._ask_about(order[: self.frame.slots - 1].tolist(), release=0)

    def _ask_about(self, chain: Sequence[int], release: int) -> None:
        """Everybody of batches that begin from now on is asked about this chain, until that release is made."""
        schedule, (batch, begun) = self.plan.schedule, self._now()
        until = self.frame.published_at(schedule.ends[min(release, len(schedule) - 1)]) or schedule.rounds
        last = schedule.batch_of(min(until, schedule.rounds) - 1)
        for each in range(batch + begun, last + 1):
            self._memory.ask_about(chain, self._focus.weights, batch=each)

    # Public: the items change.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on; those that were not before, for people of the next batch and later."""
        batch, begun = self._now()
        found = list(items)
        self.items.appear(found, batch + begun)
        self._focus.widen(np.array(found, dtype=np.int64))
        self._items_changed()

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        self.items.retire(items, self._now()[0])
        self._slate[~self.items.available[self._slate]] = EMPTY_SLOT
        self._items_changed()

    def _now(self) -> tuple[int, bool]:
        """The batch of the next round, and whether it has begun."""
        schedule, rounds = self.plan.schedule, self.frame.rounds
        batch = schedule.closed_by(rounds)
        return batch, rounds > (schedule.ends[batch - 1] if batch else 0)

    def _items_changed(self) -> None:
        if self._shows_one:
            self._picker.fill(self._slate)
        self._chooser = self._next_menu().chooser()

    # The door: each answer of a release is paid for, drawn once and durable before it is seen.

    def due(self) -> bool:
        """Whether a batch is settled that was not released yet. After the last nobody comes, so it is not released."""
        return self._position.made < min(self.plan.releases, self.plan.schedule.closed_by(self.frame.settled))

    def release(self) -> None:
        """Publish the payoff of the batch that is over, then a chain of answers; the next slate follows."""
        position, number, guard = self._position, self._position.made, self.frame.guard
        if position.payoffs_seen == number:  # else this release was begun before, and could not be finished
            with all_or_nothing(self._public_arrays()):
                self._look_at_payoffs(number)
        if self._begun is None:
            with all_or_nothing(self._public_arrays()):
                self._begun = self._begin(number)
        picked = self._begun()
        with guard.answers, guard.lock, all_or_nothing(self._public_arrays()):
            self._picker.take(picked)
            if picked.standing is not None:
                self._focus.follow(picked.standing, self._remembered(number) / self.plan.schedule.ends[0])
                self._focus.widen(self.items.first_batch > number)  # nobody was asked about them yet
            self._ask_about(picked.chain, number + 1)
            self._slate[:], position.made = picked.slate, number + 1
            self._chooser, self._begun = self._next_menu().chooser(), None

    def _begin(self, number: int) -> Callable[[], Picked]:
        """Pay for a release, and say how to make it: a chain from the start, or around the slate that is shown."""
        first, people = self._position.memory_begins, self._remembered(number)
        if self._around is not None:
            before = self._around.asked_around(number)  # what was charged before a crash stays what it was
            if self._settled(number) if before is None else before:
                focus = self._focus.of_around(people)
                return partial(
                    self._picker.improved, self._around.begin_around(number, first, self._slate, focus)
                )
        questions = self._memory.begin_release(number, first, self._focus.of_chain(people))
        self._picker.take_in(questions.told)
        return partial(self._picker.slate, questions)

    def _remembered(self, number: int) -> int:
        """The number of people in memory at that release, whether or not they answered."""
        ends, begins = self.plan.schedule.ends, self._position.memory_begins
        return ends[number] - (ends[begins - 1] if begins else 0)

    def _settled(self, number: int) -> bool:
        """Whether the slate that is shown is worth improving: what it earned stands out from noise and prior."""
        people = self._remembered(number)
        return (
            number - self._position.memory_begins >= CHAINS
            and (self._prior is None or people >= self._prior.people)
            and people * self._drift.mean >= SETTLED * self.frame.slots * self.plan.nu
            and bool((self._slate != EMPTY_SLOT).all())
        )

    def _public_arrays(self) -> Iterable[NDArray[Any]]:
        """All arrays of what is public that a release may change."""
        return named("", self._public_state()).values()

    def _look_at_payoffs(self, number: int) -> None:
        """Publish what this batch earned, and see whether tastes have changed. At first, slates are random."""
        frame, (first, *_) = self.frame, self.plan.schedule.ends
        begun = self.plan.schedule.ends[number - 1] if number else 0
        tells = begun >= (frame.published_at(first) or first) or self._prior is not None
        people = frame.answers_in(self.plan.schedule.ends)[number]
        earned, deviation = self._payoffs.publish(number, people, frame.secret)
        with frame.guard.answers, frame.guard.lock:
            changed, asked = tells and self._drift.changed(earned, deviation), self._memory.asked_from(number)
            # What was charged before a crash is not charged otherwise, though others came and the divisor changed.
            if changed if asked is None or number == 0 else asked == number:
                self._position.memory_begins = number
                self._picker.forget()
                self._focus.widen()
                self._memory.forget(number)
            self._position.payoffs_seen = number + 1

    # Private: what people say is for the next release.

    def learn(self, place: int, answer: Objective) -> None:
        """Add up her payoff, and remember what she wants, unless her batch is forgotten."""
        decisions = self.frame.decisions
        batch = self.plan.schedule.batch_of(decisions.round_at(place))
        row, first_batch = decisions.rows[place], self.items.first_batch
        said = said_by(lambda: self._walk.along(answer, row, first_batch, batch))
        if said is not None:
            self._payoffs.add(said.payoff, batch)
            if batch >= self._position.memory_begins:
                with self.frame.guard.all_or_broken():
                    self._memory.keep(answer, said, batch)

    def replay(self, people: People, slates: Items, done: int) -> int:
        """To the end of the batch, or to the next release: should it fail, everybody before it has been counted."""
        schedule = self.plan.schedule
        batch = schedule.batch_of(self.frame.rounds)
        end = self.stop(people, done, schedule.ends[batch], self.menu.end)
        stop = done + self.draw_rows(slates[done:end])
        if stop > done:
            self._payoffs.add_rows(people.values_of(slates[done:stop], done), batch)
            self._memory.keep_rows(people, done, stop, batch)
        return stop

    # What a snapshot holds.

    def config(self) -> dict[str, Any]:
        """The budget, and what is known beforehand: of how many will come, and of items."""
        found: dict[str, Any] = {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if not self._known_horizon:
            found["horizon"] = None
        if self._prior is not None:
            found["prior"], found["prior_people"] = self._prior.scores.tolist(), self._prior.people
        if self.items.absent:
            found["absent"] = list(self.items.absent)
        if self.items.eligible is not None:
            found["eligible"] = [np.flatnonzero(row).tolist() for row in self.items.eligible]
        return found

    def state(self) -> Any:
        """The slate that is shown, where the run is, what was published; and sums over people, where there are any."""
        public = self._public_state()
        return (public, self._memory.arrays) if self._memory.arrays else public

    def _public_state(self) -> Any:
        learned = (self._picker.arrays, self._drift.arrays, self.items.arrays, self._focus.arrays)
        return self._slate, self._position.array, self._payoffs.earned, learned

    def extra(self) -> dict[str, NDArray[Any]]:
        """People, where they are kept, and payoffs."""
        if self._payoffs.published != self._position.payoffs_seen:
            raise InvalidInput("A release is under way that could not be kept; call release() again first.")
        return self._memory.extra() | {"payoffs": self._payoffs.written()}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Remember people and payoffs again."""
        self._payoffs.read(found.pop("payoffs", None))
        self._memory.take_extra(found)

    def restored(self) -> None:
        """Refuse releases that could not have been made; the menu follows."""
        position, frame = self._position, self.frame
        made, looked = position.made, position.payoffs_seen
        shown = self._slate[self._slate != EMPTY_SLOT]
        sound = (
            0 <= position.memory_begins <= looked
            and 0 <= made <= looked == self._payoffs.published <= made + 1
            and made <= self.plan.releases
            and made <= self.plan.schedule.closed_by(frame.settled)
            and ((shown >= 0) & (shown < frame.n_items)).all()
            and len(set(shown.tolist())) == len(shown)
            and self._payoffs.sound(self.plan.schedule.rounds, made)
            and self._picker.sound()
            and self._drift.sound(MOST_DEVIATIONS)
            and self.items.sound()
            and self._focus.sound(frame.n_items)
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
        self._memory.check()
        self._chooser = self._next_menu().chooser()
