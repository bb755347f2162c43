"""A whole site on PostgreSQL: what is asked of the store, what roles it needs, and how a running site moves to it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from diminuendo.service.front.tokens import Tokens
from diminuendo.service.keys import read_keys
from diminuendo.service.processes import Processes
from diminuendo.service.site import STORE, read_site
from diminuendo.service.store import open_store
from diminuendo.service.store.postgres import PostgresStore
from diminuendo.service.store.postgres.roles import make_roles
from diminuendo.service.store.postgres.schema import PRIVATE, PUBLIC, WITHIN
from tests.kit.postgres import Server
from tests.service.running_site import site
from tests.service.site import Site, block, spec
from tests.service.test_running import SPEC, USER_ID, Shop, until


def test_a_decision_without_a_name_asks_the_store_for_nothing_but_id_blocks(
    tmp_path: Path, postgres_server: Server, database: str
) -> None:
    asked = Counter[str]()

    class Counting(PostgresStore):
        def reserve_ids(self, *given: Any) -> Any:
            asked["reserve_ids"] += 1
            return super().reserve_ids(*given)

        def put(self, answers: Any, user_rounds: Any = ()) -> Any:
            asked["answer"] += any(row.placement for row in answers)
            asked["visit"] += len(user_rounds)
            return super().put(answers, user_rounds)

    home = Site(tmp_path, Counting(postgres_server.address(database)), home=spec("click"))
    home.publish("home", block(0, 9000))

    async def work() -> None:
        for _ in range(10):
            body = (await home.ask("POST", "/v1/placements/home/decisions", {"count": 500})).json
            assert len(body["decisions"]) == 500
        place = home.app.front.by_name["home"]
        assert place.fallbacks == 0
        assert place.rounds.shown + 500 >= 5000

    home.run(work)
    assert asked["answer"] == asked["visit"] == 0
    assert 10 <= asked["reserve_ids"] <= 22, (
        "one for each 500 at most, some ahead, and what became of the last"
    )


def users(server: Server, database: str, folder: Path) -> str:
    """Roles of a store, and the lines of a site that uses them."""
    make_roles(server.address(database), "whole")
    there = {name for (name,) in server.sql(database, "SELECT rolname FROM pg_roles")}
    for name in ("front", "trainer"):
        if f"a_whole_{name}" not in there:
            server.sql(database, f"CREATE ROLE a_whole_{name} LOGIN IN ROLE whole_{name}", "SELECT 1")
    store, front = (server.address(database, f"a_whole_{name}") for name in ("trainer", "front"))
    return f'store = "{store}&password=planted"\nfront_store = "{front}&password=planted"'


@pytest.mark.slow
def test_what_users_say_is_stored_and_released_by_roles_of_their_own(
    tmp_path: Path, postgres_server: Server, database: str, capfd: pytest.CaptureFixture[str]
) -> None:
    stores = users(postgres_server, database, tmp_path)
    with ExitStack() as ending:
        store = ending.enter_context(open_store(postgres_server.address(database)))
        running = ending.enter_context(site(tmp_path, stores=stores, **SPEC | {"items": 12}))
        shop = Shop(running)
        ending.callback(shop.close)
        first = shop.decide(user_id=USER_ID)
        assert shop.answer(first["token"], ratings=["1"]).status == 202
        assert shop.ask("POST", "/v1/erasures", {"user_id": USER_ID, "placement": "home"}).status == 202
        while len(store.menus(1)) < 4:
            rows = [
                {"token": each["token"], "ratings": ["1", "2"]} for each in shop.decide(count=50)["decisions"]
            ]
            assert shop.ask("POST", "/v1/feedback", rows).status == 202
            time.sleep(0.1)
        assert store.books("everybody", None).releases.names()
        for page in (
            "/",
            "/placements/home",
            "/populations/everybody",
            "/metrics",
            "/v1/placements/home/versions",
        ):
            assert shop.ask("GET", page).status == 200, page
        used = "SELECT DISTINCT usename FROM pg_stat_activity WHERE usename LIKE 'a_whole%'"
        assert sorted(postgres_server.sql(database, used)) == [("a_whole_front",), ("a_whole_trainer",)]
        assert all(child.deaths == 0 for child in running.processes.children)
        tables = (*PUBLIC, *WITHIN, *PRIVATE)
        result = [
            postgres_server.sql(database, f"SELECT t::text FROM diminuendo.{name} AS t") for name in tables
        ]
        said = "".join(row for rows in result for (row,) in rows)
        assert "everybody" in said
        assert b"everybody".hex() in said, "bytes are hexadecimal digits"
        assert not any(mark in said for mark in (USER_ID, USER_ID.encode().hex()))
    assert "planted" not in "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_running_site_is_moved_and_tokens_that_are_out_are_answered_there(
    tmp_path: Path, postgres_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, path = postgres_server.address(database), tmp_path / "site.toml"
    answer = {"ratings": ["1"]}
    with site(tmp_path, **SPEC | {"items": 12, "deadline": 600.0}) as running:
        shop = Shop(running)
        out = [each["token"] for _ in range(4) for each in shop.decide(count=25)["decisions"]]
        acknowledged = [token for token in out[:50] if shop.answer(token, **answer).status == 202]
        assert len(acknowledged) == 50
        command = [sys.executable, "-m", "diminuendo", "move", str(tmp_path / "site.db"), address]
        said = subprocess.run(command, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        assert "ledger" in said.stdout
        assert "answers" not in said.stdout
        assert shop.answer(out[50], **answer).status == 503
        assert shop.ask("POST", "/v1/placements/home/decisions", {}).status == 201  # a fallback slate, soon
        shop.close()
    refused = subprocess.run(
        [sys.executable, "-m", "diminuendo", "apply", str(path)], capture_output=True, text=True
    )
    assert "was moved to" in " ".join(refused.stderr.split())
    monkeypatch.setenv(STORE, address)
    told = read_site(path)
    assert told.store == told.front_store == address
    with ExitStack() as ending:
        processes = Processes(path, told.host, told.port, told.front_ends, print)
        ending.callback(processes.stop)
        shop = Shop(running._replace(processes=processes))
        ending.callback(shop.close)
        processes.watch()
        until(lambda: ready(shop), 60.0)
        for token in out[50:]:
            assert shop.answer(token, **answer).status == 202
        store = ending.enter_context(open_store(address))
        tokens = Tokens(read_keys(tmp_path / "keys").tokens, 1)
        counted = rounds(tokens, out)
        assert counted
        assert {row.round for row in store.answers(1, 0, 10**6)} == counted
        fresh = rounds(tokens, [each["token"] for each in shop.decide(count=20)["decisions"]])
        assert fresh
        assert max(counted) < min(fresh)


def rounds(tokens: Tokens, sent: list[str]) -> set[int]:
    """The rounds that count."""
    return {shown.round for shown in map(tokens.open, sent) if shown.counts}


def ready(shop: Shop) -> bool:
    """Whether the site serves."""
    try:
        return bool(json.loads(shop.ask("GET", "/healthz").body)["placements"].get("home"))
    except (OSError, ValueError):
        return False
