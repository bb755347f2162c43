"""A drawer is an array, wherever it lies."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

from diminuendo.privacy import drawers
from diminuendo.privacy.drawers import Drawer, NamelessFile


class FullDisk(NamelessFile):
    """Can be read, and written no more."""

    def write(self, offset: int, values: Any) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("shape", [(7,), (5, 7), (0,)])
def test_a_drawer_does_what_an_array_does(
    shape: tuple[int] | tuple[int, int], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, drawer, array = np.random.default_rng(1), Drawer(shape, small), np.zeros(shape)
    for step in range(60):
        row = int(random.integers(5)) if len(shape) == 2 else ...
        where: Any = [..., slice(None), row, slice(2, 4)][step % 4]
        values = random.normal(size=array[where].shape)
        drawer[where] = array[where] = values
        np.testing.assert_array_equal(np.asarray(drawer), array)
        np.testing.assert_array_equal(drawer[where], array[where])
        drawer[where][...] = 9.0  # a copy
        np.testing.assert_array_equal(drawer, array)
        if step == 20 and len(shape) == 2:
            drawer.clear(3)
            array[3] = 0.0
            np.testing.assert_array_equal(drawer, array)
        if step == 30:
            monkeypatch.setattr(NamelessFile, "write", FullDisk.write)
        if step == 45:  # there is room again
            monkeypatch.undo()
    for copied in (pickle.loads(pickle.dumps(drawer)), copy.deepcopy(drawer)):
        np.testing.assert_array_equal(copied, array)
        copied[...] = 1.0
    np.testing.assert_array_equal(drawer, array)
    assert drawer.shape == array.shape
    assert drawer.dtype == array.dtype
    assert repr(drawer) == f"<Drawer of {shape}>"


def test_large_drawers_are_not_in_memory() -> None:
    size = drawers.SMALL // 8 + 1
    tracemalloc.start()
    drawer, little = Drawer((2, size)), Drawer((100,))
    drawer[1], little[...] = np.ones(size), 2.0
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < drawers.SMALL / 100
    assert drawer[1].all()
    assert not drawer[0].any()
    assert little._here, "what is small stays"


def test_a_file_that_was_cut_short_is_noticed() -> None:
    drawer = Drawer((100,), small=0)
    drawer[...] = 1.0
    assert drawer._file._file is not None
    drawer._file._file.truncate(50)
    with pytest.raises(OSError, match="cut short"):
        np.asarray(drawer)
