"""The dashboard: what is public, as plain HTML that refreshes every few seconds."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from diminuendo.service.dashboard import frame, overview, placement, population
from diminuendo.service.dashboard.html import Html
from diminuendo.service.dashboard.views import Public, Reads

Auth = Callable[[str], str | None]
"""From a key to its role, or None; "" where no key was given."""

ROLES = ("admin", "auditor")
COOKIE = "diminuendo-key"
HOURS = 12
MOST_BYTES = 4096
"""Of a form, at most."""
STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
SAFE = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


def dashboard_routes(store: Reads, auth: Auth) -> list[Route]:
    """All pages, to be mounted at /. They need a key with the role `admin` or `auditor`."""
    pages = _Pages(Public(store), auth)
    return [
        Route("/", pages.overview),
        Route("/placements/{name:path}", pages.placement),
        Route("/populations", pages.populations),
        Route("/populations/{name:path}", pages.population),
        Route("/login", pages.login, methods=["GET", "POST"]),
        Route("/logout", pages.logout, methods=["POST"]),
        Route("/static/{name}", static),
    ]


class _Pages:
    def __init__(self, public: Public, auth: Auth) -> None:
        self._public, self._auth = public, auth

    async def overview(self, request: Request) -> Response:
        return await self._show(request, "Placements", lambda: overview.overview(self._public))

    async def populations(self, request: Request) -> Response:
        return await self._show(request, "Populations", lambda: overview.populations(self._public))

    async def placement(self, request: Request) -> Response:
        name = request.path_params["name"]
        return await self._show(request, name, lambda: placement.placement(self._public, name))

    async def population(self, request: Request) -> Response:
        name, page = request.path_params["name"], request.query_params.get("page", "0")

        def body() -> Html | None:
            known = name in self._public.populations()
            number = int(page) if page.isascii() and page.isdigit() and len(page) < 9 else 0
            return population.population(self._public, name, number) if known else None

        return await self._show(request, name, body)

    async def login(self, request: Request) -> Response:
        wrong = False
        if request.method == "POST":
            key = (await _form(request)).get("key", "")
            if key and self._auth(key) in ROLES:
                reply = RedirectResponse("/", 303, headers=SAFE)
                secure = request.url.scheme == "https"
                reply.set_cookie(
                    COOKIE, key, max_age=3600 * HOURS, httponly=True, samesite="strict", secure=secure
                )
                return reply
            wrong = True
        body = frame.login(wrong)
        return _whole(request, "Sign in", body, live=False, signed_in=False, status=403 if wrong else 200)

    async def logout(self, request: Request) -> Response:
        reply = RedirectResponse("/login", 303, headers=SAFE)
        reply.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return reply

    def _may(self, request: Request) -> bool:
        return self._auth(request.cookies.get(COOKIE, "")) in ROLES

    async def _show(self, request: Request, title: str, body: Callable[[], Html | None]) -> Response:
        """A page, or the part of it that is refreshed; the store is read in a thread."""
        if not self._may(request):
            return _to_login(request)
        try:
            result = await run_in_threadpool(body)
        except Exception:  # of any kind of store; the error may contain anything
            page = frame.trouble("The store does not answer", "Decisions continue. This page retries.")
            return _whole(request, title, page, status=503)
        if result is None:
            page = frame.trouble("Not found", "No placement or population has this name.")
            return _whole(request, "Not found", page, live=False, status=404)
        if request.headers.get("hx-request"):
            return HTMLResponse(result, headers=SAFE | {"cache-control": "no-store"})
        return _whole(request, title, result)


def _whole(
    request: Request, title: str, body: Html, *, live: bool = True, signed_in: bool = True, status: int = 200
) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    content = frame.page(
        title, body, path=request.url.path + query, version=VERSION, live=live, signed_in=signed_in
    )
    return HTMLResponse(content, status, headers=SAFE | {"cache-control": "no-store"})


def _to_login(request: Request) -> Response:
    if request.headers.get("hx-request"):
        return Response(status_code=401, headers=SAFE | {"hx-redirect": "/login"})
    return RedirectResponse("/login", 303, headers=SAFE)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a short form; of repeated fields the last."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            return {}
    result = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in result.items()}


async def static(request: Request) -> Response:
    """A static file."""
    result = FILES.get(request.path_params["name"])
    if result is None:
        return Response(status_code=404, headers=SAFE)
    plain, packed, kind = result
    headers = SAFE | {"cache-control": "public, max-age=31536000, immutable", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=kind, headers=headers | {"content-encoding": "gzip"})
    return Response(plain, media_type=kind, headers=headers)


def _packed(path: Path) -> tuple[bytes, bytes, str]:
    content = path.read_bytes()
    return content, gzip.compress(content, 9, mtime=0), KINDS[path.suffix]


FILES = {path.name: _packed(path) for path in sorted(STATIC.iterdir()) if path.suffix in KINDS}
"""By name: the content, the same compressed, and the media type."""
VERSION = hashlib.sha256(b"".join(content for content, _, _ in FILES.values())).hexdigest()[:12]
"""Changes with any file, so that browsers can cache them for good."""
