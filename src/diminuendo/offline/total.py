"""The sum of a whole stream's objectives, given the items chosen so far.

Greedy and the exact solvers ask this for gains and values. Of users it keeps one small state each (streams/walks.py),
and never a matrix of users times items beyond the sparse rows themselves.
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import allocating_kernel, kernel
from diminuendo.objectives.family import GainBuffer, Table, add, ceiling, gain, gains, new_gain_buffer, value
from diminuendo.streams.users import Stream, Users
from diminuendo.streams.walks import Walkers, begin, walkers_of
from diminuendo.types import Floats


def total(stream: Stream) -> Total:
    """The sum over `stream`: compiled for users of a family, one call at a time for Python functions."""
    return UsersTotal(stream) if isinstance(stream, Users) else Total(stream)


class Total:
    """F(S), the sum of f_t(S) over a stream, along a growing prefix S; by one call for each user."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.n_items = stream, stream.n_items
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


class UsersTotal(Total):
    """The same for users of one family, by compiled kernels."""

    def __init__(self, users: Users) -> None:
        users.check()
        super().__init__(users)
        self.users, self._walkers = users, walkers_of(users.table, np.arange(len(users)))
        self._buffer = new_gain_buffer(users.n_items, users.family.leaves)

    def begin(self) -> None:
        """Back to the empty prefix, in all users' states."""
        super().begin()
        begin(self._walkers)

    def add(self, item: int) -> None:
        """prefix := prefix + item, in all users' states."""
        super().add(item)
        _add(self._walkers, item)

    def value(self) -> float:
        """F(prefix), from all users' states."""
        return float(_value(self._walkers))

    def gains(self) -> Floats:
        """Every item's gain; for each user, only items that may add something are evaluated."""
        out = np.zeros(self.n_items)
        _gains(self._walkers, self._buffer, out)
        out[self.prefix] = 0.0
        return out

    def move(self, item: int, gains: Floats) -> float:
        """prefix := prefix + item, what that adds, and `gains` taken along to the new prefix, up to rounding.

        Only those who gain from the item are moved, and asked what else they would gain. The others' gains stay: if
        f(S + a) is f(S), then f(S + a + b) - f(S + a) is at least f(S + b) - f(S), as f never falls, and diminishing
        returns let it be no more.
        """
        super().add(item)
        return float(_move(self._walkers, self._buffer, item, gains))

    def ceiling(self, x: Floats) -> tuple[float, Floats]:
        """(h, g) with F(S) <= h + sum of g over S for every set S; they are equal where x is the set S."""
        slope = np.zeros(self.n_items)
        return float(_ceiling(self._walkers.table, len(self.stream), x, slope)), slope


@kernel
def _add(walk: Walkers, item: int) -> None:
    table, rows, at, state = walk
    for t in range(len(rows)):
        add(table, t, state, at[t], item)


@kernel
def _value(walk: Walkers) -> float:
    table, rows, at, state = walk
    total = 0.0
    for t in range(len(rows)):
        total += value(table, t, state, at[t])
    return total


@kernel
def _gains(walk: Walkers, buffer: GainBuffer, out: Floats) -> None:
    table, rows, at, state = walk
    for t in range(len(rows)):
        for j in range(gains(table, t, state, at[t], buffer, 0)):
            out[buffer.items[j]] += buffer.gains[j]


@kernel
def _move(walk: Walkers, buffer: GainBuffer, item: int, out: Floats) -> float:
    table, rows, at, state = walk
    total = 0.0
    for t in range(len(rows)):
        gained = gain(table, t, state, at[t], item)
        total += gained
        if gained > 0.0:
            for j in range(gains(table, t, state, at[t], buffer, 0)):
                out[buffer.items[j]] -= buffer.gains[j]
            add(table, t, state, at[t], item)
            for j in range(gains(table, t, state, at[t], buffer, 0)):
                out[buffer.items[j]] += buffer.gains[j]
    return total


@allocating_kernel
def _ceiling(table: Table, n: int, x: Floats, slope: Floats) -> float:
    total = 0.0
    for t in range(n):
        total += ceiling(table, t, x, 1.0, slope)
    return total
