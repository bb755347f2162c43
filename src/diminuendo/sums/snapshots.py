"""Snapshots of sums: arrays as bytes, together with the public facts they belong to."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput


def packed(facts: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """Facts and arrays as bytes."""
    out = io.BytesIO()
    header = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    named: dict[str, Any] = {f"a{index}": array for index, array in enumerate(arrays)}
    np.savez(out, header=header, **named)
    return out.getvalue()


def read(snapshot: bytes, facts: dict[str, Any]) -> list[NDArray[Any]]:
    """The arrays of a snapshot that belongs to the same facts."""
    try:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as held:
            found = json.loads(held["header"].tobytes())
            arrays = [held[f"a{index}"] for index in range(len(held.files) - 1)]
    except (TypeError, ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"These bytes are not a snapshot: {error}") from error
    if found != facts:
        raise InvalidInput(
            "The snapshot is of something made with other arguments; make this one with the same."
        )
    return arrays


def unpack(snapshot: bytes, facts: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Fill arrays in place from a snapshot of arrays of the same kinds."""
    found = read(snapshot, facts)
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in arrays]:
        raise InvalidInput("The snapshot does not fit; it was cut short or altered.")
    if not all(np.isfinite(new).all() for new in found):
        raise InvalidInput("The snapshot holds numbers that are none; it was altered.")
    for old, new in zip(arrays, found, strict=True):
        old[...] = new


class Snapshotted(Protocol):
    """A sum that writes and reads itself."""

    def snapshot(self) -> bytes:
        """What was added and released so far. As private as what people said."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a sum that was made with the same arguments."""
        ...


def sum_as_extra(kept: Snapshotted) -> dict[str, NDArray[Any]]:
    """A sum as the snapshot of a learner holds it, whose people are in that one sum."""
    return {"sum": np.frombuffer(kept.snapshot(), dtype=np.uint8)}


def take_sum(kept: Snapshotted, found: dict[str, NDArray[Any]]) -> None:
    """Go on from what `sum_as_extra` wrote; refuse what it could not have written."""
    try:
        kept.restore(found.pop("sum").tobytes())
    except (KeyError, AttributeError) as error:
        raise InvalidInput(f"The snapshot's sum cannot be read: {error}.") from error
    if found:
        raise InvalidInput("The snapshot holds more than this learner keeps; it was altered.")
