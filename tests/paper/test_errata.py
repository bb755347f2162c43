"""One test for each slip of the paper: docs/errata.md, same numbers. Each shows that what is printed fails, and that
what the library uses instead holds, by enumeration, exact arithmetic or a counterexample."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import ne
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import optimize, stats

from diminuendo import paper
from diminuendo.continuous.domains import CappedSimplex
from diminuendo.continuous.frank_wolfe_plan import Spec, paper_plan
from diminuendo.errors import InvalidInput, UnknownEvent
from diminuendo.experts.noisy_leader import pftal_points, pure_noise
from diminuendo.learners import LEARNERS
from diminuendo.learners.hedge.constants import paper_exploring, paper_rate
from diminuendo.paper import bounds
from diminuendo.privacy import (
    ACCOUNTANTS,
    Composed,
    ContinuousGaussian,
    Gaussian,
    Laplace,
    Parallel,
    Selections,
)
from diminuendo.privacy.calibrate import selection_rate
from diminuendo.randomness.sources import SeededSource
from diminuendo.streams import taste_groups
from diminuendo.types import Floats
from tests.kit.oracles import exact, mp, pure_delta

ROUNDING = 1e-12
"""A few thousand additions of numbers up to 1."""


def softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def kl(p: float, q: float) -> float:
    return p * math.log(p / q) + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


# Privacy.


def test_erratum_1_the_tail_of_the_number_of_explorations() -> None:
    """Pr(M > 2 gamma T) <= e^(-8 gamma^2 T) is false; with 2 for 8 it is Hoeffding's."""
    for rounds, exact_tail in ((100, 8.08e-4), (1000, 1.289e-21)):
        tail = stats.binom.sf(2 * rounds // 10, rounds, 0.1)
        assert tail == pytest.approx(exact_tail, rel=1e-2, abs=0)
        assert math.exp(-8 * 0.01 * rounds) < tail <= math.exp(-2 * 0.01 * rounds)
    for gamma in np.linspace(0.005, 0.5, 100):
        for rounds in (1, 7, 100, 1234):
            assert stats.binom.sf(math.floor(2 * gamma * rounds), rounds, gamma) <= math.exp(
                -2 * gamma**2 * rounds
            )
        assert kl(min(1.0, 2 * gamma), gamma) / (2 * gamma**2) >= 1.032

    def gap(gamma: float) -> float:
        return kl(2 * gamma, gamma) - 8 * gamma**2  # below 0: false for long enough runs

    root = optimize.brentq(gap, 0.01, 0.2)
    assert root == pytest.approx(0.051762, abs=1e-6)
    assert all(gap(gamma) < 0 for gamma in np.linspace(root + 1e-6, 0.499, 200))
    # With the stated gamma the exponent is so large that even a quarter of it is more than the theorem's 8 T^(1/3).
    assert 2 * (16 * 2 * math.log(2)) ** (4 / 3) > 124


@pytest.mark.parametrize(("n_items", "slots", "needed"), [(10, 3, 3.7e6), (20, 5, 1.15e8), (100, 5, 6.8e9)])
def test_erratum_2_the_stated_gamma_is_no_probability(n_items: int, slots: int, needed: float) -> None:
    rounds = slots**3 * (16 * n_items * math.log(n_items)) ** 2
    assert rounds == pytest.approx(needed, rel=0.02)
    assert paper_exploring(n_items, slots, math.floor(rounds)) > 1
    assert paper_exploring(n_items, slots, math.ceil(rounds)) <= 1
    assert paper_exploring(20, 5, 10**6) == pytest.approx(4.86114589, rel=1e-8)
    assert paper_exploring(1, 1, 10**6) == 0
    with pytest.raises(InvalidInput):
        bounds.bandit(20, 5, 10**6, 0.1, paper_exploring(20, 5, 10**6))


def test_erratum_4_gaussian_noise_is_never_purely_private() -> None:
    """The log-ratio of two Gaussians grows without end; with a norm that is Gamma distributed it cannot."""
    for epsilon in (1.0, 10.0, 30.0):
        shift, here = 0.5, 3 * epsilon
        assert stats.norm.logpdf(here, shift) - stats.norm.logpdf(here, 0) > epsilon
        assert ACCOUNTANTS["continuous-gaussian"].delta(ContinuousGaussian(shift), epsilon) > 0
    for event in (ContinuousGaussian(0.5), Gaussian(0.125)):
        with pytest.raises(UnknownEvent):
            ACCOUNTANTS["pure"].epsilon(event, 0.0)
    assert ACCOUNTANTS["pure"].epsilon(Laplace(1.0), 0.0) == 1.0
    rng = np.random.default_rng(0)
    noise, shift_by = 100 * rng.normal(size=(1000, 3)), np.array([2.0, -1.0, 2.0])
    # The shift is 3 long, and the density of noise b in proportion to exp(-|b|/3).
    ratio = (np.linalg.norm(noise - shift_by, axis=1) - np.linalg.norm(noise, axis=1)) / 3
    assert 0.9 < np.abs(ratio).max() <= 1 + ROUNDING


def test_erratum_6_the_constant_32_needs_a_small_epsilon() -> None:
    """Advanced composition proves Proposition 2 for epsilon <= 4 log(1/delta) only, and at (10, .99) it is false."""
    rounds = 10**9  # so many that e^x - 1 is x

    def proved(epsilon: float, delta: float) -> bool:
        rate = paper_rate(1, rounds, epsilon, delta)
        return bounds.advanced_composition(2 * rate, rounds, delta) <= epsilon

    for delta in (0.5, 1e-2, 1e-6):
        edge = 4 * math.log(1 / delta)
        assert proved(edge * 0.999, delta)
        assert not proved(edge * 1.001, delta)
    assert not proved(2.9, 0.5)
    assert not proved(60.0, 1e-6)
    for delta in (0.5, 1e-6):  # zCDP proves it for 12 times as much
        epsilon = 48 * math.log(1 / delta)
        draws = Selections(10**4, 2 * paper_rate(1, 10**4, epsilon, delta))
        assert ACCOUNTANTS["zcdp"].delta(draws, epsilon) <= delta
    # Two items, 50 rounds. The first user wants one item or the other, nobody else wants anything. The 49 draws that
    # follow are independent, right with odds e^rate: exactly the law of `pure_delta`.
    rate = paper_rate(1, 50, 10.0, 0.99)
    assert rate == pytest.approx(2.4937, abs=1e-4)
    first, other = softmax(rate * np.array([1.0, 0.0])), softmax(rate * np.array([0.0, 1.0]))
    assert np.log(first / other) == pytest.approx([rate, -rate])
    truth = pure_delta(rate, 49, 10)
    assert truth > 0.99
    assert float(1 - truth) == pytest.approx(2.99e-13, rel=1e-2, abs=0)


# A view: the ordered items of each round, and the public draws. Two experts, two items; user f: a value for each set.

Value = dict[frozenset[int], float]
GAMMA, RATE = 0.3, 0.5


def wants(item: int) -> Value:
    sets = [frozenset(s) for s in ((), (0,), (1,), (0, 1))]
    return {s: float(item in s) for s in sets}


class View(NamedTuple):
    """Two rounds of Algorithm 3."""

    chance: float
    first: tuple[int, ...]
    """The experts' items in round 1."""
    explored: tuple[int, int, float] | None
    """Expert, item and feedback, if round 1 explored."""
    second: tuple[int, ...]


def bandit_views(user: Value) -> Iterator[View]:
    """All that can happen, with its chance."""
    items = list(itertools.product(range(2), repeat=2))
    for one in items:
        yield View(0.25 * (1 - GAMMA), one, None, one)
        for expert, probe in items:
            fed = user[frozenset([*one[:expert], probe])]
            totals = np.zeros((2, 2))
            totals[expert, probe] = fed
            for two in items:
                chance = math.prod(softmax(RATE * totals[i])[two[i]] for i in range(2))
                yield View(0.25 * GAMMA / 4 * chance, one, (expert, probe, fed), two)


def test_erratum_7_the_future_gives_exploration_away() -> None:
    """E[feedback | items of expert 1 in all rounds] is not gamma/(kN) f; given the past it is."""
    mass: dict[tuple[object, ...], float] = defaultdict(float)
    fed: dict[tuple[object, ...], float] = defaultdict(float)
    for chance, one, explored, two in bandit_views(wants(0)):
        for given in (("past", one[0]), ("all", one[0], two[0])):
            mass[given] += chance
            if explored is not None and explored[:2] == (1, 0):
                fed[given] += chance * explored[2]
    claimed = GAMMA / 4  # k N = 4, and item 0 is worth 1 whatever is there already
    result = {given: fed[given] / mass[given] for given in mass}
    for first in range(2):
        assert result["past", first] == pytest.approx(claimed, abs=ROUNDING)
    seen = [result["all", first, second] for first, second in itertools.product(range(2), repeat=2)]
    assert seen == pytest.approx([0.0436, 0.2663, 0.2356, 0.0446], abs=5e-5)
    assert min(abs(value - claimed) for value in seen) > 0.03
    assert sum(mass.values()) == pytest.approx(2, abs=ROUNDING)


def test_erratum_9_played_sets_say_more_than_unordered_slates() -> None:
    """The probe of expert 2 gives away which item was expert 1's. The same sets, another view; and more is leaked."""

    def played(slate: tuple[int, int], expert: int, probe: int) -> set[int]:
        return {*slate[:expert], probe}

    assert played((0, 1), 1, 2) != played((1, 0), 1, 2)
    # Expert 1 has learned, at rate 1, that item 0 is good; or nothing.
    learned = softmax(np.array([1.0, 0.0, 0.0]))
    views: dict[str, list[dict[object, float]]] = {"unordered": [], "played": [], "ordered": []}
    for first in (learned, np.full(3, 1 / 3)):
        laws: dict[str, dict[object, float]] = {name: defaultdict(float) for name in views}
        for a, b, probe in itertools.product(range(3), repeat=3):
            chance, slate = first[a] / 9, frozenset((a, b))
            laws["unordered"][slate, probe] += chance
            laws["played"][slate, probe, frozenset((a, probe))] += chance
            laws["ordered"][a, b, probe] += chance
        for name, law in laws.items():
            views[name].append(law)

    def distance(pair: Sequence[dict[object, float]]) -> float:
        return sum(max(0.0, chance - pair[1].get(view, 0.0)) for view, chance in pair[0].items())

    apart = {name: distance(pair) for name, pair in views.items()}
    assert apart["unordered"] < 0.9 * apart["played"]
    assert apart["played"] <= apart["ordered"] + ROUNDING  # what the library's theorem is about covers both


def test_erratum_10_doubling_works() -> None:
    """Fresh experts in each epoch, each with the whole budget: in parallel it holds, and the regret grows 3.42-fold."""
    lengths = [2**j for j in range(1, 15)]
    rates = [selection_rate(1.0, 1e-6, 5 * (length - 1), 2.0) for length in lengths]
    epochs = [Selections(5 * (n - 1), 2 * rate) for n, rate in zip(lengths, rates, strict=True)]
    count = ACCOUNTANTS["zcdp"]
    worst = max(count.epsilon(epoch, 1e-6) for epoch in epochs)
    assert worst == count.epsilon(Parallel(tuple(epochs)), 1e-6) <= 1 + 1e-9
    assert count.epsilon(Composed(tuple(epochs)), 1e-6) > 3
    total = sum(bounds.full_information(50, 5, n, rate) for n, rate in zip(lengths, rates, strict=True))
    once = bounds.full_information(
        50, 5, sum(lengths), selection_rate(1.0, 1e-6, 5 * (sum(lengths) - 1), 2.0)
    )
    assert once < total < once * math.sqrt(2) / (math.sqrt(2) - 1)

    def law(stream: Sequence[int], epoch: int) -> Floats:
        """One expert, two items; user i wants item i. The chance of every sequence of draws."""
        rounds = [
            softmax(RATE * np.bincount(stream[t // epoch * epoch : t], minlength=2).astype(float))
            for t in range(len(stream))
        ]
        return reduce(lambda before, now: np.outer(before, now).ravel(), rounds)

    def delta(rounds: int, epoch: int) -> float:
        laws = {stream: law(stream, epoch) for stream in itertools.product((0, 1), repeat=rounds)}
        pairs = [(a, b) for a in laws for b in laws if sum(map(ne, a, b)) == 1]
        return max(float(np.maximum(0, laws[a] - math.exp(0.25) * laws[b]).sum()) for a, b in pairs)

    # Two epochs cost what one costs.
    assert delta(6, epoch=3) == pytest.approx(delta(3, epoch=3), abs=ROUNDING)
    assert delta(6, epoch=6) > delta(3, epoch=3) + 0.1


def test_erratum_12_the_wedge_is_a_minimum() -> None:
    """The last step of Lemma 1. For each past: its chance P under F and Q under F', and the chance of what follows."""

    def sides(
        wedge: Callable[[float, float], float],
        pasts: Sequence[Sequence[float]],
        a: float,
        by_element: bool = True,
    ) -> tuple[float, float]:
        """What is to be bounded, and the bound; this release costs a, and so do those before it."""
        e = math.exp(a)
        mu = [p - e * q for p, q, _ in pasts]
        left = sum(wedge(e * follows, 1.0) * p for p, _, follows in pasts)
        positive = sum(max(0.0, m) for m in mu) if by_element else max(0.0, sum(mu))
        return left, e * e * sum(follows * q for _, q, follows in pasts) + positive

    never = [(0.5, 0.5, 0.0)]  # what does not follow under F'
    left, right = sides(max, never, 0.1)
    assert left > right + 0.4
    left, right = sides(min, never, 0.1)
    assert left <= right
    e = math.exp(0.1)
    # mu of the two pasts together is below 0, mu of the first is not
    swap = [(0.5 * e + 0.2, 0.5, 0.9), (0.5 * e - 0.35, 0.5, 0.0)]
    left, right = sides(min, swap, 0.1, by_element=False)
    assert left > right + 0.05
    rng = np.random.default_rng(1)
    for _ in range(2000):
        left, right = sides(min, rng.random((rng.integers(1, 5), 3)).tolist(), float(rng.random()))
        assert left <= right + ROUNDING
    with pytest.raises(InvalidInput):
        bounds.advanced_composition(0.1, 10, 0.0)  # "any delta' >= 0": log(1/0)


# Regret.


def test_erratum_3_the_bandit_bound_grows_like_k_to_the_five_private_keys() -> None:
    n_items, rounds, epsilon = 50, 10**20, 1.0

    def learning(slots: int) -> float:
        """The proved bound with the paper's rate and its stated gamma, without gamma T; log(k/delta) held fixed."""
        gamma, delta = paper_exploring(n_items, slots, rounds), slots * 1e-7
        rate = paper_rate(slots, 2 * gamma * rounds, epsilon, delta)
        return bounds.bandit(n_items, slots, rounds, rate, gamma) - gamma * rounds

    assert math.log(learning(40) / learning(10)) / math.log(4) == pytest.approx(2.5, abs=1e-3)
    false = []
    for slots in range(1, 51):
        gamma, delta = paper_exploring(n_items, slots, rounds), 1e-6
        first = slots * bounds.printed_bandit_lemma(n_items, slots, rounds, gamma, epsilon, delta)
        whole = bounds.bandit_at_stated_gamma(n_items, slots, rounds, epsilon, delta)
        assert first + gamma * rounds == pytest.approx(whole, rel=1e-12)
        false.append(first > bounds.printed_bandit(n_items, slots, rounds, epsilon, delta))
    assert false == [slots >= 26 for slots in range(1, 51)]
    for slots in range(90, 110):  # the lemma's 16 could be 8: then from 102 on
        gamma = paper_exploring(200, slots, 10**24)
        rate = paper_rate(slots, 2 * gamma * 10**24, epsilon, 1e-6)
        proved = bounds.bandit(200, slots, 10**24, rate, gamma)
        assert (proved > bounds.printed_bandit(200, slots, 10**24, epsilon, 1e-6)) is (slots >= 102)

    def best(slots: int) -> float:
        return bounds.bandit_at_best_gamma(n_items, slots, rounds, epsilon, slots * 1e-7)

    assert math.log(best(40) / best(10)) / math.log(4) == pytest.approx(2.0, abs=1e-9)


def test_erratum_5_two_numbers_of_copies() -> None:
    """K sqrt(T log^2.5 T) + T/(2K) is T^(3/4) log^1.25 T, as stated, or log^.625 T; and that T must not be dropped."""

    def algorithm(rounds: Any) -> Any:
        return mp.sqrt(mp.sqrt(rounds) / mp.log(rounds) ** 2.5)

    def appendix(rounds: Any) -> Any:
        return mp.root(rounds / mp.log(rounds) ** 2.5, 4)

    def power_of_log(copies: Callable[[Any], Any]) -> float:
        """With which log T enters the bound divided by T^(3/4); at log T = 10^9 the smaller term is nothing."""
        sizes = []
        for log in (mp.mpf(10) ** 9, mp.mpf(10) ** 10):
            rounds = mp.exp(log)
            k = copies(rounds)
            sizes.append((k * mp.sqrt(rounds * log**2.5) + rounds / (2 * k)) / mp.exp(0.75 * log))
        return float(mp.log10(sizes[1] / sizes[0]))

    assert power_of_log(algorithm) == pytest.approx(1.25, abs=1e-6)
    assert power_of_log(appendix) == pytest.approx(0.625, abs=1e-6)
    assert algorithm(10**4) < algorithm(3 * 10**5) < 1 < algorithm(4 * 10**5)  # less than one copy
    # Rounded to the nearest whole number it is one copy from 3 rounds to 4.16 million, rounded down to 22 million.
    assert algorithm(4_164_887) < 1.5 < algorithm(4_164_888)
    assert algorithm(22_142_339) < 2 < algorithm(22_142_340)
    for rounds, copies in ((2, 2), (3, 1), (10**5, 1)):
        known = Spec(2, rounds, radius=1.0, spread=1.0, gradient_bound=1.0, smoothness=1.0)
        assert paper_plan(known, epsilon=1.0).copies == copies

    def value(x: Sequence[float]) -> float:
        return (1 - math.exp(-10 * x[0])) / 10 + 0.9 * x[1]  # monotone, DR-submodular, 10-smooth

    # One copy on x >= 0, x_1 + x_2 <= 1 that always says (1, 0): the gradient at 0 is (1, .9), so its regret is 0.
    rounds = 20
    regret = rounds * ((1 - 1 / math.e) * value((0, 1)) - value((1, 0)))
    assert 10 / 2 < regret <= 10 * rounds / 2  # beta R^2/(2K) as displayed, and beta R^2 T/(2K)


def test_erratum_8_the_points_of_algorithm_4_leave_a_domain_without_zero() -> None:
    """X = [1, 2], f(x) = log x / log 2: monotone, concave, in [0, 1] on X, gradients at most G = 1/log 2 there."""
    copies, bound = 4, 1 / math.log(2)
    inside = [1.0, 1.5, 2.0, 1.25]  # what the copies say
    points = [sum(inside[:j]) / copies for j in range(copies)]
    assert 1 <= sum(inside) / copies <= 2  # what is played
    assert [1 <= point <= 2 for point in points] == [False, False, False, True]
    assert points[0] == 0  # where f is not even defined
    assert 1 / (points[1] * math.log(2)) > 3.9 * bound


def test_erratum_11_the_direct_approach_and_presampling() -> None:
    n_items, slots, rounds, epsilon, delta, gamma = 100, 3, 10**8, 1.0, 1e-6, 0.2
    log = math.log(slots / delta)
    rate = paper_rate(slots, rounds, epsilon, delta)
    one = (bounds.direct_bandit(n_items, slots, rounds, rate, gamma) - gamma * rounds) / slots
    root = math.sqrt(32 * rounds * log)
    corrected = epsilon * math.sqrt(rounds) / (slots * math.sqrt(32 * log))
    corrected += slots**2 * n_items * math.log(n_items) * root / (epsilon * gamma)
    assert one == pytest.approx(corrected, rel=1e-12)
    assert slots * delta < 1  # the printed root of log(k delta) is imaginary
    assert bounds.direct_bandit(n_items, slots, rounds, rate, gamma) > bounds.printed_direct_bandit(
        n_items, slots, rounds, gamma, epsilon, delta
    )  # log N = 4.6 is missing, and one factor k = 3 too many does not make up for it
    presampled = 8 * slots**3 * n_items * math.log(n_items) / epsilon * math.sqrt(rounds * log / gamma)
    printed = bounds.printed_presampled(n_items, slots, rounds, gamma, epsilon, delta) - gamma * rounds
    assert printed / presampled == pytest.approx(math.sqrt(log), rel=1e-12)
    for explorations in (5, 10**3, 10**6):  # the display before, given M: 6 for sqrt 32 = 5.66 and a bit
        rate = paper_rate(slots, explorations + 1, epsilon, delta)
        shown = 6 * slots * math.log(n_items) * math.sqrt(log * (explorations + 1)) / epsilon
        assert rate * explorations + math.log(n_items) / rate <= shown


def cycle(n_items: int, rate: float) -> tuple[float, float]:
    """Every item gains 1 in turn, all starting level: regret and rate * sum of x g^2. Then all are level again."""
    chances = 1 / (n_items + np.arange(n_items) * math.expm1(rate))
    return 1 - float(chances.sum()), rate * float(chances.sum())


def test_erratum_13_the_bound_of_hedge_fails_for_large_rates() -> None:
    n_items, turns, rate = 50, 80, 2.0
    totals, own, squares = np.zeros(n_items), 0.0, 0.0
    for t in range(turns * n_items):
        own += (gained := float(softmax(rate * totals)[t % n_items]))
        squares += rate * gained  # gains are 0 or 1
        totals[t % n_items] += 1
    regret = turns - own
    assert regret > squares + math.log(n_items) / rate  # as printed, for every rate
    assert regret <= bounds.hedge(n_items, turns * n_items, rate)
    assert (own, squares) == pytest.approx((turns * (1 - cycle(50, 2.0)[0]), turns * cycle(50, 2.0)[1]))
    for offset, fails in ((-1e-3, False), (1e-3, True)):  # the constant is the very edge
        one, allowed = cycle(10**6, bounds.LARGEST_RATE + offset)
        assert (one > allowed) is fails


def coverage(rng: np.random.Generator, n_items: int) -> dict[frozenset[int], float]:
    """A random monotone submodular function with values in [0, 1]: what share of some weights a set covers."""
    covers, weights = rng.random((n_items, 6)) < 0.4, rng.dirichlet(np.ones(6))
    subsets = itertools.chain.from_iterable(
        itertools.combinations(range(n_items), r) for r in range(n_items + 1)
    )
    return {frozenset(s): float(weights @ covers[list(s)].any(axis=0)) for s in subsets}


def test_erratum_14_feedback_is_a_value_not_a_marginal() -> None:
    """Its mean is gamma/(kN) (gain + f(S)): the same offset for all items. Single feedbacks are no such thing."""
    weights, covers = (
        np.array([0.5, 0.25, 0.25]),
        np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool),
    )

    def f(shown: Sequence[int]) -> float:
        return float(weights @ covers[list(shown)].any(axis=0))

    gains = np.array([f([0, a]) - f([0]) for a in range(4)])  # after item 0
    assert gains.tolist() == [0, 0.25, 0.25, 0]
    feeds = [np.where(np.arange(4) == a, f([0, a]), 0.0) for a in range(4)]  # if item a is probed
    mean = GAMMA / 2 / 4 * np.sum(feeds, axis=0)  # k = 2
    assert mean - GAMMA / 8 * gains == pytest.approx(np.full(4, GAMMA / 8 * 0.75), abs=ROUNDING)
    assert feeds[0][0] == 0.75  # an item that adds nothing is fed what is there already
    assert all(np.ptp(feed - gains) > 0.5 for feed in feeds)
    assert all(0 <= value <= 1 for feed in feeds for value in feed)


def test_erratum_15_the_slots_share_one_reward() -> None:
    """The experts' second-order terms add up to E f(S) <= 1 a round at most, not k; epsilon^(-1/2), not 1/epsilon."""
    rng = np.random.default_rng(3)
    n_items, slots = 4, 3
    for trial in range(50):
        f = coverage(rng, n_items) if trial else {s: float(bool(s)) for s in coverage(rng, n_items)}
        laws = rng.dirichlet(np.ones(n_items), size=slots)
        squares = reward = 0.0
        for slate in itertools.product(range(n_items), repeat=slots):
            chance = math.prod(laws[i][a] for i, a in enumerate(slate))
            reward += chance * f[frozenset(slate)]
            for i in range(slots):
                before = frozenset(slate[:i])
                squares += chance * sum(
                    laws[i][a] * (f[before | {a}] - f[before]) ** 2 for a in range(n_items)
                )
        assert squares <= reward + ROUNDING <= 1 + 2 * ROUNDING
        if trial == 0:
            assert squares == pytest.approx(1.0, abs=ROUNDING)  # one thing to be had: attained; k is 3
    assert bounds.full_information(50, 5, 10**5, 0.01) < bounds.printed_full_information(50, 5, 10**5, 0.01)

    def balanced(epsilon: float) -> float:
        """n (L + H R)^2 log^2.5 T/(epsilon H) + H R^2 T/2 at H = sqrt(n log^2.5 T/(epsilon T)), where L = R = 1."""
        rounds = 10**12
        spread = 10 * math.log(rounds) ** 2.5
        curvature = math.sqrt(spread / (epsilon * rounds))
        assert curvature < 1e-3  # so the slopes below are good to 1e-3
        return float(spread * (1 + curvature) ** 2 / (epsilon * curvature) + curvature * rounds / 2)

    def printed(epsilon: float) -> float:
        return bounds.printed_pftal(10, 10**12, epsilon, lipschitz=1.0, diameter=1.0)

    assert math.log2(balanced(0.2) / balanced(0.4)) == pytest.approx(0.5, abs=1e-3)
    assert math.log2(printed(0.2) / printed(0.4)) == pytest.approx(1.0, abs=1e-3)


def test_erratum_16_presampling_makes_the_rate_know_the_future() -> None:
    """Two users want different items of two. The rate follows the number M of explorations: then the regret exceeds
    kN/gamma times what the expert is fed, which it equals at a fixed rate. Over all schedules and probes."""
    stream, against, gamma, cells = (0, 1), 1, 0.5, 2
    rounds = len(stream)

    def regrets(rate: Callable[[int], float], numbers: Sequence[int]) -> tuple[float, float]:
        """True and fed, given that M is one of the numbers."""
        true = fed = mass = 0.0
        for schedule in itertools.product((0, 1), repeat=rounds):
            for probes in itertools.product(range(2), repeat=rounds):
                if sum(schedule) not in numbers:
                    continue
                chance, totals = 0.25**rounds, np.zeros(2)
                mass += chance
                for wanted, explores, probe in zip(stream, schedule, probes, strict=True):
                    short = (wanted == against) - softmax(rate(sum(schedule)) * totals)[wanted]
                    true += chance * short
                    if explores and probe == wanted:
                        fed += chance * short
                        totals[wanted] += 1
        return true / mass, fed / mass

    def by_number(explorations: int) -> float:
        return 3 / math.sqrt(explorations + 1)

    true, fed = regrets(lambda _: 1.5, range(rounds + 1))
    assert true == pytest.approx(cells / gamma * fed, abs=ROUNDING)
    true, fed = regrets(by_number, range(rounds + 1))
    assert (true, cells / gamma * fed) == pytest.approx((0.0928, 0.0874), abs=5e-5)
    for explorations in range(1, rounds + 1):  # what the library proves instead, given M
        p = explorations / rounds
        true, fed = regrets(by_number, [explorations])
        drift = math.pi / 2 * math.sqrt(p * (1 - p) / (rounds - 1)) * rounds
        assert abs(p * true - cells * fed) <= drift + ROUNDING


def test_erratum_17_negative_regrets_do_not_pay() -> None:
    """Proposition 3 without the positive part: two users who want different things, and a first expert who knew."""
    users = [wants(0), wants(1)]
    slates = [(0, 0), (1, 1)]

    def gain(user: Value, slate: Sequence[int], i: int, item: int) -> float:
        before = frozenset(slate[:i])
        return user[before | {item}] - user[before]

    regrets = []
    for i in range(2):
        own = sum(gain(f, s, i, s[i]) for f, s in zip(users, slates, strict=True))
        best = max(sum(gain(f, s, i, a) for f, s in zip(users, slates, strict=True)) for a in range(2))
        regrets.append(best - own)
    assert regrets == [-1.0, 0.0]
    optimum = sum(f[frozenset((0, 1))] for f in users)
    shortfall = (1 - 1 / math.e) * optimum - sum(f[frozenset(s)] for f, s in zip(users, slates, strict=True))
    assert shortfall > sum(regrets) + 0.2  # as printed
    assert shortfall <= bounds.greedy_from_experts(regrets)


def test_erratum_18_the_tail_lost_a_factor_k() -> None:
    """k times Lemma 3 has k^2 N/gamma T e^(-8 gamma^2 T); the display that adds the lemmas up has k N/gamma."""
    n_items, slots, rounds = exact(10), exact(3), exact(10) ** 9
    gamma = slots * mp.cbrt((16 * n_items * mp.log(n_items)) ** 2 / rounds)
    tail = mp.exp(-8 * gamma**2 * rounds)
    assert 0 < tail < mp.mpf(10) ** -1000  # nothing at all, either way
    printed = mp.cbrt(n_items) * mp.cbrt(rounds) ** 4 / mp.cbrt(16 * mp.log(n_items)) ** 2 * tail
    assert mp.almosteq(slots * (slots * n_items / gamma * rounds * tail) / printed, slots, 1e-30)


def slope(function: Callable[[int], float], smaller: int, larger: int) -> float:
    """The power with which a function grows between two places."""
    return math.log(function(larger) / function(smaller)) / math.log(larger / smaller)


def test_erratum_19_the_pure_experts_pay_for_every_item() -> None:
    """Gains are vectors of length up to sqrt N; the remark puts 1 for that length into Theorem 10."""
    anything = {
        s: float(bool(s)) for s in coverage(np.random.default_rng(0), 5)
    }  # one item of any kind will do
    gains = [anything[frozenset((item,))] - anything[frozenset()] for item in range(5)]
    assert math.hypot(*gains) == pytest.approx(math.sqrt(5))
    n_items, slots, rounds = (
        200,
        2,
        10**15,
    )  # so long a run that the noise inside the square of Theorem 10 is nothing
    by_theorem_10 = slots * bounds.printed_pftal(
        n_items, rounds, 1.0 / slots, lipschitz=math.sqrt(n_items), diameter=math.sqrt(2)
    )
    remark = bounds.printed_pure_experts(n_items, slots, rounds, 1.0)
    assert by_theorem_10 / remark == pytest.approx(n_items, rel=1e-3)
    assert slope(lambda n: bounds.printed_pure_experts(n, 2, rounds, 1.0), 2000, 8000) == pytest.approx(0.5)

    def proved(calibration: Any, n_items: int = 2000, slots: int = 2, epsilon: float = 1.0) -> float:
        learner = paper.fi_pure(n_items, slots, 10**12, epsilon, calibration=calibration)
        bound = learner.regret_bound()
        assert bound is not None
        return bound

    # What is proved of what runs: N with the best curvature, N^(3/2) with the printed one. Next to these orders are
    # terms smaller by factors of N + 1 over N, and of N.
    for calibration, power, named in (("tight", 1.0, "N√(T/ε)"), ("paper", 1.5, "√(N³T/ε)")):
        result = slope(lambda n, how=calibration: proved(how, n_items=n), 2000, 8000)  # type: ignore[misc]
        assert result == pytest.approx(power, abs=1e-3)
        more = slope(lambda k, how=calibration: proved(how, slots=k), 2, 8)  # type: ignore[misc]
        assert more == pytest.approx(1.5, abs=1e-3)
        assert proved(calibration) / proved(calibration, epsilon=4.0) == pytest.approx(2, rel=1e-3)
        assert LEARNERS["fi-pure"].variant(calibration=calibration).advice.bound == named
    # The noise in one score on msweb, against totals of at most 32,711.
    assert pure_noise(294, 5, 32_711, 1.0) / math.sqrt(294) == pytest.approx(85_500, rel=1e-3)


def alternating(rounds: int, rate: float) -> float:
    """The (1 - 1/e)-regret of Hedge, in expectation, if two items are wanted in turn; one slot."""
    totals, reward = np.zeros(2), 0.0
    for t in range(rounds):
        reward += float(softmax(rate * totals)[t % 2])
        totals[t % 2] += 1
    return (1 - 1 / math.e) * (rounds / 2) - reward


def test_erratum_20_theorem_6_fails_for_a_large_epsilon() -> None:
    """eta T grows with epsilon, and the theorem has 1/epsilon alone."""

    def order(n_items: int, slots: int, rounds: int, epsilon: float, delta: float) -> float:
        log = math.log(slots / delta)
        return slots**2 * math.log(n_items) * math.sqrt(rounds * log) / epsilon

    rounds, epsilon, delta = 10_000, 5000.0, 0.1
    regret = alternating(rounds, paper_rate(1, rounds, epsilon, delta))
    assert regret == pytest.approx(645.88, abs=0.01)
    assert order(2, 1, rounds, epsilon, delta) == pytest.approx(0.02104, abs=1e-5)
    # No constant helps: with epsilon in proportion to sqrt T the order stays and the regret grows like T.
    times = [
        alternating(n, paper_rate(1, n, 50 * math.sqrt(n), delta)) / order(2, 1, n, 50 * math.sqrt(n), delta)
        for n in (100, 10_000)
    ]
    assert times[1] / times[0] == pytest.approx(100, rel=1e-9)
    assert regret <= bounds.full_information(2, 1, rounds, paper_rate(1, rounds, epsilon, delta))
    # With epsilon^2 <= 32 k^3 L log N the second term is the larger one, and the theorem holds with 2 sqrt 32.
    for n_items, slots, rounds in itertools.product((2, 50), (1, 2), (1, 30, 10**6)):
        edge = math.sqrt(32 * slots**3 * math.log(slots / delta) * math.log(n_items))
        for epsilon in (0.01 * edge, edge):
            rate = paper_rate(slots, rounds, epsilon, delta)
            proved = min(float(rounds), bounds.full_information(n_items, slots, rounds, rate))
            allowed = 2 * math.sqrt(32) * order(n_items, slots, rounds, epsilon, delta)
            assert proved <= allowed * (1 + ROUNDING)
        rate = paper_rate(slots, 10**6, 2 * edge, delta)  # beyond it the proof gives more than that
        assert bounds.full_information(n_items, slots, 10**6, rate) > 2 * math.sqrt(32) * order(
            n_items, slots, 10**6, 2 * edge, delta
        )


def test_erratum_21_so_do_theorem_8_and_lemma_3() -> None:
    """Lemma 3 needs epsilon^2 <= 64 k^3 N log N L; exploring costs gamma T whatever epsilon is."""
    n_items, slots, rounds, delta, gamma = 10, 3, 10**8, 1e-6, 0.3
    log = math.log(slots / delta)
    edge = math.sqrt(64 * slots**3 * n_items * math.log(n_items) * log)
    for epsilon, proved in ((0.999 * edge, True), (1.001 * edge, False)):
        rate = paper_rate(slots, 2 * gamma * rounds, epsilon, delta)
        one = (bounds.bandit(n_items, slots, rounds, rate, gamma) - gamma * rounds) / slots
        printed = bounds.printed_bandit_lemma(n_items, slots, rounds, gamma, epsilon, delta)
        assert (one <= printed) is proved
    # And it is false. Two items wanted in turn, every round explores, so each is fed to the expert half of the time it
    # is wanted; over all values of the difference of the two totals.
    rounds = 200
    rate, chances, regret = paper_rate(1, 2 * rounds, 1e6, delta), {0: 1.0}, 0.0
    for t in range(rounds):
        step = 1 if t % 2 == 0 else -1
        right = {d: float(softmax(rate * np.array([d * step, 0.0]))[0]) for d in chances}
        regret += 0.5 - sum(chance * right[d] for d, chance in chances.items())
        after: dict[int, float] = defaultdict(float)
        for d, chance in chances.items():
            after[d] += chance / 2
            after[d + step] += chance / 2
        chances = after
    assert sum(chances.values()) == pytest.approx(1)
    assert regret == pytest.approx(5.163, abs=1e-3)
    assert bounds.printed_bandit_lemma(2, 1, rounds, 1.0, 1e6, delta) == pytest.approx(0.00117, abs=1e-5)
    # Theorem 8. Where the stated gamma is 1, everybody who wants one item of N is shown it once in N rounds.
    n_items = 10
    rounds = math.ceil((16 * n_items * math.log(n_items)) ** 2)
    gamma, root = paper_exploring(n_items, 1, rounds), math.sqrt(math.log(1 / delta))
    assert 1 - 1e-5 < gamma <= 1
    least = (1 - 1 / math.e) * rounds - (1 - gamma) * rounds - gamma * rounds / n_items
    assert least > bounds.printed_bandit(n_items, 1, rounds, 10 * root, delta)
    constant = 32 / 16 ** (2 / 3)  # above so many k sqrt L even gamma T is more than what is printed
    assert constant == pytest.approx(5.04, abs=1e-3)
    for slots in (1, 4):
        for factor, more in ((0.999, False), (1.001, True)):
            epsilon = factor * constant * slots * math.sqrt(math.log(slots / delta))
            exploring = paper_exploring(n_items, slots, 10**9) * 10**9
            assert (exploring > bounds.printed_bandit(n_items, slots, 10**9, epsilon, delta)) is more


def test_erratum_22_a_minimiser_that_is_fed_the_gradient_climbs_down() -> None:
    """f(x) = x_1 + x_2/2 on x >= 0, x_1 + x_2 <= 1; one copy, no noise. PFTAL minimises what it is fed."""
    domain, gradient, rounds = CappedSimplex(2, total=1.0), np.array([1.0, 0.5]), 100

    def reward(fed: Floats) -> float:
        """What is earned by the leader for the losses <fed, v>, that is for the rewards <-fed, v>."""
        points = [
            pftal_points(domain.project, -t * fed[None, :], curvature=0.1, rounds=t)[0]
            for t in range(1, rounds)
        ]
        return float(sum(gradient @ point for point in points))

    assert reward(gradient) == 0  # as printed: (1 - 1/e) of everything is lost
    assert reward(-gradient) == pytest.approx(rounds - 1)


def test_erratum_23_the_set_in_use_is_the_one_drawn_after_exploring() -> None:
    """S'_t is S_(t_i + 1): S_(t_i) is the one before, and there is no S_0. Over all schedules of five rounds."""
    rounds = 5
    for schedule in itertools.product((False, True), repeat=rounds):
        sets = {1: 0}  # a number for every set that is drawn
        for t, explores in enumerate(schedule, 1):
            sets[t + 1] = sets[t] + explores
        times = [0, *(t for t, explores in enumerate(schedule, 1) if explores), rounds]
        for before, after in itertools.pairwise(times):
            for t in range(before + 1, after + 1):
                assert sets[before + 1] == sets[t]
                assert before not in sets or sets[before] != sets[t]  # as printed, in no round at all
    users = taste_groups(400, 6, groups=3, items_per_group=2, seed=1)
    learner = paper.bandit_dp(6, 2, 400, 50.0, 1e-6, resample="all", rng=SeededSource(1))
    shown: list[set[tuple[int, ...]]] = [set()]
    for user in users:
        decision = learner.choose()
        if decision.probe is None:
            shown[-1].add(tuple(decision.slate))
        else:
            shown.append(set())
        learner.observe(decision, user.value(decision.slate))
    runs = [slates for slates in shown if slates]
    assert len(shown) - 1 > 20
    assert all(len(slates) == 1 for slates in runs)  # one set from exploring to exploring
    assert any(one != other for one, other in itertools.pairwise(runs))  # and then another


def heading(text: str) -> str:
    """What a heading is called in links."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")


def test_documents_name_every_erratum_and_its_test() -> None:
    docs = Path(__file__).parents[2] / "docs"
    errata, table = (docs / "errata.md").read_text(), (docs / "paper.md").read_text()
    numbers = [int(n) for n in re.findall(r"^## (\d+)\.", errata, flags=re.M)]
    assert numbers == list(range(1, 24))
    tests = {name for name in globals() if name.startswith("test_erratum_")}
    assert set(re.findall(r"`(test_erratum_\w+)`", errata)) == tests
    assert {int(name.split("_")[2]) for name in tests} == set(numbers)
    anchors = {heading(text) for text in re.findall(r"^#+ (.*)$", errata, flags=re.M)}
    links = re.findall(r"\[(\d+)\]\(errata\.md#([^)]*)\)", table)
    assert {int(n) for n, _ in links} == set(numbers)
    assert all(anchor in anchors and anchor.startswith(f"{n}-") for n, anchor in links)
    for name in re.findall(r"`bounds\.py`: ((?:`\w+`(?:, )?)+)", table.replace("paper/", "")):
        assert all(hasattr(bounds, function) for function in re.findall(r"`(\w+)`", name))
