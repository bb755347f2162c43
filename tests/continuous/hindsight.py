"""The best fixed point in hindsight, by means that share nothing with the library's: a solver, or a grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from diminuendo.continuous import Box, CappedSimplex, Domain, DRObjective
from diminuendo.types import Floats


def constraints(domain: Domain) -> list[optimize.LinearConstraint]:
    """What a domain asks beyond its box, for scipy."""
    if isinstance(domain, CappedSimplex):
        return [optimize.LinearConstraint(np.ones((1, domain.n)), -np.inf, domain.total)]
    assert isinstance(domain, Box)
    return []


def best_concave(objectives: Sequence[DRObjective], domain: Domain) -> float:
    """The largest total value of concave objectives: any local maximum is one."""

    users = Counter(objectives)

    def loss(x: Floats) -> float:
        return -sum(times * objective.value(x) for objective, times in users.items())

    def slope(x: Floats) -> Floats:
        return np.asarray(-sum(times * f.gradients(x[None, :])[0] for f, times in users.items()))

    result = optimize.minimize(
        loss,
        np.full(domain.n, 0.5 * domain.upper.min() / domain.n),
        jac=slope,
        bounds=optimize.Bounds(np.zeros(domain.n), domain.upper),
        constraints=constraints(domain),
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert result.success
    return float(-result.fun)


def best_on_a_grid(objectives: Sequence[DRObjective], domain: Domain, points: int = 41) -> float:
    """The largest total value of two-dimensional objectives on a grid: never more than the best."""
    axes = [np.linspace(0, top, points) for top in domain.upper]
    grid = np.array(np.meshgrid(*axes)).reshape(2, -1).T
    users = Counter(objectives)
    inside = [x for x in grid if domain.contains(x)]
    return max(sum(times * f.value(x) for f, times in users.items()) for x in inside)
