"""What the answer to a probe says about the item that was tried: a payoff, or whether it was the first to be clicked.

Cells are fed with these numbers, in [0, 1]. They are as private as the answers.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from diminuendo._numba import kernel
from diminuendo.learners.base.feedback import Clicks, Payoffs, Reader
from diminuendo.objectives.family import Table, add, start, value
from diminuendo.streams.people import People
from diminuendo.types import EMPTY_SLOT, Floats, Ints, Items


class Worth(Protocol):
    """Which feedback comes back from a probe, and what it is worth."""

    @property
    def reader(self) -> Reader:
        """Checks feedback at the door."""
        ...

    def of(self, row: Items, probe: Items, answer: Any) -> float:
        """What the answer to `row` says about the slot and item of `probe`."""
        ...

    def of_all(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        """What the people of these rounds say about their probes, asked about the slates that they were shown."""
        ...


class PayoffOfProbe:
    """A cell is worth the payoff of the slate with which it was probed."""

    reader = Payoffs()

    def of(self, row: Items, probe: Items, answer: float) -> float:
        """The payoff of the slate that was shown."""
        return answer

    def of_all(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        """The payoffs of all these people."""
        out = np.empty(len(rounds))
        _payoffs(people.table, rounds, slates, np.empty(people.largest_state), out)
        return out


class ClickOnProbe:
    """A cell is worth whether the item that was put in was the first to be clicked."""

    reader = Clicks()

    def of(self, row: Items, probe: Items, answer: int) -> float:
        """1 if the item that was tried was clicked in its slot, else 0."""
        return float(answer == probe[0] and row[probe[0]] == probe[1])

    def of_all(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        """1 or 0 for each of these people."""
        first, last = int(rounds[0]), int(rounds[-1]) + 1
        clicked = people.first_clicks(slates[first:last], first)[rounds - first]
        slots, items = probes[:, 0], probes[:, 1]
        found: Floats = ((clicked == slots) & (slates[rounds, slots] == items)).astype(np.float64)
        return found


@kernel
def _payoffs(table: Table, people: Ints, slates: Items, state: Floats, out: Floats) -> None:
    """What each of these people feels about her slate."""
    for j in range(len(people)):
        person = people[j]
        start(table, person, state, 0)
        for item in slates[person]:
            if item != EMPTY_SLOT:
                add(table, person, state, 0, item)
        out[j] = value(table, person, state, 0)
