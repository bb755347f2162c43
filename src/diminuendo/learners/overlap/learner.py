"""What both overlap learners share: released answers in, beliefs, slates out (sums/chains/stored.py, running.py).

At each release people answer a chain of questions: what each item is worth by itself; what every item loses when the
best one joins; and so on; at last what is left. The slate is greedy on what is believed then, and is shown to everybody
until the next release. Before the first release slates are random, or the best by a public prior.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from diminuendo import _validate
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput, OverBudget, unless_ctrl_c
from diminuendo.learners.base.decisions import shown
from diminuendo.learners.base.feedback import checked_objective
from diminuendo.learners.base.old_private import PrivateLearner
from diminuendo.learners.base.random_draws import draw_random_slates
from diminuendo.learners.overlap.drift import DriftTest
from diminuendo.learners.overlap.items import Shelf, draw_from_lists
from diminuendo.learners.overlap.one_answer import Answer, Asker
from diminuendo.learners.overlap.pick import FAR, GreedyChain, Questions, checked_scores
from diminuendo.learners.overlap.schedule import LONGEST, OverlapPlan, overlap_plan, planned_events
from diminuendo.objectives.person import Person
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.coins import Coins
from diminuendo.streams.people import People
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.types import EMPTY_SLOT, Decision, FeedbackKind, Floats, Items, Objective


class Overlap(PrivateLearner):
    """Greedy on released singles, rows and rests."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int | None,
        epsilon: float,
        delta: float,
        visits: int = 1,
        prior: Sequence[float] | Floats | None = None,
        prior_people: int | None = None,
        absent: Iterable[int] = (),
        eligible: Any = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        long = LONGEST if horizon is None else horizon
        super().__init__(
            n_items, slots, horizon=long, visits=visits, ledger=ledger, coins=coins, patience=patience
        )
        self.budget = Budget(epsilon, delta, unit=self.unit, accountant="continuous-gaussian")
        self._ledger = Ledger(self.budget) if ledger is None else ledger
        self._known_horizon = horizon is not None
        self.clip = Clip()
        self.plan = self._made_plan(self.horizon if self._known_horizon else None)
        self._shelf = Shelf(self.n_items, self.slots, absent, eligible)
        # Whatever is refused is so before anything is paid.
        scores = None if prior is None else checked_scores(prior, self.n_items)
        first = self.plan.schedule.ends[0]
        many = first if prior_people is None else _validate.positive_int(prior_people, "prior_people")
        self._refuse_what_cannot_be_paid()
        self._payoffs = PrivateSum(
            1,
            schedule=self.plan.schedule,
            cost=self.plan.drift,
            ledger=self._ledger,
            strategy="independent",
            clip=Clip("cell"),
            name="payoffs",
        )
        self._slate: Items = np.full(self.slots, EMPTY_SLOT, dtype=np.int32)
        self._marks = np.zeros(3, dtype=np.int64)  # releases made; where memory begins; payoffs looked at
        self._asked: Questions | None = None  # of a release that was begun
        self._earned = np.zeros(1)  # the payoffs published so far
        self._chain = self._made_chain()
        self._drift = DriftTest()
        self._asker = Asker(self.n_items)
        self._prior = None if scores is None else self._begin_with(scores, many)

    def _made_chain(self) -> GreedyChain:
        return GreedyChain(self._shelf, len(self.plan.schedule))

    def _made_plan(self, rounds: int | None) -> OverlapPlan:
        return overlap_plan(self.n_items, rounds, self.budget, self.clip.ticks)

    def _refuse_what_cannot_be_paid(self) -> None:
        """Releases are charged one by one; a new run that could not be paid to its end is not begun."""
        begun = any(charge.note.startswith("payoffs:") for charge in self._ledger.charges)
        if not begun and not self._ledger.affords(self.events):
            raise OverBudget(
                f"The whole run would cost epsilon {self.budget.epsilon:g}, and {self._ledger.spent():g} of "
                f"{self._ledger.budget.epsilon:g} is spent. Ask for less, or use a ledger of its own."
            )

    def _begin_with(self, scores: Floats, many: int) -> tuple[list[float], int]:
        """Starting scores, counting like so many people; and the slate that is best by them."""
        if self.plan.releases:
            units = np.full(len(self.plan.schedule.ends), float(many))
            self._chain.begin_with(scores, units, self.plan.first)
        self._chain.fill(self._slate)
        return scores.tolist(), many

    @property
    def events(self) -> Event:
        """What the whole run costs at most."""
        return planned_events(self.plan, self.clip.ticks)

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        spent = ACCOUNTANTS[self.budget.accountant].epsilon(self.events, self.budget.delta, self.visits)
        proof, epsilon = "docs/maths/overlap.md", min(spent, self.budget.epsilon)
        return Guarantee(epsilon, self.budget.delta, str(self.unit), proof, self.coins.secure)

    def _config(self) -> dict[str, Any]:
        found = super()._config() | {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if not self._known_horizon:
            found["horizon"] = None
        if self._prior is not None:
            found["prior"], found["prior_people"] = self._prior
        if self._shelf.absent:
            found["absent"] = list(self._shelf.absent)
        if self._shelf.eligible is not None:
            found["eligible"] = [np.flatnonzero(row).tolist() for row in self._shelf.eligible]
        return found

    # The catalogue changes.

    def appear(self, items: Iterable[int]) -> None:
        """These items are there from now on. A public event: it must not depend on what people said."""
        with self._guard.lock:
            batch, begun = self._now()
            self._shelf.appear(items, batch + begun)
            if self._shows_one:
                self._chain.fill(self._slate)

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more. A public event: it must not depend on what people said."""
        with self._guard.lock:
            self._shelf.retire(items, self._now()[0])
            self._slate[~self._shelf.open[self._slate]] = EMPTY_SLOT
            if self._shows_one:
                self._chain.fill(self._slate)

    def _now(self) -> tuple[int, bool]:
        """The batch of the next round, and whether it has begun."""
        schedule = self.plan.schedule
        batch = schedule.closed_by(self.rounds)
        return batch, self.rounds > (schedule.ends[batch - 1] if batch else 0)

    @property
    def _shows_one(self) -> bool:
        """Whether there is a slate to be shown to everybody: by a release, or by a prior."""
        return bool(self._marks[0]) or self._prior is not None

    # Choosing: the slate of the last release; before the first, random ones.

    def _draw(self, row: Items, probe: Items) -> bool:
        return self._show(row[None, :]) == 1

    def _propensity(self, row: Items) -> float | None:
        if self._shows_one:
            return 1.0
        return 1 / math.perm(self.n_items, self.slots) if self._shelf.free else None

    def _show(self, slates: Items) -> int:
        """Fill in slates of one batch; how many could be."""
        if self._shows_one:
            slates[:] = self._slate
            return len(slates)
        if self._shelf.free:
            return int(draw_random_slates(self.n_items, slates, 0, self._public.view))
        starts, items = self._shelf.lists()
        return int(draw_from_lists(starts, items, slates, 0, self._public.view))

    def _release_due(self) -> None:
        while self._marks[0] < self.plan.schedule.closed_by(self.rounds):
            self._release(int(self._marks[0]))

    # Learning: what people say is for the next release.

    def _read(self, decision: Decision, feedback: Any) -> Objective:
        return checked_objective(self, feedback)

    def _learn(self, place: int, answer: Objective) -> None:
        batch, row = self.plan.schedule.batch_of(self._decisions.round_at(place)), self._decisions.rows[place]
        try:
            said = self._said(answer, row, batch)
        except BaseException as error:  # whatever goes wrong inside, it is what this person said: nothing
            unless_ctrl_c(error)
            return
        if said is not None:
            self._payoffs.add([said.payoff], [0], batch=min(batch, self._payoffs.batch))
            if batch >= self._marks[1]:
                with self._guard.all_or_broken():
                    self._keep(answer, said, batch)

    def _said(self, answer: Objective, row: Items, batch: int) -> Answer | None:
        """What a person says who was shown `row`; None where it has the wrong shape."""
        if isinstance(answer, Person):
            return self._asker.ask(answer, row, self._shelf.since, batch)
        worth = np.array(answer.gains(()), dtype=np.float64)
        payoff = float(answer.value(shown(row)))
        if worth.shape != (self.n_items,):
            return None
        items = np.flatnonzero((worth > 0) & (self._shelf.since <= batch))
        return Answer(items, worth[items], payoff)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        # One batch at a time: should its release fail, everybody before it has been counted.
        batch = self.plan.schedule.batch_of(self.rounds)
        end = min(len(people), done + self.plan.schedule.ends[batch] - self.rounds)
        stop = done + self._show(slates[done:end])
        if stop > done:
            payoffs, each = people.values_of(slates[done:stop], done), np.arange(stop - done + 1)
            self._payoffs.add_rows(SparseRows(each, np.zeros_like(each[1:]), payoffs, (stop - done, 1)))
            self._keep_rows(people, slates, done, stop, batch)
        return stop

    @abstractmethod
    def _keep(self, answer: Objective, said: Answer, batch: int) -> None:
        """One person, and what she said."""

    @abstractmethod
    def _keep_rows(self, people: People, slates: Items, low: int, high: int, batch: int) -> None:
        """Many people of one batch."""

    # Releasing.

    @abstractmethod
    def _ask(self, number: int, first: int) -> Questions:
        """Begin a release of people from batch `first` on; charged here."""

    @abstractmethod
    def _forget(self, batch: int) -> None:
        """Tastes have changed: drop everybody who came before this batch."""

    def _release(self, number: int) -> None:
        if self._marks[2] == number:  # else this release was begun before, and could not be finished
            self._look_at_payoffs(number)
        if self._asked is None:
            self._asked = self._ask(number, int(self._marks[1]))
        slate = self._chain.slate(self._asked)
        with self._guard.all_or_broken():
            self._slate[:], self._marks[0], self._asked = slate, number + 1, None

    def _look_at_payoffs(self, number: int) -> None:
        """Publish what this batch earned, and see whether tastes have changed. In the first, slates were random."""
        size = float(self.plan.schedule.sizes[number])
        total = float(self._payoffs.release(self._secret)[0])
        earned, self._earned[0] = (total - float(self._earned[0])) / size, total
        if (number > 0 or self._prior is not None) and self._drift.changed(
            earned, self._payoffs.deviation(1) / size
        ):
            self._marks[1] = number
            self._chain.forget()
            self._forget(number)
        self._marks[2] = number + 1

    # What a snapshot holds.

    def _state(self) -> Any:
        learned = (self._chain.arrays, self._drift.arrays, self._shelf.arrays)
        return self._slate, self._marks, self._earned, learned

    def _restored(self) -> None:
        super()._restored()
        made, first, looked = (int(mark) for mark in self._marks)
        shown = self._slate[self._slate != EMPTY_SLOT]
        sound = (
            0 <= first <= looked
            and 0 <= made <= looked == self._payoffs.batch <= made + 1
            and made <= self.plan.releases
            and made <= self.plan.schedule.closed_by(self.rounds)
            and ((shown >= 0) & (shown < self.n_items)).all()
            and len(set(shown.tolist())) == len(shown)
            and abs(self._earned[0]) <= self.horizon + FAR * self._payoffs.deviation(1) * (made + 1)
            and self._chain.sound()
            and self._drift.sound(FAR)
            and self._shelf.sound()
        )
        if not sound:
            raise InvalidInput("The snapshot holds releases that could not have been made; it was altered.")
