"""Users' rows in DuckDB: text, Parquet and JSON files, and frames in memory, as a table with columns c0, c1, ...

Names of files and columns, and cells, are never part of SQL: paths are parameters, and columns are numbered. DuckDB's
messages quote cells, and do not leave this module.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from diminuendo._database import attempt, literal, private_database
from diminuendo.errors import InvalidInput
from diminuendo.streams.column_names import tidied
from diminuendo.types import Progress

SEPARATORS = {",": "", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Delimiters of columns, the likeliest first, and their names."""
EXCEL = re.compile(r'^\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
"""A first line that names the delimiter, as Excel writes it."""
LONGEST_HEAD = 2**16
"""Bytes of a file in which the header is looked for."""
WINDOWS = "cp1252"
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "#NA", "NaN", "nan", "NULL", "null")
"""Cells of text files that mean: no value."""
BLANK = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(160) || chr(8239) || chr(12288)"
"""White space around labels."""
FLOATS = ("FLOAT", "DOUBLE")


class Source:
    """A table of rows in a private database.

    Parameters
    ----------
    database
        The DuckDB connection.
    name
        What errors and warnings call the table.
    header
        The names of its columns, in order.
    relation
        SQL of the table, with columns c0, c1, ... in the order of `header`.
    parameters
        Values of the placeholders in `relation`.
    """

    word = "data row"
    """What a row is called beside its number."""
    decimal_comma = False
    """Whether a comma in a number may stand for the decimal point."""
    notes: tuple[str, ...] = ()
    """What is unusual about the table, as sentences."""

    def __init__(
        self,
        database: Any,
        name: str,
        header: list[str],
        relation: str,
        parameters: tuple[Any, ...] = (),
        progress: Progress | None = None,
        size: int = 0,
    ) -> None:
        self._database, self.name, self.header = database, name, header
        self.relation, self.parameters = relation, parameters
        self._progress, self._left = progress, size
        self.ragged = 0
        """How many rows are not in `cells`: cut off, with too many cells, or not readable."""
        self.ragged_as = f"not {len(header)} columns, as above"

    @cached_property
    def types(self) -> list[str]:
        """The DuckDB types of the columns."""
        return [row[1] for row in self.rows(f"DESCRIBE SELECT * FROM {self.relation}", *self.parameters)]

    def cell(self, column: str, *, text: bool = False) -> str:
        """SQL of a cell: without blanks around it, and NULL where nothing is in it. `text`: as a label."""
        place = self.header.index(column)
        kind, cell = self.types[place], f"c{place}"
        if kind.endswith((")", "]")) and not kind.startswith(("DECIMAL", "ENUM")):
            raise InvalidInput(f"{self.name}: {column} must be a column of plain values.")
        if kind in FLOATS:
            cell = f"nullif({cell}, 'NaN'::{kind})"
            if text:  # whole numbers become fractions in frames where some are missing
                return (
                    f"CASE WHEN {cell} = trunc({cell}) AND abs({cell}) < 9007199254740992 THEN "
                    f"CAST(CAST({cell} AS BIGINT) AS VARCHAR) ELSE CAST({cell} AS VARCHAR) END"
                )
        if text or kind == "VARCHAR" or kind.startswith("ENUM"):
            return f"nullif(trim(CAST({cell} AS VARCHAR), {BLANK}), '')"
        return cell

    def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        rows: list[tuple[Any, ...]] = self._fetched("fetchall", sql, parameters)
        return rows

    def arrays(self, sql: str, *parameters: Any) -> dict[str, Any]:
        """The columns of a query, as arrays by name; masked where something is missing."""
        arrays: dict[str, Any] = self._fetched("fetchnumpy", sql, parameters)
        return arrays

    def _fetched(self, how: str, sql: str, parameters: tuple[Any, ...]) -> Any:
        return attempt(
            lambda: getattr(self._database.execute(sql, list(parameters)), how)(),
            lambda: f"{self.name} cannot be read as ratings: {self._unreadable()}.",
        )

    def _unreadable(self) -> str:
        return "it is damaged, or its values are of a kind that is not supported"

    def load(self, columns: Mapping[str, str]) -> None:
        """Create the table `cells` with these columns: expressions over c0, c1, ... by name, all rows in order."""
        chosen = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
        self.read(f"CREATE TABLE cells AS SELECT {chosen} FROM {self.relation}")

    def read(self, sql: str) -> None:
        """Run a statement that reads the whole file, and report its bytes."""
        self.rows(sql, *self.parameters)
        if self._progress is not None:
            self._progress(self._left)
            self._left = 0

    def lines(self, rows: list[int], ragged: int = 0) -> tuple[list[int], list[int]]:
        """The lines of these rows of `cells`, and of the first `ragged` rows that are not in it."""
        return [row + 1 for row in rows], []


