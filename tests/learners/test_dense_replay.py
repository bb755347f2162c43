"""Replay in blocks, for people who name every item, is the ordinary replay: every slate, every number, every word."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from diminuendo import BestMatch, NoisyOr, People, SeededCoins
from diminuendo.learners.hedge import fi_dp
from diminuendo.learners.hedge.dense_replay import FEWEST_ITEMS, names_all
from diminuendo.learners.hedge.fi_dp import FiDp, StreeterGolovin
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.deferred_gains import LONGEST, SHORTEST, TILE
from diminuendo.randomness.score_classes import BASE, CLASSES
from diminuendo.randomness.words import USED, SecretRandomness
from diminuendo.types import Floats, Items


def chances(people: int, items: int, seed: int = 0) -> Floats:
    """Above 0 everywhere; some items are wanted more than others."""
    rng = np.random.default_rng(seed)
    return rng.beta(1, 2, items) * (1.0 - rng.random((people, items)))


def full(rows: Floats) -> People:
    """Every row holds every item, those with chance 0 too."""
    people, items = rows.shape
    columns = np.tile(np.arange(items, dtype=np.int32), people)
    starts = np.arange(people + 1) * items
    return People(NoisyOr(), sparse.csr_array((rows.ravel(), columns, starts), shape=rows.shape))


def replays(
    way: bool,
    monkeypatch: pytest.MonkeyPatch,
    people: People,
    slots: int,
    rate: float,
    cuts: tuple[int, ...] = (),
    words: int = 1 << 12,
    window: float | None = None,
) -> tuple[Items, Any]:
    """The slates, and the learner: in blocks, or the ordinary way."""
    learner = StreeterGolovin(people.n_items, slots, rate=rate, coins=SeededCoins(5))
    learner._secret = SecretRandomness(learner.coins, words, *([] if window is None else [window]))
    monkeypatch.setattr(fi_dp, "names_all", lambda people: way)
    edges = (0, *cuts, len(people))
    slates = [learner.replay(people[first:last]) for first, last in pairwise(edges)]
    return np.concatenate(slates), learner


def assert_same(ordinary: tuple[Items, Any], blocks: tuple[Items, Any]) -> None:
    np.testing.assert_array_equal(ordinary[0], blocks[0])
    (first, second) = ordinary[1], blocks[1]
    for part in ("totals", "place", "order", "starts", "marks"):
        np.testing.assert_array_equal(
            getattr(first._experts.classes, part), getattr(second._experts.classes, part), part
        )
    np.testing.assert_array_equal(first._experts.best, second._experts.best)
    np.testing.assert_array_equal(first._experts.own, second._experts.own)
    assert first._secret.view.used[USED] == second._secret.view.used[USED]
    assert first.snapshot() == second.snapshot()


def agree(monkeypatch: pytest.MonkeyPatch, people: People, slots: int, rate: float, **more: Any) -> Any:
    """Both ways come to the same; the learner that went in blocks."""
    ordinary, blocks = (replays(way, monkeypatch, people, slots, rate, **more) for way in (False, True))
    assert ordinary[1]._waiting is None
    assert blocks[1]._waiting is not None
    assert_same(ordinary, blocks)
    return blocks[1]


@pytest.mark.parametrize("rate", [1e-4, 3e-3, 0.03, 0.5, 100.0])
@pytest.mark.parametrize(("items", "slots"), [(5, 4), (TILE, 3), (2 * TILE + 3, 6)])
def test_blocks_are_the_ordinary_replay(
    rate: float, items: int, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether classes are wide or narrow, few items or several tiles, and wherever the replay is cut."""
    people = full(chances(3 * LONGEST + 7, items))
    learner = agree(monkeypatch, people, slots, rate, cuts=(1, 2, SHORTEST, LONGEST + 1, 3 * LONGEST))
    assert learner.rounds == len(people)


