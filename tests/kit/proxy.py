"""A proxy before a server that can fall silent: connections stay, are accepted, and nothing passes, either way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Proxy:
    """Passes on what comes over TCP to a server's socket, and back, unless it is cut."""

    def __init__(self, to: Path) -> None:
        self._to, self._loop = to, asyncio.new_event_loop()
        self._passes = asyncio.Event()
        self._passes.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Pass nothing on from now on."""
        self._loop.call_soon_threadsafe(self._passes.clear)

    def heal(self) -> None:
        """Pass on what has come meanwhile, and go on."""
        self._loop.call_soon_threadsafe(self._passes.set)

    def close(self) -> None:
        """Hang up."""

        async def hang_up() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_unix_connection(self._to)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._passed(reader, here), self._passed(there, writer))

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while read := await reader.read(2**16):
                await self._passes.wait()
                writer.write(read)
                await writer.drain()
        finally:
            writer.close()


@contextmanager
def proxy(to: Path) -> Iterator[Proxy]:
    """One that ends with the test."""
    made = Proxy(to)
    try:
        yield made
    finally:
        made.close()
