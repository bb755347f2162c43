"""The service over HTTP: seconds of the processor for a decision and for a durable answer, against an echo.

The server is one process with uvloop and httptools; whoever asks is another, over plain sockets of this machine. The
echo reads the same body in the same process and answers {}, as a route of the framework; the bare echo, the floor, does
so without one. The peer commits answers one by one. Laps are taken in turns; ratios are of seconds of the server's
processor for one request, which others on the machine disturb least.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.report import Part, verdict
from benchmarks.service_peer import KEY

LAPS, REQUESTS = 5, 4_000
"""Laps of each, and requests of a lap."""
CONNECTIONS = (32, 128)
CHOOSE, ANSWER, ECHO, BARE, ONE = "choose", "durable answer", "echo", "bare echo", "answer, one by one"
MOST = {CHOOSE: 1.3, ANSWER: 1.7}
"""Times the echo."""
GROUPS_WIN = 2.0
"""Group commit against one by one at 128 connections, in requests a second."""


class Lap(NamedTuple):
    """What one lap took."""

    cpu: float
    """Microseconds of the server's processor, for a request."""
    rate: float
    """Requests a second, by the clock."""
    waits: list[float]
    """Milliseconds, of each request."""


class _Connection(asyncio.Protocol):
    """Sends requests one after the other, each when the last has been answered."""

    def __init__(
        self, requests: Iterator[bytes], waits: list[float], bodies: list[bytes] | None, expected: bytes
    ) -> None:
        self._requests, self._waits, self._bodies, self._expected = requests, waits, bodies, expected
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        """Go on when the reply is whole."""
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            return
        self._waits.append(1000 * (time.perf_counter() - self._sent))
        if not head.startswith(self._expected):
            self.done.set_exception(AssertionError(head.decode()))
            return
        if self._bodies is not None:
            self._bodies.append(body)
        self._got = b""
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
        else:
            self._sent = time.perf_counter()
            self._transport.write(request)


def request(path: str, body: bytes = b"{}") -> bytes:
    """One request, as it is sent."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {KEY}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def send(
    port: int,
    requests: Sequence[bytes],
    connections: int,
    expected: bytes = b"HTTP/1.1 20",
    keep: bool = False,
) -> tuple[list[float], list[bytes]]:
    """How long each took, and what came back."""
    waits, bodies, rest = list[float](), list[bytes](), iter(requests)
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: _Connection(rest, waits, bodies if keep else None, expected), "127.0.0.1", port
        )
        for _ in range(min(connections, len(requests)))
    ]
    await asyncio.gather(*(each.done for _, each in made))
    return waits, bodies


async def ask(port: int, path: str, body: bytes = b"{}") -> bytes:
    """One request, and its reply."""
    _, (found,) = await send(port, [request(path, body)], 1, keep=True)
    return found


async def lap(port: int, requests: Sequence[bytes], connections: int) -> Lap:
    """All of them, timed."""
    before, began = float(await ask(port, "/cpu")), time.perf_counter()
    waits, _ = await send(port, requests, connections)
    took = time.perf_counter() - began
    cpu = float(await ask(port, "/cpu")) - before
    return Lap(1e6 * cpu / len(requests), len(requests) / took, waits)


async def tokens(port: int, many: int) -> list[bytes]:
    """Answers to that many decisions, each of its own."""
    found: list[bytes] = []
    while len(found) < many:
        body = await ask(port, "/v1/placements/shop/decisions", b'{"count": 1000}')
        found += [
            b'{"token":"%s","click":2}' % each["token"].encode() for each in json.loads(body)["decisions"]
        ]
    return found[:many]


async def race(port: int) -> dict[tuple[str, int], list[Lap]]:
    """All competitors in turns."""
    found: dict[tuple[str, int], list[Lap]] = {}
    for number in range(LAPS + 1):
        for connections in CONNECTIONS:
            said = await tokens(port, 2 * REQUESTS)
            works = {
                ECHO: [request("/echo", each) for each in said[:REQUESTS]],
                BARE: [request("/bare", each) for each in said[:REQUESTS]],
                CHOOSE: [request("/v1/placements/shop/decisions")] * REQUESTS,
                ANSWER: [request("/v1/answers", each) for each in said[:REQUESTS]],
                ONE: [request("/v1/answers", each) for each in said[REQUESTS : REQUESTS + REQUESTS // 2]],
            }
            for name, requests in works.items():
                await ask(port, "/one-by-one" if name == ONE else "/grouped")
                one = await lap(port, requests, connections)
                if number:  # the first lap warms up
                    found.setdefault((name, connections), []).append(one)
    return found


def service() -> Iterator[Part]:
    """Ratios to the echo, and group commit against one by one."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service_peer", folder], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            yield _part(asyncio.run(race(int(server.stdout.readline()))))
        finally:
            server.kill()
            server.wait()


def _part(found: dict[tuple[str, int], list[Lap]]) -> Part:
    part = Part(
        "service",
        "A request over HTTP: microseconds of the server's processor, and what it is as a multiple of an echo",
        [
            "request",
            "connections",
            "us, best",
            "us, median",
            "/ echo",
            "a second, best",
            "half ms",
            "99 % ms",
        ],
    )
    ratios: dict[tuple[str, int], float] = {}
    for (name, connections), laps in found.items():
        echoes = found[ECHO, connections]
        ratio = median(one.cpu / echo.cpu for one, echo in zip(laps, echoes, strict=True))
        ratios[name, connections] = ratio
        waits = sorted(wait for one in laps for wait in one.waits)
        part.rows.append(
            [
                name,
                connections,
                min(one.cpu for one in laps),
                median(one.cpu for one in laps),
                ratio,
                max(one.rate for one in laps),
                waits[len(waits) // 2],
                waits[len(waits) * 99 // 100],
            ]
        )
    for name, most in MOST.items():
        ratio = ratios[name, CONNECTIONS[0]]
        part.numbers[f"{name} / echo"] = ratio
        part.notes.append(
            verdict(f"{name}: at most {most:g} times the echo's processor: {ratio:.3g}", ratio <= most)
        )
    many = CONNECTIONS[-1]
    wins = median(
        group.rate / one.rate for group, one in zip(found[ANSWER, many], found[ONE, many], strict=True)
    )
    part.numbers["group commit / one by one"] = wins
    part.notes.append(
        verdict(
            f"group commit at {many} connections: at least {GROUPS_WIN:g} times as many a second as one by one: "
            f"{wins:.3g}",
            wins >= GROUPS_WIN,
        )
    )
    return part
