"""Random slates are uniform over ordered slates of distinct items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from diminuendo import RandomSlates, SeededSource
from diminuendo.streams import adversary
from tests.kit.statistics import assert_follows, assert_rejects


@pytest.mark.parametrize(("n_items", "slots"), [(4, 2), (4, 4), (5, 1), (5, 3)])
def test_every_ordered_slate_is_as_likely(n_items: int, slots: int) -> None:
    slates = RandomSlates(n_items, slots, rng=SeededSource(slots)).replay(adversary(40_000, n_items))
    number = {slate: i for i, slate in enumerate(itertools.permutations(range(n_items), slots))}
    result = [number[tuple(int(item) for item in row)] for row in slates]
    law = np.full(len(number), 1 / len(number))
    assert_follows(result, law)
    law[0], law[1] = 1.3 * law[0], 0.7 * law[1]
    assert_rejects(result, law)


def test_the_guarantee_is_perfect() -> None:
    guarantee = RandomSlates(4, 2).guarantee
    assert (guarantee.epsilon, guarantee.delta) == (0.0, 0.0)
    assert "(0, 0)" in str(guarantee)
