r"""What users feel about points: monotone functions with diminishing returns in every direction (DR-submodular).

F(0) = 0, values in [0, 1], gradients that are not negative and do not rise when any entry rises. Gradients are in
closed form, many points at once. Each objective proves two numbers about itself over its box:

    gradient_bound   no gradient is longer. Gradients are longest at 0, so this is exact up to rounding
    smoothness       gradients at x and y differ by at most this times |x - y| (docs/maths/continuous.md, Lemma C0)

Here: multilinear extensions of families of objectives on sets, where entry a is the probability that item a is shown,
independently of the others. Objectives that are not about sets are in smooth.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.objectives.coverage import CoverageTable
from diminuendo.objectives.noisy_or import NoisyOrTable
from diminuendo.objectives.user import User
from diminuendo.types import Floats


@runtime_checkable
class DRObjective(Protocol):
    """Protocol of objectives on points: monotone functions with diminishing returns (DR-submodular).

    F(0) = 0, values in [0, 1], gradients that are not negative and do not rise when any entry rises. `check` looks
    for violations. Regret bounds need these properties; privacy does not.

    Attributes
    ----------
    n : int
        Number of entries of a point.
    gradient_bound : float
        No gradient is longer.
    smoothness : float
        Gradients at x and y differ by at most `smoothness` * |x - y| (Lemma C0 of docs/maths/continuous.md).
    """

    @property
    def n(self) -> int:
        """Number of entries of a point."""
        ...

    @property
    def gradient_bound(self) -> float:
        """Upper bound on the length of gradients."""
        ...

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient."""
        ...

    def value(self, point: Any) -> float:
        """Return F(point), in [0, 1]."""
        ...

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient at every row of `points`; both of shape (any, n)."""
        ...


class MultilinearNoisyOr:
    """Multilinear extension of noisy-or: F(x) = 1 - prod over a of (1 - p_a x_a).

    Parameters
    ----------
    probabilities : array of float, shape (n,)
        Click probabilities p_a in [0, 1]; x_a is the probability that item a is shown, independently of the others.

    Raises
    ------
    InvalidInput
        If probabilities are not in [0, 1].

    Examples
    --------
    >>> from diminuendo.continuous import MultilinearNoisyOr
    >>> user = MultilinearNoisyOr([0.5, 1.0])
    >>> user.value([1.0, 0.5]), user.gradients([[1.0, 0.5]]).tolist()
    (0.75, [[0.25, 0.5]])
    """

    def __init__(self, probabilities: Any) -> None:
        p = unit_numbers(probabilities, "probabilities", 1)
        self._fill(np.flatnonzero(p), p[p > 0], len(p))

    def _fill(self, items: Any, chances: Floats, n: int) -> None:
        self.n, self._items, self._chances = n, items, chances
        squares = chances**2
        self.gradient_bound = float(np.sqrt(squares.sum()))
        self.smoothness = float(squares.sum() - squares.min()) if len(squares) > 1 else 0.0

    def __repr__(self) -> str:
        return f"<MultilinearNoisyOr over {self.n} items>"

    def value(self, point: Any) -> float:
        """Return F(point)."""
        x = one_point(point, self.n)
        return float(1 - np.prod(1 - self._chances * x[self._items]))

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient at every row: p_a times the probability that nothing else is clicked."""
        x = many_points(points, self.n)
        out = np.zeros(x.shape)
        out[:, self._items] = self._chances * products_of_others(1 - self._chances * x[:, self._items])
        return out


