"""What one user can change in everything that is published, by brute force over hostile answers.

Two runs with the same randomness differ in one user. All others are linear, so their gradients do not depend on points,
and whatever differs in what was published, noise being the same, is that user's shift. The shifts of all releases
together are the cost, and must be what was charged: never more, and for the worst pair nearly all of it.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from diminuendo.continuous import BoostedAscent, CappedSimplex, MetaFrankWolfe
from diminuendo.continuous.frank_wolfe_plan import GRADIENT_TICKS, FrankWolfePlan, Spec, gamma_noise
from diminuendo.continuous.gradient_sums import GammaSums, clipped
from diminuendo.privacy import Budget, Ledger
from diminuendo.privacy.events import ContinuousGaussian, Gaussian, Laplace
from diminuendo.randomness import SecretRandomness, SeededSource
from diminuendo.sums import equal
from diminuendo.types import Floats
from tests.continuous.players import Says, linear
from tests.kit.statistics import ALPHA

N, COPIES, ROUNDS, RELEASES, SLOPE = 4, 4, 32, 15, 0.7
ZCDP, PURE = Budget(1.0, 1e-6), Budget(1.0, 0.0, accountant="pure")
WAYS: dict[str, tuple[type[Any], str, Budget]] = {
    "boosted, zcdp": (BoostedAscent, "gaussian", ZCDP),
    "boosted, rounded": (BoostedAscent, "gaussian", Budget(1.0, 1e-6, accountant="continuous-gaussian")),
    "boosted, pure": (BoostedAscent, "laplace", PURE),
    "copies, zcdp": (MetaFrankWolfe, "gaussian", ZCDP),
    "copies, pure": (MetaFrankWolfe, "gamma", PURE),
}


def hostile(copies: int) -> list[Says]:
    rng, shape = np.random.default_rng(0), (copies, N)
    said: list[Floats] = [np.full(shape, number) for number in (0.0, 1e300, np.inf, np.nan, -1.0)]
    for entry in np.eye(N) > 0:
        said.append(np.tile(9.0 * entry, (copies, 1)))  # everything on one entry, too long
        said.append(np.where(entry, SLOPE, np.nan) * np.ones(shape))
    for big, small in ((SLOPE, np.nan), (1e6, 0.0), (np.inf, -np.inf)):
        said += [np.where(np.arange(N) % 2 == half, big, small) * np.ones(shape) for half in (0, 1)]
    one_copy = np.zeros(shape)
    one_copy[0] = 1e6
    said += [one_copy, rng.exponential(1.0, shape), rng.exponential(0.1, shape), rng.normal(0, 9, shape)]
    fixed = [Says(lambda points, rows=rows: rows) for rows in said]  # type: ignore[misc]
    return [*fixed, Says(lambda points: 5 * points), Says(lambda points: None)]


def published(how: str, who: Says | None, at: int) -> tuple[Any, list[Any]]:
    """Everything that was kept as released, in order."""
    kind, noise, budget = WAYS[how]
    ledger, ordinary = Ledger(budget), linear([0.2, 0.3, 0.1, 0.2])
    more: dict[str, Any] = {"smoothness": 0.5, "copies": COPIES} if kind is MetaFrankWolfe else {}
    more |= {"gradient_bound": SLOPE, "noise": noise, "releases": RELEASES}
    made = kind(CappedSimplex(N, 1.0), ROUNDS, ledger=ledger, rng=SeededSource(3), **more)
    for t in range(ROUNDS):
        decision = made.choose()
        answer = who if t == at else ordinary
        if answer is not None:
            made.observe(decision, answer)
    kept = [ledger._kept.once(drawn.name, lambda: np.zeros(0, dtype=np.int64)) for drawn in ledger.drawn]
    assert len(kept) == RELEASES
    return made, kept


def costs(how: str, at: int) -> tuple[float, float]:
    """The largest cost of a pair of hostile users, and what was charged for."""
    kind, noise, _ = WAYS[how]
    runs = [published(how, who, at) for who in (None, *hostile(COPIES if kind is MetaFrankWolfe else 1))]
    sums, worst, moved = runs[0][0]._sums, 0.0, set[int]()
    for (_, one), (_, other) in itertools.combinations(runs, 2):
        if noise == "gamma":
            apart = [a.view(np.float64)[0] - b.view(np.float64)[0] for a, b in zip(one, other, strict=True)]
            cost = sum(float(np.linalg.norm(rows, axis=1).sum()) for rows in apart) / sums._tree.scale
        else:
            apart = [(a - b).astype(float) for a, b in zip(one, other, strict=True)]
            power, scale = (1, sums._sum.scale) if noise == "laplace" else (2, 2 * sums._sum.scale**2)
            cost = sum(float((np.abs(rows) ** power).sum()) for rows in apart) / scale
        worst = max(worst, cost)
        moved |= {release for release, rows in enumerate(apart) if rows.any()}
    if kind is BoostedAscent:
        assert moved <= {at // 2}, "in the release of the user's own batch, and in no other"
    event = runs[0][0].event
    if isinstance(event, ContinuousGaussian):
        return worst, event.mu**2 / 2
    assert isinstance(event, (Gaussian, Laplace))
    return worst, event.rho if isinstance(event, Gaussian) else event.epsilon


@pytest.mark.parametrize("how", WAYS)
def test_nobody_can_change_more_than_is_paid_for(how: str) -> None:
    first, charged = costs(how, at=0)
    # Noise is paid for one tick more than the 2^16 of a gradient (2^17 of four), and entries are cut to whole ticks:
    # at most another sqrt(2) ticks of the length, where two entries share it. Squares lose twice as much.
    lost = 2 * (1 + math.sqrt(2)) / GRADIENT_TICKS if how.startswith("boosted") else 2.0**-16
    assert charged * (1 - lost) <= first <= charged * (1 + 1e-9)
    for at in (5, ROUNDS - 4):
        later, same = costs(how, at=at)
        assert later <= same * (1 + 1e-9)
        assert same == charged
        if how.startswith("boosted"):
            assert later == pytest.approx(first)
    assert costs(how, at=ROUNDS - 1)[0] == 0.0, "nothing is released after the last batch"


def test_padding_has_nothing_to_do_with_users() -> None:
    """Noise that is added to give every release the same law is the same whatever users say."""
    _, one = published("copies, pure", hostile(COPIES)[5], 0)
    _, other = published("copies, pure", hostile(COPIES)[7], 0)
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
