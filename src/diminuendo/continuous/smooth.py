r"""Objectives that are not about sets: quadratic, concave of a linear function, and how to spread a budget.

The same promises as in objectives.py, and the same two numbers: the longest gradient is the one at 0, and how fast
gradients change is bounded by the largest row sum, or the root of the sum of squares, of a matrix that exceeds the
second derivatives in absolute value everywhere (docs/maths/continuous.md, Lemma C0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.continuous.objectives import at_most_one, many_points, one_point, unit_numbers
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats


class Quadratic:
    """Quadratic objective on 0 <= x <= upper: F(x) = h @ x + x @ H @ x / 2, with no positive entry in H.

    Parameters
    ----------
    linear : array of float, shape (n,)
        h, not negative.
    hessian : array of float, shape (n, n)
        H, symmetric. F need not be concave.
    upper : float or array of float, default 1.0
        The box on which F is defined.

    Raises
    ------
    InvalidInput
        If F is not monotone on the box (h + H @ upper >= 0), exceeds 1 there, or shapes do not fit.

    Examples
    --------
    >>> from diminuendo.continuous import Quadratic
    >>> user = Quadratic([0.5, 0.5], [[0.0, -0.25], [-0.25, 0.0]])
    >>> user.value([1.0, 1.0]), user.gradients([[1.0, 1.0]]).tolist()
    (0.75, [[0.25, 0.25]])
    """

    def __init__(self, linear: Any, hessian: Any, upper: Any = 1.0) -> None:
        self._linear = positive_numbers(linear, "linear")
        self.n = len(self._linear)
        self._hessian = _validate.numbers(hessian, "hessian").copy()
        if self._hessian.shape != (self.n, self.n) or not np.isfinite(self._hessian).all():
            raise InvalidInput(
                f"hessian must be {self.n} x {self.n} finite numbers; got shape {self._hessian.shape}."
            )
        if (self._hessian > 0).any() or (self._hessian != self._hessian.T).any():
            raise InvalidInput("hessian must be symmetric with no entry above 0: else returns could rise.")
        top = np.broadcast_to(np.asarray(upper, dtype=np.float64), (self.n,))
        if not (np.isfinite(top).all() and (top > 0).all()):
            raise InvalidInput(f"upper must be finite numbers above 0; got {upper!r}.")
        slope = self._linear + self._hessian @ top
        if (slope < -1e-12).any():
            entry = int(np.argmin(slope))
            raise InvalidInput(
                f"More of entry {entry} would hurt at the upper end: the slope there is below 0. "
                "Take a smaller hessian or a smaller box."
            )
        at_most_one(self.value(top), "The terms at the upper end", self.n**2)
        self.gradient_bound = float(np.linalg.norm(self._linear))
        self.smoothness = norm_bound(-self._hessian)

    def __repr__(self) -> str:
        return f"<Quadratic of {self.n} entries>"

    def value(self, point: Any) -> float:
        """Return F(point)."""
        x = one_point(point, self.n)
        return float(self._linear @ x + x @ self._hessian @ x / 2)

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient h + H @ x at every row."""
        return np.asarray(self._linear + many_points(points, self.n) @ self._hessian)


