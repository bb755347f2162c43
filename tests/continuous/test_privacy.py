"""What one user can change in everything that is published, by brute force over hostile answers.

Two runs with the same coins differ in one user. Everybody else is linear, so their gradients do not depend on points,
and whatever differs in what was published, noise being the same, is that user's shift. The shifts of all releases
together are the cost, and must be what was charged: never more, and for the worst pair nearly all of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo.continuous import CappedSimplex, MetaFrankWolfe, Quadratic
from diminuendo.continuous.frank_wolfe_plan import FrankWolfePlan, Spec, gamma_noise
from diminuendo.continuous.gradient_sums import GammaSums, clipped
from diminuendo.privacy import Budget, Ledger
from diminuendo.privacy.events import Gaussian, Laplace
from diminuendo.randomness import SecretRandomness, SeededSource
from diminuendo.sums import equal
from diminuendo.types import Floats
from tests.kit.statistics import ALPHA

N, COPIES, ROUNDS, RELEASES, SLOPE = 3, 4, 32, 15, 0.7


class Says:
    """A user whose gradients are whatever a function says."""

    n, gradient_bound, smoothness = N, 1.0, 1.0

    def __init__(self, say: Callable[[Floats], Any]) -> None:
        self._say = say

    def value(self, point: Any) -> float:
        return 0.0

    def gradients(self, points: Floats) -> Any:
        return self._say(points)


def fixed(rows: Floats) -> Says:
    return Says(lambda points: rows)


def hostile() -> list[Says]:
    rng = np.random.default_rng(0)
    shape = COPIES, N
    said = [
        np.zeros(shape),
        np.full(shape, 1e300),
        np.full(shape, np.inf),
        np.full(shape, np.nan),
        -np.ones(shape),
    ]
    for entry in range(N):
        said.append(np.tile(9 * np.eye(N)[entry], (COPIES, 1)))  # everything on one entry, too long
        said.append(np.where(np.eye(N)[entry] > 0, SLOPE, np.nan) * np.ones(shape))
    one_copy = np.zeros(shape)
    one_copy[0] = 1e6
    said += [one_copy, rng.exponential(1.0, shape), rng.exponential(0.1, shape), rng.normal(0, 9, shape)]
    return [fixed(rows) for rows in said] + [Says(lambda points: 5 * points), Says(lambda points: None)]


ORDINARY = Quadratic([0.2, 0.3, 0.1], np.zeros((N, N)))


def published(noise: Any, who: Says | None, at: int) -> tuple[MetaFrankWolfe, list[Any]]:
    """Everything that was kept as released, in order."""
    ledger = Ledger(Budget(1.0, 1e-6) if noise == "gaussian" else Budget(1.0, 0.0, accountant="pure"))
    made = MetaFrankWolfe(
        CappedSimplex(N, 1.0),
        ROUNDS,
        gradient_bound=SLOPE,
        smoothness=0.5,
        noise=noise,
        copies=COPIES,
        releases=RELEASES,
        ledger=ledger,
        rng=SeededSource(3),
    )
    for t in range(ROUNDS):
        decision = made.choose()
        if t != at:
            made.observe(decision, ORDINARY)
        elif who is not None:
            made.observe(decision, who)
    kept = [ledger._kept.once(drawn.name, lambda: np.zeros(0, dtype=np.int64)) for drawn in ledger.drawn]
    assert len(kept) == RELEASES
    return made, kept


def costs(noise: Any, at: int) -> tuple[float, float]:
    """The largest cost of a pair of hostile users, and what was charged for."""
    runs = [published(noise, who, at) for who in (None, *hostile())]
    made = runs[0][0]
    worst = 0.0
    for (_, one), (_, other) in itertools.combinations(runs, 2):
        if noise == "gaussian":
            sigma = made._sums._sum.scale  # type: ignore[attr-defined]
            shifts = [float(((a - b).astype(float) ** 2).sum()) for a, b in zip(one, other, strict=True)]
            worst = max(worst, sum(shifts) / (2 * sigma**2))
        else:
            scale = made._sums._tree.scale  # type: ignore[attr-defined]
            apart = [a.view(np.float64)[0] - b.view(np.float64)[0] for a, b in zip(one, other, strict=True)]
            worst = max(worst, sum(float(np.linalg.norm(rows, axis=1).sum()) for rows in apart) / scale)
    event = made.event
    assert isinstance(event, (Gaussian, Laplace))
    return worst, event.rho if isinstance(event, Gaussian) else event.epsilon


@pytest.mark.parametrize("noise", ["gaussian", "gamma"])
def test_nobody_can_change_more_than_is_paid_for(noise: Any) -> None:
    first, charged = costs(noise, at=0)
    # The first batch is in every level, and in every release. Of 2^17 ticks, the length of four gradients, Gaussian
    # noise is paid for one more, so that rounding cuts none: 2^-16 of a square.
    assert charged * (1 - 2.0**-16) <= first <= charged * (1 + 1e-9)
    for at in (5, ROUNDS - 4):
        later, same = costs(noise, at=at)
        assert later <= same * (1 + 1e-9)
        assert same == charged
    last, _ = costs(noise, at=ROUNDS - 1)
    assert last == 0.0  # nothing is released after the last batch


def test_padding_has_nothing_to_do_with_users() -> None:
    """Noise that is added to give every release the same law is the same whatever users say."""
    _, one = published("gamma", hostile()[5], 0)
    _, other = published("gamma", hostile()[7], 0)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.view(np.float64)[1], b.view(np.float64)[1])


def test_every_padded_release_has_noise_of_the_same_length() -> None:
    """The mean square is levels * n (n + 1) * scale^2 after 1, 2 and 3 releases, though these are 1, 1 and 2 nodes."""
    copies, size = 4000, 2
    spec = Spec(size, 4, 1.0, 1.0, 1.0, 0.0)
    plan = FrankWolfePlan(copies, equal(4, 4), "ftrl", 1.0)
    secret = SecretRandomness(SeededSource(4))
    for padded in (True, False):
        ledger = Ledger(Budget(1.0, 0.0, accountant="pure"))
        sums = GammaSums(spec, plan, 1.0, ledger, "noise", padded)
        levels, scale = gamma_noise(spec, 1.0, copies, 3)
        for nodes in (1, 1, 2):
            squares = (sums.release(secret) ** 2).sum(axis=1) / scale**2
            error = stats.norm.isf(ALPHA / 2) * squares.std(ddof=1) / math.sqrt(copies)
            expected = (levels if padded else nodes) * size * (size + 1)
            assert abs(squares.mean() - expected) <= error
            assert error < size * (size + 1) / 2  # one node more or less would be noticed


def test_the_price_of_copies() -> None:
    """Noise per entry grows with sqrt(K) where copies are released together, and with K where each pays by itself."""
    domain, how = CappedSimplex(N, 1.0), {"gradient_bound": SLOPE, "smoothness": 0.5, "releases": RELEASES}

    def noise(kind: Any, copies: int) -> float:
        return MetaFrankWolfe(domain, ROUNDS, noise=kind, copies=copies, **how).plan.noise  # type: ignore[arg-type]

    # One tick is added to 8 * 2^16 and to 2 * 2^16.
    assert noise("gaussian", 64) / noise("gaussian", 4) == pytest.approx(math.sqrt(16), rel=2.0**-17)
    assert noise("gamma", 64) / noise("gamma", 4) == pytest.approx(16)


@pytest.mark.parametrize("bound", [SLOPE, 1e-300, 1e-160, 1e160, 1e300])
def test_each_copy_by_itself_is_cut_to_the_bound(bound: float) -> None:
    """Two cut rows differ by at most sqrt(2) G, since no entry is negative; and that is reached."""
    rng = np.random.default_rng(1)
    rows = np.vstack([rng.normal(0, 10.0 ** rng.integers(-2, 7), (200, N)), 9 * np.eye(N), np.zeros((1, N))])
    edge = np.abs(rng.normal(size=(50, N)))  # too long by a little
    edge *= (1 + 10.0 ** -rng.integers(3, 12, (50, 1))) / np.linalg.norm(edge, axis=1, keepdims=True)
    rows = np.vstack([rows, edge])
    cut = clipped(rows * bound, bound) / bound
    assert (cut >= 0).all()
    assert np.linalg.norm(cut, axis=1).max() <= 1
    apart = np.linalg.norm(cut[:, None] - cut[None], axis=2).max()
    assert math.sqrt(2) * (1 - 1e-9) <= apart <= math.sqrt(2)
    honest = np.abs(rng.normal(size=(50, N)))
    honest *= bound / np.linalg.norm(honest, axis=1, keepdims=True) * rng.random((50, 1))
    np.testing.assert_array_equal(clipped(honest, bound), honest)  # what keeps to the bound is left alone
