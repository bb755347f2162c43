"""Memory of sums alone: what people say is added to a few sums at once, and nobody is kept.

Every person of a batch answers one chain of questions, the one by which the slate of her batch was picked: what each
item is worth by itself; what the others lose when the best item joins; and so on; at last what is left. Answers are
added to running sums, one for each question (sums/chains/running.py), and each release publishes all sums with noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from diminuendo._snapshots import taken
from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.memory import Asks
from diminuendo.learners.overlap.person_walk import Answer
from diminuendo.learners.overlap.pick import Told
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams.people import People
from diminuendo.streams.walks import GainWalk, Segment, one_person, singles
from diminuendo.sums.chains.cost import asked_from
from diminuendo.sums.chains.focus import Focus
from diminuendo.sums.chains.running import NO_ITEM, SINGLES, GainsAlong, Question, RunningChains
from diminuendo.sums.chains.weights import RunningWeights
from diminuendo.sums.clip import Clip
from diminuendo.types import Ints, Objective


class SumsMemory:
    """Running sums of what people said along the chains of their batches."""

    def __init__(
        self,
        frame: Frame,
        plan: OverlapPlan,
        weights: RunningWeights,
        items: ItemAvailability,
        ledger: Ledger,
        clip: Clip,
    ) -> None:
        self._frame, self._plan, self._items = frame, plan, items
        self._sums = RunningChains(
            frame.n_items,
            frame.slots - 1,
            schedule=plan.schedule,
            weights=weights,
            ledger=ledger,
            clip=clip,
        )

    def __repr__(self) -> str:
        return f"<SumsMemory, {self._frame.n_items} items>"

    # Private: nobody is kept.

    def came(self, batch: int, types: Ints) -> None:
        """Need not be known: there are no contexts."""

    def keep(self, person: Objective, said: Answer, batch: int, kind: int = 0) -> None:
        """One person of that batch, and what she said."""
        self._sums.add(said.worth, self._along(one_person(person)), batch=batch, indices=said.items)

    def keep_rows(self, people: People, low: int, high: int, batch: int, types: Ints) -> None:
        """The people from `low` to `high` - 1, all of one batch."""
        passing = Segment(people.family, people.table, list(range(low, high)))
        worth = singles(passing, self._frame.n_items)
        worth.data[self._items.first_batch[worth.indices] > batch] = 0.0
        self._sums.add_rows(worth, self._along(passing), batch=batch)

    def _along(self, passing: Segment) -> GainsAlong:
        """How to ask people who are not kept."""
        return lambda starts, items: GainWalk(self._frame.n_items, [passing], starts, items).after

    def mark(self, rounds: list[int]) -> None:
        """Need not be known: nobody is kept."""

    def erase(self, rounds: Ints) -> None:
        """Nobody is kept, and nothing is taken off sums."""

    def forget(self, before: int) -> None:
        """Tastes have changed: every batch but the open one is dropped, which is number `before`."""
        self._sums.forget()

    # The door.

    def begin_release(self, number: int, first: int, focus: Focus) -> PublishedSums:
        """Release `number`, all of it at once; paid for here. Who came before batch `first` is in no sum any more."""
        found = self._sums.release(
            number,
            self._plan.sigmas[number],
            self._frame.secret,
            people=float(self._frame.answers_in(self._plan.schedule.ends)[number]),
            since=self._items.first_batch,
            singles=focus.singles,
        )
        measured = {question: Measured(*published) for question, published in found.items()}
        return PublishedSums(measured.pop(SINGLES), told(measured))

    def asked_from(self, number: int) -> int | None:
        """The first batch that release `number` asked, if that was begun before a crash."""
        return asked_from(self._sums.ledger, self._sums.name, number)

    def ask_about(self, asks: Asks, batch: int) -> None:
        """What people of `batch` are asked about when they come, and in what focus."""
        self._sums.ask(asks.chain, batch=batch, weights=asks.weights)

    # What a snapshot holds: sums.

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The sums, and what they are of; restored in place."""
        return self._sums.arrays

    def extra(self) -> dict[str, NDArray[Any]]:
        """Sums of batches whose people come before the open one is published."""
        return {f"later.{batch}": sums for batch, sums in sorted(self._sums.later.items())}

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on with these sums; refuse whatever else there is."""
        for batch, sums in taken(found, "later").items():
            self._sums.later[int(batch)] = sums
        if found:
            raise InvalidInput("The snapshot holds other things than this learner keeps; it was altered.")

    def check(self) -> None:
        """Refuse sums that could not have come about."""
        if not self._sums.sound():
            raise InvalidInput("The snapshot holds sums that could not have come about; it was altered.")


def told(found: Mapping[Question, Measured]) -> list[Told]:
    """What was published to questions, as the picker takes it in."""
    return [
        Told(None if item == NO_ITEM else item, before, measured)
        for (item, before), measured in found.items()
    ]


class PublishedSums:
    """One release, all of it there at once: rows and rests are told, and none can be asked for."""

    def __init__(self, singles: Measured, told: Sequence[Told]) -> None:
        self._singles, self.told = singles, told

    def __repr__(self) -> str:
        return "<PublishedSums>"

    def begin(self) -> None:
        """Everything is there."""

    def singles(self) -> Measured:
        """What each item is worth by itself."""
        return self._singles

    def row(self, item: int) -> None:
        """What is known of it was told."""

    def rest(self) -> None:
        """What is known of it was told."""

    def row_by_type(self, items: Ints) -> None:
        """What is known of it was told."""

    def rest_by_type(self) -> None:
        """What is known of it was told."""
