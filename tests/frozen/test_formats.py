"""Snapshots are read in one format: bytes in any other are refused, and the error says what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from diminuendo import LEARNERS, SeededSource, Setting, _snapshots
from diminuendo.errors import InvalidInput
from diminuendo.learners import restore
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import ExactSum
from diminuendo.sums.schedule import equal
from tests.frozen.record import made

SETTING = Setting(6, 2, 40, "full")


def learner() -> bytes:
    return made("overlap-greedy", SETTING).snapshot()


def exact_sum() -> ExactSum:
    return ExactSum(3, schedule=equal(9, 3), clip=Clip())


DOORS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Any]]] = {
    "learner": (learner, lambda said: LEARNERS["overlap-greedy"].restore(said, rng=SeededSource(1))),
    "learner by its name": (learner, lambda said: restore(said, rng=SeededSource(1))),
    "sum": (lambda: exact_sum().snapshot(), lambda said: exact_sum().restore(said)),
}


def in_format(snapshot: bytes, version: Any) -> bytes:
    """The same snapshot, whose header gives another format."""
    is_learner = snapshot.startswith(_snapshots.MARK)
    spec, arrays = (_snapshots.unsealed if is_learner else _snapshots.unpacked)(snapshot, "a snapshot")
    return (_snapshots.sealed if is_learner else _snapshots.packed)(spec | {"format": version}, arrays)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("version", [None, 0, 2, 3, 4, 5, -1, "1", [1], {}])
def test_another_format_is_refused(door: str, version: Any) -> None:
    write, read = DOORS[door]
    read(in_format(write(), 1))
    with pytest.raises(InvalidInput, match=r"format 1; got one in format .*Read it with that version"):
        read(in_format(write(), version))
