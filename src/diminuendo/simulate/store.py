"""The store of a sweep's results on disk, from which it goes on where it stopped, however it was stopped.

    results.parquet      one row for each finished run, under its key; rows of all sweeps in this folder
    rows/KEY.json        a row that was just finished; moved into results.parquet when a sweep begins and ends
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
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from diminuendo._database import read_parquet, write_parquet
from diminuendo.errors import InvalidInput
from diminuendo.simulate.benchmarks import Benchmarks
from diminuendo.simulate.result import Result, Shown
from diminuendo.simulate.task import Baseline, Found, Run, Task, code_version

try:
    import fcntl
except ImportError:  # no file locks of this kind on the system: two sweeps in one folder are not noticed
    fcntl = None  # type: ignore[assignment]  # a module or nothing; checked before use

_KINDS = {
    "str": "VARCHAR",
    "FeedbackKind": "VARCHAR",
    "State": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "float | None": "DOUBLE",
    "list[int]": "BIGINT[]",
    "list[float]": "DOUBLE[]",
    "list[list[float]]": "DOUBLE[][]",
    "dict[str, Any]": "VARCHAR",  # as JSON
    "list[dict[str, Any]]": "VARCHAR",  # as JSON
}
"""The DuckDB types of what a Result declares."""
_KINDS["Shown"] = f"STRUCT({', '.join(f'{field.name} {_KINDS[str(field.type)]}' for field in fields(Shown))})"
_AS_JSON = [field.name for field in fields(Result) if "dict" in str(field.type)]

SCHEMA = {"key": "VARCHAR", "version": "VARCHAR"} | {
    field.name: _KINDS[str(field.type)] for field in fields(Result)
}
"""A row: the fields of a Result under its key, and the code that made it."""

Row: TypeAlias = dict[str, Any]

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
            _put(self._out / "rows" / f"{task.key}.json", json.dumps(as_rows({task.key: found})[0]) + "\n")
        else:
            _put(self._out / "hindsight" / f"{task.key}.json", json.dumps(asdict(found)) + "\n")

    def finalise(self, runs: Sequence[Run], results: Sequence[Result]) -> None:
        """Put results with their regrets in place of those without."""
        pairs = list(zip(runs, results, strict=True))
        self._found |= {run.key: result for run, result in pairs}
        lasting = {run.key: result for run, result in pairs if run.stream_slice.fingerprint}
        if self._out is not None and lasting:
            self._compact(as_rows(lasting))

    def _compact(self, newest: Sequence[Row] = ()) -> None:
        """Move all rows into one table, each once."""
        assert self._out is not None
        ours, rows = list[Path](), list(newest)
        for part in sorted((self._out / "rows").glob("*")):
            row = _read_row(part)
            if row is None:
                _passed_over(part)
                continue
            ours.append(part)
            rows.append(row)
        path = self._out / "results.parquet"
        old = _table(path)
        if rows:
            _put(path, list({row["key"]: row for row in reversed([*rows, *old])}.values()))
        for part in ours:
            part.unlink(missing_ok=True)


def finished_runs(out: Path) -> int:
    """How many finished runs a folder holds."""
    keys = {row["key"] for row in _table(out / "results.parquet")}
    return len(keys | {path.stem for path in (out / "rows").glob("*.json")})


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
    """Write a file with this text, or these rows; it is whole and on disk when this returns."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_UNFINISHED, delete=False) as file:
        try:
            if isinstance(content, str):
                file.write(content.encode())
            else:
                write_parquet(Path(file.name), SCHEMA, content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _table(path: Path) -> list[Row]:
    """The rows in results.parquet so far. A file of somebody else is refused, not overwritten."""
    if not path.exists():
        return []
    rows = None
    with suppress(InvalidInput):
        kinds, rows = read_parquet(path)
    if rows is None or kinds != SCHEMA:
        raise InvalidInput(
            f"{path} does not hold rows of simulations as this version writes them; move it away, or choose another "
            "folder."
        )
    return rows


def _read_row(path: Path) -> Row | None:
    """The row in a file; None where the file is damaged or holds something else."""
    with suppress(OSError, ValueError):
        row = json.loads(path.read_text())
        if isinstance(row, dict) and row.keys() == SCHEMA.keys():
            return row
    return None


def _passed_over(path: Path) -> None:
    warnings.warn(f"{path} is damaged or not ours; it is passed over.", stacklevel=3)


def as_rows(results: dict[str, Result]) -> list[Row]:
    """Results under their keys, as rows of the table."""
    return [
        {"key": key, "version": code_version()}
        | vars(result)
        | {"shown": vars(result.shown)}
        | {name: json.dumps(getattr(result, name)) for name in _AS_JSON}
        for key, result in results.items()
    ]


def results_in(rows: Iterable[Row], keys: set[str]) -> dict[str, Result]:
    """The results in these rows that have one of these keys."""
    results = {}
    for row in rows:
        if row["key"] in keys:
            values = {name: row[name] for name in SCHEMA if name not in ("key", "version")}
            values |= {name: json.loads(row[name]) for name in _AS_JSON} | {"shown": Shown(**row["shown"])}
            results[row["key"]] = Result(**values)
    return results
