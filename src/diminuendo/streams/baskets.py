"""Baskets: text with one line per user, the items they took, as whole numbers.

    0 1 2
    1 3

An empty line is a user who took nothing. The first item of a line may be the context of the user, and only the others
what they want. Files may be gzipped. They are read in pieces and parsed
without a Python loop over lines, so that millions of baskets are a matter of seconds.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from diminuendo._sparse import SparseRows
from diminuendo.errors import InvalidInput
from diminuendo.objectives import NoisyOr
from diminuendo.objectives.family import Family
from diminuendo.streams.contexts import UNKNOWN, Contexts, listed
from diminuendo.streams.users import Users
from diminuendo.types import Ints, Progress

ENTRY = "entry"
"""The context that is the first item of a line."""
PIECE = 1 << 24
MOST_ITEMS = 1 << 31
"""Items are 32-bit numbers in compiled code."""
NEWLINE, RETURN = ord("\n"), ord("\r")
_IS_GAP = np.zeros(256, dtype=bool)
_IS_GAP[[ord(" "), ord("\t"), ord(","), ord(";"), NEWLINE, RETURN]] = True
_IS_DIGIT = np.zeros(256, dtype=bool)
_IS_DIGIT[ord("0") : ord("9") + 1] = True


def read_baskets(
    path: str | Path,
    family: Family | None = None,
    *,
    n_items: int | None = None,
    value: float = 1.0,
    name: str | None = None,
    entry: bool = False,
    private_context: bool = False,
    progress: Progress | None = None,
) -> Users:
    """Read users from text with one line per user: the items they took, as integers.

    Parameters
    ----------
    path : str or Path
        The file; `.gz` is unpacked. An empty line is a user who took nothing.
    family : Family, optional
        Form of the objectives. By default NoisyOr.
    n_items : int, optional
        Number of items. By default the largest item plus one.
    value : float, default 1.0
        What an item in the basket is worth to its user.
    name : str, optional
        Shown in reports. By default the name of the file.
    entry : bool, default False
        Whether the first item of a line is the context `entry`, and only the rest is wanted.
    private_context : bool, default False
        Whether that context is private.
    progress : callable, optional
        Called with numbers of bytes just read.

    Returns
    -------
    Users

    Raises
    ------
    InvalidInput
        If the file is empty or no basket text. Messages name the line, never an item of a user.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from diminuendo.streams import read_baskets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "baskets.txt"
    ...     _ = path.write_text("0 1 2" + chr(10) * 2 + "1 3" + chr(10))
    ...     read_baskets(path, n_items=5)
    <Users: baskets, 3 users, 5 items, noisy-or>
    """
    path = Path(path)
    lines: list[NDArray[np.int64]] = []
    items: list[NDArray[np.int64]] = []
    n_users = 0
    for piece in _pieces(path, progress):
        line, item = _parse(piece, n_users)
        lines.append(line)
        items.append(item)
        n_users += int(np.count_nonzero(np.frombuffer(piece, dtype=np.uint8) == NEWLINE))
    user = np.concatenate([np.zeros(0, dtype=np.int64), *lines])
    column = np.concatenate([np.zeros(0, dtype=np.int64), *items])
    if n_users == 0:
        raise InvalidInput(f"{path.name} is empty: expected one line of item numbers per user.")
    width = min(int(column.max(initial=-1)) + 1, MOST_ITEMS) if n_items is None else n_items
    if len(column) and column.max() >= width:
        bad = int(np.argmax(column >= width))
        raise InvalidInput(
            f"{path.name}, line {user[bad] + 1}: an item is out of range; "
            f"with {width} items they are numbered from 0 to {width - 1}."
        )
    first = np.full(n_users, UNKNOWN, dtype=np.int64)
    backwards = slice(None, None, -1)  # of several, the one that is written last stays: the first of the line
    first[user[backwards]] = column[backwards]
    order = np.lexsort((column, user))
    user, column = user[order], column[order]
    twice = (np.diff(user) == 0) & (np.diff(column) == 0)
    if twice.any():
        bad = int(np.argmax(twice))
        raise InvalidInput(f"{path.name}, line {user[bad] + 1}: an item is there twice.")
    starts = np.searchsorted(user, np.arange(n_users + 1))
    rows = SparseRows(starts, column, np.full(len(column), value), (n_users, max(1, width)))
    users = Users(family or NoisyOr(), rows, name=name or path.name.split(".")[0])
    return split_entry(users, first, private=private_context) if entry else users


def split_entry(users: Users, entry: Ints, *, drawn: bool = False, private: bool = False) -> Users:
    """These users, each with one of the wanted items as context, and only the others as wanted.

    `entry`: the item of each, UNKNOWN for those who want nothing. `drawn`: whether it was drawn at random, so that the
    column is symmetric (contexts.py); then all items are values of it, else those that occur.
    """
    (matrix,) = (part.tocoo() for part in users.matrices)
    others = matrix.col != entry[matrix.row]
    places = matrix.row[others], matrix.col[others]
    rest = scipy.sparse.csr_array((matrix.data[others], places), shape=matrix.shape)
    rest.sort_indices()
    items = range(users.n_items)
    names = [str(item) for item in items] if users.labels is None else _each_once(users.labels)
    values, numbers = (names, entry) if drawn else listed(ENTRY, entry, names)
    contexts = Contexts({ENTRY: values}, private=private, symmetric=[ENTRY] if drawn else ())
    return users.with_rows((rest,), name=f"{users.name}-{ENTRY}").with_contexts(contexts, numbers)


def _each_once(labels: Sequence[str]) -> list[str]:
    """Labels that differ: one that several items have comes with the item's number."""
    often = Counter(labels)
    return [label if often[label] == 1 else f"{label} ({item})" for item, label in enumerate(labels)]


def _pieces(path: Path, progress: Progress | None) -> Iterator[bytes]:
    """Whole lines, about PIECE bytes at a time; progress is counted in bytes of the file."""
    try:
        with path.open("rb") as raw:
            source = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw
            seen = 0
            while lines := source.readlines(PIECE):
                yield b"".join(lines) + b"\n" * (not lines[-1].endswith(b"\n"))
                if progress:
                    progress(raw.tell() - seen)
                    seen = raw.tell()
    except (EOFError, OSError, zlib.error) as error:
        raise InvalidInput(f"{path.name} cannot be unpacked: {error}") from error


def _parse(piece: bytes, lines_before: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(line number, item) of every number in a piece of whole lines."""
    text = np.frombuffer(piece, dtype=np.uint8)
    gap, digit = _IS_GAP[text], _IS_DIGIT[text]
    ends_line = text == NEWLINE
    if not (gap | digit).all():
        bad = int(np.argmin(gap | digit))
        line = lines_before + int(np.count_nonzero(ends_line[:bad])) + 1
        raise InvalidInput(
            f"Line {line}: a basket holds whole numbers separated by spaces or commas, and nothing else."
        )
    begins = digit & np.concatenate(([True], gap[:-1]))
    line_of_byte = lines_before + np.cumsum(ends_line) - ends_line
    spaced = np.where(digit, text, ord(" ")).astype(np.uint8).tobytes().decode("ascii")
    numbers = np.fromstring(spaced, dtype=np.int64, sep=" ") if begins.any() else np.zeros(0, dtype=np.int64)
    return line_of_byte[begins], numbers
