"""A store is moved to PostgreSQL as a whole, or not at all; and nothing goes on where it was."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diminuendo.errors import InvalidInput, LedgerDamaged, StoreUnavailable
from diminuendo.privacy import Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.service.records import Report
from diminuendo.service.store import QuotaResult, UserRound, open_store, rolled_back
from diminuendo.service.store.move import COPIED, move
from diminuendo.service.store.sql import Store
from diminuendo.service.store.sqlite import SqliteStore
from tests.kit.postgres import Server
from tests.kit.slow import mostly_slow
from tests.service.store_contract import (
    ANNA,
    BERTA,
    BUDGET,
    FIRST_MENU,
    SECRET,
    answered,
    begun,
    erased_of,
    placement,
    said,
)

BEFORE = ("target marked",)
"""Killed here, the file is still the store."""
MARKS = (*BEFORE, "source stopped", *(f"{table} copied" for table in COPIED), "verified")

KILLED = """
import os, sys
from pathlib import Path
from diminuendo.service.store.move import move
def reached(mark):
    if mark == sys.argv[3]:
        os.kill(os.getpid(), 9)
move(Path(sys.argv[1]), sys.argv[2], reached)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "site.db"


@pytest.fixture
def address(postgres_server: Server, database: str) -> str:
    return postgres_server.address(database)


def lived_in(store: Store) -> None:
    """A store in which there is something of everything."""
    fencing_token = begun(store)
    placement(store, "other")
    store.add_population("others", b"2")
    store.reserve_ids(1, 5, 1.0, None)
    store.reserve_ids(1, 5, 1.0, Report(0, 4, silent=(1,), types=(0, 1)))
    store.put(answered(0, 1, 2, 3), [UserRound(1, ANNA, 2, 0, b"key"), UserRound(1, BERTA, 1, 1)])
    store.put([], [UserRound(1, ANNA, 2, 2)])
    store.erase(1, [1])
    store.add_event(1, "items", b"{}", "me")
    store.publish(
        fencing_token, replace(FIRST_MENU, version=2, snapshot=b"\0large" * 300_000, gc_low_water_mark=1)
    )
    store.reserve_ids(1, 5, 1.0, None)
    store.add_key(fencing_token, 1, 7, b"\0sealed")
    with Ledger.on(store.books("users", fencing_token), BUDGET) as ledger:
        ledger.buy(Gaussian(1e-3), "sum", "of something").once("0", lambda: np.arange(3), SECRET)
    store.allow(fencing_token, 1, 10**8, 0.0)
    store.publish(
        fencing_token, replace(FIRST_MENU, version=3, snapshot=b"\0large" * 300_000, gc_low_water_mark=1)
    )
    store.allow(fencing_token, 1, 10**8, store.now() + 3600)
    store.heartbeat("trainer", "well")


def everything(store: Store) -> dict[str, Any]:
    """All that a store says, but for the time."""
    books = {name: store.books(name, None) for name in store.populations()}
    return {
        "populations": store.populations(),
        "placements": store.placements(),
        "events": [store.events(number) for number in (1, 2)],
        "menus": [store.menus(number) for number in (1, 2)],
        "id_blocks": store.id_blocks(1, 0),
        "answers": list(store.answers(1, 0, 10**9)),
        "erased": store.erased(1, 0, 10**9),
        "published": store.published(0.0),
        "snapshot": store.snapshot(1),
        "keys": store.keys_of(1),
        "ledger": {name: store.ledger(name) for name in books},
        "releases": {
            each: kept.releases.once(each, lambda: pytest.fail("drawn")).tolist()
            for kept in books.values()
            for each in kept.releases.names()
        },
        "leaders": store.leaders(),
        "heartbeats": store.heartbeats(),
    }  # fmt: skip


def test_every_table_is_moved(path: Path, postgres_server: Server, database: str, address: str) -> None:
    SqliteStore(path).close()
    open_store(address).close()
    db = sqlite3.connect(path)
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert set(COPIED) == {name for name in tables if not name.startswith("sqlite_")} - {"clock", "padding"}
    assert {row[1] for row in db.execute("PRAGMA table_info(clock)")} == {"one", "at", "moved"}
    db.close()


def test_all_of_it_is_moved_and_goes_on_there(path: Path, address: str) -> None:
    with open_store(str(path)) as source:
        lived_in(source)
        before, then, seen = everything(source), source.now(), source.heartbeats()["trainer"][0]
    counts = move(path, address)
    assert counts["answers"] == 3  # one was forgotten, one is a tombstone
    with open_store(address) as store:
        assert everything(store) == before
        assert store.now() >= seen
        id_block = store.reserve_ids(1, 5, 1.0, None)
        assert id_block is not None
        assert (id_block.first, id_block.version) == (15, 3)
        assert id_block.at >= then - 1e-3
        assert store.add_event(1, "items", b"{}", "me") > before["events"][0][-1].seq
        assert store.add_placement("third", "users", b"") == 3
        store.put(answered(0, 1, 4))
        assert sorted(said(store)) == [2, 3, 4]  # what was forgotten or erased stays so
        assert store.put([], [UserRound(1, ANNA, 2, 9)]) == [QuotaResult(False, 9)]
        fencing_token = store.acquire_leadership(
            "users", "two", after=before["leaders"]["users"].fencing_token
        )
        with Ledger.on(store.books("users", fencing_token)) as ledger:
            ledger.charge(Gaussian(1e-3), "more")
            assert len(ledger.charges) == 2
        store.publish(fencing_token, replace(FIRST_MENU, version=4))
        since, _ = before["published"]
        assert store.published(since)[1] == {1: 4}
        assert erased_of(store, 1, ANNA) == [0, 1, 2, 9], "which rounds are hers is known there"


