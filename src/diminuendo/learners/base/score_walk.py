"""Stored people walked along a growing slate, and what items would add for all of them together, in whole ticks.

It is the walk of private greedy (docs/maths/private-greedy.md): a person's gains are cut to what is left of her one
unit and rounded down to whole ticks. So for any function whatever she adds at most one unit to a score, and at most
one unit along the whole slate.

Whoever raises, or answers in the wrong shape, adds nothing to that score; an error message would name one person
among all others. A Python function may answer otherwise the next time, so what entered a score is kept until an item
is picked by it. Where that is not known any more, because the pick was made before a crash, functions say nothing in
the rest of the slate; people of compiled families say what they said.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo.errors import unless_ctrl_c
from diminuendo.learners.base.stored_objectives import StoredObjectives
from diminuendo.objectives.family import GainBuffer, Table, add, gains, new_gain_buffer, offset, start
from diminuendo.randomness.ticks import TICKS, to_ticks
from diminuendo.types import Floats, Ints, Objective


class ScoreWalk:
    """People walked along a growing slate: what every item would add for all of them. As they were when it began."""

    def __init__(self, people: StoredObjectives) -> None:
        self.n_items, self.chosen = people.n_items, list[int]()
        self._tables: list[tuple[Table, Ints, Ints, Floats, Ints, GainBuffer]] = []
        self._functions: list[Objective] = []
        leaves = max((part.family.leaves for part in people.segments if part.family is not None), default=1)
        bag = new_gain_buffer(people.n_items, leaves)  # one for all: each person may be a segment
        for segment in people.segments:
            if segment.function is not None:
                self._functions.append(segment.function)
            elif segment.family is not None:
                rows, at = np.array(segment.rows, dtype=np.int64), np.zeros(len(segment) + 1, dtype=np.int64)
                _begin(segment.table, rows, at, np.empty(0))
                state, left = np.empty(at[-1]), np.full(len(rows), TICKS, dtype=np.int64)
                _begin(segment.table, rows, at, state)
                self._tables.append((segment.table, rows, at, state, left, bag))
        self._left = np.full(len(self._functions), TICKS, dtype=np.int64)
        self._entered = np.zeros((len(self._functions), people.n_items), dtype=np.int32)
        self._known = False  # whether `_entered` is what the next pick was made by

    def __repr__(self) -> str:
        return f"<ScoreWalk, {self.n_items} items, {len(self.chosen)} chosen>"

    def scores(self) -> Ints:
        """The sum of what each item adds now, in ticks: secret."""
        total = np.zeros(self.n_items, dtype=np.int64)
        for part in self._tables:
            _score(*part, total)
        for person, function in enumerate(self._functions):
            _enter(self._said(function), self._left[person], self._entered[person])
        self._known = True
        total += self._entered.sum(axis=0, dtype=np.int64)
        return total

    def join(self, item: int) -> None:
        """The next item of the slate, picked by the last scores; or, without any since the last item, elsewhere."""
        for part in self._tables:
            _join(*part, item)
        left = self._left - self._entered[:, item] if self._known else np.zeros_like(self._left)
        self._left, self._known = np.maximum(left, 0), False
        self.chosen.append(item)

    def _said(self, function: Objective) -> Floats:
        try:
            row = np.ascontiguousarray(function.gains(tuple(self.chosen)), dtype=np.float64)
        except BaseException as error:  # foreign code: that it failed must not be seen
            unless_ctrl_c(error)
            row = np.zeros(0)
        return row if row.shape == (self.n_items,) else np.zeros(self.n_items)


@inline
def _ticks(gain: float, left: int) -> int:
    """A gain as whole ticks from 0 to what is left of the person; NaN counts as 0."""
    return min(to_ticks(gain), left)


@kernel
def _begin(table: Table, rows: Ints, at: Ints, state: Floats) -> None:
    """Everybody's empty prefix; with an empty `state`, only where each is to begin."""
    for i in range(len(rows)):
        at[i + 1] = at[i] + offset(table, rows[i] + 1) - offset(table, rows[i])
        if len(state):
            start(table, rows[i], state, at[i])


@kernel
def _score(
    table: Table, rows: Ints, at: Ints, state: Floats, left: Ints, bag: GainBuffer, total: Ints
) -> None:
    for i in range(len(rows)):
        for j in range(gains(table, rows[i], state, at[i], bag, 0)):
            total[bag.items[j]] += _ticks(bag.gains[j], left[i])


@kernel
def _join(table: Table, rows: Ints, at: Ints, state: Floats, left: Ints, bag: GainBuffer, item: int) -> None:
    for i in range(len(rows)):
        for j in range(
            gains(table, rows[i], state, at[i], bag, 0)
        ):  # the very numbers that entered its score
            if bag.items[j] == item:
                left[i] -= _ticks(bag.gains[j], left[i])
        add(table, rows[i], state, at[i], item)


@kernel
def _enter(row: Floats, left: int, entered: NDArray[np.int32]) -> None:
    for item in range(len(row)):
        entered[item] = _ticks(row[item], left)
