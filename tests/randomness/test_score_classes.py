"""ScoreClasses draw by exp(rate * total), and keep their books in order whatever happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededSource
from diminuendo._numba import kernel
from diminuendo.randomness.score_classes import (
    BASE,
    BITS,
    BOUND,
    CLASSES,
    SHIFT,
    TOP,
    UNTOUCHED,
    ScoreClasses,
    draw,
    grow,
    new_score_classes,
    retune,
)
from diminuendo.randomness.score_classes import probabilities as law_of
from diminuendo.randomness.words import WINDOW, SecretRandomness, SecretWords
from diminuendo.types import Ints
from tests.kit.slow_draws import draw_looking
from tests.kit.statistics import assert_follows, assert_rejects


@kernel
def grow_all(classes: ScoreClasses, expert: int, items: Ints, ticks: Ints) -> None:
    for i in range(len(items)):
        grow(classes, expert, items[i], ticks[i])


@kernel
def draw_many(classes: ScoreClasses, expert: int, out: Ints, secret: SecretWords) -> None:
    for i in range(len(out)):
        out[i] = draw(classes, expert, secret)


@kernel
def look_many(classes: ScoreClasses, expert: int, out: Ints, secret: SecretWords) -> None:
    for i in range(len(out)):
        out[i] = draw_looking(classes, expert, secret)


def draws_from(classes: ScoreClasses, expert: int, count: int, seed: int) -> Ints:
    secret = SecretRandomness(SeededSource(seed), size=20 * count)
    secret.refill()
    out = np.zeros(count, dtype=np.int64)
    draw_many(classes, expert, out, secret.view)
    assert out.min() >= 0, "too few words for this test"
    return out


def assert_books_in_order(classes: ScoreClasses) -> None:
    """Everything that `draw` relies on."""
    n, count = classes.totals.shape
    for expert in range(count):
        order, place, starts, marks = (
            classes.order[expert],
            classes.place[:, expert],
            classes.starts[expert],
            classes.marks[expert],
        )
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
        np.testing.assert_array_equal(order[place], np.arange(n))
        assert (np.diff(starts) >= 0).all()
        assert starts[0] == 0
        assert starts[marks[TOP] + 1] == n
        assert marks[TOP] < CLASSES
        totals = classes.totals[:, expert]
        assert (totals[order[: marks[UNTOUCHED]]] == 0).all()
        assert (totals[order[marks[UNTOUCHED] :]] > 0).all()
        raw = np.where(totals > 0, (totals >> marks[SHIFT]) + 1, 0)
        np.testing.assert_array_equal(
            np.searchsorted(starts, place, side="right") - 1, np.maximum(0, raw - marks[BASE])
        )
        bounds = classes.weights[expert][marks[TOP] - np.maximum(0, raw - marks[BASE])]
        assert marks[BOUND] == bounds.sum()
        reference = (marks[BASE] + marks[TOP]) << marks[SHIFT]
        weights = np.ldexp(np.exp(classes.rate[expert] * (totals - reference)), marks[BITS])
        assert (bounds >= weights).all(), "an upper bound on a weight does not hold"
        top = totals.argmax()
        assert weights[top] >= 0.8 * classes.weights[expert, 0] * np.exp(
            -max(0.2, (1 << marks[SHIFT]) * classes.rate[expert])
        )


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 12),
    steps=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 3_000)), max_size=120),
    rates=st.lists(st.sampled_from([1e-5, 1e-3, 0.01, 0.3, 1.0]), min_size=1, max_size=4),
)
def test_books_stay_in_order(n: int, steps: list[tuple[int, int]], rates: list[float]) -> None:
    classes = new_score_classes(n, 2, rates[0])
    for round_, rate in enumerate(rates):
        part = steps[round_ :: len(rates)]
        items = np.array([item % n for item, _ in part], dtype=np.int64)
        ticks = np.array([amount for _, amount in part], dtype=np.int64)
        grow_all(classes, 1, items, ticks)
        assert_books_in_order(classes)
        retune(classes, 1, rate)
        assert_books_in_order(classes)
    expected = np.zeros(n, dtype=np.int64)
    for item, amount in steps:
        expected[item % n] += amount
    np.testing.assert_array_equal(classes.totals[:, 1], expected)
    assert (classes.totals[:, 0] == 0).all()


@pytest.mark.parametrize("rate", [0.005, 0.01, 0.05])
@pytest.mark.parametrize("n", [2, 7, 60])
def test_draws_follow_the_law(rate: float, n: int) -> None:
    classes = new_score_classes(n, 1, rate)
    totals = np.linspace(0, 4 / rate, n).astype(np.int64)
    grow_all(classes, 0, np.arange(n)[totals > 0], totals[totals > 0])
    result = draws_from(classes, 0, 60_000, seed=n)
    law = law_of(classes, 0)
    np.testing.assert_allclose(law, np.exp(rate * totals) / np.exp(rate * totals).sum(), rtol=1e-12)
    assert_follows(result, law)
    nearby = np.exp(rate * 1.25 * totals)
    assert_rejects(result, nearby / nearby.sum())


def test_the_law_survives_growth_far_beyond_the_window() -> None:
    classes, rng = new_score_classes(9, 1, 0.5), np.random.default_rng(0)
    grow_all(
        classes, 0, rng.integers(0, 3, 4_000), rng.integers(1, 4, 4_000)
    )  # 0, 1, 2 run ahead by thousands of classes
    assert classes.marks[0, BASE] > CLASSES
    assert_books_in_order(classes)
    ahead = int(classes.totals[:, 0].max())
    for item, behind in ((3, 1), (4, 2), (5, 3)):
        grow_all(classes, 0, np.array([item]), np.array([ahead - behind - int(classes.totals[item, 0])]))
    assert_books_in_order(classes)
    result = draws_from(classes, 0, 40_000, seed=2)
    assert_follows(result, law_of(classes, 0))
    wrong = law_of(classes, 0) ** 1.1
    assert_rejects(result, wrong / wrong.sum())


@pytest.mark.parametrize("rate", [1e-3, 0.02, 0.5])
@pytest.mark.parametrize("bits", [None, 20, 6])
@pytest.mark.parametrize("window", [WINDOW, 1e-3])
def test_totals_that_need_not_be_known_would_change_nothing(
    rate: float, bits: int | None, window: float
) -> None:
    """Item for item and word for word: where classes are wide, narrow, far behind; with few and many bits."""
    rng = np.random.default_rng(1)
    for behind in (0, 40):  # so many items are far below the window of classes
        classes = new_score_classes(50, 1, rate, bits)
        gained = rng.integers(0, int(4 / rate) + 1, 50) * (rng.random(50) < 0.8)  # some are untouched
        gained[behind:] += int(300 / rate) * (behind > 0)
        grow_all(classes, 0, np.flatnonzero(gained), gained[gained > 0])
        result = []
        for way in (draw_many, look_many):
            secret = SecretRandomness(SeededSource(4), size=200_000, window=window)
            secret.refill()
            out = np.zeros(2_000, dtype=np.int64)
            way(classes, 0, out, secret.view)
            result.append((out.tolist(), secret.view.used.tolist(), secret.view.question.tolist()))
        assert result[0] == result[1]
        assert len(set(result[0][0])) > 4
        assert (classes.marks[0, BASE] > 0) == (behind > 0)


def test_what_fell_behind_is_not_taken_for_untouched() -> None:
    """Words that fall on the lowest class, which chance hardly ever does: its items weigh far less than its bound."""
    classes = new_score_classes(50, 1, 0.2 / 2**21)  # classes so narrow that words can fall on the lowest
    totals = np.where(np.arange(45) < 40, 3 << 21, 600 << 21)
    grow_all(classes, 0, np.arange(45), totals)  # and five are untouched
    assert classes.marks[0, BASE] > 0
    lowest = int(classes.starts[0, 1] * classes.weights[0, classes.marks[0, TOP]])
    points = classes.marks[0, BOUND] - 1 - np.arange(0, lowest, lowest // 200)
    for way in (draw_many, look_many):
        secret, out = SecretRandomness(SeededSource(1), size=1_000), np.zeros(150, dtype=np.int64)
        secret.refill()
        secret.view.words[: 2 * len(points) : 2] = points  # every other word is any
        way(classes, 0, out, secret.view)
        assert ((out >= 40) & (out < 45)).all()
