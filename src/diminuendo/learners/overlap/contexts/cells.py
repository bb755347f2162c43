"""What one release says of the values of columns, divided by how many users could have said it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from diminuendo.learners.overlap.contexts.counts import TypeCounts
from diminuendo.learners.overlap.running_means import Measured
from diminuendo.sums.greedy_queries.cells import Deviations
from diminuendo.types import Floats, Ints


class Asked(NamedTuple):
    """Who could have said it. Public."""

    weights: Ints
    """How often users of each batch count."""
    users: float
    """How many users answer, each as often as she counts."""
    units: Floats
    """For each item what all of them can add to its sum."""
    response_rate: float
    """Which share of users answers."""
    limit: int
    """What a user counts in ticks, where users are counted by value."""


class ReleasedCells:
    """What one release says of the values of columns.

    `cells`, `counts`: what was published of a column, (values, items) and by value; None where it has no share.
    """

    def __init__(
        self,
        cells: Callable[[int], Ints | None],
        counts: Callable[[int], Ints | None],
        deviations: Deviations,
        asked: Asked,
    ) -> None:
        self._cells, self._counts, self._deviations, self._asked = cells, counts, deviations, asked

    def __repr__(self) -> str:
        return "<ReleasedCells>"

    def cells(self, column: int) -> Measured | None:
        """(values, items) sums, divided by what everybody could add: to be divided by shares of users too."""
        result = self._cells(column)
        return None if result is None else Measured(result, self._asked.units, self._deviations.cells[column])

    def type_shares(self, counts: TypeCounts) -> Floats:
        """Which share of the users who answer is of each type, by these counts."""
        return counts.type_shares(self._asked.weights, self._asked.response_rate, self._asked.users)

    def counts(self, column: int) -> tuple[Floats, float] | None:
        """Shares as published now, where contexts are private, and the deviation of their noise; None: no share."""
        result, unit = self._counts(column), self._asked.limit * self._asked.users
        return None if result is None else (result / unit, self._deviations.counts[column] / unit)
