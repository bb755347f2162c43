"""Rounded Gaussian noise: the law, the slow path, and that rounding and whole numbers change places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scipy import special

from diminuendo.errors import InvalidInput
from diminuendo.randomness import PublicSource, SecretRandomness, SeededSource, SystemSource
from diminuendo.randomness import rounded_normal as normal_slowly
from diminuendo.randomness.noise import WIDEST
from diminuendo.randomness.rounded_normal import UNDECIDED, _decided, _written, rounded_normal
from diminuendo.types import Floats, Ints, Words
from tests.kit.statistics import assert_follows, assert_rejects


def law(sigma: float, reach: int) -> Floats:
    """The probability of each whole number from -reach to reach, tails in the last cells."""
    edges = np.arange(-reach, reach) + 0.5
    below = special.ndtr(edges / sigma)
    return np.diff(below, prepend=0.0, append=1.0)


def cells(noise: Ints, reach: int) -> Ints:
    return np.clip(noise, -reach, reach) + reach


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 3.7, 40.25])
@pytest.mark.parametrize("secure", [True, False])
def test_the_law_is_that_of_a_rounded_normal(sigma: float, secure: bool) -> None:
    secret = SecretRandomness(SystemSource() if secure else SeededSource(3), size=1 << 14)
    drawn = rounded_normal(np.zeros(200_000, dtype=np.int64), sigma, secret)
    reach = math.ceil(5 * sigma)
    assert_follows(cells(drawn, reach), law(sigma, reach))
    assert_rejects(cells(drawn, reach), law(sigma * 1.05, reach))


def test_wide_noise_has_the_same_law() -> None:
    """Where rounding no longer matters: shares of a normal law cut into equal parts."""
    for sigma in (1e6, 4e7 + 0.125, 2.0**49):
        drawn = rounded_normal(np.zeros(60_000, dtype=np.int64), sigma, SecretRandomness(SeededSource(5)))
        parts = np.floor(32 * special.ndtr(drawn / sigma)).astype(int)
        assert_follows(parts, np.full(32, 1 / 32))
        wrong = np.floor(32 * special.ndtr(drawn / (1.05 * sigma))).astype(int)
        assert_rejects(wrong, np.full(32, 1 / 32))


def test_the_first_word_decides_as_exact_fractions_do() -> None:
    """Or leaves it open: exactly where the rest of the fraction matters."""
    random, left_open = np.random.default_rng(1), 0
    extreme = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 2, 2**64 - 1]
    for sigma in (0.01, 0.2, 1.0, 40.25, 4e7 + 0.125, 2.0**44, 2.0**44 * math.pi / 3, 2.0**49 + 0.25, WIDEST):
        m, e = _written(sigma)
        assert Fraction(m, 2**e) == Fraction(sigma)
        middles = [round(Fraction(2 * j + 1, 2) / Fraction(sigma) * 2**64) % 2**64 for j in range(40)]
        near = [(middle + off) % 2**64 for middle in middles for off in (-2, -1, 0, 1, 2)]
        for fraction in [*extreme, *near, *random.integers(0, 2**64, 200, dtype=np.uint64).tolist()]:
            for k in (0, 1, 7, 255, 256):
                result = int(_decided(m, e, k, np.uint64(fraction)))
                ends = (k + Fraction(fraction + more, 2**64) for more in (0, 1))
                down, up = (math.floor(Fraction(sigma) * end + Fraction(1, 2)) for end in ends)
                assert result == (down if down == up and k <= 255 else UNDECIDED)
                left_open += down != up
    assert left_open > 100


def test_the_slow_path_has_the_same_law() -> None:
    digits = digits_of(np.random.Philox(9).random_raw(300_000).tolist())
    drawn = np.array([normal_slowly.slowly(1.5, lambda: next(digits)) for _ in range(30_000)])
    assert_follows(cells(drawn, 8), law(1.5, 8))
    assert_rejects(cells(drawn, 8), law(1.6, 8))


class GivenWords:
    """A source whose secret words are given."""

    secure = False

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def public(self, count: int) -> Words:
        raise AssertionError("noise reads no public words")

    def secret(self, count: int) -> Words:
        taken, self.words = self.words[:count], self.words[count:]
        return np.array(taken + [0] * (count - len(taken)), dtype=np.uint64)


def digits_of(words: list[int]) -> Iterator[int]:
    """The digits of words as they lie in memory, the lowest first."""
    return (word >> shift & 0xFFFF for word in words for shift in range(0, 64, 16))


def test_fast_and_slow_agree_digit_for_digit() -> None:
    """The same digits, read by compiled code and by whole-number Python, give the same numbers."""
    for seed in range(20):
        stream = np.random.Philox(seed).random_raw(20_000).tolist()
        rng = GivenWords([*stream])
        fast = rounded_normal(
            np.zeros(50, dtype=np.int64), 1000.25, SecretRandomness(rng, size=20_000)
        ).tolist()
        position = digits_of(stream)
        slow = [normal_slowly.slowly(1000.25, lambda at=position: next(at)) for _ in range(50)]  # type: ignore[misc]
        assert fast == slow


def test_ties_of_short_digits_are_decided_by_further_ones() -> None:
    """Digits of 16 bits are often equal: with many numbers, Python has to decide now and then, and agrees."""
    stream, many = np.random.Philox(3).random_raw(600_000).tolist(), 100_000
    with mock.patch.object(normal_slowly, "slowly", wraps=normal_slowly.slowly) as asked:
        secret = SecretRandomness(GivenWords([*stream]))
        fast = rounded_normal(np.zeros(many, dtype=np.int64), 50.5, secret).tolist()
    assert asked.call_count > 0
    position = digits_of(stream)
    assert fast == [normal_slowly.slowly(50.5, lambda: next(position)) for _ in range(many)]


def test_a_tie_is_decided_by_further_digits() -> None:
    """Two equal digits: compiled code stops, and the next ones decide."""
    quarter = 1 << 14
    # sign, then a run below 1/2 that ties with its predecessor; the digits behind decide; the rest is anything.
    for further, falls in (((5, 9), True), ((9, 5), False)):
        first = [0, quarter, quarter, further[1], further[0], 0, 0, 0]
        words = [
            sum(digit << (16 * place) for place, digit in enumerate(first[at : at + 4])) for at in (0, 4)
        ]
        stream = [*words, *np.random.Philox(1).random_raw(4_000).tolist()]
        secret = SecretRandomness(GivenWords([*stream]), size=len(stream))
        given = int(rounded_normal(np.zeros(1, dtype=np.int64), 10.0, secret)[0])
        source = digits_of(stream)
        assert given == normal_slowly.slowly(10.0, lambda source=source: next(source))  # type: ignore[misc]
        one, other = (normal_slowly._Uniform(iter([quarter, digit]).__next__) for digit in further)
        assert one.below(other) == falls


def test_rounding_is_exact_at_the_edge() -> None:
    """sigma * (k + x) within a hair of a half: words are added until it is clear on which side."""
    sigma = 1.0
    edge = 1 << 15  # k + x = k + 1/2 exactly, were it not for further digits
    for further, expected in ((0, 3), (1, 3)):  # at the half, and above: up
        digits = [edge, further, 7]
        supply = iter(digits[1:])
        assert normal_slowly.rounded(sigma, 2, digits[:1], supply.__next__) == expected
    digits = [edge - 1, (1 << 16) - 1, 0]
    supply = iter(digits[1:])
    assert normal_slowly.rounded(sigma, 2, digits[:1], supply.__next__) == 2
    third = Fraction(1.0 / 3)
    result = normal_slowly.rounded(1.0 / 3, 1, [edge], iter([0, 0, 0, 1]).__next__)
    assert result == math.floor(third * Fraction(3, 2) + Fraction(1, 2))


def test_compiled_code_leaves_what_is_too_near_to_a_half_to_further_digits() -> None:
    """A fraction whose first 64 bits are just below 1/2: from either side of the half, digit by digit."""
    for first, expected in (((0x7FFF, *[0xFFFF] * 4, 5), 0), ((0x8000, *[0] * 5), 1)):
        x, *further = first
        # sign; a falling run of one, so that the whole part is 0; x, which is accepted; its further digits.
        digits = [0, 0x4000, 0x5000, x, 0x9000, *further]
        stream = [sum(d << 16 * j for j, d in enumerate(digits[at : at + 4])) for at in range(0, 12, 4)]
        secret = SecretRandomness(GivenWords([*stream]), size=3)
        assert int(rounded_normal(np.zeros(1, dtype=np.int64), 1.0, secret)[0]) == expected
        assert normal_slowly.slowly(1.0, iter(digits).__next__) == expected


EDGES = (0, 0x3FFF, 0x7FFF, 0x8000, 0xFFFF)


def test_compiled_code_agrees_on_all_short_rows_of_digits_at_edges() -> None:
    rest = np.random.Philox(6).random_raw(300).tolist()
    for first in itertools.product(EDGES, repeat=4):
        stream = [sum(digit << 16 * place for place, digit in enumerate(first)), *rest]
        result = rounded_normal(np.zeros(1, dtype=np.int64), 2.5, SecretRandomness(GivenWords([*stream])))
        position = digits_of(stream)
        assert result.tolist() == [normal_slowly.slowly(2.5, position.__next__)]


def chances(event: Callable[[Callable[[int], int]], bool], most: int) -> tuple[Fraction, Fraction]:
    """Between which chances an event lies that makes uniform choices: by all rows of up to `most` equal chances."""

    class OpenError(Exception):
        def __init__(self, many: int) -> None:
            self.many = many

    yes, left, rows = Fraction(0), Fraction(0), [(list[int](), 1)]
    while rows:
        row, ways = rows.pop()
        place = itertools.count()

        def choice(many: int, row: list[int] = row, place: Iterator[int] = place) -> int:
            if (now := next(place)) == len(row):
                raise OpenError(many)
            return row[now]

        try:
            yes += Fraction(event(choice), ways)
        except OpenError as came:
            if ways > most:
                left += Fraction(1, ways)
            else:
                rows += [([*row, way], ways * came.many) for way in range(came.many)]
    return yes, yes + left


def assert_lies_between(bounds: tuple[Fraction, Fraction], law: float) -> None:
    least, most = (float(bound) for bound in bounds)
    assert least <= law <= most
    assert most - least < 0.02


def test_half_a_power_has_its_chance_by_all_rows_of_short_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_slowly, "DIGIT", 1)
    assert_lies_between(
        chances(lambda choice: normal_slowly.half_power(lambda: choice(2)), 1 << 13), math.exp(-0.5)
    )


@pytest.mark.parametrize(("k", "x"), [(0, [1]), (0, [0, 1, 1]), (1, [0, 1]), (2, [0, 0, 1])])
def test_acceptance_has_its_chance_by_all_rows_of_short_digits(
    k: int, x: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normal_slowly, "DIGIT", 1)
    size = sum(digit / 2 ** (place + 1) for place, digit in enumerate(x))

    def accepts(choice: Callable[[int], int]) -> bool:
        monkeypatch.setattr(normal_slowly, "_uniform_below", lambda bound, _: choice(bound))
        given = normal_slowly._Uniform(itertools.chain(x, itertools.repeat(0)).__next__)
        return normal_slowly.accepts(k, given, lambda: choice(2))

    assert_lies_between(chances(accepts, 1 << 16), math.exp(-size * (2 * k + size) / (2 * k + 2)))


def test_choices_by_digits_are_equally_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normal_slowly, "DIGIT", 1)
    for bound in (2, 4, 6):
        for wanted in range(bound):
            bounds = chances(
                lambda choice, wanted=wanted, bound=bound: (  # type: ignore[misc]
                    normal_slowly._uniform_below(bound, lambda: choice(2)) == wanted
                ),
                1 << 12,
            )
            assert_lies_between(bounds, 1 / bound)


def test_whole_parts_and_fractions_together_are_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what density each whole part and fraction comes out before anything is drawn anew, by all ways to it."""

    fractions = (0.0, 0.25, 0.8)
    for k in range(6):
        chance, asked = 1.0, itertools.count()

        def flip(_: object, k: int = k, asked: Iterator[int] = asked) -> bool:
            """k times yes, then no; then yes as often as it is asked."""
            nonlocal chance
            yes = next(asked) != k
            chance *= math.exp(-0.5) if yes else 1 - math.exp(-0.5)
            return yes

        accepted = list[int]()

        def accepts(part: int, x: object, _: object, accepted: list[int] = accepted) -> bool:
            accepted.append(part)
            return True

        monkeypatch.setattr(normal_slowly, "half_power", flip)
        monkeypatch.setattr(normal_slowly, "accepts", accepts)
        assert normal_slowly.slowly(1.0, lambda: 0) == k
        assert accepted == [k] * (k + 1)
        for x in fractions:
            density = chance * math.exp(-x * (2 * k + x) / (2 * k + 2)) ** len(accepted)
            assert density == pytest.approx((1 - math.exp(-0.5)) * math.exp(-((k + x) ** 2) / 2), rel=1e-12)


