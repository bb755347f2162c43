"""One person walked along the slate that she was shown: what items are worth to her by themselves, and her payoff.

A person of a compiled family cares about a few items, however many there are. What she says about them is worked out in
proportion to that few, in room that is kept from person to person: nothing here is as long as the list of items but
that room, which is made once. Python functions are asked by their own methods.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo._numba import kernel
from diminuendo._validate import as_float, as_floats
from diminuendo.learners.base.decisions import shown
from diminuendo.objectives.family import GainBuffer, Table, add, gains, new_gain_buffer, offset, start, value
from diminuendo.objectives.person import Person
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items, Objective


class Answer(NamedTuple):
    """Which items are worth something to her by themselves, in rising order, what they are worth, and her payoff."""

    items: Ints
    worth: Floats
    payoff: float

    def __repr__(self) -> str:
        return "<Answer>"


class PersonWalk:
    """Asks one person after the other."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._state = np.empty(1)
        self._buffer: GainBuffer | None = None

    def __repr__(self) -> str:
        return f"<PersonWalk, {self.n_items} items>"

    def along(self, person: Objective, row: Items, first_batch: Ints, batch: int) -> Answer | None:
        """What she says, who was shown `row`, about items that are there since her batch or longer.

        None where it has the wrong shape. A function may raise whatever it likes.
        """
        if type(person) is Person:
            return self._compiled(person, row, first_batch, batch)
        worth = as_floats(person.gains(()))
        payoff = as_float(person.value(shown(row)))
        if worth.shape != (self.n_items,):
            return None
        items = np.flatnonzero((worth > 0) & (first_batch <= batch))
        return Answer(items, worth[items], payoff)

    def _compiled(self, person: Person, row: Items, first_batch: Ints, batch: int) -> Answer:
        leaves = person.family.leaves
        if self._buffer is None or len(self._buffer.items) < leaves * self.n_items:
            self._buffer = new_gain_buffer(self.n_items, leaves)
        items, worth = self._buffer.items, self._buffer.gains
        while True:
            count, rising, payoff = _along(
                person.table, person.index, row, first_batch, batch, self._state, self._buffer
            )
            if count >= 0:
                break
            self._state = np.empty(-count)
        found, values = items[:count].astype(np.int64), worth[:count].copy()
        if not rising:
            order = np.argsort(found)
            found, values = found[order], values[order]
        return Answer(found, values, payoff)


@kernel
def _along(
    table: Table, person: int, row: Items, first_batch: Ints, batch: int, state: Floats, buffer: GainBuffer
) -> tuple[int, bool, float]:
    """How many items are in the buffer, whether they rise, and the payoff; or, negative, how much state she takes."""
    size = offset(table, person + 1) - offset(table, person)
    if size > len(state):
        return -size, False, 0.0
    start(table, person, state, 0)
    count, before, rising = 0, -1, True
    for j in range(gains(table, person, state, 0, buffer, 0)):
        item = buffer.items[j]
        if buffer.gains[j] > 0.0 and first_batch[item] <= batch:
            buffer.items[count], buffer.gains[count] = item, buffer.gains[j]
            rising &= before < item
            before = item
            count += 1
    for item in row:
        if item != EMPTY_SLOT:
            add(table, person, state, 0, item)
    return count, rising, value(table, person, state, 0)
