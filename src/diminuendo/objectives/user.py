"""One user's objective: one row of a table, evaluated by the table's own kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from diminuendo import _validate
from diminuendo._numba import allocating_kernel, kernel
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import (
    Family,
    GainBuffer,
    Table,
    add,
    ceiling,
    gains,
    new_gain_buffer,
    offset,
    sound_table,
    start,
    value,
)
from diminuendo.objectives.recorded import record
from diminuendo.types import Floats, Items, Objective, Slate, SlateLike


class User:
    """One user's objective: a row of a stream, evaluated by compiled code. Reveals nothing when printed.

    `Users.__getitem__` and `user` make them; they satisfy the `Objective` protocol.

    Parameters
    ----------
    family : Family
        Public form of the objective.
    n_items : int
        Number of items.
    table : NamedTuple of arrays
        Rows of users, as `Family.table` returned them.
    index : int
        The row.

    Examples
    --------
    >>> import diminuendo as dim
    >>> user = dim.Users(dim.NoisyOr(), [[0.5, 0.0, 0.5]])[0]
    >>> user, user.value((0, 2))
    (<User: noisy-or over 3 items>, 0.75)
    """

    __slots__ = ("family", "index", "n_items", "table")

    def __init__(self, family: Family, n_items: int, table: Table, index: int) -> None:
        self.family = family
        self.n_items = n_items
        self.table = table
        self.index = index

    def __repr__(self) -> str:
        return f"<User: {self.family.name} over {self.n_items} items>"

    def checked(self) -> User:
        """Return the same user as a fresh User whose row compiled code can read.

        Raises
        ------
        InvalidInput
            If the table was altered, or is not of the family.
        """
        index, n_items = self.index, self.n_items
        plain = type(index) is type(n_items) is int and index >= 0
        if not plain or not sound_table(self.family, self.table, n_items, index, index + 1):
            raise InvalidInput(
                "This User is no row of a table of their family and number of items. Take one from Users or from "
                "user(), and leave it as it is."
            )
        return User(self.family, n_items, self.table, index)

    def _state(self) -> Floats:
        return np.empty(largest_state(self.table, self.index, self.index + 1))

    def value(self, slate: SlateLike) -> float:
        """Return f(slate), in [0, 1].

        Parameters
        ----------
        slate : sequence of int
            Distinct items.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the slate is not of distinct items in range.
        """
        self.checked()
        items = np.array(_validate.slate(slate, self.n_items), dtype=np.int32)
        return float(_value_of(self.table, self.index, items, self._state()))

    def gains(self, prefix: SlateLike) -> Floats:
        """Return the marginal gain f(prefix + a) - f(prefix) of every item a.

        Parameters
        ----------
        prefix : sequence of int
            Distinct items.

        Returns
        -------
        ndarray of float, shape (n_items,)
            0 for items of the prefix. Work grows with the user's row, not with the number of items.

        Raises
        ------
        InvalidInput
            If the prefix is not of distinct items in range.
        """
        self.checked()
        items = np.array(_validate.slate(prefix, self.n_items), dtype=np.int32)
        out = np.zeros(self.n_items)
        buffer = new_gain_buffer(self.n_items, self.family.leaves)
        _gains_of(self.table, self.index, items, self._state(), buffer, out)
        out[items] = 0.0
        return out

    def supergradient(self, point: Floats) -> tuple[float, Floats]:
        r"""A supergradient of the concave relaxation at a fractional point, cut to what items are worth alone.

        Parameters
        ----------
        point : array of shape (n_items,)
            For each item how likely it is shown, from 0 to 1.

        Returns
        -------
        level : float
            :math:`L(y)`, the value of the relaxation at the point, or less where a slope was cut.
        slope : array of shape (n_items,)
            :math:`g`, with :math:`0 \le g_a \le f(\{a\}) \le 1`.

        Raises
        ------
        InvalidInput
            If the point is not a row of `n_items` numbers in [0, 1].

        Notes
        -----
        Every slate S has :math:`f(S) \le L(y) + \langle g, 1_S - y \rangle` (docs/maths/hindsight.md, Theorem 2). For
        noisy-or, best match, coverage, the curves "capped" and "exponential", and mixtures of them,
        :math:`(1 - 1/e)\, L(y) \le F(y) \le L(y)`, where F is the multilinear extension: the mean of f over slates
        that hold each item a with probability :math:`y_a`, independently (docs/maths/osm.md, Theorem J1). For the
        curves "sqrt" and "log" only the second inequality is proved.

        Examples
        --------
        Two items please surely, each shown with probability 1/4. L adds these up, F is 1 - (3/4)^2.

        >>> from diminuendo.objectives import NoisyOr
        >>> visitor = user(NoisyOr(), {0: 1.0, 1: 1.0}, n_items=3)
        >>> level, slope = visitor.supergradient(np.array([0.25, 0.25, 1.0]))
        >>> print(level, slope)
        0.5 [1. 1. 0.]
        """
        self.checked()
        x = np.ascontiguousarray(_validate.numbers(point, "A point"))
        if x.shape != (self.n_items,) or not ((x >= 0) & (x <= 1)).all():
            raise InvalidInput(f"A point is a row of {self.n_items} numbers in [0, 1], one for each item.")
        slope = np.zeros(self.n_items)
        return float(_ceiling_of(self.table, self.index, x, slope) + slope @ x), slope


def user(family: Family, row: Mapping[int, float] | Sequence[Mapping[int, float]], n_items: int) -> User:
    """Return the objective of one user from what they care about.

    Parameters
    ----------
    family : Family
        Form of the objective.
    row : mapping of int to float, or sequence of such mappings
        Values in [0, 1] by item; by topic for Coverage; one mapping per part for a Mixture.
    n_items : int
        Number of items.

    Returns
    -------
    User

    Raises
    ------
    InvalidInput
        If keys are not items in range, or values not in [0, 1]. The message names the place, never the value.

    Examples
    --------
    >>> from diminuendo.objectives import NoisyOr
    >>> visitor = user(NoisyOr(), {3: 0.5, 7: 0.25}, n_items=10)
    >>> visitor.value([3, 7])
    0.625
    """
    parts = [row] if isinstance(row, Mapping) else list(row)
    widths = family.columns(n_items)
    if len(parts) != len(widths):
        raise InvalidInput(f"A user of family {family.name} has {len(widths)} row(s); got {len(parts)}.")
    matrices = []
    for part, width in zip(parts, widths, strict=True):
        columns = _validate.numbers(list(part), "What a user cares about", None)
        if columns.dtype.kind not in "iu" and len(columns):
            raise InvalidInput("What a user cares about is named by whole numbers: {3: 0.5, 7: 0.25}.")
        columns = np.sort(columns)
        values = _validate.numbers([part[column] for column in columns.tolist()], "Values")
        matrices.append(
            SparseRows(np.array([0, len(columns)]), columns.astype(np.int64), values, (1, width))
        )  # checked below
    return User(family, n_items, family.table(matrices, n_items), 0)


def compiled(objective: Objective, chain: Slate) -> tuple[Table, int, int]:
    """A table, a row in it, and how many leaves its family has: what kernels need to walk `objective` along `chain`."""
    if type(objective) is User:
        return objective.table, objective.index, objective.family.leaves
    return record(objective, chain), 0, 1


@kernel
def largest_state(table: Table, first: int, last: int) -> int:
    """The most numbers that the state of any of these users takes."""
    size = 0
    for t in range(first, last):
        size = max(size, offset(table, t + 1) - offset(table, t))
    return size


@kernel
def _value_of(table: Table, index: int, slate: Items, state: Floats) -> float:
    start(table, index, state, 0)
    for item in slate:
        add(table, index, state, 0, item)
    return value(table, index, state, 0)


@kernel
def _gains_of(
    table: Table, index: int, prefix: Items, state: Floats, buffer: GainBuffer, out: Floats
) -> None:
    start(table, index, state, 0)
    for item in prefix:
        add(table, index, state, 0, item)
    for j in range(gains(table, index, state, 0, buffer, 0)):
        out[buffer.items[j]] = buffer.gains[j]


@allocating_kernel
def _ceiling_of(table: Table, index: int, x: Floats, slope: Floats) -> float:
    return ceiling(table, index, x, 1.0, slope)