class TextSource(Source):
    """A delimited text file, possibly compressed by gzip.

    DuckDB reads UTF-8 files. What it refuses is written again by Python's `csv` into the private folder: other
    encodings, several kinds of line ends, quotation marks within cells.
    """

    word = "line"

    def __init__(self, database: Any, path: Path, file: str, folder: Path, progress: Progress | None) -> None:
        self._path, self._folder = path, folder
        self._encoding, head = self._begin(path.name)
        said = EXCEL.match(head)
        above, head = (1, head[said.end() :]) if said else (0, head)
        self._separator = said[1] if said else _separator(head)
        reader, records, first = (
            csv.reader(io.StringIO(head, newline=""), delimiter=self._separator),
            0,
            list[str](),
        )
        with suppress(csv.Error):
            for records, first in enumerate(reader, 1):  # noqa: B007
                if any(cell.strip() for cell in first):
                    break
        self._above = above + reader.line_num
        """Lines down to the header, with it."""
        self._is_plain = (
            self._encoding == "utf-8" and self._above == above + records and not (said and '"' in said[0])
        )
        header = tidied(first) if any(cell.strip() for cell in first) else []
        cells = ", ".join(f"c{place}: 'VARCHAR'" for place in range(max(1, len(header))))
        self._options = (
            f"auto_detect=false, header=false, quote='\"', escape='\"', nullstr={list(MISSING)}, "
            f"columns={{{cells}}}, delim={literal(self._separator)}"
        )
        packed = "gzip" if path.suffix == ".gz" else "none"
        direct = f"{self._options}, skip={above + records}, compression='{packed}', store_rejects=true, rejects_limit=0"
        super().__init__(
            database,
            path.name,
            header,
            f"read_csv($1, {direct})",
            (file,),
            progress,
            path.stat().st_size,
        )
        self.decimal_comma = self._separator != ","

    @cached_property
    def types(self) -> list[str]:
        """All columns are text: types that were guessed from the first rows would not fit the later ones."""
        return ["VARCHAR"] * len(self.header)

    def load(self, columns: Mapping[str, str]) -> None:
        """Create `cells`; rows that do not have the columns of the header go to `ragged`."""
        if not (self._is_plain and self._is_loaded(columns)):
            self.rows("DROP TABLE IF EXISTS cells")
            self._rewrite()
            super().load(columns)
        self.notes = self._noted()

    def _is_loaded(self, columns: Mapping[str, str]) -> bool:
        """Whether DuckDB reads the file by itself."""
        try:
            super().load(columns)
        except InvalidInput:
            return False
        kinds = dict(
            self.rows(
                "SELECT error_type, count(DISTINCT line_byte_position) FROM reject_errors GROUP BY error_type"
            )
        )
        if "INVALID ENCODING" in kinds:
            self._encoding = WINDOWS
        self.ragged = sum(kinds.values())
        return kinds.keys() <= {"MISSING COLUMNS", "TOO MANY COLUMNS"}

    def _rewrite(self) -> None:
        """Write the rows of the file into the private folder, as UTF-8 with commas."""
        clean, self.ragged, readable = self._folder / "rows.csv", 0, True
        try:
            with clean.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=self._separator, lineterminator="\n")
                for _, cells in self._records():
                    if self._fits(cells):
                        writer.writerow(cells[: len(self.header)])
                    else:
                        self.ragged += 1
        except (csv.Error, OSError, EOFError, UnicodeError):
            readable = False
        if not readable:
            raise InvalidInput(f"{self.name} cannot be read as ratings: {self._unreadable()}.")
        self.relation, self.parameters = f"read_csv($1, {self._options})", (str(clean),)

    def _unreadable(self) -> str:
        if self._path.suffix == ".gz":
            try:
                with self._open() as file:
                    while file.read(LONGEST_HEAD):
                        pass
            except (OSError, EOFError):
                return "it cannot be unpacked"
        return f"expected rows with {len(self.header)} columns; perhaps a quotation mark is not closed"

    def lines(self, rows: list[int], ragged: int = 0) -> tuple[list[int], list[int]]:
        """The lines on which these rows begin, and those of the first `ragged` rows with other columns."""
        begin, others, number, last = dict[int, int](), list[int](), 0, max(rows, default=-1)
        wanted, ragged = set(rows), min(ragged, self.ragged)
        with suppress(csv.Error, OSError, EOFError):
            for line, cells in self._records():
                if not self._fits(cells):
                    others.append(line)
                else:
                    if number in wanted:
                        begin[number] = line
                    number += 1
                if number > last and len(others) >= ragged:
                    break
        return [begin.get(row, row + self._above + 1) for row in rows], others[:ragged]

    def _fits(self, cells: list[str]) -> bool:
        """Whether a record has the columns of the header; like DuckDB, without an empty cell at its end."""
        return len(cells) == len(self.header) or cells[len(self.header) :] == [""]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The records below the header: the line on which each begins, and its cells."""
        with (
            self._open() as raw,
            io.TextIOWrapper(raw, self._encoding, errors="replace", newline="") as text,
        ):
            for _ in range(self._above):
                text.readline()
            reader, line = csv.reader(text, delimiter=self._separator), self._above + 1
            for cells in reader:
                if cells or len(self.header) == 1:
                    yield line, cells or [""]
                line = self._above + reader.line_num + 1

    def _noted(self) -> tuple[str, ...]:
        between = SEPARATORS.get(self._separator, f"{self._separator!r}")
        notes = [f"There are {between} between its columns."] if between else []
        if self._encoding == WINDOWS:
            notes.append("It is not UTF-8; it was read as Windows text (cp1252).")
        if self._encoding == "utf-16":
            return (*notes, "It is UTF-16.")
        count, last = 0, b"\n"
        with self._open() as file:
            while piece := file.read(LONGEST_HEAD * 16):
                count, last = count + piece.count(b"\n"), piece
        ((rows,),) = self.rows("SELECT count(*) FROM cells")
        inside = count + (not last.endswith(b"\n")) - self._above - rows - self.ragged
        if inside > 0:
            notes.append(f"Of its lines {inside:,} are empty, or end within quotation marks.")
        return tuple(notes)

    def _begin(self, name: str) -> tuple[str, str]:
        """The encoding, as far as the beginning tells it, and the beginning."""
        head = None
        with suppress(OSError, EOFError), self._open() as file:
            head = file.read(LONGEST_HEAD)
        if head is None:
            raise InvalidInput(f"{name} cannot be unpacked.")
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", head.decode("utf-16", errors="ignore")
        whole = head[: head.rfind(b"\n") + 1] or head  # a letter may be cut at the end
        try:
            return "utf-8", whole.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "utf-8", whole.decode(WINDOWS, errors="replace")

    def _open(self) -> IO[bytes]:
        return gzip.open(self._path) if self._path.suffix == ".gz" else self._path.open("rb")  # type: ignore[return-value]


class JsonSource(Source):
    """A JSON array of objects, or one object a line."""

    def __init__(self, database: Any, path: Path, file: str, progress: Progress | None) -> None:
        relation = "read_json_objects($1, format='auto', ignore_errors=true)"
        super().__init__(database, path.name, [], relation, (file,), progress, path.stat().st_size)
        keys = self.rows(
            "SELECT key FROM (SELECT unnest(json_keys(json)) AS key, row_number() OVER () AS place FROM "
            f"{relation} WHERE json_type(json) = 'OBJECT') GROUP BY key ORDER BY min(place)",
            *self.parameters,
        )
        self._keys = [key for (key,) in keys]
        self.header = tidied(self._keys)
        self.ragged_as = "not a JSON object"

    @cached_property
    def types(self) -> list[str]:
        """All columns are text, but for those that hold arrays or objects."""
        kinds = [f"bool_or(json_type(json, {_pointer(key)}) IN ('ARRAY', 'OBJECT'))" for key in self._keys]
        if not kinds:
            return []
        ((*nested,),) = self.rows(f"SELECT {', '.join(kinds)} FROM {self.relation}", *self.parameters)
        return ["STRUCT()" if one else "VARCHAR" for one in nested]

    def load(self, columns: Mapping[str, str]) -> None:
        """Create `cells`; rows that are no JSON objects go to `ragged`."""
        texts = ", ".join(
            f"json_extract_string(json, {_pointer(key)}) AS c{place}" for place, key in enumerate(self._keys)
        )
        objects, self.relation = self.relation, f"(SELECT *, {texts} FROM {self.relation})"
        whole = "json_type(json) IS NOT DISTINCT FROM 'OBJECT'"
        super().load(dict(columns) | {"is_object": whole})
        self.relation = objects
        bad = self.rows("SELECT rowid + 1 FROM cells WHERE NOT is_object ORDER BY rowid")
        self._bad, self.ragged = [row for (row,) in bad], len(bad)
        if bad:
            self.rows("ALTER TABLE cells RENAME TO every_row")
            self.rows("CREATE TABLE cells AS SELECT * FROM every_row WHERE is_object ORDER BY rowid")

    def lines(self, rows: list[int], ragged: int = 0) -> tuple[list[int], list[int]]:
        """The numbers of these rows, and of the first `ragged` that are no objects, among all rows of the file."""
        good = np.setdiff1d(np.arange(1, max(rows, default=0) + len(self._bad) + 2), self._bad)
        return [int(good[row]) for row in rows], self._bad[:ragged]


@contextmanager
def open_file(path: Path, progress: Progress | None = None) -> Iterator[Source]:
    """The rows of a file, told apart by its name: Parquet, JSON, or else delimited text."""
    with private_database(path) as (database, file, folder):
        if path.name.endswith(".parquet"):
            yield _parquet(database, path, file, progress)
        elif path.name.removesuffix(".gz").endswith((".json", ".jsonl", ".ndjson")):
            yield JsonSource(database, path, file, progress)
        else:
            yield TextSource(database, path, file, folder, progress)


@contextmanager
def open_frame(frame: Any, name: str) -> Iterator[Source]:
    """The rows of a frame of pandas or polars, an Arrow table, a DuckDB relation, or a dictionary of columns."""
    with private_database() as (database, _, _):
        header: list[str] = []
        with suppress(InvalidInput, Exception):  # foreign code may raise anything, and quote cells
            header = _register(database, frame)
        if not header:
            raise InvalidInput(
                "Expected a table with columns by name: a frame of pandas or polars, an Arrow table, a DuckDB "
                f"relation, or a dictionary of columns; got {type(frame).__name__}."
            )
        yield Source(database, name, tidied(header), f"frame AS t({_numbered(header)})")


@contextmanager
def open_columns(columns: Mapping[str, Any], name: str) -> Iterator[Source]:
    """The rows of columns by name: arrays, lists, or columns of a frame."""
    with private_database() as (database, _, _):
        header, lengths = tidied(columns), list[int]()
        for place, (own, column) in enumerate(zip(header, columns.values(), strict=True)):
            length = None
            with suppress(Exception):  # foreign code may raise anything, and quote cells
                length = _register_column(database, f"f{place}", column)
            if length is None:
                raise InvalidInput(f"The {own}s are not a column of plain values, all of one kind.")
            lengths.append(length)
        if len(set(lengths)) > 1 or not header:
            counted = ", ".join(f"{length} in {own}" for own, length in zip(header, lengths, strict=True))
            raise InvalidInput(f"Columns must have one length; got {counted or 'none'}.")
        joined = " POSITIONAL JOIN ".join(f"f{place} AS t{place}(c{place})" for place in range(len(header)))
        yield Source(database, name, header, f"(SELECT * FROM {joined})")


class _Stream:
    """An Arrow stream without its class, for which DuckDB would ask pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def _register(database: Any, frame: Any) -> list[str]:
    """Register a frame as `frame`; the names of its columns."""
    if hasattr(frame, "iloc"):
        database.register("frame", frame)
        return [str(name) for name in frame.columns]
    for way in ("collect", "to_arrow", "to_arrow_table", "arrow"):
        if not hasattr(frame, "__arrow_c_stream__") and hasattr(frame, way):
            frame = getattr(frame, way)()
    if not hasattr(frame, "__arrow_c_stream__"):
        return []
    database.register("frame", _Stream(frame))
    return [row[0] for row in database.execute("DESCRIBE frame").fetchall()]


