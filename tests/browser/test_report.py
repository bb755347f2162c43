"""The report in a real browser: everything is drawn, nothing runs off the page, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from diminuendo.simulate import Sweep
from diminuendo.simulate.report import write_report
from diminuendo.simulate.today import Today
from diminuendo.types import Floats
from tests.browser.chromium import HOW_TO_GET_IT, Browser, browser, find
from tests.simulate.specimens import small, tiny
from tests.simulate.test_report_contexts import small as with_contexts

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)

BOXES = """[...document.querySelectorAll('figure img')].map(picture => {
    const box = picture.getBoundingClientRect()
    return [box.left, box.top, box.width, box.height, picture.naturalWidth].map(Math.round)
})"""
WIDEST = """Math.max(...[...document.querySelectorAll('main *')]
    .filter(part => !part.closest('.scroll'))
    .map(part => part.getBoundingClientRect().right))"""
SIZES = """[...document.querySelectorAll('p, li, td, th, figcaption')]
    .map(part => parseFloat(getComputedStyle(part).fontSize))"""
INK = 0.005
"""The least share of a picture that is not background: axes, words and lines take several times as much."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with_today = replace(tiny(), today=Today((0, 1), 0.2))
    return write_report(Sweep([small(), with_today]), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def ink(picture: Floats) -> float:
    """The share of pixels that differ from the most frequent colour."""
    colours = (255 * picture[..., :3]).round().astype(np.int64) @ [1 << 16, 1 << 8, 1]
    _, counts = np.unique(colours, return_counts=True)
    return 1 - float(counts.max() / counts.sum())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_looks_right(tab: Browser, page: Path, tmp_path: Path, width: int, scheme: str) -> None:
    tab.open(page, width, scheme=scheme)  # type: ignore[arg-type]
    assert tab.ask("window.innerWidth") == width, "as asked for; on a phone, what is wider would widen it"
    assert tab.ask("document.documentElement.scrollWidth") == width, "the page does not scroll sideways"
    assert tab.ask(WIDEST) <= width, "nothing but tables, in boxes of their own, is wider than the window"
    boxes = tab.ask(BOXES)
    assert len(boxes) == 10 + 5
    seen = imread(tab.screenshot(tmp_path / "page.png"))
    assert seen.shape[1] == width
    for left, top, wide, high, natural in boxes:
        assert natural > 0, "a picture could not be read"
        assert wide > 0.8 * min(width, 480)
        assert ink(seen[top + 8 : top + high - 8, left + 8 : left + wide - 8]) > INK, "a picture is blank"
    background = seen[5, 5, :3].mean()
    assert background > 0.9 if scheme == "light" else background < 0.2


def test_nothing_is_fetched_or_run(tab: Browser, page: Path) -> None:
    tab.open(page, 1280)
    assert [address for address in tab.requests if not address.startswith("data:")] == [
        page.resolve().as_uri()
    ]
    assert tab.complaints == []
    assert tab.ask("typeof window.hacked") == "undefined", "names of items stay names"


def test_words_can_be_read_on_a_phone(tab: Browser, page: Path) -> None:
    tab.open(page, 390)
    sizes = tab.ask(SIZES)
    assert min(sizes) >= 14
    shrunk = [wide / natural for _, _, wide, _, natural in tab.ask(BOXES)]
    assert 9.5 * 4 / 3 * min(shrunk) >= 8, "the smallest words on pictures, in pixels"


def test_what_is_looked_for_is_found(tab: Browser, tmp_path: Path) -> None:
    """A page that is wrong in every way these tests look at."""
    wrong = tmp_path / "wrong.html"
    blank = "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' width='300' height='200'/>"
    wrong.write_text(
        "<!doctype html><main><p style='width: 2000px'>wide</p><figure>"
        f'<img src="{blank}"><img src="data:image/png;base64,AAAA"></figure>'
        "<img src='https://example.invalid/a.png'><script>window.hacked = 1; missing()</script></main>"
    )
    tab.open(wrong, 390)
    assert tab.ask("document.documentElement.scrollWidth") > 390
    assert tab.ask(WIDEST) > 390
    (left, top, wide, high, natural), (*_, broken) = tab.ask(BOXES)
    assert (natural, broken) == (300, 0)
    seen = imread(tab.screenshot(tmp_path / "wrong.png"))
    assert ink(seen[top + 8 : top + high - 8, left + 8 : left + wide - 8]) < INK
    assert any(address.startswith("https://example.invalid") for address in tab.requests)
    assert any("missing" in complaint for complaint in tab.complaints)
    assert tab.ask("window.hacked") == 1


@pytest.mark.slow
def test_slates_of_types_need_no_scrolling_on_a_phone(tab: Browser, tmp_path: Path) -> None:
    tab.open(write_report(Sweep([with_contexts()]), tmp_path), 390)
    assert tab.ask("document.documentElement.scrollWidth") == 390
    tables = tab.ask(
        "[...document.querySelectorAll('.wraps')].map(one => [one.offsetWidth, one.parentElement.clientWidth])"
    )
    assert len(tables) == 2, "private and private-separate"
    assert all(wide <= room for wide, room in tables)
