r"""Concave of a sum: :math:`f(S) = \phi(\sum_{a \in S} w_a / \mathrm{scale})` with a concave curve.

The more a user has already found, the less another item adds. The curve and the scale are public;
the weights are the user's.

State: the sum so far, divided by the scale.
Concave form: the curve of the fractional sum, below the sum of x_a times each item's own value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from diminuendo import _validate
from diminuendo._numba import inline
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, GainBuffer, Kernels, register
from diminuendo.objectives.rows import Matrix, checked_rows, find
from diminuendo.types import Floats, Ints, Items

CURVES = ("sqrt", "capped", "log", "exponential")
"""sqrt(x) and x and log2(1+x), each held at 1 from x = 1 on; and 1 - exp(-x)."""


LEAST_SCALE = 1e-9
"""Weights are at most 1, so a smaller scale would make every item of any weight worth everything."""

TINY = 2.0**-1022
"""The smallest number with all its digits."""


class ConcaveTable(NamedTuple):
    """Weights as rows, and the public curve."""

    starts: Ints
    columns: Items
    values: Floats
    curve: int
    scale: float


@dataclass(frozen=True)
class Concave(Family):
    """Family of users with diminishing returns in the total weight shown.

    Rows of a stream hold weights: row t, column a is w_a of user t, in [0, 1].

    Parameters
    ----------
    curve : {"sqrt", "capped", "log", "exponential"}, default "sqrt"
        Concave function phi: sqrt(x), x, or log2(1 + x), each held at 1 from x = 1 on; or 1 - exp(-x).
    scale : float, default 1.0
        Weights are divided by it; at least 1e-9. Public.

    Raises
    ------
    InvalidInput
        If the curve is unknown or the scale too small.

    Notes
    -----
    f(S) = phi(sum over a in S of w_a / scale).

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.Users(dim.Concave("capped", scale=2.0), [[1.0, 1.0, 0.5]])
    >>> users[0].value((0, 2)), users[0].value((0, 1, 2))
    (0.75, 1.0)
    """

    curve: str = "sqrt"
    scale: float = 1.0
    name: ClassVar[str] = "concave"

    def __post_init__(self) -> None:
        _validate.one_of(self.curve, CURVES, "curve")
        if _validate.positive_float(self.scale, "scale") < LEAST_SCALE:
            raise InvalidInput(f"scale must be at least {LEAST_SCALE:g}; got {self.scale}.")

    def table(self, matrices: Sequence[Matrix], n_items: int) -> ConcaveTable:
        """A table from rows of weights."""
        rows = checked_rows(matrices[0], n_items, column="item", quantity="weight")
        return ConcaveTable(*rows, CURVES.index(self.curve), float(self.scale))

    @classmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Every curve, with sums on both sides of the bend."""
        weights = np.array([[0.5, 0, 1, 0.25], [0, 0, 0, 0], [1, 1, 0.5, 0.125], [0.1, 0.2, 0.3, 0.05]])
        for curve in CURVES:
            yield cls(curve=curve, scale=1.5), 4, (weights,)


@inline
def phi(curve: int, x: float) -> float:
    """The value of the curve at x."""
    if curve == 3:
        return -math.expm1(-x)
    if x >= 1.0:
        return 1.0
    if curve == 0:
        return math.sqrt(x)
    if curve == 1:
        return x
    return math.log1p(x) / math.log(2.0)


@inline
def phi_slope(curve: int, x: float) -> float:
    """A supergradient of the curve at x > 0."""
    if curve == 3:
        return math.exp(-x)
    if x >= 1.0:
        return 0.0
    if curve == 0:
        return 0.5 / math.sqrt(x)
    if curve == 1:
        return 1.0
    return 1.0 / ((1.0 + x) * math.log(2.0))


def _value(table: ConcaveTable, user: int, state: Floats, at: int) -> float:
    return phi(table.curve, state[at])


def _gain(table: ConcaveTable, user: int, state: Floats, at: int, item: int) -> float:
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where < 0:
        return 0.0
    return phi(table.curve, state[at] + table.values[where] / table.scale) - phi(table.curve, state[at])


def _gains(table: ConcaveTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    before = phi(table.curve, state[at])
    for j in range(table.starts[user], table.starts[user + 1]):
        buffer.items[count] = table.columns[j]
        buffer.gains[count] = phi(table.curve, state[at] + table.values[j] / table.scale) - before
        count += 1
    return count


def _add(table: ConcaveTable, user: int, state: Floats, at: int, item: int) -> None:
    where = find(table.columns, table.starts[user], table.starts[user + 1], item)
    if where >= 0:
        state[at] += table.values[where] / table.scale


def _ceiling(table: ConcaveTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    inside, linear = 0.0, 0.0
    for j in range(table.starts[user], table.starts[user + 1]):
        xa = x[table.columns[j]]
        inside += table.values[j] / table.scale * xa
        linear += phi(table.curve, table.values[j] / table.scale) * xa
    # A sum that has lost its digits has no slope.
    curved = phi(table.curve, inside) if inside > TINY else linear
    rise = phi_slope(table.curve, inside) if linear > curved else math.inf
    for j in range(table.starts[user], table.starts[user + 1]):
        weight = table.values[j] / table.scale
        if weight > 0.0:
            slope[table.columns[j]] += scale * min(rise * weight, phi(table.curve, weight))
    return curved - rise * inside if linear > curved else 0.0


register(ConcaveTable, Kernels(_value, _gain, _gains, _add, _ceiling))
