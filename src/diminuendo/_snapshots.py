"""One codec for everything that is written down and read back: facts and named arrays as bytes, with a version.

The format is that of the contents of all snapshots together, and is raised when any of them changes. Bytes in another
format are refused.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput

Arrays = dict[str, NDArray[Any]]

FORMAT = 1

MOST_DEVIATIONS = 50.0
"""A published value lies at most this many standard deviations outside its possible range; a snapshot that says
otherwise is refused."""


def packed(facts: dict[str, Any], arrays: Arrays) -> bytes:
    """Facts and arrays as bytes; the same facts and arrays give the same bytes."""
    header = json.dumps({"format": FORMAT} | facts)
    named: dict[str, Any] = dict(arrays)
    out = io.BytesIO()
    np.savez(out, header=np.frombuffer(header.encode(), dtype=np.uint8), **named)
    return out.getvalue()


def unpacked(written: bytes, what: str) -> tuple[dict[str, Any], Arrays]:
    """The facts and the arrays that were written down as these bytes; `what` they should be is for the error."""
    try:
        with np.load(io.BytesIO(written), allow_pickle=False) as held:
            found = {name: held[name] for name in held.files}
        facts = dict(json.loads(found.pop("header").tobytes()))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"These bytes are not {what}: {error}") from error
    version = facts.pop("format", None)
    if version != FORMAT:
        raise InvalidInput(
            f"Expected {what} in format {FORMAT}; got one in format {version!r}, which another version of diminuendo "
            "wrote. Read it with that version, or begin anew."
        )
    return facts, found


def of_learner(snapshot: bytes, name: str) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays in a snapshot of the learner of that name."""
    header, found = unpacked(snapshot, "a snapshot of a learner")
    if header.get("learner") != name:
        raise InvalidInput(f"Expected a snapshot of {name!r}; got one of {header.get('learner')!r}.")
    return header, found


def taken(found: Arrays, part: str) -> Arrays:
    """The arrays called `part.*`, by what follows the dot; they are taken out of `found`."""
    start = f"{part}."
    return {name[len(start) :]: found.pop(name) for name in list(found) if name.startswith(start)}


def named(name: str, value: Any) -> Arrays:
    """An array, or tuples of arrays within tuples, under names of their own."""
    if isinstance(value, np.ndarray):
        return {name: value}
    arrays: Arrays = {}
    for index, part in enumerate(value):
        arrays |= named(f"{name}.{index}", part)
    return arrays


def fill(arrays: Arrays, found: Arrays) -> None:
    """Every array in place by the one that was found under its name: all of them, of the same kinds, or none."""
    if _kinds(arrays) != _kinds(found):
        raise InvalidInput("The snapshot does not fit its own configuration; it was cut short or altered.")
    for name, array in arrays.items():
        array[...] = found[name]


def _kinds(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
