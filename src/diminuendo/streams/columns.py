"""Columns of files as contexts: any column of ratings, the hour of a time, or a table beside the file of people.

Values are listed from the data, for simulations: nothing is protected from whoever simulates. A service lists them
before anybody comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.streams.contexts import UNKNOWN, Contexts, listed
from diminuendo.streams.people import People
from diminuendo.types import Ints

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MILLISECONDS = 10**11
"""Seconds since 1970 stay below this for three thousand years; larger numbers are milliseconds."""


class Coded(NamedTuple):
    """A column of text: for each row the number of its value, UNKNOWN where it is missing."""

    codes: Ints
    values: Sequence[str]


def _hours(times: Any) -> Coded:
    return Coded(_whole(pc.hour(times)), [str(hour) for hour in range(24)])


def _weekdays(times: Any) -> Coded:
    return Coded(_whole(pc.day_of_week(times)), WEEKDAYS)


PARTS: dict[str, Callable[[Any], Coded]] = {"hour": _hours, "weekday": _weekdays}
"""What of a time may be a context: written as `time:hour`, where `time` is the column."""


def columns_of(names: Sequence[str], found: Sequence[str], file: str) -> list[str]:
    """The columns of a file that hold these contexts, each once; what is not there is refused."""
    columns = [name if name in found else name.rpartition(":")[0] for name in names]
    for name, column in zip(names, columns, strict=True):
        part = name.rpartition(":")[2]
        if column not in found:
            meant = "".join(f" Did you mean {close}?" for close in get_close_matches(name, found, 1))
            raise InvalidInput(
                f"{file} has no column {column or name} to know of people.{meant} Its columns are: {', '.join(found)}."
            )
        if column != name and part not in PARTS:
            raise InvalidInput(
                f"Of a time, {' or '.join(PARTS)} can be known, as {column}:hour; got {name!r}."
            )
    return list(dict.fromkeys(columns))


def coded(table: Mapping[str, Any], name: str, file: str) -> Coded:
    """One context of every row, from pyarrow columns by name."""
    if name not in table:
        column, _, part = name.rpartition(":")
        return PARTS[part](_times(table[column], column, file))
    column = table[name]
    if pa.types.is_nested(column.type):
        raise InvalidInput(f"{file}: {name} must be a column of plain values.")
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return Coded(_whole(encoded.indices), encoded.dictionary.to_pylist())


def of_people(found: Coded, person: Ints, n_people: int) -> tuple[Coded, int]:
    """The context of each person from those of her rows: the first that is known; and how many have others besides."""
    rows = np.flatnonzero(found.codes != UNKNOWN)
    known, first = np.unique(person[rows], return_index=True)
    codes = np.full(n_people, UNKNOWN, dtype=np.int64)
    codes[known] = found.codes[rows][first]
    others = person[rows][found.codes[rows] != codes[person[rows]]]
    return Coded(codes, found.values), len(np.unique(others))


def knowing(people: People, found: Mapping[str, Coded], *, private: bool) -> People:
    """These people, and what is known of each, by name; besides what was known already."""
    columns = {name: listed(name, *column) for name, column in found.items()}
    if people.contexts is not None and people.types is not None:
        numbers = people.contexts.values_of(people.types).T
        columns |= {
            column.name: (list(column.values), own)
            for column, own in zip(people.contexts.columns, numbers, strict=True)
        }
    contexts = Contexts({name: values for name, (values, _) in columns.items()}, private=private)
    return people.with_contexts(contexts, np.stack([codes for _, codes in columns.values()], axis=1))


def beside(path: Path) -> Path:
    """The table of contexts that belongs to a file of people: NAME.contexts.csv for NAME.npz or NAME.best-match.npz."""
    return path.with_name(f"{path.name.split('.')[0]}.contexts.csv")


def from_beside(path: Path, names: Sequence[str], n_people: int) -> dict[str, Coded]:
    """What the table beside a file of people says of each of them, in their order."""
    table = beside(path)
    if not table.is_file():
        raise InvalidInput(
            f"What is known of the people of {path.name} is looked for in {table.name} beside it: a line per person, "
            "in their order, below the names of columns. There is no such file; write one, or leave the context out."
        )
    head = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    try:
        with table.open("rb") as file:
            found = pyarrow.csv.open_csv(file).schema.names
        head.column_types = dict.fromkeys(found, pa.string())
        # A line with nothing in it is a person of whom nothing is known, where there is only one column.
        rows = pyarrow.csv.read_csv(
            table, convert_options=head, parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False)
        )
    except (pa.ArrowInvalid, OSError):
        raise InvalidInput(f"{table.name} cannot be read as a table with commas between columns.") from None
    columns_of(names, found, table.name)
    if rows.num_rows != n_people:
        raise InvalidInput(
            f"{table.name} has {rows.num_rows:,} lines below the names of columns, and {path.name} has {n_people:,} "
            "people; expected a line per person."
        )
    read = {column: rows.column(column) for column in found}
    return {name: coded(read, name, table.name) for name in names}


def _times(column: Any, name: str, file: str) -> Any:
    """A column of times, also where it holds text or numbers."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        for wanted in (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                column = column.cast(wanted)
                break
            except pa.ArrowInvalid:
                continue
    if pa.types.is_floating(column.type):
        column = pc.floor(column).cast(pa.int64(), safe=False)
    if pa.types.is_integer(column.type):
        unit = "ms" if (pc.max(column).as_py() or 0) > MILLISECONDS else "s"
        return column.cast(pa.int64()).cast(pa.timestamp(unit))
    if not pa.types.is_timestamp(column.type):
        raise InvalidInput(
            f"{file}: {name} is not a column of times. Expected times as 2024-05-01 17:30:00, or seconds since 1970."
        )
    return column


def _whole(column: Any) -> Ints:
    """Whole numbers, UNKNOWN where they are missing."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(array.fill_null(UNKNOWN).cast(pa.int64()), dtype=np.int64)
