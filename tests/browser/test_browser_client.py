"""The client for browsers, in a real one: it chooses as the service does; other feedback counts for nothing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diminuendo.service.api.app import SCRIPT, Api
from diminuendo.service.records import PublicMenu
from diminuendo.streams.contexts import Contexts
from tests.browser.chromium import HOW_TO_GET_IT, Browser, browser, find
from tests.browser.test_dashboard import waited
from tests.service.site import ITEMS, KEYS, Site, block, served, spec

PROGRAM = find()
COLUMNS = {"country": ("DE", "FR", "other"), "device": ("phone", "desk")}
PAIRS = list(itertools.permutations(range(len(ITEMS)), 2))
PAGE = b"<!doctype html><title>shop</title><link rel=icon href=data:,><script src=/diminuendo.js></script>"


class Shop:
    """A shop's own server in front of the service: it adds its key."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.asked: list[str] = []
        self.keys: list[bytes | None] = []
        """Of decisions, their Idempotency-Keys."""
        self.lengths: set[int] = set()
        self.away = 0
        """Requests that get 503 before the next one succeeds."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "")
        if path == "/page":
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
            )
            await send({"type": "http.response.body", "body": PAGE})
            return
        if scope["type"] == "http" and scope["method"] == "POST":
            self.asked.append(path)
            if path != "/feedback":
                self.keys.append(dict(scope["headers"]).get(b"idempotency-key"))
            self.lengths |= {int(dict(scope["headers"])[b"content-length"])}
            if self.away:
                self.away -= 1
                await send({"type": "http.response.start", "status": 503, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
            where = "/v1/feedback" if path == "/feedback" else f"/v1/placements{path}/decisions"
            key = (b"authorization", f"Bearer {KEYS['client']}".encode())
            scope = scope | {"path": where, "headers": [*scope["headers"], key]}
        await self._api(scope, receive, send)


def menu(kind: str, slates: list[tuple[int, int]], **more: Any) -> PublicMenu:
    given: dict[str, Any] = {
        "version": 1,
        "slots": 2,
        "first": 0,
        "end": None,
        "fallback": slates[0],
        "head": "0f",
    }
    return PublicMenu(kind=kind, slates=tuple(slates), **given | more)  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(
        tmp_path,
        one=spec("click"),
        full=spec("full"),
        typed=spec("click", contexts=COLUMNS),
        blocks=spec("click"),
        hers=spec("click", exclusions=True),
    )


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def opened(tab: Browser, port: int, placement: str, decide: str | None = None) -> None:
    """The page, with `shop` on it."""
    tab.open(f"http://127.0.0.1:{port}/page", 600)
    where = {
        "menu": f"/v1/placements/{placement}/menu",
        "decide": f"/{decide or placement}",
        "feedback": "/feedback",
    }
    tab.ask(f"Diminuendo.open({json.dumps(where)}).then(found => {{ window.shop = found }})")


def visit(
    tab: Browser, context: Any = None, given: Any = None, exclude: Any = None
) -> tuple[list[str], bool]:
    """What one user is shown, and whether their feedback counts."""
    arguments = [context or {}, *([exclude] if exclude is not None else [])]
    script = f"""shop.choose(...{json.dumps(arguments)}).then(async shown =>
        [shown.slate, await shown.sendFeedback({json.dumps(given or {"click": 1})})])"""
    slate, counts = tab.ask(script)
    return slate, counts


def names(slate: tuple[int, ...]) -> list[str]:
    return [ITEMS[item] for item in slate]


def test_the_script_is_small() -> None:
    assert len(SCRIPT.read_bytes()) <= 3000


@pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)
def test_it_shows_what_the_service_would(tab: Browser, site: Site) -> None:
    columns = Contexts(COLUMNS)  # another program than the front end's
    types = 4 * 3
    site.publish("typed", menu("types", PAIRS[:types]))
    site.publish("one", menu("one", [(2, 1)]))
    shop = Shop(site.app)
    with served(shop) as port:  # type: ignore[arg-type]
        opened(tab, port, "one")
        assert visit(tab) == (["plum", "pear"], True)
        opened(tab, port, "typed")
        told: list[dict[str, Any]] = [{}, {"country": None, "device": "desk"}, {"country": "GR"}]
        told += [{"country": a, "device": b} for a in COLUMNS["country"] for b in COLUMNS["device"]]
        for known in told:
            wanted = names(PAIRS[columns.type_of(known)])
            assert visit(tab, known) == (wanted, True), known
        slate, counts = visit(tab, {"device": "fridge"})  # not listed, and there is no `other`
        assert (slate, counts) == (names(PAIRS[0]), False)
        assert tab.ask("shop.close()") is None
    kept = site.kept("typed")
    assert [said.shown.type for said in kept.values()] == [columns.type_of(known) for known in told]
    assert {said.click for said in kept.values()} == {1}
    assert all(length % 256 == 0 for length in shop.lengths), "lengths tell nothing"
    complaints = [each for each in tab.complaints if "422" not in each]
    assert complaints == []


@pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)
def test_what_was_not_shown_by_the_service_counts_for_nothing(tab: Browser, site: Site) -> None:
    site.publish("one", menu("one", [(0, 1)]))
    site.publish("full", menu("one", [(0, 1)]))
    shop = Shop(site.app)
    with served(shop) as port:  # type: ignore[arg-type]
        opened(tab, port, "one", decide="full")  # the menu of another placement: clicks are no answers there
        assert visit(tab) == (["apple", "pear"], False)
        for name in ("one", "full"):
            opened(tab, port, name)
            site.publish(name, menu("one", [(2, 3)], version=2, head="1f"))
            version = f"fetch('/v1/placements/{name}/menu').then(r => r.json()).then(menu => menu.version)"
            assert waited(tab, version, 2) == 2
            said = {"click": 1} if name == "one" else {"ratings": ["plum"]}
            slate, counts = visit(tab, given=said)
            assert slate == ["apple", "pear"], "the menu of this browser"
            assert counts == (name == "full"), "ratings do not depend on the slate"
        assert tab.ask(
            "Diminuendo.open({menu: '/v1/placements/none/menu'}).catch(e => e.message)"
        ).startswith("There")
    assert not site.kept("one")
    assert len(site.kept("full")) == 1


@pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)
def test_where_rounds_differ_it_waits_for_the_service(tab: Browser, site: Site) -> None:
    site.publish("blocks", block(0, 100))
    site.publish("hers", menu("one", [(0, 1)], ranking=(2, 3)))
    shop = Shop(site.app)
    with served(shop) as port:  # type: ignore[arg-type]
        opened(tab, port, "blocks")
        seen = [visit(tab) for _ in range(3)]
        assert seen == [(names(row), True) for row in ((0, 1), (1, 2), (2, 3))]
        shop.away = 2
        assert visit(tab) == (names((0, 1)), True), "tried again"
        assert shop.keys[3:] == [shop.keys[3]] * 3, "under the same key"
        assert None not in shop.keys
        assert len(set(shop.keys)) == 4, "each decision has its own"
        shop.away = 4
        assert visit(tab) == (["quince", "apple"], False), "a fallback slate"
        opened(tab, port, "hers")
        slate, counts = visit(tab, exclude=["apple"])
        assert "apple" not in slate
        assert counts
    assert len(site.kept("blocks")) == 4
