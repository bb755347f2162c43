"""Collecting what users contribute to the open batch of a sum: clipped, counted, added up.

There are three doors. `add` takes one user's vector, and `add_rows` a matrix of them: both check what
they are given. `compiled_access` is for our own compiled code that knows where its numbers belong: it hands out the
rule of clipping and the batch, under the lock, once users are counted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import scipy

from diminuendo import _validate
from diminuendo._sparse import SparseRows
from diminuendo._validate import as_floats
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.sums.clip import Clip, Rule, add_sparse, dense_row, rising, sparse_row
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints


class BatchView(NamedTuple):
    """What compiled code needs of the open batch."""

    rule: Rule
    cells: Ints

    def __repr__(self) -> str:
        return "<BatchView>"


class OpenBatch:
    """Clips and adds up users' contributions to the open batch of a sum, and to later ones. Base class of sums.

    Parameters
    ----------
    size : int
        Length of the vectors.
    clip : Clip
        Contribution bounding.
    schedule : Schedule
        When batches close.
    """

    __getstate__ = refuse_copies

    def __init__(self, size: int, clip: Clip, schedule: Schedule) -> None:
        self.size = _validate.positive_int(size, "size")
        for value, kind in ((clip, Clip), (schedule, Schedule)):
            if not isinstance(value, kind):
                raise InvalidInput(f"{kind.__name__.lower()} must be a {kind.__name__}; got {value!r}.")
        self.clip, self.schedule = clip, schedule
        self._cells: Ints = np.zeros(self.size, dtype=np.int64)
        self._later: dict[int, Ints] = {}  # of batches whose users come before the open one is published
        self._marks = np.zeros(2, dtype=np.int64)  # the open batch, and how many contributions were added
        self._lock = threading.RLock()  # kernels let other threads run
        self._releasing = threading.RLock()  # one release at a time, while others add

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.size} entries, batch {self.batch} of {len(self.schedule)} open>"
        )

    @property
    def batch(self) -> int:
        """The number of the open batch, which is published next."""
        open_: int = self._marks.item(0)
        return open_

    def add(self, values: Any, indices: Any = None, *, batch: int | None = None) -> None:
        """Add one user's contribution of one round. Call it once per round: what it is given is clipped together.

        Parameters
        ----------
        values : array of float
            A vector of length `size`; or the values at `indices`. Whatever they are, they are clipped; NaN counts
            as 0.
        indices : array of int, optional
            Rising positions of the values.
        batch : int, optional
            The batch of the user's round. By default the open one. If it has closed, nothing is added, and this
            returns None all the same.

        Raises
        ------
        InvalidInput
            If shapes do not fit, or more rounds contribute than the schedule has. Messages repeat no value.
        """
        if indices is None:
            row, places = dense_row(values, self.size), np.arange(self.size)
        else:
            row, places = sparse_row(values, indices, self.size)
        if self.clip.norm == "cell" and (indices is None or len(places) != 1):
            raise InvalidInput("This sum takes one entry per user: add([value], [cell]).")
        with self._lock:
            if (cells := self._counted(1, batch)) is not None:
                self._add(np.array([0, len(places)]), places, row, cells)

    def add_rows(self, rows: Any, *, batch: int | None = None) -> None:
        """Add many users' contributions, one for each row.

        Parameters
        ----------
        rows : scipy sparse array, shape (n_users, size)
            Each row is clipped by itself.
        batch : int, optional
            As in `add`.

        Raises
        ------
        InvalidInput
            As `add`.
        """
        starts, places, values = csr_rows(rows, self.size)
        if self.clip.norm == "cell" and (np.diff(starts) > 1).any():
            raise InvalidInput("This sum takes one entry per user; some rows have more.")
        with self._lock:
            if (cells := self._counted(len(starts) - 1, batch)) is not None:
                self._add(starts, places, values, cells)

    def _add(self, starts: Ints, places: Ints, values: Floats, cells: Ints) -> None:
        scratch = np.empty(np.diff(starts).max(initial=0), dtype=np.int64)
        add_sparse(self.clip.rule, starts, places, values, scratch, cells)

    @contextmanager
    def compiled_access(self, users: int, *, batch: int | None = None) -> Iterator[BatchView | None]:
        """The batch, for compiled code that adds what `users` users contribute; None, if they come too late.

        Such code adds what `clip_row` makes of all that one user contributes, each whole number once; parts of it
        may be clipped apart only where `cannot_exceed` says so of all of it. They are counted beforehand, and nothing
        else adds meanwhile.
        """
        if self.clip.norm == "cell":
            raise InvalidInput("This sum takes one entry per user: add([value], [cell]).")
        with self._lock:
            cells = self._counted(users, batch)
            yield None if cells is None else BatchView(self.clip.rule, cells)

    def _counted(self, users: int, batch: int | None) -> Ints | None:
        """Where the contributions of `users` users to that batch go, who are counted; None, if they come too late."""
        open_, added = self._marks.item(0), self._marks.item(1) + users
        if batch is not None and _validate.whole(batch, 0, len(self.schedule), "batch") < open_:
            return None
        if len(self.schedule) in (open_, batch):  # after the last release every answer is late
            return None
        if added > self.schedule.rounds:
            raise InvalidInput(
                f"More than the {self.schedule.rounds} contributions that this sum was made for."
            )
        self._marks[1] = added
        number = open_ if batch is None else int(batch)
        if number == open_:
            return self._cells
        return self._later.setdefault(number, np.zeros(self.size, dtype=np.int64))

    def _take(self) -> Ints:
        """What was added to the open batch; the next one is open from now on."""
        with self._lock:
            taken = self._cells.copy()
            self._cells[:] = 0
            self._open_next()
            return taken

    def _open_next(self) -> None:
        """The next batch is open from now on."""
        self._marks[0] += 1
        later = self._later.pop(self.batch, None)
        self._cells = np.zeros(self.size, dtype=np.int64) if later is None else later


def csr_rows(rows: Any, size: int) -> tuple[Ints, Ints, Floats]:
    """A sparse matrix after validation, as (starts, places, values): places within range, each once a row, in order."""
    matrix: Any = None
    with suppress(Exception):  # what scipy says of rows may repeat them
        matrix = rows if isinstance(rows, SparseRows) else scipy.sparse.csr_array(rows)
    if matrix is None or len(matrix.shape) != 2 or matrix.shape[1] != size:
        raise InvalidInput(f"Expected a sparse matrix with one user per row and {size} columns.")
    if np.iscomplexobj(matrix.data):
        raise InvalidInput("Contributions are real numbers; got complex ones.")
    with suppress(Exception):
        if not rising(matrix.indptr, matrix.indices, size):
            ours = matrix.as_scipy() if isinstance(matrix, SparseRows) else matrix
            ours.check_format(full_check=True)
            ours = ours.copy()  # what belongs to the caller is left alone
            ours.has_canonical_format = False
            ours.sum_duplicates()  # also sorts; a place that came twice would count twice
            matrix = ours
    starts, places = (part.astype(np.int64, copy=False) for part in (matrix.indptr, matrix.indices))
    values = as_floats(matrix.data)
    if len(values) < len(places) or not rising(starts, places, size):
        raise InvalidInput("The matrix contradicts itself: its rows do not fit its values.")
    return starts, places, values
