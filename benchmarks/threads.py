"""Two learners in two threads against the same two one after the other: kernels run without Python's lock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import diminuendo
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo import Learner, People, SeededCoins, Setting, make
from diminuendo.types import Items

NAMES = ("hedge", "fi-dp:calibration=paper", "overlap-greedy")
SLOTS, TIMES, LAPS = 5, 3, 7
TARGET = 1.6
"""Of two cores, where a fifth of the work may be Python's."""


def threads() -> Iterator[Part]:
    """How much faster two threads are."""
    people = diminuendo.msweb()
    setting = Setting(people.n_items, SLOTS, rounds=len(people), feedback="full", epsilon=1.0, delta=1e-6)
    part = Part(
        "threads",
        f"Two learners in two threads: {TIMES} replays each of {len(people):,} people (msweb), seconds",
        ["learner", "one after the other", "two threads", "faster", "in releases", "laps"],
    )

    def pair(name: str) -> list[list[Learner]]:
        return [[make(name, setting, coins=SeededCoins(seed)) for _ in range(TIMES)] for seed in (1, 2)]

    def play(learners: list[Learner]) -> Items:
        return np.concatenate([learner.replay(people) for learner in learners])

    def in_turn(pairs: list[list[Learner]]) -> list[Items]:
        return [play(learners) for learners in pairs]

    def together(pairs: list[list[Learner]]) -> list[Items]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(play, pairs))

    for name in NAMES:
        results = race(
            [
                Competitor("one", lambda _, name=name: pair(name), in_turn),  # type: ignore[misc]
                Competitor("two", lambda _, name=name: pair(name), together),  # type: ignore[misc]
            ],
            LAPS,
        )
        if not np.array_equal(results["one"].answers[0], results["two"].answers[0]):
            raise Disagreement(f"{name} showed other slates in two threads.")
        one, two = results["one"].run, results["two"].run
        published = share_of_releases(make(name, setting, coins=SeededCoins(3)), people)
        part.rows.append([name, one, two, one / two, published, results["two"].laps])
        part.numbers[f"one / two threads, {name}"] = one / two
    if (os.cpu_count() or 1) > 1:
        slowest = min(float(row[3]) for row in part.rows)
        part.notes.append(
            verdict(
                f"two threads are at least {TARGET:g} times as fast: {slowest:.3g} or more", slowest >= TARGET
            )
        )
    part.notes.append(
        "in releases: the share of the time, one after the other, in which a batch is published and followed. With so "
        "few items that is hundreds of small steps of Python, payments in exact fractions among them, which hold the "
        "lock; rounds between releases do not."
    )
    yield part


def share_of_releases(learner: Learner, people: People) -> float:
    """Of the time of one replay."""
    release, spent = learner._release_what_is_due, [0.0]

    def timed() -> None:
        began = time.perf_counter()
        release()
        spent[0] += time.perf_counter() - began

    setattr(learner, "_release_what_is_due", timed)  # noqa: B010  a method, which mypy would not have replaced
    began = time.perf_counter()
    learner.replay(people)
    return spent[0] / (time.perf_counter() - began)
