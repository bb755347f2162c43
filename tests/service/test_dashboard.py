"""The dashboard: pages are made of public reads, hostile names are escaped, and only two roles get in."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette

from diminuendo.service.dashboard import FILES, dashboard_routes
from diminuendo.service.records import NoisyCount, PlacementSpec
from tests.service.fake_store import HOSTILE, FakeStore, tea_shop
from tests.service.site import KEYS as ROLE_KEYS
from tests.service.site import Site, block, spec
from tests.test_lazy import loaded

PAGES = (
    "/", "/placements/front-page", "/placements/newsletter", "/placements/basket", "/placements/spring-sale",
    "/populations", "/populations/customers", "/populations/newcomers",
)  # fmt: skip
MOST_BYTES = 40_000
KEYS = {"the administrator's": "admin", "the auditor's": "auditor", "the client's": "client"}


@dataclass
class Reply:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def __getitem__(self, name: str) -> str:
        return next(value for key, value in self.headers if key == name)

    @property
    def text(self) -> str:
        return self.body.decode()


class Visitor:
    """A client of the pages, without a socket."""

    def __init__(self, store: FakeStore, cookie: str = "the administrator's") -> None:
        self._app = Starlette(routes=dashboard_routes(store, KEYS.get))
        self.cookie = cookie

    def get(self, path: str, form: dict[str, str] | None = None, **headers: str) -> Reply:
        return asyncio.run(self._ask(path, form, headers))

    async def _ask(self, path: str, form: dict[str, str] | None, headers: dict[str, str]) -> Reply:
        result, sent = Reply(), urlencode(form or {}).encode()
        given = {"cookie": f'diminuendo-key="{self.cookie}"' if self.cookie else "", **headers}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": "GET" if form is None else "POST", "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "scheme": "http", "server": ("localhost", 80), "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items() if value],
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": sent, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                result.status = message["status"]
                result.headers = [(name.decode(), value.decode()) for name, value in message["headers"]]
            else:
                result.body += message.get("body", b"")

        await self._app(scope, receive, send)
        return result


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> FakeStore:
    return tea_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def visitor(shop: FakeStore) -> Visitor:
    return Visitor(shop)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_made_of_public_reads_and_runs_nothing_inline(visitor: Visitor, path: str) -> None:
    whole = visitor.get(path)
    assert whole.status == 200, "a private read raises, and that would be 503"
    assert "default-src 'self'" in whole["content-security-policy"]
    assert whole["cache-control"] == "no-store"
    assert re.search(r"<script(?! src=\"/static/)|\sstyle=|\son\w+=|javascript:", whole.text) is None
    assert "<script>" not in whole.text
    assert whole.text.count("<h1>") == 1


@pytest.mark.parametrize("path", PAGES)
def test_what_is_refreshed_is_a_part_of_the_page(shop: FakeStore, path: str) -> None:
    visitor = Visitor(shop)
    part, whole = visitor.get(path, hx_request="true"), visitor.get(path)
    assert "<html" not in part.text
    assert part.text in whole.text


@pytest.mark.parametrize("path", ["/", "/placements/basket"])
def test_hostile_names_stay_names(visitor: Visitor, path: str) -> None:
    text = visitor.get(path).text
    assert HOSTILE not in text
    assert escape(HOSTILE) in text


def test_hostile_placements_and_populations_have_pages(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    store._populations["a/../b?<i>"] = b"{}"
    spec = PlacementSpec("a/../b?<i>", ("x", "\u202ey\x00"), 1, "full", None)
    number = store.placement("p/<b>#", spec)
    store.menu(number, kind="one", slots=1, first=0, end=None, fallback=(1,), slates=((1,),))
    store.event(number, "items", {"retire": ["<u>"], "why": ["<s>"]}, "<q>")
    visitor = Visitor(store)
    assert '<a href="/placements/p%2F%3Cb%3E%23">p/&lt;b&gt;#</a>' in visitor.get("/").text
    page = visitor.get("/placements/p/<b>#")
    assert page.status == 200
    assert not re.search("<b>#|<i>|<u>|<s>|<q>|\u202e|\x00", page.text)
    assert visitor.get("/populations/a/../b?<i>").status == 404, "what follows a question mark is no name"
    assert visitor.get("/populations").status == 200


def test_only_who_operates_or_audits_may_look(shop: FakeStore) -> None:
    for cookie in ("", "an unknown key", "the client's"):
        stranger = Visitor(shop, cookie)
        for path in PAGES:
            result = stranger.get(path)
            assert (result.status, result["location"], result.body) == (303, "/login", b"")
        part = stranger.get("/", hx_request="true")
        assert (part.status, part["hx-redirect"], part.body) == (401, "/login", b"")
    assert Visitor(shop, "the auditor's").get("/").status == 200


def test_signing_in_and_out(shop: FakeStore) -> None:
    stranger = Visitor(shop, "")
    assert stranger.get("/login").status == 200
    for wrong in ("an unknown key", "the client's", "", "x" * 5000):
        assert stranger.get("/login", {"key": wrong}).status == 403
    entered = stranger.get("/login", {"key": "the administrator's"})
    assert (entered.status, entered["location"]) == (303, "/")
    cookie = entered["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=0" in stranger.get("/logout", {})["set-cookie"].lower()


def test_a_store_that_is_away_is_said_to_be_and_no_more(shop: FakeStore, visitor: Visitor) -> None:
    shop.away = True
    result = visitor.get("/")
    shop.away = False
    assert result.status == 503
    assert "The store does not answer" in result.text
    assert "disk" not in result.text


def test_what_is_not_there(visitor: Visitor) -> None:
    for path in ("/placements/none", "/populations/none", "/static/none.js", "/static/../__init__.py"):
        assert visitor.get(path).status == 404


def test_numbers_on_the_overview_follow_the_store(tmp_path: Path) -> None:
    store = FakeStore(tmp_path)
    visitor = Visitor(store)
    assert "No placement yet" in visitor.get("/").text
    number = store.placement("page", PAGE)
    assert "the trainer is creating the learner" in visitor.get("/").text
    store.menu(number, kind="random", slots=1, first=0, end=1_234, fallback=(0,))
    assert "the first comes after about 1,234 users" in visitor.get("/").text
    store.hand_out(number, 77_777)
    assert "77,777" in visitor.get("/").text
    store.heartbeat("placement page", "waits, and is tried again")
    assert "The trainer failed here and retries" in visitor.get("/").text


PAGE = PlacementSpec("all", ("a", "b"), 1, "full", None)
MENU: dict[str, Any] = {
    "kind": "one",
    "slots": 1,
    "first": 0,
    "end": None,
    "fallback": (0,),
    "slates": ((0,),),
}


def test_published_notes_are_shown(tmp_path: Path) -> None:
    """Drift, noisy response counts and missing feedback, as menus say them."""
    store = FakeStore(tmp_path)
    visitor, number = Visitor(store), store.placement("page", PAGE)
    page = visitor.get("/placements/page").text
    assert "The guarantee is published with the first menu" in page
    store.menu(number, **MENU)
    page = visitor.get("/placements/page").text
    assert "no drift was detected" in page
    assert escape(f"guarantee of {HOSTILE}") in page
    assert not any(word in page for word in ("Responses", "Signal"))
    for first in (9_000, 9_500):
        store.menu(
            number,
            **MENU | {"first": first},
            remembers_from=7_500,
            response_count=NoisyCount(-3.0, 2500, 11.0),
            signal="no signal",
        )
    page = visitor.get("/placements/page").text
    assert page.count("data before impression 7,500 is no longer used") == 1
    assert "of the first 2,500 impressions, ± 22" in page
    assert "no feedback in time" in page
    assert "no signal" in visitor.get("/").text
    store.menu(number, **MENU, response_count=NoisyCount(1234.4, 2500, 11.0))
    assert "1,234" in visitor.get("/placements/page").text


def test_impressions_never_decrease(tmp_path: Path) -> None:
    """A menu may begin before the last impression that was assigned."""
    store = FakeStore(tmp_path)
    number = store.placement("page", PAGE)
    for first in (0, 40, 90):
        store.menu(number, **MENU | {"first": first})
        store.clock += 1
        store.hand_out(number, 60)
        store.clock += 1
    drawn = re.search(
        r'<data id="impressions" hidden value="([^"]*)"', Visitor(store).get("/placements/page").text
    )
    assert drawn is not None
    assert json.loads(unescape(drawn[1]))["y"] == [0, 60, 60, 120, 120, 180, 180]


def test_the_ledger_is_paged(visitor: Visitor) -> None:
    first, last = (
        visitor.get("/populations/customers").text,
        visitor.get("/populations/customers?page=99").text,
    )
    assert "page 1 of 3" in first
    assert "page 3 of 3" in last
    assert '<tr><th scope="row">1</th>' in last
    assert '<tr><th scope="row">1</th>' not in first
    assert visitor.get("/populations/customers?page=-1<script>").status == 200


def test_a_damaged_ledger_is_not_passed_over(tmp_path: Path) -> None:
    store = tea_shop(tmp_path)
    visitor = Visitor(store)
    assert "The ledger is damaged" not in visitor.get("/populations/customers").text
    path = store.folder / "customers"
    path.write_bytes(path.read_bytes().replace(b"24 items", b"23 items", 1))
    assert "The ledger is damaged" in visitor.get("/populations/customers").text


def test_front_ends_show_it_beside_the_api(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec())
    site.publish("shop", block(0, 30))

    async def work() -> None:
        assert (await site.ask("GET", "/", key=None)).status == 303
        assert (await site.ask("GET", "/nowhere", key=None)).status == 404
        assert (await site.ask("GET", "/v1/nowhere", key=None)).status == 404
        cookie = f'diminuendo-key="{ROLE_KEYS["auditor"]}"'
        page = await site.ask("GET", "/", key=None, cookie=cookie)
        assert page.status == 200
        assert b"quince" in page.body
        wrong = await site.ask("GET", "/", key=None, cookie=f'diminuendo-key="{ROLE_KEYS["client"]}"')
        assert wrong.status == 303

    site.run(work)


def test_scripts_and_styles_are_small_and_stay_in_browsers(visitor: Visitor) -> None:
    sizes = {name: len(packed) for name, (_, packed, _) in FILES.items() if name.endswith((".js", ".css"))}
    assert set(sizes) == {"dashboard.css", "dashboard.js", "htmx.min.js", "uplot.min.js"}
    assert sum(sizes.values()) <= MOST_BYTES, sizes
    for name, size in sizes.items():
        plain, packed = visitor.get(f"/static/{name}"), visitor.get(f"/static/{name}", accept_encoding="gzip")
        assert len(packed.body) == size
        assert gzip.decompress(packed.body) == plain.body
        assert "immutable" in plain["cache-control"]
    licences = visitor.get("/static/LICENSES.txt").text
    for name in ("htmx.min.js", "uplot.min.js", "MIT License", "Zero-Clause BSD"):
        assert name in licences


def test_nothing_that_is_compiled_is_loaded() -> None:
    assert loaded("import diminuendo.service.dashboard") == {"numpy"}
