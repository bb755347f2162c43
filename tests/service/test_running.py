"""A whole site, front end and trainer as processes: what happens when its disk is full, and that it keeps silent."""

from __future__ import annotations

import json
import resource
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from diminuendo.service.dashboard import COOKIE
from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import read_keys
from diminuendo.service.processes import Processes
from diminuendo.service.store import open_store, reasons
from tests.service.running_site import Running, site

pytestmark = pytest.mark.slow

SPEC: dict[str, Any] = {
    "slots": 2, "users": 4000, "epsilon": 1.0, "delta": 1e-6, "feedback": "full", "deadline": 0.3,
    "publish_interval": 0.1,
    "publish_delay": 0.1, "per_second": 400,
}  # fmt: skip
SEALED = {
    "answers": {"encrypted"},
    "snapshot_parts": {"encrypted"},
    "trainer_keys": {"encrypted"},
    "user_rounds": {"user_id", "key"},
}
"""Columns that are opaque, by table."""


class Reply(NamedTuple):
    """What came back, but for the date."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Shop:
    """Asks one site over one connection."""

    def __init__(self, running: Running) -> None:
        self._connection = HTTPConnection("127.0.0.1", running.processes.port, timeout=10)
        self._running = running

    def ask(self, method: str, path: str, body: Any = None) -> Reply:
        """One request: as whoever serves where it is a post or for a menu, else as the operator."""
        serves = method == "POST" or path.endswith("/menu")
        key = self._running.key if serves else self._running.admin_key
        head = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Cookie": f"{COOKIE}={key}",
        }
        self._connection.request(method, path, None if body is None else json.dumps(body), head)
        result = self._connection.getresponse()
        return Reply(
            result.status, [each for each in result.getheaders() if each[0] != "date"], result.read()
        )

    def close(self) -> None:
        """Let go."""
        self._connection.close()

    def decide(self, **body: Any) -> Any:
        """One decision, or many."""
        status, _, said = self.ask("POST", "/v1/placements/home/decisions", body)
        assert status == 201, said
        return json.loads(said)

    def answer(self, token: str, **said: Any) -> Reply:
        """One answer."""
        return self.ask("POST", "/v1/feedback", {"token": token, **said})


def limit(processes: Processes, size: int) -> None:
    """No process of the site can make a file longer than this; -1: as long as it likes."""
    for child in processes.children:
        assert child.process is not None
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for something."""
    over = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < over, "it did not happen in time"
        time.sleep(0.1)


