"""What every family of objectives provides, and how compiled code reaches it.

A *family* says how users feel about slates (its public parameters); a *table* holds what many
users of that family feel, as arrays that compiled code can walk. Kernels are generic: they call
the seven functions below on a table, and numba picks the family's own version by the table's type.
A new family is one file with those functions, and one line in `objectives/__init__.py`.

A user's *prefix*, the items chosen so far, lives in `state[at : at + size]`, whose meaning is the
family's own affair. What a function says about an item holds for items outside the prefix; callers
skip the items they have already chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numba.extending import overload

from diminuendo._numba import inline
from diminuendo._sparse import SparseRows
from diminuendo.objectives.rows import Matrix, sound_rows
from diminuendo.types import Floats, Items

Table: TypeAlias = Any
"""A NamedTuple of arrays, of a type that `register` knows."""


def _one_number_each(table: Table, user: int) -> int:
    return user


def _from_zero(table: Table, user: int, state: Floats, at: int) -> None:
    state[at] = 0.0


class Kernels(NamedTuple):
    """The compiled functions of one family, written as plain Python that numba can compile.

    Every function takes a table, a row index, and a state array with the position where the row's state begins.

    Attributes
    ----------
    value : callable
        (table, row, state, at) -> f(prefix).
    gain : callable
        (table, row, state, at, item) -> f(prefix + item) - f(prefix).
    gains : callable
        (table, row, state, at, buffer, count) -> new count. Appends every item whose gain can be positive, once
        each.
    add : callable
        (table, row, state, at, item) -> None. Adds the item to the prefix.
    ceiling : callable
        (table, row, x, scale, slope) -> h. Adds scale * g to `slope`, where f(S) <= h + sum of g_a over S for every
        S and 0 <= g_a <= f({a}) (Theorem 2 of docs/maths/hindsight.md).
    offset : callable, optional
        (table, row) -> where the row's state begins among the states of all rows. By default one number each.
    start : callable, optional
        (table, row, state, at) -> None. Begins with the empty prefix. By default sets the number to 0.
    """

    value: Callable[..., Any]
    gain: Callable[..., Any]
    gains: Callable[..., Any]
    add: Callable[..., Any]
    ceiling: Callable[..., Any]
    offset: Callable[..., Any] = _one_number_each
    start: Callable[..., Any] = _from_zero


_KERNELS: dict[type, Kernels] = {}


def _quiet(table: Table) -> str:
    return f"<{type(table).__name__}>"


def register(table_type: type, kernels: Kernels) -> None:
    """Register the compiled functions of a type of table.

    Parameters
    ----------
    table_type : type
        A NamedTuple of arrays. Its instances print nothing of what they hold from now on.
    kernels : Kernels
        The functions.
    """
    _KERNELS[table_type] = kernels
    table_type.__repr__ = _quiet  # type: ignore[assignment]  # methods may be replaced, which mypy forbids


class GainBuffer(NamedTuple):
    """Where `gains` puts what it finds: the first `count` of `items` and `gains`."""

    items: Items
    gains: Floats
    slot: Items
    """Scratch: where an item stands in the buffer; -1 everywhere between calls."""


def new_gain_buffer(n_items: int, leaves: int) -> GainBuffer:
    """An empty buffer; a mixture of `leaves` families may name each item `leaves` times on the way."""
    room = n_items * leaves
    return GainBuffer(
        np.zeros(room, dtype=np.int32),
        np.zeros(room, dtype=np.float64),
        np.full(n_items, -1, dtype=np.int32),
    )


@inline
def put(buffer: GainBuffer, first: int, count: int, item: int, gain: float) -> int:
    """Add `gain` to `item` among the entries from `first` on; returns the new count."""
    where = buffer.slot[item]
    if where >= first:
        buffer.gains[where] += gain
        return count
    buffer.slot[item] = count
    buffer.items[count] = item
    buffer.gains[count] = gain
    return count + 1


@inline
def close(buffer: GainBuffer, first: int, count: int) -> None:
    """Leave the scratch as it was found."""
    for j in range(first, count):
        buffer.slot[buffer.items[j]] = -1


# The seven functions. These bodies never run: numba replaces them by the family's own.


def offset(table: Table, user: int) -> int:
    """Where `user`'s state begins when the states of a whole table lie in one array."""
    raise TypeError("compiled code only")


def start(table: Table, user: int, state: Floats, at: int) -> None:
    """Begin with the empty prefix."""
    raise TypeError("compiled code only")


def value(table: Table, user: int, state: Floats, at: int) -> float:
    """f(prefix)."""
    raise TypeError("compiled code only")


def gain(table: Table, user: int, state: Floats, at: int, item: int) -> float:
    """f(prefix + item) - f(prefix)."""
    raise TypeError("compiled code only")


