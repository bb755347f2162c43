"""Stored objectives: people who are kept between releases, each with the batch of her round, to be asked again.

Of a person of a compiled family her row is kept, of a Python function the function. Both are frozen when they come in,
one record per round. A *walk* asks everybody, in the order in which they came, what each item would add after a slate
that grows; a function that raises has said nothing. Old batches can be forgotten, and who is not a Python function
goes into snapshots.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._numba import kernel
from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput, unless_ctrl_c
from diminuendo.objectives.family import Family, GainBuffer, Table, add, gains, new_gain_buffer, offset, start
from diminuendo.objectives.person import Person
from diminuendo.objectives.records import from_record, to_record
from diminuendo.types import Floats, Ints, Objective


@dataclass
class Segment:
    """People in a row: of one table, or one Python function."""

    family: Family | None
    table: Table
    rows: list[int] = field(default_factory=list)
    function: Objective | None = None

    def __repr__(self) -> str:
        return "<Segment>"

    def __len__(self) -> int:
        return len(self.rows) if self.function is None else 1


class StoredObjectives:
    """People in the order in which they came, each with her batch."""

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self.segments: list[Segment] = []
        self.batches: list[int] = []

    def __repr__(self) -> str:
        return f"<StoredObjectives, {self.n_items} items>"

    def __len__(self) -> int:
        """How many are kept: as private as whether somebody answered."""
        return len(self.batches)

    def add(self, person: Objective, batch: int = 0) -> None:
        """Keep one more person."""
        if isinstance(person, Person):
            self.add_rows(person.family, person.table, [person.index], batch)
        else:
            self.segments.append(Segment(None, None, function=person))
            self.batches.append(batch)

    def add_rows(self, family: Family, table: Table, rows: list[int], batch: int = 0) -> None:
        """Keep several people of one table and one batch."""
        if rows:
            if not (self.segments and self.segments[-1].table is table and table is not None):
                self.segments.append(Segment(family, table))
            self.segments[-1].rows.extend(rows)
            self.batches += [batch] * len(rows)

    def forget(self, before: int) -> None:
        """Drop everybody of batches before that one."""
        stays = np.array(self.batches, dtype=np.int64) >= before
        first, left = 0, []
        for segment in self.segments:
            keep = stays[first : first + len(segment)]
            first += len(segment)
            if segment.function is not None:
                left += [segment] if keep[0] else []
            elif keep.any():
                rows = [row for row, stay in zip(segment.rows, keep, strict=True) if stay]
                left.append(Segment(segment.family, segment.table, rows))
        self.segments, self.batches = left, [batch for batch in self.batches if batch >= before]

    def walk(self, starts: Ints, items: Ints) -> GainWalk:
        """Ask everybody along a growing slate; entries as in `starts` and `items`, one slice per person."""
        return GainWalk(self, starts, items)

    def written(self) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]]]:
        """Who can be written down, and the arrays that hold them: families as JSON, rows as CSR.

        Python functions cannot be written down, and are left out.
        """
        kept: list[bool] = []
        found: list[tuple[dict[str, Any], list[list[Any]]]] = []  # people of one family, however they came
        for segment in self.segments:
            kept += [segment.family is not None] * len(segment)
            if segment.family is not None:
                record = to_record(segment.family)
                parts = segment.family.matrices(segment.table, self.n_items)
                if not (found and found[-1][0] == record):
                    found.append((record, [[] for _ in parts]))
                for rows, matrix in zip(found[-1][1], parts, strict=True):
                    rows.append(scipy.sparse.csr_array(matrix)[segment.rows])
        families, arrays = [record for record, _ in found], {}
        for number, (_, parts_of) in enumerate(found):
            for part, several in enumerate(parts_of):
                whole = scipy.sparse.csr_array(scipy.sparse.vstack(several))
                for name, dtype in (("indptr", np.int64), ("indices", np.int64), ("data", np.float64)):
                    arrays[f"{number}.{part}.{name}"] = getattr(whole, name).astype(dtype)
        arrays["families"] = np.frombuffer(json.dumps(families).encode(), dtype=np.uint8)
        which = np.array(kept, dtype=np.bool_)
        return which, arrays | {"batches": np.array(self.batches, dtype=np.int64)[which]}

    def read(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep everybody who was written down; refuse what could not have been."""
        self.segments, self.batches = [], []
        try:
            batches = arrays.pop("batches")
            for number, record in enumerate(json.loads(arrays["families"].tobytes())):
                family = from_record(record)
                matrices = [
                    _matrix(arrays, f"{number}.{part}", width)
                    for part, width in enumerate(family.columns(self.n_items))
                ]
                table = family.table(matrices, self.n_items)  # rows are checked at the family's own door
                self.add_rows(family, table, list(range(matrices[0].shape[0])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"The snapshot's people cannot be read: {error}.") from error
        if batches.dtype != np.int64 or batches.shape != (len(self),):
            raise InvalidInput("The snapshot holds other people than it says; it was altered.")
        self.batches = [int(batch) for batch in batches]


def _matrix(arrays: dict[str, NDArray[Any]], name: str, width: int) -> scipy.sparse.csr_array:
    indptr, indices, data = (arrays[f"{name}.{part}"] for part in ("indptr", "indices", "data"))
    return scipy.sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, width))


