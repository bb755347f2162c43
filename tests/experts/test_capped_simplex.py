"""Leaders on the capped simplex: the maximum they claim to be, what a step costs, and the law of slates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from diminuendo import SeededSource
from diminuendo._numba import kernel
from diminuendo.experts.capped_simplex import (
    ONE,
    draw_pivotal,
    leader,
    running,
    spread,
    step_cost,
)
from diminuendo.randomness.shares import GuideTable, guided
from diminuendo.randomness.words import PublicSource, PublicWords, begin, undo
from diminuendo.types import Floats, Ints, Items
from tests.kit.statistics import assert_follows, assert_rejects

SIZES = [(6, 3), (5, 5), (8, 1), (40, 7), (2, 1)]


def value(sums: Floats, x: Floats, rate: float) -> float:
    """What a leader maximises, written out."""
    positive = x[x > 0]
    return float(sums @ x - (positive @ np.log(positive) + spread(len(sums), round(x.sum()))) / rate)


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("rate", [0.01, 1.0, 30.0])
def test_a_leader_is_the_best_point(n: int, k: int, rate: float) -> None:
    random = np.random.default_rng(n * k)
    sums = random.normal(size=n) * 3
    x, best = leader(sums, k, rate)
    assert x.sum() == pytest.approx(k, rel=1e-12)
    assert ((x >= 0) & (x <= 1)).all()
    assert best == pytest.approx(value(sums, x, rate), rel=1e-9)
    for _ in range(300):  # towards a vertex, and a little in any direction that keeps the sum
        vertex = np.zeros(n)
        vertex[random.choice(n, k, replace=False)] = 1.0
        aside = np.clip(x + 1e-3 * random.normal(size=n), 0, 1)
        for other in (0.9 * x + 0.1 * vertex, vertex, aside * k / aside.sum()):
            if other.max() <= 1:
                assert value(sums, other, rate) <= best + 1e-9


def test_sums_far_apart_do_no_harm() -> None:
    x, _ = leader(np.array([1e9, 5.0, -1e9, 4.0, 0.0]), 2, 1.0)
    assert x.sum() == pytest.approx(2.0)
    assert x[0] == 1.0
    np.testing.assert_allclose(x[[1, 3, 4]], np.exp([5, 4, 0]) / np.exp([5, 4, 0]).sum())


def test_a_step_costs_no_more_than_is_proved() -> None:
    """docs/maths/osm.md, Lemma J4: at most rate k (range of the step)^2 / 8; and some steps cost nearly that."""
    random = np.random.default_rng(1)
    worst = 0.0
    for _ in range(400):
        n, rate = int(random.integers(2, 9)), float(10 ** random.uniform(-2, 1))
        k = int(random.integers(1, n))
        sums, step = random.normal(size=n) / rate, random.random(n) * float(10 ** random.uniform(-1, 1))
        cost = step_cost(sums, step, k, rate)
        most = rate * k * (step.max() - step.min()) ** 2 / 8
        assert 0 <= cost <= most + 1e-9
        worst = max(worst, cost / most)
    assert worst > 0.5


@pytest.mark.parametrize("rate", [0.1, 1.0, 5.0])
def test_noise_costs_no_more_than_is_proved(rate: float) -> None:
    """Lemma R5: on average at most rate k sigma^2 / 2, here for N = 3 by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    for k, sums in ((1, [0.0, 0.0, 0.0]), (2, [0.3, -0.2, 0.1])):
        mean = sum(
            float(np.prod(weights[list(places)])) * step_cost(np.array(sums), nodes[list(places)], k, rate)
            for places in itertools.product(range(12), repeat=3)
        )
        assert 0 < mean <= rate * k / 2


@pytest.mark.parametrize(("n", "k"), [*SIZES, (1000, 3)])
def test_running_sums_are_whole_and_complete(n: int, k: int) -> None:
    random = np.random.default_rng(n)
    for scale in (0.0, 1.0, 100.0):
        x, _ = leader(random.normal(size=n) * scale, k, 1.0)
        ends = running(x, k)
        units = np.diff(ends)
        assert ends[-1] == k * ONE
        assert ((units >= 0) & (units <= ONE)).all()
        np.testing.assert_allclose(units / ONE, x, atol=1e-9)


