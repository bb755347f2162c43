"""Whatever is contributed, what is added is whole, bounded, and close to what was meant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from diminuendo.errors import InvalidInput
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.schedule import equal
from diminuendo.types import Ints

HOSTILE = [
    float("nan"),
    float("inf"),
    -float("inf"),
    -1.0,
    1e300,
    -1e300,
    5e-324,
    1.0,
    0.0,
    0.5,
    1 / 3,
    2.0**-30,
]
numbers = st.sampled_from(HOSTILE) | st.floats(allow_nan=True, allow_infinity=True)
clips = st.builds(
    Clip,
    norm=st.sampled_from(["l2", "l1"]),
    bound=st.sampled_from([0.3, 1.0, 2.5, 40.0]),
    ticks=st.sampled_from([7, 1024, 1 << 20]),
    signed=st.booleans(),
    ceiling=st.sampled_from([0.5, 1.0, 3.0]),
)


def added(clip: Clip, values: Any, indices: Any = None, size: int | None = None) -> Ints:
    collector = OpenBatch(size or len(values), clip, equal(1, 1))
    collector.add(values, indices)
    return collector._cells


def whole_norm(clip: Clip, ticks: Ints) -> int:
    return sum(abs(int(entry)) if clip.norm == "l1" else int(entry) ** 2 for entry in ticks)


@settings(deadline=None, max_examples=400)
@given(clip=clips, values=st.lists(numbers, min_size=1, max_size=12))
def test_the_norm_is_bounded_in_whole_numbers(clip: Clip, values: list[float]) -> None:
    ticks = added(clip, values)
    assert whole_norm(clip, ticks) <= (clip.limit if clip.norm == "l1" else clip.limit**2)
    assert np.abs(ticks).max() <= clip.largest
    assert clip.signed or ticks.min() >= 0


@settings(deadline=None, max_examples=400)
@given(
    clip=clips,
    one=st.lists(numbers, min_size=4, max_size=4),
    other=st.lists(numbers, min_size=4, max_size=4),
)
def test_two_contributions_differ_by_no_more_than_is_said(
    clip: Clip, one: list[float], other: list[float]
) -> None:
    apart = added(clip, one) - added(clip, other)
    assert sum(int(entry) ** 2 for entry in apart) <= clip.sensitivity_squared(4)
    assert np.abs(apart).sum() <= clip.sensitivity(4)


@pytest.mark.parametrize(
    ("clip", "one", "other", "squared", "total"),
    [
        (Clip(), [1, 0, 0], [0, 1, 0], 2 * 1024**2, math.isqrt(6 * 1024**2)),
        (Clip(signed=True), [1, 0, 0], [-1, 0, 0], 4 * 1024**2, math.isqrt(12 * 1024**2)),
        (Clip("l1"), [1, 0, 0], [0, 1, 0], 2 * 1024**2, 2 * 1024),
        (Clip("l1", signed=True), [1, 0, 0], [-1, 0, 0], 4 * 1024**2, 2 * 1024),
        (Clip(bound=9.0), [1, 1, 1], [0, 0, 0], 3 * 1024**2, 3 * 1024),
    ],
)
def test_the_sensitivity_is_attained(clip: Clip, one: Any, other: Any, squared: int, total: int) -> None:
    assert clip.sensitivity_squared(3) == squared
    assert clip.sensitivity(3) == total
    apart = added(clip, one) - added(clip, other)
    assert (apart**2).sum() == squared


@settings(deadline=None, max_examples=200)
@given(clip=clips, values=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_what_needs_no_clipping_is_only_rounded_down(clip: Clip, values: list[float]) -> None:
    """Against exact fractions: off by less than one tick below, and by the rounding of two products at most."""
    cut = [min(Fraction(value), Fraction(clip.ceiling)) for value in values]
    size = sum(cut) if clip.norm == "l1" else sum(entry**2 for entry in cut)
    limit = Fraction(clip.bound) ** (1 if clip.norm == "l1" else 2)
    if size > limit * Fraction(0.999999):
        return
    ticks = added(clip, values)
    for entry, tick in zip(cut, ticks, strict=True):
        assert (
            entry * clip.ticks * (1 - Fraction(2) ** -50) - 2
            <= int(tick)
            <= entry * clip.ticks * (1 + Fraction(2) ** -50)
        )


@settings(deadline=None, max_examples=100)
@given(values=st.lists(st.floats(0.01, 1), min_size=2, max_size=30))
def test_clipping_keeps_the_direction_and_uses_the_bound(values: list[float]) -> None:
    ticks = added(Clip(bound=0.005, ticks=1 << 24), values)
    exact = np.array(values) / np.linalg.norm(values) * 0.005 * 2**24
    np.testing.assert_allclose(ticks, exact, atol=2)


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_many_equal_entries_cannot_round_past_the_bound(count: int) -> None:
    """Where rounding to the nearest would exceed the bound by 41 percent."""
    clip = Clip(ticks=10)
    ticks = added(clip, [1.0] * count)
    assert (ticks**2).sum() <= 100
    nearest = np.rint(10 / np.sqrt(count) * np.ones(count))
    assert count != 3 or (nearest**2).sum() > 100


def test_dense_sparse_and_rows_agree() -> None:
    rng, clip = np.random.default_rng(0), Clip()
    matrix = sparse.csr_array(np.where(rng.random((40, 12)) < 0.4, rng.random((40, 12)), 0.0))
    whole, each = OpenBatch(12, clip, equal(40, 1)), OpenBatch(12, clip, equal(40, 1))
    whole.add_rows(matrix)
    for row in range(40):
        low, high = matrix.indptr[row : row + 2]
        order = np.argsort(matrix.indices[low:high])
        each.add(matrix.data[low:high][order], matrix.indices[low:high][order])
    np.testing.assert_array_equal(whole._cells, each._cells)
    np.testing.assert_array_equal(
        whole._cells, np.sum([added(clip, row) for row in matrix.toarray()], axis=0)
    )


def test_a_place_that_comes_twice_counts_once() -> None:
    twice = sparse.coo_array(([1.0, 1.0, 1.0], ([0, 0, 0], [2, 2, 2])), shape=(1, 4)).tocsr()
    doubled = sparse.csr_array((np.ones(3), np.array([2, 2, 2]), np.array([0, 3])), shape=(1, 4))
    for matrix in (twice, doubled):
        collector = OpenBatch(4, Clip(), equal(5, 1))
        collector.add_rows(matrix)
        assert collector._cells.tolist() == [0, 0, 1024, 0]
    with pytest.raises(InvalidInput, match="rise"):
        added(Clip(), [1.0, 1.0], [2, 2], size=4)


@pytest.mark.parametrize(
    ("values", "indices"),
    [
        ([1.0, 2.0], None),
        ([[1.0] * 4], None),
        (1.0, None),
        ("what", None),
        (None, None),
        ([1j] * 4, None),
        ([1.0], [4]),
        ([1.0], [-1]),
        ([1.0, 1.0], [1, 0]),
        ([1.0], [0.5]),
        ([1.0, 2.0], [1]),
        ([1.0], [[1]]),
        ([1.0] * 3, [0, 2**61, 2**62]),
        ([1.0] * 3, [0, 2**63 - 1, 1]),
        ([1.0] * 2, np.array([0, 2**63], dtype=np.uint64)),
        ([10**400] * 4, None),
    ],
)
def test_wrong_shapes_are_refused_and_lose_nothing(values: Any, indices: Any) -> None:
    collector = OpenBatch(4, Clip(), equal(2, 1))
    collector.add([0.25] * 4)
    before = collector._cells.copy(), collector._marks.copy()
    with pytest.raises(InvalidInput):
        collector.add(values, indices)
    np.testing.assert_array_equal(collector._cells, before[0])
    np.testing.assert_array_equal(collector._marks, before[1])
    assert "256" not in repr(collector)


def test_rows_that_point_outside_are_refused() -> None:
    """scipy does not look at indices; a kernel that trusted them would write anywhere."""
    for places in ([0, 7], [-1, 2], [0, 5 * 10**10], [3, 2**31]):
        matrix = sparse.csr_array((2, 4))
        matrix.indptr, matrix.indices, matrix.data = np.array([0, 1, 2]), np.array(places), np.ones(2)
        collector = OpenBatch(4, Clip(), equal(5, 1))
        with pytest.raises(InvalidInput):
            collector.add_rows(matrix)
        assert not collector._cells.any()
    mine = sparse.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    before = mine.indices.copy()
    OpenBatch(4, Clip(), equal(5, 1)).add_rows(mine)
    np.testing.assert_array_equal(mine.indices, before)  # what belongs to the caller is left alone
    for starts in ([0, 3, 2], [1, 1, 2], [0, -1, 2], [0, 1, 9]):
        matrix = sparse.csr_array((2, 4))
        matrix.indptr, matrix.indices, matrix.data = np.array(starts), np.array([0, 1]), np.ones(2)
        with pytest.raises(InvalidInput):
            OpenBatch(4, Clip(), equal(5, 1)).add_rows(matrix)
    short = sparse.csr_array((2, 4))
    short.indptr, short.indices, short.data = np.array([0, 1, 2]), np.array([0, 1]), np.ones(1)
    with pytest.raises(InvalidInput):
        OpenBatch(4, Clip(), equal(5, 1)).add_rows(short)
    lying = sparse.csr_array((np.ones(3), np.array([2, 2, 2]), np.array([0, 3])), shape=(1, 4))
    lying.has_canonical_format = True
    collector = OpenBatch(4, Clip(), equal(5, 1))
    collector.add_rows(lying)
    assert collector._cells.tolist() == [0, 0, 1024, 0]
    for wrong in (np.ones((2, 5)), np.ones(4), 1j * np.ones((1, 4)), "rows", None):
        with pytest.raises(InvalidInput):
            OpenBatch(4, Clip(), equal(5, 1)).add_rows(wrong)


def test_nothing_at_all_is_a_contribution_too() -> None:
    assert not added(Clip(), [], [], size=4).any()


def test_a_cell_takes_one_entry_of_bounded_size() -> None:
    clip = Clip("cell")
    assert clip.sensitivity(100) == 1024
    assert clip.sensitivity_squared(100) == 1024**2
    for value in HOSTILE:
        assert 0 <= added(clip, [value], [3], size=9)[3] <= 1024
    assert added(clip, [1.0], [3], size=9)[3] == 1024
    for values, indices in (([1.0, 1.0], [3, 4]), ([1.0] * 9, None), ([], np.empty(0, dtype=int))):
        with pytest.raises(InvalidInput, match="one entry"):
            added(clip, values, indices, size=9)
    with pytest.raises(InvalidInput, match="some rows have more"):
        OpenBatch(3, clip, equal(9, 1)).add_rows(sparse.csr_array(np.ones((1, 3))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"norm": "max"},
        {"bound": 0.0},
        {"bound": float("nan")},
        {"bound": 2.0**21},
        {"ceiling": 2.0**21},
        {"ticks": 0},
        {"ticks": 1.5},
        {"bound": 1e-4},
        {"norm": "cell", "bound": 2.0},
    ],
)
def test_bad_rules_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        Clip(**wrong)
