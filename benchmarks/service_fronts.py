"""Two front ends against one: requests a second where nothing but the processor is in the way.

Each front end is a process of its own with the app as it is served, asked in that process without a network: who sends
requests would need a processor too. All share one store. Laps of one and of two are taken in turns; the ratio is of
requests a second, so that cores that others use count against us. Beside it stands the same with an echo, which shares
nothing: what two processes are worth on this machine at all.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from benchmarks.report import Part, verdict
from benchmarks.service_peer import KEY, echo, on_store, prepare
from diminuendo.service.records import Report
from diminuendo.service.store import Lease

LAPS, SECONDS, AT_ONCE = 5, 3.0, 32
"""Laps of each; how long one is; and how many ask at the same time."""
LEAST = 1.6
"""Two front ends against one, in decisions a second."""
WORKS = ("echo", "choose", "choose and answer")


class Lap(NamedTuple):
    """What one front end did in one lap."""

    done: int
    cpu: float
    """Seconds of the processor."""
    leases: int


def fronts() -> Iterator[Part]:
    """Decisions alone, and decisions with durable answers."""
    part = Part(
        "fronts",
        f"Two front ends against one on one store, {AT_ONCE} at once, without a network",
        ["what", "one, a second", "two, a second", "ratio", "us each, one", "us each, two", "a lease is of"],
    )
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for work in WORKS:
            laps = [(_lap(folder, work, 1), _lap(folder, work, 2)) for _ in range(LAPS + 1)][1:]
            one, two = (median(sum(each.done for each in pair[many]) for pair in laps) for many in (0, 1))
            ratio = median(sum(e.done for e in both) / alone[0].done for alone, both in laps)
            every = [[each for pair in laps for each in pair[many]] for many in (0, 1)]
            cost = [1e6 * sum(each.cpu for each in some) / sum(each.done for each in some) for some in every]
            leases = sum(each.leases for some in every for each in some)
            of = sum(each.done for some in every for each in some) / leases if leases else None
            part.rows.append([work, one / SECONDS, two / SECONDS, ratio, *cost, "" if of is None else of])
            part.numbers[f"{work}: two / one"] = ratio
            if work == "choose":
                claim = f"two front ends decide at least {LEAST:g} times as often as one: {ratio:.3g}"
                part.notes.append(verdict(claim, ratio >= LEAST))
    yield part


def _lap(folder: str, work: str, many: int) -> list[Lap]:
    """What each of so many front ends did in the same seconds."""
    spawn = multiprocessing.get_context("spawn")
    together, told = spawn.Barrier(many), spawn.SimpleQueue()
    each = [spawn.Process(target=_front, args=(folder, work, together, told)) for _ in range(many)]
    for process in each:
        process.start()
    found = [told.get() for _ in each]
    for process in each:
        process.join()
    return found


def _front(folder: str, work: str, together: Barrier, told: Any) -> None:
    told.put(asyncio.run(_asked(Path(folder), work, together)))


async def _asked(folder: Path, work: str, together: Barrier) -> Lap:
    with on_store(folder) as api:
        store, leases = api.front.store, list[Lease | None]()
        lease: Callable[..., Lease | None] = store.lease

        def counted(placement: int, count: int, seconds: float, report: Report | None) -> Lease | None:
            found = lease(placement, count, seconds, report)
            leases.append(found)
            return found

        store.lease = counted  # type: ignore[method-assign]
        await api.front.start()
        app = echo if work == "echo" else api
        path = "/echo" if work == "echo" else "/v1/placements/shop/decisions"
        await _ask(app, path, b"{}")
        await asyncio.to_thread(together.wait)
        leases.clear()
        until, cpu = time.monotonic() + SECONDS, time.process_time()
        answers = work.endswith("answer")
        done = sum(await asyncio.gather(*(_visits(app, path, answers, until) for _ in range(AT_ONCE))))
        cpu = time.process_time() - cpu
        many = sum(found is not None for found in leases)
        await api.front.stop()
    return Lap(done, cpu, many)


async def _visits(app: Any, path: str, answers: bool, until: float) -> int:
    """One after the other, until it is time; how many."""
    done = 0
    while time.monotonic() < until:
        body = await _ask(app, path, b"{}")
        if answers:
            token = json.loads(body)["token"]
            await _ask(app, "/v1/answers", msgspec.json.encode({"token": token, "click": 2}))
        done += 1
        await asyncio.sleep(0)  # others have their turn, as they would where a reply is sent
    return done


async def _ask(app: Any, path: str, body: bytes) -> bytes:
    """One request to the app itself."""
    got: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] < 300, message["status"]
        else:
            got.append(message["body"])

    headers = [
        (b"authorization", b"Bearer " + KEY.encode()),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    await app(scope, receive, send)
    return b"".join(got)
