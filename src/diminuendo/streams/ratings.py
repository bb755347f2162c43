"""Ratings: rows `person,item,value` from CSV, Parquet or columns in memory, in any order.

People arrive in the order of their first row. Items are labels, numbered in sorted order; or, when
the number of items is given, numbers from 0 that are taken at their word. Values run from 0 to 1, or on
a scale that is said beforehand: read off the data, it would be a release that nobody paid for. Further columns
may say what was known of people when they came (columns.py).
"""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.columns import coded, columns_of, knowing, of_people
from diminuendo.streams.contexts import names_of
from diminuendo.streams.files import COLUMNS, UNIT, Scale
from diminuendo.streams.people import People
from diminuendo.types import Progress

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet

SEPARATORS = {b";": "semicolons", b"\t": "tabs", b"|": "bars"}
"""What some programs write between columns, where commas are expected."""
WHERE = re.compile(
    r"(In CSV column #\d+|CSV parse error)(: Row #\d+)?(: CSV conversion error to \w+|: Expected \d+ columns, got \d+)?"
)
"""How pyarrow says where a file is wrong, before it repeats what is there."""
LONGEST_HEAD = 2**16
"""Bytes of a first line that are looked at."""


def read_ratings(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    columns: tuple[str, str, str] = COLUMNS,
    scale: Scale = UNIT,
    keep_last: bool = False,
    context: str | Sequence[str] | None = None,
    private_context: bool = False,
    name: str | None = None,
    progress: Progress | None = None,
) -> People:
    """People from a file of ratings; `columns` names its three columns, `scale` the least and the largest value.

    Who has a thing twice is refused, unless `keep_last`: then her last row counts. `context` names further columns that
    say what was known of people when they came, as "country,time:hour"; her first row counts.
    """
    path, wanted = Path(path), names_of(context)
    batches = list(_batches(path, columns, wanted, n_items is not None, progress))
    table = pa.Table.from_batches(batches) if batches else None
    if table is None or table.num_rows == 0:
        raise InvalidInput(f"{path.name} has no rows: expected {','.join(columns)}.")
    ratings = {column: table.column(column) for column in columns}
    name = name or path.name.split(".")[0]
    people, person = _people(ratings, path.name, family or NoisyOr(), n_items, scale, keep_last, name)
    if not wanted:
        return people
    every = {column: table.column(column) for column in table.column_names}
    found = {}
    for known in wanted:
        found[known], several = of_people(coded(every, known, path.name), person, len(people))
        if several:
            warnings.warn(
                f"{path.name}: {several:,} of {len(people):,} people have rows that differ in {known}; the first row "
                "in which it is known counts.",
                stacklevel=2,
            )
    return knowing(people, found, private=private_context)


def from_ratings(
    persons: ArrayLike,
    items: ArrayLike,
    values: ArrayLike,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    scale: Scale = UNIT,
    keep_last: bool = False,
    name: str = "ratings",
) -> People:
    """People from three columns of one length: lists, arrays, or columns of a pandas or polars frame.

    >>> people = from_ratings(["ada", "ada", "bob"], ["tea", "soap", "tea"], [5, 2, 3], scale=(1, 5))
    >>> people.labels, people[0].value([1]), people[1].value([1])
    (('soap', 'tea'), 1.0, 0.5)
    """
    ratings = {
        column: _column(given, column)
        for column, given in zip(COLUMNS, (persons, items, values), strict=True)
    }
    lengths = [len(column) for column in ratings.values()]
    if len(set(lengths)) > 1 or not lengths[0]:
        counted = ", ".join(f"{length} {column}s" for column, length in zip(COLUMNS, lengths, strict=True))
        raise InvalidInput(f"Expected three columns of one length, at least 1; got {counted}.")
    return _people(ratings, name, family or NoisyOr(), n_items, scale, keep_last, name)[0]


def _people(
    ratings: dict[str, Any],
    source: str,
    family: Family,
    n_items: int | None,
    scale: Scale,
    keep_last: bool,
    name: str,
) -> tuple[People, NDArray[np.int64]]:
    """The people, and of each row whose it is."""
    for column, given in ratings.items():
        if pa.types.is_dictionary(given.type):  # it may name what is not there, in an order of its own
            given = ratings[column] = given.cast(given.type.value_type)
        if pa.types.is_nested(given.type):
            raise InvalidInput(f"{source}: {column} must be a column of plain values.")
        if given.null_count:
            row = int(np.argmax(np.asarray(pc.is_null(given)))) + 1
            raise InvalidInput(f"{source}, data row {row}: {column} is missing.")
    (_, person_column), (_, item_column), (value_name, value_column) = ratings.items()
    people = person_column.combine_chunks().dictionary_encode()
    rows = person = np.asarray(people.indices, dtype=np.int64)
    item, labels = _numbered(item_column, n_items, source)
    values = _scaled(value_column, scale, source, value_name)
    order = np.lexsort((item, person))  # rows of one person and item stay in the order in which they came
    person, item, values = person[order], item[order], values[order]
    twice = np.append((np.diff(person) == 0) & (np.diff(item) == 0), False)
    if twice.any() and not keep_last:
        bad = int(np.argmax(twice))
        raise InvalidInput(
            f"{source}: a person has an item twice, in data rows {order[bad] + 1} and {order[bad + 1] + 1}; "
            f"{int(twice.sum()):,} rows are followed by another of the same person and item. To let the last one "
            "count: keep_last=True, or --keep-last on the command line."
        )
    person, item, values = person[~twice], item[~twice], values[~twice]
    n_people, width = len(people.dictionary), len(labels) if labels is not None else int(n_items or 0)
    starts = np.searchsorted(person, np.arange(n_people + 1))
    matrix = scipy.sparse.csr_array((values, item, starts), shape=(n_people, width))
    return People(family, matrix, name=name, labels=labels), rows


