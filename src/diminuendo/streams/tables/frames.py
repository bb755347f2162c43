"""Tables in memory, and Parquet: frames of pandas and polars, Arrow tables, DuckDB relations, columns by name.

Nothing of these is imported but pyarrow: whatever speaks Arrow (`__arrow_c_stream__`) is a table, and what can be
turned into something that does (`collect`, `to_arrow`, `__dataframe__`) is one, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput
from diminuendo.streams.column_names import tidied
from diminuendo.types import Ints, Progress

with extra("simulate"):
    import pyarrow as pa
    import pyarrow.interchange
    import pyarrow.parquet

WAYS = ("collect", "to_arrow", "to_arrow_table", "fetch_arrow_table", "arrow")
"""What frames may offer that do not speak Arrow themselves."""


class FrameTable:
    """A table in memory."""

    word = "data row"
    ragged = 0
    notes: tuple[str, ...] = ()
    decimal_comma = False

    def __init__(self, columns: Mapping[str, Any], name: str) -> None:
        self.name, self._columns = name, columns
        self.header = list(columns)

    def columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Those columns."""
        return {name: self._columns[name] for name in names}

    def places(self, rows: Ints) -> list[int]:
        """The numbers of those rows, from 1."""
        return [int(row) + 1 for row in rows.tolist()]


class ParquetTable(FrameTable):
    """A table in a Parquet file, of which only the columns that are asked for are read."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self._path, self._progress = path, progress
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (pa.ArrowInvalid, OSError):
            raise InvalidInput(f"{path.name} cannot be read as ratings: it is no Parquet file.") from None
        self._given = self._file.schema_arrow.names
        super().__init__(dict.fromkeys(tidied(self._given)), path.name)

    def given(self, name: str) -> str:
        """What this column is called in the file."""
        found: str = self._given[self.header.index(name)]
        return found

    def columns(self, names: Sequence[str]) -> dict[str, Any]:
        """Those columns."""
        given = [self.given(name) for name in names]
        batches = []
        try:
            for batch in self._file.iter_batches(columns=given):
                if self._progress:
                    self._progress(
                        self._path.stat().st_size * batch.num_rows // max(1, self._file.metadata.num_rows)
                    )
                batches.append(batch)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError):
            raise InvalidInput(f"{self.name} cannot be read as ratings: it is damaged.") from None
        table = pa.Table.from_batches(batches, self._file.schema_arrow.empty_table().select(given).schema)
        return {name: table.column(own) for name, own in zip(names, given, strict=True)}


def frame_table(frame: Any, name: str) -> FrameTable:
    """A table of whatever holds columns by name."""
    columns: Mapping[str, Any] | None = None
    with suppress(Exception):  # foreign code may raise whatever it likes, and repeat what is there
        columns = _columns(frame)
    if columns is None or not columns:
        raise InvalidInput(
            "Expected a table with columns by name: a frame of pandas or polars, an Arrow table, a DuckDB relation, or "
            f"a dictionary of columns; got {type(frame).__name__}."
        )
    tidy = tidied(columns)
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        counted = ", ".join(
            f"{len(column)} in {own}" for own, column in zip(tidy, columns.values(), strict=True)
        )
        raise InvalidInput(f"Columns must have one length; got {counted}.")
    return FrameTable(dict(zip(tidy, columns.values(), strict=True)), name)


def _columns(frame: Any) -> dict[str, Any] | None:
    """The columns of a frame, as Arrow."""
    if isinstance(frame, Mapping):
        return {str(name): column_of(given, str(name)) for name, given in frame.items()}
    if hasattr(frame, "iloc"):  # pandas, where a column may hold several kinds of things, which Arrow refuses
        return {
            str(own): column_of(frame.iloc[:, place], str(own)) for place, own in enumerate(frame.columns)
        }
    for way in WAYS:
        if hasattr(frame, "__arrow_c_stream__"):
            break
        if hasattr(frame, way):
            frame = getattr(frame, way)()
    if hasattr(frame, "__arrow_c_stream__"):
        table = pa.table(frame)
    elif hasattr(frame, "__dataframe__"):
        table = pyarrow.interchange.from_dataframe(frame)
    else:
        return None
    return {own: table.column(place) for place, own in enumerate(table.column_names)}


def column_of(given: Any, name: str) -> Any:
    """One column, as Arrow; NaN is empty, and where it holds several kinds of things all become text."""
    with suppress(Exception):  # which may repeat what is there
        if isinstance(given, (pa.Array, pa.ChunkedArray)):
            return given if isinstance(given, pa.ChunkedArray) else pa.chunked_array([given])
    with suppress(Exception):
        array = np.asarray(given)
        if array.ndim == 1:
            return pa.chunked_array([pa.array(array, from_pandas=True)])
    with suppress(Exception):
        array = np.asarray(given)
        if array.ndim == 1 and all(
            isinstance(cell, (str, int, float, type(None))) for cell in array.tolist()
        ):
            words = [None if cell is None or cell != cell else str(cell) for cell in array.tolist()]
            return pa.chunked_array([pa.array(words, pa.string())])
    raise InvalidInput(f"The {name}s are not a column of plain values, all of one kind.")
