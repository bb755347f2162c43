"""The exponential mechanism is exact: counted over every word there is, in whole numbers, for small scales."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diminuendo import SeededSource
from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.randomness import SecretRandomness, exact_comparison, select
from diminuendo.randomness.exponential import keep, scale_bits, select_once, survives, weight_bound
from diminuendo.randomness.score_classes import BITS, BOUND, ScoreClasses, draw, grow, new_score_classes
from diminuendo.randomness.words import (
    ASKED,
    BEGUN,
    UNFINISHED,
    USED,
    VERDICTS,
    WINDOW,
    SecretWords,
    begin,
    undo,
)
from diminuendo.types import Ints, Words
from tests.kit.slow import mostly_slow
from tests.kit.statistics import assert_follows, assert_rejects

ALWAYS = 1e300
"""A window so wide that exact arithmetic decides everything."""


class Script:
    """A source of the given words, and then no more."""

    secure = False

    def __init__(self, words: list[int]) -> None:
        self.left = list(words)

    def public(self, count: int) -> Words:
        raise AssertionError("exponential draws use secret randomness")

    def secret(self, count: int) -> Words:
        taken, self.left = self.left[:count], self.left[count:]
        if not taken:
            raise EOFError
        return np.array(taken, dtype=np.uint64)


@kernel
def from_urn(classes: ScoreClasses, secret: SecretWords) -> int:
    begin(secret)
    item = draw(classes, 0, secret)
    if item < 0:
        undo(secret)
    return item


@kernel
def from_scores(scores: Ints, rate: float, bits: int, bounds: Ints, secret: SecretWords) -> int:
    begin(secret)
    item = select_once(scores, rate, bits, bounds, secret)
    if item < 0:
        undo(secret)
    return item


@kernel
def fill_classes(classes: ScoreClasses, scores: Ints) -> None:
    for item in range(len(scores)):
        if scores[item] > 0:
            grow(classes, 0, item, scores[item])


class Case:
    """Scores, a rate and a small scale; drawn from an expert or at once."""

    def __init__(self, scores: list[int], rate: float, bits: int, expert: bool) -> None:
        self.scores, self.rate, self.bits = np.array(scores, dtype=np.int64), rate, bits
        self.classes = new_score_classes(len(scores), 1, rate, bits=bits) if expert else None
        self.bounds = np.zeros(len(scores), dtype=np.int64)
        if self.classes is not None:
            fill_classes(self.classes, self.scores)
            shift, base, top = (int(self.classes.marks[0, mark]) for mark in (4, 0, 1))
            self.reference, self.total = (base + top) << shift, int(self.classes.marks[0, BOUND])
        else:
            self.reference = int(max(scores))
            with pytest.raises(EOFError):
                self.draw([0xFFFF_FFFF_FFFF_FFFF])
            self.total = int(self.bounds.sum())

    def draw(self, words: list[int], window: float = WINDOW) -> tuple[int, int, int]:
        """The item, how many words it took, how many of them for fractions; EOFError if there were not enough."""
        secret = SecretRandomness(Script(words), size=1, window=window)
        while True:
            if self.classes is not None:
                item = int(from_urn(self.classes, secret.view))
            else:
                item = int(from_scores(self.scores, self.rate, self.bits, self.bounds, secret.view))
            if item >= 0:
                left = len(secret.view.words) - int(secret.view.used[USED])
                fractions = secret.view.verdicts[: secret.view.used[VERDICTS], 5].sum()
                return item, len(words) - len(secret.rng.left) - left, fractions  # type: ignore[attr-defined]
            secret.resume()

    def weight(self, item: int) -> mpmath.mpf:
        """2^bits * exp(rate * (score - reference)), to 60 digits."""
        with mpmath.workdps(60):
            power = mpmath.mpf(self.rate) * int(self.scores[item] - self.reference)
            return mpmath.ldexp(mpmath.exp(power), self.bits)


CASES = [
    Case(scores, rate, bits, expert)
    for scores, rate, bits in [
        ([0], 0.5, 3),
        ([0, 0, 0], 0.1, 4),
        ([1, 0], 0.7, 6),
        ([3, 9, 0, 9], 0.11, 7),
        ([2, 40, 1, 0, 17], 0.03, 5),
        ([1000, 0, 999], 1.0, 6),
        ([5, 300, 299, 0], 2.0, 4),
    ]
    for expert in (True, False)
]
EVERY = pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c.scores.tolist()}-{'expert' if c.classes else 'once'}"
)


@EVERY
@pytest.mark.parametrize("window", [WINDOW, ALWAYS], ids=["floats", "exact"])
def test_every_word_counts_for_the_right_item(case: Case, window: float) -> None:
    """One try, over every number below the sum of bounds: item a is kept floor(weight) times for sure, and once more
    with a chance that is exactly the rest of its weight."""
    surely: Counter[int] = Counter()
    perhaps: Counter[int] = Counter()
    for word in range(case.total):
        try:
            item, taken, _ = case.draw([word], window)
        except EOFError:  # not kept, or the fraction has to be drawn
            lowest, highest = outcome(case, word, 0, window), outcome(case, word, 2**64 - 1, window)
            assert highest is None, "kept for every fraction, but a fraction was asked for"
            if lowest is not None:
                perhaps[lowest] += 1
            continue
        assert taken == 1
        surely[item] += 1
    for item in range(len(case.scores)):
        whole = int(mpmath.floor(case.weight(item)))
        assert surely[item] == whole
        assert perhaps[item] == (
            case.weight(item) - whole >= 2.0**-64
        )  # less than that takes more words of zeros


def outcome(case: Case, word: int, fraction: int, window: float) -> int | None:
    """The item that was kept in the first try thanks to the fraction, if any."""
    try:
        item, taken, fractions = case.draw([word, fraction], window)
    except EOFError:
        return None
    return item if (taken, fractions) == (2, 1) else None


FEW_BITS = [case for case in CASES if len(case.scores) > 2 and case.bits < 7]


@pytest.mark.parametrize("case", mostly_slow(FEW_BITS, FEW_BITS[:1]))
def test_the_fraction_is_drawn_bit_by_bit_exactly(case: Case) -> None:
    """Of all first bytes of the fraction exactly floor(256 * rest) keep the item, and at most one is undecided."""
    for word in range(case.total):
        top = [outcome(case, word, byte << 56 | low, WINDOW) for byte in range(256) for low in (0, 2**56 - 1)]
        items = {item for item in top if item is not None}
        if len(items) != 1 or None not in top:
            continue
        (item,) = items
        rest = case.weight(item) - mpmath.floor(case.weight(item))
        kept = [all(part is not None for part in top[2 * byte : 2 * byte + 2]) for byte in range(256)]
        partly = [any(part is not None for part in top[2 * byte : 2 * byte + 2]) for byte in range(256)]
        assert sum(kept) == int(mpmath.floor(256 * rest))
        assert sum(partly) - sum(kept) == 1


def test_words_beyond_the_sum_are_passed_over() -> None:
    case = CASES[4]
    size = 1 << (case.total - 1).bit_length()
    assert size > case.total
    for word in range(case.total, size):
        with pytest.raises(EOFError):
            case.draw([word])


def test_a_wrong_bound_would_be_noticed() -> None:
    """The counting above has teeth: one unit less in the sum of bounds, and some item is counted once too few."""
    case = Case([3, 9, 0, 9], 0.11, 7, expert=True)
    assert case.classes is not None
    case.classes.totals[0, 0] += 1
    with pytest.raises(AssertionError):
        test_every_word_counts_for_the_right_item(case, WINDOW)


@settings(deadline=None, max_examples=300)
@given(
    numerator=st.integers(0, 1 << 40),
    denominator=st.integers(1, 1 << 40),
    precision=st.integers(1, 400),
)
def test_exp_bounds_hold_and_are_close(numerator: int, denominator: int, precision: int) -> None:
    power = -Fraction(numerator, denominator)
    low, high = exact_comparison.exp_bounds(power, precision)
    with mpmath.workprec(precision + 200):
        true = mpmath.ldexp(mpmath.exp(mpmath.mpf(power.numerator) / power.denominator), precision)
        assert low <= true <= high
    assert high - low <= 2
    with pytest.raises(ValueError, match="not above 0"):
        exact_comparison.exp_bounds(Fraction(1, 7), precision)


@settings(deadline=None, max_examples=200)
@given(
    rate=st.floats(1e-9, 3.0),
    behind=st.integers(0, 10_000),
    bits=st.integers(1, 60),
    fraction=st.integers(0, 2**64 - 1),
    off=st.integers(-2, 2),
)
def test_verdicts_are_those_of_high_precision(
    rate: float, behind: int, bits: int, fraction: int, off: int
) -> None:
    with mpmath.workprec(400):
        weight = mpmath.ldexp(mpmath.exp(-mpmath.mpf(rate) * behind), bits)
        residual = max(0, int(mpmath.floor(weight)) + off)
        point = residual + mpmath.mpf(fraction) / 2**64 + mpmath.mpf(2) ** -65
        words = itertools.chain([fraction], itertools.repeat(2**63))
        assert exact_comparison.decide(residual, rate, -behind, bits, lambda: next(words)) == (point < weight)


@pytest.mark.parametrize("n", [2, 50])
@pytest.mark.parametrize("rate", [0.004, 0.5])
def test_one_draw_from_fresh_scores_follows_the_law(n: int, rate: float) -> None:
    scores = np.random.default_rng(n).permutation(np.linspace(-1 / rate, 3 / rate, n).astype(np.int64))
    secret = SecretRandomness(SeededSource(n))
    result = [select(scores, rate, secret) for _ in range(20_000)]
    weights = np.exp(rate * (scores - scores.max()))
    assert_follows(result, weights / weights.sum())
    wrong = weights**1.25
    assert_rejects(result, wrong / wrong.sum())


def test_far_apart_scores_and_huge_ones() -> None:
    secret = SecretRandomness(SeededSource(0))
    assert {select(np.array([0, 1 << 60]), 1e-6, secret) for _ in range(50)} == {1}
    assert {select(np.array([-(1 << 61), 1 << 61]), 5.0, secret) for _ in range(50)} == {1}
    assert {select(np.array([7]), 5.0, secret) for _ in range(5)} == {0}


@pytest.mark.parametrize(
    ("scores", "complaint"),
    [
        (np.array([0.5, 1.0]), "whole numbers"),
        (np.array([], dtype=np.int64), "whole numbers"),
        (np.zeros((2, 2), dtype=np.int64), "whole numbers"),
        (np.array([0, 1 << 62]), "overflow"),
        (np.array([0, 2**63], dtype=np.uint64), "overflow"),
    ],
)
def test_bad_scores_are_refused(scores: Ints, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        select(scores, 0.1, SecretRandomness(SeededSource(0)))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_bad_rates_are_refused(rate: float) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        select(np.array([1, 2]), rate, SecretRandomness(SeededSource(0)))


def test_the_sum_of_bounds_fits() -> None:
    for n in (1, 2, 3, 1000, 10**6, 2**31):
        assert n * (2 ** scale_bits(n) * (1 + WINDOW) + 2) < 2**62


def test_the_question_is_closed_and_verdicts_do_not_outlive_their_round() -> None:
    classes = new_score_classes(3, 1, 0.4)
    fill_classes(classes, np.array([1, 0, 4]))
    slow = SecretRandomness(SeededSource(8), size=3, window=ALWAYS)
    fast = SecretRandomness(SeededSource(8))
    for _ in range(200):
        result = []
        for secret in (slow, fast):
            while (item := int(from_urn(classes, secret.view))) < 0:
                secret.resume()
            assert not secret.view.question[ASKED]
            assert secret.view.used[USED] > secret.view.used[BEGUN]
            result.append(item)
        assert result[0] == result[1]
    assert classes.marks[0, BITS] == scale_bits(3)


@kernel
def asked(residual: int, rate: float, difference: int, bits: int, secret: SecretWords) -> int:
    return keep(residual, rate, difference, bits, secret)


@kernel
def bound(rate: float, difference: int, bits: int) -> int:
    return weight_bound(rate, difference, bits)


@settings(deadline=None, max_examples=400)
@given(
    rate=st.floats(1e-12, 4.0),
    behind=st.integers(0, 1 << 40) | st.integers(0, 100),
    bits=st.sampled_from([60, 50, 40, 7]),
    off=st.integers(-3000, 3000),
)
def test_floats_never_decide_wrongly_and_bounds_hold(rate: float, behind: int, bits: int, off: int) -> None:
    """Right at the edge, where a window of a few roundings would be too small, at full scale."""
    low, high = exact_comparison.exp_bounds(Fraction(rate) * -behind, bits + 64)
    assert bound(rate, -behind, bits) << 64 >= high
    residual = max(0, (low >> 64) + off)
    secret = SecretRandomness(SeededSource(0))
    verdict = asked(residual, rate, -behind, bits, secret.view)
    assert verdict in (UNFINISHED, int((residual + 1) << 64 <= low))


def test_verdicts_of_an_abandoned_round_are_not_taken_for_others() -> None:
    """Half a draw of one expert, given up; then draws of another with the same words: as if the first had not been."""
    first, second = new_score_classes(3, 1, 0.4), new_score_classes(3, 1, 0.4)
    fill_classes(first, np.array([9, 0, 1]))
    fill_classes(second, np.array([0, 2, 1]))
    for seed in range(300):
        troubled, calm = (SecretRandomness(SeededSource(seed), size=8, window=ALWAYS) for _ in range(2))
        for _ in range(3):
            if from_urn(first, troubled.view) < 0:
                troubled.resume()
            undo_again(troubled.view)
        result = []
        for secret in (troubled, calm):
            while (item := int(from_urn(second, secret.view))) < 0:
                secret.resume()
            result.append(item)
        assert result[0] == result[1]


@kernel
def undo_again(secret: SecretWords) -> None:
    undo(secret)


@pytest.mark.parametrize("rate", [1e-300, 1e-20, 4e-20])
def test_the_smallest_rates_draw_uniformly(rate: float) -> None:
    classes = new_score_classes(4, 1, rate)
    fill_classes(classes, np.array([1 << 40, 0, 3, 1 << 20]))
    secret = SecretRandomness(SeededSource(1))
    result = []
    for _ in range(4000):
        while (item := int(from_urn(classes, secret.view))) < 0:
            secret.resume()
        result.append(item)
    assert_follows(result, np.full(4, 0.25))
    assert_rejects(result, np.array([0.3, 0.2, 0.25, 0.25]))


def test_too_small_a_window_is_refused() -> None:
    for window in (-1.0, 0.0, 2.0**-41, math.nan):
        with pytest.raises(InvalidInput, match="window"):
            SecretRandomness(SeededSource(0), window=window)


def test_a_coin_survives_by_its_exponential() -> None:
    secret = SecretRandomness(SeededSource(1))
    for rate, difference in ((0.25, -3), (1e-6, -700_000), (2.0, -1)):
        result = [int(survives(rate, difference, secret)) for _ in range(20_000)]
        yes = math.exp(rate * difference)
        assert_follows(result, np.array([1 - yes, yes]))
        assert_rejects(result, np.array([1 - 0.88 * yes, 0.88 * yes]))
    assert all(survives(0.5, 0, secret) for _ in range(1_000)), "nothing was lost"
    assert not any(survives(0.5, -1_000, secret) for _ in range(1_000))


def test_where_floats_cannot_decide_a_coin_is_still_fair() -> None:
    """A window as wide as this sends half of all coins to exact arithmetic."""
    secret = SecretRandomness(SeededSource(2), window=0.4)
    result = [int(survives(0.1, -7, secret)) for _ in range(8_000)]
    yes = math.exp(-0.7)
    assert_follows(result, np.array([1 - yes, yes]))
    assert_rejects(result, np.array([1 - 0.93 * yes, 0.93 * yes]))


@pytest.mark.parametrize("difference", [1, -(1 << 62)])
def test_a_coin_that_gains_is_refused(difference: int) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        survives(0.1, difference, SecretRandomness(SeededSource(1)))
