"""What an overlap learner remembers of people, behind one small protocol: people themselves, or sums over them.

This is the private side: what people said goes in here, and comes out only as the answers of a release, each of which
is paid for, drawn once and durable before anybody sees it. Besides either of them, payoffs are added up by batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo._snapshots import MOST_DEVIATIONS
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.learners.overlap.person_walk import Answer
from diminuendo.learners.overlap.pick import Around, Questions
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.people import People
from diminuendo.sums.chains.focus import Focus
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.types import Floats, Ints, Items, Objective

NOT_HEARD = -1
"""In place of a type: what she says does not count, nor does she where people are counted."""


class Asks(NamedTuple):
    """What people of batches that begin from now on are asked, where they are asked when they come."""

    chain: list[int]
    weights: Ints
    """Of items, by what is known now."""
    by_type: Ints | None = None
    """(types, slots - 1): the chain of each type, EMPTY_SLOT after its last item; None: all have the same."""


class Memory(Protocol):
    """Keeps what people said, and asks them at releases."""

    # Private.

    def came(self, batch: int, types: Ints) -> None:
        """People of these types came in that batch, whose answers count. Public."""

    def keep(self, person: Objective, said: Answer, batch: int, kind: int) -> None:
        """One person of that batch and of the type `kind`, and what she said."""

    def keep_rows(self, people: People, low: int, high: int, batch: int, types: Ints) -> None:
        """The people from `low` to `high` - 1, all of one batch; where there are contexts, their types or NOT_HEARD."""

    def mark(self, rounds: list[int]) -> None:
        """Those who were kept last came in these rounds."""

    def erase(self, rounds: Ints) -> None:
        """Drop everybody who came in these rounds, where people are kept; sums stay as they are."""

    def forget(self, before: int) -> None:
        """Tastes have changed: drop everybody of batches before that one."""

    # The door.

    def begin_release(self, number: int, first: int, focus: Focus) -> Questions:
        """Begin release `number` of people from batch `first` on; paid for here."""

    def asked_from(self, number: int) -> int | None:
        """The first batch that release `number` asked, if that was begun before a crash."""

    def ask_about(self, asks: Asks, batch: int) -> None:
        """People of `batch` will be shown slates picked along these chains: said before the first of them comes."""

    # What a snapshot holds.

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Arrays of fixed size; restored in place."""

    def extra(self) -> dict[str, NDArray[Any]]:
        """Arrays of no fixed size."""

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Read what `extra` wrote; refuse what could not have been written."""

    def check(self) -> None:
        """Refuse arrays, as read from a snapshot, that could not have come about."""


class AroundMemory(Protocol):
    """Keeps people, so that they can be asked around a slate that they were not asked about when they came."""

    def begin_around(self, number: int, first: int, slate: Items, focus: Focus) -> Around:
        """In place of `begin_release`: one question around this slate, at the same price."""

    def asked_around(self, number: int) -> bool | None:
        """Whether release `number` was begun before a crash, and asked around a slate; None: it was not begun."""


def heard_rows(low: int, high: int, types: Ints) -> tuple[range | Ints, Ints]:
    """Whose answers count, and their types: all of them, or, where there are contexts, those that have a type."""
    heard = types != NOT_HEARD
    if not len(types) or heard.all():
        return range(low, high), types
    return np.arange(low, high)[heard], types[heard]


class PayoffMemory:
    """What people of each batch earned, to be published once the batch is over: one number per batch."""

    def __init__(self, plan: OverlapPlan, ledger: Ledger) -> None:
        self._sum = PrivateSum(
            1,
            schedule=plan.schedule,
            cost=plan.drift,
            ledger=ledger,
            strategy="independent",
            clip=Clip("cell"),
            name="payoffs",
        )
        self.earned = np.zeros(1)
        """The payoffs published so far, added up."""

    def __repr__(self) -> str:
        return f"<PayoffMemory, {self.published} batches published>"

    @property
    def cost(self) -> Event:
        """What was charged for all batches."""
        return self._sum.event

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in the payoff of a batch."""
        return self._sum.deviation(1)

    @property
    def ticks(self) -> int:
        """How many ticks are a unit: payoffs and their noise are whole numbers of ticks."""
        return self._sum.clip.ticks

    @property
    def published(self) -> int:
        """The number of batches whose payoffs were published."""
        return self._sum.batch

    def add(self, payoff: float, batch: int) -> None:
        """One person's payoff; where her batch is over it counts as nothing."""
        self._sum.add([payoff], [0], batch=batch)

    def add_rows(self, payoffs: Floats, batch: int) -> None:
        """The payoffs of several people of one batch."""
        each = np.arange(len(payoffs) + 1)
        rows = SparseRows(each, np.zeros_like(each[1:]), payoffs, (len(payoffs), 1))
        self._sum.add_rows(rows, batch=batch)

    def publish(self, batch: int, people: float, secret: SecretRandomness) -> tuple[float, float]:
        """What each of the `people` who answer in `batch`, which is settled, earned; the deviation of noise in that."""
        if self.published == batch:  # else it was published before, and what followed from it failed
            self._sum.release(secret)
        total = float(self._sum.last[0])
        earned, self.earned[0] = (total - float(self.earned[0])) / people, total
        return earned, self._sum.deviation(1) / people

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
