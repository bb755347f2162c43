"""Accounting against 60-digit oracles: published numbers to the digits given, safe sides."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diminuendo.privacy import calibrate, curves, events
from diminuendo.privacy import curves as normal_tail
from diminuendo.privacy.accountants import ACCOUNTANTS
from tests.kit import adaptive_range, examples, oracles
from tests.kit.oracles import HAIR, between, check_delta, exact, mp

FILE = Path(__file__).parents[1] / "reference" / "accounting.json"

DRAWS = 5 * (10**5 - 1)
"""k = 5, T = 1e5: the first round reveals nothing and the last is not used. Every row of rates counts so."""
PAPER = 1 / (5 * math.sqrt(32e5 * math.log(5 / 1e-6)))
"""The paper's rate for (1, 1e-6)."""


def rate(accountant: str) -> float:
    return calibrate.selection_rate(1.0, 1e-6, DRAWS, 2.0, accountant)


def cost(event: events.Event) -> Any:
    """The zCDP cost that an accountant charges, read back from its epsilon."""
    return oracles.zcdp_rho(ACCOUNTANTS["zcdp"].epsilon(event, 1e-6), 1e-6)


CURVES: list[tuple[str, str, str, tuple[float, ...]]] = [  # name in the file, digits, function, arguments
    ("zcdp_rho(1.0,1e-06)", "0.0243559704", "zcdp_rho", (1.0, 1e-6)),
    ("zcdp_rho(0.5,1e-06)", "0.00664152436", "zcdp_rho", (0.5, 1e-6)),
    ("zcdp_rho(2.0,1e-05)", "0.108256364", "zcdp_rho", (2.0, 1e-5)),
    ("zcdp_rho(0.1,1e-08)", "2.08816381e-4", "zcdp_rho", (0.1, 1e-8)),
    ("gdp_mu(1.0,1e-06)", "0.236704381", "gaussian_mu", (1.0, 1e-6)),
    ("gdp_mu(0.5,1e-06)", "0.124106149", "gaussian_mu", (0.5, 1e-6)),
    ("gdp_mu(2.0,1e-05)", "0.501551689", "gaussian_mu", (2.0, 1e-5)),
    ("gdp_mu(0.1,1e-08)", "0.0217687737", "gaussian_mu", (0.1, 1e-8)),
    ("zcdp_eps(0.1,1e-6)", "2.14193893", "zcdp_epsilon", (0.1, 1e-6)),
    ("zcdp_delta(0.1,2.0)", "4.32521087e-6", "zcdp_delta", (0.1, 2.0)),
    ("gdp_delta(0.5,1.0)", "0.00682959498", "gaussian_delta", (0.5, 1.0)),
    ("kov_delta(0.1,50,1.0)", "0.0382530721", "pure_delta", (0.1, 50, 1.0)),
    ("paper eta: eps by GDP limit", "0.0715", "gaussian_epsilon", (PAPER * math.sqrt(DRAWS), 1e-6)),
]

ORACLES: list[
    tuple[str, str, str, tuple[float, ...]]
] = [  # the same, of what proofs use and the library does not
    ("zcdp_rho_BunSteinke(1.0,1e-06)", "0.0174689048", "bun_steinke_rho", (1.0, 1e-6)),
    ("zcdp_rho_BunSteinke(0.5,1e-06)", "0.00444384416", "bun_steinke_rho", (0.5, 1e-6)),
    ("zcdp_rho_BunSteinke(2.0,1e-05)", "0.0800453753", "bun_steinke_rho", (2.0, 1e-5)),
    ("zcdp_rho_BunSteinke(0.1,1e-08)", "1.35349889e-4", "bun_steinke_rho", (0.1, 1e-8)),
    ("br_delta(0.2,0.05)", "0.0288024795", "range_delta", (0.2, 0.05)),
    ("br_rdp(0.2,5)", "0.0247136683", "range_renyi", (0.2, 5.0)),
]

