"""How long people wait while a trainer releases, against the same site where nothing is released yet.

Front end, trainer and whoever asks share this machine. With a deadline of minutes nothing is settled in the time that
is measured, so nothing is released: what is left is what others on the machine do. Beside both, a probe asks the disk
for 20 small syncs a second: where the disk itself lets one of a hundred wait, so does every durable answer, whatever we
do, and that is said with the ratio.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.report import Part, verdict
from benchmarks.service_site import People, Waited, share, site
from diminuendo.service.store import open_store

ITEMS = (294, 10_000, 100_000)
RATE, SECONDS, WARM = 200.0, 20.0, 3.0
"""Visits a second; for how long; and how much of that is not counted."""
MOST = 5.0
"""The wait that one of a hundred exceeds, as a multiple of that which half exceed."""
SOON, NEVER = 0.3, 600.0
"""Deadlines, in seconds: many releases, and none."""


def releases() -> Iterator[Part]:
    """Decisions and answers, by the number of items, with releases and without."""
    columns = [
        "feedback, items",
        "request",
        "menus",
        "half ms",
        "99 % ms",
        "longest ms",
        "ratio",
        "ratio, no release",
        "disk ratio",
    ]
    part = Part(
        "releases", f"Waits while a trainer releases: {RATE:.0f} visits a second, 32 connections", columns
    )
    for feedback in ("full", "click"):
        for items in ITEMS:
            quiet, _, _ = _waits(feedback, items, NEVER)
            busy, menus, disk = _waits(feedback, items, SOON)
            for answer, name in ((False, "choose"), (True, "durable answer")):
                with_, without = ([each for each in one if each.answer == answer] for one in (busy, quiet))
                half, most = share(with_, 0.5), share(with_, 0.99)
                ratio = most / half
                part.rows.append(
                    [f"{feedback}, {items:,}", name, menus, half, most, share(with_, 1.0), ratio,
                     share(without, 0.99) / share(without, 0.5), disk if answer else ""]
                )  # fmt: skip
                part.numbers[f"{feedback}, {items}, {name}: 99 % / half"] = ratio
                claim = f"{name}, {feedback}, {items:,} items: 99 of 100 wait at most {MOST:g} times as long as half"
                part.notes.append(verdict(f"{claim}: {ratio:.3g}", ratio <= MOST))
    yield part


@contextmanager
def _disk(folder: Path) -> Iterator[list[float]]:
    """The milliseconds that small syncs take meanwhile, in a file of their own."""
    found, over = list[float](), threading.Event()

    def ask() -> None:
        file = os.open(folder / "probe", os.O_RDWR | os.O_CREAT)
        while not over.wait(0.05):
            began = time.monotonic()
            os.pwrite(file, bytes(4096), 0)
            os.fdatasync(file)
            found.append(1000 * (time.monotonic() - began))
        os.close(file)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _waits(feedback: str, items: int, deadline: float) -> tuple[list[Waited], int, float]:
    """What each request took, how many menus there were, and the ratio of the disk by itself."""
    coins = random.Random(1)

    def says(number: int, slate: list[str]) -> dict[str, Any]:
        wants = {str(int(items * coins.random() ** 6)) for _ in range(3)}
        if feedback == "full":
            return {"wants": sorted(wants)}
        return {"click": next((slot for slot, item in enumerate(slate) if item in wants), None)}

    facts: dict[str, Any] = {
        "items": items,
        "slots": 5,
        "feedback": feedback,
        "people": 20_000,
        "epsilon": 1.0,
    }
    facts |= {"delta": 1e-6 if feedback == "full" else 0.0, "per_second": 1.5 * RATE, "deadline": deadline}
    with tempfile.TemporaryDirectory() as folder:
        with site(Path(folder), tick=0.1, allowance=0.1, **facts) as running:
            people = People(running, RATE, says)
            with _disk(Path(folder)) as syncs:
                uvloop.run(people.come(int(RATE * SECONDS)))
            with open_store(str(Path(folder) / "site.db")) as store:
                menus = len(store.menus(1))
        assert not people.problems
    syncs.sort()
    disk = syncs[int(0.99 * len(syncs))] / syncs[len(syncs) // 2]
    return [each for each in people.waits if each.due >= WARM], menus, disk
