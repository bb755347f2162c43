"""Where the store fails, readiness, metrics and the log say so and why, once; and that it is over once it is."""

from __future__ import annotations

import asyncio
import io
import json
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diminuendo.errors import StoreUnavailable
from diminuendo.service import log as log_module
from diminuendo.service.front import front as front_module
from diminuendo.service.front.tokens import NO_ROUND
from diminuendo.service.log import Log, StoreWatch
from diminuendo.service.records import Shown
from diminuendo.service.store import reasons
from diminuendo.service.store.sqlite import SqliteStore
from tests.service.site import Site, block, spec
from tests.service.world import KINDS, World

FULL, FAILS = reasons.SQLITE["SQLITE_FULL"], reasons.SQLITE["SQLITE_IOERR"]


def away(*given: object) -> Any:
    raise StoreUnavailable("The store of ann is away.", FULL)


def lines(written: io.StringIO, *without: str) -> list[dict[str, Any]]:
    """Of the log, without what is always different."""
    result = [json.loads(line) for line in written.getvalue().splitlines()]
    return [
        {name: said for name, said in line.items() if name not in ("at", "trace")}
        for line in result
        if line["happened"] not in without
    ]


@contextmanager
def no_room(path: Path) -> Iterator[None]:
    """No file may become longer than this one is, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def until_ready(site: Site) -> None:
    over = time.monotonic() + 10
    while (await site.ask("GET", "/readyz", key=None)).status != 200:
        assert time.monotonic() < over
        await asyncio.sleep(0.01)


async def store_away(site: Site) -> float:
    """The metric."""
    page = (await site.ask("GET", "/metrics", key="admin")).body.decode()
    (line,) = [each for each in page.splitlines() if each.startswith("diminuendo_store_away{")]
    return float(line.split()[-1])


def test_before_the_first_look_nothing_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))
    broken = pytest.MonkeyPatch()
    broken.setattr(site.store, "placements", away)

    async def work() -> None:
        token = site.app.front.serving._tokens.seal(Shown(1, 5, 1, True, (0, 1)))
        for place in ("shop", "none"):
            assert (await site.ask("POST", f"/v1/placements/{place}/decisions", {})).problem == "unavailable"
        assert (await site.answer(token, click=0)).problem == "unavailable"
        assert (
            await site.ask("POST", "/v1/feedback", [{"token": token, "click": 0}])
        ).problem == "unavailable"
        for path in ("/metrics", "/v1/placements/shop/menu", "/v1/openapi.json", "/", "/nothing"):
            assert (await site.ask("GET", path, key="admin")).problem == "unavailable"
        ready = await site.ask("GET", "/readyz", key=None)
        assert (ready.problem, ready.json["why"]) == ("unavailable", FULL)
        health = await site.ask("GET", "/healthz", key=None)
        assert (health.status, health.json["healthy"], health.json["why"]) == (200, False, FULL)
        broken.undo()
        await site.app.front.look()
        await until_ready(site)
        assert (await site.answer(token, click=0)).status == 202
        assert (await site.ask("POST", "/v1/placements/none/decisions", {})).problem == "placement"

    site.run(work)


def test_a_disk_without_room_is_said_once_and_over_once_there_is_some(tmp_path: Path) -> None:
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))

    async def work() -> None:
        front = site.app.front
        await until_ready(site)
        token = (await site.decide("shop"))["token"]
        assert await store_away(site) == 0
        with no_room(tmp_path / "site.db-wal"):
            assert (await site.answer(token, click=0)).problem == "unavailable"
            for _ in range(3):
                await front._probe()
            ready = await site.ask("GET", "/readyz", key=None)
            assert (ready.problem, ready.json["why"]) == ("unavailable", FAILS)
            health = (await site.ask("GET", "/healthz", key=None)).json
            assert (health["healthy"], health["store_writable"], health["why"]) == (False, False, FAILS)
            assert await store_away(site) == 1
            await front.look()
            assert (await site.ask("GET", "/readyz", key=None)).problem == "unavailable", (
                "it can be read, and no more"
            )
        await front._probe()
        health = (await site.ask("GET", "/readyz", key=None)).json
        assert (health["healthy"], health["store_writable"]) == (True, True)
        assert await store_away(site) == 0
        assert (await site.answer(token, click=0)).status == 202
        assert lines(site.written, "started", "menu", "fault") == [
            {"happened": "store away", "front": "front-0", "why": FAILS},
            {"happened": "store back", "front": "front-0"},
        ]

    site.run(work)


def test_a_file_that_may_not_grow_is_called_a_full_disk(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "site.db") as store:
        ((pages,),) = store._file.rows("PRAGMA page_count")
        store._file.rows(f"PRAGMA max_page_count = {pages}")

        def fill() -> None:
            for number in range(1000):
                store.heartbeat(f"{number:0900}")

        with pytest.raises(StoreUnavailable) as error:
            fill()
        assert error.value.why == FULL
        assert error.value.why in str(error.value)
        store._file.rows(f"PRAGMA max_page_count = {10 * pages}")
        store.heartbeat("there is room")


def test_readiness_goes_by_how_long_ago_a_canary_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, go_on = Site(tmp_path, shop=spec("click")), threading.Event()
    site.publish("shop", block(0, 90))
    heartbeat = site.store.heartbeat

    def hangs(name: str, note: str = "") -> float:
        assert go_on.wait(30)
        return heartbeat(name, note)

    async def work() -> None:
        await until_ready(site)
        monkeypatch.setattr(front_module, "PROBED_WITHIN", 0.2)
        with monkeypatch.context() as broken:
            broken.setattr(site.store, "heartbeat", hangs)
            await asyncio.sleep(0.3)
            assert (await site.ask("GET", "/readyz", key=None)).json["why"] == reasons.NO_PROBE
            assert await store_away(site) == 1
            assert not lines(site.written, "started", "menu"), "nothing has failed so far"
            await site.app.front._probe()
            go_on.set()
        assert lines(site.written, "started", "menu")[-1]["why"] == reasons.NO_PROBE
        monkeypatch.setattr(front_module, "PROBED_WITHIN", 30.0)
        await site.app.front._probe()
        await until_ready(site)

    site.run(work)


def test_what_else_fails_is_one_line_with_its_reason_and_answers_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log does not tell when somebody answered, also where that could not be stored."""
    site = Site(tmp_path, shop=spec("click"))
    site.publish("shop", block(0, 90))

    def hostile(*given: object) -> Any:
        raise OverflowError("a row of ann")

    async def work() -> None:
        front = site.app.front
        await until_ready(site)
        for task in front._tasks:
            task.cancel()
        token, said = (await site.decide("shop"))["token"], lines(site.written)
        with monkeypatch.context() as broken:
            broken.setattr(site.store, "put", away)
            assert (await site.answer(token, click=0)).problem == "unavailable"
            assert lines(site.written) == said
            broken.setattr(site.store, "reserve_ids", away)
            place = front.by_name["shop"]
            while place.rounds.current() is not None:
                await site.decide("shop")
            for _ in range(3):
                shown = front.serving.shown((await site.decide("shop"))["token"])[1]
                assert shown.round == NO_ROUND
                await asyncio.sleep(0.11)  # then an ID block is asked for again
            broken.setattr(site.store, "put", hostile)
            logged = lines(site.written)
            for _ in range(3):
                assert (await site.answer(token, click=0)).problem == "unavailable"
            assert lines(site.written) == logged, "the log does not tell that somebody answered"
            await front._probe()
        result = lines(site.written)[len(said) :]
        assert [(each["happened"], each.get("error"), each.get("why")) for each in result] == [
            ("fault", "StoreUnavailable", FULL),
            ("fault", "OverflowError", None),
            ("store away", None, reasons.UNLISTED),
        ]
        assert "id_blocks.py" in result[0]["where"]
        assert "writer.py" in result[1]["where"]
        assert all(each["front"] == "front-0" for each in result)
        assert "ann" not in site.written.getvalue()

    site.run(work)


