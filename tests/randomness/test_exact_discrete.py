"""Discrete noise is exact: every chance that makes it up is compared with its law in many digits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from diminuendo import SystemCoins
from diminuendo.randomness import SecretRandomness, exact_discrete, noise
from diminuendo.randomness.exact_discrete import (
    SecretNumbers,
    decays,
    gaussian_number,
    laplace_number,
)
from tests.kit.statistics import ALPHA


class Words:
    """In the place of secret randomness: words that were decided beforehand."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, count: int) -> np.ndarray:
        assert count >= 16
        return np.array(self.words[::-1], dtype=np.uint64)  # they are read from the end


def test_numbers_below_a_bound_are_equally_likely() -> None:
    """Each of 2^bits beginnings gives itself, or is drawn anew: so what is below the bound comes equally often."""
    for bound in (1, 2, 3, 5, 8):
        bits = (bound - 1).bit_length()
        for word in range(1 << bits):
            high = word | 0xABC << 40  # what is above the bits says nothing
            numbers = SecretNumbers(Words(high, 0), 1)  # type: ignore[arg-type]
            assert numbers.below(bound) == (word if word < bound else 0)
    large = SecretNumbers(Words(3, 7, 1 << 63, 9), 1)  # type: ignore[arg-type]
    assert large.below(1 << 70) == 3 << 64 | 7, "two words make one number"
    assert large.below((1 << 66) - 1) == 0 << 64 | 9


def lengths(part: int, whole: int, most: int) -> Iterator[tuple[int, bool, Fraction]]:
    """For each number of times that the question is answered with yes: what `decays` says, and the chance of that."""
    for yes in range(part == whole, most):  # of chance 1 nobody says no
        asked = list[int]()

        def below(bound: int, asked: list[int] = asked, yes: int = yes) -> int:
            asked.append(bound)
            return 0 if len(asked) <= yes else bound - 1

        said = decays(below, part, whole)
        chance = Fraction(1)
        for number, bound in enumerate(asked):
            chance *= Fraction(part, bound) if number < yes else 1 - Fraction(part, bound)
        yield len(asked), said, chance


@pytest.mark.parametrize(("part", "whole"), [(1, 1), (1, 2), (2, 3), (999, 1000), (1, 10**30)])
def test_decay_has_the_chance_of_an_exponential(part: int, whole: int) -> None:
    found = list(lengths(part, whole, 40))
    assert [asked for asked, _, _ in found] == list(range(1 + (part == whole), 41)), "each length once"
    with mpmath.workdps(40):
        yes = sum(mpmath.mpf(c.numerator) / c.denominator for _, said, c in found if said)
        assert abs(yes - mpmath.exp(-mpmath.mpf(part) / whole)) < mpmath.mpf(10) ** -38
        wrong = sum(mpmath.mpf(c.numerator) / c.denominator for _, said, c in found if not said)
        assert abs(wrong - mpmath.exp(-mpmath.mpf(part) / whole)) > mpmath.mpf(10) ** -3
        assert abs(yes + wrong - 1) < mpmath.mpf(10) ** -38


def test_larger_exponents_are_cut_into_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Fraction]()

    def always(below: object, part: int, whole: int) -> bool:
        asked.append(Fraction(part, whole))
        return True

    monkeypatch.setattr(exact_discrete, "_decays", always)
    assert decays(lambda bound: 0, 17, 5)
    assert sum(asked) == Fraction(17, 5)
    assert all(part <= 1 for part in asked)
    monkeypatch.setattr(exact_discrete, "_decays", lambda *_: False)
    assert not decays(lambda bound: 0, 17, 5)


def one_pass(
    make: Callable[[Callable[[int], int]], int], patch: pytest.MonkeyPatch, most: int
) -> dict[int, mpmath.mpf]:
    """With what chance each number comes out before anything is drawn anew: by all ways through the draws."""

    class AnewError(Exception):
        pass

    found: dict[int, mpmath.mpf] = {}
    open_ways: list[list[int]] = [[]]
    while open_ways:
        way, chance, begun = open_ways.pop(), mpmath.mpf(1), 0

        def uniform(bound: int, taken: list[int]) -> int:
            nonlocal chance, begun
            begun += bound > 2  # a number is begun with a draw below the numerator of the scale
            if begun > 1:
                raise AnewError
            chance /= bound
            return next_of(bound, taken)

        def decayed(part: int, whole: int, taken: list[int]) -> bool:
            nonlocal chance
            yes = bool(next_of(2, taken))
            kept = mpmath.exp(-mpmath.mpf(part) / whole)
            chance *= kept if yes else 1 - kept
            return yes

        def next_of(many: int, taken: list[int], way: list[int] = way) -> int:
            if len(taken) == len(way):
                if len(taken) < most:
                    open_ways.extend([*taken, other] for other in range(1, many))
                way.append(0)
            taken.append(way[len(taken)])
            return taken[-1]

        taken = list[int]()

        def asked(below: object, part: int, whole: int, taken: list[int] = taken) -> bool:
            return decayed(part, whole, taken)

        def drawn(bound: int, taken: list[int] = taken) -> int:
            return uniform(bound, taken)

        patch.setattr(exact_discrete, "_decays", asked)
        try:
            number = make(drawn)
        except AnewError:
            continue
        found[number] = found.get(number, mpmath.mpf(0)) + chance
    return found


