"""The bounds: known numbers, limits and orders of growth, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo import paper
from diminuendo.errors import InvalidInput
from diminuendo.paper import bounds
from diminuendo.privacy import ACCOUNTANTS, Laplace, Repeated, Selections
from diminuendo.privacy.curves import zcdp_rho
from tests.kit import enumeration
from tests.kit.oracles import HAIR, exact, mp

FILE = Path(__file__).parents[1] / "reference" / "bounds.json"

FULL = 50, 5, 10**5
BANDIT = 20, 5, 10**6
BUDGET = 1.0, 1e-6
"""Items, slots and rounds; epsilon and delta."""

RHO = zcdp_rho(1.0, 1e-6)
PAPER_RATE = 1 / (5 * math.sqrt(64 * 10**6 * math.log(5e6)))  # of Algorithm 3 where every round explores


def known() -> dict[str, tuple[float, float]]:
    """Name in the file of independent values -> the value, to all its digits, and what the functions say."""
    rate = math.sqrt(2 * RHO / (5 * (10**5 - 1)))
    every, own = math.sqrt(8 * RHO / 1_000_001), math.sqrt(8 * RHO / 169_914)
    share = 0.8406652885618325
    return {
        "B1 regret bound paper (N=50)": (
            687127.3814607656,
            bounds.theorem_full_information(*FULL, *BUDGET),
        ),
        "B1 regret bound zCDP eta T + k logN/eta": (
            62697.86869742943,
            bounds.full_information(*FULL, rate=rate),
        ),
        "bandit paper bound min over gamma<=1": (
            236312454.28942198,
            bounds.bandit(*BANDIT, rate=PAPER_RATE, exploring=1.0),
        ),
        "bandit ours all-resample (regret,gamma,cap,eta)": (
            4395533.475486521,
            bounds.bandit(*BANDIT, rate=every, exploring=1.0, extra=1.0),
        ),
        "bandit ours own-resample (regret,gamma,cap/expert,eta)": (
            2509884.5009059613,
            bounds.bandit(*BANDIT, rate=own, exploring=share, extra=5.0),
        ),
        "Pr(M>cap)": (9.507905996637291e-07, bounds.cap_excess(10**6, 0.01, 10477) / 10**6),
    }


@pytest.mark.parametrize("name", known())
def test_known_values(name: str) -> None:
    """Computed once by an independent program; rates here come from our own accountant, good to 1e-9."""
    value, result = known()[name]
    assert result == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("name", known())
def test_the_known_values_are_those_of_the_file(name: str) -> None:
    assert known()[name][0] == json.loads(FILE.read_text())[name]


def test_what_a_cap_may_add_is_what_the_known_bounds_allow_for() -> None:
    """1 in all where the cap is on all explorations, 1 for each expert where it is on the explorations of each."""
    assert 0 == bounds.cap_excess(10**6, 1.0, 1_000_001) <= 1
    assert 0.9 < bounds.cap_excess(10**6, 0.8406652885618325 / 5, 169_914) <= 1
    assert bounds.cap_excess(10**6, 0.8406652885618325 / 5, 169_900) > 1
    few = sum(
        Fraction(math.comb(9, m)) * Fraction(1, 4) ** m * Fraction(3, 4) ** (9 - m) for m in range(4, 10)
    )
    assert bounds.cap_excess(9, 0.25, 3) == pytest.approx(float(9 * few), rel=1e-12)


@pytest.mark.parametrize("cap", [4_990_000, 5_004_000, 5_010_000])
def test_what_a_cap_may_add_to_more_rounds_than_fit_into_32_bits(cap: int) -> None:
    """Against the sum of the probabilities of cap + 1, cap + 2, .. explorations, in 60 digits."""
    rounds, share = 5 * 10**9, exact(0.001)
    here, tail, least = cap + 1, mp.mpf(0), mp.mpf(10) ** -30
    chance = mp.exp(
        (mp.loggamma(rounds + 1) - mp.loggamma(here + 1) - mp.loggamma(rounds - here + 1))
        + here * mp.log(share)
        + (rounds - here) * mp.log1p(-share)
    )
    while (
        here < 5_000_000 or chance > least * tail
    ):  # beyond the mean each is less likely than the one before
        tail += chance
        chance *= (rounds - here) * share / ((here + 1) * (1 - share))
        here += 1
    # A rounding of the share by 2^-53 moves the exponent, z^2/2 with z up to 4.5, by 2^-53 z sqrt(5e6) = 1e-12.
    assert bounds.cap_excess(rounds, 0.001, cap) == pytest.approx(float(rounds * tail), rel=1e-11)


def test_the_largest_rate_is_a_root_and_on_the_safe_side() -> None:
    def gap(y: Any) -> Any:
        return 1 + y + y * y - mp.exp(y)

    y = exact(bounds.LARGEST_RATE)
    assert gap(y) >= 0 > gap(y + mp.mpf(2) ** -50)
    assert all(gap(y * i / 1000) > 0 for i in range(1, 1000))


def test_hedge_is_the_smaller_of_the_valid_bounds() -> None:
    for rate in (1e-3, 0.1, 1.0, 1.79, 5.0):
        result = bounds.hedge(50, 1000, rate)
        assert result == pytest.approx(1000 * rate / 8 + math.log(50) / rate, rel=1e-14)
        assert result < bounds.printed_hedge(50, 1000, rate)
        assert bounds.printed_full_information(50, 3, 1000, rate) == 3 * bounds.printed_hedge(50, 1000, rate)


@pytest.mark.parametrize("slots", [1, 3, 20])
def test_beyond_the_largest_rate_the_second_order_form_takes_over(slots: int) -> None:
    learning = {rate: slots * math.log(50) / rate for rate in (1.79, 1.80)}
    assert bounds.full_information(50, slots, 1000, 1.79) == pytest.approx(1790 + learning[1.79])
    assert bounds.full_information(50, slots, 1000, 1.80) == pytest.approx(1800 * slots / 8 + learning[1.80])
    tail = {rate: slots * 50 * learning[rate] / 0.5 + 500 for rate in learning}
    assert bounds.bandit(50, slots, 1000, 1.79, 0.5) == pytest.approx(slots * 1790 + tail[1.79])
    assert bounds.bandit(50, slots, 1000, 1.80, 0.5) == pytest.approx(slots * 50 / 8 * 1800 + tail[1.80])
    assert bounds.direct_bandit(50, slots, 1000, 0.1, 0.5) == bounds.bandit(50, slots, 1000, 0.1, 0.5)


def test_the_best_gamma_of_the_lemma_is_best() -> None:
    """Against a scan of k times Lemma 3 plus gamma T, at a T so long that gamma is small and the tail is nothing."""
    case = 10, 3, 10**14
    best = bounds.best_printed_gamma(*case, *BUDGET)
    assert 1e-3 < best < 0.1

    def total(gamma: float) -> float:
        return 3 * bounds.printed_bandit_lemma(*case, gamma, *BUDGET) + gamma * 10**14

    assert total(best) == pytest.approx(bounds.bandit_at_best_gamma(*case, *BUDGET), rel=1e-12)
    assert all(total(best * factor) > total(best) for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


def slope(value: Callable[[float], float], at: float) -> float:
    """The exponent with which a function grows."""
    return math.log(value(at * 1.001) / value(at)) / math.log(1.001)


LONG = 10**40
"""So many rounds that only the leading term is left; the slack below is for what log T adds."""


@pytest.mark.parametrize(
    ("value", "exponent"),
    [
        (lambda t: bounds.theorem_full_information(50, 5, t, 1.0, 1e-6), 1 / 2),
        (lambda t: bounds.printed_bandit(50, 5, t, 1.0, 1e-6), 2 / 3),
        (lambda t: bounds.bandit_at_stated_gamma(50, 5, t, 1.0, 1e-6), 2 / 3),
        (lambda t: bounds.bandit_at_best_gamma(50, 5, t, 1.0, 1e-6), 2 / 3),
        (lambda t: bounds.printed_presampled(50, 5, t, 5e3 * t ** (-1 / 3), 1.0, 1e-6), 2 / 3),
        (lambda t: bounds.printed_direct_bandit(50, 5, t, 5e3 * t ** (-1 / 4), 1.0, 1e-6), 3 / 4),
        (lambda t: bounds.printed_pftal(50, t, 1.0, lipschitz=1.0, diameter=1.0), 1 / 2),
        (lambda t: bounds.printed_pure_experts(50, 5, t, 1.0), 1 / 2),
        (
            lambda t: bounds.printed_continuous(
                50, t, 1.0, gradient=1.0, radius=1.0, diameter=1.0, smoothness=1.0
            ),
            3 / 4,
        ),
    ],
)
def test_orders_of_growth_in_the_rounds(value: Callable[[int], float], exponent: float) -> None:
    """log^1.25 T adds 1.25 / log T = .0136 to an exponent."""
    assert 0 <= slope(lambda t: value(int(t)), LONG) - exponent + 1e-6 < 0.0137


def test_printed_formulas_letter_by_letter() -> None:
    """In 60 digits, from the page. log(k delta) of appendix B.1 is read as log(k/delta)."""
    n, k, t, gamma, eps, delta = exact(20), exact(3), exact(5000), exact(0.25), exact(0.5), exact(1e-6)
    size, diameter, radius, smooth = exact(1.5), exact(2.5), exact(1.25), exact(0.75)
    log, spread = mp.log(k / delta), mp.log(t) ** 2.5
    half = k**4 * n * mp.sqrt(32 * t * log) / (eps * gamma) + eps * k**2 * mp.sqrt(t) / mp.sqrt(32 * log)
    square = (size + mp.sqrt(n * spread / (eps * t)) * diameter) ** 2
    broad = (size + mp.sqrt(n / (eps * t**0.75)) * spread * diameter) ** 2
    case, budget = (20, 3, 5000), (0.5, 1e-6)

    def lemma(t: Any) -> Any:
        learning = 16 * k**2 * n * mp.log(n) * mp.sqrt(t * log) / (eps * mp.sqrt(gamma))
        return learning + k * n / gamma * t * mp.exp(-8 * gamma**2 * t)

    pairs = [
        (bounds.printed_bandit_lemma(*case, 0.25, *budget), lemma(t)),
        (
            bounds.printed_bandit_lemma(20, 3, 8, 0.25, *budget),
            lemma(exact(8)),
        ),  # so short that the tail counts
        (
            bounds.printed_bandit(*case, *budget),
            32 * mp.sqrt(log) / eps * (k * mp.cbrt(n * mp.log(n))) ** 2 * mp.cbrt(t) ** 2,
        ),
        (bounds.printed_direct_bandit(*case, 0.25, *budget), half + gamma * t),
        (
            bounds.printed_presampled(*case, 0.25, *budget),
            8 * k**3 * n * mp.log(n) * log / eps * mp.sqrt(t / gamma) + gamma * t,
        ),
        (
            bounds.printed_pftal(20, 5000, 0.5, lipschitz=1.5, diameter=2.5),
            mp.sqrt(n * spread) * square / eps * mp.sqrt(t),
        ),
        (
            bounds.printed_continuous(
                20, 5000, 0.5, gradient=1.5, radius=1.25, diameter=2.5, smoothness=0.75
            ),
            t**0.75 * mp.sqrt(spread) * (mp.sqrt(n) * broad / eps + smooth * radius**2),
        ),
        (bounds.printed_pure_experts(20, 3, 5000, 0.5), k**2 * mp.sqrt(n * t * spread) / eps),
    ]
    for result, wanted in pairs:
        assert result == pytest.approx(float(wanted), rel=1e-12)


def test_the_presampled_bound_adds_little_and_nothing_where_every_round_explores() -> None:
    plain = bounds.bandit(20, 5, 1000, 0.1, 0.25)
    assert bounds.presampled_bandit(20, 5, 1000, 0.1, 250) - plain == pytest.approx(
        5 * math.pi / 2 * math.sqrt(3) * 1000 / math.sqrt(999)
    )
    assert bounds.presampled_bandit(20, 5, 1000, 0.1, 1000) == bounds.bandit(20, 5, 1000, 0.1, 1.0)
    assert bounds.presampled_bandit(20, 5, 1, 0.1, 1) == bounds.bandit(20, 5, 1, 0.1, 1.0)


@pytest.mark.parametrize("rounds", [2, 3, 10, 101, 300])
@pytest.mark.parametrize("part", [0.01, 0.2, 0.5, 0.9, 1.0])
def test_what_presampling_adds_covers_how_far_the_chance_to_explore_drifts(rounds: int, part: float) -> None:
    """Erratum 16: sum of E|chance given the past - p| is at most (pi/2) sqrt(p(1-p)) T/sqrt(T-1), where p = M/T."""
    explorations = max(1, int(part * rounds))
    p = explorations / rounds
    seen = np.arange(explorations + 1)
    drift = 0.0
    for past in range(rounds):
        law = np.asarray(stats.hypergeom.pmf(seen, rounds, explorations, past))
        drift += float(law @ abs((explorations - seen) / (rounds - past) - p))
    allowed = math.pi / 2 * math.sqrt(p * (1 - p)) * rounds / math.sqrt(rounds - 1)
    assert drift <= allowed + 1e-9
    added = bounds.presampled_bandit(2, 1, rounds, 0.1, explorations) - bounds.bandit(2, 1, rounds, 0.1, p)
    assert added == pytest.approx(allowed / p, abs=1e-9)
    if explorations >= 30 and p < 1:
        assert drift > 0.7 * allowed  # a mean deviation is sqrt(2/pi) = .798 of a standard deviation


# What docs/maths/paper.md says beside its theorems.


def wants(*items: int) -> tuple[float, ...]:
    """A user, by bit mask of three items: 1 if any of these is shown."""
    return tuple(float(any(shown >> item & 1 for item in items)) for shown in range(8))


@cache
def divergence(p: tuple[float, ...], q: tuple[float, ...], rate: float) -> float:
    """Kullback-Leibler, of one draw from the other, by their totals."""
    laws = enumeration.softmax(rate, p), enumeration.softmax(rate, q)
    return math.fsum(a * math.log(a / b) for a, b in zip(*laws, strict=True))


def divergences(stream: list[Any], other: list[Any], rate: float) -> tuple[float, float]:
    """Of all draws of the first and of the second expert of Algorithm 2, three items: of `stream` from `other`.

    By the chain rule they are sums over draws, of means over the past. What the first is told does not depend on any
    draw; the totals of the second, of both streams, are a Markov chain. Chances below 1e-15 are dropped, which makes
    the second sum smaller.
    """
    first, sums = [(0.0,) * 3] * 2, [0.0, 0.0]
    second = {((0.0,) * 3, (0.0,) * 3): 1.0}
    for pair in zip(stream, other, strict=True):
        odds = enumeration.softmax(rate, first[0])
        sums[0] += divergence(*first, rate)
        sums[1] += math.fsum(chance * divergence(*totals, rate) for totals, chance in second.items())
        grown: dict[Any, float] = {}
        for totals, chance in second.items():
            for drawn in (a for a in range(3) if chance * odds[a] >= 1e-15):
                told = [
                    [row[a] + f[1 << a | 1 << drawn] - f[1 << drawn] for a in range(3)]
                    for row, f in zip(totals, pair, strict=True)
                ]
                lowest = min(told[0])  # only differences matter
                state = tuple(tuple(total - lowest for total in row) for row in told)
                grown[state] = grown.get(state, 0.0) + chance * odds[drawn]
        second = grown
        first = [tuple(row[a] + f[1 << a] for a in range(3)) for row, f in zip(first, pair, strict=True)]
    return sums[0], sums[1]


def arranged(before: int, after: int) -> tuple[list[Any], list[Any]]:
    """All want c, until the first expert shows it. One wants a, or b: whichever it is, both experts are told of it.
    Then all want a or b, so that these two become likely again, and as likely as they would be without this user."""
    a, b, c = range(3)
    one, other = ([wants(c)] * before + [wants(odd)] + [wants(a, b)] * after for odd in (a, b))
    return one, other


def test_divergences_are_those_of_all_runs() -> None:
    one, other = arranged(1, 2)
    p, q = (enumeration.full_information_law(tuple(stream), 3, 2, 0.7) for stream in (one, other))
    listed = math.fsum(chance * math.log(chance / q[seen]) for seen, chance in p.items())
    assert sum(divergences(one, other, 0.7)) == pytest.approx(listed, rel=1e-12)


def test_the_price_of_algorithm_2_has_a_factor_k() -> None:
    """Theorem P1 allows eta^2/2 for each draw of each expert after the odd user; it costs nearly that, with both."""
    rate, after = 0.25, 1000
    first, second = divergences(*arranged(40, after), rate)
    share, most = (
        after * rate**2 / 2,
        after * rate * math.tanh(rate / 2),
    )  # `most`: nothing but a and b is ever drawn
    assert 0.957 * share < first < most
    assert 0.990 * share < second < most
    assert divergences(*arranged(0, after), rate)[1] < second  # unless the user is prepared for


@pytest.mark.slow
def test_who_draws_again_matters_to_rewards_not_to_the_bound() -> None:
    """Two items, two slots, four users who all want the second item."""
    earned: dict[Any, float] = {}
    for resample in ("all", "own"):
        law = enumeration.bandit_law(((0.0, 0.0, 1.0, 1.0),) * 4, 2, 2, 1.5, 0.6, resample)
        shown = {
            seen: sum(
                1 in (slate if probe is None else (*slate[: probe[0]], probe[1])) for slate, probe in seen
            )
            for seen in law
        }
        earned[resample] = math.fsum(chance * shown[seen] for seen, chance in law.items())
    assert (round(earned["all"], 4), round(earned["own"], 4)) == (2.8167, 2.8382)
    assert (1 - 1 / math.e) * 4 - min(earned.values()) <= bounds.bandit(2, 2, 4, 1.5, 0.6)


def test_compositions() -> None:
    total, chance = bounds.basic_composition([0.1] * 10, [0.2] * 10)
    assert Fraction(math.nextafter(total, 0)) < 10 * Fraction(0.1) <= Fraction(total)
    assert chance == 1.0
    assert bounds.basic_composition([0.5, 0.0], [0.0, 0.0]) == (0.5, 0.0)
    step = exact(0.01)
    wanted = step * mp.sqrt(-2 * 1000 * mp.log(exact(1e-6))) + 1000 * step * mp.expm1(step)
    assert wanted <= exact(bounds.advanced_composition(0.01, 1000, 1e-6)) <= wanted * (1 + HAIR)
    assert bounds.greedy_from_experts([3.0, -2.0, 0.5]) == 3.5
    assert bounds.greedy_from_experts([-1.0]) == 0.0


@pytest.mark.parametrize(("n_items", "rounds"), [(50, 100_000), (294, 32_711)])
def test_the_claim_is_12_8_times_the_truth_in_four_steps(n_items: int, rounds: int) -> None:
    """The paper: advanced composition over T, basic over k. The notebook prints these steps, documents name them."""
    slots, (epsilon, delta) = 5, BUDGET
    learner = paper.fi_dp(n_items, slots, rounds, epsilon, delta, calibration="paper")
    assert learner.claim is not None
    draws, step = slots * (rounds - 1), 2 * learner.parameters["rate"]
    expert = bounds.advanced_composition(step, rounds, delta / slots)
    by_parts, _ = bounds.basic_composition([expert] * slots, [delta / slots] * slots)
    steps = [
        learner.claim.epsilon,
        by_parts,
        bounds.advanced_composition(step, draws, delta),
        ACCOUNTANTS["zcdp"].epsilon(Repeated(Laplace(step), draws), delta),
        ACCOUNTANTS["zcdp"].epsilon(Selections(draws, step), delta),
    ]
    assert [f"{value:.3f}" for value in steps] == ["1.000", "0.502", "0.213", "0.164", "0.078"]
    assert steps[-1] == learner.guarantee.epsilon
    assert f"{steps[0] / steps[-1]:.1f}" == "12.8"
    docs = Path(__file__).parents[2] / "docs"
    printed = (docs / "notebooks" / "the-paper-reproduced.ipynb").read_text()
    assert all(f"epsilon {value:.3f}" in printed for value in steps)
    assert "`1 -> .502 -> .213 -> .164 -> .078`" in (docs / "maths" / "paper.md").read_text()


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.hedge(0, 10, 0.1),
        lambda: bounds.hedge(5, 10, math.nan),
        lambda: bounds.hedge(5, 0, 0.1),
        lambda: bounds.full_information(5, 6, 10, 0.1),
        lambda: bounds.printed_full_information("5", 1, 10, 0.1),  # type: ignore[arg-type]
        lambda: bounds.printed_pure_experts("5", 1, 10, 0.1),  # type: ignore[arg-type]
        lambda: bounds.theorem_full_information(5, 2, 10, 1.0, 0.0),
        lambda: bounds.bandit(5, 2, 10, 0.1, 1.5),
        lambda: bounds.bandit(5, 2, 10, 0.1, 0.0),
        lambda: bounds.bandit(5, 2, 10, 0.1, 0.5, extra=-1.0),
        lambda: bounds.cap_excess(10, 0.5, -1),
        lambda: bounds.presampled_bandit(5, 2, 10, 0.1, 0),
        lambda: bounds.presampled_bandit(5, 2, 10, 0.1, 11),
        lambda: bounds.printed_pftal(3, 10, 1.0, lipschitz=0.0, diameter=1.0),
        lambda: bounds.greedy_from_experts([1.0, math.nan]),
        lambda: bounds.basic_composition([1.0], []),
        lambda: bounds.basic_composition([-1.0], [0.0]),
        lambda: bounds.advanced_composition(0.1, 10, 0.0),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        call()
