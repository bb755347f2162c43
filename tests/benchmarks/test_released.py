"""The benchmark of released sums, tiny: its learners add up what the slow way adds up, and what does not is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import released
from benchmarks.report import Disagreement
from diminuendo.learners.released.variants import Boosted, NoisyHedge

pytestmark = pytest.mark.slow

SIZES = (1_000, 2_000)


@pytest.mark.parametrize("kind", [Boosted, NoisyHedge])
def test_between_releases(kind: Any) -> None:
    rounds, parts = released.between(kind, SIZES, n_people=40, laps=2)
    assert [row[0] for row in rounds.rows] == [row[0] for row in parts.rows] == list(SIZES)
    assert all(0 < float(row[2]) < float(row[1]) for row in rounds.rows), "the floor is below"
    assert {"exponent of ours", "exponent of the floor"} < set(rounds.numbers)


def test_whole_runs() -> None:
    part = released.whole(SIZES[:1], {"horizon": 400, "epsilon": 1.0, "delta": 1e-6})
    assert [row[0] for row in part.rows] == ["boosted", "noisy-hedge"]
    assert all(int(row[2]) >= 7 for row in part.rows)


@pytest.mark.parametrize("kind", [Boosted, NoisyHedge])
def test_another_sum_is_refused(kind: Any) -> None:
    work = released.prepared(kind, SIZES[0], 40, laps=2)
    assert not released.policy_of(work.learner).released.sum._cells.entries().any()
    rows = released.slow_rows(work.learner, work.people, work.slates, work.words)
    rows.data[7] = 1.0 - rows.data[7]
    with pytest.raises(Disagreement, match="something else"):
        released.check(work.learner, work.people, work.slates, work.words, rows)


def test_the_floor_adds_the_same_numbers() -> None:
    work = released.prepared(Boosted, SIZES[0], 40, laps=2)
    released.take_in(work.learner, work.people, work.slates, work.words)
    np.testing.assert_array_equal(
        work.floor(), released.policy_of(work.learner).released.sum._cells.entries()
    )
