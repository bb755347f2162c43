"""Events add up as a naive recursion says, and budgets become parameters that are safe and no safer."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from diminuendo.errors import InvalidInput, UnknownEvent
from diminuendo.privacy import calibrate, curves, events
from diminuendo.privacy.accountants import ACCOUNTANTS
from tests.kit import examples, oracles
from tests.kit.adaptive_range import COUNTED, adaptive_rate
from tests.kit.oracles import HAIR, between, check_delta

SMALL = between(1e-3, 1.0)
LEAVES: list[st.SearchStrategy[Any]] = [
    st.builds(events.Selections, st.integers(1, 50), SMALL),
    st.builds(events.Laplace, SMALL),
    st.builds(events.Gaussian, SMALL),
    st.builds(events.ContinuousGaussian, SMALL),
    st.builds(events.NormalColumns, st.integers(0, 4), st.lists(SMALL, min_size=1, max_size=4).map(tuple)),
]


def trees(leaves: int) -> st.SearchStrategy[events.Event]:
    def grow(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        parts = st.lists(part, max_size=3).map(tuple)
        repeated = st.builds(events.Repeated, part, st.integers(0, 5))
        return st.builds(events.Composed, parts) | st.builds(events.Parallel, parts) | repeated

    return st.recursive(st.one_of(LEAVES[:leaves]), grow, max_leaves=8)


COLUMNS = range(10)
"""More than events here name, so that some column is in none of them."""


def naive(event: Any, column: int, leaf: Callable[[Any], Fraction]) -> Fraction:
    """What a user of one column pays; parts on different users are charged at their own worst column."""
    match event:
        case events.Composed(parts):
            return sum((naive(part, column, leaf) for part in parts), Fraction(0))
        case events.Parallel(parts):
            return max((naive(part, c, leaf) for part in parts for c in COLUMNS), default=Fraction(0))
        case events.Repeated(part, times):
            return times * naive(part, column, leaf)
        case events.NormalColumns(first, squares):  # in rho: half the square
            return (
                Fraction(squares[column - first]) / 2 if 0 <= column - first < len(squares) else Fraction(0)
            )
    return leaf(event)


def rho_of(event: Any) -> Fraction:
    match event:
        case events.Selections(count, span):
            return count * Fraction(span) ** 2 / 8
        case events.Laplace(size) | events.ContinuousGaussian(size):
            return Fraction(size) ** 2 / 2
    return Fraction(event.rho)


def pure_of(event: Any) -> Fraction:
    return (
        event.count * Fraction(event.span)
        if isinstance(event, events.Selections)
        else Fraction(event.epsilon)
    )


TWO = events.NormalColumns(0, (0.5, 0.1))
NEXT = events.NormalColumns(1, (0.4, 0.2))


@example(event=events.Composed((TWO, NEXT)), delta=1e-6)
@example(event=events.Composed((events.Repeated(TWO, 3), events.Gaussian(0.2))), delta=1e-6)
@example(event=events.Composed((events.Parallel((TWO, events.Laplace(0.1))), TWO)), delta=1e-6)
@examples(100)
@given(event=trees(5), delta=between(1e-12, 0.1))
def test_zcdp_sums_by_column(event: events.Event, delta: float) -> None:
    rho = max(naive(event, column, rho_of) for column in COLUMNS)
    epsilon = ACCOUNTANTS["zcdp"].epsilon(event, delta)
    if rho == 0:
        assert epsilon == 0
    else:
        assert oracles.zcdp_delta(rho, epsilon) <= delta
        assert epsilon == 0 or oracles.zcdp_delta(rho, epsilon * (1 - HAIR)) > delta
        check_delta(oracles.zcdp_delta(rho, 1.5), ACCOUNTANTS["zcdp"].delta(event, 1.5))


@examples(100)
@given(event=trees(2))
def test_pure_sums(event: events.Event) -> None:
    total, result = naive(event, 0, pure_of), ACCOUNTANTS["pure"].epsilon(event, 0.0)
    assert total <= Fraction(result) <= total * Fraction(1 + HAIR)
    assert ACCOUNTANTS["pure"].delta(event, result) == 0


def test_gaussian_squares_add() -> None:
    pair = events.Composed(
        (events.ContinuousGaussian(0.3), events.Repeated(events.ContinuousGaussian(0.2), 4))
    )
    beside = events.Parallel((pair, events.ContinuousGaussian(0.4)))
    check_delta(oracles.gaussian_delta(0.5, 1.0), ACCOUNTANTS["continuous-gaussian"].delta(beside, 1.0))
    assert oracles.gaussian_delta(0.5, ACCOUNTANTS["continuous-gaussian"].epsilon(beside, 1e-6)) <= 1e-6


@examples(100)
@given(event=trees(5))
def test_events_survive_json(event: events.Event) -> None:
    assert events.from_json(json.loads(json.dumps(events.to_json(event)))) == event


@pytest.mark.parametrize(
    ("accountant", "event"),
    [
        ("pure", events.Gaussian(0.1)),
        ("pure", events.ContinuousGaussian(0.1)),
        ("pure", events.NormalColumns(0, (0.1,))),
        ("continuous-gaussian", events.Gaussian(0.1)),
        ("continuous-gaussian", events.Selections(1, 0.1)),
        ("continuous-gaussian", events.Laplace(0.1)),
        ("advanced", events.Gaussian(0.1)),
    ],
)
def test_what_cannot_be_priced_is_refused_by_name(accountant: str, event: events.Event) -> None:
    for whole in [event, events.Composed((events.Repeated(event, 2),))]:
        with pytest.raises(UnknownEvent, match=rf"{accountant}.*\b{type(event).__name__}\b"):
            ACCOUNTANTS[accountant].epsilon(whole, 1e-6)
        with pytest.raises(UnknownEvent, match=rf"{accountant}.*\b{type(event).__name__}\b"):
            ACCOUNTANTS[accountant].delta(whole, 1.0)


def test_records_of_unknown_events_are_refused_by_name() -> None:
    record = json.dumps(events.to_json(events.Composed((events.Gaussian(0.1),))))
    with pytest.raises(UnknownEvent, match="shuffled"):
        events.from_json(json.loads(record.replace("gaussian", "shuffled")))


# Calibration.

WHOLE = st.integers(1, 10**12)


@examples(100)
@given(rho=between(1e-12, 100), squared=WHOLE, column=WHOLE)
def test_sigma_is_the_least_that_is_safe(rho: float, squared: int, column: int) -> None:
    sigma = Fraction(calibrate.gaussian_sigma(rho, squared * column))
    assert squared * column <= 2 * sigma**2 * Fraction(rho)
    assert squared * column > 2 * (sigma * (1 - Fraction(1, 10**9))) ** 2 * Fraction(rho)


@examples(100)
@given(epsilon=between(1e-6, 100), sensitivity=WHOLE, column=WHOLE)
def test_scales_are_the_least_that_are_safe(epsilon: float, sensitivity: int, column: int) -> None:
    less = 1 - Fraction(1, 10**9)
    scale = Fraction(calibrate.laplace_scale(epsilon, sensitivity * column))
    assert scale * less * Fraction(epsilon) < sensitivity * column <= scale * Fraction(epsilon)


@examples(100)
@given(epsilon=between(1e-3, 50), delta=between(1e-100, 0.5), count=WHOLE, span=between(0.1, 10))
def test_rates_are_the_largest_that_are_safe(epsilon: float, delta: float, count: int, span: float) -> None:
    eta = calibrate.selection_rate(epsilon, delta, count, span)
    rho = count * (Fraction(eta) * Fraction(span)) ** 2 / 8
    assert rho <= Fraction(
        curves.zcdp_rho(epsilon, delta)
    )  # of the very float, not of the rate it stands for
    assert (
        oracles.zcdp_delta(rho, epsilon)
        <= delta
        < oracles.zcdp_delta(rho * (1 + Fraction(HAIR)) ** 2, epsilon)
    )
    pure = Fraction(calibrate.selection_rate(epsilon, delta, count, span, "pure"))
    assert (
        count * pure * Fraction(span)
        <= Fraction(epsilon)
        < count * pure * Fraction(span) * Fraction(1 + HAIR)
    )


@examples(100)
@given(
    epsilon=between(1e-2, 10), delta=between(1e-12, 0.1), count=st.integers(1, 10**6), span=between(0.1, 10)
)
def test_rates_are_accepted_by_their_accountants(
    epsilon: float, delta: float, count: int, span: float
) -> None:
    for name in ["zcdp", "pure", "advanced"]:
        eta = calibrate.selection_rate(epsilon, delta, count, span, name)
        draws = events.Selections(count, eta * span)
        assert ACCOUNTANTS[name].epsilon(draws, delta) <= epsilon * (1 + 1e-12), name
    eta = adaptive_rate(epsilon, delta, count, span)
    assert COUNTED["adaptive-range"].epsilon(events.Selections(count, eta * span), delta) <= epsilon * (
        1 + 1e-12
    )


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_nonsense_is_refused_at_the_door(name: str) -> None:
    event = events.ContinuousGaussian(0.1) if "gaussian" in name else events.Selections(3, 0.1)
    for delta in (-0.1, 1.0, 2.0, float("nan"), "small"):
        with pytest.raises(InvalidInput, match="delta"):
            ACCOUNTANTS[name].epsilon(event, delta)  # type: ignore[arg-type]
    for rounds in (0, -1, 1.5):
        with pytest.raises(InvalidInput, match="rounds"):
            ACCOUNTANTS[name].epsilon(event, 1e-6, rounds)  # type: ignore[arg-type]
