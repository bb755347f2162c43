"""Privacy by enumeration: on tiny streams the whole law of everything released, against what the accountants claim.

Secret scores, rates, clipping, encoding and scales are the library's own; the sums over all outcomes are the test's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from diminuendo._numba import kernel
from diminuendo.experts.hedge import HedgeState, learn, new_hedge
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Gaussian, Laplace, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.score_classes import probabilities
from diminuendo.randomness.ticks import to_ticks
from diminuendo.sums.batch import OpenBatch
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import equal
from diminuendo.sums.strategies import STRATEGIES
from diminuendo.types import Floats, Ints
from tests.kit.adaptive_range import COUNTED
from tests.kit.slow import mostly_slow

User = tuple[float, ...]
"""f of each set of items, by bit mask, f(nothing) first."""

RATE = 0.5


@kernel
def learn_row(state: HedgeState, expert: int, gains: Floats) -> None:
    for item in range(len(gains)):
        learn(state, expert, item, to_ticks(gains[item]))


def law(stream: Sequence[User], n: int, k: int) -> Floats:
    """The probability of every sequence of ordered slates: k experts drawing from secret scores, round after round."""
    result = []
    for path in itertools.product(itertools.product(range(n), repeat=k), repeat=len(stream)):
        state, chance = new_hedge(n, k, RATE), 1.0
        for user, slate in zip(stream, path, strict=True):
            for slot, item in enumerate(slate):
                chance *= probabilities(state.classes, slot)[item]
            shown = 0
            for slot, item in enumerate(slate):
                gains = np.array([user[shown | 1 << a] - user[shown] for a in range(n)])
                learn_row(state, slot, gains)
                shown |= 1 << item
        result.append(chance)
    return np.array(result)


@cache
def users(n: int, k: int) -> list[User]:
    """All monotone functions of small sets with values 0, 1, and 1/2 for two items: submodular or not, privacy does not
    care. With one slot only differences between items matter, so one function stands for all with the same ones."""
    values = (0.0, 0.5, 1.0) if (n, k) == (2, 1) else (0.0, 1.0)
    result = [
        f
        for f in itertools.product(values, repeat=1 << n)
        if f[0] == 0 and all(f[s] <= f[s | 1 << a] for s in range(1 << n) for a in range(n))
    ]
    if k > 1:
        return result
    return list(
        {tuple(f[1 << a] - min(f[1 << b] for b in range(n)) for a in range(n)): f for f in result}.values()
    )


@cache
def worst_pairs(n: int, k: int, rounds: int) -> list[tuple[Floats, Floats]]:
    """The laws of all streams that differ in one round. What the last user says is never used."""
    choices = users(n, k)
    streams = list(itertools.product(range(len(choices)), repeat=rounds - 1))
    laws = {s: law([*(choices[i] for i in s), choices[0]], n, k) for s in streams}
    for result in laws.values():
        assert abs(result.sum() - 1) < 1e-12
    return [
        (laws[one], laws[other])
        for one, other in itertools.permutations(streams, 2)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    ]


def exact_delta(pairs: list[tuple[Floats, Floats]], epsilon: float) -> float:
    return max(float(np.maximum(0, p - math.exp(epsilon) * q).sum()) for p, q in pairs)


CASES = [(2, 1, 2), (2, 1, 4), (2, 2, 3), (3, 1, 3)]
LONG = [pytest.param(case, marks=pytest.mark.slow) for case in [(2, 2, 4), (3, 1, 4), (3, 2, 3)]]


@pytest.mark.parametrize(
    ("case", "epsilon", "known"),
    [
        ((2, 1, 2), 0.0, 0.244919),
        ((2, 1, 2), 0.125, 0.194650),
        ((2, 1, 2), 0.5, 0.0),
        ((2, 1, 4), 0.0, 0.360032),
        ((2, 1, 4), 0.375, 0.239986),
        ((2, 1, 4), 1.5, 0.034923),
        ((2, 2, 3), 0.0, 0.310532),
        ((2, 2, 3), 0.5, 0.161575),
        ((2, 2, 3), 1.0, 0.063167),
        ((3, 1, 3), 1.0, 0.056991),
    ],
)
def test_draws_from_secret_scores_have_the_known_delta(
    case: tuple[int, int, int], epsilon: float, known: float
) -> None:
    assert exact_delta(worst_pairs(*case), epsilon) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("case", [*mostly_slow(CASES, [(2, 1, 2), (3, 1, 3)]), *LONG])
def test_no_accountant_claims_less_than_the_truth_for_draws(case: tuple[int, int, int]) -> None:
    _, k, rounds = case
    count, pairs = k * (rounds - 1), worst_pairs(*case)
    event = Selections(count, 2 * RATE)
    tightest = 0.0
    for epsilon in np.linspace(0, count * 2 * RATE, 9)[:-1]:
        truth = exact_delta(pairs, epsilon)
        claims = [
            COUNTED[name].delta(event, epsilon) for name in ("zcdp", "pure", "advanced", "adaptive-range")
        ]
        assert truth <= min(claims) + 1e-12
        tightest = max(tightest, truth / claims[-1])
    if k == 1:
        assert tightest > 0.95
    assert exact_delta(pairs, ACCOUNTANTS["pure"].epsilon(event, 0.0)) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("case", [(2, 1, 4), (2, 2, 3)])
def test_half_the_price_would_be_noticed(case: tuple[int, int, int]) -> None:
    _, k, rounds = case
    half = Selections(k * (rounds - 1), RATE)
    claimed = [COUNTED["adaptive-range"].delta(half, epsilon) for epsilon in (0.0, 0.5)]
    assert any(
        exact_delta(worst_pairs(*case), epsilon) > claim
        for epsilon, claim in zip((0.0, 0.5), claimed, strict=True)
    )


@pytest.mark.parametrize("case", [*CASES, *LONG])
def test_renyi_divergences_of_draws_are_within_zcdp(case: tuple[int, int, int]) -> None:
    n, k, rounds = case
    rho = k * (rounds - 1) * (2 * RATE) ** 2 / 8
    ratios = [
        math.log(float((p**order * q ** (1 - order)).sum())) / ((order - 1) * order * rho)
        for p, q in worst_pairs(*case)
        for order in (1.001, 1.5, 2.0, 8.0, 64.0)
    ]
    assert max(ratios) <= 1
    assert max(ratios) > (0.95 if k == 1 and n == 2 else 0.5)


# Private sums: the shift of every released number is a whole number; the law of noise around it is known exactly.

UNITS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.6, 0.7], None]
"""What a user may say about two items; None says nothing at all."""


def made(size: int, batches: int, cost: Gaussian | Laplace, strategy: str, clip: Clip) -> PrivateSum:
    budget = Budget(9.0, 0.0, accountant="pure") if isinstance(cost, Laplace) else Budget(9.0, 1e-6)
    return PrivateSum(
        size, schedule=equal(9, batches), cost=cost, ledger=Ledger(budget), strategy=strategy, clip=clip
    )


def shifts(total: PrivateSum, batches: int) -> Iterator[Ints]:
    """By how much all released numbers differ, for every pair of neighbouring streams of one user per batch."""
    for place in range(batches):
        for one, other in itertools.permutations(UNITS, 2):
            runs = []
            for user in (one, other):
                encoder = total.strategy.encoder(2)
                rows = []
                for b in range(batches):
                    batch = OpenBatch(total.size, total.clip, total.schedule)
                    if b == place and user is not None:
                        batch.add(user)
                    elif b != place:
                        batch.add(UNITS[3])
                    rows.append(encoder.encode(batch._take()))
                runs.append(np.concatenate(rows).ravel())
            yield runs[0] - runs[1]


def laplace_cells(scale: float, shift: int) -> tuple[Floats, Floats]:
    """The law of discrete Laplace noise around 0 and around `shift`, exactly: on each side of the two centres the ratio
    of the two is constant, so all numbers there make one cell."""
    alpha = math.exp(-1 / scale)
    inner = [(1 - alpha) / (1 + alpha) * alpha**z for z in range(1, shift)]
    law_of_0 = np.array([1 / (1 + alpha), *inner, alpha**shift / (1 + alpha)])
    return law_of_0, law_of_0[::-1].copy()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("batches", [1, 3])
def test_laplace_batches_cost_what_they_say(epsilon: float, batches: int) -> None:
    """The exact law of all numbers that change: the claim is attained, and exceeded at no level."""
    clip = Clip("l1", ticks=2)
    total = made(2, batches, Laplace(epsilon), "independent", clip)
    assert isinstance(total.event, Laplace)
    worst = 0.0
    for shift in {
        tuple(sorted(abs(int(part)) for part in result if part)) for result in shifts(total, batches)
    }:
        p, q = np.ones(1), np.ones(1)
        for part in shift:
            one, other = laplace_cells(total.scale, part)
            p, q = np.outer(p, one).ravel(), np.outer(q, other).ravel()
        assert p.sum() == pytest.approx(1, abs=1e-12)
        worst = max(worst, float(np.log(p / q).max()))
        for level in (0.0, 0.3 * epsilon, 0.9 * epsilon):
            truth = float(np.maximum(0, p - math.exp(level) * q).sum())
            assert truth <= ACCOUNTANTS["pure"].delta(total.event, level) * (1 + 1e-12)
    assert worst <= total.event.epsilon * (1 + 1e-12)
    assert worst > 0.95 * total.event.epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_one_cell_with_laplace_noise_is_the_worst_that_pure_privacy_allows(epsilon: float) -> None:
    """A public cell of one tick: exact delta at every epsilon equals the claim, not only at the end."""
    cell = Clip("cell", ticks=1)
    total = made(1, 1, Laplace(epsilon), "independent", cell)
    p, q = laplace_cells(total.scale, 1)
    for level in np.linspace(0, epsilon, 7):
        truth = float(np.maximum(0, p - math.exp(level) * q).sum())
        claim = ACCOUNTANTS["pure"].delta(total.event, level)
        assert 0.95 * claim - 1e-12 <= truth <= claim + 1e-12


def gaussian_weights(sigma: float, shift: int, reach: int) -> Floats:
    weights = np.exp(-((np.arange(-reach, reach + 1) - shift) ** 2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gaussian_releases_cost_what_they_say(strategy: str) -> None:
    """Noise on different numbers is independent, so divergences add up: the stated rho, and no more."""
    total = made(2, 3, Gaussian(0.1), strategy, Clip(ticks=2))
    assert isinstance(total.event, Gaussian)
    worst = max(sum(int(part) ** 2 for part in shift) for shift in shifts(total, 3))
    rho = Fraction(worst) / (2 * Fraction(total.scale) ** 2)
    assert Fraction(95, 100) * Fraction(total.event.rho) < rho <= Fraction(total.event.rho)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 7.3])
@pytest.mark.parametrize("order", [1.5, 2.0, 30.0])
@pytest.mark.parametrize("shift", [1, 2, 9])
def test_a_whole_shift_of_discrete_gaussian_noise_costs_its_square(
    sigma: float, order: float, shift: int
) -> None:
    """By listing the two laws: order * shift^2 / (2 sigma^2) at most, and exactly that for whole orders."""
    far = order * shift + 60 * sigma
    points = np.arange(-math.ceil(far), math.ceil(far) + 1)
    log_p, log_q = (-((points - centre) ** 2) / (2 * sigma**2) for centre in (shift, 0))
    whole = np.logaddexp.reduce(-(points**2) / (2 * sigma**2))
    result = np.logaddexp.reduce(order * (log_p - whole) + (1 - order) * (log_q - whole)) / (order - 1)
    stated = order * shift**2 / (2 * sigma**2)
    assert result <= stated * (1 + 1e-9)
    assert order % 1 or result == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.5, 2.0, 30.0])
def test_the_exact_delta_of_discrete_gaussian_noise_is_within_zcdp_but_not_within_the_continuous_curve(
    sigma: float,
) -> None:
    p, q = (gaussian_weights(sigma, shift, math.ceil(40 * sigma)) for shift in (0, 1))
    ratios = []
    for epsilon in np.linspace(0, 8, 60):
        truth = float(np.maximum(0, p - math.exp(epsilon) * q).sum())
        assert truth <= curves.zcdp_delta(1 / (2 * sigma**2), epsilon) + 1e-15
        ratios.append(truth / curves.gaussian_delta(1 / sigma, epsilon))
    assert max(ratios) > (2 if sigma == 0.5 else 1 + 1e-9)
