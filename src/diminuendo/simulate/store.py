"""The store of a sweep's results on disk, from which it goes on where it stopped, however it was stopped.

    results.parquet      one row for each finished run, under its key; rows of all sweeps in this folder
    rows/KEY.parquet     a row that was just finished; moved into results.parquet when a sweep begins and ends
    hindsight/KEY.json   what hindsight and chance reach

A file appears whole or not at all: it is written under another name first, and then renamed. Rows that were moved are
removed only when they are safe in the table; stopped in between, they are there twice, and the key tells. One sweep at
a time works in a folder.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from diminuendo.errors import InvalidInput
from diminuendo.simulate.benchmarks import Benchmarks
from diminuendo.simulate.result import Result, Shown
from diminuendo.simulate.task import Baseline, Found, Run, Task, code_version

try:
    import fcntl
except ImportError:  # no file locks of this kind on the system: two sweeps in one folder are not noticed
    fcntl = None  # type: ignore[assignment]  # a module or nothing; checked before use

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_KINDS = {
    "str": _TEXT,
    "FeedbackKind": _TEXT,
    "State": _TEXT,
    "int": _WHOLE,
    "float": _REAL,
    "float | None": _REAL,
    "list[int]": pa.list_(_WHOLE),
    "list[float]": pa.list_(_REAL),
    "list[list[float]]": pa.list_(pa.list_(_REAL)),
    "dict[str, Any]": _TEXT,  # as JSON
    "list[dict[str, Any]]": _TEXT,  # as JSON
}
"""How what a Result declares is kept on disk."""
_KINDS["Shown"] = pa.struct({field.name: _KINDS[str(field.type)] for field in fields(Shown)})
_AS_JSON = [field.name for field in fields(Result) if "dict" in str(field.type)]

SCHEMA = pa.schema(
    {"key": _TEXT, "version": _TEXT} | {field.name: _KINDS[str(field.type)] for field in fields(Result)}
)
"""A row: the fields of a Result under its key, and the code that made it."""

_UNFINISHED = ".unfinished-"
"""The names of files that are being written begin with this."""


class ResultStore:
    """The outcomes of tasks: in memory, and in the folder `out` where there is one."""

    def __init__(self, out: Path | str | None) -> None:
        self._out = None if out is None else Path(out)
        self._lock = -1
        self._found: dict[str, Found] = {}

    def __enter__(self) -> Self:
        if self._out is not None:
            for folder in (self._out / "rows", self._out / "hindsight"):
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self._out)
            try:
                for folder in (self._out, self._out / "rows", self._out / "hindsight"):
                    # Folders below these are left alone: other sweeps may be at work there.
                    for left in folder.glob(f"{_UNFINISHED}*"):
                        left.unlink(missing_ok=True)
                self._compact()
            except BaseException:
                os.close(self._lock)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock >= 0:
            try:
                self._compact()
            finally:
                os.close(self._lock)

    def load(self, tasks: Iterable[Task]) -> None:
        """Read from disk what is there of the outcomes of these tasks."""
        tasks = [task for task in tasks if task.stream_slice.fingerprint]
        if self._out is None:
            return
        wanted = {task.key for task in tasks if isinstance(task, Run)}
        self._found |= results_in(_table(self._out / "results.parquet"), wanted)
        for task in tasks:
            path = self._out / "hindsight" / f"{task.key}.json"
            if isinstance(task, Baseline) and path.exists():
                try:
                    self._found[task.key] = Benchmarks.from_record(json.loads(path.read_text()))
                except (ValueError, KeyError, TypeError, AttributeError):
                    _passed_over(path)

    def __contains__(self, task: Task) -> bool:
        return task.key in self._found

    def __getitem__(self, task: Task) -> Any:
        """What came of a run, or what hindsight and chance reach."""
        return self._found[task.key]

    def add(self, task: Task, found: Found) -> None:
        """Keep an outcome; once this returns, it is not lost."""
        self._found[task.key] = found
        if self._out is None or not task.stream_slice.fingerprint:
            return
        if isinstance(found, Result):
            _put(self._out / "rows" / f"{task.key}.parquet", as_rows({task.key: found}))
        else:
            _put(self._out / "hindsight" / f"{task.key}.json", json.dumps(asdict(found)) + "\n")

    def finalise(self, runs: Sequence[Run], results: Sequence[Result]) -> None:
        """Put results with their regrets in place of those without."""
        pairs = list(zip(runs, results, strict=True))
        self._found |= {run.key: result for run, result in pairs}
        lasting = {run.key: result for run, result in pairs if run.stream_slice.fingerprint}
        if self._out is not None and lasting:
            self._compact(as_rows(lasting))

    def _compact(self, newest: Any = None) -> None:
        """Move all rows into one table, each once."""
        assert self._out is not None
        ours, tables = [], [] if newest is None else [newest]
        for part in sorted((self._out / "rows").glob("*.parquet")):
            found = read_rows(part)
            if found is None:
                _passed_over(part)
                continue
            ours.append(part)
            tables.append(found)
        if tables:
            path = self._out / "results.parquet"
            _put(path, each_once([*tables, _table(path)]))
        for part in ours:
            part.unlink(missing_ok=True)


def finished_runs(out: Path) -> int:
    """How many finished runs a folder holds."""
    keys = set(keys_of(_table(out / "results.parquet")))
    return len(keys | {path.stem for path in (out / "rows").glob("*.parquet")})


def _locked(out: Path) -> int:
    """Lock the folder until the process ends or closes the lock, which is returned."""
    held = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise InvalidInput(
                f"Another simulation is at work in {out}; wait for it to end, or choose another folder."
            ) from error
    return held


def _put(path: Path, content: Any) -> None:
    """Write a file with this table or text; it is whole and on disk when this returns."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_UNFINISHED, delete=False) as file:
        try:
            if isinstance(content, str):
                file.write(content.encode())
            else:
                pq.write_table(content, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _table(path: Path) -> Any:
    """The rows in results.parquet so far. A file of somebody else is refused, not overwritten."""
    if not path.exists():
        return SCHEMA.empty_table()
    found = read_rows(path)
    if found is None:
        raise InvalidInput(
            f"{path} does not hold rows of simulations as this version writes them; move it away, or choose another "
            "folder."
        )
    return found


def _passed_over(path: Path) -> None:
    warnings.warn(f"{path} is damaged or not ours; it is passed over.", stacklevel=3)


def as_rows(results: dict[str, Result]) -> Any:
    """A table of results under their keys."""
    rows = [
        vars(result)
        | {"key": key, "version": code_version(), "shown": vars(result.shown)}
        | {name: json.dumps(getattr(result, name)) for name in _AS_JSON}
        for key, result in results.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def results_in(table: Any, keys: set[str]) -> dict[str, Result]:
    """The results in the table that have one of these keys."""
    numbers = [number for number, key in enumerate(keys_of(table)) if key in keys]
    found = {}
    for row in table.take(numbers).to_pylist() if numbers else []:
        key, _ = row.pop("key"), row.pop("version")
        read = {name: json.loads(row[name]) for name in _AS_JSON}
        found[key] = Result(**row | read | {"shown": Shown(**row["shown"])})
    return found


def keys_of(table: Any) -> list[str]:
    """The key of each row."""
    keys: list[str] = table.column("key").to_pylist()
    return keys


def read_rows(path: Path) -> Any:
    """The table in a file; None where the file is damaged or holds something else."""
    try:
        found = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return None
    return found if found.schema.equals(SCHEMA) else None


def each_once(tables: Sequence[Any]) -> Any:
    """Rows of all tables; of those with the same key the first."""
    every = pa.concat_tables(tables)
    first: dict[str, int] = {}
    for number, key in enumerate(keys_of(every)):
        first.setdefault(key, number)
    return every.take(list(first.values()))
