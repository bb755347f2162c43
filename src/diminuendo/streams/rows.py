"""Ratings: rows that say who wants what, and how much; from text, Parquet, JSON, frames or columns, in any order.

    customer_id;sku;created_at           user,item,value
    4711;tea;2024-05-01 17:30            ada,tea,0.9

Without a value, every row is an item that the user wants, and one that stands there twice counts once. Items are
labels, numbered in sorted order; or, if the number of items is given, numbers from 0 that are taken at their word.
Values run from 0 to 1, or on a scale that is given: read off the data, it would be a release that was not paid for.

A round is a visit: what a user orders in May is not known in March. So the rows of one user are one round only if you
say so, or if nothing in the table tells visits apart. Else rounds are orders, where there is a column of them, or
sessions: rows of a user without a long pause between them. Further columns may be contexts.

A row with an *empty* cell where something is needed is left out and counted. A row with something *wrong* in such a
cell is refused, all of them together, unless they are to be skipped. Errors name lines and columns, never cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.column_names import find, meant, roles
from diminuendo.streams.contexts import UNKNOWN, Contexts, listed
from diminuendo.streams.read_as import COLUMNS, GAP, UNIT, ReadAs, Round, Scale
from diminuendo.streams.sources import FLOATS, Source, open_columns, open_file, open_frame
from diminuendo.streams.users import Users
from diminuendo.streams.was_read import ReadNote, WasRead
from diminuendo.types import Ints, Progress

MILLISECONDS = 10**11
"""Seconds since 1970 stay below this for three thousand years; larger numbers are milliseconds."""
EARLIEST = 10**8
"""Seconds of 1973. No smaller number is taken for seconds: it is an hour, a step, or a date such as 20240501."""
HOURS = 24
EXPECTED = "Expected times as 2024-05-01 17:30:00, or seconds since 1970."
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PARTS = {
    "hour": "CAST(hour(make_timestamp({})) AS VARCHAR)",
    "weekday": f"list_extract({list(WEEKDAYS)}, isodow(make_timestamp({{}})))",
}
"""Parts of a time that may be a context, written as `time:hour`, and their SQL."""
SCALES = (
    "Say what values mean nothing and everything: as scale=(1, 5) or --scale 1,5 for one to five stars, .5,5 where "
    "there are halves."
)
SKIPPING = "Mend them; or leave them out, counted, with skip_bad=True, or --skip-bad on the command line."
NAMED = 10
"""Bad rows that are named one by one."""
CROWD = 100
"""A user with this many times the usual rounds is pointed out."""


def read_ratings(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Users:
    """Read users from a file of rows of user and item: delimited text, Parquet or JSON.

    Parameters
    ----------
    path : str or Path
        The file; text and JSON may be gzipped.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        If given, items are numbers from 0 to `n_items` - 1. By default they are labels, numbered in sorted order.
    name : str, optional
        Shown in reports. By default the name of the file.
    progress : callable, optional
        Called with numbers of bytes just read.
    **how
        As in `ReadAs`.

    Returns
    -------
    Users
        `was_read` says which columns were used, what a round is, and which rows do not count.

    Raises
    ------
    InvalidInput
        If rows are wrong. The message names lines and columns, never a value.
    """
    path = Path(path)
    with open_file(path, progress) as source:
        return _noted(users_of(source, ReadAs(**how), family, n_items, name or path.name.split(".")[0]))


def from_table(
    frame: Any,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    name: str = "table",
    **how: Any,
) -> Users:
    """Read users from a frame of pandas or polars, an Arrow table, a DuckDB relation, or a dictionary of columns.

    Parameters
    ----------
    frame : table
        With columns by name.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        If given, items are numbers from 0 to `n_items` - 1. By default they are labels, numbered in sorted order.
    name : str, default "table"
        Shown in reports and messages.
    **how
        As in `ReadAs`.

    Returns
    -------
    Users
        `was_read` says which columns were used, what a round is, and which rows do not count.

    Raises
    ------
    InvalidInput
        If it is no table, or rows are wrong. The message names rows and columns, never a value.

    Examples
    --------
    >>> from diminuendo.streams import from_table
    >>> days = ["2024-05-01", "2024-05-01", "2024-06-01"]
    >>> bought = {"who": ["ada", "bob", "ada"], "what": ["tea", "tea", "soap"], "day": days}
    >>> users = from_table(bought, columns=("who", "what"), time="day", round="day")
    >>> print(users.was_read)
    table: 3 rows, with who as user, what as item, day as time. Every row is an item that the user wanted.
    A round is a day of a user: 3 rounds of 2 users, 2 items, in the order of day.
    """
    columns = isinstance(frame, Mapping) and len(frame) > 0
    with (open_columns if columns else open_frame)(frame, name) as source:
        return _noted(users_of(source, ReadAs(**how), family, n_items, name))


def from_ratings(
    user_ids: ArrayLike,
    items: ArrayLike,
    values: ArrayLike | None = None,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    scale: Scale | None = None,
    keep_last: bool = False,
    name: str = "ratings",
) -> Users:
    """Read users from columns of one length: lists, arrays, or columns of a frame.

    Parameters
    ----------
    user_ids, items : column
        User and item of each row.
    values : column, optional
        How much the user wants the item, on `scale`. By default each row is an item that its user wants.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        If given, items are numbers from 0 to `n_items` - 1. By default they are labels, numbered in sorted order.
    scale : (float, float), optional
        The value that means nothing and the one that means everything. By default (0, 1).
    keep_last : bool, default False
        If a user has an item twice with different values, the last one counts.
    name : str, default "ratings"
        Shown in reports and messages.

    Returns
    -------
    Users

    Raises
    ------
    InvalidInput
        If columns do not fit, or values are off the scale. The message names rows and columns, never a value.

    Examples
    --------
    >>> from diminuendo.streams import from_ratings
    >>> users = from_ratings(["ada", "ada", "bob"], ["tea", "soap", "tea"], [5, 2, 3], scale=(1, 5))
    >>> users.labels, users[0].value([1]), users[1].value([1])
    (('soap', 'tea'), 1.0, 0.5)
    """
    columns = dict(
        zip(COLUMNS, (user_ids, items) if values is None else (user_ids, items, values), strict=False)
    )
    with open_columns(columns, name) as source:
        read_as = ReadAs(columns=tuple(columns), scale=scale, keep_last=keep_last)
        return _noted(users_of(source, read_as, family, n_items, name))


def _noted(users: Users) -> Users:
    """Warn if something was guessed or left out."""
    if users.was_read is not None and users.was_read.worth_a_note():
        warnings.warn(str(users.was_read), ReadNote, stacklevel=3)
    return users


def item_labels(source: Source, column: str) -> list[str]:
    """Create `items`, which numbers the labels in `usable` in order: as numbers, if all are whole numbers."""
    ((whole,),) = source.rows("SELECT bool_and(regexp_full_match(item, '[+-]?[0-9]{1,18}')) FROM usable")
    is_float = source.types[source.header.index(column)] in FLOATS
    number = "BIGINT" if whole else "DOUBLE" if is_float else "VARCHAR"
    source.rows(
        f"CREATE TABLE items AS SELECT item, row_number() OVER (ORDER BY CAST(item AS {number}), item) - 1 AS code "
        "FROM (SELECT DISTINCT item FROM usable)"
    )
    return [label for (label,) in source.rows("SELECT item FROM items ORDER BY code")]


class Fault(NamedTuple):
    """A reason why rows cannot be used."""

    where: str
    """SQL of the condition, over `cells`."""
    reason: str
    is_wrong: bool
    """Whether such a cell is wrong, and not just empty."""


class Times(NamedTuple):
    """How a column of times is read."""

    ticks: str
    """SQL of microseconds since 1970; or of the numbers themselves, which can only be put in order."""
    are_times: bool
    are_hours: bool = False
    """Whether they are whole numbers from 0 to 23."""


def users_of(
    source: Source,
    read_as: ReadAs,
    family: Family | None,
    n_items: int | None,
    name: str,
    labels: Sequence[str] | None = None,
) -> Users:
    """The users of a table. `labels`: those of all items, where the rows are some of a larger table."""
    return _Reading(source, read_as, n_items, labels).users(family, name)


class _Reading:
    """One table, step by step: cells, usable rows, rounds, entries of the matrix."""

    def __init__(
        self, source: Source, read_as: ReadAs, n_items: int | None, labels: Sequence[str] | None
    ) -> None:
        self.source, self.read_as, self.n_items, self.labels = source, read_as, n_items, labels
        self.faults, self.notes, self.doubts = list[Fault](), list[str](), list[str]()
        parts = roles(read_as, source.header, source.name)
        grouping = read_as.grouping
        if read_as.time is None and grouping is not None and grouping.kind == "user":
            parts = parts._replace(time=None)
        if grouping is not None and grouping.kind != "order":
            parts = parts._replace(order=None)
        self.parts, self.known = parts, columns_of(read_as.contexts, source.header, source.name)
        if answers := [one.column for one in self.known if one.column in parts[:3]]:
            raise InvalidInput(
                f"{source.name}: {', '.join(answers)} names the user or what they want, and that is not known when "
                "they arrive; name other columns as contexts."
            )

    def users(self, family: Family | None, name: str) -> Users:
        """Everything."""
        source, read_as = self.source, self.read_as
        self._load()
        times, grouping, off_scale = self._usable()
        if not read_as.skip_bad or (off_scale and read_as.scale is None):
            self._refuse(SCALES if off_scale else SKIPPING)
        n_users = self._rounds(grouping, times)
        matrix, repeated = self._matrix()
        owners = source.arrays("SELECT owner FROM rounds ORDER BY round")["owner"].astype(np.int64)
        matrix, places = _with_others(matrix, read_as.users_without)
        users = Users(family or NoisyOr(), matrix, name=name, labels=self.labels)
        if grouping.kind != "user":
            user_ids = np.arange(len(users)) + len(owners)  # those who want nothing come once each
            user_ids[places] = owners
            users.user_ids = user_ids
        left_out, skipped = self._counts()
        used = {role: own for role, own in self.parts._asdict().items() if isinstance(own, str)}
        users.was_read = WasRead(
            source.name,
            self.n_rows + source.ragged,
            used,
            grouping.kind,
            len(users),
            n_users + read_as.users_without,
            users.n_items,
            guessed=self.parts.guessed,
            chosen=read_as.round is None and grouping.kind != "user",
            minutes=grouping.minutes,
            left_out=left_out,
            skipped=skipped,
            repeated=repeated,
            without=read_as.users_without,
            notes=(*source.notes, *self.notes),
            doubts=tuple(self.doubts),
            unused=tuple(
                one
                for one in source.header
                if one not in used.values() and one not in [known.column for known in self.known]
            ),
        )
        return self._with_contexts(users) if self.known else users

    def _load(self) -> None:
        """Create `cells`: the columns that are needed."""
        source, parts = self.source, self.parts
        cell = source.cell
        columns = {role: cell(getattr(parts, role), text=True) for role in ("user", "item")}
        if self.n_items is not None:
            columns["item"] = cell(parts.item)
        for role in ("value", "quantity", "time"):
            if (column := getattr(parts, role)) is not None:
                columns[role] = cell(column)
        if parts.order is not None:
            columns["order"] = cell(parts.order, text=True)
        if self.read_as.ignore_case:
            columns |= {
                role: f"lower({columns[role]})" for role in ("user", "item", "order") if role in columns
            }
        for number, one in enumerate(self.known):
            columns[f"k{number}"] = cell(one.column, text=not one.part)
        source.load(columns)
        self.types = {name: kind for name, kind, *_ in source.rows("DESCRIBE cells")}
        ((self.n_rows,),) = source.rows("SELECT count(*) FROM cells")
        if not self.n_rows + source.ragged:
            raise InvalidInput(f"{source.name} has no rows: expected {','.join(parts.all())}.")
        if not self.n_rows:
            self._refuse(SKIPPING)

    def _usable(self) -> tuple[Times | None, Round, bool]:
        """Create `usable`: the rows that can be used; when they were, what a round is, whether values are off scale."""
        source, parts, read_as = self.source, self.parts, self.read_as
        item, value = "item", "1.0"
        self._labels("user", parts.user)
        if self.n_items is None:
            self._labels("item", parts.item)
        else:
            number = _number("item", self.types["item"])
            self._fault("item IS NULL", f"{parts.item} is empty")
            self._fault(
                f"coalesce({number} <> trunc({number}) OR isnan({number}) OR isinf({number}), true)",
                f"{parts.item} is not a whole number, as items are that are numbered",
                wrong=True,
            )
            self._fault(
                f"{number} < 0 OR {number} >= {self.n_items}",
                f"{parts.item} is out of range; with {self.n_items} items they are numbered from 0 to "
                f"{self.n_items - 1}",
                wrong=True,
            )
            item = f"CAST({number} AS BIGINT)"
        off_scale = False
        if parts.value is not None:
            low, high = read_as.scale or UNIT
            value = _number("value", self.types["value"], decimal_comma=source.decimal_comma)
            self._fault("value IS NULL", f"{parts.value} is empty")
            self._fault(f"{value} IS NULL OR isnan({value})", f"{parts.value} is not a number", wrong=True)
            outside = f"{value} NOT BETWEEN {float(low)!r}::DOUBLE AND {float(high)!r}::DOUBLE"
            ((off_scale,),) = source.rows(
                f"SELECT coalesce(bool_or({outside} AND NOT isnan({value})), false) FROM cells"
            )
            self._fault(outside, f"{parts.value} must be from {low:g} to {high:g}", wrong=True)
        if parts.quantity is not None:
            bought = _number("quantity", self.types["quantity"], decimal_comma=source.decimal_comma)
            self._fault(f"{bought} < 1", f"{parts.quantity} is below 1, as in a return")
        times, grouping = self._when()
        ticks = "0" if times is None else times.ticks
        order = '"order"' if grouping.kind == "order" else "0"
        known = "".join(f", k{number}" for number in range(len(self.known)))
        source.rows(
            f"CREATE TABLE usable AS SELECT rowid AS row, user, {item} AS item, {value} AS value, {order} AS visit, "
            f"{ticks} AS ticks{known} FROM cells WHERE {self._why()} = 0"
        )
        return times, grouping, off_scale

    def _when(self) -> tuple[Times | None, Round]:
        """When rows were, and what a round is; rows that cannot be told apart by it cannot be used."""
        source, parts, read_as = self.source, self.parts, self.read_as
        grouping, times = read_as.grouping, None
        if parts.time is not None:
            times = times_of(source, "time", self.types["time"])
            if read_as.time is None:
                ((known, filled),) = source.rows(
                    f"SELECT count({times.ticks}) FILTER ({self._why()} = 0), count(time) FROM cells"
                )
                if not known:
                    times = None  # that these are times was a guess
                    if filled:
                        self.doubts.append(
                            f"{parts.time} was not used: nothing in it can be read as a time. {EXPECTED}"
                        )
        if grouping is None:
            grouping = self._usual(times)
        if grouping.kind in ("session", "day") and (times is None or not times.are_times):
            named = "" if parts.time is None else f"{parts.time} is not one. "
            raise InvalidInput(
                f"{source.name}: a {grouping.kind} is told by a column of times. {named}Name it, as "
                f"time='created_at' or --time created_at. {EXPECTED}"
            )
        if grouping.kind == "user" and read_as.time is None:
            times = None
        if grouping.kind == "order":
            self._fault('"order" IS NULL', f"{parts.order} is empty")
        if times is not None:
            self._fault(
                f"time IS NOT NULL AND {times.ticks} IS NULL",
                f"{parts.time} is not a time such as 2024-05-01 17:30:00",
                wrong=True,
            )
            self._fault("time IS NULL", f"{parts.time} is empty")
        self.parts = parts._replace(
            order=parts.order if grouping.kind == "order" else None,
            time=None if times is None else parts.time,
        )
        return times, grouping

    def _usual(self, times: Times | None) -> Round:
        """What a round is where the user of the library does not say so: orders or sessions, if any user has two."""
        where = f"{self._why()} = 0"
        if self.parts.order is not None:
            visits = f'SELECT user, "order" AS visit FROM cells WHERE {where} AND "order" IS NOT NULL'
            kind = "order"
        elif times is not None and times.are_times:
            rows = f"SELECT user, {times.ticks} AS ticks, rowid AS row FROM cells WHERE {where}"
            visits, kind = _sessions(f"({rows})", GAP), "session"
        else:
            return Round("user")
        several = self.source.rows(
            f"SELECT 1 FROM ({visits}) GROUP BY user HAVING min(visit) <> max(visit) LIMIT 1"
        )
        return Round(kind) if several else Round("user")

    def _rounds(self, grouping: Round, times: Times | None) -> int:
        """Create `rounds`, numbered by the time of their first rows; of how many users they are."""
        source = self.source
        if grouping.kind == "session":
            source.rows(f"CREATE OR REPLACE TABLE usable AS {_sessions('usable', grouping.minutes)}")
        elif grouping.kind == "day":
            source.rows("UPDATE usable SET visit = CAST(floor(ticks / 86400000000) AS BIGINT)")
        source.rows(
            """
            CREATE TABLE rounds AS
            SELECT user, visit, row_number() OVER (ORDER BY earliest, first) - 1 AS round,
                   dense_rank() OVER (ORDER BY user_since) - 1 AS owner, first
            FROM (SELECT user, visit, min(ticks) AS earliest, min(row) AS first,
                         min(min(row)) OVER (PARTITION BY user) AS user_since
                  FROM usable GROUP BY user, visit)
            """
        )
        ((rounds, users),) = source.rows("SELECT count(*), count(DISTINCT user) FROM rounds")
        if not rounds:
            why = "; ".join([*self._counts()[0], *self._counts()[1]])
            raise InvalidInput(f"{source.name} has no rows that can be used: {why}.")
        ((most, usual, first),) = source.rows(
            "SELECT max(many), median(many), arg_max(first, many) FROM (SELECT count(*) AS many, min(first) AS first "
            "FROM rounds GROUP BY user ORDER BY user)"
        )
        if most >= CROWD * usual:
            ((line,), _) = source.lines([first])
            self.doubts.append(
                f"One label in {self.parts.user} has {most:,} rounds, where half of the users have {usual:g} "
                f"or fewer; it is first in {source.word} {line:,}. If many users share it, as guests do, leave its "
                "rows out."
            )
        return int(users)

    def _matrix(self) -> tuple[Any, int]:
        """Who wants what, a row for each round; and how many rows repeat what another one says."""
        source = self.source
        width = self._number_items() if self.n_items is None else self.n_items
        code = "item" if self.n_items is not None else "code"
        join = "" if self.n_items is not None else "JOIN items USING (item)"
        source.rows(
            f"CREATE TABLE entries AS SELECT round, {code} AS item, value, ticks, row FROM usable JOIN rounds USING "
            f"(user, visit) {join}"
        )
        value = "any_value(value)"
        if source.rows("SELECT 1 FROM entries GROUP BY round, item HAVING min(value) <> max(value) LIMIT 1"):
            value = "arg_max(value, (ticks, row))"
            if not self.read_as.keep_last:
                self._refuse_differing()
        entries = source.arrays(
            f"SELECT round, item, {value} AS value FROM entries GROUP BY round, item ORDER BY round, item"
        )
        ((n_rows, n_rounds),) = source.rows(
            "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM rounds)"
        )
        low, high = (self.read_as.scale or UNIT) if self.parts.value is not None else UNIT
        values = (entries["value"] - low) / (high - low)
        starts = np.searchsorted(entries["round"], np.arange(n_rounds + 1))
        shape = (n_rounds, width)
        return scipy.sparse.csr_array((values, entries["item"], starts), shape=shape), n_rows - len(values)

    def _refuse_differing(self) -> None:
        source, pairs = self.source, "lag({}) OVER (PARTITION BY round, item ORDER BY ticks, row)"
        ((before, row),) = source.rows(
            f"SELECT before, row FROM (SELECT *, {pairs.format('row')} AS before, {pairs.format('value')} AS other "
            "FROM entries) WHERE value <> other ORDER BY round, item, ticks, row LIMIT 1"
        )
        ((twice,),) = source.rows("SELECT count(*) - count(DISTINCT (round, item)) FROM entries")
        first, second = source.lines([before, row])[0]
        raise InvalidInput(
            f"{source.name}: a user has an item twice with different values, in {source.word}s {first:,} and "
            f"{second:,}; {twice:,} rows are followed by another of the same user and item. To let the last one "
            "count: keep_last=True, or --keep-last on the command line."
        )

    def _number_items(self) -> int:
        """Create `items`, numbered in the order of their labels: as numbers, if all are whole numbers."""
        source = self.source
        if self.labels is not None:
            source.rows(
                "CREATE TABLE items AS SELECT item, row_number() OVER () - 1 AS code FROM (SELECT unnest($1) AS item)",
                list(self.labels),
            )
            return len(self.labels)
        self.labels = item_labels(source, self.parts.item)
        if 2 * sum("; " in label or " | " in label for label in self.labels) > len(self.labels):
            self.doubts.append(
                f"Most labels in {self.parts.item} have a semicolon or a bar within: if a cell lists several items, "
                "give each a row."
            )
        return len(self.labels)

    def _with_contexts(self, users: Users) -> Users:
        """These users, with what was known of each when they came: the first of their rows in which it is known."""
        source, every = self.source, dict[str, tuple[Ints, Sequence[str]]]()
        for number, one in enumerate(self.known):
            value = context_of(source, f"k{number}", self.types[f"k{number}"], one)
            rounds = source.arrays(
                "SELECT round, arg_min(known, row) AS known, count(DISTINCT known) AS several FROM (SELECT round, "
                f"row, {value} AS known FROM usable JOIN rounds USING (user, visit)) GROUP BY round ORDER BY round"
            )
            several = int((rounds["several"] > 1).sum())
            every[one.name] = _coded(rounds["known"])
            if several:
                warnings.warn(
                    f"{source.name}: {several:,} of {len(users):,} users have rows that differ in {one.name}; the "
                    "first row in which it is known counts.",
                    stacklevel=4,
                )
        return knowing(users, every, private=self.read_as.private_context)

    def _fault(self, where: str, reason: str, *, wrong: bool = False) -> None:
        self.faults.append(Fault(where, reason, wrong))

    def _labels(self, role: str, column: str) -> None:
        """Faults of a column of labels, and a note on those that differ in capitals alone."""
        self._fault(f"{role} IS NULL", f"{column} is empty")
        self._fault(
            f"contains({role}, chr(10))",
            f"{column} goes on in another line; a quotation mark may be missing",
            wrong=True,
        )
        if not self.read_as.ignore_case:
            ((labels, small),) = self.source.rows(
                f"SELECT count(*), count(DISTINCT lower({role})) FROM (SELECT DISTINCT {role} FROM cells WHERE {role} "
                "IS NOT NULL)"
            )
            if labels > small:
                self.notes.append(
                    f"{labels - small:,} of {labels:,} labels in {column} differ from another in capitals alone, and "
                    "count apart; --ignore-case joins them."
                )

    def _why(self) -> str:
        """SQL of the number of the first fault of a row, 0 where there is none."""
        cases = "".join(f" WHEN {fault.where} THEN {number}" for number, fault in enumerate(self.faults, 1))
        return f"CASE{cases or ' WHEN false THEN 0'} ELSE 0 END"

    def _counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many rows are empty and how many are wrong, by reason."""
        counts = dict(self.source.rows(f"SELECT {self._why()} AS why, count(*) FROM cells GROUP BY why"))
        empty, wrong = dict[str, int](), dict[str, int]()
        for number, fault in enumerate(self.faults, 1):
            if counts.get(number):
                (wrong if fault.is_wrong else empty)[fault.reason] = counts[number]
        if self.source.ragged:
            wrong[f"there are {self.source.ragged_as}"] = self.source.ragged
        return empty, wrong

    def _refuse(self, advice: str) -> None:
        """Raise an error with all wrong rows: the first ones by line and reason, and how many more there are."""
        source = self.source
        total = sum(self._counts()[1].values())
        if not total:
            return
        wrong = [str(number) for number, fault in enumerate(self.faults, 1) if fault.is_wrong]
        first = source.rows(
            f"SELECT rowid, {self._why()} AS why FROM cells WHERE why IN ({', '.join(wrong) or 'NULL'}) ORDER BY rowid "
            f"LIMIT {NAMED}"
        )
        lines, ragged = source.lines([row for row, _ in first], NAMED)
        each = [(line, self.faults[why - 1].reason) for line, (_, why) in zip(lines, first, strict=True)]
        each = sorted([*each, *((line, source.ragged_as) for line in ragged)])[:NAMED]
        reasons: dict[str, list[int]] = {}
        for line, reason in each:
            reasons.setdefault(reason, []).append(line)
        said = [
            f"{source.word}{'s' * (len(where) > 1)} {', '.join(f'{line:,}' for line in where)}: {reason}"
            for reason, where in reasons.items()
        ]
        more = f"; and {total - len(each):,} more" if total > len(each) else ""
        rows = "1 row" if total == 1 else f"{total:,} rows"
        raise InvalidInput(f"{source.name} has {rows} that cannot be used. {'; '.join(said)}{more}. {advice}")


