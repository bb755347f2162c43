"""How much memory a learner takes with a million items, made and after a thousand people.

The floor is what the contract needs: one number for each slot and item, and the rows of people where they are kept.
A learner has a process of its own. Python's tracer sees every array of numpy, written to
or not; what the system gave out (resident) stands beside it, so that nothing hides from the tracer. Kernels are
compiled before, on a few items, and the people themselves are there before anything is counted.

Resting: between two calls. Peak: the most at any time of making it, or of playing and releasing.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np

from benchmarks.flat import uniform_people
from benchmarks.report import Disagreement, Part, verdict
from diminuendo import Learner, People, SeededCoins, Setting
from diminuendo.learners import LEARNERS as ENTRIES
from diminuendo.learners import make
from diminuendo.types import FeedbackKind

N_ITEMS, SLOTS, NNZ = 1_000_000, 10, 50
N_PEOPLE, HORIZON = 1_000, 6_000
MB = 1e6

LEARNERS: tuple[tuple[str, FeedbackKind], ...] = (
    ("overlap-greedy", "full"),
    ("overlap-sums", "full"),
    ("epoch-greedy", "full"),
    ("hedge", "full"),
    ("slate-totals", "bandit"),
    ("slate-clicks", "click"),
)
FLOOR = "floor"

WHY = {
    "overlap-greedy": "for each item 25 rows of earlier releases, of which means are taken, and all that was published",
    "overlap-sums": "for each item 25 running sums and 11 of the open batch, 25 rows of earlier releases, and all that "
    "was published",
    "slate-totals": "for each item 32 draws of what it may be worth",
    "slate-clicks": "for each item 32 draws of what it may be worth",
}
"""What takes most of the room of those that are over."""

GOAL = 3.0
"""Times the floor at rest."""

TOLERANCE = 0.01
"""By how much the tracer may be wrong about arrays of known size: Python's own objects."""


@dataclass(frozen=True)
class Used:
    """In bytes, above what there was before."""

    made: int
    made_peak: int
    resting: int
    peak: int
    resident: int
    """By the system: at rest after people."""
    resident_peak: int


def memory() -> Iterator[Part]:
    """One row for each learner."""
    part = Part(
        "memory",
        f"Memory at {N_ITEMS:,} items, {SLOTS} slots, MB: made, and after {N_PEOPLE:,} people of {NNZ} items each",
        [
            "who",
            "floor",
            "made",
            "its peak",
            "resting",
            "peak",
            "resident",
            "its peak ",
            "resting / floor",
        ],
    )
    check_tracer(measured_apart(FLOOR, "full"))
    over, reasons = list[str](), list[str]()
    for name, feedback in LEARNERS:
        used, least = measured_apart(name, feedback), floor_of(name)
        ratio = used.resting / least
        part.rows.append([name, least / MB, *(number / MB for number in asdict(used).values()), ratio])
        part.numbers |= {f"{name}, resting / floor": ratio, f"{name}, peak / floor": used.peak / least}
        if ratio > GOAL:
            over.append(f"{name} {ratio:.3g}")
            reasons += [f"{name} holds {WHY[name]}."] if name in WHY else []
    part.notes += [
        f"floor: {SLOTS} x {N_ITEMS:,} numbers of 8 bytes; people as CSR where they are kept.",
        verdict(
            f"at rest at most {GOAL:.0f} times the floor; over: {', '.join(over) or '-'}",
            not over,
        ),
        *reasons,
        "At rest a learner's ledger holds all that was published so far, so that nothing is drawn twice.",
    ]
    yield part


def floor_of(name: str) -> int:
    """Bytes."""
    rows = N_PEOPLE * NNZ * (4 + 8) + (N_PEOPLE + 1) * 8
    kept = name in ENTRIES and ENTRIES[name].advice.keeps_people
    return N_ITEMS * 8 * SLOTS + (rows if kept else 0)


def check_tracer(used: Used) -> None:
    """Of arrays of known size the tracer and the system both know."""
    known = floor_of(FLOOR)
    for what, found in (("tracer", used.resting), ("system", used.resident)):
        if abs(found - known) > TOLERANCE * known:
            raise Disagreement(f"Of {known:,} bytes in one array the {what} sees {found:,}.")


def measured_apart(name: str, feedback: FeedbackKind) -> Used:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", name, feedback]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Measuring {name} failed:\n{done.stderr[-2000:]}")
    return Used(**json.loads(done.stdout.splitlines()[-1]))


def measured(name: str, feedback: FeedbackKind) -> Used:
    """In this process."""
    people = uniform_people(N_PEOPLE, N_ITEMS, NNZ)
    if name != FLOOR:
        play(made(name, feedback, 200), uniform_people(300, 200, 10))  # compiles
    gc.collect()
    before = _resident("VmRSS")
    _forget_peak()
    tracemalloc.start()
    learner = None if name == FLOOR else made(name, feedback, N_ITEMS)
    kept = np.ones(N_ITEMS * SLOTS) if learner is None else None
    at_first = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    if learner is not None:
        play(learner, people)
    gc.collect()
    at_last = tracemalloc.get_traced_memory()
    resident, highest = (_resident(what) - before for what in ("VmRSS", "VmHWM"))
    del kept
    return Used(*at_first, *at_last, resident, highest)


def made(name: str, feedback: FeedbackKind, n_items: int) -> Learner:
    """With coins that repeat themselves, so that two measurements agree."""
    return make(name, Setting(n_items, SLOTS, HORIZON, feedback), coins=SeededCoins(1))


def play(learner: Learner, people: People) -> None:
    """Everybody, and one more round, before which what is due is released."""
    learner.replay(people)
    learner.choose()


def _resident(what: str) -> int:
    """Bytes, by the system (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"The system does not tell {what}.")


def _forget_peak() -> None:
    """From now on VmHWM is the most since now."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    print(json.dumps(asdict(measured(sys.argv[1], cast(FeedbackKind, sys.argv[2])))))
