"""What is said of the PostgreSQL server: what it must be, whom it refuses, and what happens when it goes away."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from diminuendo.errors import InvalidInput, StoreUnavailable, Superseded
from diminuendo.service.records import Report
from diminuendo.service.store import AnswerRow, QuotaResult, UserRound, open_store
from diminuendo.service.store.fencing import FencedWrite
from diminuendo.service.store.postgres import PostgresStore, server, shown
from diminuendo.service.store.postgres.functions import STEPS
from diminuendo.service.store.postgres.server import Db
from tests.kit import postgres
from tests.kit.postgres import Server
from tests.service.store_contract import ANNA, FIRST_MENU, answered, begun, said


@pytest.fixture
def address(postgres_server: Server, database: str) -> str:
    return postgres_server.address(database)


@pytest.fixture
def fresh(postgres_server: Server, database: str) -> Iterator[str]:
    """The name of a database without tables, before and after."""
    postgres_server.emptied(database, tables=True)
    yield database
    postgres_server.emptied(database, tables=True)


def backends(postgres_server: Server, database: str) -> list[int]:
    """Processes of the server that belong to others."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return [pid for (pid,) in postgres_server.sql(database, query)]


# What it must be.


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_acknowledged_is_refused(setting: str) -> None:
    with postgres.running(f"{setting}=off") as careless:
        with pytest.raises(InvalidInput, match=f"{setting} off"):
            open_store(careless.address("postgres"))
        assert careless.sql("postgres", "SELECT 1 FROM pg_namespace WHERE nspname = 'diminuendo'") == []


def test_a_role_that_does_not_wait_for_the_disk_is_refused_and_each_write_says_that_it_does(
    postgres_server: Server, database: str, address: str
) -> None:
    with open_store(address) as store:
        begun(store)
    postgres_server.sql(database, f"ALTER DATABASE {database} SET synchronous_commit = off", "SELECT 1")
    try:
        with pytest.raises(InvalidInput, match="synchronous_commit off"):
            open_store(address)

        async def committed(call: str) -> str:
            """How a call is committed in a session that would not wait."""
            db = await asyncpg.connect(address)
            try:
                assert await db.fetchval("SHOW synchronous_commit") == "off"
                async with db.transaction():
                    await db.execute(call)
                    return str(await db.fetchval("SHOW synchronous_commit"))
            finally:
                await db.close()

        for call in (
            "SELECT diminuendo.reserve_ids(1, 5, 1.0, NULL, NULL)",
            "SELECT diminuendo.put('{1}', '{1}', '{x}', '{}', '{}', '{}', '{}', '{}', '{}')",
            "SELECT diminuendo.erase(1, '{1}')",
            "SELECT diminuendo.heartbeat('me', '')",
            "SELECT diminuendo.join_writers()",
        ):
            assert asyncio.run(committed(call)) == "on", call
    finally:
        postgres_server.sql(database, f"ALTER DATABASE {database} RESET synchronous_commit", "SELECT 1")


def test_a_database_that_shows_those_who_waited_what_was_before_is_refused(
    postgres_server: Server, database: str, address: str
) -> None:
    postgres_server.sql(
        database,
        f"ALTER DATABASE {database} SET default_transaction_isolation = 'repeatable read'",
        "SELECT 1",
    )
    try:
        with pytest.raises(InvalidInput, match="read committed"):
            open_store(address)
    finally:
        postgres_server.sql(
            database, f"ALTER DATABASE {database} RESET default_transaction_isolation", "SELECT 1"
        )


def test_databases_of_others_are_left_alone(postgres_server: Server, fresh: str) -> None:
    postgres_server.sql(fresh, "CREATE TABLE public.poems (line text)", "SELECT 1")
    try:
        with pytest.raises(InvalidInput, match="tables of others"):
            open_store(postgres_server.address(fresh))
        assert postgres_server.sql(fresh, "SELECT 1 FROM pg_namespace WHERE nspname = 'diminuendo'") == []
    finally:
        postgres_server.sql(fresh, "DROP TABLE public.poems", "SELECT 1")


@pytest.mark.slow
def test_stores_are_opened_by_several_at_once(postgres_server: Server, fresh: str) -> None:
    address = postgres_server.address(fresh)
    program = (
        "import sys; from diminuendo.service.store import open_store; "
        "open_store(sys.argv[1]).heartbeat(sys.argv[2])"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, address, str(each)]) for each in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0] * 3  # all at once, where there was none
    with open_store(address) as store:
        assert set(store.heartbeats()) == set("012")


