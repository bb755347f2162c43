"""Objectives by their definitions, in exact arithmetic, and everything else by trying all sets.

Nothing here calls the package's kernels or solvers, or borrows their formulas: a value is the
definition evaluated in fractions (curves in decimals with 60 digits to spare), a gain is a difference
of two values, the best slate is the best of all slates. Slow, and obvious.

A `Crowd` is a few users told twice: as plain rows, for the definitions, and as `Users`, for the package.
"""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from diminuendo import Users
from diminuendo.objectives import BestMatch, Concave, Coverage, Family, Mixture, NoisyOr

Row: TypeAlias = tuple[float, ...]
"""What one user says: one number per item, or per topic."""
Marks: TypeAlias = tuple[tuple[int, ...], ...]
"""Public: marks[item][topic] is 1 where the item has the topic, else 0."""
Set: TypeAlias = frozenset[int]
SetFunction: TypeAlias = Callable[[Set], Fraction]

UNIT = 2.0**-53
"""One rounding of a float operation with a result in [1/2, 1] errs by at most this."""

USER_ROUNDING = 64 * UNIT
"""How far a float value or gain of one user may be from the exact one. With at most 6 items, 12 topics
and 3 parts it takes fewer than 64 operations on numbers in [0, 1], none of which magnifies errors."""

RELATIVE_ROUNDING = 8 * UNIT
"""The first gain of an item is a weight, a sum of 5 weights or a curve at a weight, times two shares:
so many roundings, each in proportion to the result."""

UNDERFLOW = 2 * math.sqrt(5e-324)
"""Where numbers underflow nothing is in proportion; the square root of the smallest float bounds the harm."""


# Definitions.


def noisy_or(chances: Row, shown: Set) -> Fraction:
    """1 - the product of (1 - p_a)."""
    return 1 - math.prod((1 - Fraction(chances[a]) for a in shown), start=Fraction(1))


def best_match(matches: Row, shown: Set) -> Fraction:
    """The largest u_a; 0 if nothing is shown."""
    return max((Fraction(matches[a]) for a in shown), default=Fraction(0))


def coverage(marks: Marks, weights: Row, shown: Set) -> Fraction:
    """The sum of w_u over topics u that some shown item has."""
    covered = {topic for topic in range(len(weights)) if any(marks[a][topic] for a in shown)}
    return sum((Fraction(weights[topic]) for topic in covered), start=Fraction(0))


def concave(curve: str, scale: float, weights: Row, shown: Set) -> Fraction:
    """phi(the sum of w_a / scale)."""
    return phi(curve, sum((Fraction(weights[a]) for a in shown), start=Fraction(0)) / Fraction(scale))


def phi(curve: str, x: Fraction) -> Fraction:
    """The curve at x, with 60 digits to spare."""
    with decimal.localcontext() as context:
        context.prec = 60
        exact = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        if x:
            context.prec += max(0, -exact.adjusted())  # so that 1 + x keeps 60 digits of x
        one = decimal.Decimal(1)
        if curve == "sqrt":
            return Fraction(min(one, exact).sqrt())
        if curve == "capped":
            return min(Fraction(1), x)
        if curve == "log":
            return Fraction(min(one, (one + exact).ln() / decimal.Decimal(2).ln()))
        assert curve == "exponential"
        return Fraction(one - (-exact).exp())


@dataclass(frozen=True)
class Leaf:
    """One summand of what users feel: a share of a definition, and each user's row."""

    share: Fraction
    definition: Callable[[Row, Set], Fraction]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Crowd:
    """A few users, as definitions and as the package's `Users`."""

    family: Family
    n_items: int
    leaves: tuple[Leaf, ...]
    stored: str
    """How rows reach the package: "dense", "sparse", or "sparse with zeros" that are written out."""
    _known: dict[tuple[int, Set], Fraction] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.leaves[0].rows)

    def users(self) -> Users:
        """The crowd as the package knows it."""
        return Users(self.family, tuple(self._matrix(leaf.rows) for leaf in self.leaves), self.n_items)

    def value(self, user: int, shown: Iterable[int]) -> Fraction:
        """f_t(shown) by definition."""
        key = user, frozenset(shown)
        if key not in self._known:
            self._known[key] = sum(
                (leaf.share * leaf.definition(leaf.rows[user], key[1]) for leaf in self.leaves),
                start=Fraction(0),
            )
        return self._known[key]

    def total(self, shown: Iterable[int]) -> Fraction:
        """F(shown), the sum over users."""
        items = frozenset(shown)
        return sum((self.value(t, items) for t in range(len(self))), start=Fraction(0))

    def mean(self, shown: Iterable[int]) -> Fraction:
        """F(shown) per user."""
        return self.total(shown) / len(self)

    @property
    def rounding(self) -> float:
        """How far a sum over users may be from the exact one."""
        return len(self) * USER_ROUNDING

    def _matrix(self, rows: tuple[Row, ...]) -> Any:
        dense = np.array(rows, dtype=np.float64)
        if self.stored == "dense":
            return dense
        if self.stored == "sparse":
            return sparse.csr_array(dense)
        n_rows, width = dense.shape
        columns = np.tile(np.arange(width), n_rows)
        return sparse.csr_array((dense.ravel(), columns, np.arange(n_rows + 1) * width), shape=dense.shape)


