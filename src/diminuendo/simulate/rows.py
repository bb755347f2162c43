"""Rows: results of runs as a Parquet table, one row for each run, under its key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import diminuendo
from diminuendo.simulate.result import Result, Shown

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()

SCHEMA = pa.schema(
    {
        "key": _TEXT,
        "version": _TEXT,
        "learner": _TEXT,
        "played_by": _TEXT,
        "stream": _TEXT,
        "objective": _TEXT,
        "items": _WHOLE,
        "slots": _WHOLE,
        "rounds": _WHOLE,
        "feedback": _TEXT,
        "clicks": _TEXT,
        "visits": _WHOLE,
        "seed": _WHOLE,
        "asked_epsilon": _REAL,
        "asked_delta": _REAL,
        "epsilon": _REAL,
        "delta": _REAL,
        "mean_payoff": _REAL,
        "regret": _REAL,
        "regret_to_optimum": _REAL,
        "expert_regrets": pa.list_(_REAL),
        "seconds": _REAL,
        "guarantee": _TEXT,
        "curve": pa.list_(_REAL),
        "shown": pa.struct(
            {"items": pa.list_(_WHOLE), "ends": pa.list_(_WHOLE), "shares": pa.list_(pa.list_(_REAL))}
        ),
        "spending": _TEXT,
    }
)
"""A row: the fields of a Result under its key. `guarantee` and `spending` are JSON."""

_AS_JSON = ("guarantee", "spending")


def as_rows(results: dict[str, Result]) -> Any:
    """A table of results under their keys."""
    return pa.Table.from_pylist([_row(key, result) for key, result in results.items()], SCHEMA)


def results_in(table: Any, keys: set[str]) -> dict[str, Result]:
    """The results in the table that have one of these keys."""
    numbers = [number for number, key in enumerate(keys_of(table)) if key in keys]
    found = table.take(numbers).to_pylist() if numbers else []
    return {row["key"]: _result(row) for row in found}


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


def _row(key: str, result: Result) -> dict[str, Any]:
    written = {name: json.dumps(getattr(result, name)) for name in _AS_JSON}
    parts = _fields(result) | {"shown": _fields(result.shown)} | written
    return {"key": key, "version": diminuendo.__version__} | parts


def _fields(record: Result | Shown) -> dict[str, Any]:
    """What `asdict` makes of it, without copying number by number."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _result(row: dict[str, Any]) -> Result:
    found = {name: value for name, value in row.items() if name not in ("key", "version")}
    read = {name: json.loads(found[name]) for name in _AS_JSON}
    return Result(**found | read | {"shown": Shown(**found["shown"])})
