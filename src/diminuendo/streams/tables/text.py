"""Tables in text: commas, semicolons, tabs or bars between columns, as programs export them.

What stands between columns is told by the first line. Cells may be quoted, with line ends in them. Text is UTF-8, with
or without a mark, UTF-16 with one, or else what Windows writes in the West. Only the columns that are asked for are
read, all as text: types that are guessed from the first rows would not fit the later ones. Rows with too few or too
many cells are passed over and counted; which lines they are is found out only if somebody asks.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.streams.column_names import tidied
from diminuendo.types import Ints, Progress

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.csv

SEPARATORS = {",": "", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What stands between columns, the likeliest first, and what it is called."""
EXCEL = re.compile(r'^\ufeff?"?sep=(.)"?\r?\n', re.IGNORECASE)
"""How some programs say in a line of its own what stands between columns."""
LONGEST_HEAD = 2**16
"""Bytes of a file that are looked at before it is read."""
WINDOWS = "cp1252"


class TextTable:
    """A table in a file of text."""

    word = "line"

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.name, self._path, self._progress = path.name, path, progress
        self._encoding, head = self._begin()
        said = EXCEL.match(head)
        before, head = (1, head[said.end() :]) if said else (0, head)
        self.separator = said[1] if said else _separator(head)
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=self.separator)
        first: list[str] = []
        with suppress(csv.Error):
            first = next((row for row in reader if any(cell.strip() for cell in row)), [])
        self.header = tidied(first)
        self._above = before + reader.line_num
        """Lines down to the names of columns, with them."""
        self.ragged = 0
        """Rows with too few or too many cells, which were passed over."""
        self._rows = self._end = 0
        """Rows that were read, and lines of the file."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not as usual."""
        between = SEPARATORS.get(self.separator, f"{self.separator!r}")
        apart = [f"There are {between} between its columns."] if between else []
        encoded = {
            WINDOWS: "It is not UTF-8; it was read as Windows text (cp1252).",
            "utf-16": "It is UTF-16.",
        }
        inside = 0 if self._encoding == "utf-16" else self._end - self._above - self._rows - self.ragged
        within = [f"Of its lines {inside:,} are empty, or end within quotation marks."] if inside > 0 else []
        return (*apart, *([encoded[self._encoding]] if self._encoding in encoded else []), *within)

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma in a number may stand for the point: where none stands between columns."""
        return self.separator != ","

    def columns(self, names: Sequence[str], words: bool = True) -> dict[str, Any]:
        """Those columns, as text."""
        for encoding in dict.fromkeys((self._encoding, WINDOWS)):
            self._encoding, self.ragged, self._rows = encoding, 0, 0
            said = ""
            try:
                batches = list(self._batches(names))
                table = pa.Table.from_batches(batches) if batches else None
                return {} if table is None else {name: table.column(name) for name in names}
            except (
                pa.ArrowInvalid,
                pa.ArrowTypeError,
                UnicodeError,
                OSError,
            ) as error:  # which repeats what is there
                said = str(error)
            if "UTF8" not in said:
                break
        damaged = (self._path.suffix == ".gz" and "zlib" in said) or "gzip" in said.lower()
        why = "it cannot be unpacked" if damaged else "perhaps a quotation mark is not closed"
        raise InvalidInput(
            f"{self.name} cannot be read as ratings, rows with {len(self.header)} columns: {why}."
        )

    def places(self, rows: Ints) -> list[int]:
        """The lines of those rows, and of those that were passed over (numbered from the number of rows on)."""
        good, passed = self._lines()
        lines = np.array([*good, *passed], dtype=np.int64)
        return [int(lines[row]) if row < len(lines) else int(row) + self._above + 1 for row in rows.tolist()]

    def _batches(self, names: Sequence[str]) -> Iterator[Any]:
        numbers = [str(self.header.index(name)) for name in names]

        def passed_over(row: Any) -> str:
            self.ragged += 1
            return "skip"

        options = {
            "read_options": pyarrow.csv.ReadOptions(
                column_names=[str(number) for number in range(len(self.header))],
                skip_rows=self._above,
                encoding=self._encoding,
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, invalid_row_handler=passed_over
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                include_columns=numbers,
                column_types=dict.fromkeys(numbers, pa.string()),
                strings_can_be_null=True,
            ),
        }
        with self._path.open("rb") as raw:
            unpacked = pa.CompressedInputStream(raw, "gzip") if self._path.suffix == ".gz" else raw
            counted, seen = _CountedLines(unpacked), 0
            try:
                reader = pyarrow.csv.open_csv(counted, **options)
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):
                    return
                raise
            for batch in reader:
                if self._progress:
                    self._progress(raw.tell() - seen)
                    seen = raw.tell()
                self._rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(batch.columns, names=list(names))
            self._end = counted.lines

    def _begin(self) -> tuple[str, str]:
        """The encoding, as far as the beginning tells it, and the beginning."""
        try:
            with self._open() as file:
                head = file.read(LONGEST_HEAD)
        except (OSError, EOFError):
            raise InvalidInput(f"{self.name} cannot be unpacked.") from None
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", head.decode("utf-16", errors="ignore")
        whole = head[: head.rfind(b"\n") + 1] or head  # what is cut within a letter is no letter
        try:
            return "utf8", whole.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "utf8", whole.decode(WINDOWS, errors="replace")

    def _open(self) -> IO[bytes]:
        return gzip.open(self._path) if self._path.suffix == ".gz" else self._path.open("rb")  # type: ignore[return-value]

    def _lines(self) -> tuple[list[int], list[int]]:
        """The lines of rows with the right number of cells, and of the others."""
        good, passed = list[int](), list[int]()
        python = {"utf8": "utf-8-sig"}.get(self._encoding, self._encoding)
        with self._open() as raw, io.TextIOWrapper(raw, python, newline="") as text, suppress(csv.Error):
            for _ in range(self._above):
                text.readline()
            reader = csv.reader(text, delimiter=self.separator)
            line = self._above + 1
            for row in reader:
                if row:
                    (good if len(row) == len(self.header) else passed).append(line)
                line = self._above + reader.line_num + 1
        return good, passed


class _CountedLines:
    """A file that counts its lines while it is read."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file, self.lines, self._last = file, 0, b"\n"

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found: bytes = self._file.read(size)
        begun = self._last != b"\n"
        self._last = found[-1:] or self._last
        # A line that is begun counts; it is counted again when its end comes.
        self.lines += found.count(b"\n") + (self._last != b"\n") - begun
        return found


def _separator(head: str) -> str:
    """What stands between the names of columns."""
    first = next((line for line in re.sub(r'"[^"]*"', "", head).splitlines() if line.strip()), "")
    return max(SEPARATORS, key=first.count)
