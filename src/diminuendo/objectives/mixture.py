r"""Mixture: :math:`f(S) = \sum_i c_i f_i(S)` of other families, with public shares adding up to at most 1.

For example half relevance (noisy-or) and half variety (coverage). A user then has one private row
per part. In compiled code a mixture is a pair (first part, the rest), so that any number of parts,
mixtures among them, costs nothing extra.

State: the parts' states, one after the other.
Concave form: the mixture of the parts' concave forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.objectives import family
from diminuendo.objectives.best_match import BestMatch
from diminuendo.objectives.coverage import Coverage
from diminuendo.objectives.family import Family, GainBuffer, Kernels, Table, close, put, register
from diminuendo.objectives.noisy_or import NoisyOr
from diminuendo.objectives.records import from_record, to_record
from diminuendo.objectives.rows import Matrix
from diminuendo.types import Floats


class PairTable(NamedTuple):
    """Two tables of the same users."""

    left: Table
    right: Table
    left_share: float
    right_share: float


@dataclass(frozen=True)
class Mixture(Family):
    """Family of weighted sums of other families, for instance half relevance and half variety.

    Parameters
    ----------
    parts : tuple of Family
        Two or more families, mixtures among them. A user has one private row per part.
    shares : tuple of float
        Public weights of the parts, each in (0, 1], adding up to at most 1.

    Raises
    ------
    InvalidInput
        If there are fewer than two parts, or shares do not fit.

    Examples
    --------
    >>> import diminuendo as dim
    >>> family = dim.Mixture((dim.NoisyOr(), dim.BestMatch()), (0.5, 0.5))
    >>> user = dim.user(family, [{0: 0.5, 1: 0.5}, {0: 1.0}], n_items=3)
    >>> user.value((0, 1))  # 0.5 * 0.75 + 0.5 * 1.0
    0.875
    """

    parts: tuple[Family, ...]
    shares: tuple[float, ...]
    name: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or len(self.parts) != len(self.shares):
            raise InvalidInput(
                f"A mixture needs two parts or more, and as many shares; "
                f"got {len(self.parts)} parts and {len(self.shares)} shares."
            )
        if not all(0 < share <= 1 for share in self.shares) or sum(self.shares) > 1 + 2**-40:
            raise InvalidInput(f"Shares lie in (0, 1] and add up to at most 1; got {self.shares}.")

    @property
    def leaves(self) -> int:
        """How many private matrices describe one user."""
        return sum(part.leaves for part in self.parts)

    @property
    def n_items(self) -> int | None:
        """The number of items, where a part fixes it."""
        return next((part.n_items for part in self.parts if part.n_items is not None), None)

    @property
    def columns_are_items(self) -> bool:
        """Only if they are in every part."""
        return all(part.columns_are_items for part in self.parts)

    def columns(self, n_items: int) -> tuple[int, ...]:
        """The parts' columns, one after the other."""
        return tuple(width for part in self.parts for width in part.columns(n_items))

    def table(self, matrices: Sequence[Matrix], n_items: int) -> Table:
        """One table per part, of equally many users."""
        if len(matrices) != self.leaves:
            raise InvalidInput(
                f"This mixture needs {self.leaves} matrices, one per part; got {len(matrices)}."
            )
        heights = {matrix.shape[0] for matrix in matrices}
        if len(heights) != 1:
            raise InvalidInput(f"The parts of a mixture describe the same users; got {sorted(heights)} rows.")
        left = iter(matrices)
        tables = [part.table(list(islice(left, part.leaves)), n_items) for part in self.parts]
        folded, its_share = tables[-1], float(self.shares[-1])
        for table, share in zip(tables[-2::-1], self.shares[-2::-1], strict=True):
            folded, its_share = PairTable(table, folded, float(share), its_share), 1.0
        return folded

    def rows(self, table: Table, n_items: int) -> tuple[SparseRows, ...]:
        """The parts' rows, one after the other."""
        result: tuple[SparseRows, ...] = ()
        for part in self.parts[:-1]:
            result += part.rows(table.left, n_items)
            table = table.right
        return result + self.parts[-1].rows(table, n_items)

    def with_rows(self, table: Table, rows: Sequence[SparseRows]) -> Table:
        """Each part with its own rows."""
        return self._with_rows(self.parts, table, list(rows))

    def _with_rows(self, parts: tuple[Family, ...], table: Table, rows: list[SparseRows]) -> Table:
        first, *others = parts
        if not others:
            return first.with_rows(table, rows)
        left = first.with_rows(table.left, rows[: first.leaves])
        return table._replace(
            left=left, right=self._with_rows(tuple(others), table.right, rows[first.leaves :])
        )

    def parameters(self) -> dict[str, Any]:
        """Its parts, and their shares."""
        return {"parts": [to_record(part) for part in self.parts], "shares": list(self.shares)}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        """The mixture of these parts."""
        return cls(tuple(from_record(part) for part in parameters["parts"]), tuple(parameters["shares"]))

    @classmethod
    def specimens(cls) -> Iterator[tuple[Family, int, tuple[Matrix, ...]]]:
        """Three parts, one of them with topics; and a mixture within a mixture."""
        clicks = np.array([[0.5, 0, 1, 0.25], [0, 0, 0, 0], [0, 1, 0, 0.5]])
        matches = np.array([[0.25, 0.5, 0, 0], [0, 0, 0, 0], [1, 0, 0.5, 0]])
        topics = Coverage(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]]))
        weights = np.array([[0.5, 0, 0.5], [0, 0, 0], [0.25, 0.25, 0.25]])
        yield cls((NoisyOr(), BestMatch(), topics), (0.5, 0.25, 0.25)), 4, (clicks, matches, weights)
        inner = cls((BestMatch(), topics), (0.5, 0.5))
        yield cls((inner, NoisyOr()), (0.6, 0.3)), 4, (matches, weights, clicks)


