"""Requests over plain sockets of this machine, and microseconds of the server's processor for one of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.server import KEY

LAPS, REQUESTS, CONNECTIONS = 3, 4_000, 32
"""Laps, after one that warms up; requests of a lap; and connections that they are sent over."""


class _Connection(asyncio.Protocol):
    """Sends requests one after the other, each when the last has been answered."""

    def __init__(self, requests: Iterator[bytes], bodies: list[bytes]) -> None:
        self._requests, self._bodies = requests, bodies
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
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
            return
        if not head.startswith(b"HTTP/1.1 20"):
            self.done.set_exception(AssertionError(head.decode()))
            return
        self._bodies.append(body)
        self._got = b""
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self.done.set_result(None)
        else:
            self._transport.write(request)


def request(path: str, body: bytes = b"{}") -> bytes:
    """One request, as it is sent."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {KEY}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def send(port: int, requests: Sequence[bytes]) -> list[bytes]:
    """The bodies of all replies."""
    bodies, rest, loop = list[bytes](), iter(requests), asyncio.get_running_loop()
    connections = [
        await loop.create_connection(lambda: _Connection(rest, bodies), "127.0.0.1", port)
        for _ in range(min(CONNECTIONS, len(requests)))
    ]
    await asyncio.gather(*(connection.done for _, connection in connections))
    return bodies


async def lap(port: int, requests: Sequence[bytes]) -> float:
    """Microseconds of the server's processor for one request."""
    (before,) = await send(port, [request("/cpu")])
    await send(port, requests)
    (after,) = await send(port, [request("/cpu")])
    return 1e6 * (float(after) - float(before)) / len(requests)


async def answers(port: int) -> list[bytes]:
    """Answers to as many decisions as a lap has requests."""
    bodies: list[bytes] = []
    while len(bodies) < REQUESTS:
        (reply,) = await send(port, [request("/v1/placements/shop/decisions", b'{"count": 1000}')])
        bodies += [
            b'{"token":"%s","click":2}' % each["token"].encode() for each in json.loads(reply)["decisions"]
        ]
    return [request("/v1/feedback", body) for body in bodies[:REQUESTS]]


async def race(port: int) -> dict[str, float]:
    """Medians of the laps, taken in turns."""
    laps: dict[str, list[float]] = {"decision": [], "answer": []}
    for _ in range(LAPS + 1):
        laps["decision"].append(await lap(port, [request("/v1/placements/shop/decisions")] * REQUESTS))
        laps["answer"].append(await lap(port, await answers(port)))
    return {name: median(times[1:]) for name, times in laps.items()}


def http() -> dict[str, float]:
    """Microseconds of a front end's processor, for one decision and one durable answer over HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.server", folder], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            return asyncio.run(race(int(server.stdout.readline())))
        finally:
            server.kill()
            server.wait()
