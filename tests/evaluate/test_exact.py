"""Theorems of docs/maths/off-policy.md on tiny worlds, with all coins counted out.

A world has a few rounds, three slates, users with given rewards, and a log whose chances depend on everything before.
Every way the coins can fall is tried, with its exact probability.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from diminuendo.errors import InvalidInput
from diminuendo.evaluate import AnyOrder, Log, evaluate
from diminuendo.evaluate.estimate import FEWEST
from diminuendo.evaluate.estimators import METHODS, weights_of
from diminuendo.evaluate.intervals import SHARES, log_capital
from diminuendo.evaluate.policies import Mixture
from diminuendo.types import Floats, Slate

SLATES: tuple[Slate, ...] = ((0, 1), (1, 2), (1, 0))
History = tuple[tuple[int, float], ...]
"""Which slate was shown, and what it earned, round by round."""

REWARDS = np.array([[0.5, 0.0, 1.0], [1.0, 0.25, 0.5], [0.0, 0.75, 0.0], [1.0, 1.0, 0.25]])
"""Four users; binary fractions, so that floats are exact."""
TARGET = {SLATES[0]: 0.5, SLATES[1]: 0.25, SLATES[2]: 0.25}


@dataclass(frozen=True)
class World:
    rewards: Floats
    chances: Callable[[History], tuple[float, ...]]

    def runs(self) -> Iterator[tuple[Fraction, Log]]:
        """Every way the coins can fall."""
        for shown in itertools.product(range(len(SLATES)), repeat=len(self.rewards)):
            likely, history, log = Fraction(1), (), Log(2)  # type: tuple[Fraction, History, Log]
            for t, slate in enumerate(shown):
                chance = self.chances(history)[slate]
                likely *= Fraction(chance)
                if not likely:
                    break
                reward = float(self.rewards[t, slate])
                log._append(t, SLATES[slate], chance, reward)
                history = (*history, (slate, reward))
            if likely:
                yield likely, log


def adaptive(history: History) -> tuple[float, ...]:
    """Follows what paid, and now and then turns against it: powers of two, so that weights are exact."""
    if not history:
        return (0.25, 0.5, 0.25)
    slate, reward = history[-1]
    favourite = slate if reward >= 0.5 else (slate + 1) % 3
    return tuple(0.5 if other == favourite else 0.25 for other in range(3))


def truth(rewards: Floats, target: dict[Slate, float]) -> Fraction:
    total = Fraction(0)
    for row in rewards:
        for slate, reward in zip(SLATES, row, strict=True):
            total += Fraction(target.get(slate, 0.0)) * Fraction(float(reward))
    return total / len(rewards)


def mean_of(world: World, estimate: Callable[[Log], float]) -> Fraction:
    total = Fraction(0)
    for likely, log in world.runs():
        total += likely * Fraction(estimate(log))
    return total


def terms(method: str, log: Log, target: dict[Slate, float]) -> Floats:
    policy = Mixture(target)
    return METHODS[method].terms(log, policy, weights_of(log, policy))


def test_all_random_outcomes_are_counted() -> None:
    assert sum(likely for likely, _ in World(REWARDS, adaptive).runs()) == 1


def test_inverse_propensity_is_right_on_average_exactly() -> None:
    world = World(REWARDS, adaptive)
    result = mean_of(world, lambda log: float(terms("inverse-propensity", log, TARGET).mean()))
    assert result == truth(REWARDS, TARGET)


def test_doubly_robust_is_right_on_average() -> None:
    """The model divides by 3 and the like: floats, right to 2^-50 here."""
    world = World(REWARDS, adaptive)
    result = mean_of(world, lambda log: float(terms("doubly-robust", log, TARGET).mean()))
    assert abs(result - truth(REWARDS, TARGET)) < Fraction(1, 2**48)


def test_a_model_that_has_seen_the_round_is_not() -> None:
    """What makes it right is that only earlier rounds are looked at."""
    policy = Mixture(TARGET)

    def peeking(log: Log) -> float:
        once = Log.from_arrays(
            np.vstack([log.slates, log.slates]),
            np.tile(log.propensities, 2),
            np.tile(log.rewards, 2),
            np.concatenate([log.rounds, len(log) + log.rounds]),
        )
        both = METHODS["doubly-robust"].terms(once, policy, weights_of(once, policy))
        return float(both[len(log) :].mean())

    assert abs(mean_of(World(REWARDS, adaptive), peeking) - truth(REWARDS, TARGET)) > Fraction(1, 1000)


@pytest.mark.parametrize("mistake", ["weights forgotten", "chances of the first round", "rounded chances"])
def test_mistakes_are_seen(mistake: str) -> None:
    def wrong(log: Log) -> float:
        chances = np.array([TARGET[slate] for slate in log.shown()])
        if mistake == "weights forgotten":
            return float(log.rewards.mean())
        if mistake == "chances of the first round":
            first = dict(zip(SLATES, adaptive(()), strict=True))
            return float((chances / [first[slate] for slate in log.shown()] * log.rewards).mean())
        return float((chances / np.maximum(log.propensities, 0.5) * log.rewards).mean())

    assert abs(mean_of(World(REWARDS, adaptive), wrong) - truth(REWARDS, TARGET)) > Fraction(1, 1000)


def test_orders_put_together() -> None:
    """Lemma V4: for users who do not mind the order, AnyOrder is what the set is worth, in whatever order.

    Its chances are thirds and the like: floats, right to 2^-48 here.
    """
    rewards = REWARDS.copy()
    rewards[:, 2] = rewards[:, 0]
    policy = AnyOrder((1, 0))
    result = mean_of(
        World(rewards, adaptive), lambda log: float((weights_of(log, policy) * log.rewards).mean())
    )
    assert abs(result - truth(rewards, {SLATES[0]: 1.0})) < Fraction(1, 2**48)


# The process behind `always`.


def rare(history: History) -> tuple[float, ...]:
    """Large weights, and slates that cannot be shown for a while."""
    if len(history) in (1, 2):
        return (1 / 16, 15 / 16, 0.0)
    return (0.125, 0.75, 0.125) if history and history[-1][0] == 1 else (0.5, 0.25, 0.25)


def capital_of(log: Log, means: Floats, peek: bool = False) -> float:
    """The capital of a gambler on the weighted rewards of slate 0; `means` are the true ones, given the past."""
    weighted = weights_of(log, Mixture({SLATES[0]: 1.0})) * log.rewards
    rates, capital = log_capital(weighted)
    if peek:  # guesses are made with the round they are about
        guesses = np.clip(np.cumsum(weighted) / np.arange(1, len(weighted) + 1), 0, 1)
        capital = np.array([np.log1p(r * (weighted - guesses)).sum() + r * guesses.sum() for r in rates])
    return float((SHARES * np.exp(capital - rates * means.sum())).sum())


@pytest.mark.parametrize("chances", [adaptive, rare])
def test_capital_does_not_grow_on_average(chances: Callable[[History], tuple[float, ...]]) -> None:
    """Theorem V3, exactly; means change from round to round."""
    rewards = np.vstack([REWARDS, 1 - REWARDS[:2]])
    world = World(rewards, chances)
    assert SHARES.sum() < 1
    fair = mean_of(world, lambda log: capital_of(log, rewards[:, 0]))
    assert fair <= Fraction(float(SHARES.sum())) + Fraction(1, 2**48)
    assert fair > Fraction(1, 2), "close to what it may be"
    peeking = mean_of(world, lambda log: capital_of(log, rewards[:, 0], peek=True))
    assert peeking > fair


def test_betting_against_too_small_a_mean_pays() -> None:
    """The check has power: with claimed means lower than the true ones capital grows beyond 1."""
    rewards = np.vstack([REWARDS, REWARDS[:2]])
    world = World(rewards, adaptive)
    assert mean_of(world, lambda log: capital_of(log, rewards[:, 0] - 0.4)) > 1


@pytest.mark.parametrize("confidence", [0.5, 0.8])
@pytest.mark.parametrize("chances", [adaptive, rare])
def test_always_is_always_right(chances: Callable[[History], tuple[float, ...]], confidence: float) -> None:
    """At every number of rounds, with users who change, and where the policy could not be shown for a while."""
    rewards = np.vstack([REWARDS, 1 - REWARDS[:1]])
    missed = Fraction(0)
    for likely, log in World(rewards, chances).runs():
        for rounds in range(2, len(log) + 1):
            try:
                result = evaluate(log[:rounds], SLATES[0], confidence=confidence)
                covered = result.low <= rewards[:rounds, 0].mean() <= result.high
            except InvalidInput:  # no mean at all is within both of its bounds
                covered = False
            if not covered:
                missed += likely
                break
    assert missed <= Fraction(1 - confidence)
    assert missed > 0 or confidence > 0.5, "an interval that covers everything would be no achievement"


def test_few_rounds_are_refused_where_many_are_needed() -> None:
    assert len(REWARDS) < FEWEST
    _, log = next(World(REWARDS, adaptive).runs())
    for method in METHODS:
        with pytest.raises(ValueError, match="rounds of its own"):
            evaluate(log, TARGET, method=method, interval="normal")
