"""Accountants: from events to (epsilon, delta). They know no mechanism, only events, and refuse events without a rule.

    pure                 pure costs add: (epsilon, 0)
    zcdp                 squares of costs add, converted once by the tight formula; the default
    continuous-gaussian  exact for Gaussian noise, real or rounded to integers, and for nothing else
    advanced             advanced composition as the paper uses it, for comparison

Costs are added as fractions, so nothing drifts, and converted once, rounding outward. Costs that all users pay are
added first, then batch by batch those that not all users pay (Theorem A7). A user with `rounds` rounds pays that
factor with pure costs, and its square with zCDP and squares of mu (Theorem A6). Proofs are in docs/maths/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from diminuendo import _validate
from diminuendo.errors import UnknownEvent
from diminuendo.privacy import curves, events
from diminuendo.privacy.events import Event
from diminuendo.privacy.rounding import root_up, rounded_up


class BatchCosts:
    """A running total: what all users paid, and what each batch of each partition paid besides.

    Adding in place takes no longer as it grows.
    """

    def __init__(self) -> None:
        self.common = Fraction(0)
        self.columns: dict[tuple[str, int], Fraction] = {}
        self.worst: dict[str, Fraction] = {}

    @property
    def total(self) -> Fraction:
        """The most that one user-round can have paid: in each partition the round is in some batch."""
        return self.common + sum(self.worst.values())

    def put(self, partition: str, column: int, cost: Fraction) -> None:
        """That batch pays so much more."""
        paid = self.columns.get((partition, column), Fraction(0)) + cost
        self.columns[partition, column] = paid
        self.worst[partition] = max(self.worst.get(partition, Fraction(0)), paid)

    def add(self, other: BatchCosts, times: int = 1) -> BatchCosts:
        """On the same users; returns itself."""
        self.common, columns, worst = self._with(other, times)
        self.columns.update(columns)
        self.worst.update(worst)
        return self

    def plus(self, other: BatchCosts) -> BatchCosts:
        """The sum of both, which stay as they are, also if this fails in its midst."""
        result = BatchCosts()
        result.common, columns, worst = self._with(other)
        result.columns, result.worst = self.columns | columns, self.worst | worst
        return result

    def after(self, other: BatchCosts) -> Fraction:
        """The total there would be after adding `other`, which is not added."""
        common, _, worst = self._with(other)
        return common + sum((self.worst | worst).values())

    def _with(
        self, other: BatchCosts, times: int = 1
    ) -> tuple[Fraction, dict[tuple[str, int], Fraction], dict[str, Fraction]]:
        """What would be other numbers after adding `other`."""
        columns = {
            key: self.columns.get(key, Fraction(0)) + times * cost for key, cost in other.columns.items()
        }
        worst: dict[str, Fraction] = {}
        for (partition, _), paid in columns.items():
            before = worst.get(partition, self.worst.get(partition, Fraction(0)))
            worst[partition] = max(before, paid)
        return self.common + times * other.common, columns, worst


class Accountant(ABC):
    """Turns events into (epsilon, delta), for a user who owns up to `rounds` rounds.

    Attributes
    ----------
    name : str
        Key in `ACCOUNTANTS`, and value of `Budget.accountant`.

    See Also
    --------
    Budget : fixes one accountant for a population.
    """

    name: str

    @abstractmethod
    def epsilon(self, event: Event, delta: float, rounds: int = 1) -> float:
        """Return the epsilon of an event at a delta.

        Parameters
        ----------
        event : Event
            Cost of a run.
        delta : float
            From 0 (inclusive) to 1.
        rounds : int, default 1
            Maximum number of rounds that one user owns (`Unit.rounds`).

        Returns
        -------
        float
            Never below what is proved: rounding goes outward.

        Raises
        ------
        UnknownEvent
            If this accountant has no rule for a part of the event.
        """

    @abstractmethod
    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """Return the delta of an event at an epsilon.

        Parameters
        ----------
        event : Event
            Cost of a run.
        epsilon : float
            At which epsilon.
        rounds : int, default 1
            Maximum number of rounds that one user owns.

        Returns
        -------
        float
            From 0 to 1, rounded up.

        Raises
        ------
        UnknownEvent
            If this accountant has no rule for a part of the event.
        """

    def _refuse(self, event: Event) -> UnknownEvent:
        knowing = [repr(other) for other, each in additive().items() if type(event) in each.prices]
        others = f" These have: {', '.join(knowing)}." if knowing else ""
        return UnknownEvent(
            f"{self.name!r} accounting has no rule for {type(event).__name__} events.{others} How a ledger counts is "
            "fixed when it is begun, with Budget(.., accountant=..); make(.., ledger=FILE) begins one that fits."
        )


@dataclass(frozen=True, repr=False, eq=False)
class Additive(Accountant):
    """Prices events, adds the prices as exact fractions, and converts the sum once.

    Parameters
    ----------
    name : str
        Name in `ACCOUNTANTS`.
    prices : mapping of type to callable
        Cost of a simple event of each kind, or of each number of an event with columns. Other kinds are refused.
    convert : callable
        The epsilon of a total cost, at a delta.
    curve : callable
        The delta of a total cost, at an epsilon.
    power : int, default 2
        A user with m rounds pays m**power times the cost of one round (Theorem A6 of docs/maths/accounting.md):
        1 for pure costs, 2 for rho and for squares of mu.

    """

    name: str
    prices: Mapping[type, Callable[[Any], Fraction]]
    convert: Callable[[float, float], float]
    curve: Callable[[float, float], float]
    power: int = 2

    def owned(self, cost: Fraction, rounds: int) -> Fraction:
        """The cost to a user who owns `rounds` rounds."""
        return Fraction(rounds) ** self.power * cost

    def tally(self, event: Event) -> BatchCosts:
        """The cost of any event, batches kept apart."""
        costs = BatchCosts()
        if isinstance(event, events.Composed):
            for part in event.events:
                costs.add(self.tally(part))
        elif isinstance(event, events.Repeated):
            costs.add(self.tally(event.event), event.times)
        elif isinstance(event, events.Parallel):
            costs.common = max((self.tally(part).total for part in event.events), default=Fraction(0))
        elif type(event) not in self.prices:
            raise self._refuse(event)
        elif isinstance(event, events.NormalColumns):
            for column, number in enumerate(event.squares, start=event.first):
                costs.put(event.partition, column, self.prices[type(event)](number))
        else:
            costs.common = self.prices[type(event)](event)
        return costs

    def epsilon(self, event: Event, delta: float, rounds: int = 1) -> float:
        """What the event is worth as (epsilon, delta)."""
        _validate.delta(delta)
        _validate.positive_int(rounds, "rounds")
        return self.convert(rounded_up(self.owned(self.tally(event).total, rounds)), delta)

    def delta(self, event: Event, epsilon: float, rounds: int = 1) -> float:
        """The delta at epsilon."""
        _validate.positive_int(rounds, "rounds")
        return self.curve(rounded_up(self.owned(self.tally(event).total, rounds)), epsilon)


PURE = Additive(
    "pure",
    {
        # A draw whose log-ratios span an interval that contains 0 is (span, 0)-private.
        events.Selections: lambda draws: draws.count * Fraction(draws.span),
        events.Laplace: lambda noise: Fraction(noise.epsilon),
    },
    convert=lambda cost, delta: cost,
    curve=lambda cost, epsilon: 0.0 if epsilon >= cost else curves.pure_delta(cost, 1, epsilon),
    power=1,  # log-ratios of neighbours of neighbours add
)
"""Pure privacy: the costs of parts add up."""

ZCDP = Additive(
    "zcdp",
    {
        events.Selections: lambda draws: draws.count * Fraction(draws.span) ** 2 / 8,  # Theorem A1
        events.Laplace: lambda noise: Fraction(noise.epsilon) ** 2 / 2,
        events.Gaussian: lambda noise: Fraction(noise.rho),
        events.ContinuousGaussian: lambda noise: Fraction(noise.mu) ** 2 / 2,
        events.NormalColumns: lambda square: Fraction(square) / 2,
    },
    convert=curves.zcdp_epsilon,
    curve=curves.zcdp_delta,
)
"""Renyi divergences of every order a are at most a * rho, and add."""

GAUSSIAN = Additive(
    "continuous-gaussian",
    {events.ContinuousGaussian: lambda noise: Fraction(noise.mu) ** 2, events.NormalColumns: Fraction},
    convert=lambda square, delta: curves.gaussian_epsilon(root_up(square), delta),
    curve=lambda square, epsilon: curves.gaussian_delta(root_up(square), epsilon),
)
"""Gaussian noise, real or rounded: squares of mu add, and the curve is exact (Theorem A8)."""


class Advanced(Accountant):
    """Advanced composition as in the paper: `count` pure mechanisms, each at most as costly as the worst of them."""

    name = "advanced"

    def steps(self, event: Event) -> tuple[float, int]:
        """The largest pure step and the number of steps."""
        if isinstance(event, events.Selections):
            return event.span, event.count
        if isinstance(event, events.Laplace):
            return event.epsilon, 1
        if isinstance(event, events.Repeated):
            step, count = self.steps(event.event)
            return step, count * event.times
        if isinstance(event, events.Composed):
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
        result = math.exp(-((left / (step * rounds)) ** 2) / (2 * count)) * (1 + curves.SLACK * 1e3)
        return min(1.0, result) or math.ulp(0.0)  # it underflows, and advanced composition is never pure


ACCOUNTANTS: dict[str, Accountant] = {
    accountant.name: accountant for accountant in (PURE, ZCDP, GAUSSIAN, Advanced())
}
"""Every way of counting by its name; a budget takes one of those that add up."""


def additive() -> dict[str, Additive]:
    """Those that add up, which budgets are counted by."""
    return {name: each for name, each in ACCOUNTANTS.items() if isinstance(each, Additive)}
