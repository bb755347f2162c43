"""Learners of points, and users for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diminuendo.continuous import (
    BoostedAscent,
    CappedSimplex,
    MetaFrankWolfe,
    MultilinearNoisyOr,
    Quadratic,
)
from diminuendo.randomness import SeededSource
from diminuendo.types import Floats


def boosted(rounds: int = 60, n: int = 3, seed: int = 1, **how: Any) -> BoostedAscent:
    """With a bound of 1 on gradients, unless `how` says otherwise."""
    spec: dict[str, Any] = {"gradient_bound": 1.0, "rng": SeededSource(seed)}
    return BoostedAscent(CappedSimplex(n, 1.5), rounds, **(spec | how))


def frank_wolfe(rounds: int = 60, n: int = 3, seed: int = 1, **how: Any) -> MetaFrankWolfe:
    """The same for Algorithm 4."""
    spec: dict[str, Any] = {"gradient_bound": 1.0, "smoothness": 0.7, "rng": SeededSource(seed)}
    return MetaFrankWolfe(CappedSimplex(n, 1.5), rounds, **(spec | how))


def users(rounds: int = 60, n: int = 3, seed: int = 0) -> list[MultilinearNoisyOr]:
    """As many as there are rounds."""
    rng = np.random.default_rng(seed)
    return [MultilinearNoisyOr(0.57 * rng.random(n)) for _ in range(rounds)]


def linear(row: Any, upper: Any = 1.0) -> Quadratic:
    """What is wanted, times how much of it there is; at most 1 where no entry exceeds `upper`."""
    return Quadratic(np.asarray(row), np.zeros((len(row), len(row))), upper)


def against(point: Floats) -> Quadratic:
    """A user who wants what is played less of."""
    return linear([1.0, 0.0] if point[0] <= point[1] else [0.0, 1.0])


class Says:
    """A user whose gradients are whatever a function returns."""

    gradient_bound, smoothness = 1.0, 1.0

    def __init__(self, say: Callable[[Floats], Any], n: int = 3) -> None:
        self._say, self.n = say, n

    def value(self, point: Any) -> float:
        return 0.0

    def gradients(self, points: Floats) -> Any:
        return self._say(points)