DERIVED: list[tuple[str, str, Callable[[], Any], Callable[[], float]]] = [  # ..., oracle, library
    (
        "B1 eta zCDP tight conv",
        "3.1213e-4",
        lambda: mp.sqrt(2 * oracles.zcdp_rho(1, 1e-6) / DRAWS),
        lambda: rate("zcdp"),
    ),
    (
        "B1 eta adv. composition over kT jointly",
        "1.2997e-4",
        lambda: oracles.crossing(lambda eta: oracles.advanced_epsilon(2 * eta, DRAWS, 1e-6) - 1),
        lambda: rate("advanced"),
    ),
    (
        "paper eta: true eps by zCDP",
        "0.0783",
        lambda: oracles.zcdp_epsilon(DRAWS * mp.mpf(PAPER) ** 2 / 2, 1e-6),
        lambda: ACCOUNTANTS["zcdp"].epsilon(events.Selections(DRAWS, 2 * PAPER), 1e-6),
    ),
    (
        "ratio to paper: B1 eta zCDP tight conv",
        "10.96",
        lambda: mp.sqrt(2 * oracles.zcdp_rho(1, 1e-6) / DRAWS) / PAPER,
        lambda: rate("zcdp") / PAPER,
    ),
    (
        "EM zCDP per release full-info eta=0.1",
        "0.00500",
        lambda: mp.mpf(0.2) ** 2 / 8,
        lambda: cost(events.Selections(1, 0.2)),
    ),
    (
        "EM zCDP per release bandit eta=0.1",
        "0.00125",
        lambda: mp.mpf(0.1) ** 2 / 8,
        lambda: cost(events.Selections(1, 0.1)),
    ),
    (
        "C2 B closed form k*sqrt(log N/(6 rho))",
        "25.8698",
        lambda: 5 * mp.sqrt(mp.log(50) / (6 * oracles.zcdp_rho(1, 1e-6))),
        lambda: 5 * math.sqrt(math.log(50) / (6 * curves.zcdp_rho(1, 1e-6))),
    ),
]

SPEC = DERIVED + [
    (name, digits, lambda f=f, x=x: getattr(oracles, f)(*x), lambda f=f, x=x: getattr(curves, f)(*x))
    for name, digits, f, x in CURVES
]
by_name = pytest.mark.parametrize(("name", "digits", "oracle", "library"), SPEC, ids=[f[0] for f in SPEC])


def half_a_digit(digits: str) -> float:
    mantissa, _, power = digits.partition("e")
    return 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


@by_name
def test_published_numbers(
    name: str, digits: str, oracle: Callable[[], Any], library: Callable[[], float]
) -> None:
    expected, result = float(oracle()), float(library())
    assert abs(expected - float(digits)) <= half_a_digit(digits)
    assert abs(result - float(digits)) <= half_a_digit(digits) * (1 + HAIR)
    assert result == pytest.approx(expected, rel=HAIR)


@pytest.mark.parametrize(("name", "digits", "function", "arguments"), ORACLES)
def test_published_numbers_of_oracles(
    name: str, digits: str, function: str, arguments: tuple[float, ...]
) -> None:
    result = float(getattr(oracles, function)(*arguments))
    assert abs(result - float(digits)) <= half_a_digit(digits)
    assert result == pytest.approx(json.loads(FILE.read_text())[name], rel=1e-9)


@by_name
def test_numbers_in_the_file(
    name: str, digits: str, oracle: Callable[[], Any], library: Callable[[], float]
) -> None:
    """Not closer than 1e-9: the order-5 divergence in the file is a maximum over a grid, 1e-10 short."""
    published = json.loads(FILE.read_text())[name]
    assert float(oracle()) == pytest.approx(published, rel=1e-9)
    assert library() == pytest.approx(published, rel=HAIR)


