"""A picture of single runs."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from diminuendo.errors import InvalidInput
from diminuendo.simulate.figures.seeds import ROOM, beside, plot_seeds


def test_it_draws_every_run(tmp_path: Path) -> None:
    groups = {
        "clicks": {"epsilon 1": [0.9, 0.8, 0.95], "epsilon 0.1": [0.6]},
        "rewards": {"epsilon 1": [0.7, 0.7]},
    }
    drawn = plot_seeds(groups, tmp_path / "new" / "seeds.svg")
    assert drawn.read_text().count("<use") > 6, "six dots, and rings"
    empty: dict[str, dict[str, list[float]]] = {}
    for nothing in (empty, {"clicks": {"epsilon 1": list[float]()}}):
        with pytest.raises(InvalidInput, match="nothing to draw"):
            plot_seeds(nothing, tmp_path / "seeds.svg")


def test_dots_that_would_lie_on_each_other_are_moved_apart() -> None:
    assert beside(np.array([0.1, 0.5, 0.9]), 0.1).tolist() == [0.0, 0.0, 0.0]
    crowded = beside(np.full(5, 0.5), 0.1)
    assert len(set(crowded.tolist())) == 5
    runs = np.random.default_rng(0).normal(0.9, 0.01, 100)
    moved = beside(runs, 0.001)
    assert np.abs(moved).max() <= ROOM + 1e-9, "within their row, however many there are"
    places = sorted(zip(moved.tolist(), runs.tolist(), strict=True))
    apart = [b[1] - a[1] for a, b in itertools.pairwise(places) if a[0] == b[0]]
    assert sum(gap < 0.001 for gap in apart) < 5, "few of a hundred hide each other"
