"""Exact draws among a million items.

Every look at memory is then a look into far memory. The floor of a round is one random read for each expert, from as
much memory as the totals take.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.laws import Law
from benchmarks.report import Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import SeededCoins
from diminuendo._numba import inline
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness.score_classes import (
    ScoreClasses,
    draw,
    new_score_classes,
    probabilities,
    sort_again,
)
from diminuendo.randomness.ticks import TICKS
from diminuendo.randomness.words import UNFINISHED, SecretWords, begin, undo
from diminuendo.types import Ints

SLOTS = 10
MANY, ROUNDS, MANY_LAPS = 1_000_000, 500, 60
SPREADS = {"hardly": 0.1, "much": 8.0}
"""How uneven totals are: the heaviest item weighs e to this times the lightest."""
DRAWN, READ = "ours", "floor: random reads"


def million_draws() -> Iterator[Part]:
    """One table for totals that are hardly uneven, and one for totals that are."""
    for name, spread in SPREADS.items():
        yield _drawn(name, spread)


def uneven_urns(n_items: int, experts: int, spread: float) -> ScoreClasses:
    """As after a run: most items have gained little, a few much, and later experts less; weights span e^spread."""
    rng = np.random.default_rng(n_items)
    gained = rng.beta(1, 6, (n_items, experts)) / np.arange(1, experts + 1)
    classes = new_score_classes(n_items, experts, spread / (1_000 * TICKS))
    classes.totals[:] = 1_000 * TICKS * gained
    sort_again(classes)
    return classes


@inline
def _rounds(classes: ScoreClasses, secret: SecretWords, drawn: Ints, done: int) -> int:
    while done < len(drawn):
        begin(secret)
        for expert in range(drawn.shape[1]):
            drawn[done, expert] = draw(classes, expert, secret)
            if drawn[done, expert] == UNFINISHED:
                undo(secret)
                return done
        done += 1
    return done


def draw_rounds(classes: ScoreClasses, rounds: int, secret: SecretRandomness) -> Ints:
    """(rounds, experts) items, drawn exactly."""
    drawn = np.zeros((rounds, classes.totals.shape[1]), dtype=np.int64)
    done = 0
    while (done := int(_rounds(classes, secret.view, drawn, done))) < rounds:
        secret.resume()
    return drawn


@inline
def read_all(totals: Ints, items: Ints) -> int:
    """One read for each expert in each round."""
    found = 0
    for t in range(items.shape[0]):
        for expert in range(items.shape[1]):
            found += totals[items[t, expert], expert]
    return found


def _drawn(name: str, spread: float) -> Part:
    classes = uneven_urns(MANY, SLOTS, spread)
    law = Law(np.array([probabilities(classes, expert) for expert in range(SLOTS)]))
    rng = np.random.default_rng(0)
    results = race(
        [
            Competitor(
                DRAWN,
                lambda lap: SecretRandomness(SeededCoins(lap + 1)),
                partial(draw_rounds, classes, ROUNDS),
            ),
            Competitor(
                READ,
                lambda _: rng.integers(0, MANY, size=(ROUNDS, SLOTS)),
                lambda items: read_all(classes.totals, items),
            ),
        ],
        MANY_LAPS,
    )
    part = Part(
        f"draws, N={MANY}, {name} uneven",
        f"One exact draw of each of {SLOTS} experts among {MANY:,} items, totals {name} uneven (up to e^{spread:g})",
        ["who", "us per round", "/ ours", "/ floor", "p of its law", "laps"],
    )
    for who, result in results.items():
        p = "-" if who == READ else law.check(who, np.array(result.answers), ROUNDS * result.laps)
        per_round, base, floor = (1e6 * results[one].run / ROUNDS for one in (who, DRAWN, READ))
        part.rows.append([who, per_round, per_round / base, per_round / floor, p, result.laps])
    ratio = results[DRAWN].run / results[READ].run
    part.numbers["ours / floor"] = ratio
    part.notes += [
        f"floor: {SLOTS} random reads from the {classes.totals.nbytes // 10**6:,} MB of the totals, at known places.",
        verdict(
            f"a round of draws takes at most 12 times as long as the reads: {ratio:.3g} times", ratio <= 12
        ),
    ]
    return part