def _number(column: str, kind: str, *, decimal_comma: bool = False) -> str:
    """SQL of a number; also of text with a currency sign or code, and with a decimal comma where that is clear."""
    if kind != "VARCHAR":
        return f"TRY_CAST({column} AS DOUBLE)"
    sign = r"[\pZ\p{Sc}]|[A-Z]{3}"
    bare = f"regexp_replace({column}, '^({sign})+|({sign})+$', '', 'g')"
    if decimal_comma:
        bare = f"regexp_replace({bare}, '^([^.,]*),([^.,]*)$', '\\1.\\2')"
    return f"coalesce(TRY_CAST({column} AS DOUBLE), TRY_CAST({bare} AS DOUBLE))"


def times_of(source: Source, column: str, kind: str) -> Times:
    """How the times in a column of `cells` are read: timestamps, dates, text, or seconds or milliseconds since 1970."""
    if kind == "VARCHAR":
        ((filled, whole, day, month),) = source.rows(
            f"SELECT count({column}), count(*) FILTER (regexp_full_match({column}, '[+-]?[0-9]{{1,18}}')), "
            f"max(TRY_CAST(regexp_extract({column}, '^([0-9]{{1,2}})/[0-9]{{1,2}}/', 1) AS INTEGER)), "
            f"max(TRY_CAST(regexp_extract({column}, '^[0-9]{{1,2}}/([0-9]{{1,2}})/', 1) AS INTEGER)) FROM cells"
        )
        if filled == 0 or whole < filled:
            is_day, is_month = (day or 0) > 12, (month or 0) > 12
            ticks = _moment(column, None if is_day == is_month else is_day)
            return Times(ticks, bool(source.rows(f"SELECT 1 FROM cells WHERE {ticks} IS NOT NULL LIMIT 1")))
        number = f"TRY_CAST({column} AS BIGINT)"
    elif kind == "TIMESTAMP WITH TIME ZONE":
        return Times(f"epoch_us({column})", True)
    elif kind.startswith("TIMESTAMP") or kind == "DATE":
        return Times(f"epoch_us(CAST({column} AS TIMESTAMP))", True)
    elif kind in FLOATS or kind.startswith("DECIMAL") or kind.endswith(("INT", "INTEGER")):
        number = f"TRY_CAST(floor({column}) AS BIGINT)"
    else:
        return Times("CAST(NULL AS BIGINT)", False)
    ((least, most),) = source.rows(f"SELECT min({number}), max({number}) FROM cells")
    if most is None or most < EARLIEST:
        return Times(number, False, most is not None and least >= 0 and most < HOURS)
    return Times(f"{number} * {1_000 if most > MILLISECONDS else 1_000_000}", True)


