"""Sparse rows as three arrays, laid out as scipy's CSR: for our own code, which need not wait for scipy to load.

A caller who has a scipy matrix has loaded scipy already. Where we need one ourselves it is `scipy.sparse` in the body
of a function, which is loaded there and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo.types import Floats, Ints


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SparseRows:
    """Row t holds data[indptr[t] : indptr[t + 1]] in the columns that `indices` names. Names are scipy's."""

    indptr: Ints
    indices: NDArray[Any]
    data: Floats
    shape: tuple[int, int]
    format: ClassVar[str] = "csr"

    def between(self, first: int, last: int) -> SparseRows:
        """The rows from `first` on and before `last`, without copying what they hold."""
        if (first, last) == (0, self.shape[0]):
            return self
        low, high = self.indptr[first], self.indptr[last]
        starts = self.indptr[first : last + 1] - low
        return SparseRows(starts, self.indices[low:high], self.data[low:high], (last - first, self.shape[1]))

    def only(self, rows: Ints) -> SparseRows:
        """Some rows, in that order."""
        lengths = self.indptr[rows + 1] - self.indptr[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) + np.repeat(self.indptr[rows] - starts[:-1], lengths)
        return SparseRows(starts, self.indices[places], self.data[places], (len(rows), self.shape[1]))

    def as_scipy(self) -> scipy.sparse.csr_array:
        """The rows as a matrix of scipy, without copying."""
        return scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape, copy=False)


def stacked(parts: Sequence[SparseRows]) -> SparseRows:
    """The rows of all parts, one below the other; all have the same columns, and nothing beyond their rows."""
    before = np.cumsum([0, *(len(part.data) for part in parts)])[:-1]
    ends = np.concatenate([part.indptr[1:] for part in parts])
    ends += np.repeat(before, [part.shape[0] for part in parts])
    indices, data = (np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "data"))
    return SparseRows(np.concatenate([[0], ends]), indices, data, (len(ends), parts[0].shape[1]))


def is_sparse(matrix: object) -> bool:
    """Whether these are sparse rows, ours or scipy's; scipy is asked only about what could be its own."""
    return isinstance(matrix, SparseRows) or (hasattr(matrix, "tocsr") and scipy.sparse.issparse(matrix))


def from_dense(dense: NDArray[Any]) -> SparseRows:
    """The rows of a matrix, without its zeros."""
    user, column = np.nonzero(dense)
    starts = np.searchsorted(user, np.arange(dense.shape[0] + 1))
    return SparseRows(starts, column, dense[user, column], (dense.shape[0], dense.shape[1]))