def test_nothing_goes_on_where_it_was(path: Path, address: str) -> None:
    with open_store(str(path)) as open_before:
        fencing_token = begun(open_before)
        move(path, address)
        calls: list[Callable[[], object]] = [
            lambda: open_before.reserve_ids(1, 5, 1.0, None),
            lambda: open_before.put(answered(1)),
            lambda: open_before.erase(1, [1]),
            lambda: open_before.acquire_leadership("users", "two"),
            lambda: open_before.publish(fencing_token, replace(FIRST_MENU, version=2)),
            lambda: open_before.books("users", fencing_token).lines.append(b"{}"),
            lambda: open_before.heartbeat("trainer"),
            open_before.now,
        ]
        for refused in calls:
            with pytest.raises(StoreUnavailable, match="moved"):
                refused()
    with pytest.raises(InvalidInput, match="was moved to postgresql://"):
        open_store(str(path))
    with pytest.raises(InvalidInput, match="already, as a whole"):
        move(path, address)


def test_a_place_that_is_not_empty_is_refused_and_nothing_is_stopped(
    path: Path, address: str, tmp_path: Path
) -> None:
    with open_store(str(path)) as store:
        lived_in(store)
    with open_store(address) as target:
        target.add_population("users", b"{}")
    with pytest.raises(InvalidInput, match="is empty"):
        move(path, address)
    with open_store(str(path)) as store:
        assert store.reserve_ids(1, 5, 1.0, None) is not None
    with pytest.raises(InvalidInput, match="no file"):
        move(tmp_path / "none.db", address)


def test_a_mark_that_is_taken_away_helps_only_where_nobody_has_led_since(
    path: Path, address: str, tmp_path: Path
) -> None:
    with open_store(str(path)) as store:
        lived_in(store)
        rolled_back.note(tmp_path, "trainer", store.heartbeats()["trainer"][0])
    move(path, address)
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE clock SET moved = NULL")
    db.close()
    with open_store(str(path)) as store, open_store(address) as target:
        rolled_back.refuse_older(store, tmp_path)
        rolled_back.note(tmp_path, "trainer", target.heartbeat("trainer"))
        rolled_back.refuse_older(target, tmp_path)
        with pytest.raises(LedgerDamaged, match="older"):
            rolled_back.refuse_older(store, tmp_path)


@pytest.mark.slow
def test_what_was_begun_to_be_moved_moves_nowhere_else(
    path: Path, postgres_server: Server, address: str
) -> None:
    with open_store(str(path)) as store:
        lived_in(store)
    killed(path, address, "source stopped")
    with pytest.raises(InvalidInput, match="nowhere else"):
        move(path, postgres_server.address(postgres_server.database()))
    move(path, address)


def killed(path: Path, address: str, mark: str) -> None:
    """A move that ends at some mark."""
    ran = subprocess.run([sys.executable, "-c", KILLED, path, address, mark], timeout=120)
    assert ran.returncode == -signal.SIGKILL


@pytest.mark.parametrize("mark", mostly_slow(MARKS, ["ledger copied"]))
def test_a_move_that_is_cut_off_is_run_again(mark: str, path: Path, address: str) -> None:
    with open_store(str(path)) as store:
        lived_in(store)
        before = everything(store)
    killed(path, address, mark)
    with pytest.raises(InvalidInput, match="not there as a whole"):
        open_store(address)
    if mark in BEFORE:
        with open_store(str(path)) as store:
            assert store.reserve_ids(1, 1, 1.0, None) is not None
            before = everything(store)
    else:
        with pytest.raises(InvalidInput, match="was moved to"):
            open_store(str(path))
    move(path, address)
    with open_store(address) as store:
        assert everything(store) == before


def test_what_is_acknowledged_while_it_is_moved_is_there(path: Path, address: str) -> None:
    with open_store(str(path)) as store:
        begun(store)
        acknowledged, refused = list[int](), list[int]()

        def answer(first: int) -> None:
            for number in range(first, 100_000, 4):
                try:
                    store.put(answered(number))
                except StoreUnavailable:
                    refused.append(number)
                    return
                acknowledged.append(number)

        threads = [threading.Thread(target=answer, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        while len(acknowledged) < 50:
            assert all(thread.is_alive() for thread in threads)
        move(path, address)
        for thread in threads:
            thread.join()
    assert len(refused) == 4
    with open_store(address) as store:
        assert sorted(said(store)) == sorted(acknowledged)
        store.put(answered(*refused))  # as clients do who were told to try again
        assert sorted(said(store)) == sorted([*acknowledged, *refused])
