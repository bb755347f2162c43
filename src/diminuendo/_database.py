"""Private DuckDB databases: one for each file or frame that is read or written.

A database may open the files that it is given and its own temporary folder (mode 0700), where DuckDB spills rows that
do not fit into memory; the folder is removed afterwards. No extension is installed or loaded. DuckDB's messages quote
cells, so callers must not let them out, not even as the context of another exception: see `attempt`.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from diminuendo._extras import extra
from diminuendo.errors import InvalidInput

with extra("simulate"):
    import duckdb

T = TypeVar("T")
FilePath: TypeAlias = str | Path


@contextmanager
def private_database(path: Path | None = None) -> Iterator[tuple[Any, str, Path]]:
    """A database, the path under which it finds the file `path` and nothing else, and its temporary folder."""
    with tempfile.TemporaryDirectory(prefix="diminuendo-") as folder:  # mode 0700
        database = duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
                "temp_directory": f"{folder}/spilled",
            }
        )
        try:
            file = "" if path is None else _readable(path.resolve(), Path(folder))
            for setting in (
                "TimeZone = 'UTC'",
                "enable_progress_bar = false",
                f"allowed_directories = [{literal(folder)}]",
                f"allowed_paths = [{literal(file)}, {literal('' if path is None else str(path.resolve()))}]",
                "enable_external_access = false",
                "lock_configuration = true",
            ):
                database.execute(f"SET {setting}")
            yield database, file, Path(folder)
        finally:
            database.close()


def attempt(work: Callable[[], T], refusal: Callable[[], str]) -> T:
    """The result of this work; if DuckDB or foreign code in it fails, InvalidInput with `refusal` and no context."""
    why = ""
    try:
        return work()
    except (MemoryError, duckdb.OutOfMemoryException):
        why = " It needs more memory, or more space in the folder for temporary files (TMPDIR)."
    except Exception:  # frames may raise anything while DuckDB reads them
        pass
    raise InvalidInput(refusal() + why)  # outside of the handlers: without context


def literal(text: str) -> str:
    """Text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def copy_parquet(path: FilePath, query: str, columns: Mapping[str, Any]) -> None:
    """Write what this query says of the arrays `columns`, which are the table `given`."""
    path = Path(path).resolve()
    with private_database(path) as (database, _, _):
        database.register("given", dict(columns))
        database.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")


def write_parquet(path: Path, kinds: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with columns of these DuckDB types; names of columns are ours."""
    with private_database(path) as (database, _, _):
        database.execute(f"CREATE TABLE rows ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
        if rows:
            holders = ", ".join("?" for _ in kinds)
            database.executemany(
                f"INSERT INTO rows VALUES ({holders})", [[row[name] for name in kinds] for row in rows]
            )
        database.execute(
            f"COPY rows TO {literal(str(path.resolve()))} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
        )


def read_parquet(path: FilePath) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The DuckDB types of the columns of a file, and its rows."""
    path = Path(path)

    def work() -> tuple[dict[str, str], list[dict[str, Any]]]:
        with private_database(path) as (database, file, _):
            source = "read_parquet($1, hive_partitioning=false)"
            described = database.execute(f"DESCRIBE SELECT * FROM {source}", [file]).fetchall()
            kinds = {name: kind for name, kind, *_ in described}
            rows = database.execute(f"SELECT * FROM {source}", [file]).fetchall()
        return kinds, [dict(zip(kinds, row, strict=True)) for row in rows]

    return attempt(work, lambda: f"{path.name} cannot be read: it is no Parquet file, or it is damaged.")


def _readable(path: Path, folder: Path) -> str:
    """The path under which DuckDB finds this file alone: a link, where it would take the name for a pattern."""
    if not re.search(r"[*?\[]", str(path)):
        return str(path)
    (folder / "file").symlink_to(path)
    return str(folder / "file")