@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(5, 3), Fraction(4), Fraction(7, 9)])
def test_laplace_numbers_have_their_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways through the draws of one pass, in many digits; what is drawn anew changes no proportion."""
    with mpmath.workdps(40):
        found = one_pass(lambda below: laplace_number(below, scale), monkeypatch, 40)
        size = mpmath.mpf(scale.numerator) / scale.denominator
        for number in range(-4, 5):
            law = mpmath.exp(-abs(number) / size)
            assert (
                abs(found[number] / found[0] - law) < mpmath.mpf(10) ** -11 * law
            )  # ways of 40 steps and more
        assert abs(found[1] / found[0] - mpmath.exp(-1.01 / size)) > mpmath.mpf(10) ** -4


@pytest.mark.parametrize("sigma", [Fraction(3, 2), Fraction(12345.678), Fraction(1, 3)])
def test_gaussian_numbers_are_laplace_numbers_that_are_kept_by_the_bell(
    sigma: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mpmath.workdps(60):
        proportions = []
        size = mpmath.mpf(sigma.numerator) / sigma.denominator
        for number in (0, 1, -1, 5, int(sigma), -3 * int(sigma) - 2):
            kept = list[Any]()

            def laplace(below: object, scale: Fraction, number: int = number) -> int:
                return number

            def decay(below: object, part: int, whole: int, kept: list[Any] = kept) -> bool:
                kept.append(mpmath.exp(-mpmath.mpf(part) / whole))
                return True

            monkeypatch.setattr(exact_discrete, "laplace_number", laplace)
            monkeypatch.setattr(exact_discrete, "decays", decay)
            assert gaussian_number(lambda bound: 0, sigma) == number
            width = int(sigma) + 1
            law = mpmath.exp(-(mpmath.mpf(number) ** 2) / (2 * size**2))
            proportions.append(mpmath.exp(-mpmath.mpf(abs(number)) / width) * kept[0] / law)
            assert kept[0] <= 1
        for one, other in itertools.pairwise(proportions):
            assert abs(one / other - 1) < mpmath.mpf(10) ** -45


def test_sums_end_where_64_bits_do(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = SecretRandomness(SystemCoins())
    for sign, end in ((1, 2**63 - 1), (-1, -(2**63))):
        monkeypatch.setattr(noise, "laplace_number", lambda below, scale, sign=sign: sign * 10**30)
        assert noise.laplace(np.array([[3], [4]]), 1.0, secret).tolist() == [[end], [end]]


def test_scales_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[Fraction]()

    def one(below: object, scale: Fraction) -> int:
        given.append(scale)
        return 1

    monkeypatch.setattr(noise, "laplace_number", one)
    monkeypatch.setattr(noise, "gaussian_number", one)
    secret, scale = SecretRandomness(SystemCoins()), 1234.5678901234567
    assert noise.laplace(np.array([[3, 4]]), scale, secret).tolist() == [[4, 5]]
    assert noise.gaussian(np.array([7]), scale, secret).tolist() == [8]
    assert set(given) == {Fraction(scale)}


@pytest.mark.parametrize(
    ("ours", "theirs"), [(noise.laplace, "make_laplace"), (noise.gaussian, "make_gaussian")]
)
def test_numbers_are_as_those_of_opendp(ours: Callable[..., np.ndarray], theirs: str) -> None:
    """Another program by other people that draws the same law exactly; two samples, and one with another scale."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if theirs == "make_laplace" else dp.l2_distance(T="f64")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    zeros, scale = np.zeros(20_000, dtype=np.int64), 7.3
    mine = ours(zeros, scale, SecretRandomness(SystemCoins()))
    other, wider = (
        np.array(getattr(dp.m, theirs)(space, metric, scale=size)(zeros)) for size in (scale, 1.2 * scale)
    )
    cells = np.array([-12, -8, -5, -3, -1, 0, 1, 2, 4, 6, 9, 13])

    def same(a: np.ndarray, b: np.ndarray) -> float:
        table = [np.bincount(np.searchsorted(cells, each), minlength=len(cells) + 1) for each in (a, b)]
        return float(stats.chi2_contingency(table).pvalue)

    assert same(mine, other) > ALPHA
    assert same(mine, wider) < ALPHA
