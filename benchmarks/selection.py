"""One draw from fresh scores: `select` against numpy and against OpenDP.

Everybody draws item a with probability in proportion to exp(rate * score[a]). Numpy rounds; ours and OpenDP's noisy
maximum with Gumbel noise (zero-concentrated privacy) are exact. All get arrays, as OpenDP likes best: from a list it
takes up to 25 times longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import opendp.prelude as dp

from benchmarks.laws import Law
from benchmarks.report import Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import SeededCoins, SystemCoins
from diminuendo.randomness import SecretRandomness, select
from diminuendo.types import Floats, Ints

SIZES = (1_000, 10_000)
DRAWS = 100
"""In one lap."""
LAPS = 9

RATE = 2.0**-7
"""Per tick of scores up to HIGHEST, so that the best weighs e^8 times the worst."""
HIGHEST = 1 << 10

SEEDED, SYSTEM = "ours, seeded words", "ours, system words"
CHOICE, GUMBEL, OPENDP = "numpy, softmax and choice", "numpy, Gumbel maximum", "OpenDP, noisy maximum"


def selection() -> Iterator[Part]:
    """One table for each number of items."""
    for n_items in SIZES:
        yield _part(n_items)


def some_scores(n_items: int) -> Ints:
    """Most of them low, some high."""
    return (HIGHEST * np.random.default_rng(n_items).beta(1, 6, n_items)).astype(np.int64)


def law_of(scores: Ints) -> Floats:
    """How likely each item is."""
    weights = np.exp(RATE * (scores - scores.max()))
    law: Floats = weights / weights.sum()
    return law


def _part(n_items: int) -> Part:
    scores = some_scores(n_items)
    law = Law(law_of(scores)[None, :])
    results = race(list(competitors(scores)), LAPS, fewest=LAPS)
    part = Part(
        f"select, N={n_items}",
        f"One draw from {n_items:,} fresh scores",
        ["who", "us per draw", "/ ours, system", "ns per item", "exact", "p of its law", "draws"],
    )
    each = {who: result.run / len(result.answers[0]) for who, result in results.items()}
    for who, result in results.items():
        drawn = np.concatenate(result.answers)
        part.rows.append(
            [
                who,
                1e6 * each[who],
                each[who] / each[SYSTEM],
                1e9 * each[who] / n_items,
                who in (SEEDED, SYSTEM, OPENDP),
                law.check(who, drawn, len(drawn)),
                len(drawn),
            ]
        )
    part.notes.append("p of its law: a chi-square test of all draws against the law they should follow.")
    part.numbers |= {f"{who} / {SYSTEM}": each[who] / each[SYSTEM] for who in (CHOICE, GUMBEL, OPENDP)}
    faster = each[OPENDP] / each[SYSTEM]
    part.notes.append(verdict(f"ours is faster than OpenDP: {faster:.3g} times", faster > 1))
    return part


def competitors(scores: Ints) -> Iterator[Competitor]:
    """Each answers with the items that it drew in a lap."""
    for who, coins in ((SEEDED, SeededCoins(1)), (SYSTEM, SystemCoins())):
        one = partial(select, scores, RATE, SecretRandomness(coins))
        yield _competitor(who, partial(_always, one))
    yield _competitor(CHOICE, lambda lap: partial(choice, scores, np.random.default_rng(lap + 1)))
    yield _competitor(GUMBEL, lambda lap: partial(gumbel, scores, np.random.default_rng(1_000 + lap)))
    noisy_max = opendp_select()
    yield _competitor(OPENDP, lambda _: partial(noisy_max, scores))


def _competitor(who: str, prepare: Callable[[int], Callable[[], int]], draws: int = DRAWS) -> Competitor:
    return Competitor(who, prepare, lambda one: np.array([one() for _ in range(draws)]))


def _always(one: Callable[[], int], _: int) -> Callable[[], int]:
    return one


def choice(scores: Ints, rng: np.random.Generator) -> int:
    """By the probabilities."""
    return int(rng.choice(len(scores), p=law_of(scores)))


def gumbel(scores: Ints, rng: np.random.Generator) -> int:
    """The largest after Gumbel noise, which has the same law."""
    return int(np.argmax(RATE * scores + rng.gumbel(size=len(scores))))


def opendp_select() -> Callable[[Ints], int]:
    """OpenDP's noisy maximum, with Gumbel noise."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    made: Callable[[Ints], int] = dp.m.make_noisy_max(
        *space, dp.zero_concentrated_divergence(), scale=1 / RATE
    )
    return made
