"""Algorithm 4: the contract of its rounds, its theorem path by path, and how its regret grows."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
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
    PointDecision,
    Quadratic,
    frank_wolfe_plan,
)
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, reach
from diminuendo.errors import InvalidInput, OverBudget, WrongFeedback
from diminuendo.privacy import Budget, Ledger, Unit
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.randomness import SeededSource, SystemSource
from diminuendo.types import Floats
from tests.continuous.hindsight import best_concave, best_on_a_grid
from tests.kit.inside import last_deviation
from tests.kit.slow import mostly_slow
from tests.kit.statistics import ALPHA

KINDS: list[dict[str, Any]] = [
    {},
    {"noise": "gaussian", "releases": 7},
    {"noise": "gaussian", "epsilon": 30.0},
    {"noise": "gamma", "releases": 7},
    {"noise": "gamma", "calibration": "paper"},
]


def learner(rounds: int = 60, n: int = 3, seed: int = 1, **how: Any) -> MetaFrankWolfe:
    spec: dict[str, Any] = {"gradient_bound": 1.0, "smoothness": 0.7}
    return MetaFrankWolfe(CappedSimplex(n, 1.5), rounds, rng=SeededSource(seed), **(spec | how))


def users(rounds: int = 60, n: int = 3, seed: int = 0) -> list[MultilinearNoisyOr]:
    rng = np.random.default_rng(seed)
    return [MultilinearNoisyOr(0.57 * rng.random(n)) for _ in range(rounds)]


def linear(row: Any, upper: Any = 1.0) -> Quadratic:
    """What is wanted, times how much of it there is; at most 1 where no entry exceeds `upper`."""
    return Quadratic(np.asarray(row), np.zeros((len(row), len(row))), upper)


# The contract.


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_replay_is_the_loop(how: dict[str, Any]) -> None:
    quick, slow = learner(**how), learner(**how)
    points = quick.replay(users())
    for t, user in enumerate(users()):
        decision = slow.choose()
        assert decision.round == t
        np.testing.assert_array_equal(decision.point, points[t])
        assert slow.domain.contains(decision.point)
        slow.observe(decision, user)
    assert quick.rounds == slow.rounds == 60
    assert quick.snapshot() == slow.snapshot()


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_users_are_listened_to(how: dict[str, Any]) -> None:
    """With the same coins, other users lead to other points, but not before anything was released."""
    one, other = learner(**how).replay(users(seed=0)), learner(**how).replay(users(seed=9))
    first = learner(**how).plan.schedule.ends[0]
    begin = learner(**how).choose().point
    np.testing.assert_array_equal(one[:first], np.tile(begin, (first, 1)))
    np.testing.assert_array_equal(other[:first], np.tile(begin, (first, 1)))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_no_more_rounds_than_were_planned(how: dict[str, Any]) -> None:
    made = learner(rounds=10, **(how | ({"releases": 3} if "releases" in how else {})))
    made.replay(users(8))
    before = made.snapshot()
    with pytest.raises(InvalidInput, match="made for 10 rounds"):
        made.replay(users(3))
    assert made.snapshot() == before
    made.replay(users(2))
    with pytest.raises(InvalidInput, match="made for 10 rounds"):
        made.choose()


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_an_answer_counts_until_its_batch_closes(how: dict[str, Any]) -> None:
    made = learner(**how)
    size, user = made.plan.schedule.ends[0], users()[0]
    decisions = [made.choose() for _ in range(size)]
    quiet = made.snapshot()
    made.observe(decisions[0], user)  # the last choose() of the batch was made, but no later one: in time
    answered = made.snapshot()
    assert answered != quiet
    made.observe(decisions[0], users(seed=5)[0])  # the second answer
    assert made.snapshot() == answered
    made.choose()  # closes the batch
    closed = made.snapshot()
    for delay in decisions:
        made.observe(delay, user)
    assert made.snapshot() == closed


def test_nothing_visible_depends_on_who_answered() -> None:
    for noise in ("gaussian", "gamma"):
        seen = []
        for share in (0.0, 0.5, 1.0):
            ledger = Ledger(Budget(1.0, 1e-6))
            made = learner(noise=noise, releases=7, epsilon=0.1, ledger=ledger)
            for t, user in enumerate(users()):
                decision = made.choose()
                if t < share * 60:
                    made.observe(decision, user)
            lines = [(charge.event, charge.note) for charge in ledger.charges]
            seen.append((lines, [drawn.name for drawn in ledger.drawn], made.rounds))
        assert seen[0] == seen[1] == seen[2]
        assert len(seen[0][1]) == 7


class Hostile:
    """Says whatever it likes."""

    n, gradient_bound, smoothness = 3, 1.0, 1.0

    def __init__(self, say: Callable[[Floats], Any]) -> None:
        self._say = say

    def value(self, point: Any) -> float:
        return 0.0

    def gradients(self, points: Floats) -> Any:
        return self._say(points)


def raising(points: Floats) -> Any:
    raise RuntimeError("no")


NOTHING = [
    raising,
    lambda points: None,
    lambda points: "abc",
    lambda points: points[:1, :1],
    lambda points: np.full(points.shape, np.nan),
    lambda points: np.full(points.shape, -np.inf),
    lambda points: -np.ones(points.shape),
]


@pytest.mark.parametrize("how", mostly_slow(KINDS, [KINDS[1], KINDS[3]]), ids=str)
@pytest.mark.parametrize("say", NOTHING, ids=range(len(NOTHING)))
def test_nonsense_counts_as_nothing(how: dict[str, Any], say: Any) -> None:
    silent, loud = learner(copies=2, **how) if "calibration" not in how else learner(**how), None
    loud = learner(copies=2, **how) if "calibration" not in how else learner(**how)
    for made, answer in ((silent, lambda points: np.zeros(points.shape)), (loud, say)):
        for t in range(60):
            decision = made.choose()
            made.observe(decision, Hostile(answer) if t % 3 == 0 else users()[t])
    np.testing.assert_array_equal(silent._vertices, loud._vertices)


def test_an_objective_cannot_change_what_it_is_asked_about_or_answer_twice() -> None:
    made = learner()
    decision = made.choose()

    def meddling(points: Floats) -> Floats:
        points += 1.0
        made.observe(decision, users()[0])  # from within
        return np.ones(points.shape)

    probes = made._probes.copy()
    made.observe(decision, Hostile(meddling))
    np.testing.assert_array_equal(made._probes, probes)
    alone = learner()
    alone.observe(alone.choose(), users()[0])
    assert made.snapshot() == alone.snapshot()


def test_points_cannot_be_changed_by_whoever_gets_them() -> None:
    with pytest.raises(ValueError, match="read-only"):
        learner().choose().point[0] = 1.0


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_other_peoples_decisions_are_refused(how: dict[str, Any]) -> None:
    made = learner(**how)
    for user in users(30):
        made.observe(made.choose(), user)
    decision = made.choose()
    before = made.snapshot()
    with pytest.raises(InvalidInput, match="never chosen"):
        made.observe(PointDecision(99, decision.point), users()[0])
    with pytest.raises(InvalidInput, match="another point"):
        made.observe(PointDecision(decision.round, decision.point + 0.1), users()[0])
    with pytest.raises(WrongFeedback, match="gradients"):
        made.observe(decision, 0.5)  # type: ignore[arg-type]
    assert made.snapshot() == before


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_restored_learner_goes_on_in_the_same_way(how: dict[str, Any]) -> None:
    made, other = learner(**how), learner(**how)
    made.replay(users()[:33])
    decision = made.choose()
    made.observe(decision, users()[33])
    saved = made.snapshot()
    other.restore(saved)
    assert other.snapshot() == saved
    np.testing.assert_array_equal(other._point, made._point)
    other.observe(decision, users(seed=4)[0])  # answered already
    assert other.snapshot() == saved
    if not how:  # without noise all of it follows from what was saved
        np.testing.assert_array_equal(other.replay(users()[34:]), made.replay(users()[34:]))


def test_snapshots_of_others_and_damaged_ones_are_refused() -> None:
    made = learner()
    for bad in (
        b"",
        b"abc",
        learner(n=4).snapshot(),
        learner(rounds=61).snapshot(),
        learner(copies=2).snapshot(),
    ):
        with pytest.raises(InvalidInput):
            made.restore(bad)
    with pytest.raises(InvalidInput):
        learner(noise="gaussian", releases=7).restore(learner(noise="gamma", releases=7).snapshot())


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_with_the_same_ledger_nothing_is_drawn_again(noise: Any, tmp_path: Path) -> None:
    """A crash after the snapshot: what was published since is published again, word for word, though with fresh noise
    it would be something else."""

    def made(ledger: Ledger) -> MetaFrankWolfe:
        domain = CappedSimplex(3, 1.5)
        how: dict[str, Any] = {"gradient_bound": 1.0, "smoothness": 0.7, "epsilon": 2.0, "releases": 4}
        return MetaFrankWolfe(domain, 20, noise=noise, copies=3, ledger=ledger, rng=SystemSource(), **how)

    path = tmp_path / "people.ledger"
    budget = Budget(2.0, 1e-6) if noise == "gaussian" else Budget(2.0, 0.0, accountant="pure")
    with Ledger.open(path, budget) as ledger:
        first = made(ledger)
        first.replay(users(6))
        saved = first.snapshot()
        points = first.replay(users(20)[6:16])
    with Ledger.open(path, budget) as ledger:
        second = made(ledger)
        second.restore(saved)
        np.testing.assert_array_equal(second.replay(users(20)[6:16]), points)
        assert len(ledger.charges) == 1
        second.replay(users(4))
        assert len(ledger.drawn) == 4
    fresh = made(Ledger(budget))
    fresh.restore(saved)
    assert np.abs(fresh.replay(users(20)[6:16])[-1] - points[-1]).max() > 0


# Privacy, as stated. What is released is held against it in test_privacy.py.


def test_guarantees() -> None:
    assert math.isinf(learner().guarantee.epsilon)
    assert learner().event is None
    pure = learner(noise="gamma", epsilon=0.5)
    assert isinstance(pure.event, Laplace)
    assert (pure.guarantee.epsilon, pure.guarantee.delta) == (pure.event.epsilon, 0.0)
    assert 0.5 * (1 - 2.0**-49) < pure.guarantee.epsilon <= 0.5
    assert not pure.guarantee.exact
    assert "in real arithmetic" in str(pure.guarantee)
    gauss = learner(noise="gaussian", epsilon=0.5)
    assert gauss.guarantee.exact
    assert "real arithmetic" not in str(gauss.guarantee)
    assert 0.5 * (1 - 1e-9) <= gauss.guarantee.epsilon <= 0.5  # what was asked for, but for rounding
    assert isinstance(gauss.event, Gaussian)
    assert not gauss.guarantee.secure_rng
    domain = Box([1.0])
    assert MetaFrankWolfe(domain, 5, gradient_bound=1.0, smoothness=0.0, noise="gamma").guarantee.secure_rng


def test_a_user_of_several_rounds_costs_more_noise() -> None:
    unit = Unit(rounds=3)
    budgets = {"gamma": Budget(1.0, 0.0, unit, "pure"), "gaussian": Budget(1.0, 1e-6, unit)}
    for noise, budget in budgets.items():
        how: dict[str, Any] = {"noise": noise, "copies": 2, "releases": 7}
        alone, three = learner(**how), learner(ledger=Ledger(budget), **how)
        assert three.plan.noise / alone.plan.noise == pytest.approx(3.0, rel=1e-6)
        assert three.guarantee.epsilon <= 1.0
        assert "3 rounds" in three.guarantee.neighbours


def test_the_ledger_is_charged_at_once_and_refuses() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    learner(noise="gaussian", epsilon=0.9, ledger=ledger)
    with pytest.raises(OverBudget):
        learner(noise="gaussian", epsilon=0.9, ledger=ledger, name="again")
    assert len(ledger.charges) == 1


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"noise": "laplace"}, "noise must be one of"),
        ({"calibration": "best"}, "calibration"),
        ({"calibration": "paper"}, "as printed"),
        ({"noise": "gamma", "calibration": "paper", "copies": 3}, "as printed"),
        ({"releases": 3}, "Without noise"),
        ({"noise": "gaussian", "releases": 60}, "releases must be"),
        ({"noise": "gaussian", "copies": 0}, "copies"),
        ({"noise": "gaussian", "delta": 0.0}, "delta"),
        ({"noise": "gaussian", "epsilon": -1.0}, "epsilon"),
        ({"rounds": 1}, "at least 2"),
        ({"copies": -1}, "copies"),
    ],
)
def test_the_door(how: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        learner(**how)


def test_the_door_of_public_spec() -> None:
    with pytest.raises(InvalidInput, match="Domain"):
        MetaFrankWolfe([1.0], 5, gradient_bound=1.0, smoothness=0.0)  # type: ignore[arg-type]
    for steep in (0.0, np.nan, 1e-101, 1e101):
        with pytest.raises(InvalidInput, match="gradient_bound"):
            MetaFrankWolfe(Box([1.0]), 5, gradient_bound=steep, smoothness=0.0)
    with pytest.raises(InvalidInput, match="smoothness"):
        MetaFrankWolfe(Box([1.0]), 5, gradient_bound=1.0, smoothness=np.inf)


def test_nothing_users_said_is_printed() -> None:
    for how in KINDS:
        made = learner(**how)
        made.replay(users())
        assert repr(made._sums) == f"<{type(made._sums).__name__}>"
        assert "noise" in repr(made) or "not private" in repr(made)


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


def against(point: Floats) -> Quadratic:
    """Whoever comes wants what is played less of."""
    return linear([1.0, 0.0] if point[0] <= point[1] else [0.0, 1.0])


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
        private, calm = learner(noise=noise, epsilon=epsilon, releases=59, **how), learner(**how)
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
    made = learner(rounds=1000, noise="gamma", calibration="paper", epsilon=0.5)
    assert made.parameters == {
        "copies": 1,  # 1000^(1/4) / log^1.25 1000 = .503
        "releases": 999,
        "leader": "pftal",
        "H": pytest.approx(math.sqrt(3 * math.log(1000) ** 2.5 / (0.5 * 1000))),
    }
    assert made.claim is not None
    assert (made.claim.epsilon, made.claim.delta) == (0.5, 0.0)
    assert made.claim.regret > 0
    assert learner(noise="gaussian").claim is None


def test_the_planned_noise_is_the_noise() -> None:
    made = learner(rounds=200, noise="gaussian", epsilon=1.0)
    deviation = last_deviation(made._sums)
    assert made.plan.noise == pytest.approx(math.sqrt(3) * deviation, rel=1e-9)


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_the_plan_is_the_best_of_its_kind(noise: Any) -> None:
    """No other number of copies and releases among those tried has a smaller bound."""
    best = learner(rounds=500, noise=noise, epsilon=3.0)
    for copies in {1, max(1, best.plan.copies - 1), 2 * best.plan.copies}:
        assert copies in frank_wolfe_plan._grid(frank_wolfe_plan.MOST_COPIES)
        for releases in {7, best.plan.releases, 499}:
            other = learner(rounds=500, noise=noise, epsilon=3.0, copies=copies, releases=releases)
            assert best.bound() <= other.bound()
    assert best.bound() < learner(rounds=500, noise=noise, epsilon=3.0, copies=1, releases=7).bound()


def test_it_is_not_copied_and_threads_take_turns() -> None:
    made = learner(noise="gaussian")
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput, match="not copied"):
            copied(made)
    seen: list[int] = []

    def work() -> None:
        with contextlib.suppress(InvalidInput):
            while True:
                seen.append(made.choose().round)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(made.spec.rounds))
