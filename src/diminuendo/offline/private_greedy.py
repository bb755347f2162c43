r"""Private greedy: k items for everybody at once, each drawn in proportion to exp(rate * what it adds).

Non-private greedy takes the item that adds most to what people have. Here each pick is a draw by the exponential
mechanism among the items not yet taken; the more people there are, the closer it is to greedy.

A person's gains are cut to [0, 1], and further to what is *left* of her: one unit less what earlier picks gave her
(streams/walks.py). People whose objective is monotone with values in [0, 1] never notice the second cut; it is what
makes `pure` and `telescoping` cheap.

Three ways to count, all proved in docs/maths/private-greedy.md, for one person replaced by another:

    pure         (k + 1) * rate, not the 2 k * rate of adding up draws          Theorem G1, b
    zcdp         k draws, each within an interval of 2 * rate                   Theorem G1, a
    telescoping  delta = tanh(rate / 2) exp(-epsilon / (e^rate - 1)), any k     Theorem G3

Guarantee  `PrivateSlate.guarantee`. The slate is all that may be published: its value and gains are not in the result.
Utility    E F(slate) >= c (best - k (log N / rate + people / 2^20)), c = 1 - (1 - 1/k)^k >= 1 - 1/e  (Theorem G2).
Assumes    exact draws (docs/maths/exponential.md). The number of people and of items is public. Excludes timing.
References Gupta, Ligett, McSherry, Roth & Talwar (2010), SODA; Mitrovic, Bun, Krause & Karbasi (2017), ICML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.privacy import calibrate, curves
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget, Guarantee
from diminuendo.privacy.events import Laplace, Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.rounding import greatest, least, lowered, rounded_up
from diminuendo.randomness.coins import Coins, SystemCoins
from diminuendo.randomness.exponential import select
from diminuendo.randomness.ticks import TICKS
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.people import Stream
from diminuendo.streams.walks import ScoreWalk, segments_of
from diminuendo.types import Ints, Slate

CALIBRATIONS = {"pure": "Theorem G1, b", "zcdp": "Theorem G1, a", "telescoping": "Theorem G3"}
"""Ways to count -> where each is proved."""

SPAN = 2
"""By how many units one person moves a difference of scores: one up, one down."""


@dataclass(frozen=True)
class PrivateSlate:
    """A slate drawn privately, and what is public about how; nothing about how good it is."""

    slate: Slate
    """Items in the order in which they were drawn."""
    guarantee: Guarantee
    event: Laplace | Selections
    """What drawing cost, for a ledger: one round's cost."""
    calibration: str
    rate: float
    """Per unit of gain: weights are exp(rate * people who gain a whole unit)."""
    n_items: int
    people: int

    @property
    def loss(self) -> float:
        """Mean value in expectation is at least (1 - 1/e) of the best slate's, minus this (Theorem G2)."""
        k = len(self.slate)
        each = math.log(self.n_items) / (self.rate * max(1, self.people)) + 1 / TICKS
        return -math.expm1(k * math.log1p(-1 / k)) * k * each if k > 1 else each

    def epsilons(self, delta: float, rounds: int = 1) -> dict[str, float]:
        """The epsilon at `delta` that each way of counting proves for this very run, and what others would say.

        `basic` and `advanced` are compositions of k draws, each (2 * rate)-private, as in Mitrovic et al. (2017).
        """
        return claims(len(self.slate), self.rate, delta, rounds)


def claims(slots: int, rate: float, delta: float, rounds: int = 1) -> dict[str, float]:
    """The epsilon at `delta` of `slots` draws at that rate, by every way of counting; infinite: it says nothing."""
    k, each = _validate.positive_int(slots, "slots"), _validate.positive_float(rate, "rate")
    _validate.delta(delta)
    _validate.positive_int(rounds, "rounds")
    draws, whole = Selections(k, SPAN * each), Laplace(_in_all(k, each))
    return {
        "pure": ACCOUNTANTS["pure"].epsilon(whole, delta, rounds),
        "zcdp": ACCOUNTANTS["zcdp"].epsilon(draws, delta, rounds) if delta > 0 else math.inf,
        "telescoping": least(lambda epsilon: telescoping_delta(each * rounds, epsilon) <= delta)
        if delta > 0
        else math.inf,
        "basic": ACCOUNTANTS["pure"].epsilon(draws, delta, rounds),
        "advanced": ACCOUNTANTS["advanced"].epsilon(draws, delta, rounds),
    }


def telescoping_delta(rate: float, epsilon: float) -> float:
    """The delta at epsilon of any number of picks at that rate, rounded up (Theorem G3)."""
    power = epsilon / (math.expm1(rate) if rate < 700 else math.inf)
    rounded = math.tanh(rate / 2) * math.exp(-power * (1 - curves.SLACK)) * (1 + curves.SLACK)
    return min(1.0, rounded) or math.ulp(0.0)


