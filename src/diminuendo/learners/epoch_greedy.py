"""Epoch greedy: private greedy on the users of one epoch, shown to all users of the next.

Time is cut into epochs that double in length, each of which learns from its own users alone. In the first, slates are
random. When an epoch is closed, k items are drawn one after the other by the exponential mechanism, in proportion to
exp(rate * what the item would add for this epoch's users), and shown until the next epoch is closed; then the users'
data is deleted. Every user is used once, so the whole run costs no more than one slate: (k + 1) * rate, whatever its
length. Nothing depends on the horizon, which may be as large as one likes.

Overlap greedy pays for the length of a user's list of wishes, and epoch greedy only for their largest wish. So it is
the better one where users want a great many items each, and where delta must be 0.

Regret     users of one taste: of order k^2 log N log T / epsilon for privacy, and sqrt(k T log N) for chance
           (docs/maths/epoch-greedy.md, Theorem Q2). No bound against an adversary; after a drift of tastes doubling
           epochs react late: set an `epoch` of fixed length then.
Guarantee  (epsilon, 0), for any functions whatever; late and missing feedback included (Theorem Q1).
Assumes    exact draws (docs/maths/exponential.md). One feedback per round: one that is reported again after a crash,
           to a learner restored from a snapshot, is the same. What arrives after its epoch is over is not used.
Memory     the users of the running epoch, as rows or functions.
Excludes   timing, and the memory of the process.
References Gupta, Ligett, McSherry, Roth & Talwar (2010), SODA; Mitrovic, Bun, Krause & Karbasi (2017), ICML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.entry import Advice, Entry, Shape
from diminuendo.learners.base.feedback import Objectives
from diminuendo.learners.base.feedback_window import Patient
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.menu import Menu, OneSlate
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.base.users import UserStore
from diminuendo.offline.private_greedy import rate_per_tick
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Laplace
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import rounded_up
from diminuendo.randomness.exponential import select
from diminuendo.randomness.sources import RandomSource
from diminuendo.randomness.ticks import TICKS
from diminuendo.streams.users import Users
from diminuendo.streams.walks import ScoreWalk
from diminuendo.types import EMPTY_SLOT, Ints, Items, Objective


@dataclass(frozen=True)
class Epochs:
    """Which rounds belong together: public, and decided before the first user."""

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
    """The users of the first epoch: enough that an item they all want is drawn before N others that no user wants.

    With fewer nothing can be learned. Beginning later would not help: a slate drawn from few users is no worse than
    the random slates that would be shown instead, and its users are needed for nothing else.
    """
    return max(1, math.ceil(math.log(max(2, n_items)) / rate))


class EpochPolicy(MenuPolicy):
    """Private greedy, epoch by epoch."""

    reader = Objectives()
    remote_rounds = True
    purpose = "the slate drawn after their epoch"
    proof = "docs/maths/epoch-greedy.md, Theorem Q1"
    budget: Budget

    def __init__(
        self, frame: Frame, budget: Budget, epoch: int | None, paid_on: Ledger, rules: SlateRules | None
    ) -> None:
        self.frame, self.budget = frame, budget
        self.items = ItemAvailability(frame.n_items, frame.slots, rules=rules)
        self._draws = max(1, frame.slots - len(self.items.rules.pinned))  # what is pinned is not drawn
        self._per_tick = rate_per_tick(budget, self._draws, "pure")
        if self._per_tick <= 0:
            raise InvalidInput(
                f"epsilon = {budget.epsilon} is too small for {frame.slots} slots: no rate is above 0."
            )
        self.epoch = None if epoch is None else _validate.positive_int(epoch, "epoch")
        self.epochs = Epochs(self.epoch or first_epoch(frame.n_items, self.rate), self.epoch is None)
        kind = "epochs that double from" if self.epochs.doubling else "epochs of"
        about = f"{frame.slots} of {frame.n_items} items, {kind} {self.epochs.first}"
        self._paid = paid_on.buy(self.events, "epochs", about)
        self._users = UserStore(frame.n_items)
        self._walk: ScoreWalk | None = None  # a release that was begun and could not be finished
        self._slate: Items = np.zeros(frame.slots, dtype=np.int32)
        self._n_slates = np.zeros(1, dtype=np.int64)  # slates drawn: one for each epoch that is over
        self._chooser = self._next_menu().chooser()

    # What is promised.

    @property
    def rate(self) -> float:
        """Per unit of gain: weights are exp(rate * users who gain a whole unit)."""
        return self._per_tick * TICKS

    @property
    def events(self) -> Laplace:
        """What the whole run costs one round: as much as one epoch, for none is in two."""
        return Laplace(rounded_up((self._draws + 1) * Fraction(self.rate)))

    # Public: the slate of the last epoch; in the first, random ones.

    def _next_menu(self) -> Menu:
        """What is shown until the running epoch is over, from what was drawn."""
        frame, n_slates = self.frame, int(self._n_slates[0])
        sizes = frame.n_items, frame.slots
        first = (frame.published_at(self.epochs.end(n_slates - 1)) or frame.rounds) if n_slates else 0
        end = frame.published_at(self.epochs.end(n_slates))
        if n_slates:
            return OneSlate(*sizes, first, end, frame.public.passed, self._slate.copy())
        return self.items.random_menu(first, end, frame.public.passed)

    # The door: k items, drawn one after the other, each paid for and durable before it is seen.

    def due(self) -> bool:
        """Whether an epoch is closed whose slate was not drawn yet."""
        return int(self._n_slates[0]) < self.epochs.of(self.frame.closed)

    def release(self) -> None:
        """Draw the slate of an epoch that is over, each item on disk before the next is asked for."""
        number, guard = int(self._n_slates[0]), self.frame.guard
        if self._walk is None:
            with guard.answers:
                self._walk = self._users.score_walk(number)
        walk, slate = self._walk, self._placed(self._walk.chosen)
        while len(left := self.items.next_items(slate)):
            if left[0] in self.items.pinned:
                walk.scores()  # what it adds is taken off what is left of users
                item = int(left[0])
            else:
                part = f"{number:06d}.{len(walk.chosen):04d}"
                item = int(self._paid.once(part, partial(self._pick, walk, left), self.frame.secret)[0])
            walk.join(item)
            slate = self._placed(walk.chosen)
        with guard.answers, guard.lock:
            self._users.forget(number + 1)  # first: whatever happens, no user is queried for a second slate
            self._slate[:], self._n_slates[0] = slate, number + 1
            self._chooser, self._walk = self._next_menu().chooser(), None

    def _placed(self, chosen: Sequence[int]) -> Items:
        """Items in the order in which they were picked, each in its slot."""
        slate: Items = np.full(self.frame.slots, EMPTY_SLOT, dtype=np.int32)
        for item in chosen:
            slate[self.items.slot_for(item, slate)] = item
        return slate

    def _pick(self, walk: ScoreWalk, left: Ints) -> Ints:
        return left[[select(walk.scores()[left], self._per_tick, self.frame.secret)]]

    # Private: users are kept until their epoch is over.

    def learn(self, place: int, answer: Objective) -> None:
        """Store the user until their epoch is over; later feedback is ignored."""
        epoch = self.epochs.of(self.frame.decisions.round_at(place))
        if epoch >= self._n_slates[0]:
            self._users.add(answer, epoch)

    def learn_all(self, places: Ints, answers: Sequence[Objective] | Users) -> None:
        """As `learn`, each with their round."""
        rounds = self.frame.decisions.rounds_at(places)
        epochs = np.array([self.epochs.of(number) for number in rounds.tolist()])
        for epoch in np.unique(epochs[epochs >= self._n_slates[0]]).tolist():
            (which,) = np.nonzero(epochs == epoch)
            if isinstance(answers, Users):
                theirs, some = answers[which], range(len(which))
                self._users.add_rows(theirs.family, theirs.table, some, epoch, rounds=rounds[which])
            else:
                for each in which.tolist():
                    self._users.add(answers[each], epoch, round=int(rounds[each]))

    def erase(self, rounds: Ints) -> None:
        """The slate that is drawn after their epoch does not depend on the users of these rounds."""
        self._users.erase(rounds)

    def replay(self, users: Users, slates: Items, done: int) -> int:
        """To the end of the epoch, or until the next slate is drawn: all users before are counted by then."""
        epoch = self.epochs.of(self.frame.rounds)
        end = self.stop(users, done, self.epochs.end(epoch), self.menu.end)
        stop = done + self.draw_rows(slates[done:end])
        rows = range(done, stop)
        if self.frame.sampled is not None:
            inside = done + np.flatnonzero(self.frame.sampled[: stop - done])
            users, rows = users[inside], range(len(inside))
        self._users.add_rows(users.family, users.table, rows, epoch)
        return stop

    # What a snapshot holds: users too. Python functions cannot be written down; who is one is left out.

    def config(self) -> dict[str, Any]:
        """Epsilon, the length of epochs where it is fixed, and rules, if there are any."""
        result = {"epsilon": self.budget.epsilon, "epoch": self.epoch}
        return result | ({"rules": self.items.rules.config()} if self.items.rules else {})

    def state(self) -> Any:
        """The slate that is shown, and how many were drawn."""
        return self._slate, self._n_slates

    def extra(self) -> dict[str, NDArray[Any]]:
        """The users of the running epoch."""
        return self._users.written()

    def take_extra(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep the users of the running epoch again."""
        self._users.read(arrays)

    def restored(self) -> None:
        """The menu follows from the slate."""
        self._chooser = self._next_menu().chooser()


