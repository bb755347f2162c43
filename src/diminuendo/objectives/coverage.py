r"""Weighted coverage: :math:`f(S) = \sum_u w_u [\text{some item of } S \text{ has topic } u]`.

Which item has which topics is public; how much a user cares about each topic is private. A
user's weights add up to at most 1.

State: for each topic the user cares about, whether it is covered (0 or 1).
Concave form: each topic is covered to the extent min(1, sum of x_a over its items).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy

from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, GainBuffer, Kernels, close, put, register
from diminuendo.objectives.rows import Matrix, Rows, checked_rows, find
from diminuendo.types import Floats, Ints, Items


class CoverageTable(NamedTuple):
    """User t's weights on topics, and the public incidence read from both sides."""

    starts: Ints
    columns: Items
    values: Floats
    topic_starts: Ints
    topic_items: Items
    item_starts: Ints
    item_topics: Items


@dataclass(frozen=True, eq=False)
class Coverage(Family):
    """Family of users who care about topics: the total weight of the topics that the slate covers.

    Rows of a stream hold weights on topics, not on items; each row adds up to at most 1.

    Parameters
    ----------
    incidence : array or scipy sparse array, shape (n_items, n_topics)
        Public: non-zero where the item has the topic.

    Notes
    -----
    f(S) = sum of w_u over topics u of which some item of S has the topic. Which item has which topic is public; the
    weights are the user's.

    Examples
    --------
    >>> import diminuendo as dim
    >>> family = dim.Coverage([[1, 1, 0], [0, 1, 0], [0, 0, 1]])  # three items, three topics
    >>> users = dim.Users(family, [[0.5, 0.25, 0.25]])
    >>> users[0].value((1, 2)), users[0].value((0, 1))
    (0.5, 0.75)

    """

    incidence: Matrix = field(repr=False)
    name: ClassVar[str] = "coverage"

    def __post_init__(self) -> None:
        marks = scipy.sparse.csr_array(self.incidence, copy=True)
        marks.sum_duplicates()
        marks.eliminate_zeros()
        marks.data = np.ones_like(marks.data, dtype=np.float64)
        topics = checked_rows(marks, marks.shape[1], column="topic", quantity="mark")
        flipped = scipy.sparse.csr_array(marks.T)
        items = checked_rows(flipped, marks.shape[0], column="item", quantity="mark")
        object.__setattr__(self, "_topics_of", topics)
        object.__setattr__(self, "_items_of", items)

    _topics_of: Rows = field(init=False, repr=False)
    _items_of: Rows = field(init=False, repr=False)

    @property
    def n_items(self) -> int:
        """The number of items: rows of the incidence."""
        return len(self._topics_of.starts) - 1

    @property
    def columns_are_items(self) -> bool:
        """No: they are topics."""
        return False

    def columns(self, n_items: int) -> tuple[int, ...]:
        """One column per topic."""
        return (len(self._items_of.starts) - 1,)

    def table(self, matrices: Sequence[Matrix], n_items: int) -> CoverageTable:
        """Rows of weights on topics, each row adding up to at most 1."""
        if self.n_items != n_items:
            raise InvalidInput(
                f"The incidence has {self.n_items} items (rows), but there are {n_items} items to choose from."
            )
        (width,) = self.columns(n_items)
        rows = checked_rows(matrices[0], width, column="topic", quantity="weight")
        sums: Floats = scipy.sparse.csr_array(
            (rows.values, rows.columns, rows.starts), shape=(len(rows.starts) - 1, width)
        ).sum(axis=1)
        # A sum of n numbers errs by n roundings.
        heavy = sums > 1 + np.diff(rows.starts) * np.finfo(float).eps
        if heavy.any():
            bad = int(np.argmax(heavy))
            raise InvalidInput(
                f"Row {bad}: the weights of a user add up to at most 1. Divide the row by its sum."
            )
        items, topics = self._items_of, self._topics_of
        return CoverageTable(*rows, items.starts, items.columns, topics.starts, topics.columns)

    def parameters(self) -> dict[str, Any]:
        """Which item has which topic, as sparse rows."""
        marks = scipy.sparse.csr_array(self.incidence)
        arrays = {name: getattr(marks, name).tolist() for name in ("indptr", "indices")}
        return {"shape": list(marks.shape)} | arrays

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """The family in which items have these topics."""
        rows = np.ones(len(parameters["indices"])), parameters["indices"], parameters["indptr"]
        return cls(scipy.sparse.csr_array(rows, shape=parameters["shape"]))

    @classmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Overlapping topics, an item without topics, and a user who wants nothing."""
        incidence = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 0]])
        weights = np.array([[0.2] * 5, [0, 0, 0, 0, 0], [0.5, 0, 0.25, 0, 0.25], [0, 0.3, 0, 0.3, 0]])
        yield cls(incidence), 4, (weights,)


def _offset(table: CoverageTable, user: int) -> int:
    return int(table.starts[user])


def _start(table: CoverageTable, user: int, state: Floats, at: int) -> None:
    for j in range(table.starts[user + 1] - table.starts[user]):
        state[at + j] = 0.0


def _value(table: CoverageTable, user: int, state: Floats, at: int) -> float:
    low, total = table.starts[user], 0.0
    for j in range(table.starts[user + 1] - low):
        total += state[at + j] * table.values[low + j]
    return min(1.0, total)


def _gain(table: CoverageTable, user: int, state: Floats, at: int, item: int) -> float:
    low, high, total = table.starts[user], table.starts[user + 1], 0.0
    for j in range(table.item_starts[item], table.item_starts[item + 1]):
        where = find(table.columns, low, high, table.item_topics[j])
        if where >= 0 and state[at + where - low] == 0.0:
            total += table.values[where]
    return total


def _gains(table: CoverageTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    low, first = table.starts[user], count
    for j in range(table.starts[user + 1] - low):
        if state[at + j] == 0.0:
            topic = table.columns[low + j]
            for m in range(table.topic_starts[topic], table.topic_starts[topic + 1]):
                count = put(buffer, first, count, table.topic_items[m], table.values[low + j])
    close(buffer, first, count)
    return count


def _add(table: CoverageTable, user: int, state: Floats, at: int, item: int) -> None:
    low, high = table.starts[user], table.starts[user + 1]
    for j in range(table.item_starts[item], table.item_starts[item + 1]):
        where = find(table.columns, low, high, table.item_topics[j])
        if where >= 0:
            state[at + where - low] = 1.0


def _ceiling(table: CoverageTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    surely = 0.0
    for j in range(table.starts[user], table.starts[user + 1]):
        topic, covered = table.columns[j], 0.0
        low, high = table.topic_starts[topic], table.topic_starts[topic + 1]
        for m in range(low, high):
            covered += x[table.topic_items[m]]
        if covered >= 1.0:
            surely += table.values[j]
        else:
            for m in range(low, high):
                slope[table.topic_items[m]] += scale * table.values[j]
    return surely


register(CoverageTable, Kernels(_value, _gain, _gains, _add, _ceiling, _offset, _start))