# Slates.


def in_order(x: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """Pivotal rounding item by item, as the slow and obvious program would, in exact arithmetic."""
    laws: dict[tuple[tuple[int, ...], int, Fraction], Fraction] = {((), -1, Fraction(0)): Fraction(1)}
    for item, share in enumerate(x):
        following: dict[tuple[tuple[int, ...], int, Fraction], Fraction] = {}
        for (chosen, open_, rest), odds in laws.items():
            both = rest + share
            if both < 1:
                outcomes = [(rest, chosen, open_, both), (share, chosen, item, both)]
                whole = both
            else:
                outcomes = [
                    (1 - share, (*chosen, open_), item, both - 1),
                    (1 - rest, (*chosen, item), open_, both - 1),
                ]
                whole = 2 - both
            if whole == 0:  # nothing yet, or both are whole
                outcomes, whole = (
                    [(Fraction(1), (*chosen, item), open_, both - 1)] if both else [],
                    Fraction(1),
                )
                outcomes = outcomes or [(Fraction(1), chosen, open_, both)]
            for weight, slate, left, value_ in outcomes:
                if weight:
                    key = (slate, left, value_)
                    following[key] = following.get(key, Fraction(0)) + odds * weight / whole
        laws = following
    slates: dict[tuple[int, ...], Fraction] = {}
    for (chosen, _, rest), odds in laws.items():
        assert rest == 0
        slates[tuple(sorted(chosen))] = slates.get(tuple(sorted(chosen)), Fraction(0)) + odds
    return slates


def systematic(x: list[Fraction]) -> dict[tuple[int, ...], Fraction]:
    """The same shares by one shift of a comb: another law, which rounding must not be mistaken for."""
    cells, ends = 840, [Fraction(0), *itertools.accumulate(x)]
    law: dict[tuple[int, ...], Fraction] = {}
    for cell in range(cells):
        shift = Fraction(2 * cell + 1, 2 * cells)
        slate = tuple(
            a for a in range(len(x)) if math.floor(ends[a + 1] - shift) > math.floor(ends[a] - shift)
        )
        law[slate] = law.get(slate, Fraction(0)) + Fraction(1, cells)
    return law


@kernel
def _many(guide: GuideTable, rows: Items, done: int, rng: PublicWords) -> int:
    while done < rows.shape[0]:
        begin(rng)
        if not draw_pivotal(guide, rows[done], rng):
            undo(rng)
            break
        done += 1
    return done


def draws(ends: Ints, slots: int, count: int) -> Items:
    rng, rows, done = PublicSource(SeededSource(5)), np.zeros((count, slots), dtype=np.int32), 0
    guide = guided(ends[:, None])
    while (done := _many(guide, rows, done, rng.view)) < count:
        rng.resume()
    return rows


POINTS = [
    [Fraction(a, 8) for a in (4, 4, 4, 4)],
    [Fraction(a, 8) for a in (7, 5, 2, 1, 6, 3)],
    [Fraction(a, 8) for a in (8, 0, 5, 2, 0, 3, 6)],
    [Fraction(a, 8) for a in (1, 1, 2, 3, 1)],
    [Fraction(1)] * 3,
]


@pytest.mark.parametrize("x", POINTS, ids=str)
def test_slates_follow_pivotal_rounding(x: list[Fraction]) -> None:
    law, slots = in_order(x), int(sum(x))
    for item, share in enumerate(x):
        assert sum((odds for slate, odds in law.items() if item in slate), Fraction(0)) == share
    ends = np.array([int(ONE * end) for end in itertools.accumulate(x, initial=Fraction(0))])
    rows = np.sort(draws(ends, slots, 40_000), axis=1)
    assert (np.diff(rows, axis=1) > 0).all(), "different items"
    names = sorted(set(law) | set(systematic(x)))
    result = [names.index(tuple(row)) for row in rows.tolist()]
    assert_follows(result, np.array([float(law.get(name, 0)) for name in names]))
    if slots > 1 and len(law) > 1:  # with one slot there is only one law
        assert_rejects(result, np.array([float(systematic(x).get(name, 0)) for name in names]))
