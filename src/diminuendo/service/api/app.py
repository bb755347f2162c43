"""The ASGI app: routes around one front end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.routing import Route, Router

from diminuendo.service.api import bodies, decisions, metrics, openapi
from diminuendo.service.api.admin import Request
from diminuendo.service.api.keys import AccessKeys, Role
from diminuendo.service.api.problems import Problem
from diminuendo.service.api.routes import OPERATIONS, Operation
from diminuendo.service.api.wire import JSON, NOTHING, Receive, Scope, Send, guarded, header, reply
from diminuendo.service.front.front import Front
from diminuendo.service.front.names import Names
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.log import Log
from diminuendo.service.store import reasons
from diminuendo.service.store.sql import Store

DECISIONS, FEEDBACK = "/decisions", "/v1/feedback"
PLACEMENTS = "/v1/placements/"
HEALTH = ("/healthz", "/readyz")
SCRIPT = Path(__file__).parents[1] / "browser" / "diminuendo.js"


@dataclass(frozen=True)
class ApiConfig:
    """The settings of a front end; the same for all front ends of a site, but for their names."""

    token_keys: Mapping[int, bytes] = field(repr=False)
    """Keys of 32 bytes that encrypt tokens, by number."""
    name_key: bytes = field(repr=False)
    """The 32 bytes that user IDs are hashed with. Not in the store, and never changed."""
    keys: Mapping[Role, Sequence[str]] = field(repr=False)
    """By role the SHA-256 of its keys, in hexadecimal digits."""
    sign_with: int | None = None
    """Which of the token keys encrypts; needed if there are several."""
    name: str = "front-0"
    menus_open: bool = True
    """Whether menus can be read without a key, as browsers do."""


def create_app(store: Store, config: ApiConfig, log: Log | None = None) -> Api:
    """One front end as an ASGI app. It begins and ends with the server's lifespan."""
    front = Front(
        store, Tokens(config.token_keys, config.sign_with), Names(config.name_key), config.name, log or Log()
    )
    return Api(front, AccessKeys(config.keys), config.menus_open)


