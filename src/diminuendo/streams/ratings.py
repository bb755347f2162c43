"""Ratings: rows `person,item,value` from CSV or Parquet, in any order, read in pieces.

People arrive in the order of their first row. Items are labels, numbered in sorted order; or, when
the number of items is given, numbers from 0 that are taken at their word.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from scipy import sparse

from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.people import People
from diminuendo.types import Progress

COLUMNS = ("person", "item", "value")


def read_ratings(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    columns: tuple[str, str, str] = COLUMNS,
    scale: float = 1.0,
    name: str | None = None,
    progress: Progress | None = None,
) -> People:
    """People from ratings; `columns` names the three columns, values are multiplied by `scale`."""
    path = Path(path)
    batches = list(_batches(path, columns, n_items is not None, progress))
    table = pa.Table.from_batches(batches) if batches else None
    if table is None or table.num_rows == 0:
        raise InvalidInput(f"{path.name} has no rows: expected {','.join(columns)}.")
    person_column, item_column, value_column = (_plain(table.column(column)) for column in columns)
    for column, given in zip(columns, (person_column, item_column, value_column), strict=True):
        if given.null_count:
            row = int(np.argmax(np.asarray(pc.is_null(given)))) + 1
            raise InvalidInput(f"{path.name}, data row {row}: {column} is missing.")
    people = person_column.combine_chunks().dictionary_encode()
    person = np.asarray(people.indices, dtype=np.int64)
    item, labels = _numbered(item_column, n_items, path.name)
    values = _real(value_column, path.name, columns[2]) * scale
    order = np.lexsort((item, person))
    person, item, values = person[order], item[order], values[order]
    twice = (np.diff(person) == 0) & (np.diff(item) == 0)
    if twice.any():
        bad = int(np.argmax(twice))
        who, what = (
            people.dictionary[int(person[bad])].as_py(),
            item[bad] if labels is None else labels[item[bad]],
        )
        raise InvalidInput(f"{path.name}: person {who} has item {what} twice; keep one row of the two.")
    n_people, width = len(people.dictionary), len(labels) if labels is not None else int(n_items or 0)
    starts = np.searchsorted(person, np.arange(n_people + 1))
    matrix = sparse.csr_array((values, item, starts), shape=(n_people, width))
    return People(family or NoisyOr(), matrix, name=name or path.name.split(".")[0], labels=labels)


def _batches(
    path: Path, columns: tuple[str, str, str], numbered: bool, progress: Progress | None
) -> Iterator[Any]:
    try:
        if path.name.endswith(".parquet"):
            source = pyarrow.parquet.ParquetFile(path)
            _expect(columns, source.schema_arrow.names, path.name)
            for batch in source.iter_batches(columns=list(columns)):
                if progress:
                    progress(path.stat().st_size * batch.num_rows // max(1, source.metadata.num_rows))
                yield batch
            return
        with path.open("rb") as raw:
            unpacked = pa.CompressedInputStream(raw, "gzip") if path.suffix == ".gz" else raw
            # Types are fixed beforehand; guessed from the first rows, they would not fit the later ones.
            item_type = pa.int64() if numbered else pa.string()
            types = dict(zip(columns, (pa.string(), item_type, pa.float64()), strict=True))
            options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
            reader = pyarrow.csv.open_csv(unpacked, convert_options=options)
            _expect(columns, reader.schema.names, path.name)
            seen = 0
            for batch in reader:
                if progress:
                    progress(raw.tell() - seen)
                    seen = raw.tell()
                yield batch.select(list(columns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        kind = "a whole number" if numbered else "any label"
        raise InvalidInput(
            f"{path.name} cannot be read as ratings, where {columns[1]} is {kind} and {columns[2]} is a number: {error}"
        ) from error


def _expect(columns: tuple[str, str, str], found: list[str], file: str) -> None:
    missing = [column for column in columns if column not in found]
    if missing:
        raise InvalidInput(
            f"{file} has no column {', '.join(missing)}; expected {','.join(columns)} and found {','.join(found)}."
        )


def _plain(column: Any) -> Any:
    """Without a dictionary, which may name people and items that are not there, in an order of its own."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _numbered(column: Any, n_items: int | None, file: str) -> tuple[NDArray[np.int64], list[str] | None]:
    if n_items is None:
        coded = column.combine_chunks().dictionary_encode()
        rank = np.asarray(pc.array_sort_indices(_sortable(coded.dictionary)), dtype=np.int64)
        place = np.empty(len(rank), dtype=np.int64)
        place[rank] = np.arange(len(rank))
        return place[np.asarray(coded.indices)], [
            str(label) for label in coded.dictionary.take(rank).to_pylist()
        ]
    if not pa.types.is_integer(column.type):
        raise InvalidInput(
            f"{file}: items must be whole numbers when the number of items is given; got {column.type}."
        )
    item = np.asarray(column.combine_chunks(), dtype=np.int64)
    outside = (item < 0) | (item >= n_items)
    if outside.any():
        bad = int(np.argmax(outside))
        raise InvalidInput(
            f"{file}, data row {bad + 1}: item {item[bad]} is out of range; "
            f"with {n_items} items they are numbered from 0 to {n_items - 1}."
        )
    return item, None


def _sortable(labels: Any) -> Any:
    """Labels that are all whole numbers are sorted as such, and not as 1, 10, 2."""
    try:
        return labels.cast(pa.int64())
    except pa.ArrowInvalid:
        return labels


def _real(column: Any, file: str, name: str) -> NDArray[np.float64]:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidInput(f"{file}: {name} must be a number in [0, 1]; the column holds {column.type}.")
    return np.asarray(column.combine_chunks(), dtype=np.float64)
