"""Private greedy: k items for all users at once, each drawn with probability proportional to exp(rate * its gain).

Each pick is a draw by the exponential mechanism among the items not yet taken; the more users there are, the closer it
is to greedy. A user's gains are clipped to [0, 1], and further to what is *left* of the user: one unit minus what
earlier picks gave them (streams/walks.py). An objective that is monotone with values in [0, 1] never meets the second
bound; it is what makes `pure` and `telescoping` cheap.

Three ways of accounting, all proved in docs/maths/private-greedy.md, replacing one user's objective:

    pure         (k + 1) * rate, not the 2 k * rate of adding up draws          Theorem G1, b
    zcdp         k draws, each within an interval of 2 * rate                   Theorem G1, a
    telescoping  delta = tanh(rate / 2) exp(-epsilon / (e^rate - 1)), any k     Theorem G3

Guarantee  `PrivateSlate.guarantee`. Only the slate may be published: its value and gains are not in the result.
Assumes    exact draws (docs/maths/exponential.md). The numbers of users and of items are public. Excludes timing.
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
from diminuendo.randomness.exponential import select
from diminuendo.randomness.sources import RandomSource, SystemSource
from diminuendo.randomness.ticks import TICKS
from diminuendo.randomness.words import SecretRandomness
from diminuendo.streams.users import Stream
from diminuendo.streams.walks import ScoreWalk, segments_of
from diminuendo.types import Ints, Slate

CALIBRATIONS = {"pure": "Theorem G1, b", "zcdp": "Theorem G1, a", "telescoping": "Theorem G3"}
"""Ways to count -> where each is proved."""

SPAN = 2
"""By how many units one user moves a difference of scores: one up, one down."""


@dataclass(frozen=True)
class PrivateSlate:
    """A slate drawn privately, and what is public about how. Nothing about how good it is.

    Attributes
    ----------
    slate : tuple of int
        Items in the order in which they were drawn.
    guarantee : Guarantee
        What is proved about the slate.
    event : Laplace or Selections
        What the draw cost, for a ledger.
    calibration : {"pure", "zcdp", "telescoping"}
        Which proof set the rate.
    rate : float
        Weights of a draw are exp(rate * sum of users' gains).
    n_items : int
        Number of items.
    users : int
        Number of users.

    """

    slate: Slate
    guarantee: Guarantee
    event: Laplace | Selections
    calibration: str
    rate: float
    n_items: int
    users: int

    @property
    def loss(self) -> float:
        """How far the mean value may fall below (1 - 1/e) times the best slate's, in expectation (Theorem G2)."""
        k = len(self.slate)
        each = math.log(self.n_items) / (self.rate * max(1, self.users)) + 1 / TICKS
        return -math.expm1(k * math.log1p(-1 / k)) * k * each if k > 1 else each

    def epsilons(self, delta: float, rounds: int = 1) -> dict[str, float]:
        """Return the epsilon that each way of accounting proves for this draw, and what others would claim.

        Parameters
        ----------
        delta : float
            From 0 (inclusive) to 1.
        rounds : int, default 1
            How many of the rows one user may own.

        Returns
        -------
        dict of str to float
            "pure", "zcdp" and "telescoping" as proved; "basic" and "advanced" compose k draws that are (2 *
            rate)-DP each, as Mitrovic et al. (2017) do. Infinite where an accountant proves nothing.
        """
        return claims(len(self.slate), self.rate, delta, rounds)


def claims(slots: int, rate: float, delta: float, rounds: int = 1) -> dict[str, float]:
    """Return the epsilon of `slots` draws at a rate, by every way of accounting.

    Parameters
    ----------
    slots : int
        Number of draws.
    rate : float
        Per unit of gain.
    delta : float
        From 0 (inclusive) to 1.
    rounds : int, default 1
        How many of the rows one user may own.

    Returns
    -------
    dict of str to float
        As `PrivateSlate.epsilons`.
    """
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
    users: Stream,
    slots: int,
    *,
    budget: Budget,
    calibration: str | None = None,
    ledger: Ledger | None = None,
    name: str = "slate",
    rng: RandomSource | None = None,
) -> PrivateSlate:
    """Draw one slate for all users by private greedy, at the highest rate that the budget allows.

    Parameters
    ----------
    users : Stream
        The users whose preferences are protected. Their number is public.
    slots : int
        Number of items in the slate, k.
    budget : Budget
        Epsilon, delta and adjacency.
    calibration : {"pure", "zcdp", "telescoping"}, optional
        Which proof sets the rate. By default whichever allows the highest.
    ledger : Ledger, optional
        Charged before anything is drawn. The slate is written once: after a crash, the same call returns the same
        slate. A ledger adds costs, so the calibration is its budget's accountant.
    name : str, default "slate"
        Name of the release in the ledger.
    rng : RandomSource, optional
        Source of randomness. By default SystemSource.

    Returns
    -------
    PrivateSlate

    Raises
    ------
    InvalidInput
        If the budget does not go with the calibration or with the ledger.
    OverBudget
        If the ledger cannot pay.

    Notes
    -----
    The slate is (epsilon, delta)-DP if one user's objective is replaced by any other. Gains are clipped to [0, 1]
    and to what is left of the user, so this holds for every objective. docs/maths/private-greedy.md proves (k + 1)
    * rate for pure DP (Theorem G1, b), k draws of bounded range 2 * rate for zCDP (Theorem G1, a), and a delta that
    does not grow with k (Theorem G3). Utility is Theorem G2: E F(slate) >= (1 - 1/e) (best - k (log N / rate +
    users / 2**20)).

    References
    ----------
    Gupta, Ligett, McSherry, Roth & Talwar (2010), Differentially private combinatorial optimization, SODA.
    Mitrovic, Bun, Krause & Karbasi (2017), Differentially private submodular maximization, ICML.

    Examples
    --------
    >>> from diminuendo.privacy import Budget
    >>> from diminuendo.streams import msweb
    >>> found = private_greedy(msweb(), 3, budget=Budget(1.0, 0.0, accountant="pure"))
    >>> len(found.slate), found.rate
    (3, 0.25)
    """
    k = _validate.slots(slots, users.n_items)
    if not isinstance(budget, Budget):
        raise InvalidInput(f"budget must be a Budget, such as Budget(1.0, 1e-6); got {budget!r}.")
    if not (ledger is None or isinstance(ledger, Ledger)):
        raise InvalidInput(f"ledger must be a Ledger; got {type(ledger).__name__}.")
    calibration, rate = _calibrated(budget, k, calibration, ledger)
    event = _event(budget if ledger is None else ledger.budget, k, rate)
    secret = SecretRandomness(SystemSource() if rng is None else rng)
    if ledger is None:
        drawn = _draw(users, k, rate, secret)
    else:
        paid = ledger.buy(event, name, f"{k} of {users.n_items} items, by private greedy")
        drawn = paid.once("items", lambda: _draw(users, k, rate, secret), secret)
    proof = f"docs/maths/private-greedy.md, {CALIBRATIONS[calibration]}"
    delta = 0.0 if calibration == "pure" else budget.delta
    epsilon = _worth(budget, k, rate * TICKS, calibration)
    guarantee = Guarantee(epsilon, delta, str(budget.unit), proof, secret.secure)
    slate = tuple(int(item) for item in drawn)
    return PrivateSlate(slate, guarantee, event, calibration, rate * TICKS, users.n_items, len(users))


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


def _draw(users: Stream, k: int, rate: float, secret: SecretRandomness) -> Ints:
    """k picks; the secret scores never leave this function."""
    walk, left = ScoreWalk(users.n_items, segments_of(users)), np.arange(users.n_items)
    for _ in range(k):
        pick = select(walk.scores()[left], rate, secret)
        walk.join(int(left[pick]))
        left = np.delete(left, pick)
    return np.array(walk.chosen, dtype=np.int64)