class MultilinearCoverage:
    """Multilinear extension of coverage: F(x) = sum over topics u of w_u (1 - prod over items a with u of (1 - x_a)).

    Parameters
    ----------
    weights : array of float, shape (n_topics,)
        The user's weights on topics, in [0, 1], adding up to at most 1.
    incidence : array, shape (n, n_topics)
        Public: non-zero where the item has the topic.

    Raises
    ------
    InvalidInput
        If shapes or weights do not fit.

    Examples
    --------
    >>> from diminuendo.continuous import MultilinearCoverage
    >>> user = MultilinearCoverage([0.5, 0.5], [[1, 0], [1, 1]])
    >>> user.value([0.5, 0.5])
    0.625
    """

    def __init__(self, weights: Any, incidence: Any) -> None:
        w, marks = unit_numbers(weights, "weights", 1), np.asarray(incidence)
        if marks.ndim != 2 or marks.shape[1] != len(w):
            raise InvalidInput(
                f"incidence must have one column per topic, {len(w)}; got shape {marks.shape}."
            )
        topics = [(float(w[u]), np.flatnonzero(marks[:, u])) for u in np.flatnonzero(w)]
        self._fill(topics, marks.shape[0])

    def _fill(self, topics: Sequence[tuple[float, Any]], n: int) -> None:
        at_most_one(sum(weight for weight, _ in topics), "The weights of a user", len(topics))
        self.n, self._topics = n, [(weight, items) for weight, items in topics if len(items)]
        slope, rows = np.zeros(n), np.zeros(n)
        for weight, items in self._topics:
            slope[items] += weight
            rows[items] += weight * (len(items) - 1)
        self.gradient_bound, self.smoothness = float(np.linalg.norm(slope)), float(rows.max(initial=0.0))

    def __repr__(self) -> str:
        return f"<MultilinearCoverage over {self.n} items>"

    def value(self, point: Any) -> float:
        """Return F(point)."""
        x = one_point(point, self.n)
        return float(sum(weight * (1 - np.prod(1 - x[items])) for weight, items in self._topics))

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient at every row: weights times the probability that no other item covers the topic."""
        x = many_points(points, self.n)
        out = np.zeros(x.shape)
        for weight, items in self._topics:
            out[:, items] += weight * products_of_others(1 - x[:, items])
        return out


def multilinear(user: User) -> MultilinearNoisyOr | MultilinearCoverage:
    """Return the multilinear extension of a user's objective.

    Parameters
    ----------
    user : User
        Of noisy-or or coverage.

    Returns
    -------
    MultilinearNoisyOr or MultilinearCoverage

    Raises
    ------
    InvalidInput
        For other families, which have no closed form here.

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.continuous import multilinear
    >>> multilinear(dim.user(dim.NoisyOr(), {0: 0.5, 2: 1.0}, n_items=3)).value([1.0, 0.0, 0.5])
    0.75
    """
    table, row = (user.table, user.index) if isinstance(user, User) else (None, 0)
    if isinstance(table, NoisyOrTable):
        low, high = table.starts[row], table.starts[row + 1]
        clicks = MultilinearNoisyOr.__new__(MultilinearNoisyOr)
        known = table.values[low:high] > 0
        clicks._fill(table.columns[low:high][known], table.values[low:high][known], user.n_items)
        return clicks
    if isinstance(table, CoverageTable):
        cared = range(int(table.starts[row]), int(table.starts[row + 1]))
        topics = [
            (float(table.values[j]), table.topic_items[table.topic_starts[u] : table.topic_starts[u + 1]])
            for j in cared
            if table.values[j] > 0
            for u in (table.columns[j],)
        ]
        covers = MultilinearCoverage.__new__(MultilinearCoverage)
        covers._fill(topics, user.n_items)
        return covers
    raise InvalidInput(
        "Only users of noisy-or and coverage have a multilinear extension in closed form here."
    )


# What the objectives share.


def products_of_others(factors: Floats) -> Floats:
    """In every row, for each entry the product of the other entries; no division, so zeros are fine."""
    before, after = np.ones(factors.shape), np.ones(factors.shape)
    np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
    return before * after


def one_point(point: Any, n: int) -> Floats:
    """A point at the door."""
    x = np.asarray(point, dtype=np.float64)
    if x.shape != (n,):
        raise InvalidInput(f"A point is {n} numbers; got shape {x.shape}.")
    return x


def many_points(points: Any, n: int) -> Floats:
    """Points at the door, one per row."""
    x = np.asarray(points, dtype=np.float64)
    if x.ndim != 2 or x.shape[1] != n:
        raise InvalidInput(f"Points are rows of {n} numbers; got shape {x.shape}.")
    return x


def unit_numbers(values: Any, name: str, dimensions: int) -> Floats:
    """An array of numbers in [0, 1]."""
    array = _validate.numbers(values, name).copy()
    if array.ndim != dimensions or array.size == 0 or not ((array >= 0) & (array <= 1)).all():
        raise InvalidInput(
            f"{name} must be numbers in [0, 1], in {dimensions} dimension(s) and at least one."
        )
    return array


def at_most_one(total: float, what: str, terms: int) -> None:
    """Refuse values that could exceed 1; a sum of n numbers errs by n roundings."""
    if not total <= 1 + max(1, terms) * np.finfo(float).eps:
        raise InvalidInput(f"{what} add up to at most 1. Divide by their sum.")