class Api:
    """The ASGI app. Decisions and feedback are dispatched before the router."""

    def __init__(self, front: Front, keys: AccessKeys, menus_open: bool) -> None:
        self.front = front
        self._keys, self._menus_open = keys, menus_open
        self._metrics = metrics.registry(front)
        self._document = msgspec.json.encode(openapi.document(OPERATIONS))
        self._script = SCRIPT.read_bytes()
        self._menus: dict[str, tuple[int, bytes]] = {}
        self._pages: dict[str, Callable[[Request, Send], Awaitable[None]]] = {
            "/v1/openapi.json": self._openapi,
            "/diminuendo.js": self._browser,
            HEALTH[0]: partial(self._health, False),
            HEALTH[1]: partial(self._health, True),
            "/metrics": self._numbers,
            PLACEMENTS + "{placement}/menu": self._menu,
        }
        by_path: dict[str, dict[str, Operation]] = {}
        for each in OPERATIONS:
            by_path.setdefault(each.path, {})[each.method] = each
        routes = [Route(path, endpoint=_Path(self, methods)) for path, methods in by_path.items()]
        self._dashboard: Router | None = None
        self._rest = Starlette(routes=routes, lifespan=self._lifespan)
        self._rest.router.redirect_slashes = False
        self._rest.router.default = self._other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the server's lifespan."""
        if scope["type"] == "http":
            await guarded(self._http(scope, receive, send), send, self.front.log)
        elif scope["type"] == "lifespan":
            await self._rest(scope, receive, send)  # type: ignore[arg-type]
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not self.front.looked and path not in HEALTH:  # not even the placements are known yet
            raise Problem("unavailable", why=self.front.unwell)
        if scope["method"] == "POST":
            if path == FEEDBACK:
                self._keys.check(header(scope, b"authorization"), ("client",))
                return await decisions.feedback(self.front, scope, receive, send)
            if path.endswith(DECISIONS) and path.startswith(PLACEMENTS):
                self._keys.check(header(scope, b"authorization"), ("client",))
                name = path[len(PLACEMENTS) : -len(DECISIONS)]
                return await decisions.decisions(self.front, name, scope, receive, send)
        await self._rest.router(scope, receive, send)  # type: ignore[arg-type]
        return None

    async def work(
        self, operation: Operation, path_params: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """One operation of the table, if the key has the role."""
        page = self._pages.get(operation.path)
        open_menu = page == self._menu and self._menus_open
        self._keys.check(header(scope, b"authorization"), () if open_menu else operation.roles)
        request = Request(self.front, scope, receive, path_params)
        if page is not None:
            return await page(request, send)
        assert operation.work is not None
        result = await operation.work(request)
        if result is None:
            return await reply(send, operation.status, NOTHING, b"")
        return await reply(send, operation.status, JSON, msgspec.json.encode(result))

    async def _menu(self, request: Request, send: Send) -> None:
        """The menu in effect, with an ETag."""
        place = request.place()
        result = place.in_effect()
        if result is None:
            raise Problem("unavailable")
        row, chooser = result
        tag = f'"{row.version}-{chooser.menu.head}"'.encode()
        headers = [
            (b"etag", tag),
            (b"cache-control", b"public, no-cache"),
            (b"access-control-allow-origin", b"*"),
        ]
        if header(request.scope, b"if-none-match") == tag:
            return await reply(send, 304, headers, b"")
        version, content = self._menus.get(place.name, (0, b""))
        if version != row.version:
            body = bodies.MenuBody(
                **msgspec.structs.asdict(chooser.menu),
                items=place.spec.items,
                columns=list(place.spec.contexts.items()),
            )
            content = msgspec.json.encode(body)
            self._menus[place.name] = row.version, content
        return await reply(send, 200, [JSON[0], *headers], content)

    async def _browser(self, request: Request, send: Send) -> None:
        headers = [(b"content-type", b"text/javascript"), (b"cache-control", b"public, max-age=3600")]
        await reply(send, 200, headers, self._script)

    async def _openapi(self, request: Request, send: Send) -> None:
        await reply(send, 200, JSON, self._document)

    async def _numbers(self, request: Request, send: Send) -> None:
        await reply(send, 200, [(b"content-type", metrics.MEDIA)], metrics.page(self._metrics))

    async def _health(self, to_serve: bool, request: Request, send: Send) -> None:
        front = self.front
        ready = {name: place.ready and place.in_effect() is not None for name, place in front.by_name.items()}
        shows = any(ready.values()) or not ready  # a new placement does not keep others from being served
        older = any(place.went_back for place in front.by_name.values())
        why = front.unwell or ("" if shows else reasons.ROLLED_BACK if older else reasons.NO_MENU)
        if to_serve and why:
            raise Problem("unavailable", why=why)
        health = bodies.Health(not why, not front.unwell, front.heartbeat_at, ready, why)
        await reply(send, 200, JSON, msgspec.json.encode(health))

    async def _other(self, scope: Any, receive: Any, send: Any) -> None:
        """The dashboard. It is loaded with the first request for it, so that front ends are small until then."""
        if scope["path"].startswith("/v1/"):
            raise Problem("path")
        if self._dashboard is None:
            self._dashboard = await asyncio.to_thread(self._load_dashboard)
        await self._dashboard(scope, receive, send)

    def _load_dashboard(self) -> Router:
        from diminuendo.service.dashboard import dashboard_routes

        routes = dashboard_routes(self.front.store, self._keys.role_of)
        return Router(routes, redirect_slashes=False, default=_no_such_path)

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        await self.front.start()
        try:
            yield
        finally:
            await self.front.stop()


async def _no_such_path(scope: Any, receive: Any, send: Any) -> None:
    raise Problem("path")


class _Path:
    """All operations of one path."""

    def __init__(self, api: Api, methods: Mapping[str, Operation]) -> None:
        self._api, self._methods = api, methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        result = self._methods.get("GET" if method == "HEAD" else method)
        if result is None:
            raise Problem("method", allow=", ".join(self._methods))
        await self._api.work(result, scope["path_params"], scope, receive, send)
