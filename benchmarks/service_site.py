"""A whole site, as `diminuendo serve` runs it, and people who come to it at a steady rate, whether it keeps up or not.

A visit is due at a time that does not depend on how earlier ones went, and so is its answer: what a request takes is
counted from when it was due, so whoever had to wait for a connection has waited. 32 connections of this machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from diminuendo.service.keys import new_access_key
from diminuendo.service.processes import Processes
from diminuendo.service.site import read_site

CONNECTIONS = 32
READY = 120.0
"""Seconds that a site may take to get ready."""
SITE = """
{stores}
keys = "keys"
listen = "127.0.0.1:0"
[access]
serve = ["{serves}"]
operate = ["{operates}"]
[populations.everybody]
epsilon = 1.0
delta = {delta}
[placements.home]
population = "everybody"
"""


class Running(NamedTuple):
    """A site that runs."""

    address: str
    key: str
    """To serve with."""
    operator: str
    """The operator's key."""
    processes: Processes


@contextmanager
def site(folder: Path, *, stores: str = 'store = "site.db"', **facts: Any) -> Iterator[Running]:
    """A site with one placement, `home`, in that folder, and these lines about its store. It is stopped at the end."""
    (key, serves), (operator, operates) = new_access_key(), new_access_key()
    lines = "".join(f"{name} = {json.dumps(said)}\n" for name, said in facts.items())
    path = folder / "site.toml"
    path.write_text(
        SITE.format(serves=serves, operates=operates, delta=facts["delta"], stores=stores) + lines
    )
    subprocess.run([sys.executable, "-m", "diminuendo.service", "prepare", str(path)], check=True, stdout=-3)
    told = read_site(path)
    processes = Processes(path, told.host, told.port, told.front_ends, print, told.trainers)
    address = f"http://127.0.0.1:{processes.port}"
    try:
        processes.watch()
        until = time.monotonic() + READY
        while not _ready(address):
            processes.watch()
            assert time.monotonic() < until, "the site did not get ready"
            time.sleep(0.1)
        yield Running(address, key, operator, processes)
    finally:
        processes.stop()


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/readyz", timeout=1.0) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


class Waited(NamedTuple):
    """What one request took."""

    due: float
    """Seconds since the first visit."""
    milliseconds: float
    answer: bool


class People:
    """Come one after the other, and answer a moment later."""

    def __init__(
        self, running: Running, rate: float, says: Callable[[int, list[str]], dict[str, Any]]
    ) -> None:
        """`says`: what a person answers to a slate, by the number of her visit. `rate`: visits a second."""
        self._port, self._key = running.processes.port, running.key
        self._rate, self._says = rate, says
        self.waits: list[Waited] = []
        self.slates: dict[int, list[str]] = {}
        """What each person was shown."""
        self.tokens: dict[int, str] = {}
        self.problems = 0
        """Replies that were neither a decision nor an acknowledgement."""

    async def come(self, many: int, thinks: float = 0.05) -> None:
        """That many visits. `thinks`: seconds until a person answers."""
        self._loop, self._jobs = asyncio.get_running_loop(), asyncio.Queue[tuple[float, int, bytes | None]]()
        self._began, self._left, self._thinks = time.monotonic(), 2 * many, thinks
        workers = [asyncio.create_task(self._work()) for _ in range(CONNECTIONS)]
        for number in range(many):
            due = self._began + number / self._rate
            if (pause := due - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            self._jobs.put_nowait((due, number, None))
        await self._jobs.join()
        while self._left:
            await asyncio.sleep(0.05)
        for worker in workers:
            worker.cancel()

    async def _work(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while True:
            due, number, said = await self._jobs.get()
            path = "/v1/answers" if said else "/v1/placements/home/decisions"
            status, body = await self._asked(reader, writer, path, said or b"{}")
            taken = 1000 * (time.monotonic() - due)
            self.waits.append(Waited(due - self._began, taken, said is not None))
            self._left -= 1
            if status not in (201, 202):
                self.problems += 1
                self._left -= said is None
            elif said is None:
                found = json.loads(body)
                self.slates[number], self.tokens[number] = found["slate"], found["token"]
                answer = {"token": found["token"], **self._says(number, found["slate"])}
                again = time.monotonic() + self._thinks
                self._loop.call_later(
                    self._thinks, self._jobs.put_nowait, (again, number, json.dumps(answer).encode())
                )
            self._jobs.task_done()

    async def _asked(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: bytes
    ) -> tuple[int, bytes]:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {self._key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(lines.split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(lines[9:12]), await reader.readexactly(size)


def share(waits: Sequence[Waited], part: float) -> float:
    """The milliseconds that this part of them took at most."""
    ordered = sorted(each.milliseconds for each in waits)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