def test_other_rows_of_the_table_of_rates() -> None:
    assert f"{PAPER:.4e}" == "2.8467e-05"
    limit = float(oracles.gaussian_mu(1, 1e-6) / mp.sqrt(DRAWS))
    assert f"{limit / 2:.3e}" == "1.674e-04"
    assert f"{limit / 1.002:.4e}" == "3.3408e-04"
    assert limit / 1.002 * (1 - HAIR) <= adaptive_range.adaptive_rate(1.0, 1e-6, DRAWS, 2.0) < limit
    assert rate("pure") == pytest.approx(1 / (2 * DRAWS), rel=HAIR)
    loose = float(mp.sqrt(2 * oracles.bun_steinke_rho(1, 1e-6) / DRAWS))
    assert f"{loose:.4e}" == "2.6434e-04"
    ratios = [rate("advanced"), limit / 2, loose, rate("zcdp"), limit / 1.002]
    assert [round(r / PAPER, 2) for r in ratios] == [4.57, 5.88, 9.29, 10.96, 11.74]
    # Purely private draws of 2 * eta each, composed as well as can be: the limit is reached within 1e-4.
    assert (
        curves.pure_delta(limit * (1 - 1e-4), DRAWS, 1.0)
        < 1e-6
        < curves.pure_delta(limit * (1 + 1e-4), DRAWS, 1.0)
    )


# Safe sides, over wide ranges.

RHO, MU, EPSILON, DELTA = between(1e-12, 100), between(1e-6, 15), between(1e-6, 100), between(1e-300, 0.9)
EXTREMES = [("zcdp", 20.0, 1.5), ("zcdp", 13.0, 1.5), ("zcdp", 1e-12, 100.0), ("gaussian", 0.1, 10.0)]
both_curves = pytest.mark.parametrize("curve", ["zcdp", "gaussian"])


def hair(curve: str, size: float) -> float:
    """The Gaussian curve is a difference of two tails that differ by a share mu only, so floats lose 1/mu."""
    return HAIR + (1e-11 / size if curve == "gaussian" else 0.0)


@pytest.mark.parametrize(("curve", "size", "epsilon"), EXTREMES)
def test_delta_at_the_ends(curve: str, size: float, epsilon: float) -> None:
    """Almost no privacy, where 1 - 1/order loses its digits, and more than floats can tell from all."""
    check_delta(
        getattr(oracles, f"{curve}_delta")(size, epsilon), getattr(curves, f"{curve}_delta")(size, epsilon)
    )


@both_curves
@examples(100)
@given(data=st.data(), epsilon=EPSILON)
def test_delta_is_above_the_truth_by_a_hair(curve: str, data: st.DataObject, epsilon: float) -> None:
    size = data.draw(RHO if curve == "zcdp" else MU)
    wanted, delta = getattr(oracles, f"{curve}_delta"), getattr(curves, f"{curve}_delta")
    steepness = 1 + (epsilon / size) ** 2 if curve == "gaussian" else 1.0  # of log delta in log mu, about
    check_delta(wanted(size, epsilon), delta(size, epsilon), hair(curve, size) * steepness)
    here = delta(size, epsilon) * (1 + 1e-9)
    assert delta(size, epsilon * 1.001) <= here
    assert delta(size / 1.001, epsilon) <= here


@both_curves
@examples(100)
@given(epsilon=EPSILON, delta=DELTA)
@example(epsilon=1e-6, delta=1e-300)
@example(epsilon=100.0, delta=1e-300)
def test_sizes_are_the_largest_that_are_safe(curve: str, epsilon: float, delta: float) -> None:
    wanted = getattr(oracles, f"{curve}_delta")
    size = {"zcdp": curves.zcdp_rho, "gaussian": curves.gaussian_mu}[curve](epsilon, delta)
    assert wanted(size, epsilon) <= delta < wanted(size * (1 + hair(curve, size)), epsilon)
    assert getattr(curves, f"{curve}_delta")(size, epsilon) <= delta  # what is granted is accepted


@both_curves
@examples(100)
@given(data=st.data(), delta=DELTA)
def test_epsilons_are_the_smallest_that_are_safe(curve: str, data: st.DataObject, delta: float) -> None:
    size = data.draw(RHO if curve == "zcdp" else MU)
    wanted = getattr(oracles, f"{curve}_delta")
    epsilon = {"zcdp": curves.zcdp_epsilon, "gaussian": curves.gaussian_epsilon}[curve](size, delta)
    assert wanted(size, epsilon) <= delta
    assert getattr(curves, f"{curve}_delta")(size, epsilon) <= delta
    assert epsilon == 0 or wanted(size, epsilon * (1 - hair(curve, size))) > delta


