"""Accountants: from events to (epsilon, delta). They know no mechanism, only events, and refuse what they do not know.

    pure                 pure costs add: (epsilon, 0)
    zcdp                 squares of costs add, converted once by the tight formula; the default
    continuous-gaussian  exact for Gaussian noise, real or rounded to whole numbers, and for nothing else
    advanced             advanced composition as the paper uses it, for comparison

Costs are added as fractions, so nothing drifts, and converted once, rounding outward. `rounds` is how many rounds one
person may own: pure and Gaussian costs grow by that factor, zCDP by its square (Theorem A6).
Proofs in docs/maths/accounting.md.

What people have paid so far: in common, and batch by batch (docs/maths/accounting.md, Theorem A7, columns).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

from diminuendo import _validate
from diminuendo.errors import UnknownEvent
from diminuendo.privacy import curves
from diminuendo.privacy.events import (
    Columns,
    Composed,
    ContinuousGaussian,
    Event,
    Gaussian,
    Laplace,
    NormalColumns,
    Parallel,
    Repeated,
    Selections,
)
from diminuendo.privacy.rounding import root_up, rounded_up


class BatchCosts:
    """A running total: what everybody paid, and what each batch of each partition paid besides.

    Adding takes no longer as it grows.
    """

    def __init__(self) -> None:
        self.common = Fraction(0)
        self.columns: dict[tuple[str, int], Fraction] = {}
        self.worst: dict[str, Fraction] = {}

    @property
    def total(self) -> Fraction:
        """The most that one person-round can have paid: in each partition she is in some batch."""
        return self.common + sum(self.worst.values())

    def put(self, partition: str, column: int, cost: Fraction) -> None:
        """That batch pays so much more."""
        paid = self.columns.get((partition, column), Fraction(0)) + cost
        self.columns[partition, column] = paid
        self.worst[partition] = max(self.worst.get(partition, Fraction(0)), paid)

    def add(self, other: BatchCosts, times: int = 1) -> None:
        """On the same people."""
        self.common += times * other.common
        for (partition, column), cost in other.columns.items():
            self.put(partition, column, times * cost)

    def after(self, other: BatchCosts) -> Fraction:
        """The total there would be after adding `other`, which is not added."""
        worst = dict(self.worst)
        for (partition, column), cost in other.columns.items():
            paid = self.columns.get((partition, column), Fraction(0)) + cost
            worst[partition] = max(worst.get(partition, Fraction(0)), paid)
        return self.common + other.common + sum(worst.values())


class Accountant(ABC):
    """Turns events into a guarantee, for a person who owns up to `rounds` rounds."""

    name: ClassVar[str]

    @abstractmethod
    def epsilon(self, event: Event, delta: float, rounds: int = 1) -> float:
        """What the event is worth as (epsilon, delta)."""

    @abstractmethod
    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """The delta at epsilon."""

    def _refuse(self, event: Event) -> UnknownEvent:
        return UnknownEvent(f"{self.name!r} accounting has no rule for {type(event).__name__} events.")


class Additive(Accountant):
    """Prices events, adds the prices up, converts the sum."""

    @abstractmethod
    def price(self, event: Event) -> Fraction | None:
        """The cost of one simple event, or None where there is no rule."""

    def squared(self, square: Fraction) -> Fraction | None:
        """The cost of Gaussian noise, real or rounded, by squared shifts over squared deviations."""
        return None

    @abstractmethod
    def convert(self, cost: float, delta: float) -> float:
        """The epsilon at delta of a total cost."""

    @abstractmethod
    def curve(self, cost: float, epsilon: float) -> float:
        """The delta at epsilon of a total cost."""

    @abstractmethod
    def owned(self, cost: Fraction, rounds: int) -> Fraction:
        """The cost to a person who owns `rounds` rounds."""

    def tally(self, event: Event) -> BatchCosts:
        """The cost of any event, batches kept apart."""
        made = BatchCosts()
        if isinstance(event, Composed):
            for part in event.events:
                made.add(self.tally(part))
        elif isinstance(event, Repeated):
            made.add(self.tally(event.event), event.times)
        elif isinstance(event, Parallel):
            made.common = max((self.tally(part).total for part in event.events), default=Fraction(0))
        elif isinstance(event, Columns):
            if self.price(Gaussian(0.0)) is None:
                raise self._refuse(event)
            for column, rho in enumerate(event.rhos, start=event.first):
                made.put(event.partition, column, self._priced(Gaussian(rho)))
        elif isinstance(event, NormalColumns):
            for column, square in enumerate(event.squares, start=event.first):
                if (cost := self.squared(Fraction(square))) is None:
                    raise self._refuse(event)
                made.put(event.partition, column, cost)
        else:
            made.common = self._priced(event)
        return made

    def epsilon(self, event: Event, delta: float, rounds: int = 1) -> float:
        """What the event is worth as (epsilon, delta)."""
        _validate.delta(delta)
        _validate.positive_int(rounds, "rounds")
        return self.convert(rounded_up(self.owned(self.tally(event).total, rounds)), delta)

    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """The delta at epsilon."""
        _validate.positive_int(rounds, "rounds")
        return self.curve(rounded_up(self.owned(self.tally(event).total, rounds)), epsilon)

    def _priced(self, event: Event) -> Fraction:
        cost = self.price(event)
        if cost is None:
            raise self._refuse(event)
        return cost


class Pure(Additive):
    """Pure privacy: the costs of parts add up."""

    name = "pure"

    def price(self, event: Event) -> Fraction | None:
        """A draw whose log-ratios span an interval that contains 0 is (span, 0)-private."""
        if isinstance(event, Selections):
            return event.count * Fraction(event.span)
        return Fraction(event.epsilon) if isinstance(event, Laplace) else None

    def convert(self, cost: float, delta: float) -> float:
        """Any delta: the cost is epsilon."""
        return cost

    def curve(self, cost: float, epsilon: float) -> float:
        """0 from the cost on; below it the most that (cost, 0)-privacy allows."""
        return 0.0 if epsilon >= cost else curves.pure_delta(cost, 1, epsilon)

    def owned(self, cost: Fraction, rounds: int) -> Fraction:
        """Log-ratios of neighbours of neighbours add."""
        return rounds * cost


class ZCdp(Additive):
    """Renyi divergences of every order a are at most a * rho, and add."""

    name = "zcdp"

    def price(self, event: Event) -> Fraction | None:
        """Theorem A1 for draws; a pure epsilon costs epsilon^2 / 2."""
        if isinstance(event, Selections):
            return event.count * Fraction(event.span) ** 2 / 8
        if isinstance(event, Laplace):
            return Fraction(event.epsilon) ** 2 / 2
        if isinstance(event, ContinuousGaussian):
            return self.squared(Fraction(event.mu) ** 2)
        return Fraction(event.rho) if isinstance(event, Gaussian) else None

    def squared(self, square: Fraction) -> Fraction:
        """Half of it."""
        return square / 2

    def convert(self, cost: float, delta: float) -> float:
        """The tight conversion."""
        return curves.zcdp_epsilon(cost, delta)

    def curve(self, cost: float, epsilon: float) -> float:
        """The tight conversion."""
        return curves.zcdp_delta(cost, epsilon)

    def owned(self, cost: Fraction, rounds: int) -> Fraction:
        """Group privacy: the square."""
        return rounds**2 * cost


class GaussianExact(Additive):
    """Gaussian noise, real or rounded: squares of mu add, and the curve is exact (Theorem A8)."""

    name = "continuous-gaussian"

    def price(self, event: Event) -> Fraction | None:
        """The square of mu."""
        return self.squared(Fraction(event.mu) ** 2) if isinstance(event, ContinuousGaussian) else None

    def squared(self, square: Fraction) -> Fraction | None:
        """The number itself, which is a square already."""
        return square

    def convert(self, cost: float, delta: float) -> float:
        """The exact curve."""
        return curves.gaussian_epsilon(root_up(cost), delta)

    def curve(self, cost: float, epsilon: float) -> float:
        """The exact curve."""
        return curves.gaussian_delta(root_up(cost), epsilon)

    def owned(self, cost: Fraction, rounds: int) -> Fraction:
        """mu grows in proportion."""
        return rounds**2 * cost


class Advanced(Accountant):
    """Advanced composition as in the paper: `count` pure mechanisms, each at most as costly as the worst of them."""

    name = "advanced"

    def steps(self, event: Event) -> tuple[float, int]:
        """The largest pure step and the number of steps."""
        if isinstance(event, Selections):
            return event.span, event.count
        if isinstance(event, Laplace):
            return event.epsilon, 1
        if isinstance(event, Repeated):
            step, count = self.steps(event.event)
            return step, count * event.times
        if isinstance(event, Composed):
            parts = [self.steps(part) for part in event.events]
            return max((step for step, _ in parts), default=0.0), sum(count for _, count in parts)
        raise self._refuse(event)

    def epsilon(self, event: Event, delta: float, rounds: int = 1) -> float:
        """The paper's formula; nothing at delta = 0."""
        _validate.delta(delta)
        _validate.positive_int(rounds, "rounds")
        step, count = self.steps(event)
        return curves.advanced_epsilon(step * rounds, count, delta) if delta > 0 else math.inf

    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """Delta at `epsilon`: the formula of `epsilon`, solved for delta."""
        step, count = self.steps(event)
        left = epsilon - count * step * rounds * math.expm1(step * rounds)
        if left <= 0 or step * count == 0:
            return 0.0 if step * count == 0 else 1.0
        return min(1.0, math.exp(-((left / (step * rounds)) ** 2) / (2 * count)) * (1 + curves.SLACK * 1e3))


ACCOUNTANTS: dict[str, Accountant] = {
    accountant.name: accountant for accountant in (Pure(), ZCdp(), GaussianExact(), Advanced())
}
"""Every way of counting by its name; a budget takes one of those that add up."""