def _moment(column: str, day_first: bool | None) -> str:
    """SQL of microseconds since 1970 of text; without a zone it is taken for UTC.

    Day and month are exchanged to ISO 8601: with dots the day comes first; with strokes if the column shows it
    (`day_first`), and such dates are not read if it does not. Years of two digits are read as in POSIX.
    """
    text = rf"regexp_replace({column}, ' ([+-][0-9:]+)$', '\1')"  # 10:00:00 +0200
    text = rf"regexp_replace({text}, '(:[0-9]{{2}}),([0-9]+)', '\1.\2')"  # 10:00:00,5
    for mark, turned in (("[.]", True), ("/", day_first)):
        if turned is not None:
            place = (3, 2, 1) if turned else (3, 1, 2)
            for year, century in (
                ("[0-9]{4}", ""),
                ("(?:[0-5][0-9]|6[0-8])", "20"),
                ("(?:69|[7-9][0-9])", "19"),
            ):
                pattern = f"^([0-9]{{1,2}}){mark}([0-9]{{1,2}}){mark}({year})(?:,? (.*))?$"
                text = f"regexp_replace({text}, '{pattern}', '{century}\\{place[0]}-\\{place[1]}-\\{place[2]} \\4')"
    text = f"trim({text})"
    half = rf"regexp_replace({text}, '[T ]+([0-9:]+) ?([AaPp])[.]?[Mm][.]?$', ' \1 \2m')"
    others = "['%Y-%m-%d %I:%M %p', '%Y-%m-%d %I:%M:%S %p', '%Y%m%d', '%Y-%m-%dT%H', '%Y-%m-%d %H']"
    moment = f"coalesce(TRY_CAST({text} AS TIMESTAMPTZ), CAST(try_strptime({half}, {others}) AS TIMESTAMPTZ))"
    return f"CASE WHEN regexp_matches({text}, '^[0-9]{{4}}') THEN epoch_us({moment}) END"


