"""Cells of a table: labels and numbers of a whole column at once, and which rows cannot be used, with the reasons.

A row with an *empty* cell where something is needed says nothing: it is left out and counted. A row with something
*wrong* in such a cell is refused, all of them together, unless they are to be skipped and counted. Errors name places
and reasons, and repeat nothing of what is there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats, Ints

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.compute as pc

EMPTY = -1
"""In place of the number of a label."""
NAMED = 10
"""How many bad rows are named one by one."""
BAD_NUMBER = "not a number"


class Table(Protocol):
    """A table, wherever it is."""

    name: str
    word: str
    """What its rows are called by their places."""
    header: list[str]
    ragged: int
    """Rows with too few or too many cells, which were passed over."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as usual."""

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma in a number may stand for the point."""

    def columns(self, names: list[str]) -> dict[str, Any]:
        """Those columns, as Arrow."""

    def places(self, rows: Ints) -> list[int]:
        """Where those rows are; passed over ones are numbered from the number of the others on."""


class Labels(NamedTuple):
    """A column of labels: of each row the number of its label, EMPTY where there is none."""

    codes: Ints
    values: Any
    """All labels, as an Arrow array."""
    alike: int
    """How many labels differ from another one in capitals alone."""


class Numbers(NamedTuple):
    """A column of numbers, and where it has none: nothing is there, or something else."""

    numbers: Floats
    empty: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


class Faults:
    """Which rows cannot be used, and why: of each row the first reason that was found."""

    def __init__(self, rows: int) -> None:
        self._why = np.zeros(rows, dtype=np.int8)
        self._reasons: list[tuple[str, bool]] = [("", False)]

    def add(self, rows: NDArray[np.bool_], reason: str, *, wrong: bool) -> None:
        """These rows cannot be used: something is `wrong`, or else empty."""
        if rows.any():
            self._why[rows & (self._why == 0)] = len(self._reasons)
            self._reasons.append((reason, wrong))

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each row can be used."""
        found: NDArray[np.bool_] = self._why == 0
        return found

    def counts(self, *, wrong: bool) -> dict[str, int]:
        """How many rows cannot be used, by reason."""
        found = np.bincount(self._why, minlength=len(self._reasons)).tolist()
        return {
            reason: count
            for (reason, is_wrong), count in zip(self._reasons, found, strict=True)
            if reason and is_wrong == wrong and count
        }

    def refuse(self, table: Table, advice: str) -> None:
        """An error with all wrong rows together: the first ones by place and reason, and how many more there are."""
        total, said = sum(self.counts(wrong=True).values()) + table.ragged, list[str]()
        if not total:
            return
        wrong = np.flatnonzero(np.array([is_wrong for _, is_wrong in self._reasons])[self._why])
        passed = np.arange(len(self._why), len(self._why) + table.ragged)
        if table.ragged:
            passed = passed[np.argsort(table.places(passed), kind="stable")]
        first = np.concatenate([wrong[:NAMED], passed[:NAMED]])
        places = dict(zip(first.tolist(), table.places(first), strict=True))
        chosen = sorted(first.tolist(), key=lambda row: places[row])[:NAMED]
        reasons: dict[str, list[int]] = {}
        for row in chosen:
            own = (
                self._reasons[self._why[row]][0]
                if row < len(self._why)
                else RAGGED.format(n=len(table.header))
            )
            reasons.setdefault(own, []).append(places[row])
        for reason, where in reasons.items():
            many = table.word if len(where) == 1 else f"{table.word}s"
            said.append(f"{many} {', '.join(f'{place:,}' for place in where)}: {reason}")
        more = f"; and {total - len(chosen):,} more" if total > len(chosen) else ""
        rows = "1 row" if total == 1 else f"{total:,} rows"
        raise InvalidInput(f"{table.name} has {rows} that cannot be used. {'; '.join(said)}{more}. {advice}")


RAGGED = "not {n} columns, as above"


def plain(column: Any, source: str, name: str) -> Any:
    """A column of plain values, of a type that everything here can work with."""
    kind = column.type
    if pa.types.is_dictionary(kind):  # it may name what is not there, in an order of its own
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_nested(kind):
        raise InvalidInput(f"{source}: {name} must be a column of plain values.")
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return column.cast(pa.string())
    return column


def labels_of(column: Any, source: str, name: str, *, ignore_case: bool = False) -> Labels:
    """Labels without blanks around them, in the order in which they come; in small letters where case is ignored."""
    encoded = plain(column, source, name).combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(EMPTY), dtype=np.int64)
    words = encoded.dictionary
    alike = 0
    if pa.types.is_string(words.type):
        bare = pc.utf8_trim_whitespace(words)
        small = pc.utf8_lower(bare)
        alike = pc.count_distinct(bare).as_py() - pc.count_distinct(small).as_py()
        tidy = small if ignore_case else bare
        tidy = pc.if_else(pc.equal(tidy, ""), pa.scalar(None, pa.string()), tidy)
        if not tidy.equals(words):
            tidy = tidy.dictionary_encode()
            moved = np.append(np.asarray(tidy.indices.fill_null(EMPTY), dtype=np.int64), EMPTY)
            codes, words = moved[codes], tidy.dictionary
    return Labels(codes, words, 0 if ignore_case else alike)


def lines_in(words: Any) -> NDArray[np.bool_]:
    """Whether each of these labels has a line end in it."""
    if not pa.types.is_string(words.type):
        return np.zeros(len(words), dtype=np.bool_)
    return np.asarray(pc.match_substring(words, "\n"))


def numbers_of(column: Any, source: str, name: str, *, decimal_comma: bool = False) -> Numbers:
    """Numbers, also where they are written as text."""
    column = plain(column, source, name)
    empty = np.asarray(pc.is_null(column))
    if not pa.types.is_string(column.type):
        try:
            values = np.asarray(column.cast(pa.float64()).fill_null(math.nan), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = np.full(len(column), math.nan)
        return Numbers(values, empty, np.isnan(values) & ~empty)
    try:
        values = np.asarray(column.cast(pa.float64()).fill_null(math.nan), dtype=np.float64)
    except pa.ArrowInvalid:
        encoded = column.combine_chunks().dictionary_encode()
        each = [_number(word, decimal_comma) for word in encoded.dictionary.to_pylist()]
        codes = np.asarray(encoded.indices.fill_null(len(each)), dtype=np.int64)
        blank = np.array([not word.strip() for word in encoded.dictionary.to_pylist()] + [True])
        values, empty = np.array([*each, math.nan])[codes], blank[codes]
    return Numbers(values, empty, np.isnan(values) & ~empty)


def _number(word: str, decimal_comma: bool) -> float:
    if decimal_comma and word.count(",") == 1 and "." not in word:
        word = word.replace(",", ".")
    try:
        return float(word)
    except ValueError:
        return math.nan