def test_classes_that_slide_out_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = agree(monkeypatch, full(chances(400, 40)), 2, 1.0)
    fast = agree(monkeypatch, full(chances(400, 40)), 2, 1_000.0)
    assert learner._experts.classes.marks[0, BASE] < fast._experts.classes.marks[0, BASE]
    assert fast._experts.classes.marks[0, BASE] > CLASSES // 2


def test_long_blocks_come_about_and_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare little."""
    people = full(chances(300, 100))
    assert agree(monkeypatch, people, 3, 1e-4)._waiting.ahead[0] == LONGEST
    assert agree(monkeypatch, people, 3, 1.0)._waiting.ahead[0] == SHORTEST


def test_words_that_run_out_and_questions_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that must be resumed, in the midst of a block, begins again with the same words."""
    people, answers = full(chances(90, 70)), list[int]()
    answer = SecretRandomness._answer

    def counted(secret: SecretRandomness) -> None:
        answers.append(1)
        answer(secret)

    monkeypatch.setattr(SecretRandomness, "_answer", counted)
    for rate in (1e-3, 0.3):
        _, learner = replays(True, monkeypatch, people, 5, rate)
        assert not answers
        for window in (None, 0.05):
            again = agree(monkeypatch, people, 5, rate, words=8, window=window)
            np.testing.assert_array_equal(again._experts.classes.totals, learner._experts.classes.totals)
        assert answers, "no question came up"
        answers.clear()


def test_chances_of_zero_and_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chances(150, 90)
    rng = np.random.default_rng(3)
    rows[rng.random(rows.shape) < 0.2] = 0.0
    rows[rng.random(rows.shape) < 0.05] = 1.0
    rows[20:30] = 1.0
    rows[:, 7] = 0.0  # never touched
    rows[:, 8] = 1e-300
    rows[:, 9] = np.nextafter(2.0**-20, 0.0)  # just below a tick
    for rate in (1e-4, 0.05):
        learner = agree(monkeypatch, full(rows), 4, rate)
        assert (learner._experts.classes.totals[7:10] == 0).all()


def test_people_who_name_everything_among_those_who_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chances(200, 80)
    rng = np.random.default_rng(4)
    for some in (slice(0, 3), slice(40, 45), slice(90, 91), slice(120, 160)):
        rows[some][rng.random(rows[some].shape) < 0.5] = 0.0
    rows[41] = 0.0  # who wants nothing
    people = People(NoisyOr(), rows)
    assert (np.diff(people.table.starts) < 80).sum() > 40
    for rate in (1e-4, 0.05):
        agree(monkeypatch, people, 4, rate, cuts=(42, 130))


def test_draws_are_paid_for_in_blocks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    people = full(chances(150, FEWEST_ITEMS))

    def shown(way: bool) -> Items:
        monkeypatch.setattr(fi_dp, "names_all", lambda people: way)
        ledger, coins = Ledger(Budget(epsilon=50.0, delta=1e-6)), SeededCoins(2)
        learner = FiDp(
            FEWEST_ITEMS, 3, horizon=300, rate=0.05, epsilon=1.0, delta=1e-6, ledger=ledger, coins=coins
        )
        slates = learner.replay(people)
        assert learner._draw_budget.paid[0] < 160, "no more is paid for than the next stretch"
        assert len(ledger.charges) == 50
        return slates

    np.testing.assert_array_equal(shown(False), shown(True))


def test_who_goes_in_blocks() -> None:
    rows = chances(12, FEWEST_ITEMS)
    assert names_all(full(rows))
    assert not names_all(full(rows[:, 1:])), "few items"
    assert not names_all(People(BestMatch(), rows)), "another family"
    assert not names_all(full(rows)[:0])
    rows[:7] = 0.0
    assert not names_all(People(NoisyOr(), rows)), "most people name little"
    assert names_all(People(NoisyOr(), rows[2:])), "every other one names all"
    learner: Any = StreeterGolovin(FEWEST_ITEMS, 2, rate=0.1, coins=SeededCoins(1))
    learner.replay(People(NoisyOr(), rows))
    assert learner._waiting is None
    learner.replay(full(rows))
    assert repr(learner._waiting) == "<Waiting>"
