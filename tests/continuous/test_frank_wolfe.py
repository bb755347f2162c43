"""Algorithm 4: the contract of its rounds, its theorem path by path, and how its regret grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo.continuous import (
    Box,
    BudgetAllocation,
    CappedSimplex,
    ConcaveOfLinear,
    Domain,
    DRObjective,
    MetaFrankWolfe,
    MultilinearNoisyOr,
    frank_wolfe_plan,
)
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, reach
from diminuendo.randomness import SeededSource
from diminuendo.types import Floats
from tests.continuous.hindsight import best_concave, best_on_a_grid
from tests.continuous.players import against, frank_wolfe, linear, users
from tests.kit.inside import last_deviation
from tests.kit.statistics import ALPHA


def test_it_is_algorithm_4() -> None:
    """Written out, copy by copy, one gradient at a time."""
    rounds, copies, top = 40, 4, np.array([1.0, 0.8, 0.6])
    stream = users(rounds)
    made = MetaFrankWolfe(Box(top), rounds, gradient_bound=1.0, smoothness=0.7, copies=copies)
    points, eta = made.replay(stream), made.plan.parameter
    sums = [np.zeros(3) for _ in range(copies)]
    for t, user in enumerate(stream):
        proposed = [np.minimum(np.maximum(top / 2 + eta * total, 0.0), top) for total in sums]
        np.testing.assert_allclose(points[t], sum(proposed) / copies, atol=1e-12)
        climbing = np.zeros(3)
        for j in range(copies):
            sums[j] = sums[j] + user.gradients(climbing[None, :])[0]
            climbing = climbing + proposed[j] / copies


# The theorem, path by path: with the copies' own regrets measured, C3 holds for every run.


def run(made: MetaFrankWolfe, stream: Sequence[Any]) -> tuple[float, Floats]:
    """What was earned, and each copy's regret against the best fixed point for its own gradients."""
    earned, copies = 0.0, made.plan.copies
    sums, own = np.zeros((copies, made.domain.n)), np.zeros(copies)
    for user in stream:
        decision = made.choose()
        objective: DRObjective = user(decision.point) if callable(user) else user
        earned += objective.value(decision.point)
        slopes = objective.gradients(made._probes.copy())
        sums += slopes
        own += (slopes * made._vertices).sum(axis=1)
        made.observe(decision, objective)
    best = np.array([row @ made.domain.maximise(row) for row in sums])
    return earned, best - own


def reached(made: MetaFrankWolfe, regrets: Floats) -> float:
    """The right-hand side of Theorem C3 with measured regrets."""
    k, spec = made.plan.copies, made.spec
    weights = (1 - 1 / k) ** np.arange(k - 1, -1, -1) / k
    return float(weights @ regrets + reach(k) * spec.smoothness * spec.radius**2 * spec.rounds / (2 * k))