@dataclass(frozen=True)
class Curve:
    """A smooth concave function on [0, infinity) from 0 to at most 1, with slope 1 at 0."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    bend: float
    """The largest absolute value of the second derivative."""


CURVES = {
    "exponential": Curve(lambda s: -np.expm1(-s), lambda s: np.exp(-s), 1.0),
    "rational": Curve(lambda s: s / (1 + s), lambda s: (1 + s) ** -2.0, 2.0),
}
"""1 - exp(-s) and s / (1 + s)."""


class ConcaveOfLinear:
    """Concave function of a weighted sum: F(x) = phi(w @ x).

    Parameters
    ----------
    weights : array of float, shape (n,)
        w, not negative.
    curve : {"exponential", "rational"}, default "exponential"
        phi(s) = 1 - exp(-s), or s / (1 + s).

    Raises
    ------
    InvalidInput
        If a weight is negative.
    UnknownName
        If there is no such curve.

    Examples
    --------
    >>> from diminuendo.continuous import ConcaveOfLinear
    >>> ConcaveOfLinear([0.5, 0.5], curve="rational").value([1.0, 1.0])
    0.5
    """

    def __init__(self, weights: Any, curve: str = "exponential") -> None:
        self._weights = positive_numbers(weights, "weights")
        self.n = len(self._weights)
        self._curve = _validate.lookup(CURVES, curve, "curve")
        self.gradient_bound = float(np.linalg.norm(self._weights))
        self.smoothness = self._curve.bend * float(self._weights @ self._weights)

    def __repr__(self) -> str:
        return f"<ConcaveOfLinear of {self.n} entries>"

    def value(self, point: Any) -> float:
        """Return F(point)."""
        return float(self._curve.value(self._weights @ one_point(point, self.n)))

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient at every row: w times the slope at w @ x."""
        steep = self._curve.slope(many_points(points, self.n) @ self._weights)
        return np.asarray(np.outer(steep, self._weights))


class BudgetAllocation:
    """Targets that a budget reaches: F(x) = sum over targets t of w_t (1 - prod over sources s of (1 - p_st)**x_s).

    Parameters
    ----------
    probabilities : array of float, shape (n, n_targets)
        p_st in [0, 1): the probability that one unit spent on source s reaches target t.
    weights : array of float, shape (n_targets,), optional
        Of targets, adding up to at most 1. By default equal.

    Raises
    ------
    InvalidInput
        If shapes, probabilities or weights do not fit.

    Examples
    --------
    >>> from diminuendo.continuous import BudgetAllocation
    >>> round(BudgetAllocation([[0.5], [0.5]]).value([1.0, 1.0]), 6)
    0.75
    """

    def __init__(self, probabilities: Any, weights: Any = None) -> None:
        p = unit_numbers(probabilities, "probabilities", 2)
        if (p == 1).any():
            raise InvalidInput("probabilities must be below 1: a sure thing has no smooth form. Take 0.999.")
        self.n, targets = p.shape
        w = np.full(targets, 1 / targets) if weights is None else unit_numbers(weights, "weights", 1)
        if w.shape != (targets,):
            raise InvalidInput(f"weights must be one per target, {targets}; got {len(w)}.")
        at_most_one(float(w.sum()), "The weights of targets", targets)
        cared = w > 0
        self._strength, self._weights = -np.log1p(-p[:, cared]), w[cared]
        self.gradient_bound = float(np.linalg.norm(self._strength @ self._weights))
        self.smoothness = norm_bound((self._strength * self._weights) @ self._strength.T)

    def __repr__(self) -> str:
        return f"<BudgetAllocation of {self.n} sources>"

    def value(self, point: Any) -> float:
        """Return F(point)."""
        reached = -np.expm1(-(one_point(point, self.n) @ self._strength))
        return float(min(1.0, reached @ self._weights))

    def gradients(self, points: Floats) -> Floats:
        """Return the gradient at every row: what each source adds on targets that are not reached yet."""
        missed = np.exp(-(many_points(points, self.n) @ self._strength))
        return np.asarray((missed * self._weights) @ self._strength.T)


def norm_bound(matrix: Floats) -> float:
    """An upper bound on the spectral norm of a symmetric matrix with no negative entries."""
    return float(min(matrix.sum(axis=1).max(), np.linalg.norm(matrix)))


def positive_numbers(values: Any, name: str) -> Floats:
    """A row of finite numbers from 0 on."""
    row = _validate.numbers(values, name).copy()
    if row.ndim != 1 or row.size == 0 or not (np.isfinite(row).all() and (row >= 0).all()):
        raise InvalidInput(f"{name} must be a row of finite numbers from 0 on.")
    return row
