"""What users say when they answer, whose feedback counts, and rewards of each batch, published once it is closed.

This is private: rewards go in here, and come out only as one noisy total per batch, which is charged, drawn once and
durable before anybody sees it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._snapshots import MOST_DEVIATIONS
from diminuendo._sparse import SparseRows
from diminuendo._validate import as_float, as_floats
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.decisions import shown
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.objectives.user import User
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.types import Floats, Ints, Items, Objective

NO_RESPONSE = -1
"""In place of a type: what she says does not count, nor does she where users are counted."""


class Answer(NamedTuple):
    """The reward; and which items are worth something by themselves, in rising order, with what they are worth."""

    reward: float
    singles: tuple[Ints, Floats] | None = None
    """None where a row says it."""

    def __repr__(self) -> str:
        return "<Answer>"


def answer_of(user: Objective, row: Items, n_items: int) -> Answer | None:
    """What a user says who was shown `row`; None in the wrong shape. A function may raise whatever it likes."""
    if type(user) is User:
        return Answer(user.value(shown(row)))
    worth = as_floats(user.gains(()))
    reward = as_float(user.value(shown(row)))
    if worth.shape != (n_items,):
        return None
    items = np.flatnonzero(worth > 0)
    return Answer(reward, (items, worth[items]))


def heard_rows(low: int, high: int, types: Ints) -> tuple[range | Ints, Ints]:
    """Whose answers count, and their types: all of them, or, where there are contexts, those that have a type."""
    responded = types != NO_RESPONSE
    if not len(types) or responded.all():
        return range(low, high), types
    return np.arange(low, high)[responded], types[responded]


class RewardMemory:
    """What users of each batch earned, to be published once the batch is over: one number per batch."""

    def __init__(self, plan: OverlapPlan, ledger: Ledger) -> None:
        self._sum = PrivateSum(
            1,
            schedule=plan.schedule,
            cost=plan.drift,
            ledger=ledger,
            strategy="independent",
            clip=Clip("cell"),
            name="rewards",
        )
        self.earned = np.zeros(1)
        """The rewards published so far, added up."""

    def __repr__(self) -> str:
        return f"<RewardMemory, {self.published} batches published>"

    @property
    def cost(self) -> Event:
        """What was charged for all batches."""
        return self._sum.event

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in the reward of a batch."""
        return self._sum.deviation(1)

    @property
    def ticks(self) -> int:
        """How many ticks are a unit: rewards and their noise are whole numbers of ticks."""
        return self._sum.clip.ticks

    @property
    def published(self) -> int:
        """The number of batches whose rewards were published."""
        return self._sum.batch

    def add(self, reward: float, batch: int) -> None:
        """One user's reward; where her batch is over it counts as nothing."""
        self._sum.add([reward], [0], batch=batch)

    def add_rows(self, rewards: Floats, batch: int) -> None:
        """The rewards of several users of one batch."""
        each = np.arange(len(rewards) + 1)
        rows = SparseRows(each, np.zeros_like(each[1:]), rewards, (len(rewards), 1))
        self._sum.add_rows(rows, batch=batch)

    def publish(self, batch: int, users: float, secret: SecretRandomness) -> tuple[float, float]:
        """What each of the `users` who answer in `batch`, which is settled, earned; the deviation of noise in that."""
        if self.published == batch:  # else it was published before, and what followed from it failed
            self._sum.release(secret)
        total = float(self._sum.last[0])
        earned, self.earned[0] = (total - float(self.earned[0])) / users, total
        return earned, self._sum.deviation(1) / users

    def written(self) -> NDArray[Any]:
        """For a snapshot."""
        return np.frombuffer(self._sum.snapshot(), dtype=np.uint8)

    def read(self, found: NDArray[Any] | None) -> None:
        """Go on from what was written; refuse what could not have been."""
        if found is None:
            raise InvalidInput("The snapshot holds other things than this learner keeps; it was altered.")
        self._sum.restore(found.tobytes())

    def sound(self, rounds: int, releases: int) -> bool:
        """Whether `earned`, as read from a snapshot, can have come about by `releases` releases in `rounds` rounds."""
        return bool(abs(self.earned[0]) <= rounds + MOST_DEVIATIONS * self._sum.deviation(1) * (releases + 1))
