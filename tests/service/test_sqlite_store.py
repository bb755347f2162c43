"""The SQLite store keeps the contract, and what is said of its file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from diminuendo.errors import InvalidInput, LedgerDamaged, StoreUnavailable
from diminuendo.privacy import Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.service.store import AnswerRow, UserRound, open_store, sqlite_file
from diminuendo.service.store.schema import STEPS
from diminuendo.service.store.sqlite import SqliteStore
from tests.service.store_contract import (
    ANNA,
    BUDGET,
    FIRST_MENU,
    SECRET,
    Copied,
    StoreContract,
    answered,
    begun,
    said,
)


def changed(path: Path, *statements: str) -> None:
    """Change the file behind the store's back."""
    db = sqlite3.connect(path)
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def copy_of(path: Path) -> Callable[[], None]:
    """Copy a file; what is returned puts the copy back, and all who have the file open see it as it was."""
    old = path.with_suffix(".copy")

    def copied(source: Path, to: Path) -> None:
        with closing(sqlite3.connect(source)) as there, closing(sqlite3.connect(to)) as here:
            there.backup(here)

    copied(path, old)
    return partial(copied, old, path)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return f"sqlite:{tmp_path / 'service.db'}"

    @pytest.fixture
    def copied(self, address: str) -> Copied:
        return partial(copy_of, Path(address.removeprefix("sqlite:")))

    def check_whole(self, address: str) -> None:
        db = sqlite3.connect(address.removeprefix("sqlite:"))
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        db.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def test_what_is_acknowledged_is_synced_and_nobody_else_reads_the_file(path: Path) -> None:
    with open_store(str(path)) as store:
        assert isinstance(store, SqliteStore)
        begun(store)
        assert store._file.rows("PRAGMA synchronous") == [(2,)]
        assert store._file.rows("PRAGMA journal_mode") == [("wal",)]
        assert store._file.rows("PRAGMA foreign_keys") == [(1,)]
        assert {file.stat().st_mode & 0o777 for file in path.parent.glob("service.db*")} == {0o600}


def test_addresses(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="begin with sqlite, postgresql"):
        open_store("mysql://somewhere")
    with pytest.raises(InvalidInput, match="No such file"):
        open_store(str(tmp_path / "none" / "service.db"))
    open_store(str(tmp_path / "a:b.db")).close()
    assert (tmp_path / "a:b.db").exists()


def test_front_ends_import_nothing_that_is_compiled() -> None:
    program = (
        "import sys; from diminuendo.service.store import open_store; "
        "import diminuendo.service.store.sqlite, diminuendo.service.store.postgres; "
        "print([name for name in ('numpy', 'numba') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_files_of_others_are_left_alone(path: Path) -> None:
    changed(path, "CREATE TABLE poems (line TEXT)")
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="another kind"):
        SqliteStore(path)
    assert path.read_bytes() == before
    path.write_bytes(b"no database at all, but a poem that goes on for more than a line or two" * 20)
    with pytest.raises(StoreUnavailable, match="another kind"):
        SqliteStore(path)


def test_a_newer_file_is_refused_and_an_older_one_takes_the_steps_that_it_lacks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(path) as store:
        begun(store)
        store.put(answered(1))
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "STEPS", (*STEPS, "CREATE TABLE more (x); INSERT INTO more VALUES (5)"))
        for _ in range(2):
            with SqliteStore(path) as store:
                assert said(store) == {1: b"said 1"}
                assert store._file.rows("SELECT x FROM more") == [(5,)]
    with pytest.raises(InvalidInput, match="newer diminuendo"):
        SqliteStore(path)


def test_asking_what_changed_reads_no_placement_to_which_nothing_happened(path: Path) -> None:
    with SqliteStore(path) as store:
        begun(store)
        asked = "SELECT 1 FROM {} WHERE {} >= 0"
        for table, column in (("id_blocks", "at"), ("events", "at"), ("placements", "made_at")):
            (plan,) = store._file.rows(f"EXPLAIN QUERY PLAN {asked.format(table, column)}")
            assert plan[-1].startswith(f"SEARCH {table} USING"), plan


def test_stores_are_opened_by_several_at_once(path: Path) -> None:
    program = (
        "import sys; from diminuendo.service.store import open_store; "
        "open_store(sys.argv[1]).heartbeat(sys.argv[2])"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, path, str(j)]) for j in range(4)]
    assert [process.wait(timeout=60) for process in running] == [0] * 4
    with SqliteStore(path) as store:
        assert set(store.heartbeats()) == set("0123")


