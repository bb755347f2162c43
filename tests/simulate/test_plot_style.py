"""How pictures look: names that do not touch, bands that are Student's."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from diminuendo.simulate.figures.style import (
    COLOURS,
    KNOWN,
    LineStyle,
    line_styles,
    panel,
    short,
    spread,
    style,
)
from diminuendo.simulate.table import mean_and_band


def test_no_two_learners_look_alike() -> None:
    names = ["private", "paper", "fi-dp", "nonprivate", "random", *"abcdefghij"]
    result = line_styles(names)
    assert len(set(result.values())) == len(names)
    assert len({(look.marker, look.line) for look in result.values()}) == len(names), "also without colours"
    assert line_styles(["x", "private"])["private"] == KNOWN["private"] == LineStyle(COLOURS[0], "o", "-")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_names_stand_apart_and_near_their_lines(at: list[float]) -> None:
    apart, wished = 0.1, sorted(at)
    result = spread(wished, apart, 0.0, 1.0)
    assert len(result) == len(at)
    assert all(b - a >= apart - 1e-9 for a, b in itertools.pairwise(result))
    assert result[0] >= -1e-9
    assert result[-1] <= 1 + 1e-9
    if all(b - a >= apart for a, b in itertools.pairwise(wished)):
        np.testing.assert_allclose(result, wished, atol=1e-12)
    assert max(abs(a - b) for a, b in zip(result, wished, strict=True)) <= apart * len(at)


def test_bands_are_students() -> None:
    runs = np.random.default_rng(1).normal(size=(7, 3))
    mean, half = mean_and_band(runs)
    low, high = stats.t.interval(0.95, 6, loc=runs.mean(axis=0), scale=stats.sem(runs, axis=0))
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-12)
    assert np.isnan(mean_and_band(runs[:1])[1]).all(), "one run has no band"


def test_names_are_short_and_not_maths() -> None:
    assert short("a\x00b\n c") == "a b c"
    assert short("x" * 40) == "x" * 29 + "…"
    with style():
        figure, axes = panel()
        axes.set_title("$\\frac{$")
        figure.draw_without_rendering()
