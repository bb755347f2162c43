"""Ratings: rows that say who wants what, and how much; from text, Parquet, frames or columns in memory, in any order.

    customer_id;sku;created_at           person,item,value
    4711;tea;2024-05-01 17:30            ada,tea,0.9

Where there is no value, every row is a thing that she wanted, and one that stands there twice counts once. Items are
labels, numbered in sorted order; or, when the number of items is given, numbers from 0 that are taken at their word.
Values run from 0 to 1, or on a scale that is said beforehand: read off the data, it would be a release that nobody paid
for. What a round is: `tables/rounds.py`. Further columns may say what was known of people when they came (columns.py).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.column_names import Roles, roles
from diminuendo.streams.columns import coded, columns_of, knowing, of_people
from diminuendo.streams.people import People
from diminuendo.streams.read_as import COLUMNS, UNIT, How, ReadAs, Round, Scale
from diminuendo.streams.tables.cells import EMPTY, RAGGED, Faults, Table, labels_of, lines_in, numbers_of
from diminuendo.streams.tables.frames import ParquetTable, column_of, frame_table
from diminuendo.streams.tables.rounds import Rounds, rounds_of, usual
from diminuendo.streams.tables.text import TextTable
from diminuendo.streams.tables.times import EXPECTED, Times, times_of
from diminuendo.streams.was_read import ReadNote, WasRead
from diminuendo.types import Floats, Ints, Progress

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc

WHOLE = 2.0**53
"""Below, fractions hold every whole number."""
SCALES = (
    " Say what values mean nothing and everything: as scale=(1, 5) or --scale 1,5 for one to five stars, .5,5 where "
    "there are halves."
)
CROWD = 100
"""A user with this many times the usual rounds is pointed out."""
LISTED = ("; ", " | ")
"""What stands between items that are listed in one cell."""
SKIPPING = "Mend them; or leave them out, counted, with skip_bad=True, or --skip-bad on the command line."


def read_ratings(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> People:
    """People from a file of rows, who and what: text with commas, semicolons, tabs or bars between columns, or Parquet.

    `how` it is read: see `ReadAs`. `people.was_read` says what was found.
    """
    path = Path(path)
    read_as = ReadAs(**how)
    table: Table = (
        ParquetTable(path, progress) if path.name.endswith(".parquet") else TextTable(path, progress)
    )
    return _noted(_people(table, read_as, family, n_items, name or path.name.split(".")[0]))


def from_table(
    frame: Any,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    name: str = "table",
    **how: Unpack[How],
) -> People:
    """Return the users of a table in memory: who wants what, and perhaps how much and when.

    Parameters
    ----------
    frame : DataFrame, Arrow table, DuckDB relation or mapping of str to columns
        Of pandas, polars, Arrow or DuckDB; or a dictionary of columns.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        Number of items; by default as many as occur.
    name : str, default "table"
        Shown in reports.
    **how
        How rows are read: `columns`, `scale`, `time`, `round` and others of `ReadAs`.

    Returns
    -------
    People
        `was_read` says what was found.

    Raises
    ------
    InvalidInput
        If rows cannot be read so. Messages name rows and columns, never a value of a user.

    Examples
    --------
    >>> days = ["2024-05-01", "2024-05-01", "2024-06-01"]
    >>> bought = {"who": ["ada", "bob", "ada"], "what": ["tea", "tea", "soap"], "day": days}
    >>> people = from_table(bought, columns=("who", "what"), time="day", round="day")
    >>> print(people.was_read)
    table: 3 rows, with who as person, what as item, day as time. Every row is a thing that she wanted.
    A round is a day of a person: 3 rounds of 2 people, 2 items, in the order of day.
    """
    return _noted(_people(frame_table(frame, name), ReadAs(**how), family, n_items, name))


def from_ratings(
    persons: ArrayLike,
    items: ArrayLike,
    values: ArrayLike | None = None,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    scale: Scale | None = None,
    keep_last: bool = False,
    name: str = "ratings",
) -> People:
    """Return the users of columns of one length: lists, arrays, or columns of a frame.

    Parameters
    ----------
    persons, items : array
        Who wants what, one entry for each row.
    values : array, optional
        How much. Without values every row is a thing that its user wanted.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        Number of items; by default as many as occur.
    scale : (float, float), optional
        The value that means nothing and the one that means everything, as (1, 5) for stars.
    keep_last : bool, default False
        If a user has an item twice with different values, the last one counts.
    name : str, default "ratings"
        Shown in reports.

    Returns
    -------
    People
        One row for each user, in the order of their first entries.

    Raises
    ------
    InvalidInput
        If columns are of different lengths, or values cannot be read.

    Examples
    --------
    >>> people = from_ratings(["ada", "ada", "bob"], ["tea", "soap", "tea"], [5, 2, 3], scale=(1, 5))
    >>> people.labels, people[0].value([1]), people[1].value([1])
    (('soap', 'tea'), 1.0, 0.5)
    """
    given = (persons, items) if values is None else (persons, items, values)
    columns = {own: column_of(column, own) for own, column in zip(COLUMNS, given, strict=False)}
    lengths = {own: len(column) for own, column in columns.items()}
    if len(set(lengths.values())) > 1 or not lengths["person"]:
        counted = ", ".join(f"{length} {own}s" for own, length in lengths.items())
        raise InvalidInput(f"Expected {len(columns)} columns of one length, at least 1; got {counted}.")
    read_as = ReadAs(columns=tuple(columns), scale=scale, keep_last=keep_last)
    return _noted(_people(frame_table(columns, name), read_as, family, n_items, name))


def _noted(people: People) -> People:
    """Says, where something was guessed or left out, what was read."""
    if people.was_read is not None and people.was_read.worth_a_note():
        warnings.warn(str(people.was_read), ReadNote, stacklevel=3)
    return people


class _Rows(NamedTuple):
    """What is in the rows that can be used."""

    person: Ints
    item: Ints
    values: Floats
    order: Ints | None
    ticks: Ints | None
    number: Ints
    """Which rows of the table they are."""


def _people(table: Table, read_as: ReadAs, family: Family | None, n_items: int | None, name: str) -> People:
    parts = _read(read_as, roles(read_as, table.header, table.name))
    known = columns_of(read_as.contexts, table.header, table.name)
    if answers := [one.column for one in known if one.column in parts[:3]]:
        raise InvalidInput(
            f"{table.name}: {', '.join(answers)} says who she is or what she wants, and that is not known when she "
            "comes; name other columns as contexts."
        )
    found = table.columns(list(dict.fromkeys([*parts.all(), *(one.column for one in known)])))
    n_rows = len(found[parts.person]) if found else 0
    if n_rows + table.ragged == 0:
        raise InvalidInput(f"{table.name} has no rows: expected {','.join(parts.all())}.")
    faults, notes, doubts = Faults(n_rows), list(table.notes), list[str]()
    rows, labels, asked, used = _usable(table, found, parts, read_as, n_items, faults, notes, doubts)
    rounds = rounds_of(asked, rows.person, rows.order, rows.ticks)
    doubts += [*_crowds(table, parts.person, rows, rounds), *_lists(parts.item, labels)]
    matrix, repeated = _matrix(rows, rounds, labels, n_items, read_as.keep_last, table)
    matrix, places = _with_others(matrix, read_as.people_without)
    people = People(family or NoisyOr(), matrix, name=name, labels=labels)
    n_people = len(rounds.person)
    if asked.kind != "person":
        numbers = np.unique(rounds.person, return_inverse=True)[1].astype(np.int64)
        n_people = int(numbers.max()) + 1
        everybody = np.arange(len(people)) + len(numbers)  # those who want nothing come once each
        everybody[places] = numbers
        people.persons = everybody
    skipped = faults.counts(wrong=True)
    if table.ragged:
        skipped[f"there are {RAGGED.format(n=len(table.header))}"] = table.ragged
    people.was_read = WasRead(
        table.name,
        n_rows + table.ragged,
        {role: own for role, own in used._asdict().items() if isinstance(own, str)},
        asked.kind,
        len(people),
        n_people + read_as.people_without,
        people.n_items,
        guessed=parts.guessed,
        chosen=read_as.round is None and asked.kind != "person",
        minutes=asked.minutes,
        left_out=faults.counts(wrong=False),
        skipped=skipped,
        repeated=repeated,
        without=read_as.people_without,
        notes=tuple(notes),
        doubts=tuple(doubts),
    )
    if not known:
        return people
    every = {}
    for one in known:
        codes = coded(found[one.column], one, table.name)
        codes = codes._replace(codes=codes.codes[rows.number])
        every[one.name], several = of_people(codes, rounds.of_row, len(people))
        if several:
            warnings.warn(
                f"{table.name}: {several:,} of {len(people):,} people have rows that differ in {one.name}; the first "
                "row in which it is known counts.",
                stacklevel=3,
            )
    return knowing(people, every, private=read_as.private_context)


def _read(read_as: ReadAs, parts: Roles) -> Roles:
    """Of the columns that were found, those that are to be read."""
    asked = read_as.asked_round
    kind = None if asked is None else asked.kind
    return parts._replace(
        time=parts.time if read_as.time is not None or kind != "person" else None,
        order=parts.order if kind in (None, "order") else None,
    )


def _usable(
    table: Table,
    found: dict[str, Any],
    parts: Roles,
    read_as: ReadAs,
    n_items: int | None,
    faults: Faults,
    notes: list[str],
    doubts: list[str],
) -> tuple[_Rows, list[str] | None, Round, Roles]:
    """The rows that can be used, the labels of items, what a round is, and the columns that were used for all that."""

    def coded_as(column: str) -> tuple[Ints, Any]:
        codes, words, alike = labels_of(
            found.pop(column), table.name, column, ignore_case=read_as.ignore_case
        )
        faults.add(codes == EMPTY, f"{column} is empty", wrong=False)
        broken = np.append(np.asarray(lines_in(words)), False)  # the last one for what is empty
        faults.add(
            broken[codes], f"{column} goes on in another line; a quotation mark may be missing", wrong=True
        )
        if alike:
            notes.append(
                f"{alike:,} of {len(words):,} labels in {column} differ from another in capitals alone, and count "
                "apart; --ignore-case joins them."
            )
        return codes, words

    if not found:  # not one row with the right number of cells
        faults.refuse(table, SKIPPING)
    person, _ = coded_as(parts.person)
    item, words = (
        coded_as(parts.item) if n_items is None else (_numbered(table, found, parts, n_items, faults), None)
    )
    values, off_scale = np.ones(len(person)), False
    if parts.value is not None:
        values, off_scale = _scaled(table, found.pop(parts.value), parts.value, read_as.scale or UNIT, faults)
    if parts.quantity is not None:
        bought = numbers_of(
            found[parts.quantity], table.name, parts.quantity, decimal_comma=table.decimal_comma
        )
        faults.add(bought.numbers < 1, f"{parts.quantity} is below 1, as in a return", wrong=False)
    asked, parts, order, times = _round(table, found, parts, read_as, faults, doubts, person)
    if not read_as.skip_bad or (off_scale and read_as.scale is None):
        faults.refuse(table, SCALES.strip() if off_scale else SKIPPING)
    number = np.flatnonzero(faults.usable)
    if not len(number):
        why = "; ".join([*faults.counts(wrong=False), *faults.counts(wrong=True)])
        raise InvalidInput(f"{table.name} has no rows that can be used: {why}.")
    labels = None
    if words is not None:
        item, labels = _sorted(item, words, number)
    rows = _Rows(
        person[number],
        item[number],
        values[number],
        None if order is None else order[number],
        None if times is None else times.ticks()[number],
        number,
    )
    return rows, labels, asked, parts


def _round(
    table: Table,
    found: dict[str, Any],
    parts: Roles,
    read_as: ReadAs,
    faults: Faults,
    doubts: list[str],
    person: Ints,
) -> tuple[Round, Roles, Ints | None, Times | None]:
    """What a round is, by what columns, and what these say; rows that cannot be told apart by them cannot be used."""
    asked, case = read_as.asked_round, read_as.ignore_case
    order = times = None
    if parts.order is not None:
        order = labels_of(found[parts.order], table.name, parts.order, ignore_case=case).codes
    if parts.time is not None:
        times = times_of(found[parts.time], table.name, parts.time)
        if read_as.time is None and not (times.known() & faults.usable).any():
            times = None  # it was only guessed that these are times
            if np.asarray(pc.is_valid(found[parts.time])).any():
                doubts.append(f"{parts.time} was not used: nothing in it can be read as a time. {EXPECTED}")
    if asked is None:
        asked = _usual(faults.usable, person, order, times)
    if asked.kind in ("session", "day") and (times is None or not times.real):
        named = "" if parts.time is None else f"{parts.time} is not one. "
        raise InvalidInput(
            f"{table.name}: a {asked.kind} is told by a column of times. {named}Name it, as time='created_at' or "
            f"--time created_at. {EXPECTED}"
        )
    if asked.kind != "order":
        order = None
    if asked.kind == "person" and read_as.time is None:
        times = None
    if order is not None:
        faults.add(order == EMPTY, f"{parts.order} is empty", wrong=False)
    if times is not None:
        faults.add(times.wrong, f"{parts.time} is not a time such as 2024-05-01 17:30:00", wrong=True)
        faults.add(~times.known(), f"{parts.time} is empty", wrong=False)
    used = parts._replace(
        order=None if order is None else parts.order, time=None if times is None else parts.time
    )
    return asked, used, order, times


def _usual(some: NDArray[np.bool_], person: Ints, order: Ints | None, times: Times | None) -> Round:
    """What a round is where nobody says so, by those of the rows that tell."""
    if order is not None:
        some = some & (order != EMPTY)
        return usual(person[some], order[some], None)
    if times is not None and times.real:
        some = some & times.known()
        return usual(person[some], None, times.ticks()[some])
    return Round("person")


def _crowds(table: Table, column: str, rows: _Rows, rounds: Rounds) -> list[str]:
    """A doubt where the rounds of one user are too many for one, as those of an account that guests share."""
    each = np.bincount(rounds.person)
    most, usually = int(each.max()), float(np.median(each[each > 0]))
    if most < CROWD * usually:
        return []
    first = int(rows.number[np.argmax(rows.person == int(each.argmax()))])
    (place,) = table.places(np.array([first]))
    return [
        f"One label in {column} has {most:,} rounds, where half of the users have {usually:g} or fewer; it is first in "
        f"{table.word} {place:,}. If many users share it, as guests do, leave its rows out."
    ]


def _lists(column: str, labels: list[str] | None) -> list[str]:
    """A doubt where most labels of items look like lists of several items."""
    if labels is None or 2 * sum(any(mark in label for mark in LISTED) for label in labels) <= len(labels):
        return []
    return [
        f"Most labels in {column} have a semicolon or a bar within: if a cell lists several items, give each a row."
    ]


def _numbered(table: Table, found: dict[str, Any], parts: Roles, n_items: int, faults: Faults) -> Ints:
    """Items that are numbers from 0."""
    name = parts.item
    numbers, empty, wrong = numbers_of(found[name], table.name, name)
    whole = np.where(np.isfinite(numbers), numbers, -1.0)
    faults.add(empty, f"{name} is empty", wrong=False)
    faults.add(
        wrong | (whole != np.floor(whole)),
        f"{name} is not a whole number, as items are that are numbered",
        wrong=True,
    )
    faults.add(
        (whole < 0) | (whole >= n_items),
        f"{name} is out of range; with {n_items} items they are numbered from 0 to {n_items - 1}",
        wrong=True,
    )
    return np.clip(whole, 0, n_items - 1).astype(np.int64)


def _sorted(item: Ints, words: Any, number: Ints) -> tuple[Ints, list[str]]:
    """Items numbered in the order of their labels: those that are in the rows that can be used."""
    used = np.flatnonzero(np.bincount(item[number], minlength=len(words)))
    kept = words.take(pa.array(used))
    if pa.types.is_floating(kept.type):  # whole numbers become fractions in frames where some are missing
        numbers = np.asarray(kept, dtype=np.float64)
        if (np.abs(numbers) < WHOLE).all() and (numbers == np.floor(numbers)).all():
            kept = pa.array(numbers.astype(np.int64))
    rank = np.asarray(pc.array_sort_indices(sortable(kept)), dtype=np.int64)
    place = np.zeros(len(words) + 1, dtype=np.int64)  # the last one for those that are empty
    place[used[rank]] = np.arange(len(rank))
    return place[item], [str(label) for label in kept.take(rank).to_pylist()]


def sortable(labels: Any) -> Any:
    """Labels that are all whole numbers are sorted as such, and not as 1, 10, 2."""
    try:
        return labels.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return labels


def _scaled(table: Table, column: Any, name: str, scale: Scale, faults: Faults) -> tuple[Floats, bool]:
    """Values from 0 to 1, and whether some are off the scale: clipping would hide a wrong scale."""
    values, empty, wrong = numbers_of(column, table.name, name, decimal_comma=table.decimal_comma)
    low, high = scale
    outside = ~((values >= low) & (values <= high)) & ~empty & ~wrong
    faults.add(empty, f"{name} is empty", wrong=False)
    faults.add(wrong, f"{name} is not a number", wrong=True)
    faults.add(outside, f"{name} must be from {low:g} to {high:g}", wrong=True)
    found: Floats = (np.where(np.isfinite(values), values, low) - low) / (high - low)
    return found, bool(outside.any())


def _matrix(
    rows: _Rows, rounds: Rounds, labels: list[str] | None, n_items: int | None, keep_last: bool, table: Table
) -> tuple[Any, int]:
    """Who wants what, a row for each round; and how many rows say again what another says."""
    n_rounds, width = len(rounds.person), len(labels) if labels is not None else int(n_items or 0)
    key = rounds.of_row * width + rows.item
    # Rows of one round and item stay in the order in which they came.
    order = np.argsort(key, kind="stable") if rows.ticks is None else np.lexsort((rows.ticks, key))
    key, values = key[order], rows.values[order]
    twice = np.append(np.diff(key) == 0, False)
    differ = twice & np.append(np.diff(values) != 0, False)
    if differ.any() and not keep_last:
        bad = int(np.argmax(differ))
        places = table.places(rows.number[order[bad : bad + 2]])
        raise InvalidInput(
            f"{table.name}: a person has an item twice with different values, in {table.word}s {places[0]:,} and "
            f"{places[1]:,}; {int(twice.sum()):,} rows are followed by another of the same person and item. To let the "
            "last one count: keep_last=True, or --keep-last on the command line."
        )
    key, values = key[~twice], values[~twice]
    starts = np.searchsorted(key, np.arange(n_rounds + 1) * width)
    return scipy.sparse.csr_array((values, key % width, starts), shape=(n_rounds, width)), int(twice.sum())


def _with_others(matrix: Any, others: int) -> tuple[Any, NDArray[np.int64]]:
    """The matrix with rows for `others` who want nothing, spread evenly; and where the first ones are now."""
    n_rounds, width = matrix.shape
    nobody = np.zeros(n_rounds + others, dtype=np.bool_)
    if others:
        nobody[((np.arange(others) + 0.5) * len(nobody) / others).astype(np.int64)] = True
    lengths = np.zeros(len(nobody), dtype=np.int64)
    lengths[~nobody] = np.diff(matrix.indptr)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    made = scipy.sparse.csr_array((matrix.data, matrix.indices, starts), shape=(len(nobody), width))
    return made, np.flatnonzero(~nobody)
