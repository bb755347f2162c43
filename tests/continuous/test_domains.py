"""Domains: projections against an independent solver, and by what characterises them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from diminuendo.continuous import Box, CappedSimplex, Domain
from diminuendo.continuous.domains import FARTHEST_POINT
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats
from tests.continuous.hindsight import constraints


def some_domains(count: int, seed: int) -> list[Domain]:
    rng = np.random.default_rng(seed)
    result: list[Domain] = []
    for _ in range(count):
        n = int(rng.integers(1, 7))
        result.append(Box(rng.uniform(0.1, 1.5, n)))
        result.append(CappedSimplex(n, rng.uniform(0.2, n + 1), rng.uniform(0.3, 1.5)))
    return result


def solved(domain: Domain, point: Floats) -> Floats:
    """The nearest point, by scipy's sequential quadratic programming."""

    def distance(x: Floats) -> float:
        return float(((x - point) ** 2).sum())

    def slope(x: Floats) -> Floats:
        return np.asarray(2 * (x - point))

    result = optimize.minimize(
        distance,
        np.zeros(domain.n),
        jac=slope,
        bounds=optimize.Bounds(np.zeros(domain.n), domain.upper),
        constraints=constraints(domain),
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    return np.asarray(result.x)


def test_projections_agree_with_a_solver() -> None:
    rng = np.random.default_rng(5)
    for domain in some_domains(25, seed=1):
        points = rng.normal(0.3, 1.0, (4, domain.n))
        for point, ours in zip(points, domain.project(points), strict=True):
            assert domain.contains(ours), (domain, point)
            theirs = np.clip(solved(domain, point), 0, domain.upper)
            # SLSQP stops at 1e-7 or so; and it must not have found anything nearer.
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
            assert ((ours - point) ** 2).sum() <= ((theirs - point) ** 2).sum() + 1e-6


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
def test_no_point_of_the_domain_lies_behind_the_projection(size: float) -> None:
    """p is the projection of z if and only if (z - p).(u - p) <= 0 for every u of the domain."""
    rng = np.random.default_rng(6)
    for domain in some_domains(25, seed=2):
        points = size * rng.normal(size=(3, domain.n))
        for point, p in zip(points, domain.project(points), strict=True):
            away = point - p
            behind = away @ domain.maximise(away) - away @ p
            # 1e-7 is the tolerance of the linear program; floats err by 2^-52 of the size of the point.
            assert behind <= 1e-7 * np.linalg.norm(away) + 2.0**-45 * size**2, (domain, point)


def test_points_inside_stay_where_they_are() -> None:
    for domain in some_domains(10, seed=3):
        inside = domain.maximise(np.ones(domain.n))[None, :] * np.array([[0.0], [0.3], [0.9]])
        np.testing.assert_allclose(domain.project(inside), inside, atol=1e-12)


def test_ties_share_alike() -> None:
    np.testing.assert_allclose(CappedSimplex(4, 1.0).project([[7.0] * 4, [0.5] * 4]), np.full((2, 4), 0.25))
    np.testing.assert_allclose(
        CappedSimplex(3, 2.0).project([[9.0, 9.0, 9.0], [9.0, 0.5, 0.5]]),
        [[2 / 3] * 3, [1.0, 0.5, 0.5]],
    )


def test_the_radius_is_reached_or_a_bound() -> None:
    rng = np.random.default_rng(7)
    for domain in some_domains(8, seed=4):
        longest = 0.0
        for direction in rng.normal(size=(60, domain.n)):  # vertices, found by linear programs
            longest = max(longest, float(np.linalg.norm(domain.maximise(np.abs(direction) ** 3))))
        assert longest <= domain.radius * (1 + 1e-9)
        assert longest == pytest.approx(domain.radius, rel=1e-9), domain


def test_nothing_is_further_from_the_centre_than_the_spread() -> None:
    rng = np.random.default_rng(9)
    for domain in some_domains(8, seed=6):
        corners = [domain.maximise(c) for c in (*rng.normal(size=(60, domain.n)), np.ones(domain.n))]
        furthest = max(float(np.linalg.norm(corner - domain.centre)) for corner in corners)
        assert furthest <= domain.spread * (1 + 1e-9)
        assert domain.spread <= domain.radius * (1 + 1e-9)
    whole = CappedSimplex(8, 3.0)  # three whole entries of eight: reached
    assert np.linalg.norm(whole.maximise(np.ones(8)) - whole.centre) == pytest.approx(whole.spread)
    assert Box([3.0, 4.0]).spread == 2.5


def test_linear_maximisers_beat_random_points_and_belong() -> None:
    rng = np.random.default_rng(8)
    for domain in some_domains(15, seed=5):
        for direction in rng.normal(size=(5, domain.n)):
            best = domain.maximise(direction)
            assert domain.contains(best)
            others = domain.project(rng.normal(size=(50, domain.n)))
            assert (others @ direction).max() <= direction @ best + 1e-7


def test_what_does_not_belong_is_noticed() -> None:
    simplex, box = CappedSimplex(3, 2.0), Box([1.0, 2.0])
    assert simplex.contains([1.0, 1.0, 0.0])
    assert not simplex.contains([1.0, 1.0, 1e-6])
    assert not simplex.contains([1.001, 0.0, 0.0])
    assert not box.contains([-1e-6, 0.0])
    assert not box.contains([0.0, np.nan])
    assert not box.contains([0.0])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Box([1.0, 0.0]), "above 0"),
        (lambda: Box([]), "row"),
        (lambda: CappedSimplex(0, 1.0), "n must"),
        (lambda: CappedSimplex(3, -1.0), "total"),
        (lambda: CappedSimplex(3, 1.0, np.inf), "cap"),
        (lambda: Box([1.0]).project([1.0]), "rows of 1"),
        (lambda: Box([1.0]).project([[np.nan]]), "numbers from"),
        (lambda: Box([1.0]).project([[2 * FARTHEST_POINT]]), "cut them"),
        (lambda: Box([1.0]).maximise([np.inf]), "direction"),
    ],
)
def test_the_door(make: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()
