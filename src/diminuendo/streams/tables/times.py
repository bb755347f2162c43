"""Columns of times: timestamps, dates, text as 2024-05-01 17:30:00, seconds or milliseconds since 1970; and hours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo._extras import extra
from diminuendo.streams.tables.cells import plain
from diminuendo.types import Ints

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc

MILLISECONDS = 10**11
"""Seconds since 1970 stay below this for three thousand years; larger numbers are milliseconds."""
EARLIEST = 10**8
"""Seconds of 1973. No smaller number is taken for seconds: it is an hour, a step, or a date such as 20240501."""
HOURS, MONTHS = 24, 12
WRITTEN = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[./])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d\d)(?P<clock>,? .*)?$"
)
"""Dates with the year at their end, as 1.5.2024 17:30 or 5/1/24."""
CLOCK = re.compile(
    r"(?P<date>.*\d),?[ T](?P<hour>1[0-2]|0?[1-9]):(?P<rest>[0-5]\d(:[0-5]\d)?) ?(?P<half>[ap])\.?m\.?$",
    re.IGNORECASE,
)
"""A time of day with AM or PM, as 5:30 PM."""
CENTURY = 69
"""Years of two digits from here on are of 1969 to 1999, the others of 2000 to 2068, as in POSIX."""
EXPECTED = "Expected times as 2024-05-01 17:30:00, or seconds since 1970."


class Times(NamedTuple):
    """A column of times."""

    column: Any
    """Arrow timestamps; or whole numbers, where these are no times but may be put in order."""
    real: bool
    """Whether they are times, so that pauses and days can be told."""
    wrong: NDArray[np.bool_]
    """Where something is that is no time."""

    @property
    def hours(self) -> bool:
        """Whether they are whole numbers from 0 to 23, which are hours."""
        least, most = pc.min(self.column).as_py(), pc.max(self.column).as_py()
        return not self.real and least is not None and least >= 0 and most < HOURS

    def known(self) -> NDArray[np.bool_]:
        """Where there is a time."""
        return np.asarray(pc.is_valid(self.column))

    def ticks(self) -> Ints:
        """Microseconds since 1970; or the numbers themselves; 0 where there is none."""
        column = (
            self.column.cast(pa.timestamp("us", self.column.type.tz), safe=False)
            if self.real
            else self.column
        )
        return np.asarray(column.cast(pa.int64()).fill_null(0), dtype=np.int64)


def times_of(column: Any, source: str, name: str) -> Times:
    """A column of times, also where it holds text or numbers; what cannot be read is marked, and empty."""
    column = plain(column, source, name)
    if pa.types.is_string(column.type):
        column, wrong = _from_text(column)
        if column.null_count == len(column):
            return Times(column.cast(pa.int64()), False, wrong)
    else:
        wrong = np.zeros(len(column), dtype=np.bool_)
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = pc.floor(column).cast(pa.int64(), safe=False)
    elif not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        return Times(pa.nulls(len(column), pa.int64()), False, np.asarray(pc.is_valid(column)))
    if not pa.types.is_integer(column.type):
        return Times(column, True, wrong)
    most = pc.max(column).as_py() or 0
    if most < EARLIEST:
        return Times(column.cast(pa.int64()), False, wrong)
    return Times(
        column.cast(pa.int64()).cast(pa.timestamp("ms" if most > MILLISECONDS else "s")), True, wrong
    )


def _from_text(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Whole numbers or timestamps of text, and where it is neither."""
    for wanted in (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return column.cast(wanted), np.zeros(len(column), dtype=np.bool_)
        except pa.ArrowInvalid:
            continue
    encoded = column.combine_chunks().dictionary_encode()
    words = [word.strip() for word in encoded.dictionary.to_pylist()]
    day_first = _day_first(words)
    each = [_moment(word, day_first) for word in words]
    codes = encoded.indices
    bad = np.array(
        [moment is None and bool(word) for moment, word in zip(each, words, strict=True)] + [False]
    )
    wrong = bad[np.asarray(codes.fill_null(len(each)), dtype=np.int64)]
    return pa.array(each, pa.timestamp("us", "UTC")).take(codes), wrong


def _day_first(words: Sequence[str]) -> bool | None:
    """Whether 5/1/2024 is the fifth of January, as far as the whole column tells; None where it does not."""
    parts = [found for found in map(WRITTEN.match, words) if found and found["mark"] == "/"]
    first = any(int(found["first"]) > MONTHS for found in parts)
    second = any(int(found["second"]) > MONTHS for found in parts)
    return None if first == second else first


def _moment(word: str, day_first: bool | None) -> datetime | None:
    """A time as it is written; without a zone it is taken for UTC. With points the day comes first."""
    if half := CLOCK.match(word):
        hour = int(half["hour"]) % 12 + (12 if half["half"] in "pP" else 0)
        word = f"{half['date']} {hour:02}:{half['rest']}"
    if found := WRITTEN.match(word):
        turned = True if found["mark"] == "." else day_first
        if turned is None:
            return None
        day, month = (found["first"], found["second"]) if turned else (found["second"], found["first"])
        year = int(found["year"])
        if len(found["year"]) == 2:
            year += 1900 if year >= CENTURY else 2000
        clock = (found["clock"] or "").lstrip(", ")
        word = f"{year}-{month:0>2}-{day:0>2}" + (
            f" {clock:0>{len(clock) + (clock[1:2] == ':')}}" if clock else ""
        )
    try:
        found_time = datetime.fromisoformat(word.removesuffix(" UTC"))
    except ValueError:
        return None
    return found_time if found_time.tzinfo else found_time.replace(tzinfo=UTC)
