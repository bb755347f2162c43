"""Boosted ascent: its lemma by quadrature, what one user can change, its regret against users who react, and its
rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo.continuous import (
    BoostedAscent,
    Box,
    BudgetAllocation,
    CappedSimplex,
    ConcaveOfLinear,
    Domain,
    DRObjective,
    MetaFrankWolfe,
    MultilinearCoverage,
    MultilinearNoisyOr,
    Quadratic,
)
from diminuendo.continuous.boosted import best_size, boosted_plan, part_of_the_way
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, Spec
from diminuendo.privacy import Budget, Ledger
from diminuendo.randomness import SeededSource
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats
from tests.continuous.hindsight import best_on_a_grid
from tests.continuous.players import Says, against, boosted, linear, users
from tests.kit.inside import last_deviation
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA

COUNTED: dict[str, tuple[str, Budget]] = {
    "zcdp": ("gaussian", Budget(1.0, 1e-6)),
    "rounded": ("gaussian", Budget(1.0, 1e-6, accountant="continuous-gaussian")),
    "pure": ("laplace", Budget(1.0, 0.0, accountant="pure")),
}

# The lemma.

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2  # on [0, 1]; exact to rounding for functions as smooth as these


def integral(gradients: Callable[[Floats], Floats], x: Floats) -> Floats:
    """The integral of e^(z - 1) grad f(z x) over z in [0, 1]."""
    return np.asarray((WEIGHTS * np.exp(NODES - 1)) @ gradients(NODES[:, None] * x))


def some_objective(rng: np.random.Generator, n: int) -> DRObjective:
    kind = rng.integers(5)
    if kind == 0:
        return MultilinearNoisyOr(rng.random(n))
    if kind == 1:
        return BudgetAllocation(0.99 * rng.random((n, 3)) ** 0.3)
    if kind == 2:
        half = -rng.random((n, n))
        bent = half + half.T
        return Quadratic(*(part / -bent.sum() * 0.9 for part in (-bent.sum(axis=1), bent)))
    if kind == 3:
        return ConcaveOfLinear(9 * rng.random(n), "rational" if rng.random() < 0.5 else "exponential")
    return MultilinearCoverage(rng.dirichlet(np.ones(4)), rng.random((n, 4)) < 0.6)


def corners(rng: np.random.Generator, n: int) -> Floats:
    """A point of the unit box, with entries at its ends among others."""
    return np.clip(rng.uniform(-0.5, 1.5, n), 0.0, 1.0)


def slack(
    value: Callable[[Any], float], gradients: Callable[[Floats], Floats], x: Floats, u: Floats
) -> float:
    """The two sides of Lemma C8, subtracted: never negative if it holds."""
    return float(integral(gradients, x) @ (u - x) - (ONE_MINUS_1_OVER_E * value(u) - value(x)))


def test_the_lemma_holds_for_diminishing_returns() -> None:
    rng, least = np.random.default_rng(1), math.inf
    for _ in range(400):
        n = int(rng.integers(1, 6))
        f = some_objective(rng, n)
        for x, u in ((corners(rng, n), corners(rng, n)) for _ in range(5)):
            least = min(least, slack(f.value, f.gradients, x, u))
    assert least >= -1e-12  # floats: values up to 1, forty nodes
    assert least <= 1e-12  # with equality for linear functions at 0: more than 1 - 1/e cannot stand there


def test_the_lemma_needs_what_it_asks_for() -> None:
    """Rising returns: at 0 nothing seems worth anything. And with f(0) < 0 a point can be worth less than nothing."""
    ones, zeros = np.ones(2), np.zeros(2)
    assert slack(lambda x: float(x[0] * x[1]), lambda p: p[:, ::-1], zeros, ones) == pytest.approx(
        -ONE_MINUS_1_OVER_E
    )
    below = slack(lambda x: float(x.sum() / 2 - 1), lambda p: np.full(p.shape, 0.5), zeros, ones)
    assert below == pytest.approx(
        ONE_MINUS_1_OVER_E - 1
    )  # ONE_MINUS_1_OVER_E from the gradient, 0 + 1 asked for


def test_public_words_have_the_density_that_the_lemma_asks_for() -> None:
    words = SeededSource(5).public(20_000)
    parts = np.array([part_of_the_way(int(word)) for word in words])
    assert stats.kstest(parts, lambda z: np.expm1(z) / (math.e - 1)).pvalue > ALPHA
    assert stats.kstest(parts, "uniform").pvalue < ALPHA
    assert 0 < part_of_the_way(0) < part_of_the_way(2**64 - 1) <= 1


def test_one_gradient_per_user_is_right_in_expectation() -> None:
    """What users are asked in a run of one batch, at one point, against the integral; z uniform would be noticed."""
    rounds, f = 4000, MultilinearNoisyOr([0.9, 0.8, 0.7])
    made = boosted(rounds, noise="gaussian", releases=1)
    asked: list[Floats] = []

    def listening(points: Floats) -> Floats:
        asked.append(points.copy())
        return f.gradients(points)

    point = made.choose().point
    for _ in range(rounds // 2 - 1):
        made.observe(made.choose(), Says(listening))
    seen = np.vstack(asked)
    assert len(seen) == rounds // 2 - 1  # one each
    np.testing.assert_allclose(
        seen / point, (seen / point)[:, :1] * np.ones(3)
    )  # all on the way to the point
    said = ONE_MINUS_1_OVER_E * f.gradients(seen)
    error = stats.norm.isf(ALPHA / 6) * said.std(axis=0, ddof=1) / math.sqrt(len(seen))  # three entries
    assert (np.abs(said.mean(axis=0) - integral(f.gradients, point)) <= error).all()
    uniform = ONE_MINUS_1_OVER_E * (WEIGHTS @ f.gradients(NODES[:, None] * point))
    assert (np.abs(said.mean(axis=0) - uniform) > error).any()


def test_it_is_what_is_written() -> None:
    """Without noise, on a box, entry by entry, with the same coins."""
    rounds, top = 40, np.array([1.0, 0.8, 0.6])
    stream, words = users(rounds), SeededSource(7).public(rounds)
    made = BoostedAscent(Box(top), rounds, gradient_bound=1.0, rng=SeededSource(7))
    points, total = made.replay(stream), np.zeros(3)
    assert made.plan.rate == pytest.approx(np.linalg.norm(top) / 2 / ((1 - 1 / math.e) * math.sqrt(rounds)))
    for t, user in enumerate(stream):
        x = np.minimum(np.maximum(top / 2 + made.plan.rate * total, 0.0), top)
        np.testing.assert_allclose(points[t], x, atol=1e-12)
        z = math.log(1 + (int(words[t]) / 2**64) * (math.e - 1))
        total = total + (1 - 1 / math.e) * user.gradients(z * x[None, :])[0]


def test_releases_cost_nothing_more() -> None:
    """A user is in one batch: noise is the same for any number of releases."""
    for noise in ("gaussian", "laplace"):
        scales = {boosted(noise=noise, releases=r)._sums._sum.scale for r in (1, 7, 59)}  # type: ignore[attr-defined]
        assert len(scales) == 1


# Regret.


def run(made: BoostedAscent, stream: Sequence[Any]) -> tuple[float, Floats]:
    """What was earned on the sum of (1 - 1/e) gradients as asked for, and that sum."""
    own, total = 0.0, np.zeros(made.domain.n)
    for t, user in enumerate(stream):
        decision = made.choose()
        objective: DRObjective = user(decision.point) if callable(user) else user
        slope = (
            ONE_MINUS_1_OVER_E * objective.gradients(made._asked(t - made._starts[made._sums.released]))[0]
        )
        own, total = own + float(slope @ decision.point), total + slope
        made.observe(decision, objective)
    return own, total


STREAMS: dict[str, list[Any]] = {
    "random": [users(3, 2)[i] for i in np.random.default_rng(3).integers(0, 3, 150)],
    "two halves": [linear([0.9, 0.1])] * 75 + [linear([0.0, 0.9])] * 75,
    "concave": [ConcaveOfLinear([0.8, 0.2]), ConcaveOfLinear([0.1, 0.6], "rational")] * 75,
    "against": [against] * 150,
}


@pytest.mark.parametrize("domain", [Box([1.0, 0.8]), CappedSimplex(2, 1.0)], ids=repr)
@pytest.mark.parametrize("name", STREAMS)
def test_without_noise_the_bound_holds_on_every_path(name: str, domain: Domain) -> None:
    """Theorem C10 before it takes expectations: for the gradients that were asked for, against every point."""
    made = BoostedAscent(domain, 150, gradient_bound=1.0, rng=SeededSource(2))
    assert made.bound() == pytest.approx(ONE_MINUS_1_OVER_E * domain.spread * math.sqrt(150))
    own, total = run(made, STREAMS[name])
    regret = float(total @ domain.maximise(total)) - own
    assert regret <= made.bound() * (1 + 1e-9)
    if name == "against" and isinstance(domain, CappedSimplex):
        assert regret >= made.bound() / 5  # and it is not far off


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{"noise": "gaussian", "epsilon": 0.3}, {"noise": "laplace"}],
    ids=str,
)
@pytest.mark.parametrize(
    "domain",
    [Box(np.ones(8) / math.sqrt(8)), CappedSimplex(8, 1.0)],
    ids=repr,
)
@pytest.mark.parametrize("reacting", [False, True])
def test_private_regret_is_within_its_bound_and_noise_is_why(
    how: dict[str, Any], domain: Domain, reacting: bool
) -> None:
    """The mean regret of 40 runs against a point fixed beforehand does not refute the bound, but does refute what it
    would be without noise: also if everybody wants what is played least, so that gradients depend on the noise."""
    rounds, regrets = 250, []
    wants = [linear(row, domain.upper) for row in np.eye(8)]
    fixed = wants[0] if isinstance(domain, CappedSimplex) else linear(domain.upper, domain.upper)
    some = 2 if isinstance(domain, CappedSimplex) else 8
    rival = domain.maximise(fixed.gradients(np.zeros((1, 8)))[0])
    for seed in range(40):
        made = BoostedAscent(domain, rounds, gradient_bound=1.0, rng=SeededSource(seed), **how)
        who = [lambda point: wants[int(np.argmin(point[:some]))]] if reacting else [fixed]
        own, total = run(made, who * rounds)
        regrets.append(float(total @ rival) - own)
    mean = float(np.mean(regrets))
    error = float(stats.t.isf(ALPHA, 39) * np.std(regrets, ddof=1) / math.sqrt(40))
    assert mean - error <= made.bound()
    assert mean - error > BoostedAscent(domain, rounds, gradient_bound=1.0).bound()


@pytest.mark.parametrize(
    "domain", [Box([1.0, 0.8]), pytest.param(CappedSimplex(2, 1.0), marks=pytest.mark.slow)], ids=repr
)
@pytest.mark.parametrize("noise", mostly_slow(["gaussian", "laplace"], ["laplace"]))
def test_rewards_are_within_the_bound(noise: Any, domain: Domain) -> None:
    """(1 - 1/e) of the best fixed point minus what was earned, mean of 20 runs: with curved objectives too."""
    rounds = 300
    kinds = [ConcaveOfLinear([0.8, 0.2]), ConcaveOfLinear([0.1, 0.6], "rational")]
    stream = [kinds[i] for i in np.random.default_rng(4).integers(0, 2, rounds)]
    best, earned = best_on_a_grid(stream, domain), []
    for seed in range(20):
        made = BoostedAscent(domain, rounds, gradient_bound=0.83, noise=noise, rng=SeededSource(seed))
        earned.append(sum(f.value(x) for f, x in zip(stream, made.replay(stream), strict=True)))
    error = float(stats.t.isf(ALPHA, 19) * np.std(earned, ddof=1) / math.sqrt(20))
    assert ONE_MINUS_1_OVER_E * best - np.mean(earned) + error <= made.bound()
    assert (
        np.mean(earned) - error > ONE_MINUS_1_OVER_E * best
    )  # where nothing is against it, the share itself is reached


def example_learners(rounds: int, epsilon: float) -> tuple[BoostedAscent, BoostedAscent, MetaFrankWolfe]:
    """The facts of examples/continuous.py; Gaussian noise counted alike in the first and the last."""
    domain, steep, bent = CappedSimplex(8, 3.0), math.sqrt(8) * math.log(2), 8 * math.log(2) ** 2
    ledger = Ledger(Budget(epsilon, 1e-6))
    return (
        BoostedAscent(domain, rounds, gradient_bound=steep, noise="gaussian", epsilon=epsilon, ledger=ledger),
        BoostedAscent(domain, rounds, gradient_bound=steep, noise="laplace", epsilon=epsilon),
        MetaFrankWolfe(
            domain, rounds, gradient_bound=steep, smoothness=bent, noise="gaussian", epsilon=epsilon
        ),
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_the_bound_is_half_that_of_algorithm_4(epsilon: float) -> None:
    gaussian, pure, before = example_learners(4000, epsilon)
    assert max(gaussian.bound(), pure.bound()) < 0.55 * before.bound()


# The plan.


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 5.0, 30.0])
@pytest.mark.parametrize("cost", COUNTED)
def test_no_other_number_of_releases_has_a_smaller_bound(cost: str, epsilon: float) -> None:
    _, budget = COUNTED[cost]
    share = Budget(epsilon, budget.delta, accountant=budget.accountant).share()
    for rounds in (2, 3, 50, 97):
        spec = Spec(5, rounds, 2.0, 1.1, 3.0, 0.0)
        bounds = [boosted_plan(spec, share, releases).bound(spec) for releases in range(1, rounds)]
        assert boosted_plan(spec, share).bound(spec) == min(bounds)
        if rounds == 97 and epsilon in (1.0, 2.0):
            assert 1 < boosted_plan(spec, share).releases < 96  # neither end


def test_the_best_size_of_a_batch() -> None:
    for ratio in (0.0, 0.3, 1.0, 1.5, 7.3, 1e6):
        size = best_size(ratio)
        assert size * (size - 1) <= ratio**2 <= size * (size + 1)


@pytest.mark.parametrize("cost", COUNTED)
def test_the_planned_noise_is_the_noise(cost: str) -> None:
    noise, budget = COUNTED[cost]
    made = boosted(n=10_000, noise=noise, ledger=Ledger(budget), gradient_bound=0.4, releases=1)
    planned = math.sqrt(made.plan.square / 10_000)
    # Discrete noise has no more than the deviation it is named for; rounding adds half a tick to what is drawn.
    rounding = 0.5 * 0.4 / GRADIENT_TICKS if cost == "rounded" else 0.0
    deviation = last_deviation(made._sums)
    assert planned == pytest.approx(deviation + rounding, rel=1e-12)
    squares = np.square(made._sums.release(made._secret)[0]) / planned**2
    error = stats.norm.isf(ALPHA / 2) * squares.std(ddof=1) / 100
    assert abs(squares.mean() - 1) <= error < 1 - 1 / math.sqrt(2)  # so is a variance that is off by sqrt(2)


def test_users_are_asked_where_their_own_coin_says_however_late() -> None:
    made, asked = boosted(noise="gaussian", releases=1), []
    decisions = [made.choose() for _ in range(5)]
    for decision in reversed(decisions):
        made.observe(decision, Says(lambda points: asked.append(points.copy())))
    words = SeededSource(1).public(5)
    parts = [part_of_the_way(int(word)) for word in words]
    np.testing.assert_array_equal(np.vstack(asked[::-1]), np.outer(parts, decisions[0].point))
