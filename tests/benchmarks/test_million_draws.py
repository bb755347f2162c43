"""The benchmark of draws among a million items reads what it draws."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import million_draws
from diminuendo import SeededCoins
from diminuendo.randomness import SecretRandomness


@pytest.mark.slow
def test_a_tiny_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MANY": 400, "ROUNDS": 30, "MANY_LAPS": 3, "SPREADS": {"much": 8.0}}.items():
        monkeypatch.setattr(million_draws, name, value)
    (drawn,) = million_draws.million_draws()
    assert [row[0] for row in drawn.rows] == [million_draws.DRAWN, million_draws.READ]


def test_reads_are_of_the_items_asked_for() -> None:
    classes = million_draws.uneven_urns(300, 4, 2.0)
    drawn = million_draws.draw_rounds(classes, 20, SecretRandomness(SeededCoins(1)))
    assert million_draws.read_all(classes.totals, drawn) == classes.totals[drawn, np.arange(4)].sum()
