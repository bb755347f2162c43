"""Memory of sums alone, where people have contexts: nobody is kept.

Every person is asked when she answers, along the chain by which the slate of her type was picked; what she says is
added to running sums, one for each question, and to the sums of her value in each column
(sums/chains/running_by_type.py). Each release publishes all sums with noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.items import ItemAvailability
from diminuendo.learners.overlap.contexts.cells import Asked, ReleasedCells
from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.memory import Asks, heard_rows
from diminuendo.learners.overlap.person_walk import Answer
from diminuendo.learners.overlap.running import PublishedSums, told
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams.people import People
from diminuendo.streams.walks import GainWalk, Segment, one_person, singles
from diminuendo.sums.chains.cells import SharedFocus, ValueColumn
from diminuendo.sums.chains.cost import asked_from
from diminuendo.sums.chains.focus import SHARES, Focus
from diminuendo.sums.chains.running_by_type import GainsOfEach, RunningByType
from diminuendo.sums.chains.weights import RunningWeights
from diminuendo.sums.clip import Clip
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Objective


class TypedSumsMemory:
    """Running sums of what people said along the chains of their types."""

    def __init__(
        self,
        frame: Frame,
        plan: OverlapPlan,
        weights: RunningWeights,
        items: ItemAvailability,
        ledger: Ledger,
        clip: Clip,
        counts: TypeCounts,
    ) -> None:
        self._frame, self._plan, self._items, self._counts = frame, plan, items, counts
        contexts = counts.contexts
        self._sums = RunningByType(
            frame.n_items,
            frame.slots - 1,
            list(map(ValueColumn, contexts.sizes, counts.values.T.copy())),
            counted=contexts.private,
            schedule=plan.schedule,
            weights=weights,
            ledger=ledger,
            clip=clip,
        )

    def __repr__(self) -> str:
        return f"<TypedSumsMemory, {self._frame.n_items} items>"

    # Private: nobody is kept.

    def came(self, batch: int, types: Ints) -> None:
        """People of these types came in that batch, whose answers count. Public."""
        self._counts.came(batch, types)

    def keep(self, person: Objective, said: Answer, batch: int, kind: int) -> None:
        """One person of that batch and of the type `kind`, and what she said."""
        walk = self._along(one_person(person))
        self._sums.add(said.worth, walk, batch=batch, kind=kind, indices=said.items)

    def keep_rows(self, people: People, low: int, high: int, batch: int, types: Ints) -> None:
        """The people from `low` to `high` - 1, all of one batch, and their types."""
        rows, kinds = heard_rows(low, high, types)
        passing = Segment(people.family, people.table, rows)
        worth = singles(passing, self._frame.n_items)
        worth.data[self._items.first_batch[worth.indices] > batch] = 0.0
        self._sums.add_rows(worth, self._along(passing), batch=batch, kinds=kinds)

    def _along(self, passing: Segment) -> GainsOfEach:
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
        """Release `number`, without anything of columns."""
        none = (0,) * len(self._counts.contexts.columns)
        shared = SharedFocus(focus.weights, focus.singles, SHARES - focus.singles, none, none)
        return self.begin_by_type(number, first, shared)[0]

    def begin_by_type(
        self, number: int, first: int, focus: SharedFocus
    ) -> tuple[PublishedSums, ReleasedCells]:
        """Release `number`, all of it at once; paid for here. Who came before batch `first` is in no sum any more."""
        frame, sums = self._frame, self._sums
        drawn = sums.release(number, self._plan.sigmas[number], focus, frame.secret)
        answers = frame.answers_in(self._plan.schedule.ends)
        weights, answering = sums.weights, frame.patience.answering
        many = float(weights @ answers)

        def cells_with(units: Floats) -> ReleasedCells:
            asked = Asked(weights, many, units, answering, sums.clip.limit)
            return ReleasedCells(drawn.cells.__getitem__, drawn.counts.__getitem__, drawn.deviations, asked)

        counts = self._counts.with_counts(cells_with(np.zeros(frame.n_items)).counts)

        def people(batch: int) -> Floats:
            return counts.people_in(batch, answering, float(answers[batch]))

        units, each = sums.units(list(drawn.questions), people, answers, self._items.first_batch)
        rows = {
            question: Measured(found, mine, drawn.deviations.others)
            for (question, found), mine in zip(drawn.questions.items(), each, strict=True)
        }
        singles = Measured(drawn.singles, units, drawn.deviations.singles)
        return PublishedSums(singles, told(rows)), cells_with(units)

    def asked_from(self, number: int) -> int | None:
        """The first batch that release `number` asked, if that was begun before a crash."""
        return asked_from(self._sums.ledger, self._sums.name, number)

    def ask_about(self, asks: Asks, batch: int) -> None:
        """What people of `batch` are asked about when they come, and in what focus."""
        chains = asks.by_type
        if chains is None:
            alike = np.full(self._frame.slots - 1, EMPTY_SLOT, dtype=np.int64)
            alike[: len(asks.chain)] = asks.chain
            chains = np.tile(alike, (self._counts.contexts.n_types, 1))
        self._sums.ask(chains, batch=batch, weights=asks.weights)

    # What a snapshot holds: sums.

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What is of fixed size; restored in place."""
        return self._sums.arrays

    def extra(self) -> dict[str, NDArray[Any]]:
        """The sums, and what they are of."""
        return self._sums.extra()

    def take_extra(self, found: dict[str, NDArray[Any]]) -> None:
        """Go on with these sums; refuse whatever else there is."""
        self._sums.take_extra(found)

    def check(self) -> None:
        """Refuse sums that could not have come about."""
        if not self._sums.sound():
            raise InvalidInput("The snapshot holds sums that could not have come about; it was altered.")
