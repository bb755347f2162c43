"""Cells of a batch are wide enough; compiled callers are counted; what cannot exceed the bound cannot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diminuendo import SeededSource
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip, Rule, cannot_exceed, clip_row
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from diminuendo.types import Floats, Ints

SIZE, ROUNDS, BUDGET = 12, 40, Budget(1.0, 1e-6, accountant="continuous-gaussian")


def test_whoever_pours_is_counted() -> None:
    more: dict[str, Any] = {"cost": BUDGET.share(), "ledger": Ledger(BUDGET)}
    total = PrivateSum(SIZE, schedule=equal(ROUNDS, 4), clip=Clip(bound=1.5), **more)
    secret = SecretRandomness(SeededSource(1))
    with total.compiled_access(30, batch=0) as into:
        assert into is not None
        assert into.rule == total.clip.rule
        into.cells[9] += 7
        assert "7" not in repr(into)
    assert total._cells.tolist() == [0] * 9 + [7, 0, 0]
    with pytest.raises(InvalidInput, match="More than the 40"), total.compiled_access(11):
        raise AssertionError("nobody gets this far")
    total.release(secret)
    with total.compiled_access(5, batch=0) as delay:
        assert delay is None
    with total.compiled_access(10, batch=1) as into:
        assert into is not None
    with pytest.raises(InvalidInput, match="batch"), total.compiled_access(1, batch=99):
        raise AssertionError("nobody gets this far")
    with (
        pytest.raises(InvalidInput, match="one entry"),
        OpenBatch(4, Clip("cell"), equal(5, 1)).compiled_access(1),
    ):
        raise AssertionError("nobody gets this far")


# What is clipped without a look at the norm.


@kernel
def _clipped(rule: Rule, values: Floats, out: Ints) -> bool:
    clip_row(rule, values, 0, len(values), out)
    return cannot_exceed(rule, len(values))


CLIPS = [
    Clip(norm, bound=bound, ticks=ticks, signed=signed, ceiling=ceiling)
    for norm in ("l2", "l1")
    for bound in (0.3, 1.0, 2.0, 3.0, 7.9)
    for ticks in (10, 1024)
    for ceiling in (0.1, 1.0, 1 / 3)
    for signed in (False, True)
]


@pytest.mark.parametrize("clip", CLIPS, ids=str)
def test_what_cannot_exceed_the_bound_is_within_it(clip: Clip) -> None:
    for size in (1, 2, 3, 4, 8, 9, 10, 30, 63, 64, 99):
        out = np.zeros(size, dtype=np.int64)
        within = _clipped(clip.rule, np.full(size, np.inf), out)  # each entry as large as it can be
        power = 2 if clip.norm == "l2" else 1
        assert (np.abs(out) ** power).sum() <= clip.limit**power
        largest = math.floor(clip.ceiling * clip.ticks)
        if within:
            assert out.tolist() == [largest] * size
        else:  # and it is not said of rows that would do, but for those that only just would
            slack = 1 + 1e-5
            fits = size * clip.ceiling**power * slack <= clip.bound**power
            assert not (fits and size * largest**power * slack <= clip.limit**power)
        hostile = np.resize([np.nan, 0.05, -np.inf, 1e300, -0.2, -0.0, 0.25], size)
        _clipped(clip.rule, hostile, out)
        cut = np.clip(np.nan_to_num(hostile, nan=0.0), -clip.ceiling if clip.signed else 0.0, clip.ceiling)
        if within:
            np.testing.assert_array_equal(out, np.sign(cut) * np.floor(np.abs(cut) * clip.ticks))


def test_both_ways_are_met() -> None:
    result = {_clipped(clip.rule, np.ones(9), np.zeros(9, dtype=np.int64)) for clip in CLIPS}
    assert result == {True, False}
