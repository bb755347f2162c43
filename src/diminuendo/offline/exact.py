"""The best slate in hindsight, with a proof: lower and upper bounds that meet, or how far apart they are.

`branch`  depth-first search over slates. A prefix S is cut off if F(S) plus the largest remaining gains cannot beat the
          best slate so far. Works for any objective, and with rules: pinned items come first, and items that a cap
          excludes add nothing.
`milp`    every family has linear ceilings over F that touch it at a given slate. A mixed-integer program over the N
          items and the ceilings so far gives a slate and an upper bound; the slate gives a lower bound and another
          ceiling, until they meet. Users enter only through ceilings, so the program stays small however long the
          stream is (Benders decomposition).

Bounds are means per user. Those of `milp` include the solver's tolerance.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.offline.fitting import FittedRules
from diminuendo.offline.greedy import data_bound, greedy, top_sum
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.offline.total import UsersTotal, total
from diminuendo.streams.users import Stream, Users
from diminuendo.types import Floats, Slate

METHODS = ("auto", "milp", "branch")

SOLVER_TOLERANCE = 1e-6
"""HiGHS lets a constraint of a mixed-integer program be violated by this much (its documented default)."""

LEAST_SLOPE = 1e-9
"""HiGHS takes coefficients below this for zero, and may fail on them."""

MEAN_ROUNDING = 1e-12
"""Two means of the same users that differ by less are equal."""


@dataclass(frozen=True)
class Bracket:
    """Bounds on the best mean value of any slate.

    Attributes
    ----------
    lower, upper : float
        The best value lies between them.
    slate : tuple of int
        A slate whose value is `lower`.
    seconds : float
        How long the search took.
    method : {"milp", "branch"}
        Which search.

    """

    lower: float
    upper: float
    slate: Slate
    seconds: float
    method: str

    @property
    def proven(self) -> bool:
        """Whether the bounds meet, up to twice the solver's tolerance of 1e-6 per user."""
        return self.upper - self.lower <= 2 * SOLVER_TOLERANCE


def optimum(
    stream: Stream,
    slots: int,
    *,
    rules: SlateRules | None = None,
    method: str = "auto",
    time_limit: float = 60.0,
) -> Bracket:
    """Return the best slate in hindsight, or the tightest bounds found in time. Not private.

    Parameters
    ----------
    stream : Stream
        All users.
    slots : int
        Number of items in the slate.
    rules : SlateRules, optional
        Pinned items and caps, searched by "branch". Eligible slots are refused.
    method : {"auto", "milp", "branch"}, default "auto"
        "milp": cutting planes from concave forms of the objectives, for `Users`. "branch": depth-first search with
        the bound of `data_bound`, for any objective.
    time_limit : float, default 60.0
        Seconds.

    Returns
    -------
    Bracket

    Raises
    ------
    InvalidInput
        If the method does not fit the stream or the rules.

    Notes
    -----
    Theorems 1, 2 and 3 of docs/maths/hindsight.md.

    References
    ----------
    Cordeau, Furini & Ljubic (2019), Benders decomposition for very large scale partial set covering and maximal
    covering location problems, EJOR 275.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.Users(dim.NoisyOr(), [[0.5, 0.5, 0.0], [0.5, 0.0, 0.75]])
    >>> best = dim.optimum(users, slots=1)
    >>> best.slate, best.lower, best.proven
    ((0,), 0.5, True)
    """
    k = _validate.slots(slots, stream.n_items)
    _validate.one_of(method, METHODS, "method")
    fitted = FittedRules(as_rules(rules), stream.n_items, k)
    if fitted.rules:
        if method == "milp" or fitted.eligible is not None:
            raise InvalidInput(
                "The best slate is found with pinned items and caps by method='branch', and not where slots have items "
                "of their own; greedy(.., rules=..) takes all rules."
            )
        method = "branch"
    limit = _validate.positive_float(time_limit, "time_limit")
    if method == "auto":
        method = "milp" if isinstance(stream, Users) and not _few_slates(stream, k) else "branch"
    began = time.perf_counter()
    first = greedy(stream, k, rules=fitted.rules)
    lower, upper, slate = first.value, data_bound(stream, first.slate, k), first.slate
    settled = MEAN_ROUNDING
    if method == "milp" and upper - lower > settled:
        if not isinstance(stream, Users):
            raise InvalidInput(
                "The milp method needs users of a family; use method='branch' for Python functions."
            )
        lower, upper, slate = _Cuts(stream, k, began + limit).run(lower, upper, slate)
        settled = 2 * SOLVER_TOLERANCE if time.perf_counter() < began + limit else math.inf
    if upper - lower > settled:  # after `milp`: the solver gave up early
        lower, upper, slate = _Branch(stream, fitted, began + limit).run(lower, upper, slate)
    return Bracket(lower, max(lower, upper), slate, time.perf_counter() - began, method)


def _few_slates(users: Users, k: int) -> bool:
    """Whether looking at every slate takes seconds at the most, however little can be cut off."""
    entries = sum(len(rows.data) for rows in users.family.rows(users.table, users.n_items)) + len(users)
    return bool(math.comb(users.n_items, k - 1) * entries < 1e9)