def _register_column(database: Any, name: str, column: Any) -> int | None:
    """Register one column, and return its length; None where it is no column."""
    if hasattr(column, "to_frame"):  # a series of pandas or polars
        frame = column.to_frame()
        database.register(name, frame if hasattr(frame, "iloc") else _Stream(frame))
        return len(column)
    array = np.asarray(column)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]")
    if array.ndim != 1 or array.dtype.kind not in "biufOUM":
        return None
    database.register(name, {"c": array.astype(object) if array.dtype.kind == "U" else array})
    return len(array)


def _parquet(database: Any, path: Path, file: str, progress: Progress | None) -> Source:
    relation = "read_parquet($1, binary_as_string=true, hive_partitioning=false)"
    parameters = (file,)
    source = Source(database, path.name, [], relation, parameters, progress, path.stat().st_size)
    names = [row[0] for row in source.rows(f"DESCRIBE SELECT * FROM {relation}", *parameters)]
    source.header, source.relation = tidied(names), f"{relation} AS t({_numbered(names)})"
    return source


def _pointer(key: str) -> str:
    """SQL of the JSON pointer to a member of an object."""
    return literal("/" + key.replace("~", "~0").replace("/", "~1"))


def _numbered(names: list[str]) -> str:
    return ", ".join(f"c{place}" for place in range(len(names)))


def _separator(head: str) -> str:
    """The delimiter between the names of columns."""
    first = next((line for line in re.sub(r'"[^"]*"', "", head).splitlines() if line.strip()), "")
    return max(SEPARATORS, key=first.count)
