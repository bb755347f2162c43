"""Objectives: closed forms against sums over all subsets and finite differences; planted violations are noticed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.continuous import (
    Box,
    BudgetAllocation,
    CappedSimplex,
    ConcaveOfLinear,
    DRObjective,
    MultilinearCoverage,
    MultilinearNoisyOr,
    Quadratic,
    check,
    frank_wolfe_offline,
    multilinear,
    total_value,
)
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats
from tests.continuous.hindsight import best_concave, best_on_a_grid

RNG = np.random.default_rng(0)
INCIDENCE = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 0, 1, 1, 0]])


def non_concave() -> Quadratic:
    return Quadratic([0.6, 0.6], [[0.0, -0.4], [-0.4, 0.0]])


OBJECTIVES: list[tuple[DRObjective, Box]] = [
    (MultilinearNoisyOr([0.5, 0.0, 1.0, 0.25]), Box(np.ones(4))),
    (MultilinearNoisyOr([1.0, 1.0, 0.7]), Box(np.ones(3))),
    (MultilinearNoisyOr(np.zeros(3)), Box(np.ones(3))),
    (MultilinearCoverage([0.5, 0.0, 0.25, 0.1, 0.15], INCIDENCE), Box(np.ones(4))),
    (non_concave(), Box(np.ones(2))),
    (Quadratic([0.3, 0.1], [[-0.1, -0.05], [-0.05, 0.0]], [2.0, 1.5]), Box([2.0, 1.5])),
    (ConcaveOfLinear([0.5, 2.0, 0.0]), Box([1.0, 3.0, 1.0])),
    (ConcaveOfLinear([0.5, 2.0, 0.3], "rational"), Box([1.0, 3.0, 1.0])),
    (BudgetAllocation(RNG.random((4, 6)) * 0.9), Box([2.0, 1.0, 3.0, 1.0])),
    (BudgetAllocation(RNG.random((3, 2)) * 0.9, [0.6, 0.0]), Box(np.ones(3))),
]


@pytest.mark.parametrize(("objective", "box"), OBJECTIVES, ids=lambda part: repr(part))
def test_promises_are_kept(objective: DRObjective, box: Box) -> None:
    assert isinstance(objective, DRObjective)
    assert check(objective, box) is None


@pytest.mark.parametrize(("objective", "box"), OBJECTIVES, ids=lambda part: repr(part))
def test_the_longest_gradient_is_the_one_at_zero(objective: DRObjective, box: Box) -> None:
    steepest = float(np.linalg.norm(objective.gradients(np.zeros((1, box.n)))))
    assert steepest == pytest.approx(objective.gradient_bound, rel=1e-12)


def expectation(value: Callable[[tuple[int, ...]], float], x: Floats) -> float:
    """E f(S), every item in S by itself with probability x, by adding up all subsets."""
    total = 0.0
    for chosen in itertools.product((0, 1), repeat=len(x)):
        odds = float(np.prod(np.where(chosen, x, 1 - x)))
        total += odds * value(tuple(int(a) for a in np.flatnonzero(chosen)))
    return total


@pytest.mark.parametrize("family", [dim.NoisyOr, dim.Coverage])
def test_multilinear_forms_are_expectations_over_sets(family: Any) -> None:
    rng = np.random.default_rng(1)
    for specimen, n_items, matrices in family.specimens():
        users = dim.Users(specimen, matrices, n_items)
        extended = [multilinear(user) for user in users]
        assert len(extended) == len(users)
        for user, objective in zip(users, extended, strict=True):
            assert check(objective) is None
            for x in (*rng.random((4, n_items)), np.eye(n_items)[0], np.ones(n_items)):
                truth = expectation(user.value, x)
                assert objective.value(x) == pytest.approx(truth, abs=1e-14)
                # The derivative in entry a is E f(S + a) - E f(S - a): exact, since F is linear in it.
                for a in range(n_items):
                    up, down = x.copy(), x.copy()
                    up[a], down[a] = 1.0, 0.0
                    slope = expectation(user.value, up) - expectation(user.value, down)
                    assert objective.gradients(x[None, :])[0, a] == pytest.approx(slope, abs=1e-14)


def test_rows_and_arrays_give_the_same_objective() -> None:
    p, w = [0.5, 0.0, 1.0, 0.25], [0.5, 0.0, 0.25, 0.0, 0.25]
    x = np.array([[0.2, 0.9, 0.4, 0.6]])
    clicks = dim.Users(dim.NoisyOr(), [p])[0]
    cares = dim.Users(dim.Coverage(INCIDENCE), [w])[0]
    for user, same in ((clicks, MultilinearNoisyOr(p)), (cares, MultilinearCoverage(w, INCIDENCE))):
        ours = multilinear(user)
        np.testing.assert_array_equal(ours.gradients(x), same.gradients(x))
        assert (ours.gradient_bound, ours.smoothness) == (same.gradient_bound, same.smoothness)


def test_a_budget_that_is_whole_buys_independent_attempts() -> None:
    p = np.array([[0.3, 0.5], [0.2, 0.0]])
    assert BudgetAllocation(p).value([2.0, 1.0]) == pytest.approx(
        0.5 * (1 - 0.7**2 * 0.8) + 0.5 * (1 - 0.5**2), abs=1e-15
    )


class Bent:
    """An objective with one promise broken."""

    n, gradient_bound, smoothness = 2, 3.0, 3.0

    def __init__(
        self, value: Callable[[Floats], float], gradient: Callable[[Floats], Any], **other: Any
    ) -> None:
        self._value, self._gradient = value, gradient
        for name, number in other.items():
            setattr(self, name, number)

    def value(self, point: Any) -> float:
        return self._value(np.asarray(point))

    def gradients(self, points: Floats) -> Floats:
        return np.array([self._gradient(x) for x in points])


GOOD = ConcaveOfLinear([0.4, 0.3])


@pytest.mark.parametrize(
    ("rule", "objective"),
    [
        ("empty", Bent(lambda x: 0.1 + 0.1 * x[0], lambda x: [0.1, 0.0])),
        ("range", Bent(lambda x: 1.2 * x[0], lambda x: [1.2, 0.0])),
        ("range", Bent(lambda x: np.nan if x.any() else 0.0, lambda x: [0.0, 0.0])),
        (
            "monotone",
            Bent(lambda x: 0.5 * x[0] - 0.1 * x[1] * x[0], lambda x: [0.5 - 0.1 * x[1], -0.1 * x[0]]),
        ),
        ("monotone", Bent(GOOD.value, lambda x: [0.4 * np.exp(-x @ [0.4, 0.3]), -1e-3])),
        ("submodular", Bent(lambda x: 0.5 * x[0] * x[1], lambda x: [0.5 * x[1], 0.5 * x[0]])),
        ("submodular", Bent(lambda x: 0.5 * x[0] ** 2, lambda x: [x[0], 0.0])),
        ("gradients", Bent(GOOD.value, lambda x: 1.001 * GOOD.gradients(x[None])[0])),
        ("shape", Bent(GOOD.value, lambda x: [0.1])),
        ("shape", Bent(GOOD.value, lambda x: [0.1, np.inf])),
        ("gradient_bound", Bent(GOOD.value, lambda x: GOOD.gradients(x[None])[0], gradient_bound=0.499)),
        ("smoothness", Bent(GOOD.value, lambda x: GOOD.gradients(x[None])[0], smoothness=0.2)),
    ],
)
def test_broken_promises_are_noticed(rule: str, objective: Bent) -> None:
    result = check(objective)
    assert result is not None
    assert result.rule == rule, result.words


def test_the_good_one_is_good() -> None:
    assert check(Bent(GOOD.value, lambda x: GOOD.gradients(x[None])[0])) is None


@pytest.mark.parametrize("domain", [Box([1.0, 1.0]), CappedSimplex(2, 1.2)], ids=repr)
def test_greedy_in_hindsight_reaches_its_share(domain: Any) -> None:
    """Theorem C3 with regret 0, also where the sum is not concave."""
    rng = np.random.default_rng(3)
    users = [MultilinearNoisyOr(rng.random(2)) for _ in range(5)] + [non_concave()] * 3
    best, steps = best_on_a_grid(users, domain), 25
    ours = total_value(users, frank_wolfe_offline(users, domain, steps))
    lost = sum(user.smoothness for user in users) * domain.radius**2 / (2 * steps)
    assert ours >= (1 - (1 - 1 / steps) ** steps) * (best - lost)


def test_greedy_in_hindsight_is_nearly_best_for_concave_users() -> None:
    rng = np.random.default_rng(4)
    users: list[DRObjective] = [BudgetAllocation(rng.random((4, 3)) * 0.9) for _ in range(6)]
    domain = CappedSimplex(4, 1.5)
    best, ours = (
        best_concave(users, domain),
        total_value(users, frank_wolfe_offline(users, domain, 400)),
    )
    assert (1 - 1 / np.e) * best <= ours <= best * (1 + 1e-6)  # SLSQP stops short of the best, by far less


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MultilinearNoisyOr([0.5, 1.2]), r"\[0, 1\]"),
        (lambda: MultilinearNoisyOr([]), "at least one"),
        (lambda: MultilinearNoisyOr([0.5]).value([0.5, 0.5]), "1 numbers"),
        (lambda: MultilinearNoisyOr([0.5]).gradients(np.ones(1)), "rows of 1"),
        (lambda: MultilinearCoverage([0.7, 0.7], np.ones((3, 2))), "at most 1"),
        (lambda: MultilinearCoverage([0.7], np.ones((3, 2))), "one column per topic"),
        (lambda: Quadratic([0.1, 0.1], [[0.0, -1.0], [-1.0, 0.0]]), "would hurt"),
        (lambda: Quadratic([0.1, 0.1], [[0.0, 0.1], [0.1, 0.0]]), "no entry above 0"),
        (lambda: Quadratic([0.9, 0.9], np.zeros((2, 2))), "at most 1"),
        (lambda: Quadratic([0.1], np.zeros((2, 2))), "1 x 1"),
        (lambda: ConcaveOfLinear([-1.0]), "from 0 on"),
        (lambda: BudgetAllocation([[1.0]]), "below 1"),
        (lambda: BudgetAllocation([[0.5, 0.5]], [1.0]), "one per target"),
        (lambda: multilinear(dim.user(dim.BestMatch(), {0: 0.5}, n_items=2)), "noisy-or and coverage"),
        (lambda: check(GOOD, Box([1.0])), "Box of 2"),
        (lambda: frank_wolfe_offline([GOOD], Box([1.0])), "about 2 entries"),
    ],
)
def test_the_door(make: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()


def test_nothing_of_a_user_is_printed() -> None:
    for objective, _ in OBJECTIVES:
        assert "." not in repr(objective)
