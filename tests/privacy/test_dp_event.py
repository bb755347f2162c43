"""Events handed to dp-accounting 0.6.0: its accountants agree with ours, and never claim less than the exact cost.

Exact costs are sums over all outcomes of tiny mechanisms; they use neither side's formulas.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from diminuendo.errors import InvalidInput, UnknownEvent
from diminuendo.learners.hedge.fi_dp import fi_dp
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Unit
from diminuendo.privacy.dp_event import to_dp_event
from diminuendo.privacy.events import (
    Composed,
    ContinuousGaussian,
    Event,
    Gaussian,
    Laplace,
    NormalColumns,
    Parallel,
    Repeated,
    Selections,
)
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SeededSource
from diminuendo.types import Floats
from tests.kit.enumeration import all_users, full_information_law, worst

dp: Any = pytest.importorskip("dp_accounting", reason="needs dp-accounting to translate to")
dp_event: Any = importlib.import_module("dp_accounting.dp_event")

ORDERS = 1 + np.geomspace(1e-3, 1e4, 8_001)
GRID = 1.1e-6
"""Orders, less 1, are 2e-3 apart, relatively: the best is missed by half of that at most, which costs half its square,
5e-7 of what depends on the order, twice for a margin; and epsilon is at least half of that."""

CELL = 1e-4
"""Their losses are rounded up to multiples of this."""

SUMS = 1e-12
"""More than sums of a few thousand floats round away. Theirs drops tails of 1e-15."""

ACCOUNTED = ("rdp", "pld")


def priced(event: Any, accountant: str, **options: Any) -> Any:
    """Their accountant after composing one of their events."""
    chosen = (
        dp.rdp.RdpAccountant(ORDERS, **options) if accountant == "rdp" else dp.pld.PLDAccountant(**options)
    )
    return chosen.compose(event)


def their_delta(event: Event, epsilon: float, accountant: Any, rounds: int = 1) -> float:
    return float(
        priced(to_dp_event(event, rounds=rounds, accountant=accountant), accountant).get_delta(epsilon)
    )


def their_epsilon(event: Event, delta: float, accountant: Any, rounds: int = 1) -> float:
    return float(
        priced(to_dp_event(event, rounds=rounds, accountant=accountant), accountant).get_epsilon(delta)
    )


def exact_delta(one: Floats, other: Floats, epsilon: float) -> float:
    return float(max(np.maximum(0, p - math.exp(epsilon) * q).sum() for p, q in ((one, other), (other, one))))


def product(laws: list[Floats]) -> Floats:
    """The law of independent outcomes together."""
    result = np.ones(1)
    for law in laws:
        result = np.outer(result, law).ravel()
    return result


# Where both sides prove the same, they agree.

ONE, TWO = NormalColumns(0, (0.5, 0.1)), NormalColumns(1, (0.4, 0.2))
ZCDP_COSTS: list[tuple[Event, int, list[Any]]] = [
    (Selections(25, 0.2), 1, [dp.SelfComposedDpEvent(dp.ZCDpEvent(0.2**2 / 8), 25)]),
    (Laplace(0.7), 1, [dp.ZCDpEvent(0.7**2 / 2)]),
    (Gaussian(0.1), 1, [dp.ZCDpEvent(0.1)]),
    (ContinuousGaussian(0.5), 1, [dp.GaussianDpEvent(2.0)]),
    (ContinuousGaussian(0.5), 3, [dp.GaussianDpEvent(2.0 / 3)]),
    (Laplace(0.2), 3, [dp.ZCDpEvent(0.6**2 / 2)]),
    (
        Composed((Repeated(Gaussian(0.01), 7), Selections(40, 0.1), Laplace(0.3))),
        1,
        [
            dp.SelfComposedDpEvent(dp.ZCDpEvent(0.01), 7),
            dp.SelfComposedDpEvent(dp.ZCDpEvent(0.1**2 / 8), 40),
            dp.ZCDpEvent(0.3**2 / 2),
        ],
    ),
    # The middle batch pays .1 + .4; batches of two partitions have nothing to do with each other.
    (Composed((ONE, TWO)), 1, [dp.GaussianDpEvent(1 / math.sqrt(0.5))]),
    (Composed((ONE, NormalColumns(1, (0.4, 0.2), "others"))), 1, [dp.GaussianDpEvent(1 / math.sqrt(0.9))]),
    (Parallel((Gaussian(0.1), Selections(8, 0.5), Laplace(0.2))), 1, [dp.ZCDpEvent(0.25)]),
]


@pytest.mark.parametrize(("event", "rounds", "parts"), ZCDP_COSTS)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_renyi_accounting_agrees(event: Event, rounds: int, parts: list[Any], delta: float) -> None:
    theirs = their_epsilon(event, delta, "rdp", rounds)
    by_hand = priced(dp.ComposedDpEvent(parts), "rdp").get_epsilon(delta)
    assert theirs == pytest.approx(by_hand, rel=1e-12)
    ours = ACCOUNTANTS["zcdp"].epsilon(event, delta, rounds)
    assert theirs * (1 - GRID) <= ours <= theirs * (1 + 1e-12)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize(
    "event",
    [
        ContinuousGaussian(0.5),
        ONE,
        Composed((ONE, Repeated(TWO, 3), ContinuousGaussian(0.3))),
        Parallel((ContinuousGaussian(0.2), ONE)),
    ],
)
def test_losses_of_gaussian_noise_agree(event: Event, rounds: int) -> None:
    ours = ACCOUNTANTS["continuous-gaussian"].epsilon(event, 1e-6, rounds)
    theirs = their_epsilon(event, 1e-6, "pld", rounds)
    # Connected by lines, so the error is of second order in the cell (tests/privacy/test_dp_accounting.py).
    assert ours * (1 - 1e-9) <= theirs <= ours * (1 + 1e-6)


@pytest.mark.parametrize(("event", "step", "count"), [
    (Repeated(Laplace(0.5), 8), 0.5, 8),
    (Composed((Laplace(0.1), Repeated(Composed((Laplace(0.1),)), 49))), 0.1, 50),
    (Selections(25, 0.2), 0.2, 25),
    (Repeated(Composed((Repeated(Selections(2, 0.3), 3),)), 4), 0.3, 24),
    (Parallel((Laplace(0.4), Selections(2, 0.3))), 0.6, 1),
])  # fmt: skip
@pytest.mark.parametrize("rounds", [1, 2])
def test_losses_of_pure_releases_agree(event: Event, step: float, count: int, rounds: int) -> None:
    """The best composition of pure releases there is (Kairouz, Oh & Viswanath)."""
    for part in (0.1, 0.3, 0.5):
        epsilon = part * step * count * rounds
        theirs = their_delta(event, epsilon, "pld", rounds)
        # Ours rounds up sums of some hundred terms; theirs each step, by a cell at most.
        assert curves.pure_delta(step * rounds, count, epsilon) * (1 - 1e-9) <= theirs
        assert theirs <= curves.pure_delta(step * rounds, count, epsilon - count * CELL)


def test_both_kinds_of_noise_together_cost_less_by_losses() -> None:
    """What a ledger that is counted as zCDP cannot see: at (1, 1e-6) Laplace noise costs it five times as much."""
    mixed = Composed((Laplace(0.5), ContinuousGaussian(0.1)))
    pure, gaussian = 0.5, curves.gaussian_epsilon(0.1, 1e-6)
    theirs = their_epsilon(mixed, 1e-6, "pld")
    assert theirs <= pure + gaussian + 2 * CELL, "by adding epsilons"
    assert theirs < 0.4 * ACCOUNTANTS["zcdp"].epsilon(mixed, 1e-6)


# Never less than the truth.


def responses(epsilon: float, count: int) -> tuple[Floats, Floats]:
    """The law of `count` randomised responses to each of two answers: of the number of lies, which says it all."""
    lies, true = np.arange(count + 1), math.exp(epsilon) / (1 + math.exp(epsilon))
    law = np.array([math.comb(count, n) * true ** (count - n) * (1 - true) ** n for n in range(count + 1)])
    return law, law[count - lies]


LEVELS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.999)
"""Shares of the pure epsilon at which deltas are compared."""


def claims(event: Any, accountant: str, top: float, **options: Any) -> list[float]:
    """The deltas that their accountant claims, at shares of the largest epsilon there is."""
    theirs = priced(event, accountant, **options)
    return [float(theirs.get_delta(level * top)) for level in LEVELS]


def understates(claimed: list[float], laws: tuple[Floats, Floats], top: float) -> bool:
    """Whether less is claimed, somewhere, than the delta of two listed laws."""
    return any(
        delta < exact_delta(*laws, level * top) - SUMS for level, delta in zip(LEVELS, claimed, strict=True)
    )


@pytest.mark.parametrize("accountant", ACCOUNTED)
@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (1.0, 1), (1.0, 6), (2.5, 2)])
def test_randomised_response(epsilon: float, count: int, accountant: Any) -> None:
    """The worst that is purely private, with every relation that their accountant takes, composed by us and by them."""
    laws, top = responses(epsilon, count), count * epsilon
    ours = to_dp_event(Repeated(Laplace(epsilon), count), accountant=accountant)
    theirs = dp.SelfComposedDpEvent(to_dp_event(Laplace(epsilon), accountant=accountant), count)
    taken = set()
    for relation, event in itertools.product(dp.NeighboringRelation, (ours, theirs)):
        with contextlib.suppress(dp.UnsupportedEventError):
            claimed = claims(event, accountant, top, neighboring_relation=relation)
            assert not understates(claimed, laws, top), relation
            taken.add(relation.name)
    pld = {"ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL"}
    assert taken == (pld if accountant == "pld" else pld | {"REPLACE_ONE"})


@pytest.mark.parametrize("accountant", ACCOUNTED)
def test_laplace_noise_would_understate_pure_privacy(accountant: str) -> None:
    """What the test above would find, were a purely private event translated into LaplaceDpEvent."""
    laplace = dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1.0), 100)
    assert understates(claims(laplace, accountant, 100), responses(1.0, 100), 100)


@pytest.mark.parametrize("accountant", ACCOUNTED)
def test_two_rounds_of_one_user(accountant: Any) -> None:
    """Each round enters one randomised response: a user with two rounds pays as much as one response twice."""
    event, laws = Parallel((Laplace(0.8), Laplace(0.8))), responses(0.8, 2)
    for rounds in (1, 2):
        claimed = claims(to_dp_event(event, rounds=rounds, accountant=accountant), accountant, 1.6)
        assert understates(claimed, laws, 1.6) == (rounds == 1)


def exponential(span: float, at: float, outcomes: int) -> tuple[Floats, Floats]:
    """Draws from two lists of scores that differ by `span` in one item. Log-ratios are `at` and `at` - span."""
    # P(first) / Q(first) = e^at, and P = Q e^(at - span) for each other item.
    first = (math.exp(span) - math.exp(at)) / (math.exp(span) - 1)
    p = np.array([first, *[(1 - first) / (outcomes - 1)] * (outcomes - 1)])
    log_ratio = np.array([at, *[at - span] * (outcomes - 1)])
    return p, p * np.exp(-log_ratio)


@pytest.mark.parametrize("accountant", ACCOUNTED)
@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize(("span", "count"), [(0.2, 4), (1.0, 1), (1.0, 6), (3.0, 3)])
def test_draws_of_the_exponential_mechanism(span: float, count: int, outcomes: int, accountant: Any) -> None:
    top = count * span
    whole, half = (
        claims(to_dp_event(Selections(count, width), accountant=accountant), accountant, top)
        for width in (span, span / 2)
    )
    noticed = 0
    for at in itertools.combinations_with_replacement(span * np.array([0.1, 0.5, 0.9]), count):
        draws = [exponential(span, t, outcomes) for t in at]
        for p, q in draws:
            assert (p.sum(), q.sum()) == pytest.approx((1, 1), abs=1e-12)
            assert np.ptp(np.log(p / q)) == pytest.approx(span, rel=1e-9)
        laws = product([p for p, _ in draws]), product([q for _, q in draws])
        assert not understates(whole, laws, top)
        noticed += understates(half, laws, top)
    assert noticed, "half the span would be noticed"


@pytest.mark.parametrize("accountant", ACCOUNTED)
def test_a_learner(accountant: Any) -> None:
    """Algorithm 2 with 2 items and 1 slot over 4 rounds: all neighbours, against what its events become."""
    rate, users, levels = 0.5, all_users(2, (0.0, 1.0), 1), (0.0, 0.5, 1.0, 1.5)
    learner = fi_dp(2, 1, horizon=4, rate=rate, epsilon=1.0, delta=1e-2, rng=SeededSource(1))
    assert learner.events is not None
    truth = worst(lambda stream: full_information_law(stream, 2, 1, rate), [users] * 3 + [users[:1]], levels)
    theirs = priced(to_dp_event(learner.events, accountant=accountant), accountant)
    for level in levels:
        assert truth.delta[level] <= theirs.get_delta(level) + SUMS


def rounded_normal(shift: float) -> tuple[Floats, Floats]:
    """Normal noise of deviation 1, rounded to multiples of 1/64, around 0 and around a shift; all of it."""
    ends = np.concatenate([[-np.inf], np.arange(-9, 9, 1 / 64), [np.inf]])
    return np.diff(norm.cdf(ends)), np.diff(norm.cdf(ends, shift))


@pytest.mark.parametrize("accountant", ACCOUNTED)
def test_a_user_of_a_batch_that_enters_two_releases(accountant: Any) -> None:
    """Batch 1 enters both with shifts of .6 and .8 deviations: 1 in all. Batches 0 and 2 enter one of them."""
    event = Composed((NormalColumns(0, (0.9, 0.36)), NormalColumns(1, (0.64, 0.1))))
    both = [rounded_normal(shift) for shift in (0.6, 0.8)]
    laws = product([p for p, _ in both]), product([q for _, q in both])
    assert not understates(claims(to_dp_event(event, accountant=accountant), accountant, 4.0), laws, 4.0)
    larger = to_dp_event(
        ContinuousGaussian(0.95), accountant="pld"
    )  # the largest square of one release is .9
    assert understates(claims(larger, "pld", 4.0), laws, 4.0)


# What cannot be said there.


def test_discrete_gaussian_noise_has_no_losses_there() -> None:
    """Of its rho alone no Gaussian curve follows: that of the same shift over deviation would claim too little."""
    sigma, points = 0.5, np.arange(-30, 31)
    weights = [np.exp(-((points - centre) ** 2) / (2 * sigma**2)) for centre in (0, 1)]
    laws = weights[0] / weights[0].sum(), weights[1] / weights[1].sum()
    rho = 1 / (2 * sigma**2)
    assert not understates(claims(to_dp_event(Gaussian(rho)), "rdp", 8.0), laws, 8.0)
    assert understates(claims(dp.GaussianDpEvent(sigma), "pld", 8.0), laws, 8.0)
    for event in (
        Gaussian(rho),
        Parallel((Gaussian(rho),)),
        Parallel((Laplace(1.0), ContinuousGaussian(1.0))),
    ):
        with pytest.raises(
            UnknownEvent, match=f"PLDAccountant has no event .* {type(event).__name__} .*'rdp'"
        ):
            to_dp_event(Composed((Laplace(1.0), event)), accountant="pld")


def test_nothing_costs_nothing() -> None:
    for event in (Composed(()), Parallel(()), Selections(0, 1.0), Laplace(0.0), Repeated(Laplace(1.0), 0)):
        assert their_epsilon(event, 1e-6, "pld") == 0
        assert their_delta(event, 1.0, "rdp") == 0


def test_wrong_arguments() -> None:
    for wrong in ({"rounds": 0}, {"accountant": "zcdp"}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            to_dp_event(Laplace(1.0), **wrong)
    for accountant in ACCOUNTED:
        with pytest.raises(UnknownEvent, match="NoneType"):
            to_dp_event(None, accountant=accountant)  # type: ignore[arg-type]


# Ledgers.


def test_a_ledger_hands_over_all_its_charges_and_its_unit() -> None:
    ledger = Ledger(Budget(3.0, 1e-6, unit=Unit(rounds=2)))
    ledger.charge(Laplace(0.1), "totals")
    ledger.named("front").charge(Selections(25, 0.05), "draws")
    theirs = priced(ledger.to_dp_event(), "rdp").get_epsilon(1e-6)
    assert theirs * (1 - GRID) <= ledger.spent() <= theirs * (1 + 1e-12)
    assert ledger.named("front").to_dp_event() == ledger.to_dp_event()
    charged = Composed((Laplace(0.1), Selections(25, 0.05)))
    assert ledger.to_dp_event("pld") == to_dp_event(charged, rounds=2, accountant="pld")
    assert ledger.to_dp_event("pld") != to_dp_event(charged, accountant="pld")
