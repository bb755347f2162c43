"""Rounding: its exact law in fractions, what follows from it, and that the program draws from it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.continuous import CappedSimplex, round_point
from diminuendo.errors import InvalidInput
from diminuendo.randomness import PublicCoins, SecretRandomness
from tests.kit.statistics import assert_follows, assert_rejects

POINTS = [
    (Fraction(1, 2), Fraction(1, 2), Fraction(1, 2), Fraction(1, 2)),  # adds up to 2
    (Fraction(3, 4), Fraction(1, 8), Fraction(1, 2), Fraction(5, 8)),  # adds up to 2
    (Fraction(1, 4), Fraction(1, 8), Fraction(1, 2)),  # less than 1
    (Fraction(1), Fraction(0), Fraction(7, 8), Fraction(1, 4), Fraction(3, 8)),  # some are whole already
]
Law = dict[frozenset[int], Fraction]


def exact_law(x: tuple[Fraction, ...]) -> Law:
    """Pivotal rounding as written in docs/maths/continuous.md, entry by entry in order, in exact arithmetic."""
    fractional = [a for a, value in enumerate(x) if value not in (0, 1)]
    if not fractional:
        return {frozenset(a for a, value in enumerate(x) if value == 1): Fraction(1)}
    if len(fractional) == 1:
        (a,) = fractional
        outcomes = [(x[a], {a: Fraction(1)}), (1 - x[a], {a: Fraction(0)})]
    else:
        a, b = fractional[:2]
        both = x[a] + x[b]
        if both <= 1:
            outcomes = [(x[a] / both, {a: both, b: Fraction(0)}), (x[b] / both, {a: Fraction(0), b: both})]
        else:
            up = (1 - x[b]) / (2 - both)
            outcomes = [(up, {a: Fraction(1), b: both - 1}), (1 - up, {a: both - 1, b: Fraction(1)})]
    law: Law = {}
    for odds, change in outcomes:
        if odds:
            for items, p in exact_law(tuple(change.get(i, value) for i, value in enumerate(x))).items():
                law[items] = law.get(items, Fraction(0)) + odds * p
    return law


@pytest.mark.parametrize("x", POINTS)
def test_each_item_is_shown_as_often_as_it_should(x: tuple[Fraction, ...]) -> None:
    law = exact_law(x)
    assert sum(law.values()) == 1
    for a, share in enumerate(x):
        assert sum(p for items, p in law.items() if a in items) == share
    total = sum(x)
    assert {len(items) for items in law} <= {int(total), -int(-total // 1)}


def coverage(items: frozenset[int]) -> Fraction:
    return Fraction(len({item // 2 for item in items}), 3)


def noisy_or(items: frozenset[int]) -> Fraction:
    missed = Fraction(1)
    for item in items:
        missed *= 1 - Fraction(item + 1, 8)
    return 1 - missed


def at_least_one_of_two(items: frozenset[int]) -> Fraction:
    return Fraction(bool(items & {0, 1}))


@pytest.mark.parametrize("f", [coverage, noisy_or, at_least_one_of_two])
@pytest.mark.parametrize("x", POINTS)
def test_rounding_is_no_worse_than_independent_draws(
    x: tuple[Fraction, ...], f: Callable[[Any], Fraction]
) -> None:
    """E f(S) is at least the mean over independent draws, in fractions: the sum over all subsets."""
    independent = Fraction(0)
    for chosen in itertools.product((0, 1), repeat=len(x)):
        odds = Fraction(1)
        for yes, share in zip(chosen, x, strict=True):
            odds *= share if yes else 1 - share
        independent += odds * f(frozenset(a for a, yes in enumerate(chosen) if yes))
    rounded = sum((p * f(items) for items, p in exact_law(x).items()), Fraction(0))
    assert rounded >= independent
    if f is at_least_one_of_two and sum(x[:2]) not in (x[0], x[1]):
        assert rounded > independent  # the two are played off against each other


@pytest.mark.parametrize("x", POINTS)
def test_the_program_draws_from_the_law(x: tuple[Fraction, ...]) -> None:
    law, coins = exact_law(x), PublicCoins(dim.SeededCoins(7), size=64)
    slots = max(1, -int(-sum(x) // 1))
    slates = [frozenset(round_point([float(v) for v in x], slots, coins)) for _ in range(20_000)]
    outcomes = [frozenset(s) for r in range(len(x) + 1) for s in itertools.combinations(range(len(x)), r)]
    place = {items: i for i, items in enumerate(outcomes)}
    drawn = [place[items] for items in slates]
    assert_follows(drawn, np.array([float(law.get(items, 0)) for items in outcomes]))
    apart = np.array(
        [np.prod([float(v if a in items else 1 - v) for a, v in enumerate(x)]) for items in outcomes]
    )
    assert_rejects(drawn, apart)  # independent draws have the same frequencies, item by item


def test_points_of_floats_give_full_slates() -> None:
    """Entries that add up to k only up to rounding still fill k slots, and never k + 1."""
    rng, coins = np.random.default_rng(2), PublicCoins(dim.SeededCoins(1))
    for _ in range(300):
        n = int(rng.integers(2, 30))
        k = int(rng.integers(1, n))
        x = np.asarray(CappedSimplex(n, k).project(rng.normal(1, 1, (1, n)) + k))[0]
        assert len(round_point(x, k, coins)) == k


def test_whole_points_stay() -> None:
    coins = PublicCoins(dim.SeededCoins(2))
    assert round_point([0.0, 1.0, 1.0], 2, coins) == (1, 2)
    assert round_point(np.zeros(3), 2, coins) == ()


@pytest.mark.parametrize(
    ("point", "slots", "coins", "said"),
    [
        ([0.5, 1.5], 2, PublicCoins(dim.SeededCoins(1)), r"\[0, 1\]"),
        ([0.5, np.nan], 2, PublicCoins(dim.SeededCoins(1)), r"\[0, 1\]"),
        ([[0.5]], 1, PublicCoins(dim.SeededCoins(1)), "row"),
        ([1.0, 1.0], 1, PublicCoins(dim.SeededCoins(1)), "more than the 1 slots"),
        ([1.0, 0.0], 3, PublicCoins(dim.SeededCoins(1)), "slots must be at most"),
        ([1.0, 0.0], 1, SecretRandomness(dim.SeededCoins(1)), "PublicCoins"),
    ],
)
def test_the_door(point: Any, slots: int, coins: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        round_point(point, slots, coins)
