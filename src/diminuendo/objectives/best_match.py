r"""Best match: :math:`f(S) = \max_{a \in S} u_a`, one user's facility location.

Only the best thing shown counts. Over many users this is the facility-location problem.

State: the best match so far.
Concave form: take the best items first until one whole item is taken (the linear relaxation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from diminuendo.objectives.family import Family, GainBuffer, Kernels, register
from diminuendo.objectives.rows import Matrix, checked_rows, find
from diminuendo.types import Floats, Ints, Items


class BestMatchTable(NamedTuple):
    """User t likes items columns[starts[t]:starts[t+1]] this much."""

    starts: Ints
    columns: Items
    values: Floats


@dataclass(frozen=True)
class BestMatch(Family):
    """Family of users for whom only the best shown item counts.

    Rows of a stream hold how well each item matches: row t, column a is u_a of user t, in [0, 1].

    Notes
    -----
    f(S) = max over a in S of u_a. The sum over users is the facility-location problem.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.Users(dim.BestMatch(), [[0.5, 0.25, 1.0]])
    >>> users[0].value((0, 1)), users[0].gains((0,)).tolist()
    (0.5, [0.0, 0.0, 0.5])
    """

    name: ClassVar[str] = "best-match"

    def table(self, matrices: Sequence[Matrix], n_items: int) -> BestMatchTable:
        """A table from rows of matches."""
        return BestMatchTable(*checked_rows(matrices[0], n_items, column="item", quantity="match"))

    @classmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Ties, a perfect match and a user who wants nothing."""
        matches = np.array([[0.5, 0, 1, 0.5], [0, 0, 0, 0], [0.25, 0.75, 0.5, 0], [0.1, 0.2, 0.3, 0.3]])
        yield cls(), 4, (matches,)


def _value(table: BestMatchTable, user: int, state: Floats, at: int) -> float:
    return float(state[at])


def _gain(table: BestMatchTable, user: int, state: Floats, at: int, item: int) -> float:
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where < 0:
        return 0.0
    return max(0.0, float(table.values[where] - state[at]))


def _gains(table: BestMatchTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    best = state[at]
    for j in range(table.starts[user], table.starts[user + 1]):
        if table.values[j] > best:
            buffer.items[count] = table.columns[j]
            buffer.gains[count] = table.values[j] - best
            count += 1
    return count


def _add(table: BestMatchTable, user: int, state: Floats, at: int, item: int) -> None:
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where >= 0 and table.values[where] > state[at]:
        state[at] = table.values[where]


def _ceiling(table: BestMatchTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    low, high = table.starts[user], table.starts[user + 1]
    best_first = low + np.argsort(-table.values[low:high])
    taken, level = 0.0, 0.0
    for j in best_first:
        taken += x[table.columns[j]]
        if taken >= 1.0:
            level = table.values[j]
            break
    for j in range(low, high):
        slope[table.columns[j]] += scale * max(0.0, table.values[j] - level)
    return float(level)


register(BestMatchTable, Kernels(_value, _gain, _gains, _add, _ceiling))
