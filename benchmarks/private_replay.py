"""Replaying people through `private` with full information, releases and all, against the least that it takes.

At every release everybody who has come answers k + 1 questions: so many passes over rows that add whole numbers, and
so many vectors of noise. The floor does these passes, adding the ticks of all items every time, and draws that noise,
and nothing else. Ours clips, keeps and asks people, weighs what was published and picks slates besides; it gains where
it asks only those whom an item moves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.contributions import Clipped, clipped, scatter
from benchmarks.flat import uniform_people
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, Result, race
from diminuendo import Learner, People, SeededCoins, SystemCoins
from diminuendo.learners import OverlapGreedy
from diminuendo.learners.overlap.policy import OverlapPolicy
from diminuendo.learners.overlap.recipes import CLIP
from diminuendo.learners.overlap.schedule import OverlapPlan
from diminuendo.randomness import Coins, SecretRandomness, rounded_normal

N_ITEMS, NNZ, SLOTS = 100_000, 50, 10
PEOPLE = (20_000,)
LAPS = 3
TARGET = 3.0


def private_replay() -> Iterator[Part]:
    """Seconds of whole runs, and of the floor's two halves."""
    part = Part(
        "private replay",
        f"Whole runs of {OverlapGreedy.name}: {SLOTS} of {N_ITEMS:,} items, {NNZ} of which each person wants",
        ["people", "words", "releases", "ours, s", "additions, s", "noise, s", "ours / floor", "laps"],
    )
    for n_people in PEOPLE:
        people = uniform_people(n_people, N_ITEMS, NNZ)
        for words, secure in (("seeded", False), ("system", True)):
            results = race(list(competitors(people, SLOTS, secure)), LAPS, fewest=LAPS)
            check(results, secure)
            ours, additions, noise = (results[who].run for who in ("ours", "additions", "noise"))
            ratio = ours / (additions + noise)
            releases = plan_of(learner_for(people, SLOTS)).releases
            part.rows.append([n_people, words, releases, ours, additions, noise, ratio, LAPS])
            part.numbers[f"ours / floor, {n_people} people, {words} words"] = ratio
            part.notes.append(
                verdict(
                    f"{n_people:,} people, {words} words: at most {TARGET:g} times the floor: {ratio:.3g}",
                    ratio <= TARGET,
                )
            )
    part.notes.append(
        f"additions and noise: {SLOTS + 1} passes and vectors per release; the floor is their sum."
    )
    yield part


def learner_for(people: People, slots: int, coins: Coins | None = None) -> Learner:
    """A learner for these people."""
    return OverlapGreedy(people.n_items, slots, horizon=len(people), epsilon=1.0, delta=1e-6, coins=coins)


def plan_of(learner: Learner) -> OverlapPlan:
    """When it releases, and with what noise."""
    assert isinstance(learner.policy, OverlapPolicy)
    return learner.policy.plan


def competitors(people: People, slots: int, secure: bool) -> Iterator[Competitor]:
    """Ours, and the two halves of the floor."""

    def coins(lap: int) -> Coins:
        return SystemCoins() if secure else SeededCoins(0)

    learner = learner_for(people, slots)
    plan, work = plan_of(learner), clipped(people.matrices[0], CLIP)
    passes = [
        Clipped(work.columns[:stop], work.amounts[:stop])
        for end in plan.schedule.ends[: plan.releases]
        for stop in [int(people.table.starts[end])]
        for _ in range(slots + 1)
    ]
    values = np.zeros(people.n_items, dtype=np.int64)

    def add_up(totals: np.ndarray) -> np.ndarray:
        for one in passes:
            scatter(one, totals)
        return totals

    def draw(secret: SecretRandomness) -> None:
        for singles, rows in plan.sigmas:
            for sigma in [singles, *[rows] * slots]:
                rounded_normal.rounded_normal(values, sigma, secret)

    yield Competitor(
        "ours", lambda lap: learner_for(people, slots, coins(lap)), lambda made: made.replay(people)
    )
    yield Competitor("additions", lambda _: np.zeros_like(values), add_up)
    yield Competitor("noise", lambda lap: SecretRandomness(coins(lap)), draw)


def check(results: dict[str, Result], secure: bool) -> None:
    """Seeded laps of ours are one and the same run."""
    first, *others = results["ours"].answers
    if not secure and not all(np.array_equal(first, other) for other in others):
        raise Disagreement("Laps of ours with the same seed showed different slates.")
    if not np.array_equal(results["additions"].answers[0], results["additions"].answers[-1]):
        raise Disagreement("Laps of the floor added up to different totals.")