class _Branch:
    """Depth-first search in the order of gains, with F(S) + the largest remaining gains as bound."""

    def __init__(self, stream: Stream, rules: FittedRules, deadline: float) -> None:
        self.summed, self.users, self.deadline = total(stream), max(1, len(stream)), deadline
        self.rules, self.k, self.everything = rules, rules.slots, np.ones(stream.n_items, dtype=np.bool_)

    def run(self, lower: float, upper: float, slate: Slate) -> tuple[float, float, Slate]:
        self.best, self.slate = lower, slate
        self.open = 0.0  # the largest bound among branches that time did not allow to search
        self._search(tuple(item for _, item in self.rules.rules.pinned), frozenset())
        return self.best, min(upper, max(self.best, self.open)), self.slate

    def _search(self, prefix: Slate, excluded: frozenset[int]) -> None:
        self.summed.begin()
        for item in prefix:
            self.summed.add(item)
        here, gains = self.summed.value() / self.users, self.summed.gains() / self.users
        gains[list(excluded)] = 0.0
        gains[~self.rules.open_to(np.array(prefix, dtype=np.int32), self.everything)] = 0.0
        left = self.k - len(prefix)
        if here > self.best + MEAN_ROUNDING:
            self.best, self.slate = here, prefix
        if left == 0 or here + top_sum(gains, left) <= self.best + MEAN_ROUNDING:
            return
        if time.perf_counter() > self.deadline:
            self.open = max(self.open, here + top_sum(gains, left))
            return
        if left == 1:
            item = int(np.argmax(gains))
            self.best, self.slate = here + float(gains[item]), (*prefix, item)
            return
        for item in np.argsort(-gains, kind="stable"):
            if here + top_sum(gains, left) <= self.best + MEAN_ROUNDING:
                return
            self._search((*prefix, int(item)), excluded)
            excluded |= {int(item)}
            gains[item] = 0.0


class _Cuts:
    """Ceilings as constraints z <= h + g x; z is the mean value."""

    def __init__(self, users: Users, k: int, deadline: float) -> None:
        self.stream, self.summed, self.k, self.deadline = users, UsersTotal(users), k, deadline
        self.users, self.n = max(1, len(users)), users.n_items
        self.rows: list[Floats] = []
        self.limits: list[float] = []

    def run(self, lower: float, upper: float, slate: Slate) -> tuple[float, float, Slate]:
        centre = np.full(self.n, self.k / self.n)
        self._cut(centre)
        self._cut(self._indicator(slate))
        stalled = 0
        # First without integrality: cheap, nearly tight.
        while stalled < 5 and time.perf_counter() < self.deadline:
            x, bound = self._solve(integral=False)
            if x is None or bound is None:
                break
            stalled = stalled + 1 if bound > upper - 0.02 * (upper - lower) else 0
            upper = min(upper, bound)
            self._cut(x)
            centre = 0.5 * (centre + x)  # a second cut from further inside steadies the next step
            self._cut(centre)
        while upper - lower > 2 * SOLVER_TOLERANCE and time.perf_counter() < self.deadline:
            x, bound = self._solve(integral=True, cutoff=lower)
            if bound is None:
                break
            upper = min(upper, max(lower, bound))
            if x is None:
                break
            result = tuple(int(item) for item in np.flatnonzero(x > 0.5))
            self._cut(self._indicator(result))
            worth = float(self.stream.values(result).mean())
            self._cut(0.5 * (centre + x))
            if worth > lower:
                lower, slate = worth, result
        return lower, upper, slate

    def _indicator(self, slate: Slate) -> Floats:
        x = np.zeros(self.n)
        x[list(slate)] = 1.0
        return x

    def _cut(self, x: Floats) -> None:
        """Put the ceiling at x."""
        height, slope = self.summed.ceiling(x)
        slope /= self.users
        slope[(slope > 0) & (slope < LEAST_SLOPE)] = LEAST_SLOPE  # upwards, so it stays a ceiling
        self.rows.append(slope)
        self.limits.append(height / self.users)

    def _solve(self, *, integral: bool, cutoff: float = 0.0) -> tuple[Floats | None, float | None]:
        """Maximise z over z <= c + g x and sum x = k; returns x and an upper bound on z."""
        from scipy import optimize  # here: it takes its time to load, and choosing slates does without

        left = max(0.1, self.deadline - time.perf_counter())
        cuts = np.column_stack([-np.array(self.rows), np.ones(len(self.rows))])
        budget = np.append(np.ones(self.n), 0.0)
        result = optimize.milp(
            c=np.append(np.zeros(self.n), -1.0),
            constraints=[
                optimize.LinearConstraint(cuts, -np.inf, np.array(self.limits)),
                optimize.LinearConstraint(budget[None, :], self.k, self.k),
            ],
            bounds=optimize.Bounds(
                np.append(np.zeros(self.n), max(0.0, cutoff - SOLVER_TOLERANCE)), np.ones(self.n + 1)
            ),
            integrality=np.append(np.full(self.n, int(integral)), 0),
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )
        if integral:
            bound = (
                None if result.mip_dual_bound is None else -float(result.mip_dual_bound) + SOLVER_TOLERANCE
            )
            return (None if result.x is None else np.clip(result.x[:-1], 0, 1)), bound
        if result.status != 0:
            return None, None
        return np.clip(result.x[:-1], 0, 1), float(result.x[-1]) + SOLVER_TOLERANCE
