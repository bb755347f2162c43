"""Regret over T: the fitted powers, and what is drawn."""

from __future__ import annotations

import importlib

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from diminuendo.errors import InvalidInput
from diminuendo.offline import ONE_MINUS_1_OVER_E
from diminuendo.simulate import figures
from diminuendo.simulate.figures.horizons import Runs, draw_regret, exponent
from diminuendo.simulate.figures.style import COLOURS, FAINT, panel, style
from diminuendo.types import Floats

HORIZONS = [100, 1_000, 10_000]


def powers(*of: float) -> Floats:
    """A row 3 T^a for each power a."""
    return np.array([[3.0 * horizon**a for horizon in HORIZONS] for a in of])


def test_a_power_of_t_is_found() -> None:
    for power in (0.5, 2 / 3, 0.75, 1.0):
        assert exponent(HORIZONS, powers(power)[0])[0] == pytest.approx(power)


def test_the_interval_of_an_exponent_is_that_of_the_runs() -> None:
    result, half = exponent(HORIZONS, powers(0.4, 0.6))
    # Two runs: Student's t with one degree of freedom, tan(.475 pi), times the standard error, .1.
    assert result == pytest.approx(0.5)
    assert half == pytest.approx(0.1 * np.tan(0.475 * np.pi))
    assert np.isnan(exponent(HORIZONS, powers(0.5))[1])


@pytest.mark.parametrize("least", [0.0, -1.0, np.nan])
def test_a_regret_that_is_not_positive_has_no_exponent(least: float) -> None:
    with pytest.raises(InvalidInput, match="harder stream"):
        exponent(HORIZONS, [[least, 10.0, 20.0], [5.0, 10.0, 20.0]])


@pytest.mark.parametrize("horizons", [[100], [100, 100, 100], [100, 1_000]])
def test_an_exponent_needs_horizons_and_as_many_columns(horizons: list[int]) -> None:
    with pytest.raises(InvalidInput, match="two different horizons"):
        exponent(horizons, powers(0.5))


def test_means_bounds_and_what_is_trivial_are_drawn() -> None:
    runs = {
        "tight": Runs(powers(0.5, 0.6), (powers(0.7)[0]).tolist()),
        "one run": Runs(powers(0.8), (powers(0.9)[0]).tolist()),
    }
    with style():
        _, axes = panel()
        draw_regret(axes, HORIZONS, runs)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    drawn = {
        (to_hex(line.get_color()), str(line.get_linestyle())): np.asarray(line.get_ydata(), dtype=np.float64)
        for line in axes.lines
    }
    expected = {(to_hex(FAINT), ":"): ONE_MINUS_1_OVER_E * np.array(HORIZONS)}
    for colour, made in zip(COLOURS, runs.values(), strict=False):
        expected[to_hex(colour), "-"] = np.asarray(made.regret).mean(axis=0)
        expected[to_hex(colour), "--"] = np.array(made.bound)
    assert drawn.keys() == expected.keys()
    for line, values in expected.items():
        np.testing.assert_allclose(drawn[line], values)
    assert len(axes.collections) == 1, "a band where there are several runs"
    assert {text.get_text() for text in axes.texts} == {
        "(1 - 1/e) T",
        "tight",
        "tight: bound",
        "one run",
        "one run: bound",
    }


def test_figures_leave_the_backend_of_a_notebook_alone() -> None:
    before = mpl.get_backend()
    try:
        mpl.use("svg")
        importlib.reload(figures)
        assert mpl.get_backend() == "svg"
    finally:
        mpl.use(before)
