"""Domains: the points that may be played. Compact, convex, and closed under taking less.

    Box(upper)                         0 <= x <= upper
    CappedSimplex(n, total, cap)       0 <= x <= cap, and entries add up to at most `total`

Each projects many points at once, one per row, in closed form, to the rounding of floats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import Floats

TOLERANCE = 1e-9
"""By so much, relative to the sizes involved, a point may be outside and still belong: rounding, not slack."""

FARTHEST_POINT = 1e9
"""Points further out than this are refused: there floats are too coarse to tell where in the domain they would go."""


class Domain(ABC):
    """A compact convex set of points x >= 0 that contains 0 and everything below each of its points.

    Attributes
    ----------
    n : int
        Number of entries of a point.
    upper : ndarray of float, shape (n,)
        The largest value of each entry.
    radius : float
        Length of the longest point.
    centre : ndarray of float, shape (n,)
        Where learners begin: a multiple of `upper` (Lemma C0b of docs/maths/continuous.md).
    spread : float
        No point of the domain is further than this from the centre.

    See Also
    --------
    Box, CappedSimplex

    """

    n: int
    upper: Floats
    radius: float
    centre: Floats
    spread: float

    @abstractmethod
    def _project(self, points: Floats) -> Floats:
        """The nearest points of the domain, row by row."""

    @abstractmethod
    def maximise(self, direction: Any) -> Floats:
        """Return a point x of the domain with the largest direction @ x.

        Parameters
        ----------
        direction : array of float, shape (n,)
            Finite numbers.

        Returns
        -------
        ndarray of float, shape (n,)

        Raises
        ------
        InvalidInput
            If the direction does not fit.
        """

    @abstractmethod
    def _excess(self, point: Floats) -> float:
        """How far the constraints beyond the box are exceeded, relative to their limits."""

    def project(self, points: Any) -> Floats:
        """Return the nearest points of the domain.

        Parameters
        ----------
        points : array of float, shape (any, n)
            One point per row, with entries within 1e9.

        Returns
        -------
        ndarray of float, shape (any, n)

        Raises
        ------
        InvalidInput
            If points do not fit, or are too far out for floats.
        """
        rows = np.asarray(points, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n:
            raise InvalidInput(f"Expected points in rows of {self.n} numbers; got shape {rows.shape}.")
        if not (np.abs(rows) <= FARTHEST_POINT).all():  # also NaN
            raise InvalidInput(
                f"Points must be numbers from -{FARTHEST_POINT:g} to {FARTHEST_POINT:g}; cut them to that first."
            )
        return self._project(rows)

    def contains(self, point: Any) -> bool:
        """Return whether a point belongs to the domain, up to a relative rounding of 1e-9."""
        x = np.asarray(point, dtype=np.float64)
        if x.shape != (self.n,) or not np.isfinite(x).all():
            return False
        slack = TOLERANCE * self.upper
        return bool((x >= -slack).all() and (x <= self.upper + slack).all() and self._excess(x) <= TOLERANCE)

    def _find_centre(self, most: float) -> None:
        """`most` is the largest upper.x over the domain, or more (docs/maths/continuous.md, Lemma C0b)."""
        whole = float(self.upper @ self.upper)
        share = min(0.5, most / whole)
        self.spread = math.sqrt((1 - 2 * share) * most + share**2 * whole)
        if self.spread > self.radius:  # the bound on the radius may be the better one
            share, self.spread = 0.0, self.radius
        self.centre = share * self.upper
        self.centre.flags.writeable = False

    def _direction(self, direction: Any) -> Floats:
        c = _validate.numbers(direction, "A direction")
        if c.shape != (self.n,) or not np.isfinite(c).all():
            raise InvalidInput(f"A direction is {self.n} finite numbers.")
        return c


class Box(Domain):
    """The domain 0 <= x <= upper.

    Parameters
    ----------
    upper : array of float, shape (n,)
        Above 0.

    Raises
    ------
    InvalidInput
        If a limit is not a finite number above 0.

    Examples
    --------
    >>> from diminuendo.continuous import Box
    >>> Box([1.0, 2.0]).project([[0.5, 3.0]]).tolist()
    [[0.5, 2.0]]
    """

    def __init__(self, upper: Any) -> None:
        self.upper = _positive_row(upper, "upper")
        self.n = len(self.upper)
        self.radius = float(np.linalg.norm(self.upper))
        self._find_centre(self.radius**2)

    def __repr__(self) -> str:
        return f"Box({self.upper.tolist()})"

    def _project(self, points: Floats) -> Floats:
        return np.clip(points, 0.0, self.upper)

    def maximise(self, direction: Any) -> Floats:
        """Return the corner where every entry with a positive direction is full."""
        return np.where(self._direction(direction) > 0, self.upper, 0.0)

    def _excess(self, point: Floats) -> float:
        return 0.0


class CappedSimplex(Domain):
    """The domain 0 <= x <= cap with sum(x) <= total: a budget, or k slots (total = k, cap = 1).

    Parameters
    ----------
    n : int
        Number of entries.
    total : float
        Above 0.
    cap : float, default 1.0
        Above 0.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from diminuendo.continuous import CappedSimplex
    >>> domain = CappedSimplex(4, total=2)
    >>> domain.maximise([0.5, 3.0, -1.0, 2.0]).tolist(), domain.contains([1.0, 1.0, 1.0, 0.0])
    ([0.0, 1.0, 0.0, 1.0], False)
    """

    def __init__(self, n: int, total: float, cap: float = 1.0) -> None:
        self.n = _validate.positive_int(n, "n")
        self.total, self.cap = _validate.positive_float(total, "total"), _validate.positive_float(cap, "cap")
        self.upper = np.full(self.n, min(self.cap, self.total))
        self.upper.flags.writeable = False
        full = min(self.n, math.floor(self.total / self.cap))
        rest = min(self.cap, self.total - full * self.cap) if full < self.n else 0.0
        # The longest point is a vertex: as few entries as can be.
        self.radius = math.hypot(math.sqrt(full) * self.cap, max(0.0, rest))
        self._find_centre(self.upper[0] * min(self.total, self.n * self.upper[0]))

    def __repr__(self) -> str:
        return f"CappedSimplex({self.n}, total={self.total:g}, cap={self.cap:g})"

    def _project(self, points: Floats) -> Floats:
        inside = np.clip(points, 0.0, self.cap)
        over = np.flatnonzero(inside.sum(axis=1) > self.total)
        if len(over):
            inside[over] = self._shifted(points[over])
        return inside

    def _shifted(self, points: Floats) -> Floats:
        """clip(z - t, 0, cap) with the t at which the entries add up to `total`.

        As t grows, entry z leaves the cap at t = z - cap and reaches 0 at t = z; in between the sum falls by 1 for each
        entry on its way. So the sum at all these breakpoints follows from one sort.
        """
        rows = np.arange(len(points))[:, None]
        breaks = np.hstack([points - self.cap, points])
        order = np.argsort(breaks, axis=1, kind="stable")
        breaks = breaks[rows, order]
        # Entries on their way, after each breakpoint.
        moving = np.cumsum(np.where(order < self.n, 1, -1), axis=1)
        falls = np.cumsum(moving[:, :-1] * np.diff(breaks, axis=1), axis=1)
        sums = self.n * self.cap - np.hstack([np.zeros((len(points), 1)), falls])
        at = np.clip((sums > self.total).sum(axis=1) - 1, 0, 2 * self.n - 2)
        middle = (breaks[rows[:, 0], at] + breaks[rows[:, 0], at + 1]) / 2
        high = points - middle[:, None] >= self.cap
        free = (points > middle[:, None]) & ~high
        # Which entries are at an end decides t; so t is not the sum of many small differences.
        t = (points * free).sum(axis=1) + self.cap * high.sum(axis=1) - self.total
        t = np.where(free.any(axis=1), t / np.maximum(free.sum(axis=1), 1), middle)
        x = np.clip(points - t[:, None], 0.0, self.cap)
        return np.asarray(x * np.minimum(1.0, self.total / x.sum(axis=1, keepdims=True)))

    def maximise(self, direction: Any) -> Floats:
        """Return the point whose best entries are filled one after the other."""
        c = self._direction(direction)
        order = np.argsort(-c, kind="stable")
        x = np.zeros(self.n)
        x[order] = np.clip(self.total - self.cap * np.arange(self.n), 0.0, self.cap)
        return np.where(c > 0, x, 0.0)

    def _excess(self, point: Floats) -> float:
        return float(point.sum() / self.total - 1)


def _positive_row(values: Any, name: str) -> Floats:
    row = np.array(values, dtype=np.float64, ndmin=1)
    if row.ndim != 1 or not len(row) or not (np.isfinite(row).all() and (row > 0).all()):
        raise InvalidInput(f"{name} must be a row of finite numbers above 0; got {values!r}.")
    row.flags.writeable = False
    return row
