"""Discrete noise is exact: every chance that makes it up is compared with its law in many digits.

The law is that of whole-number Python, whose ways are walked one by one; and compiled code, which draws nearly all
numbers, gives the same numbers from the same words.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from diminuendo import SeededSource, SystemSource
from diminuendo.randomness import SecretRandomness, exact_discrete, noise
from diminuendo.randomness.exact_discrete import (
    below_fraction,
    decays,
    gaussian_number,
    laplace_number,
    uniform_below,
)
from diminuendo.types import Ints, Words
from tests.kit.statistics import ALPHA


class GivenWords:
    """A source whose secret words are given."""

    secure = True

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def public(self, count: int) -> Words:
        raise AssertionError("noise reads no public words")

    def secret(self, count: int) -> Words:
        taken, self.words = self.words[:count], self.words[count:]
        assert taken, "no words are left"
        return np.array(taken, dtype=np.uint64)


def test_numbers_below_a_bound_are_equally_likely() -> None:
    """Each of 2^bits beginnings gives itself, or is drawn anew: so what is below the bound comes equally often."""
    for bound in (1, 2, 3, 5, 8):
        bits = (bound - 1).bit_length()
        for word in range(1 << bits):
            high = word | 0xABC << 40  # what is above the bits says nothing
            result = uniform_below(iter([high, 0]).__next__, bound)
            assert result == (word if word < bound else 0)
    large = iter([3, 7, 1 << 63, 9])
    assert uniform_below(large.__next__, 1 << 70) == 3 << 64 | 7, "two words make one number"
    assert uniform_below(large.__next__, (1 << 66) - 1) == 0 << 64 | 9


def chance_below(part: int, whole: int, words: int) -> tuple[Fraction, Fraction]:
    """Between which chances `below_fraction` says yes, from all first words of a uniform number: it falls with them."""
    least, left = Fraction(0), Fraction(1)
    seen = list[int]()

    def says(word: int) -> bool | None:
        supply = iter([*seen, word])
        try:
            return below_fraction(supply.__next__, part, whole)
        except StopIteration:
            return None

    for _ in range(words):
        low, high = 0, 1 << 64  # words below `low` are told yes
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if says(middle) is True else (low, middle)
        left /= 1 << 64
        least += low * left
        if low == 1 << 64 or says(low) is False:
            return least, least
        assert low + 1 == 1 << 64 or says(low + 1) is False
        seen.append(low)
    return least, least + left


@pytest.mark.parametrize(
    ("part", "whole"), [(0, 5), (1, 1), (1, 2), (2, 3), (12345, 10**30), (10**30 - 1, 10**30)]
)
def test_a_uniform_number_is_below_a_fraction_with_that_chance(part: int, whole: int) -> None:
    least, most = chance_below(part, whole, 3)
    assert least <= Fraction(part, whole) <= most
    assert most - least <= Fraction(1, 1 << 192)


def lengths(part: int, whole: int, most: int) -> Iterator[tuple[int, bool, Fraction]]:
    """For each number of times that the question is answered with yes: what `decays` says, and the chance of that."""
    for yes in range(most):
        asked = list[Fraction]()

        def below(_: object, *fraction: int, asked: list[Fraction] = asked, yes: int = yes) -> bool:
            asked.append(Fraction(*fraction))
            return len(asked) <= yes

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact_discrete, "below_fraction", below)
            said = decays(lambda: 0, part, whole)
        chance = Fraction(1)
        for number, below_what in enumerate(asked):
            chance *= below_what if number < yes else 1 - below_what
        yield len(asked), said, chance


@pytest.mark.parametrize(("part", "whole"), [(1, 1), (1, 2), (2, 3), (999, 1000), (1, 10**30)])
def test_decay_has_the_chance_of_an_exponential(part: int, whole: int) -> None:
    result = list(lengths(part, whole, 40))
    assert [asked for asked, _, _ in result] == list(range(1, 41)), "each length once"
    with mpmath.workdps(40):
        yes = sum(mpmath.mpf(c.numerator) / c.denominator for _, said, c in result if said)
        assert abs(yes - mpmath.exp(-mpmath.mpf(part) / whole)) < mpmath.mpf(10) ** -38
        wrong = sum(mpmath.mpf(c.numerator) / c.denominator for _, said, c in result if not said)
        assert abs(wrong - mpmath.exp(-mpmath.mpf(part) / whole)) > mpmath.mpf(10) ** -3
        assert abs(yes + wrong - 1) < mpmath.mpf(10) ** -38


def test_larger_exponents_are_cut_into_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Fraction]()

    def always(next_word: object, part: int, whole: int) -> bool:
        asked.append(Fraction(part, whole))
        return True

    monkeypatch.setattr(exact_discrete, "_decays", always)
    assert decays(lambda: 0, 17, 5)
    assert sum(asked) == Fraction(17, 5)
    assert all(part <= 1 for part in asked)
    monkeypatch.setattr(exact_discrete, "_decays", lambda *_: False)
    assert not decays(lambda: 0, 17, 5)


def one_pass(
    make: Callable[[Callable[[], int]], int], patch: pytest.MonkeyPatch, most: int
) -> dict[int, mpmath.mpf]:
    """With what chance each number comes out before anything is drawn anew: by all ways through the draws."""

    class AnewError(Exception):
        pass

    result: dict[int, mpmath.mpf] = {}
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

        def asked(_: object, part: int, whole: int, taken: list[int] = taken) -> bool:
            return decayed(part, whole, taken)

        def drawn(_: object, bound: int, taken: list[int] = taken) -> int:
            return uniform(bound, taken)

        patch.setattr(exact_discrete, "_decays", asked)
        patch.setattr(exact_discrete, "uniform_below", drawn)
        try:
            number = make(lambda: 0)
        except AnewError:
            continue
        result[number] = result.get(number, mpmath.mpf(0)) + chance
    return result


@pytest.mark.parametrize("scale", [Fraction(3, 2), Fraction(5, 3), Fraction(4), Fraction(7, 9)])
def test_laplace_numbers_have_their_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways through the draws of one pass, in many digits; what is drawn anew changes no proportion."""
    with mpmath.workdps(40):
        result = one_pass(lambda next_word: laplace_number(next_word, scale), monkeypatch, 40)
        size = mpmath.mpf(scale.numerator) / scale.denominator
        for number in range(-4, 5):
            law = mpmath.exp(-abs(number) / size)
            assert (
                abs(result[number] / result[0] - law) < mpmath.mpf(10) ** -11 * law
            )  # ways of 40 steps and more
        assert abs(result[1] / result[0] - mpmath.exp(-1.01 / size)) > mpmath.mpf(10) ** -4


