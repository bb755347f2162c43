"""Stored objectives: people who are kept between releases, each with the batch of her round, to be asked again.

Of a person of a compiled family her row is kept, of a Python function the function. Both are frozen when they come in,
one record per round. A *walk* (streams/walks.py) asks everybody, in the order in which they came, what each item would
add after a slate that grows. Old batches can be forgotten, and who is not a Python function goes into snapshots.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.objectives.family import Family, Table
from diminuendo.objectives.person import Person
from diminuendo.objectives.records import from_record, to_record
from diminuendo.streams.walks import GainWalk, ScoreWalk, Segment, asking
from diminuendo.types import Ints, Objective


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
        if type(person) is Person:  # foreign code may say that it is one
            self.add_rows(person.family, person.table, [person.index], batch)
        else:
            self.segments.append(asking(lambda: person))
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
        left = self._segments_of(np.array(self.batches, dtype=np.int64) >= before)
        self.segments, self.batches = left, [batch for batch in self.batches if batch >= before]

    def _segments_of(self, some: NDArray[np.bool_]) -> list[Segment]:
        """Those people alone, in the order in which they came."""
        first, found = 0, []
        for segment in self.segments:
            here = some[first : first + len(segment)]
            first += len(segment)
            if segment.function is not None:
                found += [segment] if here[0] else []
            elif here.any():
                rows = [row for row, is_one in zip(segment.rows, here, strict=True) if is_one]
                found.append(Segment(segment.family, segment.table, rows))
        return found

    def gain_walk(self, starts: Ints, items: Ints) -> GainWalk:
        """Everybody along a growing slate, one by one; entries as in `starts` and `items`, one slice per person."""
        return GainWalk(self.n_items, self.segments, starts, items)

    def score_walk(self, batch: int) -> ScoreWalk:
        """Everybody of one batch along a growing slate, all together."""
        return ScoreWalk(self.n_items, self._segments_of(np.array(self.batches, dtype=np.int64) == batch))

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
