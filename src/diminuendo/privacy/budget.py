"""Budgets and guarantees: what may be spent, and what is proved. The adjacency is a field of both."""

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
    """The unit of privacy: which inputs are adjacent, and whose view is protected.

    Parameters
    ----------
    rounds : int, default 1
        Maximum number of rounds that one user owns (contribution bound). From their next round on, nothing that
        this user answers is used.
    relation : {"replace", "replace-with-context", "replace-with-exclusions"}, default "replace"
        What may differ between adjacent inputs, in up to `rounds` rounds of one user:

        - `replace`: the feedback, turned into any other or into none. Everything that is shown is protected, also
        this
          user's own slates. Contexts, if there are any, are public.
        - `replace-with-context`: their contexts too, and the items they exclude, if users may exclude items. What
          all *other* users see is protected, but not this user's own slates, which follow from their contexts (joint
          differential privacy).
        - `replace-with-exclusions`: the feedback and the items they exclude; contexts are public. Joint, as above.

    Raises
    ------
    InvalidInput
        If `rounds` is not a positive integer, or the relation is unknown.

    Notes
    -----
    That the rounds took place is public. Adding or removing a round, so that later users move up, is not covered.
    The factor for several rounds is Theorem A9 of docs/maths/accounting.md; the joint relations are Theorem X1 of
    docs/maths/contexts.md and Theorem Y3 of docs/maths/rules.md.

    References
    ----------
    Kearns, Pai, Roth & Ullman (2014), Mechanism design in large games: incentives and privacy, ITCS, for joint
    differential privacy.

    Examples
    --------
    >>> from diminuendo.privacy import Unit
    >>> print(Unit(rounds=3))
    replace one user's 3 rounds
    >>> print(Unit(relation="replace-with-context"), "/", Unit(relation="replace-with-context").view)
    replace one round with its context / all others
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
        """Whose view is protected: "everybody" for `replace`, "all others" for the joint relations."""
        return "everybody" if self.relation == REPLACE else "all others"


REPLACE_ONE_ROUND = str(Unit())
USUAL_DELTA = 1e-6
"""The delta at which it is said what something would cost otherwise, where a budget has none."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent on one population, and how it is counted.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        0 with accountant "pure", above 0 and below 1 with the others.
    unit : Unit, optional
        Adjacency. By default one round is replaced.
    accountant : {"zcdp", "pure", "continuous-gaussian"}, default "zcdp"
        How costs add up. It is fixed for good: stopping when either of two accountants is exhausted is not proved.

    Raises
    ------
    InvalidInput
        If epsilon, delta and accountant do not go together.

    Notes
    -----
    Costs are added as exact fractions and converted once, rounded outward: Theorem A2 of docs/maths/accounting.md
    for `zcdp`, Theorems A3 and A8 for `continuous-gaussian`. `pure` adds epsilons. A user with m rounds pays m**2
    times as much (m times with `pure`; Theorems A6 and A9).

    See Also
    --------
    Ledger : charges costs to a budget.
    diminuendo.budget_for : the budget that a learner of a setting needs.

    Examples
    --------
    >>> from diminuendo.privacy import Budget, Laplace, Unit
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> print(budget)
    epsilon 1, delta 1e-06; unit: replace one round; counted as zcdp
    >>> Budget(epsilon=1.0, delta=0.0, unit=Unit(rounds=4), accountant="pure").limit  # for each round
    Fraction(1, 4)
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
        """The largest total cost of one round, after the factor of the unit: rho, epsilon, or mu squared."""
        if self.accountant == "pure":
            whole = Fraction(self.epsilon)
        elif self.accountant == "zcdp":
            whole = Fraction(curves.zcdp_rho(self.epsilon, self.delta))
        else:
            whole = Fraction(curves.gaussian_mu(self.epsilon, self.delta)) ** 2
        return whole / self.counting.owned(Fraction(1), self.unit.rounds)

    def worth(self, cost: Fraction, rounds: int | None = None) -> float:
        """Return the epsilon, at this budget's delta, of a total cost of one round.

        Parameters
        ----------
        cost : Fraction
            In the accountant's unit: rho, epsilon, or mu squared.
        rounds : int, optional
            How many rounds one user may own. By default `unit.rounds`.

        Returns
        -------
        float
            Never less than is proved. A cost up to `limit` is (epsilon, delta)-DP by the choice of `limit`. There
            the conversion, which rounds up, may exceed the epsilon of the budget slightly, and the lesser of the
            two is returned. A cost beyond `limit` is never cut.
        """
        counting, owned = self.counting, self.unit.rounds if rounds is None else rounds
        whole = counting.owned(cost, owned)
        result = counting.convert(rounded_up(whole), self.delta)
        return min(result, self.epsilon) if whole <= counting.owned(self.limit, self.unit.rounds) else result

    def worth_of(self, event: Event, rounds: int | None = None) -> float:
        """Return the epsilon, at this budget's delta, of an event.

        Parameters
        ----------
        event : Event
            A cost.
        rounds : int, optional
            How many rounds one user may own. By default `unit.rounds`.

        Returns
        -------
        float

        Raises
        ------
        UnknownEvent
            If the accountant has no rule for this event.

        Examples
        --------
        >>> from diminuendo.privacy import Budget, Gaussian
        >>> round(Budget(1.0, 1e-6).worth_of(Gaussian(rho=0.01)), 3)
        0.622
        """
        return self.worth(self.counting.tally(event).total, rounds)

    def share(self, part: float = 1.0) -> Gaussian | Laplace | ContinuousGaussian:
        """Return the largest event that a part of the budget pays for.

        Parameters
        ----------
        part : float, default 1.0
            Fraction of the budget, above 0 and at most 1. Parts that add up to 1 fit together.

        Returns
        -------
        Gaussian or Laplace or ContinuousGaussian
            By accountant: `zcdp`, `pure`, `continuous-gaussian`. For instance `PrivateSum(...,
            cost=budget.share())`.

        Raises
        ------
        InvalidInput
            If `part` is not in (0, 1].

        Examples
        --------
        >>> from diminuendo.privacy import Budget
        >>> Budget(1.0, 0.0, accountant="pure").share(0.25).epsilon < 0.25  # rounded down by a hair
        True
        """
        if not 0 < _validate.positive_float(part, "part") <= 1:
            raise InvalidInput(f"part must be above 0 and at most 1; got {part}.")
        # Rounded down by a hair: a float like .1 is a little more than a tenth, and ten tenths should fit.
        cost = float(self.limit * Fraction(part)) * (1 - 2.0**-50)
        if self.accountant == "continuous-gaussian":
            return ContinuousGaussian(lowered(math.sqrt(cost), lambda mu: Fraction(mu) ** 2 <= cost))
        return Laplace(cost) if self.accountant == "pure" else Gaussian(cost)

    def counted_otherwise(self, event: Event, alone: float) -> str:
        """What to do where an event that costs `alone` was made for another accountant; nothing where it was not."""
        result = []
        for name, accountant in additive().items():
            delta = 0.0 if name == "pure" else self.delta or USUAL_DELTA
            with suppress(UnknownEvent):
                result.append((accountant.epsilon(event, delta, self.unit.rounds), delta, name))
        least, delta, name = min(result)
        if least >= alone or least > self.epsilon * (1 + 1e-9):
            return ""
        return (
            f"Counted as {name} it costs {least:.6g} (delta {delta:g}): begin its ledger with "
            f"Budget(.., accountant={name!r}), or let make(.., ledger=FILE) begin one that fits. How a ledger counts "
            "does not change."
        )

    def renewed(self, periods: int) -> Budget:
        """Return the budget of one user over several periods, each with this budget and a ledger of its own.

        Parameters
        ----------
        periods : int
            Number of periods in which the user comes, with up to `unit.rounds` rounds that count in each.

        Returns
        -------
        Budget
            With the same delta and unit.

        Notes
        -----
        Theorem A10 of docs/maths/accounting.md: what a user answers is used in one period alone, so costs of
        periods add: epsilons with `pure`, else rho or squares of mu, and epsilon grows about like the root of
        `periods`. Periods must begin by the calendar or by other public facts.

        Examples
        --------
        >>> from diminuendo.privacy import Budget
        >>> round(Budget(1.0, 1e-6).renewed(12).epsilon, 2)
        3.86
        >>> Budget(1.0, 0.0, accountant="pure").renewed(12).epsilon
        12.0
        """
        if _validate.positive_int(periods, "periods") == 1:
            return self
        whole = periods * self._whole
        result, more = replace(self, epsilon=self.counting.convert(rounded_up(whole), self.delta)), 2.0**-50
        while result._whole < whole:  # what fits into an epsilon is rounded down
            result, more = replace(self, epsilon=result.epsilon * (1 + more)), 2 * more
        return result

    def split(self, periods: int) -> Budget:
        """Return the budget of each of several periods, so that a user who comes in all of them has this budget in all.

        Parameters
        ----------
        periods : int
            Number of periods.

        Returns
        -------
        Budget
            With the same delta and unit; `renewed(periods)` of it is at most this budget.

        Raises
        ------
        InvalidInput
            If what each period would have is covered by delta alone.

        Examples
        --------
        >>> from diminuendo.privacy import Budget
        >>> month = Budget(1.0, 1e-6).split(12)
        >>> round(month.epsilon, 3), month.renewed(12).epsilon <= 1.0
        (0.266, True)
        """
        if _validate.positive_int(periods, "periods") == 1:
            return self
        result, less = self.counting.convert(rounded_up(self._whole / periods), self.delta), 2.0**-50
        while result > 0 and not self._fits(replace(self, epsilon=result), periods):
            result, less = result * (1 - less), 2 * less  # conversions round up
        if result <= 0:
            raise InvalidInput(
                f"Epsilon {self.epsilon:g} with delta {self.delta:g} cannot be split over {periods} periods: "
                "what each would have is hidden by delta alone. Take fewer periods, or a smaller delta."
            )
        return replace(self, epsilon=result)

    @property
    def _whole(self) -> Fraction:
        """The largest total cost that one user may have, in all their rounds."""
        return self.counting.owned(self.limit, self.unit.rounds)

    def _fits(self, part: Budget, periods: int) -> bool:
        """Whether as many of these parts are paid for by this budget, to the last digit, and renewed give no more."""
        return periods * part._whole <= self._whole and part.renewed(periods).epsilon <= self.epsilon

    def as_json(self) -> dict[str, Any]:
        """Return its fields by name, as files and reports hold them."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> Budget:
        """Return the budget of a record that `as_json` wrote.

        Parameters
        ----------
        record : dict
            With the fields of `Budget`; `unit` is a record itself.

        Returns
        -------
        Budget
        """
        return cls(**(record | {"unit": Unit(**record["unit"])}))


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is proved about everything that a learner publishes.

    Attributes
    ----------
    epsilon, delta : float
        The parameters. An infinite epsilon means that nothing is claimed.
    neighbours : str
        Adjacency: which change of the input is hidden (`str(Unit(...))`).
    proof : str
        The page and theorem that prove it.
    secure_rng : bool
        False if the randomness is seeded. The run can be repeated from the seed, so nothing is hidden.
    exact : bool, default True
        False if the proof is for real numbers and the program computes with floats.
    view : str, default "everybody"
        Whose view is protected: everybody's, or "all others" under joint differential privacy, where a user's own
        slates follow from their private contexts or exclusions.

    Notes
    -----
    The statement is: for adjacent inputs, the laws P and Q of the view satisfy P(S) <= exp(epsilon) Q(S) + delta
    for every set S. The view is the full record of what is published over all rounds (continual release).

    Examples
    --------
    >>> from diminuendo.privacy import Budget, Ledger, Unit
    >>> print(Ledger(Budget(1.0, 1e-6, Unit(rounds=3))).guarantee())
    (1, 1e-06)-differentially private (replace one user's 3 rounds)

    """

    epsilon: float
    delta: float
    neighbours: str
    proof: str
    secure_rng: bool
    exact: bool = True
    view: str = "everybody"

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "none: not private"
        note = "" if self.view == "everybody" else f"; jointly: in the view of {self.view}"
        note += "" if self.exact else ", in real arithmetic"
        note += "" if self.secure_rng else ", seeded: for simulation only"
        return f"({self.epsilon:g}, {self.delta:g})-differentially private ({self.neighbours}{note})"

    def as_json(self) -> dict[str, Any]:
        """Return its fields by name, for files. An infinite epsilon is None (null)."""
        return asdict(self) | {"epsilon": None if math.isinf(self.epsilon) else self.epsilon}


def no_privacy(secure_rng: bool) -> Guarantee:
    """For learners that promise nothing."""
    return Guarantee(math.inf, 1.0, REPLACE_ONE_ROUND, "nothing is claimed", secure_rng)


def perfect_privacy(proof: str, secure_rng: bool) -> Guarantee:
    """For learners whose slates do not depend on feedback."""
    return Guarantee(0.0, 0.0, REPLACE_ONE_ROUND, proof, secure_rng)
