"""Streams from files, told apart by their names."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy

from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.objectives.rows import Matrix
from diminuendo.streams.baskets import ENTRY, read_baskets
from diminuendo.streams.read_as import ReadAs
from diminuendo.streams.users import Users
from diminuendo.types import Progress

JSON = (".json", ".jsonl", ".ndjson")
RATINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", *JSON, *(f"{end}.gz" for end in JSON))
SUFFIXES = (".npz", *RATINGS, ".txt", ".txt.gz")


def read(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Users:
    """Read a stream from a file; the name says which kind.

    Parameters
    ----------
    path : str or Path
        Rows `.parquet`, `.csv`, `.tsv` or `.json`, baskets `.txt`, or a scipy matrix `.npz`. Text may be gzipped.
    family : Family, optional
        Form of the objectives. By default NoisyOr, or what the file suggests.
    n_items : int, optional
        Number of items; by default as many as occur.
    progress : callable, optional
        Called with numbers of bytes or rows just read.
    **how
        How rows are read, by name: `columns`, `scale`, `time`, `round`, `keep_last`, `skip_bad`, `ignore_case`,
        `users_without` (see `ReadAs`). Columns that are not named are guessed by their headers. `context` names
        what was known of users when they arrived, as "country,device" or ["country", "time:hour"]: columns of rows;
        `entry`, the first item of a line, of baskets; and, for baskets and `.npz`, columns of the table
        NAME.contexts.csv beside the file. `private_context` makes them private.

    Returns
    -------
    Users
        `was_read` says what was found in rows.

    Raises
    ------
    InvalidInput
        If there is no such file, or it cannot be read so. Messages name lines and columns, never a value of a user.

    Notes
    -----
    Categories of contexts are listed from the file, which is for simulations. A deployment lists them beforehand.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from diminuendo import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "baskets.txt"
    ...     _ = path.write_text("0 1 2" + chr(10) + "1 3" + chr(10))
    ...     read(path).values((1,)).tolist()
    [1.0, 1.0]
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput(
            f"There is no file {path}. A stream is a built-in name or a file; see `diminuendo streams`."
        )
    read_as = ReadAs(**how)
    names, private = read_as.contexts, read_as.private_context
    try:
        if path.name.endswith(RATINGS):
            from diminuendo.streams.rows import read_ratings  # here: duckdb takes its time to load

            return read_ratings(path, family, n_items=n_items, progress=progress, **how)
        if path.name.endswith((".txt", ".txt.gz")):
            read_as.only_contexts("baskets")
            entry = ENTRY in names
            users = read_baskets(
                path, family, n_items=n_items, entry=entry, private_context=private, progress=progress
            )
            return _with_contexts(path, users, names, private)
        if path.name.endswith(".npz"):
            read_as.only_contexts("a matrix")
            users = Users(family or NoisyOr(), _matrix(path), n_items, name=path.stem)
            if progress:
                progress(path.stat().st_size)
            return _with_contexts(path, users, names, private)
        raise InvalidInput(f"{path.name}: expected a file that ends in {', '.join(SUFFIXES)}.")
    except InvalidInput as error:
        raise InvalidInput(str(error) if path.name in str(error) else f"{path.name}: {error}") from error


def _with_contexts(path: Path, users: Users, names: Sequence[str], private: bool) -> Users:
    """These users, and what the table beside their file says of them."""
    there = () if users.contexts is None else [column.name for column in users.contexts.columns]
    if further := [name for name in names if name not in there]:
        from diminuendo.streams.rows import with_table_beside  # here: duckdb takes its time to load

        users = with_table_beside(path, users, further, private=private)
    return users.with_columns(names, private=private)


def _matrix(path: Path) -> Matrix:
    try:
        with path.open("rb") as file:
            matrix = scipy.sparse.load_npz(file)
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"{path.name} is not a scipy sparse matrix; write one with scipy.sparse.save_npz(path, matrix)."
        ) from error
    if len(matrix.shape) != 2:
        raise InvalidInput(f"{path.name}: expected a matrix with a row per user; got shape {matrix.shape}.")
    return matrix
