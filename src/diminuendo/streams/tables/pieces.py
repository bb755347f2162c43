"""People of a large Parquet file, some after the others: in pieces, of which only one need be in memory at a time.

The rows of the file say who wants what, and perhaps how much (ratings.py); the rows of a person lie side by side, and a
person is a round. The file is read twice: once for who and what there is, and then piece by piece. Pieces hold the
people that the whole file holds, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.column_names import roles
from diminuendo.streams.people import People
from diminuendo.streams.ratings import from_table, sortable
from diminuendo.streams.read_as import ReadAs, Scale
from diminuendo.streams.tables.frames import ParquetTable
from diminuendo.types import Ints, Progress

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet

PEOPLE = 1 << 16
"""In a piece, where nobody says otherwise."""


class Pieces:
    """The people of a Parquet file; to go through them again, begin again.

    `people`: how many are in a piece. `columns`: of person, item and value; without, guessed by their names. `scale`:
    the value that means nothing and the one that means everything. `n_items`: where items are numbers from 0.
    `progress` is called with bytes of the file, as it is looked through.
    """

    def __init__(
        self,
        path: str | Path,
        family: Family | None = None,
        *,
        people: int = PEOPLE,
        n_items: int | None = None,
        columns: Any = None,
        scale: Scale | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._path, self._family = Path(path), NoisyOr() if family is None else family
        self._most = _validate.positive_int(people, "people")
        if not (self._path.is_file() and self._path.name.endswith(".parquet")):
            raise InvalidInput(
                f"Expected a Parquet file, which can be read in pieces; got {self._path.name}."
            )
        table, read_as = ParquetTable(self._path), ReadAs(columns=columns, scale=scale)
        parts = roles(read_as, table.header, table.name)
        self._columns = [parts.person, parts.item, *([] if parts.value is None else [parts.value])]
        self._given = [table.given(name) for name in self._columns]
        self._scale = scale
        self.name, self.family_name = self._path.name.split(".")[0], self._family.name
        self._labels: Any = None
        heads, labels = self._looked_at(n_items is None, progress)
        self._ends = np.append(heads[self._most :: self._most], self._rows)
        self._people = len(heads)
        if n_items is None:
            order = pc.array_sort_indices(sortable(labels))
            self._labels = labels.take(order)
        self.n_items = len(self._labels) if n_items is None else _validate.positive_int(n_items, "n_items")

    def __repr__(self) -> str:
        return f"<Pieces: {self.name}, {len(self):,} pieces, {self._people:,} people, {self.n_items:,} items>"

    def __len__(self) -> int:
        """How many pieces there are."""
        return len(self._ends)

    @cached_property
    def labels(self) -> tuple[str, ...] | None:
        """What items are called, where they are not numbers."""
        return None if self._labels is None else tuple(str(label) for label in self._labels.to_pylist())

    @property
    def people(self) -> int:
        """How many people there are in all of them."""
        return self._people

    def __iter__(self) -> Iterator[People]:
        """One piece after the other; the file is read once, from its beginning to its end."""
        with pyarrow.parquet.ParquetFile(self._path) as file:
            batches = file.iter_batches(columns=self._given)
            first, rows = 0, pa.Table.from_batches([next(batches)])
            for end in self._ends.tolist():
                read, many = [rows], len(rows)
                while many < end - first:
                    read.append(pa.Table.from_batches([next(batches)]))
                    many += len(read[-1])
                rows = pa.concat_tables(read)
                yield self._people_of(rows.slice(0, end - first), first, end)
                first, rows = end, rows.slice(end - first)

    def _looked_at(self, labels: bool, progress: Progress | None) -> tuple[Ints, Any]:
        """The row with which each person begins, and all items; refuses a file in which a person's rows lie apart."""
        heads, names, items = list[Ints](), list[Ints](), list[Any]()
        row, before = 0, None
        with pyarrow.parquet.ParquetFile(self._path) as file:
            self._rows = file.metadata.num_rows
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            for batch in file.iter_batches(columns=self._given[: 2 if labels else 1]):
                person = batch.column(0)
                if person.null_count:
                    raise self._refused("has rows in which nobody is named")
                coded = person.dictionary_encode()
                codes = np.asarray(coded.indices, dtype=np.int64)
                words = coded.dictionary.to_pylist()
                begins = np.append(True, np.diff(codes) != 0) if len(codes) else np.zeros(0, dtype=np.bool_)
                if len(codes) and words[codes[0]] == before:
                    begins[0] = False
                here = np.flatnonzero(begins)
                heads.append(row + here)
                numbers = np.array([hash(word) for word in words], dtype=np.int64)
                names.append(numbers[codes[here]])
                if len(codes):
                    before = words[codes[-1]]
                if labels:
                    items.append(pc.unique(batch.column(1).drop_null()))
                row += len(codes)
                if progress:
                    progress(len(codes) * self._path.stat().st_size // max(1, self._rows))
        self._groups = np.cumsum([0, *sizes])
        who = np.concatenate([np.empty(0, dtype=np.int64), *names])
        if len(np.unique(who)) < len(who):
            raise self._refused("has rows of a person that lie apart")
        if not len(who):
            raise self._refused("has no rows")
        found = pc.unique(pa.chunked_array(items)) if labels else None
        return np.concatenate(heads), found

    def _refused(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"{self._path.name} {what}. To be read in pieces, rows of a person lie side by side."
        )

    def _people_of(self, rows: Any, first: int, end: int) -> People:
        """The people of these rows, of which the first is row `first`."""
        found = dict(zip(self._columns, (rows.column(given) for given in self._given), strict=True))
        if self._labels is not None:
            found[self._columns[1]] = pc.index_in(found[self._columns[1]], value_set=self._labels)
        made = from_table(
            found,
            self._family,
            n_items=self.n_items,
            name=self.name,
            columns=self._columns,
            scale=self._scale,
            round="person",
        )
        if self._labels is not None:
            made.labels = self.labels
        return made
