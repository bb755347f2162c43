"""Leaders on noisy sums: the two ways to write PFTAL, and both bounds against many runs at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from diminuendo.errors import InvalidInput
from diminuendo.experts import noisy_leader
from diminuendo.types import Floats
from tests.kit.statistics import ALPHA

N, ROUNDS = 4, 300
TOP = np.full(N, 0.5)
RADIUS, SPREAD, LONGEST = 1.0, 0.5, 1.0


def clip(points: Floats) -> Floats:
    return np.clip(points, 0.0, TOP)


def test_pftal_is_the_leader_with_distances_to_earlier_points() -> None:
    """w = argmin <v, w> + (H/2) sum |w - w_s|^2, v the noisy sum of the gradients -g + H w: the literature's form,
    minimised by a solver, step by step."""
    rng, h = np.random.default_rng(0), 0.8
    gains, noise = rng.random((12, N)), rng.normal(0, 2, (12, N))
    played = [np.zeros(N)]
    for t in range(12):
        v = (h * np.array(played) - gains[: t + 1]).sum(axis=0) - noise[t]

        def loss(w: Floats, v: Floats = v) -> float:
            return float(v @ w + h / 2 * ((w - np.array(played)) ** 2).sum())

        theirs = optimize.minimize(loss, TOP / 2, bounds=[(0.0, float(top)) for top in TOP], tol=1e-14).x
        sums = gains[: t + 1].sum(axis=0) + noise[t]
        ours = noisy_leader.pftal_points(clip, sums[None, :], h, t + 1)[0]
        # The solver stops when the loss, of curvature H t, changes by 1e-14 or so: within sqrt(2e-14 / H) of its place.
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
        played.append(ours)


def rewards(kind: str) -> Floats:
    """(ROUNDS, N) vectors of length at most 1, not negative."""
    rng = np.random.default_rng(5)
    if kind == "steady":
        return np.full((ROUNDS, N), 1 / math.sqrt(N))
    if kind == "sparse":
        return np.asarray(np.eye(N)[rng.integers(0, N, ROUNDS)])
    return np.asarray(np.where(np.arange(ROUNDS)[:, None] < ROUNDS // 2, np.eye(N)[0], np.eye(N)[1]))


def regrets(gains: Floats, points: Floats) -> Floats:
    """For each run: (runs, ROUNDS, N) points."""
    best = float(gains.sum(axis=0) @ np.where(gains.sum(axis=0) > 0, TOP, 0.0))
    return np.asarray(best - np.einsum("tn,rtn->r", gains, points))


def gamma_noise(runs: int, nodes: int, scale: float, seed: int = 1) -> Floats:
    """Per run and round, independent draws of a sum of `nodes` Gamma-norm vectors."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(runs, ROUNDS, nodes, N))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray((direction * rng.gamma(N, scale, (runs, ROUNDS, nodes, 1))).sum(axis=2))


def play(kind: str, leader: str, parameter: float, noise: Floats) -> Floats:
    gains = rewards(kind)
    sums = np.cumsum(gains, axis=0)[None] + noise
    factor: Any = parameter if leader == "ftrl" else 1 / (parameter * np.arange(1, ROUNDS + 1)[None, :, None])
    points = np.zeros(sums.shape)
    centre = TOP / 2 if leader == "ftrl" else np.zeros(N)
    points[:] = centre
    points[:, 1:] = clip(centre + factor * sums)[:, :-1]
    return regrets(gains, points)


