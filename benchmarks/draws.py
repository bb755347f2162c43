"""Exact draws from growing scores: classes, with secret randomness, against numpy.

k experts over N items. In every round each expert draws an item with probability in proportion to exp(rate *
total), then a person says what a few items gain. Gains do not depend on draws, so everybody goes through the same
totals and must draw by the same laws, which are known. Numpy looks at every item in every round, once with
softmax and `Generator.choice`, as one would write it, and once with everything that can be saved, saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.laws import Law
from benchmarks.report import Part, verdict
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import SeededCoins, SystemCoins
from diminuendo._numba import inline
from diminuendo.randomness import Coins, SecretRandomness
from diminuendo.randomness.score_classes import ScoreClasses, draw, grow, new_score_classes
from diminuendo.randomness.ticks import TICKS
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, undo
from diminuendo.types import Floats, Ints

EXPERTS, N_ITEMS, NNZ, ROUNDS = 10, 1_000, 10, 1_000
LAPS = 9

RATES = {"flat": 2.0**-9, "concentrated": 1.0}
"""Per unit of gain."""

SEEDED, SYSTEM, BARE = "ours, seeded words", "ours, system words", "ours, gains only"
CHOICE, TUNED = "numpy, choice", "numpy, tuned"


class Gains(NamedTuple):
    """In round t items[t, j] gains ticks[t, j] // (s + 1) for expert s: later experts have less to gain."""

    items: Ints
    ticks: Ints
    experts: int
    n_items: int

    def of(self, t: int) -> Ints:
        """(experts, nnz) of round t."""
        return np.asarray(self.ticks[t] // np.arange(1, self.experts + 1)[:, None])


def some_gains(rounds: int, n_items: int, nnz: int, experts: int, seed: int = 0) -> Gains:
    """Distinct items each round, a few of them popular."""
    rng = np.random.default_rng(seed)
    popular = -np.log(np.arange(n_items) + 10.0)
    items = np.argsort(-(popular + rng.gumbel(size=(rounds, n_items))), axis=1)[:, :nnz]
    return Gains(items, rng.integers(TICKS // 4, TICKS, size=items.shape), experts, n_items)


def draws() -> Iterator[Part]:
    """One table for each rate."""
    gains = some_gains(ROUNDS, N_ITEMS, NNZ, EXPERTS)
    for name, rate in RATES.items():
        yield _part(name, gains, rate, Law(laws(gains, rate)))


def _part(name: str, gains: Gains, rate: float, law: Law) -> Part:
    def classes(coins: Callable[[int], Coins], lap: int) -> tuple[ScoreClasses, SecretRandomness]:
        return new_score_classes(N_ITEMS, EXPERTS, rate / TICKS), SecretRandomness(coins(lap + 1))

    results = race(
        [
            Competitor(SEEDED, partial(classes, SeededCoins), lambda made: exact(gains, *made)),
            Competitor(SYSTEM, partial(classes, lambda _: SystemCoins()), lambda made: exact(gains, *made)),
            Competitor(
                BARE, lambda _: new_score_classes(N_ITEMS, EXPERTS, rate / TICKS), partial(_grow_only, gains)
            ),
            Competitor(CHOICE, lambda lap: np.random.default_rng(lap + 1), partial(choice, gains, rate)),
            Competitor(TUNED, lambda lap: np.random.default_rng(1_000 + lap), partial(tuned, gains, rate)),
        ],
        LAPS,
    )
    part = Part(
        f"draws, {name}",
        f"Exact draws, {name} scores: {EXPERTS} experts, {N_ITEMS:,} items, {NNZ} gains a round, rate {rate:.3g}",
        ["who", "us per round", "/ ours, seeded", "ns per draw", "p of its law", "laps"],
    )
    for who, result in results.items():
        per_draw = _per_draw(result, results[BARE]) if who in (SEEDED, SYSTEM) else "-"
        p = "-" if who == BARE else law.check(who, np.array(result.answers), result.laps)
        part.rows.append(
            [who, 1e6 * result.run / ROUNDS, result.run / results[SEEDED].run, per_draw, p, result.laps]
        )
    part.notes += [
        f"Draws spread over about {law.spread:.0f} items (the exponential of the entropy, averaged).",
        "ns per draw: what is left when the time of the gains alone is taken off.",
        "p of its law: a chi-square test of all draws against the laws they should follow.",
    ]
    for who in (SEEDED, SYSTEM):
        for peer in (CHOICE, TUNED):
            ratio = results[peer].run / results[who].run
            part.numbers[f"{peer} / {who}"] = ratio
            part.notes.append(
                verdict(f"{who}: at least 20 times faster than {peer}: {ratio:.3g} times", ratio >= 20)
            )
    return part


def _per_draw(result: Result, bare: Result) -> float:
    return 1e9 * (result.run - bare.run) / (ROUNDS * EXPERTS)


# Ours. Compiled like the package's own kernels but, being outside of the package, not kept on disk: `inline` does that.


def exact(gains: Gains, classes: ScoreClasses, secret: SecretRandomness) -> Ints:
    """(rounds, experts) items, drawn exactly."""
    drawn = np.zeros((len(gains.items), gains.experts), dtype=np.int64)
    done = 0
    while (done := int(_rounds(classes, gains.items, gains.ticks, secret.view, drawn, done))) < len(drawn):
        secret.resume()
    return drawn


def _grow_only(gains: Gains, classes: ScoreClasses) -> None:
    _all_gains(classes, gains.items, gains.ticks)


@inline
def _learn_round(classes: ScoreClasses, items: Ints, ticks: Ints, t: int) -> None:
    for expert in range(classes.totals.shape[1]):
        for j in range(items.shape[1]):
            grow(classes, expert, items[t, j], ticks[t, j] // (expert + 1))


@inline
def _rounds(
    classes: ScoreClasses, items: Ints, ticks: Ints, secret: SecretWords, drawn: Ints, done: int
) -> int:
    while done < len(drawn):
        begin(secret)
        for expert in range(drawn.shape[1]):
            drawn[done, expert] = draw(classes, expert, secret)
            if drawn[done, expert] == UNFINISHED:
                undo(secret)
                return done
        _learn_round(classes, items, ticks, done)
        done += 1
    return done


@inline
def _all_gains(classes: ScoreClasses, items: Ints, ticks: Ints) -> None:
    for t in range(len(items)):
        _learn_round(classes, items, ticks, t)


# Numpy.


def choice(gains: Gains, rate: float, rng: np.random.Generator) -> Ints:
    """As one would write it."""
    totals = np.zeros((gains.experts, gains.n_items))
    drawn = np.zeros((len(gains.items), gains.experts), dtype=np.int64)
    for t, items in enumerate(gains.items):
        for expert in range(gains.experts):
            weights = np.exp(rate * (totals[expert] - totals[expert].max()))
            drawn[t, expert] = rng.choice(gains.n_items, p=weights / weights.sum())
        totals[:, items] += gains.of(t) / TICKS
    return drawn


def tuned(gains: Gains, rate: float, rng: np.random.Generator) -> Ints:
    """All experts in one go, into memory that is there already, and nothing divided."""
    powers = np.zeros((gains.experts, gains.n_items))
    sums = np.empty_like(powers)
    drawn = np.zeros((len(gains.items), gains.experts), dtype=np.int64)
    for t, items in enumerate(gains.items):
        np.subtract(powers, powers.max(axis=1, keepdims=True), out=sums)
        np.exp(sums, out=sums)
        np.cumsum(sums, axis=1, out=sums)
        points = rng.random(gains.experts) * sums[:, -1]
        for expert in range(gains.experts):
            drawn[t, expert] = sums[expert].searchsorted(points[expert], side="right")
        powers[:, items] += gains.of(t) * (rate / TICKS)
    return drawn


def laws(gains: Gains, rate: float) -> Floats:
    """(rounds * experts, items): by what laws everybody should draw."""
    rounds = len(gains.items)
    made = np.zeros((rounds, gains.experts, gains.n_items))
    for t in range(1, rounds):
        made[t] = made[t - 1]
        made[t][:, gains.items[t - 1]] += gains.of(t - 1) * (rate / TICKS)
    made -= made.max(axis=2, keepdims=True)
    np.exp(made, out=made)
    made /= made.sum(axis=2, keepdims=True)
    return made.reshape(-1, gains.n_items)
