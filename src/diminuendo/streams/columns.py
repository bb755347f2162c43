"""Columns of files as contexts: any column of ratings, the hour of a time, or a table beside the file of people.

Values are listed from the data, for simulations: nothing is protected from whoever simulates. A service lists them
before anybody comes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.streams.column_names import find as found
from diminuendo.streams.column_names import meant, tidied
from diminuendo.streams.contexts import UNKNOWN, Contexts, listed
from diminuendo.streams.people import People
from diminuendo.streams.tables.cells import labels_of
from diminuendo.streams.tables.times import EXPECTED, HOURS, times_of
from diminuendo.types import Ints

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Coded(NamedTuple):
    """A column of text: for each row the number of its value, UNKNOWN where it is missing."""

    codes: Ints
    values: Sequence[str]


class Known(NamedTuple):
    """One context that was asked for: what it is called, and which part of which column it is."""

    name: str
    column: str
    part: str = ""


def _hours(times: Any) -> Coded:
    return Coded(_whole(pc.hour(times)), [str(hour) for hour in range(HOURS)])


def _weekdays(times: Any) -> Coded:
    return Coded(_whole(pc.day_of_week(times)), WEEKDAYS)


PARTS: dict[str, Callable[[Any], Coded]] = {"hour": _hours, "weekday": _weekdays}
"""What of a time may be a context: written as `time:hour`, where `time` is the column."""


def columns_of(names: Sequence[str], header: Sequence[str], file: str) -> list[Known]:
    """Where in a file these contexts are; what is not there is refused."""
    every = []
    for name in names:
        if (whole := found(name, header, file)) is not None:
            every.append(Known(name, whole))
            continue
        first, _, part = name.rpartition(":")
        column = found(first, header, file) if first else None
        if column is None:
            raise InvalidInput(
                f"{file} has no column {first or name} to know of people.{meant(name, header)} Its columns are: "
                f"{', '.join(header)}."
            )
        if part not in PARTS:
            raise InvalidInput(
                f"Of a time, {' or '.join(PARTS)} can be known, as {first}:hour; got {name!r}."
            )
        every.append(Known(name, column, part))
    return every


def coded(column: Any, known: Known, file: str) -> Coded:
    """One context of every row, from a pyarrow column."""
    if known.part:
        return _part(column, known, file)
    if pa.types.is_nested(column.type):
        raise InvalidInput(f"{file}: {known.name} must be a column of plain values.")
    codes, values, _ = labels_of(column.cast(pa.string()), file, known.name)
    return Coded(codes, values.to_pylist())


def _part(column: Any, known: Known, file: str) -> Coded:
    """A part of a time. Whole numbers from 0 to 23 are hours themselves; other small numbers are no times."""
    times = times_of(column, file, known.column)
    if times.real:
        if times.wrong.any():
            warnings.warn(
                f"{file}: {int(times.wrong.sum()):,} of {len(times.wrong):,} rows have no time in {known.column} that "
                f"can be read, so that {known.name} is not known there.",
                stacklevel=4,
            )
        return PARTS[known.part](times.column)
    if times.hours and known.part == "hour":
        return Coded(_whole(times.column), [str(hour) for hour in range(HOURS)])
    raise InvalidInput(
        f"{file}: {known.column} is not a column of times. {EXPECTED} Where its values are what is known of people, "
        f"such as hours from 0 to 23 or days, name the column alone: {known.column}."
    )


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
            given = pyarrow.csv.open_csv(file).schema.names
        head.column_types = dict.fromkeys(given, pa.string())
        # A line with nothing in it is a person of whom nothing is known, where there is only one column.
        rows = pyarrow.csv.read_csv(
            table, convert_options=head, parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False)
        )
    except (pa.ArrowInvalid, OSError):
        raise InvalidInput(f"{table.name} cannot be read as a table with commas between columns.") from None
    header = tidied(given)
    every = columns_of(names, header, table.name)
    if rows.num_rows != n_people:
        raise InvalidInput(
            f"{table.name} has {rows.num_rows:,} lines below the names of columns, and {path.name} has {n_people:,} "
            "people; expected a line per person."
        )
    return {one.name: coded(rows.column(header.index(one.column)), one, table.name) for one in every}


def _whole(column: Any) -> Ints:
    """Whole numbers, UNKNOWN where they are missing."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(array.fill_null(UNKNOWN).cast(pa.int64()), dtype=np.int64)
