"""What a billion users a day would cost, reckoned from what one of them costs here.

    python -m benchmarks.scaling            measures the units, and writes benchmarks/results/scaling.json
    python -m benchmarks.scaling --write    writes the tables of docs/scaling.md from what was measured

A unit is seconds of the processor or bytes for one decision, one answer or one user who is kept, each measured by
itself. The rest is multiplication. Prices are assumptions, said with the table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import msgspec
import numpy as np
import scipy

from benchmarks.requests import http
from diminuendo import NoisyOr, SeededSource, Users
from diminuendo.learners.overlap.recipes import overlap_greedy
from diminuendo.service.front.serving import padded
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec, PublicMenu, Said, Shown
from diminuendo.service.seal import Sealer
from diminuendo.service.store import AnswerRow, IdBlockRow
from diminuendo.service.store.sqlite import SqliteStore
from diminuendo.service.trainer.placement import Placement
from diminuendo.service.trainer.trainer import Trainer

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "scaling.json", ROOT / "docs" / "scaling.md"
DAY, PEAK = 86_400.0, 5.0
"""Seconds of a day; and how much busier its busiest hour is than an average one."""
USERS = 1_000_000_000
GROUP, ANSWERS, WANTS = 50, 20_000, 20
"""Answers of a commit; answers that are measured; and items that somebody wants."""
CORE_MONTH, DISK_MONTH, MEMORY_MONTH = 30.0, 0.10, 4.0
"""Dollars for a month: of a core with 4 GB, of a gigabyte of disk, of a gigabyte of memory beyond that."""
KEPT_ITEMS, KEPT_USERS = 100_000, 200_000
BEGIN, END = "<!-- reckoned: {} -->", "<!-- end -->"


def answers(feedback: Literal["full", "click"]) -> dict[str, float]:
    """Of one answer: bytes in the store, and microseconds of the trainer's processor to take it in; and how many
    milliseconds of it a release takes besides."""
    with tempfile.TemporaryDirectory() as name:
        folder, wall = Path(name), [1000.0]
        store = SqliteStore(folder / "store.db", wall=lambda: wall[0])
        delta = 1e-6 if feedback == "full" else 0.0
        store.add_population("users", msgspec.json.encode(PopulationSpec(1.0, delta)))
        items = tuple(map(str, range(294)))
        spec = PlacementSpec(
            "users", items, 5, feedback, 10 * ANSWERS, delta=delta, deadline=1.0, per_second=2.0 * ANSWERS,
        )  # fmt: skip
        store.add_placement("home", "users", msgspec.json.encode(spec))
        trainer = Trainer(store, folder / "keys", listens=0.0, log=Log(StringIO()))
        trainer.step()
        wall[0] += 5.0
        menu = msgspec.json.decode(store.menus(1)[-1].body, type=PublicMenu)
        number, key = menu.seal.split(":")
        sealer, rng = Sealer(bytes.fromhex(key), int(number)), np.random.default_rng(1)
        taken = 0
        before = (folder / "store.db").stat().st_size
        while taken < ANSWERS and (id_block := store.reserve_ids(1, 500, 1.0, None)) is not None:
            rows = []
            for at in range(id_block.first, id_block.end):
                shown = Shown(1, at, id_block.version, True, tuple(range(5)))
                wants = {int(item): 0.5 for item in rng.choice(294, WANTS, replace=False)}
                said = Said(shown, ratings=wants) if feedback == "full" else Said(shown, click=2)
                rows.append(AnswerRow(1, at, sealer.seal(padded(said))))
            for first in range(0, len(rows), GROUP):
                store.put(rows[first : first + GROUP])
            taken += len(rows)
        store._file.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        size = ((folder / "store.db").stat().st_size - before) / taken
        wall[0] += 3.0
        taking, take_in = list[float](), Placement._take_in

        def timed(self: Placement, id_block: IdBlockRow) -> None:
            began = time.process_time()
            take_in(self, id_block)
            taking.append(time.process_time() - began)

        began = time.process_time()
        with mock.patch.object(Placement, "_take_in", timed):
            trainer.step()
        spent = time.process_time() - began
        releases = len(store.menus(1)) - 1
        store.close()
    assert releases, "something is released"
    besides = 1000 * (spent - sum(taking)) / releases
    return {"bytes": size, "trainer": 1e6 * sum(taking) / taken, "release, ms": besides}


def kept() -> dict[str, float]:
    """Of one user who is kept and wants 20 of 100,000 things: bytes, and microseconds of one release."""
    rng = np.random.default_rng(1)
    rows = np.repeat(np.arange(KEPT_USERS), WANTS)
    items = rng.integers(0, KEPT_ITEMS, KEPT_USERS * WANTS)
    worth = np.full(KEPT_USERS * WANTS, 0.5)
    matrix = scipy.sparse.csr_array((worth, (rows, items)), shape=(KEPT_USERS, KEPT_ITEMS))
    np.minimum(matrix.data, 1.0, out=matrix.data)
    bytes_of_row = (matrix.data.nbytes + matrix.nnz * 4 + 8 * KEPT_USERS) / KEPT_USERS

    def spent(many: int) -> float:
        users = Users(NoisyOr(), matrix[:many], KEPT_ITEMS)
        learner = overlap_greedy(KEPT_ITEMS, 5, horizon=many, epsilon=1.0, delta=1e-6, rng=SeededSource(1))
        began = time.process_time()
        learner.replay(users)
        return time.process_time() - began

    spent(1_000)  # compiles
    small, large = spent(KEPT_USERS // 10), spent(KEPT_USERS)
    return {"bytes": bytes_of_row, "replay": 1e6 * (large - small) / (0.9 * KEPT_USERS)}


def measured() -> dict[str, Any]:
    """All units."""
    return {
        "http": http(),
        "click": answers("click"),
        "full": answers("full"),
        "kept": kept(),
        "peak memory of this run, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cores": os.cpu_count(),
    }


def units(found: dict[str, Any]) -> str:
    """The table of what one costs."""
    rows = [
        ("a decision over HTTP", f"{found['http']['decision']:.0f} us of a front end"),
        ("a durable answer over HTTP", f"{found['http']['answer']:.0f} us of a front end"),
        ("a click, taken in", f"{found['click']['trainer']:.0f} us of a trainer"),
        (f"{WANTS} wishes, taken in", f"{found['full']['trainer']:.0f} us of a trainer"),
        ("a release and its menu, 294 items, clicks", f"{found['click']['release, ms']:.0f} ms of a trainer"),
        (f"an answer of {WANTS} wishes, sealed, in the store", f"{found['full']['bytes']:.0f} bytes until it is read"),
        (f"somebody who is kept and wants {WANTS} of {KEPT_ITEMS:,} things", f"{found['kept']['bytes']:.0f} bytes"),
        ("the same, all releases together", f"{found['kept']['replay']:.1f} us of a trainer"),
    ]  # fmt: skip
    return "\n".join(["| one | costs |", "|---|---:|", *(f"| {name} | {cost} |" for name, cost in rows)])


def reckoned(found: dict[str, Any], users: int = USERS) -> str:
    """The table of what so many a day cost."""

    def cores(us: float) -> float:
        return users * us / 1e6 / DAY

    def row(name: str, us: float, disk: float = 0.0, memory: float = 0.0) -> str:
        average, busiest = cores(us), PEAK * cores(us)
        money = max(1.0, busiest) * CORE_MONTH + disk * DISK_MONTH + memory * MEMORY_MONTH
        sizes = [f"{disk:,.0f} GB" if disk else "", f"{memory:,.0f} GB" if memory else ""]
        known = [f"{average:.2g}", f"{busiest:.2g}"] if us else ["", ""]
        return f"| {name} | {' | '.join([*known, *sizes])} | {money:,.0f} |"

    web, click, full, kept = (found[name] for name in ("http", "click", "full", "kept"))
    waits = 600.0 / DAY  # answers are read a deadline after they came, and then deleted
    lines = [
        "| part | cores, on average | at the busiest | disk | memory | dollars a month |",
        "|---|---:|---:|---:|---:|---:|",
        row("front ends, a decision and an answer each", web["decision"] + web["answer"]),
        row("store, answers that wait for their deadline", 0.0, PEAK * waits * users * full["bytes"] / 1e9),
        row("trainers, clicks", click["trainer"]),
        row(f"trainers, {WANTS} wishes each, sums", full["trainer"]),
        row("the same, everybody is kept", full["trainer"] + kept["replay"], 0.0, users * kept["bytes"] / 1e9),
        row(
            "the same, one in a hundred is kept",
            (full["trainer"] + kept["replay"]) / 100, 0.0, users / 100 * kept["bytes"] / 1e9,
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def written(page: str, found: dict[str, Any]) -> str:
    """The page with its tables as they follow from what was measured."""
    for name, table in (("units", units(found)), ("a billion", reckoned(found))):
        begin = BEGIN.format(name)
        before, rest = page.split(begin, 1)
        page = f"{before}{begin}\n{table}\n{END}{rest.split(END, 1)[1]}"
    return page


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--write", action="store_true", help="only write the page from what was measured")
    if not parser.parse_args().write:
        RESULTS.write_text(json.dumps(measured(), indent=2) + "\n")
    result = json.loads(RESULTS.read_text())
    PAGE.write_text(written(PAGE.read_text(), result))
    print(units(result), reckoned(result), sep="\n\n")


if __name__ == "__main__":
    main()
