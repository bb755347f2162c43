"""The floor does the additions that it says it does."""

from __future__ import annotations

import numpy as np

from benchmarks.flat import uniform_people
from benchmarks.floor import additions, count
from diminuendo import NoisyOr, People


def test_certain_people_add_nothing_to_later_slots() -> None:
    people = People(NoisyOr(), [[1.0, 0.0, 0.5], [0.25, 0.5, 0.0]])
    work = additions(people, np.array([[0, 2], [0, -1]], dtype=np.int32))
    assert work.depth.tolist() == [1, 2]
    half = 2**19
    assert work.run(work.fresh_totals()).tolist() == [
        [2 * half + half // 2, half // 2],
        [half, half],
        [half, 0],
    ]


def test_counting_is_counting() -> None:
    people = uniform_people(50, 20, 5)
    totals = np.zeros(20, dtype=np.int64)
    count(people.table.columns, totals)
    assert totals.tolist() == np.bincount(people.table.columns, minlength=20).tolist()


def test_uniform_people_want_as_many_items_as_asked() -> None:
    people = uniform_people(500, 12, 10)
    assert set(np.diff(people.table.starts)) == {10}
    assert all(len(set(row.indices)) == 10 for row in people.matrices[0])
