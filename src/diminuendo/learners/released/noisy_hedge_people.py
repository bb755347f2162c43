"""What one person contributes to noisy hedge: for every slot, what each item would add to the slots before it."""

from __future__ import annotations

import numpy as np

from diminuendo._numba import kernel
from diminuendo._validate import as_floats
from diminuendo.learners.released.contribution import (
    Contribution,
    add_to_batch,
    begin_with,
    stands,
    write_row,
)
from diminuendo.learners.released.menu import ExpertsInTurn
from diminuendo.objectives.family import Table, add
from diminuendo.sums.batch import BatchView
from diminuendo.types import Floats, Ints, Items, Objective


class HedgeGains:
    """Gains of every item in every slot of the slate that was shown, whatever the menu."""

    def __init__(self, menu: ExpertsInTurn) -> None:
        self._size = menu.slots, menu.n_items

    def add_people(
        self,
        table: Table,
        first: int,
        last: int,
        slates: Items,
        words: Ints,
        scratch: Contribution,
        into: BatchView,
    ) -> int:
        """Add what people from `first` on contribute to the open batch; who comes next when there is more scratch."""
        return int(_add_people(table, first, last, slates, scratch, into))

    def of_function(self, person: Objective, row: Items, word: int) -> Floats:
        """What one person contributes, whoever she is: slot by slot."""
        out = np.zeros(self._size)
        for slot in range(len(row)):
            shown = [int(item) for item in row[:slot]]
            out[slot] = as_floats(person.gains(shown))
            out[slot, shown] = 0.0
        return out.ravel()


@kernel
def _add_people(
    table: Table, first: int, last: int, slates: Items, scratch: Contribution, into: BatchView
) -> int:
    slots = slates.shape[1]
    for person in range(first, last):
        count, row, seen = begin_with(table, person, scratch), 0, 0
        if count < 0:
            return person
        for slot in range(slots):
            scratch.until[row] = slot + 1
            item = slates[person - first, slot]
            where = stands(scratch, count, item)
            if (
                where >= 0 and slot + 1 < slots
            ):  # for the slots to come it has been shown: nothing is as before
                scratch.chosen[seen] = where
                seen, row = seen + 1, row + 1
                add(table, person, scratch.state, 0, item)
                write_row(table, person, scratch, count, row)
                for before in range(seen):
                    scratch.values[row * count + scratch.chosen[before]] = 0.0
        add_to_batch(scratch, count, row + 1, slots, into)
    return last
