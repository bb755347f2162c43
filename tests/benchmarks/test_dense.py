"""The parts of the dense benchmark compute the same thing, and say so when they do not."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import dense
from benchmarks.report import Disagreement
from benchmarks.stopwatch import Result
from diminuendo import SeededCoins, Setting
from diminuendo.learners.hedge.dense_replay import names_all
from diminuendo.learners.hedge.fi_dp import FiDpPaper
from diminuendo.randomness import SecretRandomness
from diminuendo.types import EMPTY_SLOT, Floats, Items

pytestmark = pytest.mark.slow

SIZE, ITEMS = 12, 70
SETTING = Setting(ITEMS, dense.SLOTS, 60, "full", 1.0, 1e-6)


def test_a_tiny_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PIECES": {ITEMS: SIZE},
        "LAPS": 3,
        "COMPARED": 1,
        "FEW": 100,
        "SEEDS": 10,
        "MANY": 400,
        "ROUNDS": 30,
        "MANY_LAPS": 3,
        "SPREADS": {"much": 8.0},
    }.items():
        monkeypatch.setattr(dense, name, value)
    replayed, drawn = dense.dense()
    assert [row[0] for row in replayed.rows] == [dense.OURS, dense.CHOICE, dense.TUNED, dense.SAXPY]
    assert set(replayed.numbers) == {"numpy, choice / ours", "numpy, tuned / ours", "ours / saxpy"}
    assert [row[0] for row in drawn.rows] == [dense.DRAWN, dense.LOOKED, dense.READ]


def test_competitors_that_do_something_else_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [dense.dense_people(SIZE, ITEMS, seed) for seed in range(2)]
    rows = [piece.table.values.reshape(SIZE, ITEMS) for piece in pieces]
    ours = FiDpPaper.for_setting(SETTING, coins=SeededCoins(1))
    slates = [ours.replay(piece) for piece in pieces]

    def check(timed: list[Items], shown: list[Items], seed: int) -> None:
        again = FiDpPaper.for_setting(SETTING, coins=SeededCoins(seed))
        dense._check_replay(pieces, rows, shown, Result("ours", answers=timed), ours, again)

    check(slates[1:], slates, 1)
    with pytest.raises(Disagreement, match="Two runs"):
        check(slates[:1], slates, 1)
    with pytest.raises(Disagreement, match="round by round"):
        check(slates[1:], slates, 2)
    learn = dense.PlainFiDp.learn

    def careless(plain: dense.PlainFiDp, slate: Items, chances: Floats) -> None:
        learn(plain, np.append(slate[:-2], [EMPTY_SLOT] * 2).astype(np.int32), chances)

    monkeypatch.setattr(dense.PlainFiDp, "learn", careless)
    with pytest.raises(Disagreement, match="Totals"):
        check(slates[1:], slates, 1)


def test_everybody_in_it_names_every_item() -> None:
    people = dense.dense_people(5, 70)
    assert names_all(people)
    assert (people.table.values > 0).all()


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
    classes = dense.uneven_urns(300, 4, 2.0)
    drawn = dense.draw_rounds(classes, 20, False, SecretRandomness(SeededCoins(1)))
    assert dense.read_all(classes.totals, drawn) == classes.totals[drawn, np.arange(4)].sum()
