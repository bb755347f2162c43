"""What a charge to the ledger costs, at first and after many, in memory and on disk.

Every release waits for its charge, so charges must stay cheap however long the ledger is. On disk a charge is a
line, written and synced; the floor writes and syncs lines of the same length, and does nothing else.

Neither processor nor disk is left alone for long enough to time a thousand charges at a stretch. So competitors
take turns after every single charge, rather than after every lap as elsewhere.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.report import Disagreement, Part, verdict
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Event, Gaussian, NormalColumns, Selections, to_json
from diminuendo.privacy.ledger import Ledger
from diminuendo.types import Floats

MANY = 50_000
"""Charges before the later ones are timed."""

CHARGES, ON_DISK = 1_000, 200
"""How many are timed of each."""

FRESH = 4
"""How often the first charges are timed, each time to a fresh ledger."""

BATCHES = 10

AMPLE = Budget(1e9, 1e-6)
"""Nothing is refused here."""

Call = Callable[[], None]


def charges() -> Iterator[Part]:
    """Microseconds of a charge, by what is charged."""
    part = Part(
        "ledger",
        f"Charges to a ledger, us each at best: the first {CHARGES:,}, and as many after {MANY:,}",
        [
            "what",
            "first",
            "later",
            "later / first",
            "of medians",
            "a second, later",
            "in a file",
            "write and sync",
        ],
    )
    charge_all(grown := Ledger(AMPLE), some_events(Gaussian, MANY, seed=1))
    for name, kind in KINDS.items():
        events = some_events(kind, CHARGES)
        timed = _in_memory(events, grown)
        (first, later), (usual_first, usual_later) = 1e6 * timed.min(axis=1), np.median(timed, axis=1)
        on_file, floor = (float(best) for best in 1e6 * _on_disk(events[:ON_DISK]).min(axis=1))
        ratios = float(later / first), float(usual_later / usual_first)
        part.rows.append([name, float(first), float(later), *ratios, 1e6 / float(later), on_file, floor])
        part.numbers |= {
            f"later / first, {name}": ratios[1],
            f"file - floor - memory, {name}": on_file - floor - first,
        }
    slowest = max(ratio for what, ratio in part.numbers.items() if what.startswith("later"))
    part.notes += [
        "Rho differs from charge to charge; sums of them are exact fractions.",
        "in a file: written, and synced before the call returns; write and sync: lines of the same length alone.",
        verdict(
            f"a charge after {MANY:,} costs at most 1.1 times a first one, by medians: {slowest:.3g} times",
            slowest <= 1.1,
        ),
    ]
    yield part


def _draws(_: float) -> Event:
    return Selections(10, 2.0**-7)


def _columns(rho: float) -> Event:
    return NormalColumns(0, (rho,) * BATCHES)


KINDS: dict[str, Callable[[float], Event]] = {
    "10 draws": _draws,
    "Gaussian": Gaussian,
    f"{BATCHES} columns": _columns,
}


def some_events(kind: Callable[[float], Event], number: int, seed: int = 0) -> list[Event]:
    """Small costs, all different where the kind has a rho."""
    return [kind(float(rho)) for rho in 1e-3 * np.random.default_rng(seed).random(number)]


def each_charge(ledger: Ledger, events: Sequence[Event], notes: Iterator[int]) -> list[Call]:
    """To charge them one after the other, each with a note of its own, as releases are."""
    return [partial(ledger.charge, event, f"release-{next(notes):06d}") for event in events]


def charge_all(ledger: Ledger, events: Sequence[Event]) -> None:
    """Charge them."""
    for charge in each_charge(ledger, events, count()):
        charge()


def in_turns(*competitors: Sequence[Call]) -> Floats:
    """(competitors, calls): the seconds of every call, where everybody's first come first, then the second ones."""
    took = np.zeros((len(competitors), len(competitors[0])))
    gc.collect()
    gc.disable()
    try:
        for number, calls in enumerate(zip(*competitors, strict=True)):
            for who, call in enumerate(calls):
                began = time.perf_counter()
                call()
                took[who, number] = time.perf_counter() - began
    finally:
        gc.enable()
    return took


def _in_memory(events: list[Event], grown: Ledger) -> Floats:
    """First and later charges."""
    notes = count(MANY)
    laps = []
    for _ in range(FRESH):
        first, later = (each_charge(ledger, events, notes) for ledger in (Ledger(AMPLE), grown))
        laps.append(in_turns(first, later))
    return np.concatenate(laps, axis=1)


def _on_disk(events: list[Event]) -> Floats:
    """Charges, and bare lines."""
    with tempfile.TemporaryDirectory() as folder:
        ours, floor = Path(folder) / "ours", Path(folder) / "floor"
        with Ledger.open(ours, AMPLE) as ledger, floor.open("ab", buffering=0) as file:
            charge_all(ledger, events)
            lines = [partial(write_and_sync, file, line) for line in charged_lines(ours, events)]
            return in_turns(each_charge(ledger, events, count(len(events))), lines)


def write_and_sync(file: FileIO, line: bytes) -> None:
    """A line, and only it, on disk."""
    file.write(line)
    os.fsync(file.fileno())


def charged_lines(path: Path, events: Sequence[Event]) -> list[bytes]:
    """The lines of a file, which holds exactly what was charged."""
    lines = path.read_bytes().splitlines(keepends=True)[1:]
    if [json.loads(line)["charge"] for line in lines] != [to_json(event) for event in events]:
        raise Disagreement("A ledger in a file does not hold what was charged to it.")
    return lines