def _batches(
    path: Path, columns: tuple[str, str, str], wanted: list[str], numbered: bool, progress: Progress | None
) -> Iterator[Any]:
    """Rows of the file, with the columns of ratings and those of the `wanted` contexts."""
    try:
        if path.name.endswith(".parquet"):
            source = pyarrow.parquet.ParquetFile(path)
            every = _expect(columns, wanted, source.schema_arrow.names, path.name)
            for batch in source.iter_batches(columns=every):
                if progress:
                    progress(path.stat().st_size * batch.num_rows // max(1, source.metadata.num_rows))
                yield batch
            return
        _expect_commas(path)
        with path.open("rb") as raw:
            unpacked = pa.CompressedInputStream(raw, "gzip") if path.suffix == ".gz" else raw
            # Types are fixed beforehand; guessed from the first rows, they would not fit the later ones.
            item_type = pa.int64() if numbered else pa.string()
            types = dict.fromkeys(
                (name for one in wanted for name in (one, one.rpartition(":")[0])), pa.string()
            )
            types |= dict(zip(columns, (pa.string(), item_type, pa.float64()), strict=True))
            options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
            reader = pyarrow.csv.open_csv(unpacked, convert_options=options)
            every = _expect(columns, wanted, reader.schema.names, path.name)
            seen = 0
            for batch in reader:
                if progress:
                    progress(raw.tell() - seen)
                    seen = raw.tell()
                yield batch.select(every)
        return
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:  # which repeats what is there
        said = WHERE.match(str(error))
    kind, where = "a whole number" if numbered else "any label", f": {said[0]}" if said else ""
    raise InvalidInput(
        f"{path.name} cannot be read as ratings, where {columns[1]} is {kind} and {columns[2]} is a number{where}."
    )


def _expect_commas(path: Path) -> None:
    """Other separators are told by the first line; a reader for commas would complain of some later row."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        head = file.readline(LONGEST_HEAD)
    for mark, name in SEPARATORS.items():
        if b"," not in head and head.count(mark) >= len(COLUMNS) - 1:
            raise InvalidInput(
                f"{path.name} has {name} between its columns; expected commas. Save it with commas, and with points in "
                f"numbers (4.5, not 4,5); or read it with pandas.read_csv(..., sep={mark.decode()!r}) and give its "
                "columns to dim.from_ratings."
            )


def _expect(columns: tuple[str, str, str], wanted: list[str], found: list[str], file: str) -> list[str]:
    """All columns that are to be read."""
    missing = [column for column in columns if column not in found]
    if missing:
        raise InvalidInput(
            f"{file} has no column {', '.join(missing)}; expected {','.join(columns)} and found {','.join(found)}. "
            f"Name those of person, item and value, as columns={tuple(found[:3])!r} or --columns {','.join(found[:3])}."
        )
    known = columns_of(wanted, found, file)
    if answers := [name for name in known if name in columns]:
        raise InvalidInput(
            f"{file}: {', '.join(answers)} says who she is or what she wants, and that is not known when she comes; "
            "name other columns as contexts."
        )
    return list(dict.fromkeys((*columns, *known)))


def _numbered(column: Any, n_items: int | None, file: str) -> tuple[NDArray[np.int64], list[str] | None]:
    if n_items is None:
        coded = column.combine_chunks().dictionary_encode()
        rank = np.asarray(pc.array_sort_indices(_sortable(coded.dictionary)), dtype=np.int64)
        place = np.argsort(rank)
        labels = [str(label) for label in coded.dictionary.take(rank).to_pylist()]
        return place[np.asarray(coded.indices)], labels
    if not pa.types.is_integer(column.type):
        raise InvalidInput(
            f"{file}: items must be whole numbers when the number of items is given; got {column.type}."
        )
    item = np.asarray(column.combine_chunks(), dtype=np.int64)
    outside = (item < 0) | (item >= n_items)
    if outside.any():
        bad = int(np.argmax(outside))
        raise InvalidInput(
            f"{file}, data row {bad + 1}: the item is out of range; "
            f"with {n_items} items they are numbered from 0 to {n_items - 1}."
        )
    return item, None


def _sortable(labels: Any) -> Any:
    """Labels that are all whole numbers are sorted as such, and not as 1, 10, 2."""
    try:
        return labels.cast(pa.int64())
    except pa.ArrowInvalid:
        return labels


def _scaled(column: Any, scale: Scale, file: str, name: str) -> NDArray[np.float64]:
    """Values from 0 to 1; what is not on the scale is refused, since clipping would hide a wrong scale."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidInput(f"{file}: {name} must be a number; the column holds {column.type}.")
    values = np.asarray(column.combine_chunks(), dtype=np.float64)
    low, high = scale
    if not -np.inf < low < high < np.inf:
        raise InvalidInput(f"scale is the least and the largest value, such as (1, 5); got {scale!r}.")
    outside = ~((values >= low) & (values <= high))  # catches NaN too
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInput(
            f"{file}, data row {row + 1}: {name} must be from {low:g} to {high:g}. Say what values mean "
            "nothing and everything: as scale=(1, 5) or --scale 1,5 for one to five stars, .5,5 where there are halves."
        )
    return (values - low) / (high - low)


def _column(given: ArrayLike, name: str) -> Any:
    with suppress(Exception):  # which may repeat them
        return pa.chunked_array([pa.array(np.asarray(given), from_pandas=True)])  # so NaN is missing
    raise InvalidInput(f"The {name}s are not a column of plain values, all of one kind.")