def gains(table: Table, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    """Append every item whose gain can be positive, once each; returns the new count.

    The work is in proportion to what the user cares about, never to the number of items.
    """
    raise TypeError("compiled code only")


def add(table: Table, user: int, state: Floats, at: int, item: int) -> None:
    """prefix := prefix + item."""
    raise TypeError("compiled code only")


def ceiling(table: Table, user: int, x: Floats, scale: float, slope: Floats) -> float:
    """A linear ceiling over f, for x in [0, 1]^n: f(S) <= h + sum of g_a over S, for every set S.

    Returns h and adds scale * g to slope. Where x is a set, the ceiling touches f there. No g_a exceeds f({a}),
    so that the numbers stay small (docs/maths/hindsight.md, Theorem 2).
    """
    raise TypeError("compiled code only")


def _by_table_type(name: str) -> Callable[..., Any]:
    def pick(table: Any, *rest: Any) -> Any:  # runs while numba compiles a call; `table` is a numba type
        known = _KERNELS.get(getattr(table, "instance_class", type(None)))
        return None if known is None else getattr(known, name)

    return pick


for _function in (offset, start, value, gain, gains, add, ceiling):
    _options: Any = {
        "error_model": "numpy",
        "forceinline": True,
        "_nrt": _function is ceiling,  # only ceilings allocate
    }
    overload(_function, strict=False, jit_options=_options)(_by_table_type(_function.__name__))


def sound_table(family: Any, table: Any, n_items: int, first: int, end: int) -> bool:
    """Whether rows `first` to before `end` of a table are users of that family and of that many items.

    Compiled code asks nothing, and reads whatever lies at an index that is too large. It takes about as long as to read
    these rows once.
    """
    try:
        blank = blank_table(family, n_items)
        rows, widths = family.rows(table, n_items), family.columns(n_items)
        own = {id(part) for each in rows for part in (each.indptr, each.indices, each.data)}
        return _is_like(table, blank, own) and all(
            sound_rows(part, width, first, end) for part, width in zip(rows, widths, strict=True)
        )
    except Exception:  # whatever the table is, it is none of this family
        return False


@lru_cache(maxsize=64)
def blank_table(family: Family, n_items: int) -> Table:
    """A table without users: what all tables of a family share."""
    none, nobody = np.zeros(0), np.zeros(1, dtype=np.int64)
    widths = family.columns(n_items)
    return family.table(
        [SparseRows(nobody, none.astype(np.int64), none, (0, width)) for width in widths], n_items
    )


def _is_like(table: Any, blank: Any, own: Collection[int]) -> bool:
    """Whether both are the same, but for the arrays of users's `own` rows."""
    if isinstance(blank, tuple):
        same = type(table) is type(blank) and len(table) == len(blank)
        return same and all(_is_like(one, other, own) for one, other in zip(table, blank, strict=True))
    if table is blank or id(table) in own:
        return True
    if isinstance(blank, np.ndarray):
        return type(table) is np.ndarray and table.dtype == blank.dtype and np.array_equal(table, blank)
    return type(table) is type(blank) and bool(table == blank)


class Family(ABC):
    """A family of objectives: a name and public parameters, nothing private.

    Subclass it as a frozen dataclass to add a family of your own (see docs/how-to/your-own-learner.md), and
    register its compiled functions with `extend.register_kernels`.

    Attributes
    ----------
    name : str
        The name by which files, snapshots and commands refer to the family.

    See Also
    --------
    NoisyOr, BestMatch, Coverage, Concave, Mixture
    """

    name: ClassVar[str]

    @property
    def leaves(self) -> int:
        """The number of private matrices that describe users: one, or one for each simple family of a mixture."""
        return 1

    @property
    def n_items(self) -> int | None:
        """The number of items if the public parameters fix it, else None."""
        return None

    @property
    def columns_are_items(self) -> bool:
        """Whether a column of the private matrices is an item (and not, say, a topic)."""
        return True

    def columns(self, n_items: int) -> tuple[int, ...]:
        """Return the number of columns of each private matrix.

        Parameters
        ----------
        n_items : int
            Number of items.

        Returns
        -------
        tuple of int
            One number for each leaf; by default `(n_items,)`.
        """
        return (n_items,)

    @abstractmethod
    def table(self, matrices: Sequence[Matrix], n_items: int) -> Table:
        """Check users' rows and lay them out for compiled code.

        Parameters
        ----------
        matrices : sequence of array or scipy sparse array
            One for each leaf; row t describes user t.
        n_items : int
            Number of items.

        Returns
        -------
        NamedTuple of arrays
            Of a type that `register_kernels` knows.

        Raises
        ------
        InvalidInput
            If values are not in [0, 1] or shapes do not fit. Messages name row and column, never a value.
        """

    def matrices(self, table: Table, n_items: int) -> tuple[Matrix, ...]:
        """Return the private matrices of a table as scipy sparse arrays, without copying."""
        return tuple(part.as_scipy() for part in self.rows(table, n_items))

    def rows(self, table: Table, n_items: int) -> tuple[SparseRows, ...]:
        """Return the private matrices of a table as sparse rows, without loading scipy."""
        (width,) = self.columns(n_items)
        return (SparseRows(table.starts, table.columns, table.values, (len(table.starts) - 1, width)),)

    def with_rows(self, table: Table, rows: Sequence[SparseRows]) -> Table:
        """Return a table like this one with other users' rows, which are not checked again."""
        (part,) = rows
        arrays = part.indptr, part.indices, part.data
        for array in arrays:
            array.flags.writeable = False
        return table._replace(**dict(zip(("starts", "columns", "values"), arrays, strict=True)))

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters by name, as JSON can hold them."""
        return {part.name: getattr(self, part.name) for part in fields(cast(Any, self))}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """Return the family with the parameters that `parameters` returned."""
        return cls(**parameters)

    @classmethod
    @abstractmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Yield small examples (family, n_items, matrices), on which the contract tests run."""