def private_greedy(
    people: Stream,
    slots: int,
    *,
    budget: Budget,
    calibration: str | None = None,
    ledger: Ledger | None = None,
    name: str = "slate",
    coins: Coins | None = None,
) -> PrivateSlate:
    """One slate for all of `people`, drawn at the highest rate that `budget` allows.

    `calibration=None` takes whichever way of counting allows the highest rate. With a `ledger` the event is charged
    under `name` before anything is drawn, and the slate is kept: after a crash the same call returns the same slate.
    A ledger adds up costs, so there the way of counting is the budget's own.

    >>> from diminuendo.privacy import Budget
    >>> from diminuendo.streams import msweb
    >>> found = private_greedy(msweb(), 3, budget=Budget(1.0, 0.0, accountant="pure"))
    >>> len(found.slate), found.rate
    (3, 0.25)
    """
    k = _validate.slots(slots, people.n_items)
    if not isinstance(budget, Budget):
        raise InvalidInput(f"budget must be a Budget, such as Budget(1.0, 1e-6); got {budget!r}.")
    if not (ledger is None or isinstance(ledger, Ledger)):
        raise InvalidInput(f"ledger must be a Ledger; got {type(ledger).__name__}.")
    calibration, rate = _calibrated(budget, k, calibration, ledger)
    event = _event(budget if ledger is None else ledger.budget, k, rate)
    secret = SecretRandomness(SystemCoins() if coins is None else coins)
    if ledger is None:
        drawn = _draw(people, k, rate, secret)
    else:
        paid = ledger.buy(event, name, f"{k} of {people.n_items} items, by private greedy")
        drawn = paid.once("items", lambda: _draw(people, k, rate, secret), secret)
    proof = f"docs/maths/private-greedy.md, {CALIBRATIONS[calibration]}"
    delta = 0.0 if calibration == "pure" else budget.delta
    epsilon = _worth(budget, k, rate * TICKS, calibration)
    guarantee = Guarantee(epsilon, delta, str(budget.unit), proof, secret.secure)
    slate = tuple(int(item) for item in drawn)
    return PrivateSlate(slate, guarantee, event, calibration, rate * TICKS, people.n_items, len(people))


def _calibrated(budget: Budget, k: int, wanted: str | None, ledger: Ledger | None) -> tuple[str, float]:
    """The way of counting, and the highest rate per tick that it allows."""
    if wanted is not None:
        _validate.one_of(wanted, CALIBRATIONS, "calibration")
    if ledger is not None:
        own = budget.accountant
        if wanted not in (None, own) or ledger.budget.accountant != own:
            raise InvalidInput(
                f"This ledger adds up costs as {ledger.budget.accountant!r}: give a budget that is counted so, and no "
                f"other calibration; got a budget counted as {own!r}, calibration {wanted!r}."
            )
        wanted = own
    rates = {name: rate_per_tick(budget, k, name) for name in CALIBRATIONS if wanted in (None, name)}
    best = max(rates, key=lambda name: rates[name])
    if rates[best] <= 0:
        raise InvalidInput(
            f"{best!r} needs a delta above 0, and an epsilon that is not tiny; got {budget}. With delta = 0 use 'pure'."
        )
    return best, rates[best]


def rate_per_tick(budget: Budget, slots: int, calibration: str) -> float:
    """The highest rate, per tick, that the budget allows; 0 where there is none."""
    rounds = budget.unit.rounds
    if calibration == "pure":  # allowed for any delta
        limit = Fraction(budget.epsilon) / rounds
        return lowered(
            float(limit / (TICKS * (slots + 1))), lambda rate: _in_all(slots, rate * TICKS) <= limit
        )
    if budget.delta == 0:
        return 0.0
    if calibration == "zcdp":
        return calibrate.selections(budget, slots, SPAN * TICKS)[0]
    return greatest(lambda rate: telescoping_delta(rate * rounds * TICKS, budget.epsilon) <= budget.delta)


def _worth(budget: Budget, k: int, rate: float, calibration: str) -> float:
    """The epsilon that this way of counting proves of k draws at that rate."""
    if calibration == "pure":
        return replace(budget, delta=0.0, accountant="pure").worth_of(Laplace(_in_all(k, rate)))
    if calibration == "zcdp":
        return replace(budget, accountant="zcdp").worth_of(Selections(k, SPAN * rate))
    if telescoping_delta(rate * budget.unit.rounds, budget.epsilon) <= budget.delta:
        return budget.epsilon
    return claims(k, rate, budget.delta, budget.unit.rounds)["telescoping"]


def _event(budget: Budget, k: int, rate: float) -> Laplace | Selections:
    if budget.accountant == "pure":
        return Laplace(_in_all(k, rate * TICKS))
    return Selections(k, SPAN * rate * TICKS)  # powers of two: nothing is rounded


def _in_all(k: int, rate: float) -> float:
    """The most that log-ratios of the whole slate can be (Theorem G1, b), rounded up."""
    return rounded_up((k + 1) * Fraction(rate))


def _draw(people: Stream, k: int, rate: float, secret: SecretRandomness) -> Ints:
    """k picks; the secret scores never leave this function."""
    walk, left = ScoreWalk(people.n_items, segments_of(people)), np.arange(people.n_items)
    for _ in range(k):
        pick = select(walk.scores()[left], rate, secret)
        walk.join(int(left[pick]))
        left = np.delete(left, pick)
    return np.array(walk.chosen, dtype=np.int64)
