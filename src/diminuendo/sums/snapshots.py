"""Snapshots of sums: arrays as bytes, together with the public facts they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo import _snapshots
from diminuendo.errors import InvalidInput


def packed(spec: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> bytes:
    """Facts and arrays as bytes."""
    return _snapshots.packed(spec, {f"a{index}": array for index, array in enumerate(arrays)})


def read(snapshot: bytes, spec: dict[str, Any]) -> list[NDArray[Any]]:
    """The arrays of a snapshot that belongs to the same facts."""
    result, arrays = _snapshots.unpacked(snapshot, "a snapshot")
    if result != spec:
        raise InvalidInput(
            "The snapshot is of something made with other arguments; make this one with the same."
        )
    return [arrays[f"a{index}"] for index in range(len(arrays))]


def unpack(snapshot: bytes, spec: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Fill arrays in place from a snapshot of arrays of the same kinds."""
    fill(arrays, read(snapshot, spec))


def fill(arrays: Sequence[NDArray[Any]], values: Sequence[NDArray[Any]]) -> None:
    """Fill arrays in place with those that were found, which are of the same kinds."""
    if [(a.shape, a.dtype) for a in values] != [(a.shape, a.dtype) for a in arrays]:
        raise InvalidInput("The snapshot does not fit; it was cut short or altered.")
    for old, new in zip(arrays, values, strict=True):
        old[...] = new


class Kept(Protocol):
    """What a learner keeps of users that can be written down and read back: a sum."""

    def snapshot(self) -> bytes:
        """All of it, as private as what users said."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot; refuses one that is of something else."""
        ...


def sums_as_extra(sums: Mapping[str, Kept]) -> dict[str, NDArray[Any]]:
    """Sums as the snapshot of a learner holds them, by name."""
    return {name: np.frombuffer(one.snapshot(), dtype=np.uint8) for name, one in sums.items()}


def take_sums(sums: Mapping[str, Kept], extra: dict[str, NDArray[Any]]) -> None:
    """Go on from what `sums_as_extra` wrote."""
    for name, one in sums.items():
        one.restore(extra.pop(name).tobytes())