class Wall:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


def test_a_clock_that_is_set_back_goes_on_from_where_it_was(path: Path) -> None:
    wall = Wall()
    with SqliteStore(path, wall) as store, SqliteStore(path, wall) as another:
        begun(store)
        assert store.heartbeat("one") == another.now() == 1000.0
        wall.at = 1010.0
        assert store.now() == 1010.0
        wall.at = 500.0
        assert store.now() == 1010.0  # also where nothing was written
        assert store.heartbeat("one") == 1010.0
        assert another.now() == 1010.0
        wall.at = 505.0
        assert store.now() == another.now() == another.heartbeat("two") == 1015.0
        id_block = another.reserve_ids(1, 1, 2.0, None)
        assert id_block is not None
        assert (id_block.at, id_block.expires_at) == (1015.0, 1017.0)
    wall.at = 400.0
    with SqliteStore(path, wall) as again:
        assert again.now() == 1015.0
        again.put(answered(1))
        wall.at = 401.0
        again.put(answered(2))
        assert [row.at for row in again.answers(1, 0, 9)] == [1015.0, 1016.0]


def test_a_full_disk_loses_nothing_and_says_nothing(path: Path) -> None:
    with SqliteStore(path) as store:
        fencing_token = begun(store)
        ledger = Ledger.on(store.books("users", fencing_token), BUDGET)
        store.put(answered(*range(100)))
        ((pages,),) = store._file.rows("PRAGMA page_count")
        store._file.rows(f"PRAGMA max_page_count = {pages}")
        kept, secret = 100, b"prawns in aspic" * 300
        with pytest.raises(StoreUnavailable, match="disk is full") as refused:  # noqa: PT012
            for kept in range(100, 200):
                store.put([AnswerRow(1, kept, secret)], [UserRound(1, ANNA, 1, kept)])
        assert "prawns" not in str(refused.value) + repr(refused.value.__context__)
        with pytest.raises(StoreUnavailable, match="disk is full"):
            store.publish(
                fencing_token, replace(FIRST_MENU, version=2, snapshot=bytes(100_000), gc_low_water_mark=50)
            )
        with pytest.raises(StoreUnavailable, match="disk is full"):
            fill(ledger)
        assert sorted(said(store)) == list(range(kept))
        assert [menu.version for menu in store.menus(1)] == [1]
        counted = store._file.rows("SELECT rounds, last FROM user_rounds")
        assert counted == ([("[100]", kept - 1)] if kept > 100 else [])
        store._file.rows(f"PRAGMA max_page_count = {pages + 1000}")
        store.put([AnswerRow(1, kept, secret)])
        assert sorted(said(store)) == list(range(kept + 1))
        with Ledger.on(store.books("users", fencing_token), expect=ledger.head) as again:
            assert again.charges == ledger.charges


def fill(ledger: Ledger) -> None:
    for number in range(1000):
        ledger.charge(Gaussian(1e-9), f"{number} ".ljust(200, "x"))


def test_a_store_that_is_held_for_too_long_is_not_waited_for(path: Path) -> None:
    with SqliteStore(path) as store:
        begun(store)
        store._file.rows("PRAGMA busy_timeout = 20")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="too long"):
            store.put(answered(1))
        assert said(store) == {}  # whoever reads does not wait
        other.execute("ROLLBACK")
        other.close()
        store.put(answered(1))
        assert said(store) == {1: b"said 1"}


@pytest.mark.parametrize(
    ("damage", "when"),
    [
        ("DELETE FROM ledger WHERE seq = 1", "open"),
        ("UPDATE ledger SET line = substr(line, 1, 40) WHERE seq = 2", "open"),
        ("UPDATE releases SET body = substr(body, 1, 130)", "once"),
        ("UPDATE releases SET body = (SELECT body FROM releases WHERE name = 'sum.1')", "once"),
        ("DELETE FROM releases", "once"),
    ],
)
def test_damage_is_noticed(path: Path, damage: str, when: str) -> None:
    with SqliteStore(path) as store:
        fencing_token = begun(store)
        with Ledger.on(store.books("users", fencing_token), BUDGET) as ledger:
            paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
            paid.once("0", lambda: np.arange(3), SECRET)
            paid.once("1", lambda: np.arange(1, 4), SECRET)
        changed(path, damage)
        if when == "open":
            with pytest.raises(LedgerDamaged):
                Ledger.on(store.books("users", fencing_token))
        else:
            paid = Ledger.on(store.books("users", fencing_token)).buy(Gaussian(1e-3), "sum", "of something")
            with pytest.raises(LedgerDamaged):
                paid.once("0", lambda: pytest.fail("drawn again"), SECRET)


