"""Hindsight for continuous objectives: the continuous greedy algorithm on the sum of all users' objectives.

References Bian, Mirzasoleiman, Buhmann & Krause (2017), AISTATS; Calinescu, Chekuri, Pal & Vondrak (2011), SICOMP 40.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diminuendo import _validate
from diminuendo.continuous.domains import Domain
from diminuendo.continuous.objectives import DRObjective, one_point
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats


def frank_wolfe_offline(objectives: Sequence[DRObjective], domain: Domain, steps: int = 100) -> Floats:
    """Return a point worth at least (1 - 1/e) of the best fixed point for all users together. Not private.

    Parameters
    ----------
    objectives : sequence of DRObjective
        All users.
    domain : Domain
        Points that may be played.
    steps : int, default 100
        Number of Frank-Wolfe steps.

    Returns
    -------
    ndarray of float, shape (n,)
        The mean value falls short by at most smoothness * radius**2 / (2 * steps) (Theorem C3 of
        docs/maths/continuous.md with regret 0).

    Raises
    ------
    InvalidInput
        If objectives do not fit the domain.

    References
    ----------
    Bian, Mirzasoleiman, Buhmann & Krause (2017), Guaranteed non-convex optimization: submodular maximization over
    continuous domains, AISTATS.

    Examples
    --------
    >>> from diminuendo.continuous import CappedSimplex, MultilinearNoisyOr, frank_wolfe_offline
    >>> users = [MultilinearNoisyOr([1.0, 0.0, 0.5]), MultilinearNoisyOr([0.0, 1.0, 0.0])]
    >>> frank_wolfe_offline(users, CappedSimplex(3, total=2), steps=10).round(6).tolist()
    [1.0, 1.0, 0.0]
    """
    _validate.positive_int(steps, "steps")
    users = _distinct(objectives, domain.n)
    x = np.zeros(domain.n)
    for _ in range(steps):
        slope = np.zeros(domain.n)
        for objective, times in users:
            slope += times * objective.gradients(x[None, :])[0]
        x = x + domain.maximise(slope) / steps
    return x


def total_value(objectives: Sequence[DRObjective], point: Floats) -> float:
    """Return the sum of all users' values of a point.

    Parameters
    ----------
    objectives : sequence of DRObjective
        All users.
    point : array of float, shape (n,)
        A point.

    Returns
    -------
    float

    Examples
    --------
    >>> from diminuendo.continuous import ConcaveOfLinear, total_value
    >>> round(total_value([ConcaveOfLinear([1.0], curve="rational")] * 3, [1.0]), 6)
    1.5
    """
    x = one_point(point, len(np.asarray(point)))
    return float(sum(times * objective.value(x) for objective, times in _distinct(objectives, len(x))))


def _distinct(objectives: Sequence[DRObjective], n: int) -> list[tuple[DRObjective, int]]:
    """Each objective once, with how often it comes: streams often repeat a few."""
    counts: dict[int, tuple[DRObjective, int]] = {}
    for objective in objectives:
        if objective.n != n:
            raise InvalidInput(f"The objectives are about {objective.n} entries, the domain about {n}.")
        before = counts.get(id(objective), (objective, 0))
        counts[id(objective)] = objective, before[1] + 1
    return list(counts.values())