def test_a_disk_that_is_full(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec = SPEC | {"items": 12, "deadline": 60.0}
    with ExitStack() as ending:
        store = ending.enter_context(open_store(str(tmp_path / "site.db")))
        running = ending.enter_context(site(tmp_path, **spec))
        shop, processes = Shop(running), running.processes
        ending.callback(shop.close)
        tokens = Tokens(read_keys(tmp_path / "keys").tokens, 1)
        acknowledged: set[int] = set()
        log = list[dict[str, Any]]()

        def said(whose: str) -> list[tuple[str, str | None]]:
            """What a front end or a trainer has logged of the store."""
            log.extend(map(json.loads, capfd.readouterr().err.splitlines()))
            lines = [each for each in log if whose in each and each["happened"].startswith("store")]
            return [(each["happened"], each.get("why")) for each in lines]

        def back(whose: str) -> bool:
            return said(whose)[-1:] == [("store back", None)]

        def visit() -> tuple[Reply, bool]:
            """The reply to her answer, and whether she had a round."""
            token = shop.decide()["token"]
            reply, told = shop.answer(token, ratings=["1"]), tokens.open(token)
            if reply.status == 202 and told.counts:
                acknowledged.add(told.round)
            return reply, told.counts

        for _ in range(50):
            assert visit()[0].status == 202
        limit(processes, (tmp_path / "site.db-wal").stat().st_size)
        replies = [reply for reply, counts in (visit() for _ in range(60)) if counts and reply.status != 202]
        assert replies, "the disk was full"
        for reply in replies:
            assert (reply.status, dict(reply.headers)["retry-after"]) == (503, "1")
        time.sleep(4.0)  # ID blocks are over, and no other can be had: users are shown fallback slates
        assert [visit()[1] for _ in range(5)] == [False] * 5
        ready = shop.ask("GET", "/readyz")
        why = reasons.SQLITE["SQLITE_IOERR"]
        assert (ready.status, json.loads(ready.body)["why"]) == (503, why)
        assert json.loads(shop.ask("GET", "/healthz").body)["healthy"] is False
        limit(processes, resource.RLIM_INFINITY)
        until(lambda: visit()[1])
        until(lambda: shop.ask("GET", "/readyz").status == 200)
        for whose in ("front", "trainer"):
            until(partial(back, whose))
            assert said(whose) == [("store away", why), ("store back", None)], "once each"
        for _ in range(50):
            assert visit()[0].status == 202
        kept = {row.round for row in store.answers(1, 0, 10**6)}
        assert len(acknowledged) > 100
        assert kept >= acknowledged
        assert all(child.deaths == 0 for child in processes.children)
    db = sqlite3.connect(tmp_path / "site.db")
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


USER_ID, UNKNOWN, RARE, WEIGHT = "Zebedee Planted", "planted-unknown", "planted-rare", 0.7351923461

PAGES = (
    "/metrics", "/healthz", "/v1/placements", "/v1/placements/home/menu", "/v1/placements/home/versions",
    "/v1/populations/everybody/ledger", "/v1/openapi.json", "/", "/placements/home", "/populations",
    "/populations/everybody",
)  # fmt: skip


def test_what_is_planted_is_found_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Everybody wants the first two items; one user, whose name is known, wants the last one, that much."""
    names = [f"item-{number:03}" for number in range(199)] + [RARE]
    seen: list[bytes] = []
    with ExitStack() as ending:
        store = ending.enter_context(open_store(str(tmp_path / "site.db")))
        running = ending.enter_context(site(tmp_path, **SPEC | {"items": names}))
        shop = Shop(running)
        ending.callback(shop.close)
        hers = [shop.decide(user_id=USER_ID)["token"] for _ in range(2)]  # the second is over quota
        others = shop.decide(count=20)["decisions"]
        replies = [shop.answer(token, ratings={RARE: WEIGHT}) for token in (hers[0], hers[0], hers[1])]
        replies += [shop.answer(each["token"], ratings=names[:2]) for each in others[:10]]
        raw = _files(tmp_path)  # hers is in them now, and later is not
        for said in ({UNKNOWN: WEIGHT}, {RARE: 1 + WEIGHT}, [UNKNOWN], UNKNOWN):
            refused = shop.answer(hers[0], ratings=said)
            assert refused.status == 422
            seen.append(repr(refused).encode())
        seen.append(repr(shop.answer(UNKNOWN, ratings={RARE: WEIGHT})).encode())
        begun = time.monotonic()
        while len(store.menus(1)) < 4 or time.monotonic() < begun + 5:  # hers is in what was published
            rows = [
                {"token": each["token"], "ratings": names[:2]} for each in shop.decide(count=50)["decisions"]
            ]
            assert shop.ask("POST", "/v1/feedback", rows).status == 202
            time.sleep(0.1)
        replies.append(shop.answer(others[-1]["token"], ratings={RARE: WEIGHT}))  # too late
        assert replies == replies[:1] * len(replies), "whether it was first, second, late or too much"
        assert (replies[0].status, replies[0].body) == (202, b"")
        seen.append(
            repr(shop.ask("POST", "/v1/erasures", {"user_id": USER_ID, "placement": "home"})).encode()
        )
        for page in PAGES:
            reply = shop.ask("GET", page)
            assert reply.status == 200, page
            seen.append(reply.body)
        raw += _files(tmp_path)
    seen += [path.read_bytes() for path in (tmp_path / "keys").rglob("*") if path.is_file()]
    seen.append("".join(capfd.readouterr()).encode())
    assert b"everybody" in b"".join(seen)
    assert b"started" in seen[-1]
    planted = [USER_ID, UNKNOWN, str(WEIGHT)[2:], "Zebedee"]
    marks = [*map(str.encode, planted), struct.pack(">d", WEIGHT), struct.pack("<d", WEIGHT)]
    for text in [*seen, *raw, *_public_columns(tmp_path / "site.db")]:
        assert not any(mark in text for mark in marks)
        assert text.count(RARE.encode()) == text.count(names[150].encode()), "in lists of all items alone"


def _files(folder: Path) -> list[bytes]:
    """The files of the store, byte by byte."""
    return [path.read_bytes() for path in sorted(folder.glob("site.db*"))]


def _public_columns(path: Path) -> list[bytes]:
    """All that the store has, but for what is encrypted."""
    db, result = sqlite3.connect(path), list[bytes]()
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        for column in set(columns) - SEALED.get(table, set()):
            values = db.execute(f"SELECT {column} FROM {table}").fetchall()
            result += [value if isinstance(value, bytes) else str(value).encode() for (value,) in values]
    db.close()
    return result


def test_a_file_that_is_replaced_under_a_running_site(tmp_path: Path) -> None:
    """An older copy takes its place: nothing more is acknowledged, also by processes that are started anew."""
    spec = SPEC | {"items": 12, "deadline": 60.0}
    with site(tmp_path, stores='store = "site.db"\nfront_ends = 2\n', **spec) as running:
        tokens, processes = Tokens(read_keys(tmp_path / "keys").tokens, 1), running.processes
        rounds, acknowledged, said = list[int](), set[int](), list[int]()

        def visit(seconds: float) -> None:
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                processes.watch()
                shop = Shop(running)
                try:
                    token = shop.decide()["token"]
                    status, number = shop.answer(token, ratings=["1"]).status, tokens.open(token).round
                except (OSError, HTTPException):  # a front end that is not there
                    continue
                finally:
                    shop.close()
                said.append(status)
                if number >= 0:
                    rounds.append(number)
                if status == 202:
                    acknowledged.add(number)
                time.sleep(0.05)

        def copied(path: Path) -> None:
            with sqlite3.connect(tmp_path / "site.db") as source, sqlite3.connect(path) as copy:
                source.backup(copy)
            source.close()
            copy.close()

        visit(1.0)
        copied(tmp_path / "older.db")
        time.sleep(2.5)  # trainers note that they are well
        visit(1.0)
        copied(tmp_path / "newest.db")
        for name in ("site.db", "site.db-wal", "site.db-shm"):
            (tmp_path / name).rename(tmp_path / f"gone {name}")
        (tmp_path / "older.db").rename(tmp_path / "site.db")
        kept = len(acknowledged)
        visit(1.0)
        (front,) = [each for each in processes.children if each.name == "front end 1"]
        assert front.process is not None
        front.process.kill()
        visit(6.0)
        assert len(rounds) == len(set(rounds)), "no round is handed out twice"
        assert len(acknowledged - {-1}) == kept
        assert set(said[-5:]) == {503}
        assert front.deaths > 1, "it refuses to start on it"
        result = sqlite3.connect(tmp_path / "newest.db").execute("SELECT round FROM answers").fetchall()
        assert acknowledged - {-1} <= {number for (number,) in result}