def _offset(table: PairTable, user: int) -> int:
    return family.offset(table.left, user) + family.offset(table.right, user)


def _start(table: PairTable, user: int, state: Floats, at: int) -> None:
    size = family.offset(table.left, user + 1) - family.offset(table.left, user)
    family.start(table.left, user, state, at)
    family.start(table.right, user, state, at + size)


def _value(table: PairTable, user: int, state: Floats, at: int) -> float:
    size = family.offset(table.left, user + 1) - family.offset(table.left, user)
    left = family.value(table.left, user, state, at)
    return table.left_share * left + table.right_share * family.value(table.right, user, state, at + size)


def _gain(table: PairTable, user: int, state: Floats, at: int, item: int) -> float:
    size = family.offset(table.left, user + 1) - family.offset(table.left, user)
    left = family.gain(table.left, user, state, at, item)
    right = family.gain(table.right, user, state, at + size, item)
    return table.left_share * left + table.right_share * right


def _gains(table: PairTable, user: int, state: Floats, at: int, buffer: GainBuffer, count: int) -> int:
    size = family.offset(table.left, user + 1) - family.offset(table.left, user)
    middle = family.gains(table.left, user, state, at, buffer, count)
    last = family.gains(table.right, user, state, at + size, buffer, middle)
    first, end = count, count
    for j in range(first, last):  # merge in place: what is written never overtakes what is read
        share = table.left_share if j < middle else table.right_share
        end = put(buffer, first, end, buffer.items[j], share * buffer.gains[j])
    close(buffer, first, end)
    return end


def _add(table: PairTable, user: int, state: Floats, at: int, item: int) -> None:
    size = family.offset(table.left, user + 1) - family.offset(table.left, user)
    family.add(table.left, user, state, at, item)
    family.add(table.right, user, state, at + size, item)


def _ceiling(table: PairTable, user: int, x: Floats, scale: float, slope: Floats) -> float:
    left = family.ceiling(table.left, user, x, scale * table.left_share, slope)
    right = family.ceiling(table.right, user, x, scale * table.right_share, slope)
    return table.left_share * left + table.right_share * right


register(PairTable, Kernels(_value, _gain, _gains, _add, _ceiling, _offset, _start))
