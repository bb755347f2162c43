"""What a newcomer waits for: opening the package, first use with kernels on disk, and first use without.

Each is a new process, as it is for her. First use is an import, a stream, a private learner and a replay of all its
people. The floors are Python itself and the libraries: numpy, numba, and what any program pays that imports numba and
scipy and calls one compiled function, kept on disk, that adds two numbers.

Of each lap the lesser of two times counts. The clock also counts others who use the machine; the processor's seconds
also count threads that numpy starts and nobody waits for. On a machine of her own a newcomer waits no longer than
either says, as long as files are in memory, which they are after the first lap.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import diminuendo
from benchmarks.report import Disagreement, Part, verdict
from benchmarks.stopwatch import Competitor, race
from diminuendo.types import Items

LAPS = 7
"""Of each process that takes a second or less."""

COLD_LAPS = 2
"""Of the process that compiles."""

OPENS_IN, BEGINS_IN = 0.5, 1.0
"""Seconds: `import diminuendo`, and first use with kernels on disk."""

SETTING = "slots=5, rounds=len(people), feedback='full', epsilon=1.0, delta=1e-6"

FIRST_USE = f"""
import hashlib
import diminuendo as dim
people = dim.msweb()
learner = dim.make("private", dim.Setting(people.n_items, {SETTING}), coins=dim.SeededCoins(1))
print(hashlib.sha256(learner.replay(people).tobytes()).hexdigest())
"""

ONE_KERNEL = """
import numba, scipy.sparse, scipy.special
@numba.njit(cache=True)
def add(x, y):
    return x + y
print(add(1, 2))
"""

PYTHON, NUMPY, NUMBA = "python", "import numpy", "import numba"
LIBRARIES = "numba and scipy, one kernel"
OPEN, HELP, WARM, COLD = (
    "import diminuendo",
    "diminuendo --help",
    "first use, kernels on disk",
    "first use, compiling",
)


def entry() -> Iterator[Part]:
    """Seconds, as ratios to what the libraries take."""
    with tempfile.TemporaryDirectory() as folder:
        yield _entry(Path(folder))


def _entry(folder: Path) -> Part:
    (folder / "one_kernel.py").write_text(ONE_KERNEL)
    (folder / "first_use.py").write_text(FIRST_USE)
    cold = [
        process([str(folder / "first_use.py")], folder, folder / f"cold {lap}") for lap in range(COLD_LAPS)
    ]
    kept = folder / f"cold {COLD_LAPS - 1}"  # what the last of them has compiled
    programs = {
        PYTHON: ["-c", "pass"],
        NUMPY: ["-c", "import numpy"],
        NUMBA: ["-c", "import numba"],
        LIBRARIES: [str(folder / "one_kernel.py")],
        OPEN: ["-c", "import diminuendo"],
        HELP: ["-m", "diminuendo", "--help"],
        WARM: [str(folder / "first_use.py")],
    }
    results = race(
        [
            *(
                Competitor(name, lambda _: None, partial(_process, typed, folder, kept))
                for name, typed in programs.items()
            ),
            Competitor("replay", lambda _: _learner(), _replayed),
        ],
        laps=LAPS,
        fewest=LAPS,
    )
    ran: dict[str, list[Ran]] = {name: results[name].answers for name in programs} | {COLD: cold}
    (expected, *_), work = results["replay"].answers, min(own for _, own in results["replay"].answers)
    agreed([one.printed for one in (*ran[COLD], *ran[WARM])], expected[0])
    clock = {name: min(one.seconds for one in ran[name]) for name in ran}
    own = {name: min(one.own for one in ran[name]) for name in ran}
    waited = {name: min(clock[name], own[name]) for name in ran}
    part = Part(
        "import",
        "What a newcomer waits for: a new process each time, msweb, 5 slots",
        ["process", "seconds", "of the processor", "/ numba", "/ libraries", "laps"],
    )
    for name in ran:
        ratios = (waited[name] / waited[NUMBA], waited[name] / waited[LIBRARIES])
        part.rows.append([name, clock[name], own[name], *ratios, len(ran[name])])
    libraries, first = waited[NUMBA], waited[WARM]
    part.numbers |= {"replay": work, "first use / (numba + replay)": first / (libraries + work)}
    part.notes += [
        "Ratios and verdicts are of the lesser of the two times: the clock counts others who use the machine, the "
        "processor's seconds count threads that nobody waits for.",
        f"Of first use, {libraries:.2f} s are numba's and numpy's, {work:.2f} s are the replay, and "
        f"{first - libraries - work:.2f} s the rest: our modules, kernels from disk, reading the people.",
        f"{LIBRARIES} takes {waited[LIBRARIES] / libraries:.1f} times as long as numba alone: before numba reads a "
        "kernel, it gets ready to compile. Ours are read without.",
        verdict(f"the package opens in {OPENS_IN} s", waited[OPEN] < OPENS_IN),
        verdict(f"first use begins and ends in {BEGINS_IN:g} s", first < BEGINS_IN),
    ]
    return part


def _learner() -> diminuendo.Learner:
    people = diminuendo.msweb()
    setting = diminuendo.Setting(people.n_items, 5, len(people), "full", 1.0, 1e-6)
    return diminuendo.make("private", setting, coins=diminuendo.SeededCoins(1))


def digest(slates: Items) -> str:
    """Names the slates that were shown."""
    return hashlib.sha256(slates.tobytes()).hexdigest()


def agreed(answers: list[str], expected: str) -> None:
    """Whether it compiled or not, a process must have shown the slates that are shown here."""
    if set(answers) != {expected}:
        raise Disagreement("First uses with kernels on disk and without did not show the same slates.")


class Ran(NamedTuple):
    """What a process printed, how long it took, and how long the processor was at it."""

    printed: str
    seconds: float
    own: float


def process(typed: list[str], folder: Path, kernels: Path) -> Ran:
    """Run a new Python, which keeps compiled modules and kernels where it is told to."""
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(folder / "modules"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "NUMBA_CACHE_DIR": str(kernels),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began, before = time.perf_counter(), _spent(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, *typed], env=environment, capture_output=True, text=True, check=True
    )
    return Ran(ran.stdout.strip(), time.perf_counter() - began, _spent(resource.RUSAGE_CHILDREN) - before)


def _process(typed: list[str], folder: Path, kernels: Path, _: object) -> Ran:
    return process(typed, folder, kernels)


def _replayed(learner: diminuendo.Learner) -> tuple[str, float]:
    people, before = diminuendo.msweb(), _spent(resource.RUSAGE_SELF)
    slates = learner.replay(people)
    return digest(slates), _spent(resource.RUSAGE_SELF) - before


def _spent(whose: int) -> float:
    """Seconds of the processor so far."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime
