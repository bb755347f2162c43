"""One codec for everything that is written down and read back: facts and named arrays as bytes, with a version.

The format is that of the contents of all snapshots together, and is raised when any of them changes. Bytes in another
format are refused.

The snapshot of a learner begins with a checksum over the rest. It has no key: it finds accidents and careless edits.
A writer of snapshots can also read the users' feedback in them, so nothing is checked against forgery: what has the
checksum, and the names, kinds and shapes of arrays that its configuration asks for, is believed.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput

Arrays = dict[str, NDArray[Any]]

FORMAT = 1

MARK = b"diminuendo snapshot "
HEAD = len(MARK) + 65
"""Bytes before the contents of a learner's snapshot: the mark, a checksum in hexadecimal digits, and a line feed."""

MOST_DEVIATIONS = 50.0
"""A published value lies at most this many standard deviations outside its possible range; a snapshot that says
otherwise is refused."""


def packed(spec: dict[str, Any], arrays: Arrays) -> bytes:
    """Facts and arrays as bytes; the same facts and arrays give the same bytes."""
    out = io.BytesIO()
    _write(out, spec, arrays)
    return out.getvalue()


def sealed(spec: dict[str, Any], arrays: Arrays) -> bytes:
    """The same, behind a checksum over all of it."""
    out = io.BytesIO(bytes(HEAD))
    out.seek(HEAD)
    _write(out, spec, arrays)
    checksum = _checksum(out.getbuffer())
    out.seek(0)
    out.write(MARK + checksum + b"\n")
    return out.getvalue()


def _write(out: io.BytesIO, spec: dict[str, Any], arrays: Arrays) -> None:
    header = json.dumps({"format": FORMAT} | spec)
    named: dict[str, Any] = dict(arrays)
    np.savez(out, header=np.frombuffer(header.encode(), dtype=np.uint8), **named)


def _checksum(snapshot: memoryview) -> bytes:
    return hashlib.sha256(snapshot[HEAD:]).hexdigest().encode()


def unsealed(snapshot: bytes, what: str) -> tuple[dict[str, Any], Arrays]:
    """The facts and the arrays of a snapshot that has its checksum."""
    if not isinstance(snapshot, bytes) or not snapshot.startswith(MARK):
        raise InvalidInput(f"These bytes are not {what}.")
    if snapshot[len(MARK) : HEAD] != _checksum(memoryview(snapshot)) + b"\n":
        raise InvalidInput(
            "The snapshot was cut short or altered: its checksum does not fit. Restore another copy of it."
        )
    return unpacked(snapshot, what, HEAD)


def unpacked(written: bytes, what: str, first: int = 0) -> tuple[dict[str, Any], Arrays]:
    """The facts and the arrays that were written down as these bytes, from the byte `first` on; `what` they should be
    is for the error."""
    try:
        file = io.BytesIO(written)
        file.seek(first)
        with np.load(file, allow_pickle=False) as held:
            result = {name: held[name] for name in held.files}
        spec = dict(json.loads(result.pop("header").tobytes()))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"These bytes are not {what}; they cannot be read.") from error
    version = spec.pop("format", None)
    if version != FORMAT:
        raise InvalidInput(
            f"Expected {what} in format {FORMAT}; got one in format {version!r}, which another version of diminuendo "
            "wrote. Read it with that version, or begin anew."
        )
    return spec, result


def of_learner(snapshot: bytes, name: str) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays in a snapshot of the learner of that name."""
    header, result = unsealed(snapshot, "a snapshot of a learner")
    if header.get("learner") != name:
        raise InvalidInput(f"Expected a snapshot of {name!r}; got one of {header.get('learner')!r}.")
    return header, result


def taken(arrays: Arrays, part: str) -> Arrays:
    """The arrays called `part.*`, by what follows the dot; they are removed from `arrays`."""
    start = f"{part}."
    return {name[len(start) :]: arrays.pop(name) for name in list(arrays) if name.startswith(start)}


def named(name: str, value: Any) -> Arrays:
    """An array, or tuples of arrays within tuples, under names of their own."""
    if isinstance(value, np.ndarray):
        return {name: value}
    arrays: Arrays = {}
    for index, part in enumerate(value):
        arrays |= named(f"{name}.{index}", part)
    return arrays


def fill(arrays: Arrays, values: Arrays) -> None:
    """Every array in place by the value of its name: all of them, of the same kinds, or none."""
    if _kinds(arrays) != _kinds(values):
        raise InvalidInput("The snapshot does not fit its own configuration; it was cut short or altered.")
    for name, array in arrays.items():
        array[...] = values[name]


def _kinds(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
