"""Leaders on the simplex: projection, points that follow sums, price of the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

from diminuendo import SeededSource, paper
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput, OverBudget
from diminuendo.experts.noisy_leader import project_simplex, pure_noise, pure_scale
from diminuendo.learners.hedge.fi_pure import FiPure
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import taste_groups
from diminuendo.types import Floats
from tests.kit.inside import inside


@kernel
def project(values: Floats, out: Floats) -> None:
    project_simplex(values, out)


def by_sorting(values: Floats) -> Floats:
    """The textbook projection."""
    ordered = np.sort(values)[::-1]
    levels = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    return np.asarray(np.maximum(0, values - level))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 400])
def test_projection_is_the_nearest_point_of_the_simplex(n: int) -> None:
    random = np.random.default_rng(n)
    for spread in (0.0, 1e-3, 1.0, 1e6, 1e18, 1e300):
        values = spread * random.normal(size=n)
        out = np.empty(n)
        project(values, out)
        assert out.min() >= 0
        assert out.sum() == pytest.approx(1.0, abs=1e-9)
        if spread > 1e6:
            assert out[values.argmax()] == pytest.approx(1.0)  # everything else is far below
            continue
        np.testing.assert_allclose(out, by_sorting(values), atol=1e-9 * max(1.0, spread))
        # Nearest: no point of the simplex is at an acute angle to what was cut off.
        for vertex in np.eye(n)[:20]:
            assert (values - out) @ (vertex - out) <= 1e-7 * max(1.0, spread) ** 2


def test_without_noise_the_leader_wins() -> None:
    users = taste_groups(3_000, 12, groups=4, items_per_group=5, seed=1)
    loud = paper.fi_pure(12, 3, 3_000, 1e9, rng=SeededSource(1))
    quiet = paper.fi_pure(12, 3, 3_000, 1.0, rng=SeededSource(1))
    assert users.values(loud.replay(users))[1_500:].mean() > 1.2 * users.values(quiet.replay(users)).mean()


def test_points_are_what_pftal_says() -> None:
    learner = FiPure(4, 1, horizon=50, epsilon=1e9, curvature=0.3, rng=SeededSource(1))
    users = taste_groups(50, 4, groups=2, items_per_group=2, seed=2)
    gains = np.zeros(4)
    for t in range(30):
        decision = learner.choose()
        if t:
            np.testing.assert_allclose(
                inside(learner)._experts.points[0],
                by_sorting(gains / (0.3 * t)),
                atol=1e-4,
                err_msg="project(G / (H t))",
            )
        learner.observe(decision, users[t])
        gains += users[t].gains([])


def test_scale_and_length_of_noise() -> None:
    assert pure_scale(9, 2, 1_000, 0.5) == pytest.approx(10 * 3.0 * 2 / 0.5)
    assert pure_noise(9, 2, 1_000, 0.5) == pytest.approx(math.sqrt(10 * 9 * 10) * 120.0)


def test_a_ledger_is_charged_for_every_start() -> None:
    ledger = Ledger(Budget(1.0, 0.0, accountant="pure"))
    first = paper.fi_pure(4, 1, 50, 0.5, ledger=ledger, rng=SeededSource(1))
    assert ledger.spent() == 0.0, "nothing is published yet"
    first.choose()
    assert ledger.spent() == 0.5
    again = FiPure.restore(first.snapshot(), ledger=ledger, rng=SeededSource(2))
    assert ledger.spent() == 0.5
    again.choose()
    assert ledger.spent() == 1.0
    third = FiPure.restore(first.snapshot(), ledger=ledger, rng=SeededSource(3))
    with pytest.raises(OverBudget):
        third.choose()


def test_the_promise_is_for_real_arithmetic_and_says_so() -> None:
    learner = paper.fi_pure(4, 1, 50, 0.5)
    assert not learner.guarantee.exact
    assert "in real arithmetic" in str(learner.guarantee)
    assert learner.guarantee.delta == 0
    with pytest.raises(InvalidInput, match="50 rounds"):
        learner.replay(taste_groups(51, 4, groups=2, items_per_group=2))
