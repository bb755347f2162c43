"""The service as it is timed: one front end on a store with one placement and a menu that lasts.

    python -m benchmarks.server FOLDER

The port that it listens on is printed first. `/cpu` says how many seconds of the processor the process has used.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any, cast

import msgspec
import uvicorn
from nacl.bindings import crypto_box_keypair

from diminuendo.service.api import ApiConfig, create_app
from diminuendo.service.api.app import Api
from diminuendo.service.api.wire import JSON, reply
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec, PublicMenu
from diminuendo.service.store import Publication, open_store
from diminuendo.service.store.sql import Store

KEY, ITEMS, SLOTS = "key", 294, 5


def prepare(folder: Path) -> None:
    """A store with one placement and a menu that lasts."""
    with open_store(_address(folder)) as store:
        _prepare(store)


def _address(folder: Path) -> str:
    return f"sqlite:{folder / 'store.db'}"


def _prepare(store: Store) -> None:
    store.add_population("users", msgspec.json.encode(PopulationSpec(1.0, 1e-6)))
    names = tuple(f"item-{number}" for number in range(ITEMS))
    spec = PlacementSpec("users", names, SLOTS, "click", 100_000_000)
    number = store.add_placement("shop", "users", msgspec.json.encode(spec))
    deck = tuple(place % 7 for place in range(2_000_000))
    slates = tuple(tuple(range(first, first + SLOTS)) for first in range(7))
    menu = PublicMenu(
        1,
        "rounds",
        SLOTS,
        0,
        len(deck),
        slates[0],
        slates,
        deck,
        head="00",
        seal=f"1:{crypto_box_keypair()[0].hex()}",
    )
    body = msgspec.json.encode(menu)
    store.publish(
        store.acquire_leadership("users", "nobody"),
        Publication(number, body, 1, 0, len(deck), len(deck), store.now(), b"", 0),
    )


@contextmanager
def on_store(folder: Path) -> Iterator[Api]:
    """A front end on that store."""
    keys = {"client": [sha256(KEY.encode()).hexdigest()]}
    config = ApiConfig({1: bytes(32)}, bytes(32), cast(Any, keys))
    with open_store(_address(folder)) as store:
        yield create_app(store, config, Log(StringIO()))


class Timed:
    """Our app, and the processor's seconds."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if path == "/cpu":
            await reply(send, 200, JSON, b"%.6f" % time.process_time())
        else:
            await self._api(scope, receive, send)


def main() -> None:
    """Serve until killed."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    print(listening.getsockname()[1], flush=True)
    folder = Path(sys.argv[1])
    prepare(folder)
    with on_store(folder) as api:
        app = Timed(api)
        config = uvicorn.Config(app, loop="uvloop", http="httptools", access_log=False, log_level="error")
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
