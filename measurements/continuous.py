"""What continuous learners earn on the users of examples/continuous.py, kept run by run."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from diminuendo.cli.screen import progress_bars
from diminuendo.continuous import total_value
from diminuendo.simulate.task import code_version
from examples.continuous import BENT, BUDGET, CHANNELS, EPSILONS, ROUNDS, WAYS, best_value, ratio, visitors
from measurements.results import ROOT, rounded

EXAMPLE = ROOT / "examples" / "continuous.py"
OPEN = "boosted, not private"
USERS = cache(visitors)
Run = tuple[str, int]
"""A cell and a seed."""

CELLS = [OPEN, *(f"{way} {epsilon:g}" for way in WAYS for epsilon in EPSILONS)]


def earns(cell: str, seed: int) -> float:
    """What the learner of this cell earns, as a share of the best fixed point found in hindsight."""
    users = USERS(ROUNDS)
    if cell == OPEN:
        return ratio(users, seed)
    way, epsilon = cell.rsplit(" ", 1)
    return ratio(users, seed, epsilon=float(epsilon), **WAYS[way])


def measure(path: Path, seeds: int, jobs: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """All cells over these seeds, and what learning nothing earns; finished runs are kept in the file, line by line."""
    sources = f"{code_version()} {hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()[:12]}"
    done = finished(path, sources)
    left = [(cell, seed) for seed in range(seeds) for cell in CELLS if (cell, seed) not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file, progress_bars() as bars:
        tick = bars(f"{len(left):,} runs", len(left))
        for run, value in Parallel(n_jobs=jobs, return_as="generator_unordered")(map(delayed(_one), left)):
            done[run] = value
            file.write(json.dumps([sources, *run, value]) + "\n")
            file.flush()
            tick(1)
    cells = {cell: rounded(done[cell, seed] for seed in range(seeds)) for cell in CELLS}
    users = USERS(ROUNDS)
    even = total_value(users, np.full(CHANNELS, BUDGET / CHANNELS)) / best_value(users)
    spec = {"spread evenly": even, "Algorithm 4, not private": ratio(users, smoothness=BENT)}
    return cells, {name: round(value, 4) for name, value in spec.items()}


def _one(run: Run) -> tuple[Run, float]:
    return run, earns(*run)


def finished(path: Path, sources: str) -> dict[Run, float]:
    """The runs of these sources in a file; a line that was cut off when it was being written does not count."""
    result: dict[Run, float] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            made_by, cell, seed, value = json.loads(line)
        except ValueError:
            continue
        if made_by == sources:
            result[cell, seed] = value
    return result
