"""The lazy expert: its coin is exact, its item has the law of Hedge, and it seldom draws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from diminuendo import SeededCoins
from diminuendo.errors import InvalidInput
from diminuendo.experts import lazy
from diminuendo.experts.lazy import Lazy
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness.exponential import survives
from diminuendo.randomness.ticks import TICKS
from diminuendo.types import Floats, Ints
from tests.kit.statistics import assert_follows, assert_rejects


def test_a_coin_survives_by_its_exponential() -> None:
    secret = SecretRandomness(SeededCoins(1))
    for rate, difference in ((0.25, -3), (1e-6, -700_000), (2.0, -1)):
        found = [int(survives(rate, difference, secret)) for _ in range(20_000)]
        yes = math.exp(rate * difference)
        assert_follows(found, np.array([1 - yes, yes]))
        assert_rejects(found, np.array([1 - 0.88 * yes, 0.88 * yes]))
    assert all(survives(0.5, 0, secret) for _ in range(1_000)), "nothing was lost"
    assert not any(survives(0.5, -1_000, secret) for _ in range(1_000))


def test_where_floats_cannot_decide_a_coin_is_still_fair() -> None:
    """A window as wide as this sends half of all coins to exact arithmetic."""
    secret = SecretRandomness(SeededCoins(2), window=0.4)
    found = [int(survives(0.1, -7, secret)) for _ in range(8_000)]
    yes = math.exp(-0.7)
    assert_follows(found, np.array([1 - yes, yes]))
    assert_rejects(found, np.array([1 - 0.93 * yes, 0.93 * yes]))


@pytest.mark.parametrize("difference", [1, -(1 << 62)])
def test_a_coin_that_gains_is_refused(difference: int) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        survives(0.1, difference, SecretRandomness(SeededCoins(1)))


class Told:
    """Coins and draws that fall as told: an item is drawn, or, with its number of items, the held one is kept."""

    def __init__(self, n: int) -> None:
        self.n, self.step, self.chance = n, 0, 1.0

    def select(self, scores: Ints, per_tick: float, secret: object) -> int:
        weights = np.exp(per_tick * (scores - scores.max()))
        self.chance *= float(weights[self.step] / weights.sum())
        return self.step

    def survives(self, per_tick: float, difference: int, secret: object) -> bool:
        kept, yes = self.step == self.n, math.exp(per_tick * difference)
        self.chance *= yes if kept else 1 - yes
        return kept


def exact_law(batches: list[list[list[float]]], rate: float, monkeypatch: pytest.MonkeyPatch) -> Floats:
    """The law of the item that the expert itself holds after these batches, along every path of coins and draws."""
    n, secret = len(batches[0][0]), SecretRandomness(SeededCoins(1))
    law = np.zeros(n)
    for path in itertools.product(range(n), *[range(n + 1)] * len(batches)):
        told, expert = Told(n), Lazy(n, rate)
        monkeypatch.setattr(lazy, "select", told.select)
        monkeypatch.setattr(lazy, "survives", told.survives)
        told.step = path[0]
        item = expert.draw(secret)
        for batch, told.step in zip(batches, path[1:], strict=True):
            for gains in batch:
                expert.learn(np.array(gains), item)
            item = expert.draw(secret)
        law[item] += told.chance
    return law


def test_its_item_has_the_law_of_hedge(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    for rate in (0.3, 2.0):
        batches = [random.random((size, 3)).tolist() for size in (1, 3, 2)]
        batches[1][0] = [math.nan, 7.0, -1.0]
        total = np.zeros(3)
        for end, batch in enumerate(batches, start=1):
            for gains in batch:
                total += np.floor(np.nan_to_num(gains, nan=0.0).clip(0, 1) * TICKS) / TICKS
            weights = np.exp(rate * total)
            law = exact_law(batches[:end], rate, monkeypatch)
            np.testing.assert_allclose(law, weights / weights.sum(), rtol=1e-12)


def test_if_all_items_were_kept_alike_the_law_would_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(held: int, batch: Ints, rounds: int, ticks: int, rate: float, secret: SecretRandomness) -> bool:
        return bool(vars(lazy)["survives"](rate, -ticks, secret))  # as it is patched

    monkeypatch.setattr(lazy, "keeps", alike)
    law = exact_law([[[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]], 1.0, monkeypatch)
    weights = np.exp([2.0, 0.0, 0.0])
    assert abs(law[0] - weights[0] / weights.sum()) > 0.01


def test_it_seldom_draws() -> None:
    """An item that gains nothing is kept with probability exp(-2 rate); else it is another one, but for one in N."""
    n, rate, drawn = 1_000, 0.02, []
    secret, expert = SecretRandomness(SeededCoins(3)), Lazy(n, rate)
    for _ in range(12_000):
        drawn.append(expert.draw(secret))
        expert.learn(np.zeros(n))
    changes = (np.diff(drawn) != 0).astype(int)
    for lost, check in ((2, assert_follows), (1.5, assert_rejects)):
        moves = -math.expm1(-lost * rate) * (1 - 1 / n)
        check(changes, np.array([1 - moves, moves]))
