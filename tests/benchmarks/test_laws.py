"""The test of laws lets the right law pass and notices a nearby wrong one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.laws import FALSE_ALARM, Law
from benchmarks.report import Disagreement
from diminuendo.types import Floats, Ints


def softmax(powers: Floats) -> Floats:
    weights = np.exp(powers - powers.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def drawn_from(laws: Floats, times: int, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(len(law), size=times, p=law) for law in laws])


@pytest.fixture
def powers() -> Floats:
    """Laws that change from draw to draw, from flat to one item only."""
    return np.linspace(0, 12, 300)[:, None] * np.random.default_rng(0).random(50)


def test_p_values_of_the_right_law_are_uniform(powers: Floats) -> None:
    law = Law(softmax(powers))
    found = np.array([law.p_value(drawn_from(law.laws, 3, seed), 3) for seed in range(200)])
    assert 0.4 < found.mean() < 0.6
    assert 0.02 < found.std() - 0.2 < 0.14  # uniform: 0.289


def test_a_rate_that_is_a_tenth_too_large_is_noticed(powers: Floats) -> None:
    law = Law(softmax(powers))
    wrong = drawn_from(softmax(1.1 * powers), 80, 1)
    assert law.p_value(wrong, 80) < FALSE_ALARM
    with pytest.raises(Disagreement, match="somebody"):
        law.check("somebody", wrong, 80)


def test_too_few_draws_are_no_test() -> None:
    with pytest.raises(ValueError, match="too few"):
        Law(np.full((1, 4), 0.25)).p_value(np.array([1, 2]), 2)


def test_spread_counts_items() -> None:
    assert Law(np.array([[0.25] * 4, [0.5, 0.5, 0.0, 0.0]])).spread == pytest.approx(3)