def _sessions(rows: str, minutes: float) -> str:
    """SQL of these rows with the number of the session as `visit`: rows of a user without a longer pause."""
    pause = int(minutes * 60 * 10**6)
    return f"""
        SELECT * EXCLUDE (begins), sum(begins) OVER (PARTITION BY user ORDER BY ticks, row
               ROWS UNBOUNDED PRECEDING) AS visit
        FROM (SELECT * {"EXCLUDE (visit)" if rows == "usable" else ""}, CASE WHEN ticks - lag(ticks) OVER
                     (PARTITION BY user ORDER BY ticks, row) > {pause} THEN 1 ELSE 0 END AS begins FROM {rows})
    """


class Known(NamedTuple):
    """A context: its name, and the column, or part of a column, that holds it."""

    name: str
    column: str
    part: str = ""


def columns_of(names: Sequence[str], header: Sequence[str], file: str) -> list[Known]:
    """The columns of these contexts; names that are not there are refused."""
    every = []
    for name in names:
        if (whole := find(name, header, file)) is not None:
            every.append(Known(name, whole))
            continue
        first, _, part = name.rpartition(":")
        column = find(first, header, file) if first else None
        if column is None:
            raise InvalidInput(
                f"{file} has no column {first or name} to know of users.{meant(name, header)} Its columns are: "
                f"{', '.join(header)}."
            )
        if part not in PARTS:
            raise InvalidInput(
                f"Of a time, {' or '.join(PARTS)} can be known, as {first}:hour; got {name!r}."
            )
        every.append(Known(name, column, part))
    return every


