"""A picture of single runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from diminuendo.errors import InvalidInput
from diminuendo.simulate.figures.seeds import plot_seeds


def test_it_draws_every_run(tmp_path: Path) -> None:
    groups = {
        "clicks": {"epsilon 1": [0.9, 0.8, 0.95], "epsilon 0.1": [0.6]},
        "payoffs": {"epsilon 1": [0.7, 0.7]},
    }
    drawn = plot_seeds(groups, tmp_path / "new" / "seeds.svg")
    assert drawn.read_text().count("<use") > 6, "six dots, and rings"
    empty: dict[str, dict[str, list[float]]] = {}
    for nothing in (empty, {"clicks": {"epsilon 1": list[float]()}}):
        with pytest.raises(InvalidInput, match="nothing to draw"):
            plot_seeds(nothing, tmp_path / "seeds.svg")