@example(span=1e-6, part=0.5, order=1.0)
@example(span=1e-3, part=0.5, order=1e-3)
@example(span=0.03, part=0.5, order=0.03)
@examples(40)
@given(span=between(1e-6, 30), part=st.floats(0, 1), order=between(1e-3, 1e4))
def test_one_draw_costs_no_more_than_is_charged(span: float, part: float, order: float) -> None:
    charged = ACCOUNTANTS["zcdp"].delta(events.Selections(1, span), part * span)
    assert oracles.range_delta(span, part * span) <= charged
    quadratic = mp.mpf(1 + order) * mp.mpf(span) ** 2 / 8
    assert oracles.range_renyi(span, 1 + order) <= quadratic * (1 + HAIR)


@examples(100)
@given(step=between(1e-5, 3), count=st.integers(1, 40), part=st.floats(0, 0.999))
def test_pure_compositions(step: float, count: int, part: float) -> None:
    epsilon = part * step * count
    check_delta(oracles.pure_delta(step, count, epsilon), curves.pure_delta(step, count, epsilon))


@example(span=0.01, count=1, part=0.0)
@examples(4)
@given(span=between(1e-3, 3), count=st.integers(1, 8), part=st.floats(0, 0.5))
def test_adaptive_draws(span: float, count: int, part: float) -> None:
    """The oracle is below the truth by its grid, 1/60 of the span: a few in a thousand of delta."""
    epsilon = part * span * count
    below = oracles.adaptive_delta(span, count, epsilon, parts=60)
    result = adaptive_range.adaptive_delta(span, count, epsilon)
    assert below <= result <= below * 1.01 + 1e-9
    assert below <= curves.gaussian_delta(adaptive_range.adaptive_mu(span, count), epsilon)


@pytest.mark.slow
def test_adaptive_numbers() -> None:
    """Two draws of range 1 at epsilon 1: after a first ratio t the second is the worst, in closed form."""
    two = oracles.largest(
        lambda t: ((1 - mp.exp(t - 1)) * (1 - mp.exp(-t / 2)) ** 2) / (1 - mp.exp(-1)) ** 2,
        mp.mpf(0),
        mp.mpf(1),
    )
    assert two <= exact(adaptive_range.adaptive_delta(1.0, 2, 1.0)) <= two * (1 + 1e-5)
    assert oracles.adaptive_delta(1.0, 2, 1.0, parts=3200) == pytest.approx(float(two), rel=1e-6)
    assert adaptive_range.adaptive_delta(1.0, 1, 0.0) == pytest.approx(0.244919, abs=1e-6)
    span = float(oracles.gaussian_mu(1, 1e-6)) / 2
    assert oracles.adaptive_delta(span, 16, 0.3, parts=400) == pytest.approx(0.01427, abs=5e-6)
    assert 0.01427 <= adaptive_range.adaptive_delta(span, 16, 0.3) <= 0.01427 * 1.002
    for count, c in [(1, 1.2534), (4, 1.0674), (16, 1.0215), (64, 1.0066), (256, 1.0020), (1024, 1.0006)]:
        assert c - 1e-4 <= adaptive_range.constant(count) <= c + 1e-4
    assert adaptive_range.constant(10**4) <= 1.005
    assert adaptive_range.constant(10**5) <= 1.002


@given(between(1e-3, 1e8).flatmap(lambda size: st.sampled_from([size, -size])))
@example(0.0)
@example(-1.0)
@example(math.nextafter(-1.0, 0.0))
@example(-normal_tail.FRACTION_FROM)
@example(math.nextafter(-normal_tail.FRACTION_FROM, 0.0))
def test_the_normal_tail_errs_by_a_few_roundings(x: float) -> None:
    wanted = (
        mp.log1p(-mp.erfc(exact(x) / mp.sqrt(2)) / 2)
        if x > 0
        else mp.log(mp.erfc(-exact(x) / mp.sqrt(2)) / 2)
    )
    allowed = normal_tail.ROUNDINGS * 2.0**-53 * (1 + abs(wanted))
    assert abs(normal_tail.log_normal(x) - wanted) <= allowed
    assert 16 * normal_tail.ROUNDINGS * 2.0**-53 <= curves.SLACK, "what is allowed for there is far more"
