"""Epoch greedy: private greedy on the people of one epoch, shown to everybody of the next.

Time is cut into epochs that double in length, each of which knows nothing of those before. In the first, slates are
random. At an epoch's end k items are drawn one after the other by the exponential mechanism, in proportion to
exp(rate * what the item would add for this epoch's people), and shown throughout the next epoch; then the people are
forgotten. Everybody is used once, so the whole run costs no more than one slate: (k + 1) * rate, whatever its length.
Nothing depends on the horizon, which may be as large as one likes.

Where overlap greedy pays for how long a person's list of wishes is, this pays only for her largest wish. So it is the
better one where people want a great many items each, and where delta must be 0.

Regret     people of one taste: of order k^2 log N log T / epsilon for privacy, and sqrt(k T log N) for chance
           (docs/maths/epoch-greedy.md, Theorem Q2). No bound against an adversary; when tastes change, doubling
           epochs notice late: give an `epoch` of fixed length then.
Guarantee  (epsilon, 0), for any functions whatever; late and missing answers included (Theorem Q1).
Assumes    exact draws (docs/maths/exponential.md). One answer per round: one that is given again after a crash, to a
           learner restored from a snapshot, is the same. What comes after its epoch is over counts as nothing.
Memory     the people of the running epoch, as rows or functions.
Excludes   timing, and the memory of the process.
References Gupta, Ligett, McSherry, Roth & Talwar (2010), SODA; Mitrovic, Bun, Krause & Karbasi (2017), ICML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback import checked_objective
from diminuendo.learners.base.private import PrivateLearner
from diminuendo.learners.base.stored_people import Asking, KeptPeople
from diminuendo.learners.random_slates import draw_random, draw_random_slates
from diminuendo.offline.private_greedy import rate_per_tick
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness.coins import Coins
from diminuendo.randomness.exponential import select
from diminuendo.randomness.score_classes import TICKS
from diminuendo.streams.people import People
from diminuendo.types import Decision, FeedbackKind, Ints, Items, Objective


@dataclass(frozen=True)
class Epochs:
    """Which rounds belong together: public, and decided before anybody comes."""

    first: int
    doubling: bool

    def of(self, round_: int) -> int:
        """The epoch of a round (from 0)."""
        whole = round_ // self.first
        return (whole + 1).bit_length() - 1 if self.doubling else whole

    def end(self, epoch: int) -> int:
        """The round with which the next epoch begins."""
        return self.first * ((2 << epoch) - 1 if self.doubling else epoch + 1)


def first_epoch(n_items: int, rate: float) -> int:
    """So many people that an item which all of them want is drawn before N others that nobody wants, about.

    With fewer nothing can be learned. Beginning later would not help: a slate drawn from few people is no worse than
    the random slates that would be shown instead, and its people are needed for nothing else.
    """
    return max(1, math.ceil(math.log(max(2, n_items)) / rate))


class EpochGreedy(PrivateLearner):
    """Private greedy, epoch by epoch."""

    name: ClassVar[str] = "epoch-greedy"
    pure: ClassVar[bool] = True
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})
    summary: ClassVar[str] = (
        "greedy on each epoch's people, drawn privately for the next; full information; delta = 0"
    )

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        horizon: int,
        epsilon: float,
        epoch: int | None = None,
        visits: int = 1,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        patience: int = 10_000,
    ) -> None:
        super().__init__(
            n_items, slots, horizon=horizon, visits=visits, ledger=ledger, coins=coins, patience=patience
        )
        self.budget = Budget(epsilon, 0.0, self.unit, "pure")
        self._per_tick = rate_per_tick(self.budget, self.slots, "pure")
        if self._per_tick <= 0:
            raise InvalidInput(
                f"epsilon = {epsilon} is too small for {self.slots} slots: no rate is above 0."
            )
        self.epoch = None if epoch is None else _validate.positive_int(epoch, "epoch")
        self.epochs = Epochs(self.epoch or first_epoch(self.n_items, self.rate), self.epoch is None)
        paid_on = Ledger(self.budget) if ledger is None else ledger
        kind = "epochs that double from" if self.epochs.doubling else "epochs of"
        about = f"{self.slots} of {self.n_items} items, {kind} {self.epochs.first}"
        self._paid = paid_on.buy(self.events, "epochs", about)
        self._people = KeptPeople(self.n_items)
        self._asking: Asking | None = None  # a release that was begun and could not be finished
        self._slate: Items = np.zeros(self.slots, dtype=np.int32)
        self._made = np.zeros(1, dtype=np.int64)  # slates drawn: one for each epoch that is over

    @property
    def rate(self) -> float:
        """Per unit of gain: weights are exp(rate * people who gain a whole unit)."""
        return self._per_tick * TICKS

    @property
    def events(self) -> Laplace:
        """What the whole run costs one round: as much as one epoch, for none is in two."""
        return Laplace(rounded_up((self.slots + 1) * Fraction(self.rate)))

    @property
    def guarantee(self) -> Guarantee:
        """What is proved for the whole run."""
        found, proof = ACCOUNTANTS["pure"].epsilon(self.events, 0.0, self.visits), "Theorem Q1"
        return Guarantee(
            found, 0.0, str(self.unit), f"docs/maths/epoch-greedy.md, {proof}", self.coins.secure
        )

    def _config(self) -> dict[str, Any]:
        return super()._config() | {"epsilon": self.budget.epsilon, "epoch": self.epoch}

    # Choosing: the slate of the last epoch; in the first, random ones.

    def _draw(self, row: Items, probe: Items) -> bool:
        if self._made[0] == 0:
            return bool(draw_random(self.n_items, row, self._public.view))
        row[:] = self._slate
        return True

    def _propensity(self, row: Items) -> float:
        return 1.0 if self._made[0] else 1 / math.perm(self.n_items, self.slots)

    def _release_due(self) -> None:
        while self._made[0] < self.epochs.of(self.rounds):
            self._release(int(self._made[0]))

    def _release(self, number: int) -> None:
        """Draw the slate of an epoch that is over, each item on disk before the next is asked for."""
        if self._asking is None:
            self._asking = Asking(self._people.keeper)
        asking = self._asking
        while len(asking.chosen) < self.slots:
            part = f"{number:06d}.{len(asking.chosen):04d}"
            asking.join(int(self._paid.once(part, lambda: self._pick(asking), self._secret)[0]))
        self._slate[:] = asking.chosen
        self._people.forget(number + 1)  # first: whatever happens here, nobody is asked for a second slate
        self._made[0], self._asking = number + 1, None

    def _pick(self, asking: Asking) -> Ints:
        left = np.setdiff1d(np.arange(self.n_items), asking.chosen)
        return left[[select(asking.scores()[left], self._per_tick, self._secret)]]

    # Learning: people are kept until their epoch is over.

    def _read(self, decision: Decision, feedback: Any) -> Objective:
        return checked_objective(self, feedback)

    def _learn(self, place: int, answer: Objective) -> None:
        epoch = self.epochs.of(self._decisions.round_at(place))
        if epoch >= self._made[0]:
            with self._guard.all_or_broken():
                self._people.add(answer, epoch)

    def _replay(self, people: People, slates: Items, done: int) -> int:
        """To the end of the epoch: the desk knows of everybody before the next slate is drawn."""
        epoch = self.epochs.of(self.rounds)
        end = stop = min(len(people), done + self.epochs.end(epoch) - self.rounds)
        if self._made[0] == 0:
            stop = done + int(draw_random_slates(self.n_items, slates[done:end], 0, self._public.view))
        else:
            slates[done:end] = self._slate
        self._people.add_rows(people.family, people.table, list(range(done, stop)), epoch)
        return stop

    # What a snapshot holds: people too. Python functions cannot be written down; who is one is left out.

    def _state(self) -> Any:
        return self._slate, self._made

    def _extra(self) -> dict[str, NDArray[Any]]:
        return self._people.written()[1]

    def _take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        self._people.read(found)

    def _restored(self) -> None:
        super()._restored()
        made, running = int(self._made[0]), self.epochs.of(max(0, self.rounds - 1))
        sound = (
            made == running
            and ((self._slate >= 0) & (self._slate < self.n_items)).all()
            and (made == 0 or len(set(self._slate.tolist())) == self.slots)
            and all(batch == made for batch in self._people.batches)
            and len(self._people) <= self.rounds
        )
        if not sound:
            raise InvalidInput("The snapshot holds a slate that could not have been drawn; it was altered.")
