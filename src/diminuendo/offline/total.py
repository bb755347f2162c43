"""The sum of a whole stream's objectives, given the items chosen so far.

Greedy and the exact solvers ask this for gains and values. It keeps one small state per person, and
never a matrix of people times items beyond the sparse rows themselves.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from diminuendo._numba import allocating_kernel, kernel
from diminuendo.objectives.family import (
    GainBuffer,
    Table,
    add,
    ceiling,
    gain,
    gains,
    new_gain_buffer,
    offset,
    start,
    value,
)
from diminuendo.streams.people import People, Stream
from diminuendo.types import Floats, Ints, Items


class Total(Protocol):
    """F(S), the sum of f_t(S) over a stream, along a growing prefix S."""

    n_items: int

    def begin(self) -> None:
        """Back to the empty prefix."""

    def add(self, item: int) -> None:
        """prefix := prefix + item."""

    def value(self) -> float:
        """F(prefix)."""

    def gains(self) -> Floats:
        """F(prefix + a) - F(prefix) for every item; 0 for items of the prefix."""

    def gain(self, item: int) -> float:
        """F(prefix + item) - F(prefix)."""


def total(stream: Stream) -> Total:
    """The sum over `stream`: compiled for people of a family, one call at a time for Python functions."""
    return PeopleTotal(stream) if isinstance(stream, People) else FunctionTotal(stream)


class PeopleTotal:
    """The sum over people of one family, by compiled kernels."""

    def __init__(self, people: People) -> None:
        self.people = people
        self.n_items = people.n_items
        self.prefix: list[int] = []
        self._state = np.empty(_state_size(people.table, len(people)))
        self._buffer = new_gain_buffer(people.n_items, people.family.leaves)
        self._people_by_item: tuple[Ints, Items] | None = (
            None  # not before it is needed: plain greedy never does
        )
        self.begin()

    def begin(self) -> None:
        """Back to the empty prefix."""
        self.prefix.clear()
        _begin(self.people.table, len(self.people), self._state)

    def add(self, item: int) -> None:
        """prefix := prefix + item."""
        self.prefix.append(item)
        if self._people_by_item is None:
            _add_for_all(self.people.table, len(self.people), self._state, item)
        else:
            starts, people = self._people_by_item
            _add_for(self.people.table, people[starts[item] : starts[item + 1]], self._state, item)

    def value(self) -> float:
        """F(prefix)."""
        return float(_value(self.people.table, len(self.people), self._state))

    def gains(self) -> Floats:
        """F(prefix + a) - F(prefix) for every item; 0 for items of the prefix."""
        out = np.zeros(self.n_items)
        _gains(self.people.table, len(self.people), self._state, self._buffer, out)
        out[self.prefix] = 0.0
        return out

    def gain(self, item: int) -> float:
        """F(prefix + item) - F(prefix): only the item's own people are asked."""
        if item in self.prefix:
            return 0.0
        if self._people_by_item is None:
            self._people_by_item = self.people.people_by_item
        starts, people = self._people_by_item
        return float(_gain(self.people.table, people[starts[item] : starts[item + 1]], self._state, item))

    def move(self, item: int, gains: Floats) -> float:
        """prefix := prefix + item, what that adds, and `gains` taken along to the new prefix, up to rounding.

        Only those who gain from the item are moved, and asked what else they would gain. The others' gains stay: if
        f(S + a) is f(S), then f(S + a + b) - f(S + a) is at least f(S + b) - f(S), as f never falls, and diminishing
        returns let it be no more.
        """
        self.prefix.append(item)
        return float(_move(self.people.table, len(self.people), self._state, self._buffer, item, gains))

    def ceiling(self, x: Floats) -> tuple[float, Floats]:
        """(h, g) with F(S) <= h + sum of g over S for every set S; they are equal where x is the set S."""
        slope = np.zeros(self.n_items)
        return float(_ceiling(self.people.table, len(self.people), x, slope)), slope


class FunctionTotal:
    """The sum over arbitrary objectives."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.n_items = stream.n_items
        self.prefix: list[int] = []

    def begin(self) -> None:
        """Back to the empty prefix."""
        self.prefix.clear()

    def add(self, item: int) -> None:
        """prefix := prefix + item."""
        self.prefix.append(item)

    def value(self) -> float:
        """F(prefix)."""
        return float(self.stream.values(self.prefix).sum())

    def gains(self) -> Floats:
        """F(prefix + a) - F(prefix) for every item; 0 for items of the prefix."""
        out = np.zeros(self.n_items)
        for t in range(len(self.stream)):
            out += self.stream[t].gains(self.prefix)
        return out

    def gain(self, item: int) -> float:
        """F(prefix + item) - F(prefix)."""
        if item in self.prefix:
            return 0.0
        return float(self.stream.values([*self.prefix, item]).sum()) - self.value()


@kernel
def _state_size(table: Table, n: int) -> int:
    return offset(table, n)


@kernel
def _begin(table: Table, n: int, state: Floats) -> None:
    for t in range(n):
        start(table, t, state, offset(table, t))


@kernel
def _add_for_all(table: Table, n: int, state: Floats, item: int) -> None:
    for t in range(n):
        add(table, t, state, offset(table, t), item)


@kernel
def _add_for(table: Table, people: Items, state: Floats, item: int) -> None:
    for t in people:
        add(table, t, state, offset(table, t), item)


@kernel
def _value(table: Table, n: int, state: Floats) -> float:
    total = 0.0
    for t in range(n):
        total += value(table, t, state, offset(table, t))
    return total


@kernel
def _gains(table: Table, n: int, state: Floats, buffer: GainBuffer, out: Floats) -> None:
    for t in range(n):
        for j in range(gains(table, t, state, offset(table, t), buffer, 0)):
            out[buffer.items[j]] += buffer.gains[j]


@kernel
def _move(table: Table, n: int, state: Floats, buffer: GainBuffer, item: int, out: Floats) -> float:
    total = 0.0
    for t in range(n):
        at = offset(table, t)
        gained = gain(table, t, state, at, item)
        total += gained
        if gained > 0.0:
            for j in range(gains(table, t, state, at, buffer, 0)):
                out[buffer.items[j]] -= buffer.gains[j]
            add(table, t, state, at, item)
            for j in range(gains(table, t, state, at, buffer, 0)):
                out[buffer.items[j]] += buffer.gains[j]
    return total


@kernel
def _gain(table: Table, people: Items, state: Floats, item: int) -> float:
    total = 0.0
    for t in people:
        total += gain(table, t, state, offset(table, t), item)
    return total


@allocating_kernel
def _ceiling(table: Table, n: int, x: Floats, slope: Floats) -> float:
    total = 0.0
    for t in range(n):
        total += ceiling(table, t, x, 1.0, slope)
    return total
