"""What is held for named items only is what would be held for all."""

from __future__ import annotations

import numpy as np
import pytest

from diminuendo.sums.item_sums import FIRST, ItemSums
from diminuendo.sums.touched import Touched


@pytest.mark.parametrize("seed", range(4))
def test_touched_entries_are_those_of_an_array(seed: int) -> None:
    random, size = np.random.default_rng(seed), 40
    touched, whole = Touched(3, size), np.zeros((3, size), dtype=np.int64)
    lists = 0
    for _ in range(12):
        entries = random.integers(-5, 5, size=size) * (random.random(size) < 0.08)
        places, values = touched.with_those_of(entries)
        if places is None:
            values *= 3
            values += entries
        else:
            lists += 1
            assert 2 * len(places) <= size
            values *= 3
            values += entries[places]
        whole = 3 * whole + entries
        np.testing.assert_array_equal(touched, whole)
        again = Touched(3, size)
        again[...] = whole
        np.testing.assert_array_equal(again, whole)
    assert lists > 0
    assert whole[0].any()
    assert "5" not in repr(touched)


def test_touched_entries_end_as_all_of_them() -> None:
    touched = Touched(1, 10)
    assert touched.with_those_of(np.arange(10) < 5)[0] is not None
    touched.with_those_of(np.arange(10) == 7)[1][:] = 4
    places, values = touched.with_those_of(np.zeros(10))
    assert places is None
    assert values.tolist() == [[4] * 10]


@pytest.mark.parametrize("n_items", [50, 3 * FIRST])
def test_item_sums_are_those_of_an_array(n_items: int) -> None:
    random = np.random.default_rng(n_items)
    sums, whole = ItemSums(2, n_items), np.zeros((2, n_items), dtype=np.int64)
    for step in range(8):
        items = random.integers(n_items, size=n_items // 2)  # some of them twice
        numbers, row = random.integers(1, 100, size=len(items)), step % 2
        sums.add(row, sums.columns(items), numbers, 3)
        np.add.at(whole[row], items, 3 * numbers)
        np.testing.assert_array_equal(sums, whole)
        np.testing.assert_array_equal(sums.rows([1]), whole[1:])
        assert sorted(sums.items) == np.flatnonzero(whole.any(axis=0)).tolist()
    again = ItemSums(2, n_items)
    again.columns(np.arange(5))
    again[...] = whole
    np.testing.assert_array_equal(again, whole)
    sums.wipe(0)
    assert sums.rows([0]).sum() == 0 < sums.rows([1]).sum()
    sums.clear()
    assert not np.asarray(sums).any()
    assert len(sums.items) == 0
