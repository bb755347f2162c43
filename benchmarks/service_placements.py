"""A thousand placements on one trainer and one front end: what they cost while nobody comes, and whether releases are
in time if some do.

    python -m benchmarks.service_placements PLACEMENTS SECONDS

Each placement has a population of its own. First nobody comes; then another process takes leases of fifty of them in
turn, ten a second in all, and nobody answers, which makes no difference to when something is due. Counted are seconds
of processor, statements of SQL, releases, and overruns of the allowance. The front end is in the same process, with a
connection of its own, while the trainer does nothing.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from diminuendo.service.front.front import Front
from diminuendo.service.front.names import Names
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementFacts, PopulationFacts
from diminuendo.service.store import open_store
from diminuendo.service.trainer.trainer import Trainer

LEASES, ROUNDS, VISITED = 10.0, 60, 50
"""Leases a second, of how many rounds each, of how many placements in turn."""

COMES = """
import sys, time
from diminuendo.service.store import open_store
with open_store(sys.argv[1]) as store:
    began, taken = time.monotonic(), 0
    while time.monotonic() < began + float(sys.argv[3]):
        taken += store.lease(1 + taken % int(sys.argv[2]), int(sys.argv[5]), 1.5, None) is not None or 1
        time.sleep(max(0.0, began + taken / float(sys.argv[4]) - time.monotonic()))
"""


def made(folder: Path, placements: int) -> Any:
    """A store with as many placements, and the trainer of all of them, when each has its first menu."""
    store = open_store(str(folder / "site.db"))
    for number in range(placements):
        name = f"q{number}"
        facts = PlacementFacts(
            name, tuple(f"item {item}" for item in range(12)), 2, "bandit", 100_000, "slate-totals", delta=0.0,
            deadline=2.0, per_second=8.0, tick=1.0, allowance=2.0,
        )  # fmt: skip
        store.add_population(name, msgspec.json.encode(PopulationFacts(1.0, 0.0)))
        store.add_placement(f"p{number}", name, msgspec.json.encode(facts))
    trainer = Trainer(store, folder / "keys")
    while len(trainer.placements) < placements:
        trainer.step()
    return trainer


def looked(path: Path, seconds: float) -> str:
    """What a front end needs in a second, when it knows all menus."""
    with open_store(str(path)) as store:
        front = Front(store, Tokens({1: bytes(32)}), Names(bytes(32)), "front-0", Log(io.StringIO()))

        async def rests() -> str:
            await front.start()
            await asyncio.sleep(2.0)
            told = counts(store)
            await asyncio.sleep(seconds)
            found = told()
            await front.stop()
            return found

        return asyncio.run(rests())


def watched(trainer: Any, seconds: float) -> str:
    """What a trainer needs in a second."""
    told, until = counts(trainer._store), time.monotonic() + seconds
    trainer.run(lambda: time.monotonic() < until)
    return told()


def counts(store: Any) -> Callable[[], str]:
    """Count from now on what this process and a store of it do; what that is in a second."""
    statements = [0, 0]

    def counted(statement: str) -> None:
        statements[0] += 1
        statements[1] += statement == "COMMIT"

    store._file._db.set_trace_callback(counted)
    began, used = time.monotonic(), time.process_time()
    return lambda: _said(store, time.monotonic() - began, time.process_time() - used, *statements)


def _said(store: Any, lasted: float, used: float, *statements: int) -> str:
    store._file._db.set_trace_callback(None)
    processor, asked, written = (each / lasted for each in (used, *statements))
    return f"a second {processor:.3f} s of processor, {asked:,.0f} statements, {written:,.1f} commits"


def main() -> None:
    """Print what was counted."""
    placements, seconds = int(sys.argv[1]), float(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        began, used = time.monotonic(), time.process_time()
        trainer = made(folder, placements)
        print(
            f"{placements} placements begun in {time.monotonic() - began:.0f} s, "
            f"{time.process_time() - used:.0f} s of processor"
        )
        if hasattr(trainer, "leave"):
            trainer.leave = lambda: None  # it is run twice
        print(f"nobody comes: {watched(trainer, seconds)}")
        print(f"a front end: {looked(folder / 'site.db', seconds)}")
        before = sum(each.overruns for each in trainer.placements.values())  # of first menus, while it began
        menus = [sum(len(trainer._store.menus(number + 1)) for number in range(placements))]
        rest = [
            str(folder / "site.db"),
            str(min(placements, VISITED)),
            str(seconds),
            str(LEASES),
            str(ROUNDS),
        ]
        comes = subprocess.Popen([sys.executable, "-c", COMES, *rest])
        found = watched(trainer, seconds + 6)
        comes.wait()
        menus.append(sum(len(trainer._store.menus(number + 1)) for number in range(placements)))
        late = sum(each.overruns for each in trainer.placements.values()) - before
        behind = sum(each.learner.rounds for each in trainer.placements.values())
        print(f"{LEASES:.0f} leases a second: {found}")
        print(f"{behind:,} rounds known, {menus[1] - menus[0]:,} menus published, {late} overruns")


if __name__ == "__main__":
    main()
