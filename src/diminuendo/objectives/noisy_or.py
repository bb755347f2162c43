r"""Noisy-or, the product display: :math:`f(S) = 1 - \prod_{a \in S} (1 - p_a)`.

User t clicks item a with probability p_a, independently; f(S) is the probability that anything
shown is clicked. With every p in {0, 1} it asks whether we showed anything this user wanted.

State: the probability that nothing in the prefix is clicked.
Concave form: 1 - exp(sum of x_a log(1 - p_a)), plus x_a where p_a = 1, below both 1 and the sum of x_a p_a.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from diminuendo.objectives.family import Family, GainBuffer, Kernels, register
from diminuendo.objectives.rows import Matrix, checked_rows, find
from diminuendo.types import Floats, Ints, Items


class NoisyOrTable(NamedTuple):
    """User t clicks items columns[starts[t]:starts[t+1]] with these probabilities."""

    starts: Ints
    columns: Items
    values: Floats


@dataclass(frozen=True)
class NoisyOr(Family):
    """Family of users who click each shown item independently: the probability that anything shown is clicked.

    Rows of a stream hold click probabilities: row t, column a is p_a of user t, in [0, 1]. With probabilities 0 and
    1 alone it asks whether the slate holds anything that the user wants.

    Notes
    -----
    f(S) = 1 - prod over a in S of (1 - p_a): monotone, submodular, f(empty) = 0, values in [0, 1].

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.Users(dim.NoisyOr(), [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> [user.value((0, 1)) for user in users]
    [0.75, 0.0]
    """

    name: ClassVar[str] = "noisy-or"

    def table(self, matrices: Sequence[Matrix], n_items: int) -> NoisyOrTable:
        """Rows of click probabilities."""
        return NoisyOrTable(*checked_rows(matrices[0], n_items, column="item", quantity="probability"))

    @classmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Sure things, unlikely things, an explicit zero and a user who wants nothing."""
        yield cls(), 4, (np.array([[0.5, 0, 1, 0.25], [0, 0, 0, 0], [1, 1, 0, 0.125], [0.1, 0.9, 0.3, 0.7]]),)


def _start(table: NoisyOrTable, user: int, state: Floats, at: int) -> None:
    state[at] = 1.0


def _value(table: NoisyOrTable, user: int, state: Floats, at: int) -> float:
    return float(1.0 - state[at])


def _gain(table: NoisyOrTable, user: int, state: Floats, at: int, item: int) -> float:
    if state[at] == 0.0:  # nothing is left to gain: no need to look for the item
        return 0.0
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where < 0:
        return 0.0
    return float(state[at] * table.values[where])


def _gains(table: NoisyOrTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    missed = state[at]
    if missed > 0.0:
        low, high = table.starts[user], table.starts[user + 1]
        columns, values = table.columns[low:high], table.values[low:high]
        items, gains = buffer.items[count:], buffer.gains[count:]
        for j in range(len(columns)):  # from 0 on, so that several are taken at a time
            items[j] = columns[j]
            gains[j] = missed * values[j]
        count += len(columns)
    return count


def _add(table: NoisyOrTable, user: int, state: Floats, at: int, item: int) -> None:
    if state[at] == 0.0:
        return
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where >= 0:
        state[at] *= 1.0 - table.values[where]


def _ceiling(table: NoisyOrTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    exponent, sure, linear = 0.0, 0.0, 0.0
    for j in range(table.starts[user], table.starts[user + 1]):
        p, xa = table.values[j], x[table.columns[j]]
        linear += p * xa
        if p < 1.0:
            exponent += xa * math.log1p(-p)
        else:
            sure += xa
    missed = math.exp(exponent)
    curved = 1.0 - missed + sure
    if curved >= 1.0 and linear >= 1.0:
        return 1.0  # h = 1, g = 0
    for j in range(table.starts[user], table.starts[user + 1]):
        p = table.values[j]
        steep = p if linear <= curved or p == 1.0 else -missed * math.log1p(-p)
        slope[table.columns[j]] += scale * min(p, steep)
    return 0.0 if linear <= curved else 1.0 - missed + missed * exponent


register(NoisyOrTable, Kernels(_value, _gain, _gains, _add, _ceiling, start=_start))