@pytest.mark.parametrize("sigma", [Fraction(3, 2), Fraction(12345.678), Fraction(1, 3)])
def test_gaussian_numbers_are_laplace_numbers_that_are_kept_by_the_bell(
    sigma: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mpmath.workdps(60):
        proportions = []
        size = mpmath.mpf(sigma.numerator) / sigma.denominator
        for number in (0, 1, -1, 5, int(sigma), -3 * int(sigma) - 2):
            kept = list[Any]()

            def laplace(next_word: object, scale: Fraction, number: int = number) -> int:
                return number

            def decay(next_word: object, part: int, whole: int, kept: list[Any] = kept) -> bool:
                kept.append(mpmath.exp(-mpmath.mpf(part) / whole))
                return True

            monkeypatch.setattr(exact_discrete, "laplace_number", laplace)
            monkeypatch.setattr(exact_discrete, "decays", decay)
            assert gaussian_number(lambda: 0, sigma) == number
            width = int(sigma) + 1
            law = mpmath.exp(-(mpmath.mpf(number) ** 2) / (2 * size**2))
            proportions.append(mpmath.exp(-mpmath.mpf(abs(number)) / width) * kept[0] / law)
            assert kept[0] <= 1
        for one, other in itertools.pairwise(proportions):
            assert abs(one / other - 1) < mpmath.mpf(10) ** -45


Exact = Callable[[Callable[[], int], Fraction], int]
LAWS = pytest.mark.parametrize(
    ("law", "exact"), [(noise.laplace, laplace_number), (noise.gaussian, gaussian_number)]
)
TINY, HUGE = 2.0**-12, 2.0**50


@LAWS
@pytest.mark.parametrize("scale", [TINY, 0.1, 0.7, 1.0, 3.7, 1234.5678901234567, 1e9 / 3, HUGE])
def test_compiled_code_and_whole_numbers_agree_word_for_word(
    law: Callable[..., Ints], exact: Exact, scale: float
) -> None:
    """The scale is the very float that is given."""
    stream = np.random.Philox(17).random_raw(60_000).tolist()
    compiled = law(np.zeros(1000, dtype=np.int64), scale, SecretRandomness(GivenWords([*stream])))
    supply = iter(stream)
    assert compiled.tolist() == [exact(supply.__next__, Fraction(scale)) for _ in range(1000)]


EDGES = (0, 1, 1 << 32, (1 << 64) // 3, (1 << 63) - 1, 1 << 63, (1 << 63) + (1 << 33), (1 << 64) - 1)
"""Words at which answers change, and words so near to them that floats must not decide."""


@LAWS
@pytest.mark.parametrize("scale", [0.75, 3.0])
def test_compiled_code_agrees_on_all_short_rows_of_words_at_edges(
    law: Callable[..., Ints], exact: Exact, scale: float
) -> None:
    rest, asked = np.random.Philox(5).random_raw(400).tolist(), 0
    for first in itertools.product(EDGES, repeat=4):
        stream = [*first, *rest]

        def counted(next_word: Callable[[], int], size: Fraction) -> int:
            nonlocal asked
            asked += 1
            return exact(next_word, size)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(noise, exact.__name__, counted)
            result = int(law(np.zeros(1, dtype=np.int64), scale, SecretRandomness(GivenWords([*stream])))[0])
        assert result == exact(iter(stream).__next__, Fraction(scale))
    assert 100 < asked < 8**4, "floats decided some of them, and left some to whole numbers"


@LAWS
def test_floats_that_decide_nothing_change_nothing(
    law: Callable[..., Ints], exact: Exact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever compiled code leaves to Python, numbers are the same, and so are the words that they take."""
    zeros, secrets = np.zeros(300, dtype=np.int64), [SecretRandomness(SeededSource(4)) for _ in range(2)]
    one = law(zeros, 3.7, secrets[0])
    real, calls = exact_discrete.fill, itertools.count()

    def at_times(done: int, values: Ints, *others: Any) -> int:
        return real(done, values[: done + 2], *others) if next(calls) % 2 else done

    monkeypatch.setattr(noise, "fill", at_times)
    np.testing.assert_array_equal(law(zeros, 3.7, secrets[1]), one)
    np.testing.assert_array_equal(secrets[0].take(5), secrets[1].take(5))


def test_sums_end_where_64_bits_do(monkeypatch: pytest.MonkeyPatch) -> None:
    least, most = -(2**63), 2**63 - 1
    near = np.array([most, most - 1, least, least + 1] * 50)
    result = noise.laplace(near, 1e6, SecretRandomness(SeededSource(1)))
    drawn = noise.laplace(np.zeros(200, dtype=np.int64), 1e6, SecretRandomness(SeededSource(1)))
    sums = [value + number for value, number in zip(near.tolist(), drawn.tolist(), strict=True)]
    assert result.tolist() == [min(max(number, least), most) for number in sums]
    assert {least, most} < set(result.tolist())
    monkeypatch.setattr(noise, "fill", lambda done, *_: done)  # compiled code leaves everything to Python
    for sign, end in ((1, most), (-1, least)):
        monkeypatch.setattr(noise, "laplace_number", lambda next_word, scale, sign=sign: sign * 10**30)
        assert noise.laplace(np.array([[3], [4]]), 1.0, SecretRandomness(SystemSource())).tolist() == [
            [end],
            [end],
        ]


@pytest.mark.parametrize(
    ("ours", "theirs"), [(noise.laplace, "make_laplace"), (noise.gaussian, "make_gaussian")]
)
def test_numbers_are_as_those_of_opendp(ours: Callable[..., np.ndarray], theirs: str) -> None:
    """Another program by other users that draws the same law exactly; two samples, and one with another scale."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if theirs == "make_laplace" else dp.l2_distance(T="f64")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    zeros, scale = np.zeros(20_000, dtype=np.int64), 7.3
    mine = ours(zeros, scale, SecretRandomness(SystemSource()))
    other, wider = (
        np.array(getattr(dp.m, theirs)(space, metric, scale=size)(zeros)) for size in (scale, 1.2 * scale)
    )
    cells = np.array([-12, -8, -5, -3, -1, 0, 1, 2, 4, 6, 9, 13])

    def same(a: np.ndarray, b: np.ndarray) -> float:
        table = [np.bincount(np.searchsorted(cells, each), minlength=len(cells) + 1) for each in (a, b)]
        return float(stats.chi2_contingency(table).pvalue)

    assert same(mine, other) > ALPHA
    assert same(mine, wider) < ALPHA