class GainWalk:
    """People walked along a growing slate: what items would add for them, entry by entry."""

    def __init__(self, people: StoredObjectives, starts: Ints, items: Ints) -> None:
        self._n_items, self._starts, self._items = people.n_items, starts, items
        self._slate: list[int] = []
        self.moved = np.zeros(len(people), dtype=np.bool_)
        self._scratch = np.zeros(people.n_items)
        self._parts: list[tuple[Segment, int, Any]] = []
        first, bags = 0, dict[int, GainBuffer]()  # one of each size: people may have come one by one
        for segment in people.segments:
            made = None
            if segment.family is not None:
                rows = np.array(segment.rows, dtype=np.int64)
                at = np.zeros(len(rows) + 1, dtype=np.int64)
                _sizes(segment.table, rows, at)
                state = np.empty(at[-1])
                _begin(segment.table, rows, at, state)
                leaves = segment.family.leaves
                bags[leaves] = bags.get(leaves) or new_gain_buffer(people.n_items, leaves)
                made = rows, at, state, np.empty(int(np.diff(at).max(initial=0))), bags[leaves]
            self._parts.append((segment, first, made))
            first += len(segment)

    def after(self, item: int) -> Floats:
        """The gain of every entry once `item` has joined."""
        return self._asked(item, everybody=True)

    def after_moving(self, item: int) -> Floats:
        """The gains, once `item` has joined, of those whom it has moved: for whom it changes anything (`moved`).

        What the others would gain is what they would have gained before.
        """
        return self._asked(item, everybody=False)

    def _asked(self, item: int, everybody: bool) -> Floats:
        self._slate.append(item)
        out = np.zeros(len(self._items))
        for segment, first, made in self._parts:
            if made is not None:
                rows, at, state, before, bag = made
                moved = self.moved[first : first + len(rows)]
                _join(segment.table, rows, at, state, before, item, moved)
                if everybody:
                    moved[:] = True
                starts = self._starts[first:]
                _ask(segment.table, rows, at, state, moved, bag, starts, self._items, self._scratch, out)
            elif segment.function is not None:
                self.moved[first] = True
                low, high = self._starts[first], self._starts[first + 1]
                out[low:high] = _said(segment.function, self._slate, self._n_items)[self._items[low:high]]
        return out


def _said(function: Objective, slate: list[int], n_items: int) -> Floats:
    try:
        found = np.asarray(function.gains(tuple(slate)), dtype=np.float64)
    except BaseException as error:  # whatever goes wrong inside, it is what this person said: nothing
        unless_ctrl_c(error)
        return np.zeros(n_items)
    return found if found.shape == (n_items,) else np.zeros(n_items)


def singles(family: Family, table: Table, rows: list[int], n_items: int) -> SparseRows:
    """What each item is worth by itself to each of these people."""
    index = np.array(rows, dtype=np.int64)
    at = np.zeros(len(index) + 1, dtype=np.int64)
    _sizes(table, index, at)
    state, bag = np.empty(at[-1]), new_gain_buffer(n_items, family.leaves)
    _begin(table, index, at, state)
    starts = np.zeros(len(index) + 1, dtype=np.int64)
    _count(table, index, at, state, bag, starts)
    items, values = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
    _fill(table, index, at, state, bag, starts, items, values)
    return SparseRows(starts, items, values, (len(index), n_items))


@kernel
def _sizes(table: Table, rows: Ints, at: Ints) -> None:
    for i in range(len(rows)):
        at[i + 1] = at[i] + offset(table, rows[i] + 1) - offset(table, rows[i])


@kernel
def _begin(table: Table, rows: Ints, at: Ints, state: Floats) -> None:
    for i in range(len(rows)):
        start(table, rows[i], state, at[i])


@kernel
def _count(table: Table, rows: Ints, at: Ints, state: Floats, bag: GainBuffer, starts: Ints) -> None:
    for i in range(len(rows)):
        starts[i + 1] = starts[i] + gains(table, rows[i], state, at[i], bag, 0)


@kernel
def _fill(
    table: Table,
    rows: Ints,
    at: Ints,
    state: Floats,
    bag: GainBuffer,
    starts: Ints,
    items: Ints,
    values: Floats,
) -> None:
    for i in range(len(rows)):
        for j in range(gains(table, rows[i], state, at[i], bag, 0)):
            items[starts[i] + j] = bag.items[j]
            values[starts[i] + j] = bag.gains[j]


@kernel
def _join(
    table: Table,
    rows: Ints,
    at: Ints,
    state: Floats,
    before: Floats,
    joined: int,
    moved: NDArray[np.bool_],
) -> None:
    """Everybody's prefix with one item more; `moved`: whose is another one now."""
    for i in range(len(rows)):
        size = at[i + 1] - at[i]
        for j in range(size):
            before[j] = state[at[i] + j]
        add(table, rows[i], state, at[i], joined)
        moved[i] = False
        for j in range(size):
            moved[i] |= before[j] != state[at[i] + j]


@kernel
def _ask(
    table: Table,
    rows: Ints,
    at: Ints,
    state: Floats,
    moved: NDArray[np.bool_],
    bag: GainBuffer,
    starts: Ints,
    items: Ints,
    scratch: Floats,
    out: Floats,
) -> None:
    for i in range(len(rows)):
        if not moved[i]:
            continue
        count = gains(table, rows[i], state, at[i], bag, 0)
        for j in range(count):
            scratch[bag.items[j]] = bag.gains[j]
        for entry in range(starts[i], starts[i + 1]):
            out[entry] = scratch[items[entry]]
        for j in range(count):
            scratch[bag.items[j]] = 0.0
