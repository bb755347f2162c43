"""Sparse rows at the door: what a user may say, checked once, then frozen.

Every refusal names the row and the rule, and nothing that a user said. An empty row is a user who wants nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo._numba import inline, kernel
from diminuendo._sparse import SparseRows, from_dense, is_sparse
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats, Ints, Items

Matrix: TypeAlias = Any
"""scipy CSR (array or matrix), anything scipy turns into CSR, or a dense two-dimensional array."""


MOST_COLUMNS = 2**31 - 1
"""Columns are 32-bit numbers in compiled code."""


class Rows(NamedTuple):
    """Checked CSR arrays, read-only."""

    starts: Ints
    columns: Items
    values: Floats


def checked_rows(matrix: Matrix, n_columns: int, *, column: str, quantity: str) -> Rows:
    """Check a matrix of users' rows and return it as sorted, read-only sparse rows.

    Parameters
    ----------
    matrix : array or scipy sparse array, shape (n_rows, n_columns)
        Finite values in [0, 1].
    n_columns : int
        Expected number of columns, at most 2**31 - 1.
    column, quantity : str
        What a column and a value are called in messages, such as "item" and "probability".

    Returns
    -------
    Rows
        Arrays `starts`, `columns` and `values`, with distinct rising columns in each row.

    Raises
    ------
    InvalidInput
        Naming the row and the rule, and no value of a user.

    Examples
    --------
    >>> from diminuendo.extend import checked_rows
    >>> checked_rows([[0.0, 0.5], [1.0, 0.0]], 2, column="item", quantity="probability").columns.tolist()
    [1, 0]
    >>> checked_rows([[0.0, 7.0]], 2, column="item", quantity="probability")
    Traceback (most recent call last):
        ...
    diminuendo.errors.InvalidInput: Row 0, item 1: the probability must be in [0, 1].
    """
    starts, columns, values, (height, width) = _arrays(matrix)
    if width != n_columns:
        raise InvalidInput(
            f"Expected one column per {column}, that is {n_columns} columns; got {width}. "
            f"Check the number of {column}s."
        )
    if n_columns > MOST_COLUMNS:
        raise InvalidInput(f"There can be at most {MOST_COLUMNS} {column}s; got {n_columns}.")
    if len(starts) != height + 1 or len(columns) != len(values):
        raise InvalidInput("The arrays of the sparse matrix do not fit together; build it anew.")
    if starts[0] != 0 or np.any(np.diff(starts) < 0) or starts[-1] > len(columns):
        raise InvalidInput(
            "The row starts (indptr) must begin at 0, never fall, and end at the number of values."
        )
    columns, values = columns[: starts[-1]], values[: starts[-1]]

    def refuse(wrong: NDArray[np.bool_], what: str) -> None:
        if wrong.any():
            place = int(np.argmax(wrong))
            row = int(np.searchsorted(starts, place, side="right")) - 1
            inside = 0 <= columns[place] < n_columns  # else it is no place, but user data
            raise InvalidInput(f"Row {row}{f', {column} {columns[place]}' if inside else ''}: {what}")

    outside = (columns < 0) | (columns >= n_columns)
    refuse(outside, f"every {column} must be from 0 to {n_columns - 1}.")
    falls = np.zeros(len(columns), dtype=bool)
    falls[1:] = np.diff(columns) <= 0
    falls[starts[:-1][starts[:-1] < len(columns)]] = False  # the first of a row follows nothing
    refuse(
        falls,
        f"{column}s of a row must be sorted and distinct; sum_duplicates() and sort_indices() of scipy mend that.",
    )
    refuse(~((values >= 0) & (values <= 1)), f"the {quantity} must be in [0, 1].")  # NaN is not, either
    return Rows(_frozen(starts, np.int64), _frozen(columns, np.int32), _frozen(values, np.float64))


def _arrays(matrix: Any) -> tuple[Ints, Ints, Floats, tuple[int, int]]:
    if not is_sparse(matrix):
        dense = np.atleast_2d(_validate.numbers(matrix, "Rows of users"))
        if dense.ndim != 2:
            raise InvalidInput(f"Rows of users form a two-dimensional array; got {dense.ndim} dimensions.")
        matrix = from_dense(dense)
    elif matrix.format != "csr":
        _check_before_conversion(matrix)
        matrix = matrix.tocsr()
    if matrix.data.dtype.kind not in "fiub":
        raise InvalidInput(f"Values must be real numbers; got {matrix.data.dtype}.")
    return (
        np.asarray(matrix.indptr, dtype=np.int64),
        np.asarray(matrix.indices, dtype=np.int64),
        np.asarray(matrix.data, dtype=np.float64),
        matrix.shape,
    )


def _check_before_conversion(matrix: Any) -> None:
    """scipy converts without looking; an index out of range would write where it must not."""
    sound = not hasattr(matrix, "check_format")
    with suppress(ValueError):  # which may repeat what is in the matrix
        sound = sound or matrix.check_format(full_check=True) is None
    if not sound:
        raise InvalidInput("This sparse matrix contradicts itself; build it anew.")
    if matrix.format == "coo" and matrix.nnz:
        for index, size in zip(matrix.coords, matrix.shape, strict=True):
            if index.min() < 0 or index.max() >= size:
                raise InvalidInput(f"This sparse matrix has an index out of range: {size} is the most.")


def _frozen(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    copy: NDArray[Any] = np.array(array, dtype=dtype)
    copy.flags.writeable = False
    return copy


def sound_rows(rows: SparseRows, width: int, first: int, end: int) -> bool:
    """Whether rows `first` to before `end` hold what `checked_rows` lets in: compiled code trusts them."""
    arrays, kinds = (rows.indptr, rows.indices, rows.data), (np.int64, np.int32, np.float64)
    plain = all(
        type(part) is np.ndarray and part.dtype == kind and part.ndim == 1 and part.flags.c_contiguous
        for part, kind in zip(arrays, kinds, strict=True)
    )
    known = plain and 0 <= first <= end < len(rows.indptr) and len(rows.indices) == len(rows.data)
    return known and bool(_sound(*arrays, width, first, end))


@kernel
def _sound(starts: Ints, columns: Items, values: Floats, width: int, first: int, end: int) -> bool:
    for row in range(first, end):
        low, high, last = starts[row], starts[row + 1], -1
        if low < 0 or high < low or high > len(columns):
            return False
        for place in range(low, high):
            if columns[place] <= last or columns[place] >= width:
                return False
            if not (values[place] >= 0.0 and values[place] <= 1.0):
                return False
            last = columns[place]
    return True


@inline
def find(columns: Items, low: int, high: int, wanted: int) -> int:
    """Where `wanted` stands in the sorted columns[low:high], or -1."""
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < wanted:
            low = middle + 1
        elif columns[middle] > wanted:
            high = middle
        else:
            return middle
    return -1
