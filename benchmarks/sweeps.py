"""A sweep of 200 runs on all cores against the same runs on one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import diminuendo
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo.simulate import Sweep, sweep

LEARNERS = ["overlap-greedy", "epoch-greedy"]
EPSILONS = [0.1, 0.3, 1.0, 3.0, 10.0]
SEEDS, SLOTS = 20, 5
TARGET = 1.8


def sweeps() -> Iterator[Part]:
    """Seconds, and that both made the same rows."""
    cores = os.cpu_count() or 1
    part = Part(
        "sweep",
        f"A sweep of {len(LEARNERS) * len(EPSILONS) * SEEDS} runs: msweb, {SLOTS} slots, {len(EPSILONS)} epsilons",
        ["processes", "seconds", "faster"],
    )
    results = race([_competitor(jobs) for jobs in (1, cores)], laps=1, fewest=1)
    if _rows(results["1"].answers[0]) != _rows(results[f"{cores}"].answers[0]):
        raise Disagreement("One process and several made different rows.")
    for jobs in (1, cores):
        part.rows.append([jobs, results[f"{jobs}"].run, results["1"].run / results[f"{jobs}"].run])
    faster = results["1"].run / results[f"{cores}"].run
    part.numbers["one / all cores"] = faster
    part.notes += [
        verdict(
            f"on {cores} cores at least {TARGET:g} times faster than on one: {faster:.3g} times",
            faster >= TARGET,
        ),
        "One lap each. Starting the processes, hindsight and writing rows are in.",
    ]
    yield part


def _competitor(jobs: int) -> Competitor:
    def run(seeds: int) -> Sweep:
        with tempfile.TemporaryDirectory() as folder:
            return sweep(
                people, slots=SLOTS, learners=LEARNERS, epsilons=EPSILONS, seeds=seeds, jobs=jobs, out=folder
            )

    people = diminuendo.msweb()
    return Competitor(f"{jobs}", lambda lap: SEEDS if lap >= 0 else 1, run)  # the warm-up compiles


def _rows(done: Sweep) -> list[tuple[object, ...]]:
    """What was earned, run by run."""
    (found,) = done.simulations
    return sorted((one.learner, one.asked_epsilon, one.seed, one.mean_payoff) for one in found.results)