def upper_mean(values: Floats) -> float:
    """The mean is below this, at the one false-alarm rate."""
    return float(values.mean() + stats.norm.isf(ALPHA) * values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("kind", ["steady", "sparse", "two halves"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 300.0])
def test_regret_stays_within_the_bounds(kind: str, scale: float) -> None:
    noise = gamma_noise(150, 3, scale) if scale else np.zeros((2, ROUNDS, N))
    length = noisy_leader.gamma_length(N, 3, scale)
    assert np.linalg.norm(noise, axis=2).mean() <= length
    eta = noisy_leader.best_rate(SPREAD, LONGEST, [1] * ROUNDS)
    ours = noisy_leader.ftrl_bound(SPREAD, LONGEST, [1] * ROUNDS, eta, length)
    assert upper_mean(play(kind, "ftrl", eta, noise)) <= ours
    for h in (noisy_leader.best_curvature(RADIUS, LONGEST, ROUNDS, length), 0.01, 1.0):
        bound = noisy_leader.pftal_bound(RADIUS, LONGEST, ROUNDS, h, length)
        assert upper_mean(play(kind, "pftal", h, noise)) <= bound


def test_the_noise_term_is_needed() -> None:
    """The same runs against the bound without its noise term: refused."""
    eta = noisy_leader.best_rate(SPREAD, LONGEST, [1] * ROUNDS)
    result = play("steady", "ftrl", eta, gamma_noise(50, 3, 300.0))
    assert -upper_mean(-result) > noisy_leader.ftrl_bound(SPREAD, LONGEST, [1] * ROUNDS, eta)
    h = noisy_leader.best_curvature(RADIUS, LONGEST, ROUNDS)
    result = play("steady", "pftal", h, gamma_noise(50, 3, 300.0))
    assert -upper_mean(-result) > noisy_leader.pftal_bound(RADIUS, LONGEST, ROUNDS, h)


def test_parameters_minimise_their_bounds() -> None:
    for noise in (0.0, 5.0):
        h = noisy_leader.best_curvature(2.0, 0.5, 100, noise)
        eta = noisy_leader.best_rate(2.0, 0.5, [4] * 25, noise)
        for factor in (0.9, 1.1):
            assert noisy_leader.pftal_bound(2.0, 0.5, 100, h, noise) < noisy_leader.pftal_bound(
                2.0, 0.5, 100, factor * h, noise
            )
            assert noisy_leader.ftrl_bound(2.0, 0.5, [4] * 25, eta, 0.0, noise) < noisy_leader.ftrl_bound(
                2.0, 0.5, [4] * 25, factor * eta, 0.0, noise
            )
    assert noisy_leader.ftrl_bound(
        2.0, 0.5, [1] * 100, noisy_leader.best_rate(2.0, 0.5, [1] * 100)
    ) == pytest.approx(2.0 * 0.5 * 10)
    assert noisy_leader.ftrl_bound(
        2.0, 0.5, [4] * 25, noisy_leader.best_rate(2.0, 0.5, [4] * 25)
    ) == pytest.approx(2.0 * 0.5 * 100 / 5)


def test_the_papers_curvature() -> None:
    assert noisy_leader.paper_curvature(10, 1000, 0.5) == pytest.approx(
        math.sqrt(10 * math.log(1000) ** 2.5 / (0.5 * 1000)), rel=1e-14
    )


def test_gamma_length_is_the_root_of_the_mean_square() -> None:
    """So it bounds the mean; n^2 in place of n (n + 1) would be noticed."""
    for n, nodes in ((1, 1), (4, 1), (4, 6), (30, 3)):
        rng = np.random.default_rng(2)
        direction = rng.normal(size=(20_000, nodes, n))
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        lengths = np.linalg.norm((direction * rng.gamma(n, 2.0, (20_000, nodes, 1))).sum(axis=1), axis=1)
        bound = noisy_leader.gamma_length(n, nodes, 2.0)
        assert upper_mean(lengths) <= bound
        assert -upper_mean(-(lengths**2)) <= bound**2 <= upper_mean(lengths**2)
        assert nodes * n**2 * 2.0**2 < -upper_mean(-(lengths**2))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: noisy_leader.pftal_points(clip, np.zeros((1, N)), 0.0, 1), "curvature"),
        (lambda: noisy_leader.pftal_points(clip, np.zeros((1, N)), 1.0, 0), "rounds"),
        (lambda: noisy_leader.ftrl_points(clip, np.zeros((1, N)), -1.0, TOP / 2), "rate"),
        (lambda: noisy_leader.paper_curvature(3, 1, 1.0), "at least 2 rounds"),
        (lambda: noisy_leader.pftal_bound(1.0, 0.0, 10, 1.0), "longest"),
        (lambda: noisy_leader.ftrl_bound(1.0, 1.0, [], 1.0), "rounds"),
        (lambda: noisy_leader.ftrl_bound(1.0, 1.0, [1], 1.0, -1.0), "noise"),
    ],
)
def test_the_door(make: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        make()