# Everything else, by trying all sets.


def subsets(n_items: int) -> Iterator[tuple[int, ...]]:
    """Every set of items, small ones first."""
    for size in range(n_items + 1):
        yield from itertools.combinations(range(n_items), size)


def gains(function: SetFunction, prefix: Iterable[int], n_items: int) -> list[Fraction]:
    """f(prefix + a) - f(prefix) for every item."""
    items = frozenset(prefix)
    return [function(items | {a}) - function(items) for a in range(n_items)]


def greedy(function: SetFunction, n_items: int, slots: int) -> tuple[int, ...]:
    """The item that adds most, `slots` times; of equals the smaller."""
    chosen: tuple[int, ...] = ()
    for _ in range(slots):
        added = gains(function, chosen, n_items)
        left = [a for a in range(n_items) if a not in chosen]
        chosen += (min(left, key=lambda a: (-added[a], a)),)
    return chosen


def greedy_shortfall(function: SetFunction, n_items: int, slate: Sequence[int]) -> Fraction:
    """By how much some item of `slate`, added in order, was worse than the best item at its step."""
    worst = Fraction(0)
    for depth, item in enumerate(slate):
        added = gains(function, slate[:depth], n_items)
        worst = max(worst, max(added) - added[item])
    return worst


def greedy_margin(function: SetFunction, n_items: int, slots: int) -> Fraction:
    """By how much greedy's choices were better than the next best, at the closest step."""
    slate, margin = greedy(function, n_items, slots), Fraction(1)
    for depth, item in enumerate(slate):
        added = gains(function, slate[:depth], n_items)
        others = [added[a] for a in range(n_items) if a not in slate[: depth + 1]]
        margin = min([margin, *(added[item] - other for other in others)])
    return margin


def best_value(function: SetFunction, n_items: int, slots: int) -> Fraction:
    """The largest worth of any slate of `slots` items."""
    return max(function(frozenset(slate)) for slate in itertools.combinations(range(n_items), slots))


def bound(function: SetFunction, n_items: int, chain: Sequence[int], slots: int) -> Fraction:
    """The smallest f(prefix) + the `slots` largest gains given that prefix, over prefixes of `chain`."""
    return min(
        function(frozenset(chain[:depth]))
        + sum(sorted(gains(function, chain[:depth], n_items))[max(0, n_items - slots) :], start=Fraction(0))
        for depth in range(len(chain) + 1)
    )


def broken_promises(function: SetFunction, n_items: int) -> set[str]:
    """Which of the rules empty, range, monotone and submodular `function` breaks; looks at all pairs of sets."""
    sets = [frozenset(s) for s in subsets(n_items)]
    value = {s: function(s) for s in sets}
    broken = set()
    if value[frozenset()] != 0:
        broken.add("empty")
    if any(not 0 <= value[s] <= 1 for s in sets):
        broken.add("range")
    for small, large in itertools.product(sets, sets):
        if small <= large and value[small] > value[large]:
            broken.add("monotone")
        if value[small] + value[large] < value[small | large] + value[small & large]:
            broken.add("submodular")
    return broken


# Crowds to try.

KINDS = ("noisy-or", "best-match", "coverage", "concave", "mixture", "nested")
"""Every family, and a mixture within a mixture. Each kind is one type of table, and so compiled once."""

CURVES = ("sqrt", "capped", "log", "exponential")

_NOTABLE = (0.0, 1.0, 0.5, 0.25, 0.1, 0.3, UNIT, 1 - UNIT, 1e-9, 1e-30, 1e-300, 2.0**-1022, 1e-310, 5e-324)
_SCALES = (1.0, 0.5, 1.5, 3.0, 0.01, 250.0)
_SHARES = ((0.5, 0.25, 0.25), (0.1, 0.2, 0.3), (1 / 3, 1 / 3, 1 / 3), (0.98, 0.01, 1e-9))
_STORED = ("dense", "sparse", "sparse with zeros")

numbers = st.sampled_from(_NOTABLE) | st.floats(0, 1)
"""Anything a user may say: ties, certainty, nothing, and numbers too small to matter."""


