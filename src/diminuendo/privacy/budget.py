"""Budgets and guarantees: what is asked, and what is proved. Whom it protects is a field of both."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast

from diminuendo import _validate
from diminuendo.errors import InvalidInput, UnknownEvent
from diminuendo.privacy import curves
from diminuendo.privacy.accountants import ACCOUNTANTS, Additive, additive
from diminuendo.privacy.events import ContinuousGaussian, Event, Gaussian, Laplace
from diminuendo.privacy.rounding import lowered, rounded_up

Relation: TypeAlias = Literal["replace", "replace-with-context", "replace-with-exclusions"]
REPLACE: Relation = "replace"
REPLACE_WITH_CONTEXT: Relation = "replace-with-context"
REPLACE_WITH_EXCLUSIONS: Relation = "replace-with-exclusions"
RELATIONS = (REPLACE, REPLACE_WITH_CONTEXT, REPLACE_WITH_EXCLUSIONS)
"""Which changes of one user's rounds are hidden."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom a guarantee protects: everything that up to `rounds` rounds of one person said, and whether they answered.

    `replace`: any answers turned into any others, or into none; everything that is shown is protected, her own slates
    included, and contexts, where there are any, are public. `replace-with-context`: her contexts too, turned into any
    others; what everybody else sees is protected, but not her own slates, which follow from her contexts (joint
    differential privacy). What she excludes, where people may exclude items, is hidden with them.
    `replace-with-exclusions`: the same, where contexts are public, or there are none. That the rounds took place is
    public; removing a round altogether, so that later people move up, is not covered.
    """

    rounds: int = 1
    relation: Relation = REPLACE

    def __post_init__(self) -> None:
        _validate.positive_int(self.rounds, "rounds")
        _validate.one_of(self.relation, RELATIONS, "relation")

    def __str__(self) -> str:
        rounds = "one round" if self.rounds == 1 else f"one user's {self.rounds} rounds"
        context, whose = ("context", "its") if self.rounds == 1 else ("contexts", "their")
        hidden = {REPLACE_WITH_CONTEXT: context, REPLACE_WITH_EXCLUSIONS: "exclusions"}.get(self.relation)
        return f"replace {rounds}" + ("" if hidden is None else f" with {whose} {hidden}")

    @property
    def view(self) -> str:
        """Whose view is protected."""
        return "everybody" if self.relation == REPLACE else "all others"


REPLACE_ONE_ROUND = str(Unit())
USUAL_DELTA = 1e-6
"""The delta at which it is said what something would cost otherwise, where a budget has none."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent on one population, and how it is counted.

    `accountant` is fixed for good: switching between ways of counting as it suits would not be a proof.
    """

    epsilon: float
    delta: float
    unit: Unit = field(default_factory=Unit)
    accountant: Literal["zcdp", "pure", "continuous-gaussian"] = "zcdp"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.positive_float(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", _validate.delta(self.delta))
        _validate.one_of(self.accountant, ("zcdp", "pure", "continuous-gaussian"), "accountant")
        if not isinstance(self.unit, Unit):
            raise InvalidInput(f"unit must be a Unit, such as Unit(rounds=3); got {self.unit!r}.")
        if (self.delta == 0) != (self.accountant == "pure"):
            raise InvalidInput(
                f"delta = {self.delta:g} does not go with {self.accountant!r} accounting: "
                "'pure' has delta 0, the others a delta above 0."
            )

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:g}, delta {self.delta:g}; unit: {self.unit}; counted as {self.accountant}"
        )

    @property
    def counting(self) -> Additive:
        """The accountant that counts this budget."""
        return cast(Additive, ACCOUNTANTS[self.accountant])

    @property
    def limit(self) -> Fraction:
        """The largest total cost one round may have (rho, epsilon, mu^2), after what a person's rounds multiply."""
        if self.accountant == "pure":
            whole = Fraction(self.epsilon)
        elif self.accountant == "zcdp":
            whole = Fraction(curves.zcdp_rho(self.epsilon, self.delta))
        else:
            whole = Fraction(curves.gaussian_mu(self.epsilon, self.delta)) ** 2
        return whole / self.counting.owned(Fraction(1), self.unit.rounds)

    def worth(self, cost: Fraction, rounds: int | None = None) -> float:
        """The epsilon, at this delta, of what costs one round so much: never less than is proved.

        `rounds`: how many rounds one user may own, where that is not what the unit says. A cost up to `limit` is
        (epsilon, delta)-private by the choice of `limit`; there the conversion, which rounds up, may give a little more
        than the epsilon that was asked for, and the lesser of the two is returned. A cost beyond `limit` is never cut.
        """
        counting, owned = self.counting, self.unit.rounds if rounds is None else rounds
        whole = counting.owned(cost, owned)
        found = counting.convert(rounded_up(whole), self.delta)
        return min(found, self.epsilon) if whole <= counting.owned(self.limit, self.unit.rounds) else found

    def worth_of(self, event: Event, rounds: int | None = None) -> float:
        """The epsilon, at this delta, of an event; `rounds` as of `worth`."""
        return self.worth(self.counting.tally(event).total, rounds)

    def share(self, part: float = 1.0) -> Gaussian | Laplace | ContinuousGaussian:
        """The largest cost of a sum that fits into that part of the budget: `PrivateSum(..., cost=budget.share())`."""
        if not 0 < _validate.positive_float(part, "part") <= 1:
            raise InvalidInput(f"part must be above 0 and at most 1; got {part}.")
        # Rounded down by a hair: a float like .1 is a little more than a tenth, and ten tenths should fit.
        cost = float(self.limit * Fraction(part)) * (1 - 2.0**-50)
        if self.accountant == "continuous-gaussian":
            return ContinuousGaussian(lowered(math.sqrt(cost), lambda mu: Fraction(mu) ** 2 <= cost))
        return Laplace(cost) if self.accountant == "pure" else Gaussian(cost)

    def counted_otherwise(self, event: Event, alone: float) -> str:
        """What to do where an event that costs `alone` was made for another accountant; nothing where it was not."""
        found = []
        for name, accountant in additive().items():
            delta = 0.0 if name == "pure" else self.delta or USUAL_DELTA
            with suppress(UnknownEvent):
                found.append((accountant.epsilon(event, delta, self.unit.rounds), delta, name))
        least, delta, name = min(found)
        if least >= alone or least > self.epsilon * (1 + 1e-9):
            return ""
        return (
            f"Counted as {name} it costs {least:.6g} (delta {delta:g}): begin its ledger with "
            f"Budget(.., accountant={name!r}), or let make(.., ledger=FILE) begin one that fits. How a ledger counts "
            "does not change."
        )

    def renewed(self, periods: int) -> Budget:
        """What one person has in all, who comes in `periods` periods that have this budget each, and a ledger each.

        In each of them up to `unit.rounds` of her rounds count, and what she said is used in that period alone. Costs
        then add up (docs/maths/accounting.md, Theorem A10): epsilons with pure accounting, else rho or squares of mu,
        so that epsilon grows about like the root of the number of periods.
        """
        if _validate.positive_int(periods, "periods") == 1:
            return self
        whole = periods * self._whole
        found, more = replace(self, epsilon=self.counting.convert(rounded_up(whole), self.delta)), 2.0**-50
        while found._whole < whole:  # what fits into an epsilon is rounded down
            found, more = replace(self, epsilon=found.epsilon * (1 + more)), 2 * more
        return found

    def split(self, periods: int) -> Budget:
        """The budget of each of `periods` periods, so that one person who comes in all of them has this one in all."""
        if _validate.positive_int(periods, "periods") == 1:
            return self
        found, less = self.counting.convert(rounded_up(self._whole / periods), self.delta), 2.0**-50
        while found > 0 and not self._fits(replace(self, epsilon=found), periods):
            found, less = found * (1 - less), 2 * less  # conversions round up
        if found <= 0:
            raise InvalidInput(
                f"Epsilon {self.epsilon:g} with delta {self.delta:g} cannot be split over {periods} periods: "
                "what each would have is hidden by delta alone. Take fewer periods, or a smaller delta."
            )
        return replace(self, epsilon=found)

    @property
    def _whole(self) -> Fraction:
        """The largest total cost that one person may have, in all their rounds."""
        return self.counting.owned(self.limit, self.unit.rounds)

    def _fits(self, part: Budget, periods: int) -> bool:
        """Whether as many of these parts are paid for by this budget, to the last digit, and renewed give no more."""
        return periods * part._whole <= self._whole and part.renewed(periods).epsilon <= self.epsilon

    def as_json(self) -> dict[str, Any]:
        """Its facts by name, as files and reports hold them."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> Budget:
        """The budget of a record."""
        return cls(**(record | {"unit": Unit(**record["unit"])}))


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a learner promises about everything it lets out."""

    epsilon: float
    delta: float
    neighbours: str
    """Which change of the input is hidden."""
    proof: str
    """Where the promise is proved."""
    secure_coins: bool
    """False: computed for a run with seeded coins, which anybody with the seed can repeat."""
    exact: bool = True
    """False: proved for real numbers, which the floats that are computed with only resemble."""
    view: str = "everybody"
    """Whose view is protected: everybody's; or that of all others, where her own slates follow from private contexts or
    from what she excludes."""

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "none: not private"
        note = "" if self.view == "everybody" else f"; jointly: in the view of {self.view}"
        note += "" if self.exact else ", in real arithmetic"
        note += "" if self.secure_coins else ", seeded: for simulation only"
        return f"({self.epsilon:g}, {self.delta:g})-differentially private ({self.neighbours}{note})"

    def as_json(self) -> dict[str, Any]:
        """For files: an infinite epsilon is null."""
        return asdict(self) | {"epsilon": None if math.isinf(self.epsilon) else self.epsilon}


def no_privacy(secure_coins: bool) -> Guarantee:
    """For learners that promise nothing."""
    return Guarantee(math.inf, 1.0, REPLACE_ONE_ROUND, "nothing is claimed", secure_coins)


def perfect_privacy(proof: str, secure_coins: bool) -> Guarantee:
    """For learners whose slates do not depend on anybody."""
    return Guarantee(0.0, 0.0, REPLACE_ONE_ROUND, proof, secure_coins)