def streams(rounds: int) -> dict[str, tuple[list[DRObjective], Callable[[Any, Domain], float]]]:
    rng = np.random.default_rng(3)
    wants = [MultilinearNoisyOr(row) for row in ([0.6, 0.1], [0.1, 0.6], [0.3, 0.3])]
    spread: list[DRObjective] = [BudgetAllocation(0.3 * rng.random((2, 3))) for _ in range(4)]
    curved = ConcaveOfLinear([0.5, 0.2]), ConcaveOfLinear([0.1, 0.6], "rational")
    return {
        "random": ([wants[i] for i in rng.integers(0, 3, rounds)], best_on_a_grid),
        "alternating": ([wants[t % 2] for t in range(rounds)], best_on_a_grid),
        "two halves": ([wants[2 * t // rounds] for t in range(rounds)], best_on_a_grid),
        "concave": ([spread[i] for i in rng.integers(0, 4, rounds)], best_concave),
        "curves": ([curved[t % 2] for t in range(rounds)], best_concave),
    }


@pytest.mark.parametrize("domain", [Box([1.0, 0.8]), CappedSimplex(2, 1.0)], ids=repr)
@pytest.mark.parametrize("name", streams(2))
@pytest.mark.parametrize("copies", [1, 5, None])
def test_without_privacy_the_bound_holds(name: str, domain: Domain, copies: int | None) -> None:
    stream, best_of = streams(150)[name]
    steep, bent = (max(getattr(f, part) for f in stream) for part in ("gradient_bound", "smoothness"))
    made = MetaFrankWolfe(domain, 150, gradient_bound=steep, smoothness=bent, copies=copies)
    best = best_of(stream, domain)
    earned, regrets = run(made, stream)
    share = reach(made.plan.copies)
    assert share * best - earned <= reached(made, regrets) <= made.bound() + 1e-9
    assert (1 - 1 / math.e) * best - earned <= made.bound()
    # Regret of every copy, whatever the order of users (Theorem C6 without noise).
    assert regrets.max() <= domain.spread * steep * math.sqrt(150) * (1 + 1e-9)


def test_the_bound_is_not_far_off_against_an_adversary() -> None:
    """One copy, linear rewards: the bound is D G sqrt(T), and an adversary who watches gets a quarter of it.

    The points are (1/2, 1/2) and (1/2 + eta/2, 1/2 - eta/2) in turn, which earn 1 - eta/2 together where the best earns
    1; that is eta T/4 in all, with eta = 1/sqrt(2T).
    """
    rounds, domain = 400, CappedSimplex(2, 1.0)
    made = MetaFrankWolfe(domain, rounds, gradient_bound=1.0, smoothness=0.0, copies=1)
    assert made.bound() == pytest.approx(math.sqrt(rounds / 2))  # the centre is 1/sqrt(2) from all corners
    earned, regrets = run(made, [against] * rounds)
    assert regrets[0] == pytest.approx(made.bound() / 4)
    assert regrets[0] + earned == pytest.approx(rounds / 2)


@pytest.mark.slow
def test_regret_grows_like_the_root_of_the_rounds() -> None:
    """Random signs: the slope of log regret over log T is 1/2, and 0 and 1 are ruled out."""
    domain, lengths, seeds = CappedSimplex(2, 1.0), (16, 64, 256), 40
    means, errors = [], []
    sides = linear([1.0, 0.0]), linear([0.0, 1.0])
    for rounds in lengths:
        regrets = []
        for seed in range(seeds):
            signs = np.random.default_rng((rounds, seed)).integers(0, 2, rounds)
            made = MetaFrankWolfe(domain, rounds, gradient_bound=1.0, smoothness=0.0, copies=1)
            points = made.replay([sides[sign] for sign in signs])
            earned = points[np.arange(rounds), signs].sum()
            regrets.append(max((signs == 0).sum(), (signs == 1).sum()) - earned)
            assert regrets[-1] <= made.bound()
        means.append(np.mean(regrets))
        errors.append(np.std(regrets, ddof=1) / np.mean(regrets) / math.sqrt(seeds))  # of log mean
    x = np.log(lengths) - np.log(lengths).mean()
    slope, error = x @ np.log(means) / (x @ x), math.sqrt((x / (x @ x)) ** 2 @ np.square(errors))
    wide = stats.norm.isf(ALPHA / 2) * error
    assert abs(slope - 0.5) <= wide < 0.5


# Private versions.


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {"noise": "gaussian", "epsilon": 0.3},
        {"noise": "gamma", "epsilon": 5.0},
        {"noise": "gamma", "epsilon": 2.0, "calibration": "paper"},
    ],
    ids=str,
)
def test_private_regret_is_within_its_bound_and_noise_is_why(how: dict[str, Any]) -> None:
    """One copy and linear rewards, where the bound is about all of the best: the mean regret of 20 runs stays below it,
    by far more than chance, and above what the bound would be without its noise term."""
    rounds, domain = 250, Box(np.ones(8) / math.sqrt(8))
    single: dict[str, Any] = {} if "calibration" in how else {"copies": 1, "releases": rounds - 1}
    user, regrets = linear(np.ones(8) / math.sqrt(8), domain.upper), []
    for seed in range(20):
        made = MetaFrankWolfe(
            domain, rounds, gradient_bound=1.0, smoothness=0.0, rng=SeededSource(seed), **how, **single
        )
        assert made.plan.copies == 1
        points = made.replay([user] * rounds)
        regrets.append(rounds - sum(user.value(point) for point in points))
    mean = float(np.mean(regrets))
    error = float(stats.t.isf(ALPHA, 19) * np.std(regrets, ddof=1) / math.sqrt(20))
    assert mean + error <= made.bound()
    if "calibration" not in how:
        calm = MetaFrankWolfe(domain, rounds, gradient_bound=1.0, smoothness=0.0, copies=1)
        assert mean - error > calm.bound()


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_little_noise_is_little_different(noise: Any) -> None:
    """With epsilon enormous, a private learner with as many copies and releases plays what the open one plays.

    No noise is longer than `longest`, but with probability ALPHA. It moves what a copy proposes by eta times that at
    most, hence later gradients by beta times as much, and these what is proposed after them: eta longest in the first
    round, 1 + eta beta times as much in each that follows.
    """
    how: dict[str, Any] = {"copies": 3, "gradient_bound": 2.0}

    def apart(epsilon: float) -> tuple[float, float]:
        private, calm = frank_wolfe(noise=noise, epsilon=epsilon, releases=59, **how), frank_wolfe(**how)
        calm.plan = replace(calm.plan, parameter=private.plan.parameter)  # which allows for noise, a little
        chance = ALPHA / (59 * 3)  # of each release of each copy
        if noise == "gamma":  # six nodes, padding among them: lengths add up at most
            longest = stats.gamma.isf(chance, 6 * 3) * private._sums._tree.scale  # type: ignore[attr-defined]
        else:  # and each gradient is cut to whole ticks
            deviation = last_deviation(private._sums)
            longest = (
                math.sqrt(stats.chi2.isf(chance, 3)) * deviation + 60 * math.sqrt(3) * 2.0 / GRADIENT_TICKS
            )
        eta, bent = private.plan.parameter, max(user.smoothness for user in users())
        difference = np.linalg.norm(private.replay(users()) - calm.replay(users()), axis=1).max()
        return difference, eta * longest * (1 + eta * bent) ** 59

    result, allowed = apart(1e7)
    assert result <= allowed
    assert apart(1e5 if noise == "gamma" else 1e3)[0] > allowed  # a hundred times the noise would be noticed


def test_the_papers_numbers() -> None:
    made = frank_wolfe(rounds=1000, noise="gamma", calibration="paper", epsilon=0.5)
    assert made.parameters == {
        "copies": 1,  # 1000^(1/4) / log^1.25 1000 = .503
        "releases": 999,
        "leader": "pftal",
        "H": pytest.approx(math.sqrt(3 * math.log(1000) ** 2.5 / (0.5 * 1000))),
    }
    assert made.claim is not None
    assert (made.claim.epsilon, made.claim.delta) == (0.5, 0.0)
    assert made.claim.regret > 0
    assert frank_wolfe(noise="gaussian").claim is None


def test_the_planned_noise_is_the_noise() -> None:
    made = frank_wolfe(rounds=200, noise="gaussian", epsilon=1.0)
    deviation = last_deviation(made._sums)
    assert made.plan.noise == pytest.approx(math.sqrt(3) * deviation, rel=1e-9)


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_the_plan_is_the_best_of_its_kind(noise: Any) -> None:
    """No other number of copies and releases among those tried has a smaller bound."""
    best = frank_wolfe(rounds=500, noise=noise, epsilon=3.0)
    for copies in {1, max(1, best.plan.copies - 1), 2 * best.plan.copies}:
        assert copies in frank_wolfe_plan._grid(frank_wolfe_plan.MOST_COPIES)
        for releases in {7, best.plan.releases, 499}:
            other = frank_wolfe(rounds=500, noise=noise, epsilon=3.0, copies=copies, releases=releases)
            assert best.bound() <= other.bound()
    assert best.bound() < frank_wolfe(rounds=500, noise=noise, epsilon=3.0, copies=1, releases=7).bound()
