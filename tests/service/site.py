"""A small site for tests: a store in a file, menus as a trainer publishes them, an app, a client without sockets."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvicorn
from nacl.bindings import crypto_box_keypair, crypto_box_open

from diminuendo.service.api import ApiConfig, create_app
from diminuendo.service.api.app import Api
from diminuendo.service.front.placement import KNOWN_BY
from diminuendo.service.log import Log
from diminuendo.service.records import PlacementSpec, PopulationSpec, PublicMenu, Said
from diminuendo.service.store import Publication
from diminuendo.service.store.sql import Store
from diminuendo.service.store.sqlite import SqliteStore

PUBLIC, SECRET = crypto_box_keypair()
ITEMS = ("apple", "pear", "plum", "quince")
KEYS = {role: f"the key of {role}" for role in ("client", "admin", "auditor")}
CONFIG = ApiConfig(
    token_keys={1: bytes(range(32))},
    name_key=bytes(range(32, 64)),
    keys={role: [sha256(key.encode()).hexdigest()] for role, key in KEYS.items()},  # type: ignore[misc]
)
SLATES = ((0, 1), (1, 2), (2, 3))


def spec(feedback: str = "full", **more: Any) -> PlacementSpec:
    """A placement of two slots and four items."""
    given: dict[str, Any] = {
        "population": "users",
        "items": ITEMS,
        "slots": 2,
        "feedback": feedback,
        "users": 10_000,
    }
    return PlacementSpec(**given | more)


def block(first: int, end: int, **more: Any) -> PublicMenu:
    """A menu that shows three slates in turn."""
    given: dict[str, Any] = {"kind": "rounds", "shown": tuple(number % 3 for number in range(end - first))}
    given |= {
        "slates": SLATES,
        "fallback": (3, 0),
        "slots": 2,
        "version": 1,
        "head": "0f",
        "releases": 1,
    } | more
    return PublicMenu(first=first, end=end, **given)


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """Which problem it is."""
        assert dict(self.headers)[b"content-type"] == b"application/problem+json", self
        assert self.json["status"] == self.status
        return str(self.json["type"]).removeprefix("urn:diminuendo:")


class Site:
    """A store, what is in it, and one front end."""

    def __init__(self, path: Path, store: Store | None = None, **placements: PlacementSpec) -> None:
        self.store: Store = SqliteStore(path / "site.db") if store is None else store
        self.store.add_population("users", msgspec.json.encode(PopulationSpec(1.0, 1e-6)))
        self.fencing_token = self.store.acquire_leadership("users", "test")
        self.numbers = {
            name: self.store.add_placement(name, each.population, msgspec.json.encode(each))
            for name, each in placements.items()
        }
        self.written = io.StringIO()
        self.app = create_app(self.store, CONFIG, Log(self.written))

    def publish(
        self, name: str, menu: PublicMenu, gc_low_water_mark: int = 0, later: float = -KNOWN_BY
    ) -> None:
        """Publish a menu, as the trainer would."""
        menu = msgspec.structs.replace(menu, seal=f"7:{PUBLIC.hex()}")
        most = 10_000 if menu.end is None else menu.end
        self.store.publish(
            self.fencing_token,
            Publication(
                self.numbers[name], msgspec.json.encode(menu), menu.version, menu.first, menu.end, most,
                self.store.now() + later, b"", gc_low_water_mark,
            ),
        )  # fmt: skip

    def kept(self, name: str) -> dict[int, Said]:
        """All answers that are in the store, opened."""
        return {row.round: opened(row.encrypted) for row in self.store.answers(self.numbers[name], 0, 10**9)}

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Some requests, between start and stop."""

        async def inside() -> None:
            await self.app.front.start()
            try:
                await work()
            finally:
                await self.app.front.stop()

        asyncio.run(inside())
        self.store.close()

    async def ask(
        self, method: str, path: str, body: Any = None, key: str | None = "client", **headers: str
    ) -> Reply:
        """One request. A body of bytes is sent as it is."""
        written = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json"} | {
            name.replace("_", "-"): each for name, each in headers.items()
        }
        if key is not None:
            sent["authorization"] = f"Bearer {KEYS.get(key, key)}"
        parts = [written[at : at + 1000] for at in range(0, len(written), 1000)] or [b""]
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": path, "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), each.encode("latin-1")) for name, each in sent.items() if each],
        }  # fmt: skip
        result: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: dict[str, Any]) -> None:
            result.append(message)

        await self.app(scope, receive, send)
        return Reply(result[0]["status"], result[0]["headers"], result[1]["body"])

    async def decide(self, name: str, **body: Any) -> Any:
        """One decision."""
        reply = await self.ask("POST", f"/v1/placements/{name}/decisions", body)
        assert reply.status == 201, reply
        return reply.json

    async def answer(self, token: str, **said: Any) -> Reply:
        """One answer."""
        return await self.ask("POST", "/v1/feedback", {"token": token, **said})


def opened(encrypted: bytes) -> Said:
    """What the trainer reads, with libsodium alone."""
    assert encrypted[:4] == bytes([0, 0, 0, 7])
    own, nonce, box = encrypted[4:36], encrypted[36:60], encrypted[60:]
    return msgspec.msgpack.decode(crypto_box_open(box, nonce, own, SECRET), type=Said)


@contextmanager
def served(app: Api) -> Iterator[int]:
    """The app behind uvicorn, in a thread; its port."""
    settings = uvicorn.Config(
        app, port=0, http="httptools", access_log=False, log_level="warning", lifespan="on"
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()
