"""Checks an objective on points for what learners assume, on random points of a box.

Checked: F(0) = 0, values in [0, 1], gradients that match the values, are not negative (monotone), do not rise when any
entry rises (diminishing returns), are no longer than `gradient_bound`, and change no faster than `smoothness`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diminuendo import _validate
from diminuendo.continuous.domains import Box
from diminuendo.continuous.objectives import DRObjective
from diminuendo.errors import InvalidInput
from diminuendo.objectives.check import Violation
from diminuendo.types import Floats

RELATIVE_ROUNDING = 2.0**-40
"""Differences below this, relative to the numbers compared, are rounding."""

STEP = 2.0**-17
"""The step of finite differences, relative to the box. They err by STEP^2 |F'''| / 6 + 2^-53 / STEP, about 1e-11."""

DIFFERENCE = 1e-7
"""A gradient that differs by more from finite differences is wrong: ten thousand times what they err by."""


def check(
    objective: DRObjective, box: Box | None = None, *, tries: int = 200, seed: int = 0
) -> Violation | None:
    """Look for a counterexample to what learners assume of an objective on points.

    Parameters
    ----------
    objective : DRObjective
        With `n`, `gradient_bound`, `smoothness`, `value` and `gradients`.
    box : Box, optional
        Where to look. By default the unit box.
    tries : int, default 200
        Number of random pairs of points.
    seed : int, default 0
        Seed of the points.

    Returns
    -------
    Violation or None
        The first violation found. None is evidence, not a proof.

    Raises
    ------
    InvalidInput
        If the box does not fit the objective.

    Examples
    --------
    >>> from diminuendo.continuous import ConcaveOfLinear, check
    >>> print(check(ConcaveOfLinear([0.5, 0.25])))
    None
    """
    n = _validate.positive_int(objective.n, "n of the objective")
    where = Box(np.ones(n)) if box is None else box
    if not isinstance(where, Box) or where.n != n:
        raise InvalidInput(f"Expected a Box of {n} entries; got {where!r}.")
    return next(_faults(objective, where, tries, np.random.default_rng(seed)), None)


def _faults(objective: DRObjective, box: Box, tries: int, rng: np.random.Generator) -> Iterator[Violation]:
    if (zero := float(objective.value(np.zeros(box.n)))) != 0:
        yield Violation("empty", f"The point 0 is worth {zero:.6g}; it must be worth 0.")
    for _ in range(tries):
        low, high = np.sort(_points(box, rng), axis=0)
        below, above = (float(objective.value(point)) for point in (low, high))
        for point, value in ((low, below), (high, above)):
            if not -RELATIVE_ROUNDING <= value <= 1 + RELATIVE_ROUNDING:  # also true of NaN
                yield Violation("range", f"{_said(point)} is worth {value:.6g}; values must lie in [0, 1].")
        slopes = np.asarray(objective.gradients(np.array([low, high])), dtype=np.float64)
        if slopes.shape != (2, box.n) or not np.isfinite(slopes).all():
            yield Violation(
                "shape", f"gradients of 2 points must be finite, (2, {box.n}); got {slopes.shape}."
            )
            return
        yield from _order_faults(low, high, below, above, slopes)
        yield from _bound_faults(objective, low, high, slopes)
        yield from _formula_faults(objective, box, low, slopes[0])


def _points(box: Box, rng: np.random.Generator) -> Floats:
    """Two points; some of their entries at an end of the box, some the same in both."""
    share = rng.random((2, box.n))
    ends = rng.random((2, box.n))
    share = np.where(ends < 0.15, 0.0, np.where(ends > 0.85, 1.0, share))
    share[1] = np.where(rng.random(box.n) < rng.random(), share[0], share[1])
    return np.asarray(share * box.upper)


def _order_faults(
    low: Floats, high: Floats, below: float, above: float, slopes: Floats
) -> Iterator[Violation]:
    if above < below - RELATIVE_ROUNDING:
        yield Violation(
            "monotone",
            f"{_said(high)} is worth {above:.6g}, but {_said(low)}, which is less, {below:.6g}; more must never hurt.",
        )
    scale = RELATIVE_ROUNDING * (1 + np.abs(slopes).max())
    if (slopes < -scale).any():
        row, entry = np.argwhere(slopes < -scale)[0]
        point = _said((low, high)[row])
        yield Violation(
            "monotone",
            f"At {point} the slope of entry {entry} is {slopes[row, entry]:.6g}; more must never hurt.",
        )
    rise = slopes[1] - slopes[0]
    if (rise > scale).any():
        entry = int(np.argmax(rise))
        yield Violation(
            "submodular",
            f"Entry {entry} has slope {slopes[1, entry]:.6g} at {_said(high)}, but only {slopes[0, entry]:.6g} at "
            f"{_said(low)}, which is less; returns must diminish.",
        )


def _bound_faults(objective: DRObjective, low: Floats, high: Floats, slopes: Floats) -> Iterator[Violation]:
    longest = float(np.linalg.norm(slopes, axis=1).max())
    if longest > objective.gradient_bound * (1 + RELATIVE_ROUNDING):
        yield Violation(
            "gradient_bound",
            f"A gradient has length {longest:.6g}; gradient_bound says {objective.gradient_bound:.6g}.",
        )
    change, apart = float(np.linalg.norm(slopes[1] - slopes[0])), float(np.linalg.norm(high - low))
    if change > objective.smoothness * apart + RELATIVE_ROUNDING * (1 + longest):
        yield Violation(
            "smoothness",
            f"Gradients change by {change:.6g} over a distance of {apart:.6g}; smoothness says "
            f"{objective.smoothness:.6g} per unit.",
        )


def _formula_faults(objective: DRObjective, box: Box, point: Floats, slope: Floats) -> Iterator[Violation]:
    for entry in range(box.n):
        step = STEP * box.upper[entry]
        middle = point.copy()
        middle[entry] = np.clip(point[entry], step, box.upper[entry] - step)
        sides = np.array([middle, middle])
        sides[:, entry] += (-step, step)
        rate = (float(objective.value(sides[1])) - float(objective.value(sides[0]))) / (2 * step)
        claimed = float(np.asarray(objective.gradients(middle[None, :]))[0, entry])
        if not abs(rate - claimed) <= DIFFERENCE * (1 + abs(claimed)):
            yield Violation(
                "gradients",
                f"At {_said(middle)} gradients() says {claimed:.6g} for entry {entry}, "
                f"but value() changes by {rate:.6g}.",
            )


def _said(point: Floats) -> str:
    return "[" + ", ".join(f"{entry:.4g}" for entry in point[:8]) + (", ..]" if len(point) > 8 else "]")
