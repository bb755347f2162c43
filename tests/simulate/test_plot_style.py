"""How pictures look: colours that everybody can tell apart, names that do not touch, bands that are Student's."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
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
from diminuendo.types import Floats

# Machado, Oliveira & Fernandes (2009), table 1, severity 1: linear RGB as seen without one kind of cone.
SEEN = {
    "by everybody": np.eye(3),
    "without red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "without green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "without blue cones": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
CLEARLY_APART = 10.0
"""In CIE 1976 Lab, where about 2.3 is the least difference that can be noticed (Mahy and others 1994)."""


def lab(colour: str, seen: Floats) -> Floats:
    """A colour as CIE Lab (white point D65), after what such eyes make of it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(seen @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(colours: list[str]) -> float:
    """The least difference between two of them in anybody's eyes."""
    pairs = itertools.product(itertools.combinations(dict.fromkeys(colours), 2), SEEN.values())
    return min(float(np.linalg.norm(lab(one, seen) - lab(other, seen))) for (one, other), seen in pairs)


def test_everybody_can_tell_learners_apart() -> None:
    assert closest([*COLOURS, KNOWN["random"].colour]) > CLEARLY_APART
    assert closest(["#d62728", "#2ca02c", "#8c564b"]) < CLEARLY_APART, (
        "red, green and brown are not for everybody"
    )


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