def context_of(source: Source, column: str, kind: str, known: Known) -> str:
    """SQL of a context, over `cells`: the column, or a part of the time in it."""
    if not known.part:
        return column
    times = times_of(source, column, kind)
    if times.are_times:
        ((wrong, rows),) = source.rows(f"SELECT count({column}) - count({times.ticks}), count(*) FROM cells")
        if wrong:
            warnings.warn(
                f"{source.name}: {wrong:,} of {rows:,} rows have no time in {known.column} that can be read, so "
                f"that {known.name} is not known there.",
                stacklevel=5,
            )
        return PARTS[known.part].format(times.ticks)
    if times.are_hours and known.part == "hour":
        return f"CAST({times.ticks} AS VARCHAR)"
    raise InvalidInput(
        f"{source.name}: {known.column} is not a column of times. {EXPECTED} Where its values are what is known of "
        f"users, such as hours from 0 to 23 or days, name the column alone: {known.column}."
    )


def _coded(values: Any) -> tuple[Ints, Sequence[str]]:
    """The number of the value of each row, UNKNOWN where it is missing; and the values."""
    known = ~np.ma.getmaskarray(values)
    codes = np.full(len(values), UNKNOWN, dtype=np.int64)
    labels, codes[known] = np.unique(np.asarray(values)[known].astype(object), return_inverse=True)
    return codes, [str(label) for label in labels]