class Source(Protocol):
    """Where choices come from when a crowd is made."""

    def pick(self, options: Sequence[Any]) -> Any:
        """One of the options."""
        ...

    def row(self, width: int) -> Row:
        """What one user says."""
        ...

    def light_row(self, width: int) -> Row:
        """The same, adding up to at most 1."""
        ...

    def marks(self, n_items: int) -> Marks:
        """Which item has which topic."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Choices by hypothesis, which looks for the odd and the extreme."""

    draw: st.DrawFn

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def row(self, width: int) -> Row:
        return self.draw(st.just((0.0,) * width) | st.tuples(*[numbers] * width))

    def light_row(self, width: int) -> Row:
        return _at_most_one(self.row(width))

    def marks(self, n_items: int) -> Marks:
        n_topics = self.draw(st.integers(1, 5))
        return self.draw(st.tuples(*[st.tuples(*[st.integers(0, 1)] * n_topics)] * n_items))


@dataclass(frozen=True)
class DrawnWithoutRounding(Drawn):
    """Choices by hypothesis among numbers whose sums and products are floats: ties are ties."""

    def pick(self, options: Sequence[Any]) -> Any:
        tame = {CURVES: ("capped",), _SCALES: (0.5, 1.0, 2.0), _SHARES: _SHARES[:1]}
        return self.draw(st.sampled_from(tame.get(tuple(options), tuple(options))))

    def row(self, width: int) -> Row:
        return self.draw(st.tuples(*[st.integers(0, 8)] * width).map(_parts_of(8)))

    def light_row(self, width: int) -> Row:  # 5 topics of at most 3/16
        return self.draw(st.tuples(*[st.integers(0, 3)] * width).map(_parts_of(16)))


@dataclass(frozen=True)
class Tossed:
    """Choices by coins: no extremes, but crowded rows of which greedy can make mistakes."""

    rng: np.random.Generator
    tiny: float = 0.0
    """What stands in place of nothing."""

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def row(self, width: int) -> Row:
        wanted = self.rng.random(width) < self.rng.choice([0.3, 0.6])
        return tuple(float(weight) for weight in np.where(wanted, self.rng.random(width), self.tiny))

    def light_row(self, width: int) -> Row:
        return _at_most_one(self.row(width))

    def marks(self, n_items: int) -> Marks:
        return tuple(tuple(int(mark) for mark in row) for row in self.rng.random((n_items, 12)) < 0.25)


def crowd_from(source: Source, kind: str, n_items: int, n_users: int) -> Crowd:
    """A crowd of the given kind."""
    stored = source.pick(_STORED)

    def simple(which: str) -> tuple[Family, Callable[[Row, Set], Fraction], tuple[Row, ...]]:
        if which == "coverage":
            marks = source.marks(n_items)
            weights = tuple(source.light_row(len(marks[0])) for _ in range(n_users))
            return Coverage(np.array(marks)), partial(coverage, marks), weights
        rows = tuple(source.row(n_items) for _ in range(n_users))
        if which == "concave":
            curve, scale = source.pick(CURVES), source.pick(_SCALES)
            return Concave(curve, scale), partial(concave, curve, scale), rows
        return (NoisyOr(), noisy_or, rows) if which == "noisy-or" else (BestMatch(), best_match, rows)

    def crowd(family: Family, shares: Sequence[Fraction], parts: Sequence[Any]) -> Crowd:
        leaves = [Leaf(share, part[1], part[2]) for share, part in zip(shares, parts, strict=True)]
        return Crowd(family, n_items, tuple(leaves), stored)

    if kind == "mixture":
        shares = source.pick(_SHARES)
        parts = [simple("noisy-or"), simple("best-match"), simple("coverage")]
        return crowd(Mixture(tuple(part[0] for part in parts), shares), list(map(Fraction, shares)), parts)
    if kind == "nested":
        first, second, third = source.pick(_SHARES)
        parts = [simple("best-match"), simple("coverage"), simple("concave")]
        family = Mixture((Mixture((parts[0][0], parts[1][0]), (first, second)), parts[2][0]), (0.5, third))
        return crowd(family, [Fraction(first) / 2, Fraction(second) / 2, Fraction(third)], parts)
    only = simple(kind)
    return crowd(only[0], [Fraction(1)], [only])


@st.composite
def crowds(
    draw: st.DrawFn,
    kind: str,
    *,
    rounding: bool = True,
    n_items: tuple[int, int] = (1, 6),
    most_users: int = 4,
) -> Crowd:
    """A crowd of the given kind, found by hypothesis."""
    source = Drawn(draw) if rounding else DrawnWithoutRounding(draw)
    return crowd_from(source, kind, draw(st.integers(*n_items)), draw(st.integers(1, most_users)))


def tossed_crowds(kind: str, *, n_items: int = 6, n_users: int = 5, tiny: float = 0.0) -> Iterator[Crowd]:
    """Crowds of the given kind without end, always the same ones."""
    for seed in itertools.count():
        yield crowd_from(Tossed(np.random.default_rng(seed), tiny), kind, n_items, n_users)


def _parts_of(whole: int) -> Callable[[tuple[int, ...]], Row]:
    return lambda counts: tuple(count / whole for count in counts)


def _at_most_one(row: Row) -> Row:
    total = math.fsum(row)
    return tuple(weight / total for weight in row) if total > 1 else row
