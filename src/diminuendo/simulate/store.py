"""The store of a sweep's results on disk, from which it goes on where it stopped, however it was stopped.

    rows/KEY.json        one finished run; KEY names everything that decides its outcome
    hindsight/KEY.json   what hindsight and random slates reach
    results.parquet      all rows of this folder as one table, written when a sweep ends or is interrupted

Each file is written under another name and then renamed, so that it is whole or absent. One sweep at a time works in a
folder.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from diminuendo._database import write_parquet
from diminuendo.errors import InvalidInput
from diminuendo.simulate.benchmarks import Benchmarks
from diminuendo.simulate.result import Result, Shown
from diminuendo.simulate.task import Outcome, Run, Task, code_version

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

T = TypeVar("T")
_UNFINISHED = ".unfinished-"
"""The names of files that are being written begin with this."""


class ResultStore:
    """The outcomes of tasks: in memory, and in the folder `out` where there is one."""

    def __init__(self, out: Path | str | None) -> None:
        self._out = None if out is None else Path(out)
        self._lock = -1
        self._outcomes: dict[str, Outcome] = {}

    def __enter__(self) -> Self:
        if self._out is not None:
            folders = [self._out, self._out / "rows", self._out / "hindsight"]
            if (self._out / "results.parquet").exists() and not folders[1].exists():
                raise InvalidInput(
                    f"{self._out} has a results.parquet of something else; choose another folder."
                )
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self._out)
            for folder in folders:  # not in folders below these: other sweeps may be at work there
                for left in folder.glob(f"{_UNFINISHED}*"):
                    left.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._out is not None:
            try:
                self._write_table(self._out)
            finally:
                os.close(self._lock)

    def load(self, tasks: Iterable[Task]) -> None:
        """Read the outcomes of these tasks that are on disk."""
        for task in tasks:
            path = self._path(task)
            if path is not None and path.exists():
                convert: Any = _result_in if isinstance(task, Run) else Benchmarks.from_record
                if (outcome := _read(path, convert)) is not None:
                    self._outcomes[task.key] = outcome

    def __contains__(self, task: Task) -> bool:
        return task.key in self._outcomes

    def __getitem__(self, task: Task) -> Any:
        """The Result of a run, or the Benchmarks of a baseline."""
        return self._outcomes[task.key]

    def add(self, task: Task, outcome: Outcome) -> None:
        """Store an outcome; once this returns, it is on disk."""
        self._outcomes[task.key] = outcome
        path = self._path(task)
        if path is not None:
            key = {"key": task.key, "version": code_version()} if isinstance(outcome, Result) else {}
            text = json.dumps(key | asdict(outcome)) + "\n"
            _put(path, lambda file: file.write_text(text))

    def finalise(self, runs: Sequence[Run], results: Sequence[Result]) -> None:
        """Replace results by those with regrets."""
        for run, result in zip(runs, results, strict=True):
            if self._outcomes[run.key] != result:
                self.add(run, result)

    def _path(self, task: Task) -> Path | None:
        """The file of an outcome; None where outcomes are in memory alone, as for users who are Python functions."""
        if self._out is None or not task.stream_slice.fingerprint:
            return None
        return self._out / ("rows" if isinstance(task, Run) else "hindsight") / f"{task.key}.json"

    def _write_table(self, out: Path) -> None:
        read = (_read(path, _row_in) for path in sorted((out / "rows").glob("[!.]*")))
        if rows := [row for row in read if row is not None]:
            _put(out / "results.parquet", lambda file: write_parquet(file, SCHEMA, rows))


def finished_runs(out: Path) -> int:
    """How many finished runs a folder holds."""
    return len(list((out / "rows").glob("[!.]*.json")))


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


def _put(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file; it is whole and on disk when this returns."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_UNFINISHED, delete=False) as file:
        try:
            write(Path(file.name))
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _read(path: Path, convert: Callable[[dict[str, Any]], T]) -> T | None:
    """The content of a JSON file; None, and a warning, if the file is damaged or holds something else."""
    try:
        return convert(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        warnings.warn(f"{path} is damaged or not ours; it is passed over.", stacklevel=3)
        return None


def _result_in(row: dict[str, Any]) -> Result:
    """The result in a row, which has all fields of a Result and no others."""
    values = {name: value for name, value in row.items() if name not in ("key", "version")}
    return Result(**values | {"shown": Shown(**row["shown"])})


def _row_in(row: dict[str, Any]) -> dict[str, Any]:
    """The row as it is in the table."""
    _result_in(row)  # raises where something is missing
    return row | {name: json.dumps(row[name]) for name in _AS_JSON}