def test_a_trainer_says_why_its_store_is_away_and_when_it_is_back(tmp_path: Path) -> None:
    world = World(tmp_path, clicks=KINDS["totals"])
    (tmp_path / "keys").mkdir()
    trainer, steps = world.trainer(), iter(range(100))
    room = no_room(tmp_path / "store.db-wal")

    def go_on() -> bool:
        step = next(steps)
        world.time += 2.0
        if step == 1:
            room.__enter__()
        if step == 5:
            room.__exit__(None, None, None)
        return step < 8

    trainer.run(go_on, poll=0.0)
    assert lines(world.written, "acquired", "released", "menu") == [
        {"happened": "store away", "trainer": "trainer", "why": FAILS},
        {"happened": "store back", "trainer": "trainer"},
    ]


def test_a_log_on_the_disk_that_is_full_stops_nothing(tmp_path: Path) -> None:
    class Full(io.StringIO):
        full = True

        def write(self, text: str) -> int:
            if self.full:
                raise OSError(28, "No space left on device")
            return super().write(text)

    site, written = Site(tmp_path, shop=spec("click")), Full()
    site.app.front.log._out = written
    site.publish("shop", block(0, 90))

    async def work() -> None:
        front = site.app.front
        await until_ready(site)
        with no_room(tmp_path / "site.db-wal"):
            await front._probe()
            assert (await site.ask("GET", "/readyz", key=None)).json["why"] == FAILS
        written.full = False
        await front._probe()
        await until_ready(site)
        assert not any(task.done() for task in front._tasks)

    site.run(work)
    assert lines(written)[0]["happened"] == "store back"


def test_a_reason_is_logged_when_it_is_new_and_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    watch = StoreWatch(Log(written), front="front-0")
    full, held = StoreUnavailable("x", FULL), StoreUnavailable("x", reasons.SQLITE["SQLITE_BUSY"])
    for error in (full, held, full, held):
        watch.failed("write_probe", error)
    assert [line["why"] for line in lines(written)] == [full.why, held.why]
    monkeypatch.setattr(log_module, "AGAIN", 0.0)
    watch.failed("write_probe", full)
    assert len(lines(written)) == 3
    watch.failed("look", StoreUnavailable("what ann said", "what ann said"))
    assert lines(written)[-1]["why"] == reasons.UNLISTED
    watch.well("write_probe")
    assert watch.why == reasons.UNLISTED, "it can be written to, and not be read"
    watch.well("look")
    assert (watch.why, lines(written)[-1]["happened"]) == ("", "store back")
    with pytest.raises(AssertionError, match="closed list of reasons"):
        Log(written).say("store away", why="what ann said")
    assert "ann" not in written.getvalue()
