r"""Estimators: one number for each logged round, whose mean estimates what a policy would have earned.

The weight of a round is how much likelier the policy would have shown its slate than the log did.

    inverse-propensity  weight * reward. Right on average whatever users do (docs/maths/off-policy.md, Theorem V1)
    self-normalised     divided by the mean weight: a little wrong on average, much steadier; right for many rounds
    doubly-robust       what a model expects, plus weight * (reward - what it expected). Right on average whatever the
                        model says, because the model of a round was made from the rounds before it; the better it is,
                        the steadier
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.evaluate.log import Log
from diminuendo.evaluate.policies import Policy
from diminuendo.types import Floats, Slate

LARGEST = 2.0**500
"""Weights up to this can be squared and added up."""


def weights_of(log: Log, policy: Policy) -> Floats:
    """How much likelier the policy would have shown what was shown."""
    result = policy.chances(log)
    if not ((result >= 0) & (result <= 1)).all():
        raise InvalidInput("The policy gave a probability that is not from 0 to 1.")
    with np.errstate(over="ignore"):  # refused below
        weights: Floats = result / log.propensities
    if not (weights <= LARGEST).all():
        raise InvalidInput(
            "A propensity is so small that its weight is above 2^500, and nothing can be said. Nothing was charged. "
            "Check the propensities, or leave those rounds out by a public rule."
        )
    return weights


class RunningModel:
    """What a set of items should earn, by the mean rewards so far: of all rounds, of each item, of the set.

    Each is drawn towards the one before it as if by one more round, so that every guess is from 0 to 1.
    """

    def __init__(self) -> None:
        self._seen: dict[int | Slate | None, tuple[float, int]] = {None: (0.5, 1)}
        """Sum and number of rewards: of items, of sets, and under None of all rounds."""

    def guess(self, items: Slate) -> float:
        """The guessed reward of a set of items, which are given in rising order."""
        total, number = self._seen[None]
        overall = total / number
        worths = [self._drawn(item, overall) for item in items]
        return self._drawn(items, sum(worths) / len(worths) if worths else overall)

    def _drawn(self, what: int | Slate, towards: float) -> float:
        total, number = self._seen.get(what, (0.0, 0))
        return (total + towards) / (number + 1)

    def learn(self, items: Slate, reward: float) -> None:
        """A round is over."""
        for what in (None, items, *items):
            total, number = self._seen.get(what, (0.0, 0))
            self._seen[what] = total + reward, number + 1


def inverse_propensity(log: Log, policy: Policy, weights: Floats) -> Floats:
    """The reward of each round times its weight."""
    terms: Floats = weights * log.rewards
    return terms


def self_normalised(log: Log, policy: Policy, weights: Floats) -> Floats:
    """Numbers whose mean is the weighted mean of rewards, and whose spread is, nearly, that of this mean."""
    if not weights.any():
        raise InvalidInput(
            "Nothing that the policy would show was ever shown, so there is nothing to average."
        )
    mean = float(weights @ log.rewards / weights.sum())
    terms: Floats = mean + weights / weights.mean() * (log.rewards - mean)
    return terms


def doubly_robust(log: Log, policy: Policy, weights: Floats) -> Floats:
    """A running model, put right by weighted errors."""
    model, terms = RunningModel(), np.empty(len(log))
    rounds = zip(log.rounds.tolist(), log.shown(), log.rewards.tolist(), weights.tolist(), strict=True)
    for t, (number, slate, reward, weight) in enumerate(rounds):
        items = tuple(sorted(slate))
        expected = sum(chance * model.guess(some) for some, chance in policy.sets(number).items())
        terms[t] = expected + weight * (reward - model.guess(items))
        model.learn(items, reward)
    return terms


@dataclass(frozen=True)
class Method:
    """One way to estimate."""

    terms: Callable[[Log, Policy, Floats], Floats]
    summary: str
    in_order: bool = True
    """Whether a round's term is known when the round is over; `always` intervals ask for it."""
    needs_support: bool = True
    """Whether `always` intervals ask that all that the policy would show could be shown, and for the largest weight."""


METHODS = {
    "inverse-propensity": Method(
        inverse_propensity, "weighted rewards; right on average", needs_support=False
    ),
    "self-normalised": Method(
        self_normalised, "weighted mean of rewards; steadier, right for many rounds", in_order=False
    ),
    "doubly-robust": Method(
        doubly_robust, "a model, put right by weighted errors; right on average, steadiest"
    ),
}
"""Every way to estimate by the name users type."""