def test_whole_numbers_and_rounding_change_places() -> None:
    values = np.array([-(10**12), -3, 0, 5, 10**12])
    runs = [
        rounded_normal(v, 7.5, SecretRandomness(SeededSource(2))) - v
        for v in (values, np.zeros(5, dtype=np.int64))
    ]
    np.testing.assert_array_equal(runs[0], runs[1])


def test_the_size_of_the_buffer_does_not_matter() -> None:
    runs = [
        rounded_normal(np.zeros(300, dtype=np.int64), 11.0, SecretRandomness(SeededSource(4), size=size))
        for size in (1, 7, 1 << 14)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_shapes_and_doors() -> None:
    secret = SecretRandomness(SeededSource(1))
    assert rounded_normal(np.zeros((3, 4), dtype=np.int32), 2.0, secret).shape == (3, 4)
    assert rounded_normal(np.zeros(0, dtype=np.int64), 2.0, secret).shape == (0,)
    for sigma in (0.0, -1.0, math.nan, math.inf, 2.0**51):
        with pytest.raises(InvalidInput, match="sigma"):
            rounded_normal(np.zeros(2, dtype=np.int64), sigma, secret)
    with pytest.raises(InvalidInput, match="whole numbers"):
        rounded_normal(np.zeros(2), 1.0, secret)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="SecretRandomness"):
        rounded_normal(np.zeros(2, dtype=np.int64), 1.0, PublicSource(SeededSource(1)))  # type: ignore[arg-type]