def test_newer_tables_are_refused_and_older_ones_take_the_steps_that_they_lack(
    postgres_server: Server, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres_server.address(fresh)
    with open_store(address) as store:
        begun(store)
    with monkeypatch.context() as patch:
        more = "CREATE TABLE diminuendo.more (x integer); INSERT INTO diminuendo.more VALUES (5)"
        patch.setattr(server, "STEPS", (*STEPS, more))
        for _ in range(2):
            with PostgresStore(address) as store:
                assert store._server.rows("SELECT x FROM diminuendo.more") == [(5,)]
    with pytest.raises(InvalidInput, match="newer diminuendo"):
        open_store(address)


def test_who_may_not_make_tables_is_told_who_may(postgres_server: Server, fresh: str) -> None:
    if not postgres_server.sql(fresh, "SELECT 1 FROM pg_roles WHERE rolname = 'stranger'"):
        postgres_server.sql(fresh, "CREATE ROLE stranger LOGIN", "SELECT 1")
    with pytest.raises(InvalidInput, match="as who owns the database"):
        open_store(postgres_server.address(fresh, "stranger"))
    open_store(postgres_server.address(fresh)).close()
    with pytest.raises(StoreUnavailable, match="role may not"):
        open_store(postgres_server.address(fresh, "stranger"))


def test_functions_that_run_as_their_owner_find_names_in_one_schema_alone() -> None:
    made = re.split("CREATE (?:OR REPLACE )?FUNCTION", "".join(STEPS))[1:]
    assert len(made) > 20
    assert all("SET search_path = diminuendo, pg_temp" in each for each in made)


# What is not said.


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:se%2Fcret@nowhere.invalid/db",
        "postgresql://ada:secret@127.0.0.1:1/db",
        "postgresql://ada@127.0.0.1:1/db?password=secret",
        "postgresql://ada:secret/5@127.0.0.1:1/db",
        "postgresql://ada:5secret#5@127.0.0.1:1/db",
        "postgresql://ada:5?secret@127.0.0.1:1/db",
        "postgresql://ada:secret@127.0.0.1:port/db",
        "postgresql://ada:secret@127.0.0.1:1/db?sslmode=never",
    ],
)
def test_passwords_are_never_shown(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((StoreUnavailable, InvalidInput)) as refused:
        open_store(address)
    told = repr(refused.value) + repr(refused.value.__context__) + repr(refused.value.__cause__)
    assert "secret" not in told + "".join(capfd.readouterr())
    assert "5" not in str(refused.value).replace("%25", "")


def test_addresses_are_shown_as_places() -> None:
    assert shown("postgresql://ada:secret@db.example.com:5433/site?sslmode=require") == (
        "postgresql://db.example.com:5433/site"
    )


def test_errors_say_nothing_of_what_was_given(address: str) -> None:
    with PostgresStore(address) as store:
        begun(store)
        calls: list[Callable[[], object]] = [
            lambda: store._server.rows("SELECT 'prawns'::integer"),
            lambda: store._server.rows("SELECT $1::bigint", "prawns in aspic"),
            lambda: store.heartbeat("prawns\0", ""),
            lambda: store._server.rows("INSERT INTO diminuendo.heartbeats VALUES ('prawns', NULL, '')"),
        ]
        for refused in calls:
            with pytest.raises(StoreUnavailable) as error:
                refused()
            assert "prawns" not in repr(error.value) + repr(error.value.__context__) + repr(
                error.value.__cause__
            )
        store.put(answered(1))
        assert said(store) == {1: b"said 1"}


# When it goes away.


def test_a_lost_connection_is_opened_again(postgres_server: Server, database: str, address: str) -> None:
    with open_store(address) as store:
        fencing_token = begun(store)
        for _ in range(3):
            for pid in backends(postgres_server, database):
                postgres_server.sql(database, f"SELECT pg_terminate_backend({pid}, 5000)")
            store.put(answered(1))
            assert said(store) == {1: b"said 1"}
        for version in (2, 3, 4):
            for pid in backends(postgres_server, database):
                postgres_server.sql(
                    database, f"SELECT pg_terminate_backend({pid})"
                )  # it may not have ended yet
            store.publish(fencing_token, replace(FIRST_MENU, version=version))


@pytest.mark.slow
def test_a_server_that_is_away_is_not_available_and_then_is_again() -> None:
    with postgres.running() as own, open_store(own.address("postgres")) as store:
        fencing_token = begun(store)
        store.put(answered(1))
        own.stop()
        for refused in (
            store.now,
            lambda: store.put(answered(2)),
            lambda: store.publish(fencing_token, FIRST_MENU),
        ):
            with pytest.raises(StoreUnavailable, match=r"reached|stopped"):
                refused()
        own.start()
        store.put(answered(2))
        store.publish(fencing_token, replace(FIRST_MENU, version=2))
        assert said(store) == {1: b"said 1", 2: b"said 2"}


class Holding:
    """Somebody who has begun to write, and stops there until it is to commit, or is forgotten."""

    def __init__(self, address: str, statement: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._db = self._loop.run_until_complete(asyncpg.connect(address))
        self._loop.run_until_complete(self._db.execute(f"BEGIN; {statement}"))

    def go_on(self, statement: str) -> None:
        self._loop.run_until_complete(self._db.execute(statement))

    def end(self) -> None:
        self._loop.run_until_complete(self._db.execute("COMMIT"))
        self._loop.run_until_complete(self._db.close())
        self._loop.close()

    def forget(self) -> None:
        self._db.terminate()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()


def test_nothing_is_written_before_a_time_that_was_told(address: str) -> None:
    with open_store(address) as store, open_store(address) as another:
        begun(store)
        slow = Holding(
            address, "SELECT diminuendo.put('{1}', '{7}', '{x}', '{}', '{}', '{}', '{}', '{}', '{}')"
        )
        times = list[float]()
        beating = threading.Thread(target=lambda: times.append(another.heartbeat("trainer")))
        beating.start()
        beating.join(0.2)
        assert beating.is_alive(), "it waits for who has asked for the time before"
        slow.end()
        beating.join()
        ((row,),) = [list(store.answers(1, 0, 100))]
        assert row.at <= times[0]
        store.put(answered(8))
        assert [row.at >= times[0] for row in store.answers(1, 8, 9)] == [True]


def test_what_changed_is_not_told_before_what_has_an_earlier_time(address: str) -> None:
    with open_store(address) as store, open_store(address) as another:
        begun(store)
        since, _ = store.changed(0.0)
        slow = Holding(address, "SELECT diminuendo.reserve_ids(1, 5, 1.0, NULL, NULL)")
        store.add_placement("other", "users", b"{}")
        result = list[Any]()
        asking = threading.Thread(target=lambda: result.append(another.changed(since)))
        asking.start()
        asking.join(0.2)
        slow.end()
        asking.join()
        then, changed = result[0]
        assert {number: each.reserved for number, each in changed.items()} in (
            {1: 5, 2: 0},
            {1: 0, 2: 0} | {1: 5},
        )
        assert store.changed(then)[1].keys() <= {2}


def test_a_menu_is_not_told_before_one_that_has_an_earlier_time(address: str) -> None:
    """Nobody who asks waits, and nobody who publishes waits for who asks."""
    with open_store(address) as store, open_store(address) as another:
        fencing_token = begun(store)
        store.add_placement("other", "users", b"{}")
        since, _ = store.published(0.0)
        slow = Holding(
            address,
            "SELECT diminuendo.join_writers(); "
            "INSERT INTO diminuendo.menus (placement, version, first, past, effective_at, body, at, "
            "lines, gc_low_water_mark) SELECT 2, 1, 0, 9, 0, '', diminuendo.advance_clock(), 0, 0",
        )
        publishing = threading.Thread(
            target=lambda: store.publish(fencing_token, replace(FIRST_MENU, version=2))
        )
        publishing.start()
        publishing.join(0.2)
        assert another.published(since) == (since, {1: 1})
        slow.end()
        publishing.join()
        assert another.published(since)[1] == {1: 2, 2: 1}


def test_who_led_before_is_refused_also_in_the_midst_of_something(address: str) -> None:
    """A transaction of the one who led is waited for; what it begins afterwards is refused."""
    with PostgresStore(address) as store, open_store(address) as another:
        old, goes_on, there = begun(store), threading.Event(), threading.Event()

        async def slowly(db: Db) -> None:
            there.set()
            await asyncio.get_running_loop().run_in_executor(None, goes_on.wait)
            await db.execute("INSERT INTO diminuendo.ledger VALUES ('users', 0, 'x', 5)")

        writing = threading.Thread(target=lambda: store._server.writing(slowly, FencedWrite("users", old)))
        leading = threading.Thread(target=lambda: another.acquire_leadership("users", "two"))
        writing.start()
        there.wait()
        leading.start()
        leading.join(0.2)
        waits = leading.is_alive()
        goes_on.set()
        writing.join()
        leading.join()
        assert waits
        assert another.books("users", old + 1).lines.read() == b"x"
        calls: list[Callable[[], object]] = [
            lambda: store.publish(old, replace(FIRST_MENU, version=2)),
            lambda: store.books("users", old).lines.append(b"y"),
        ]
        for refused in calls:
            with pytest.raises(Superseded):
                refused()


def test_what_changes_nothing_is_synced_as_well(postgres_server: Server, database: str, address: str) -> None:
    """Else it would be acknowledged sooner, and tell that it was the second, or too late."""

    def synced() -> int:
        ((result,),) = postgres_server.sql(database, "SELECT pg_current_wal_flush_lsn() - '0/0'")
        return int(result)

    with open_store(address) as store:
        begun(store)
        store.put(answered(1))
        for nothing in (answered(1), [AnswerRow(9, 1, b"of no placement")]):
            before = synced()
            store.put(nothing)
            assert synced() > before
        store.erase(1, [1])
        before = synced()
        store.erase(1, [1])
        assert synced() > before


@pytest.mark.slow
def test_who_holds_everything_up_is_sent_away(address: str) -> None:
    with open_store(address) as store:
        begun(store)
        slow = Holding(
            address, "SET LOCAL idle_in_transaction_session_timeout = '1s'; SELECT diminuendo.join_writers()"
        )
        began = time.monotonic()
        store.heartbeat("trainer")
        assert 0.5 < time.monotonic() - began < 4
        slow.forget()


def test_an_answer_that_comes_while_its_round_is_forgotten_is_forgotten(address: str) -> None:
    with open_store(address) as store:
        fencing_token = begun(store)
        slow = Holding(
            address, "SELECT diminuendo.put('{1}', '{2}', '{x}', '{}', '{}', '{}', '{}', '{}', '{}')"
        )
        publishing = threading.Thread(
            target=lambda: store.publish(fencing_token, replace(FIRST_MENU, version=2, gc_low_water_mark=5))
        )
        publishing.start()
        publishing.join(0.2)
        slow.end()
        publishing.join()
        assert said(store) == {}


ANSWER = "SELECT diminuendo.put('{{1}}', '{{{0}}}', '{{x}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}')"
VISIT = (
    "SELECT diminuendo.put('{{}}', '{{}}', '{{}}', '{{}}', '{{1}}', ARRAY[decode(repeat('0{0}', 16), 'hex')], '{{1}}', "
    "'{{{0}}}', ARRAY[''::bytea])"
)


@pytest.mark.parametrize("statement", [ANSWER, VISIT], ids=["answers", "user_rounds"])
def test_two_who_write_at_once_wait_for_each_other_and_never_both(
    statement: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has written 1 and will write 2. The other is given 2 and 1, and waits for 1 before it has written 2."""
    monkeypatch.setattr(server, "UNDONE", ())  # else whoever is undone tries again, and nobody notices
    with open_store(address) as store:
        begun(store)
        rows = answered(2, 1)
        user_rounds = [UserRound(1, bytes([number]) * 16, 1, 50 + number) for number in (2, 1)]
        counted = list[Any]()
        first = Holding(address, statement.format(1))
        putting = threading.Thread(
            target=lambda: counted.append(
                store.put(rows) if statement == ANSWER else store.put([], user_rounds)
            )
        )
        putting.start()
        putting.join(0.2)
        waits = putting.is_alive()
        first.go_on(statement.format(2))  # fails after a second where both wait
        first.end()
        putting.join()
        assert waits
        assert counted == [[] if statement == ANSWER else [QuotaResult(False, 52), QuotaResult(False, 51)]]


# Its clock.


def wall(postgres_server: Server, database: str, at: float) -> None:
    """Set the database's clock."""
    body = f"SELECT {at}::double precision"
    postgres_server.sql(
        database,
        "CREATE OR REPLACE FUNCTION diminuendo.wall() RETURNS double precision LANGUAGE sql VOLATILE "
        f"SET search_path = diminuendo, pg_temp AS '{body}'",
        "SELECT 1",
    )


def test_a_clock_that_is_set_back_goes_on_from_where_it_was(postgres_server: Server, fresh: str) -> None:
    address = postgres_server.address(fresh)
    with open_store(address) as store, open_store(address) as another:
        wall(postgres_server, fresh, 1000.0)
        begun(store)
        assert store.heartbeat("one") == another.now() == 1000.0
        wall(postgres_server, fresh, 1010.0)
        assert store.now() == 1010.0
        id_block = store.reserve_ids(1, 1, 2.0, None)
        assert id_block is not None
        wall(postgres_server, fresh, 500.0)
        assert store.now() == another.now() == 1010.0  # an ID block is public
        assert store.heartbeat("one") == 1010.0
        wall(postgres_server, fresh, 505.0)
        assert store.now() == another.now() == another.heartbeat("two") == 1015.0
        id_block = another.reserve_ids(1, 1, 2.0, Report(0, 1))
        assert id_block is not None
        assert (id_block.at, id_block.expires_at) == (1015.0, 1017.0)
        assert store.id_blocks(1, 0)[0].reported_at == 1015.0
        wall(postgres_server, fresh, 400.0)
        assert [each.at for _ in range(2) if (each := store.reserve_ids(1, 1, 2.0, None))] == [1015.0, 1015.0]
        wall(postgres_server, fresh, 401.0)
        store.put(answered(2), [UserRound(1, ANNA, 1, 2)])
        assert [row.at for row in store.answers(1, 0, 9)] == [1016.0]
        assert postgres_server.sql(fresh, "SELECT at FROM diminuendo.clock") == [
            (1015.0,)
        ]  # answers do not move it
