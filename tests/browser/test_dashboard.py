"""The dashboard in a real browser: it fits, it is quiet, it can be used by keyboard, and it lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from matplotlib.image import imread
from starlette.applications import Starlette

from diminuendo.service.dashboard import dashboard_routes
from tests.browser.chromium import HOW_TO_GET_IT, Browser, browser, find
from tests.browser.test_report import INK, ink
from tests.service.fake_store import FakeStore, tea_shop

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)

PAGES = ("/", "/placements/front-page", "/placements/basket", "/populations/customers", "/login")
WIDEST = """Math.max(...[...document.querySelectorAll('body *')]
    .filter(part => !part.closest('.scroll') && !part.closest('.skip'))
    .map(part => part.getBoundingClientRect().right))"""
SIZES = """Math.min(...[...document.querySelectorAll('p, li, td, th, dt, dd, small, figcaption, label')]
    .map(part => parseFloat(getComputedStyle(part).fontSize)))"""
CHARTS = """[...document.querySelectorAll('[data-chart] canvas')].map(part => {
    const box = part.getBoundingClientRect()
    return [box.left, box.top + scrollY, box.width, box.height].map(Math.round)
})"""
FOCUS = """(() => { const is = document.activeElement
    return [is.tagName, is.textContent.trim(), getComputedStyle(is).outlineStyle] })()"""
DECISIONS = "document.querySelector('.facts dd').firstChild.textContent"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> FakeStore:
    return tea_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def site(shop: FakeStore) -> Iterator[str]:
    app = Starlette(routes=dashboard_routes(shop, lambda key: "admin" if key in ("", "right") else None))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def press(tab: Browser, key: str, code: int) -> None:
    """A key, down and up."""
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


def waited(tab: Browser, script: str, wanted: Any, seconds: float = 8.0) -> Any:
    """What an expression becomes, once it is what is wanted or time is up."""
    until = time.monotonic() + seconds
    while (result := tab.ask(script)) != wanted and time.monotonic() < until:
        time.sleep(0.1)
    return result


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_are_quiet(tab: Browser, site: str, tmp_path: Path, width: int, scheme: Any) -> None:
    for path in PAGES:
        tab.open(site + path, width, scheme=scheme)
        assert tab.ask("document.title").endswith("diminuendo"), path
        assert tab.complaints == [], path
        assert {address.split("/")[2] for address in tab.requests} == {site.split("/")[2]}, (
            "nothing from elsewhere"
        )
        assert tab.ask("document.documentElement.scrollWidth") == width, path
        assert tab.ask(WIDEST) <= width, path
        assert tab.ask(SIZES) >= 13.5, path
        assert tab.ask("typeof window.hacked") == "undefined"
        if path == "/populations/customers":
            ((left, top, wide, high),) = tab.ask(CHARTS)
            assert wide > 0.8 * min(width, 600)
            seen = imread(tab.screenshot(tmp_path / "page.png"))
            assert ink(seen[top : top + high, left : left + wide]) > INK, "the chart is drawn"
            background = seen[5, 5, :3].mean()
            assert background > 0.9 if scheme == "light" else background < 0.2


def test_the_keyboard_goes_everywhere_in_order(tab: Browser, site: str) -> None:
    tab.open(site + "/", 1280)
    seen = []
    for _ in range(7):
        press(tab, "Tab", 9)
        seen.append(tab.ask(FOCUS))
    words = [
        "Skip to content",
        "diminuendo",
        "Placements",
        "Populations",
        "Pause",
        "Sign out",
        "front-page",
    ]
    assert [said for _, said, _ in seen] == words
    assert all(outline != "none" for *_, outline in seen), "where one is can be seen"
    tab.open(site + "/", 1280)
    press(tab, "Tab", 9)
    press(tab, "Enter", 13)
    assert waited(tab, "document.activeElement.id", "main") == "main"
    press(tab, "Tab", 9)
    assert tab.ask(FOCUS)[1] == "front-page"


def test_numbers_change_by_themselves_and_focus_stays(tab: Browser, site: str, shop: FakeStore) -> None:
    tab.open(site + "/", 1280)
    before = tab.ask(DECISIONS)
    tab.ask("document.querySelector('.card a').focus()")
    shop.hand_out(1, 1_000)
    now = f"{int(before.replace(',', '')) + 1_000:,}"
    assert now != before
    assert waited(tab, DECISIONS, now) == now
    assert tab.ask(FOCUS)[1] == "front-page", "a refresh takes nobody's place away"
    assert tab.complaints == []


def test_charts_outlive_a_refresh_and_grow(tab: Browser, site: str, shop: FakeStore) -> None:
    tab.open(site + "/placements/front-page", 1280)
    tab.ask("window.kept = document.querySelector('canvas')")
    last = "JSON.parse(document.getElementById('impressions').value).y.at(-1)"
    more = tab.ask(last) + 500
    shop.hand_out(1, 500)
    assert waited(tab, last, more) == more
    assert tab.ask("window.kept.isConnected && [...charts.values()][0].data[1].at(-1)") == more
    assert tab.complaints == []


def test_who_pauses_is_left_in_peace(tab: Browser, site: str, shop: FakeStore) -> None:
    tab.open(site + "/", 1280)
    tab.ask("document.getElementById('pause').click()")
    assert tab.ask("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
    before = tab.ask(DECISIONS)
    shop.hand_out(1, 1_000)
    time.sleep(2.5)
    assert tab.ask(DECISIONS) == before
    tab.ask("document.getElementById('pause').click()")
    assert waited(tab, f"{DECISIONS} !== {before!r}", True) is True


def test_a_store_that_is_away_is_noticed_and_comes_back(tab: Browser, site: str, shop: FakeStore) -> None:
    tab.open(site + "/", 1280)
    shown = "getComputedStyle(document.querySelector('.lost')).display"
    assert tab.ask(shown) == "none"
    shop.away = True
    assert waited(tab, shown, "block") == "block"
    assert tab.ask("document.querySelectorAll('.card').length") == 4, "what was known last stays"
    shop.away = False
    assert waited(tab, shown, "none") == "none"


def test_the_head_is_copied(tab: Browser, site: str) -> None:
    tab.open(site + "/populations/customers", 1280)
    tab.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.call("Page.bringToFront")
    tab.ask("document.querySelector('[data-copy=head]').click()")
    assert waited(tab, "document.querySelector('[data-copy=head]').textContent", "Copied") == "Copied"
    assert tab.ask("navigator.clipboard.readText()") == tab.ask("document.getElementById('head').textContent")


def test_signing_in_sets_a_key_that_scripts_cannot_read(tab: Browser, site: str) -> None:
    tab.open(site + "/login", 390)
    assert waited(tab, "document.activeElement.id", "key") == "key"
    tab.call("Input.insertText", text="right")
    press(tab, "Enter", 13)
    assert waited(tab, "location.pathname", "/") == "/"
    assert tab.ask("document.cookie") == ""
    assert [one["value"] for one in tab.call("Network.getCookies")["cookies"]] == ["right"]


def test_a_link_signs_in_and_leaves_no_key_behind(tab: Browser, site: str) -> None:
    for before in ("about:blank", site + "/login"):
        tab.call("Network.clearBrowserCookies")
        tab.open(before, 1280)
        # Beside the login page this changes the fragment alone, and no page is loaded.
        tab.call("Page.navigate", url=site + "/login#right")
        assert waited(tab, "location.href", site + "/") == site + "/"
        assert [one["value"] for one in tab.call("Network.getCookies")["cookies"]] == ["right"]
        assert not any("right" in address.split("#")[0] for address in tab.requests)