def knowing(users: Users, every: Mapping[str, tuple[Ints, Sequence[str]]], *, private: bool) -> Users:
    """These users, and what is known of each, by name; besides what was known already."""
    columns = {name: listed(name, *column) for name, column in every.items()}
    if users.contexts is not None and users.types is not None:
        numbers = users.contexts.values_of(users.types).T
        columns |= {
            column.name: (list(column.values), own)
            for column, own in zip(users.contexts.columns, numbers, strict=True)
        }
    contexts = Contexts({name: values for name, (values, _) in columns.items()}, private=private)
    return users.with_contexts(contexts, np.stack([codes for _, codes in columns.values()], axis=1))


def with_table_beside(path: Path, users: Users, names: Sequence[str], *, private: bool) -> Users:
    """These users, with contexts from the table beside their file: NAME.contexts.csv for NAME.npz or NAME.txt."""
    table = path.with_name(f"{path.name.split('.')[0]}.contexts.csv")
    if not table.is_file():
        raise InvalidInput(
            f"What is known of the users of {path.name} is looked for in {table.name} beside it: a line per user, "
            "in their order, below the names of columns. There is no such file; write one, or leave the context out."
        )
    with open_file(table) as source:
        known = columns_of(names, source.header, table.name)
        source.load({f"k{number}": source.cell(one.column) for number, one in enumerate(known)})
        contexts = [context_of(source, f"k{number}", "VARCHAR", one) for number, one in enumerate(known)]
        values = ", ".join(f"{sql} AS k{number}" for number, sql in enumerate(contexts))
        rows = source.arrays(f"SELECT {values} FROM cells ORDER BY rowid")
        lines = len(rows["k0"]) + source.ragged
        if source.ragged or lines != len(users):
            raise InvalidInput(
                f"{table.name} has {lines:,} lines below the names of columns, {source.ragged:,} of them with "
                f"other columns than these, and {path.name} has {len(users):,} users; expected a line per user."
            )
        every = {one.name: _coded(rows[f"k{number}"]) for number, one in enumerate(known)}
    return knowing(users, every, private=private)


def _with_others(matrix: Any, others: int) -> tuple[Any, NDArray[np.int64]]:
    """The matrix with rows for `others` who want nothing, spread evenly; and where the first ones are now."""
    n_rounds, width = matrix.shape
    added = np.zeros(n_rounds + others, dtype=np.bool_)
    if others:
        added[((np.arange(others) + 0.5) * len(added) / others).astype(np.int64)] = True
    lengths = np.zeros(len(added), dtype=np.int64)
    lengths[~added] = np.diff(matrix.indptr)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    whole = scipy.sparse.csr_array((matrix.data, matrix.indices, starts), shape=(len(added), width))
    return whole, np.flatnonzero(~added)