@pytest.mark.parametrize("how", ["replaced", "moved", "deleted"])
def test_nothing_is_acknowledged_into_a_file_that_is_not_at_its_path(path: Path, how: str) -> None:
    with open_store(str(path)) as store:
        home = begun(store)
        store.put([AnswerRow(home, 0, b"said")])
        if how == "replaced":
            copy = sqlite3.connect(path.with_name("copy.db"))
            changed(path, "PRAGMA wal_checkpoint")
            source = sqlite3.connect(path)
            source.backup(copy)
            source.close()
            copy.close()
            os.rename(path.with_name("copy.db"), path)
        else:
            os.rename(path, path.with_name("gone.db"))
        if how == "deleted":
            os.unlink(path.with_name("gone.db"))
        for call in (
            lambda: store.put([AnswerRow(home, 1, b"said")]),
            lambda: store.heartbeat("somebody"),
            lambda: store.reserve_ids(home, 1, 1.0, None),
            store.now,
        ):
            with pytest.raises(StoreUnavailable, match="is not the one that was opened"):
                call()


def test_a_file_that_is_replaced_while_something_is_written_acknowledges_nothing(path: Path) -> None:
    with open_store(str(path)) as store:
        file = store._file  # type: ignore[attr-defined]
        with pytest.raises(StoreUnavailable, match="is not the one that was opened"), file.writing():
            os.rename(path, path.with_name("gone.db"))


# Feedback that counts, that was given before, and that never counts: what is written is as much.


def pages(path: Path, work: Callable[[], object]) -> int:
    """How many pages a commit writes, and syncs: those that the log grows by."""
    log = path.with_name(f"{path.name}-wal")
    before = log.stat().st_size
    work()
    grown = log.stat().st_size - before
    assert grown % (4096 + 24) == 0, "whole pages, each with its header"
    return grown // (4096 + 24)


def test_a_commit_writes_as_much_whether_a_round_was_answered_before_or_never_counts(tmp_path: Path) -> None:
    """Where it wrote nothing it would sync nothing, and be done in a fraction of the time."""
    path, encrypted = tmp_path / "store.db", bytes(300)
    with SqliteStore(path) as store:
        begun(store)
        number = 1
        put: dict[str, list[AnswerRow]] = {
            "first": [AnswerRow(number, 10, encrypted)],
            "second": [AnswerRow(number, 10, encrypted)],
            "of a round that was erased": [AnswerRow(number, 7, encrypted)],
            "of no placement": [AnswerRow(0, 11, encrypted)],
            "of another one of none": [AnswerRow(10**6, 11, encrypted)],
            "which is none": [AnswerRow(number, -1, encrypted)],
            "nothing": [],
        }
        store.erase(number, [7])
        for size in (1, 300, 40_000):  # there is a row of each size
            store.put([AnswerRow(0, 0, bytes(size))])
        store.put([AnswerRow(number, 0, encrypted)])
        written = {name: pages(path, partial(store.put, rows)) for name, rows in put.items()}
        assert set(written.values()) == {1}, written
        long = {
            name: pages(path, partial(store.put, [AnswerRow(which, 20, bytes(40_000))]))
            for name, which in (("first", number), ("second", number), ("of no placement", 0))
        }
        assert max(long.values()) - min(long.values()) <= 2, long
        assert min(long.values()) > 9, "however long it is"
        store.erase(number, [0])
        erased: dict[str, Callable[[], object]] = {
            "first": partial(store.erase, number, [10]),
            "second": partial(store.erase, number, [10]),
            "of nothing": partial(store.erase, number, []),
            "somebody who never came": partial(store.erase_user, number, ANNA),
        }
        written = {name: pages(path, work) for name, work in erased.items()}
        assert set(written.values()) == {1}, written
        user_round = UserRound(number, ANNA, 1, 3, b"key")
        user_rounds = {
            "first": user_round,
            "again": user_round,
            "one too many": replace(user_round, round=4, key=b"other"),
        }
        user_rounds |= {"of no placement": replace(user_round, placement=10**6)}
        written = {name: pages(path, partial(store.put, [], [row])) for name, row in user_rounds.items()}
        assert set(written.values()) == {1}, written
