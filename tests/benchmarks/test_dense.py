"""The parts of the dense benchmark compute the same thing, and say so when they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import dense
from benchmarks.report import Disagreement
from diminuendo import SeededCoins
from diminuendo.learners.dense_replay import names_all
from diminuendo.learners.fi_dp import FiDpPaper
from diminuendo.randomness import SecretRandomness
from diminuendo.types import EMPTY_SLOT


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIECES": {70: 12},
        "LAPS": 3,
        "COMPARED": 2,
        "HORIZON": 60,
        "SEEDS": 20,
        "MANY": 400,
        "ROUNDS": 30,
        "MANY_LAPS": 3,
    }.items():
        monkeypatch.setattr(dense, name, value)


@pytest.mark.usefixtures("tiny")
def test_a_tiny_run(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = list(dense.dense())
    assert [len(part.rows) for part in parts] == [4, 3, 3]
    assert set(parts[0].numbers) == {"numpy, choice / ours", "numpy, tuned / ours", "ours / saxpy"}
    assert all(part.numbers["ours / floor"] > 0 for part in parts[1:])
    learn = dense.PlainFiDp.learn

    def careless(plain: Any, slate: Any, chances: Any) -> None:
        learn(plain, np.full_like(slate, EMPTY_SLOT), chances)  # as if nothing were shown before

    monkeypatch.setattr(dense.PlainFiDp, "learn", careless)
    with pytest.raises(Disagreement, match="Totals"):
        dense._replayed(70, 12, {})
    monkeypatch.undo()


def test_everybody_in_it_names_every_item() -> None:
    people = dense.dense_people(5, 70)
    assert names_all(people)
    assert (people.table.values > 0).all()


@pytest.mark.usefixtures("tiny")
def test_slates_of_another_run_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = FiDpPaper.replay
    monkeypatch.setattr(FiDpPaper, "replay", lambda learner, people: replay(learner, people)[::-1])
    with pytest.raises(Disagreement, match="round by round"):
        dense._replayed(70, 12, {})


def test_numpy_learns_what_saxpys_add_but_for_what_is_shown() -> None:
    rows = dense.dense_people(6, 9).table.values.reshape(6, 9)
    plain = {tuned: dense.PlainFiDp(9, 3, 0.1, 0, tuned) for tuned in (False, True)}
    slates = plain[False].replay(rows)
    for slate, chances in zip(slates, rows, strict=True):
        plain[True].learn(slate, chances)
    np.testing.assert_allclose(plain[True].totals, plain[False].totals, rtol=1e-12)
    factors = np.array(
        [dense.factors_of(slate, chances) for slate, chances in zip(slates, rows, strict=True)]
    )
    floor = np.zeros((3, 9))
    dense.saxpy(rows, factors, floor)
    for slot in range(3):
        for slate, chances, factor in zip(slates, rows, factors, strict=True):
            before = [item for item in slate[:slot] if item != EMPTY_SLOT]
            floor[slot, before] -= factor[slot] * chances[before]
    np.testing.assert_allclose(floor, plain[False].totals, atol=1e-12)


def test_reads_are_of_the_items_asked_for() -> None:
    urns = dense.uneven_urns(300, 4, 2.0)
    drawn = dense.draw_rounds(urns, 20, False, SecretRandomness(SeededCoins(1)))
    assert dense.read_all(urns.totals, drawn) == urns.totals[drawn, np.arange(4)].sum()