def epoch_greedy(
    n_items: int,
    slots: int,
    *,
    horizon: int,
    epsilon: float,
    epoch: int | None = None,
    max_rounds_per_user: int = 1,
    ledger: Ledger | None = None,
    rng: RandomSource | None = None,
    feedback_window: Patient = None,
    rules: SlateRules | None = None,
    sample: int = 1,
) -> Learner:
    """Return epoch greedy: private greedy on the users of one epoch, shown to all users of the next. Full information.

    Parameters
    ----------
    n_items : int
        Number of items.
    slots : int
        Number of items in a slate.
    horizon : int
        Number of rounds.
    epsilon : float
        Privacy budget.
    epoch : int, optional
        Length of epochs. By default each is twice as long as the one before.
    max_rounds_per_user : int, default 1
        Contribution bound: how many rounds of one user count.
    ledger : Ledger, optional
        What is charged. By default a ledger of its own, in memory.
    rng : RandomSource, optional
        Randomness. By default SystemSource.
    feedback_window : FeedbackWindow or int, optional
        Feedback window.
    rules : SlateRules, optional
        What every slate satisfies. Pinned items are not drawn, and the budget is for the other slots.
    sample : int, default 1
        One in `sample` users is learned from, by a public coin; all are served.

    Returns
    -------
    Learner

    Raises
    ------
    OverBudget
        If the ledger cannot pay for the run.
    InvalidInput
        If an argument is out of range.

    Notes
    -----
    (epsilon, 0)-DP for any feedback, replacing `max_rounds_per_user` rounds of one user (Theorem Q1 of
    docs/maths/epoch-greedy.md). Every user is in one epoch, so the run costs (k + 1) * rate, whatever its length.

    Examples
    --------
    >>> from diminuendo.learners import EpochGreedy
    >>> learner = EpochGreedy(20, 3, horizon=10_000, epsilon=1.0)
    >>> learner.guarantee.epsilon, learner.guarantee.delta, learner.guarantee.proof
    (1.0, 0.0, 'docs/maths/epoch-greedy.md, Theorem Q1')
    """
    horizon = _validate.positive_int(horizon, "horizon")
    frame = Frame(
        "epoch-greedy", n_items, slots, horizon=horizon, max_rounds_per_user=max_rounds_per_user,
        ledger=ledger, rng=rng, feedback_window=feedback_window,
        sample=sample,
    )  # fmt: skip
    budget = Budget(epsilon, 0.0, frame.unit, "pure")
    paid_on = Ledger(budget) if ledger is None else ledger
    return Learner(EpochPolicy(frame, budget, epoch, paid_on, as_rules(rules)))


def _first_epoch(epsilon: float) -> Shape:
    """With one slot it draws once, at rate epsilon / 2, when its first epoch is over."""
    return 6, 1, first_epoch(6, epsilon / 2) + 1


EpochGreedy = Entry(
    "epoch-greedy",
    epoch_greedy,
    reads=Objectives.kinds,
    summary="greedy on each epoch's users, drawn privately for the next; full information; delta = 0",
    advice=Advice(
        "(ε, 0)",
        "-",
        "one epoch of users",
        "where delta is 0, or users want very many items",
        keeps_users=True,
    ),
    pure=True,
    audited_on=(_first_epoch,),
)
