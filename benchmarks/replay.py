"""Replaying real people through ordered Hedge: ours, the plain reference, and the floor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import diminuendo
from benchmarks.floor import additions
from benchmarks.plain_hedge import PlainHedge
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import Learner, OrderedExperts, People, SeededCoins
from diminuendo.types import Floats, Items

SLOTS = 5

SEEDS = 6
"""Laps of the slow reference, each with a seed of its own."""

MORE_SEEDS = range(1000, 1040)
"""Untimed runs of ours, to know how much mean payoffs vary from seed to seed."""

FAR_APART = 5.0
"""Mean payoffs of the two that differ by more standard errors than this are a disagreement."""


def replay() -> Iterator[Part]:
    """Seconds, ratios, and whether both earn the same."""
    people = diminuendo.msweb()
    rows = [(row.indices.astype(np.int32), row.data) for row in people.matrices[0]]

    def ours(lap: int) -> Learner:
        return OrderedExperts(people.n_items, SLOTS, coins=SeededCoins(lap))

    def plain(lap: int) -> tuple[PlainHedge, np.random.Generator]:
        return PlainHedge(people.n_items, SLOTS), np.random.default_rng(lap + 1)

    work = additions(people, ours(0).replay(people))
    results = race(
        [
            Competitor("ours", lambda lap: ours(lap + 1), lambda learner: learner.replay(people)),
            Competitor("plain numpy", plain, lambda made: made[0].replay(rows, made[1])),
            Competitor("floor", lambda _: work.fresh_totals(), work.run),
        ],
        fewest=SEEDS,
    )
    part = Part(
        "replay",
        f"Replay of ordered Hedge: {SLOTS} of {people.n_items} items, {len(people):,} people (msweb)",
        ["who", "seconds", "us per person", "/ ours", "/ floor", "laps"],
    )
    base, floor = results["ours"].run, results["floor"].run
    for name, result in results.items():
        per_person = 1e6 * result.run / len(people)
        part.rows.append([name, result.run, per_person, result.run / base, result.run / floor, result.laps])
    faster = results["plain numpy"].run / base
    part.numbers |= {"plain / ours": faster, "ours / floor": base / floor}
    part.notes += [
        f"floor: reads each person's row and does the same {int(np.diff(work.starts) @ work.depth):,} "
        "integer additions; no draws, no gains, no bookkeeping.",
        verdict(f"ours is at least 20 times faster than plain numpy: {faster:.3g} times", faster >= 20),
    ]
    slates = [*results["ours"].answers, *(ours(seed).replay(people) for seed in MORE_SEEDS)]
    _compare(
        part, _payoffs(people, slates), np.array([values.mean() for values in results["plain numpy"].answers])
    )
    yield part


def _payoffs(people: People, runs: list[Items]) -> Floats:
    return np.array([people.values(slates).mean() for slates in runs])


def _compare(part: Part, ours: Floats, plain: Floats) -> None:
    """Both draw by the same law with different coins, so mean payoffs agree up to noise."""
    spread = float(ours.std(ddof=1))
    error = spread * (1 / len(ours) + 1 / len(plain)) ** 0.5
    apart = float(ours.mean() - plain.mean())
    part.numbers |= {"payoff difference": apart, "its standard error": error}
    part.notes.append(
        f"Mean payoff: ours {ours.mean():.5f} over {len(ours)} seeds, plain numpy {plain.mean():.5f} over "
        f"{len(plain)}; difference {apart:+.5f}, which is {apart / error:+.2f} standard errors ({error:.5f})."
    )
    if abs(apart) > FAR_APART * error:
        raise Disagreement(f"Mean payoffs of ours and plain numpy differ: {part.notes[-1]}")
