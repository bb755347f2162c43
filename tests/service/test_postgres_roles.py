"""Roles of the PostgreSQL store: each does what it must, and SQL refuses it everything else."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import asyncpg
import numpy as np
import pytest

from diminuendo.errors import InvalidInput, StoreUnavailable
from diminuendo.privacy import Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.service.records import Report
from diminuendo.service.store import QuotaResult, UserRound, open_store
from diminuendo.service.store.postgres import server
from diminuendo.service.store.postgres.functions import STEPS
from diminuendo.service.store.postgres.rights import CALLED, READ
from diminuendo.service.store.postgres.roles import make_roles
from diminuendo.service.store.postgres.schema import PRIVATE, PUBLIC, WITHIN
from tests.kit.postgres import Server
from tests.service.store_contract import ANNA, BUDGET, FIRST_MENU, SECRET, answered, begun, placement, said


class Roles(NamedTuple):
    """A store, and somebody of each role."""

    server: Server
    database: str

    def address(self, who: str) -> str:
        return self.server.address(self.database, who)

    def refused(self, who: str, *statements: str) -> bool:
        """Whether somebody may not do that."""
        try:
            self.server.sql(self.database, *statements, user=who)
        except asyncpg.InsufficientPrivilegeError:
            return True
        return False


@pytest.fixture
def roles(postgres_server: Server, database: str) -> Roles:
    there = {name for (name,) in postgres_server.sql(database, "SELECT rolname FROM pg_roles")}
    for name in make_roles(postgres_server.address(database), "our"):
        someone = name.replace("our_", "a_")
        if someone not in there:
            postgres_server.sql(database, f"CREATE ROLE {someone} LOGIN IN ROLE {name}", "SELECT 1")
    return Roles(postgres_server, database)


def test_every_table_is_public_within_or_private(roles: Roles) -> None:
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'diminuendo'::regnamespace AND relkind IN ('r', 'v')"
    tables = roles.server.sql(roles.database, query)
    assert sorted(name for (name,) in tables) == sorted((*PUBLIC, *WITHIN, *PRIVATE))


def test_what_front_ends_do_their_role_may(roles: Roles) -> None:
    with open_store(roles.address("owner")) as owner, open_store(roles.address("a_front")) as front:
        fencing_token = begun(owner)
        assert placement(front, "other") == 2
        front.add_population("others", b"{}")
        id_block = front.reserve_ids(1, 5, 1.0, None)
        assert id_block is not None
        front.reserve_ids(1, 5, 1.0, Report(0, 5))
        user_rounds = [UserRound(1, ANNA, 1, 0), UserRound(1, ANNA, 1, 1)]
        assert front.put(answered(0, 1, 2), user_rounds) == [QuotaResult(True, 0), QuotaResult(False, 1)]
        assert front.put(answered(0)) == []
        front.erase_user(1, ANNA)
        assert said(owner) == {2: b"said 2"}
        assert front.add_event(1, "items", b"{}", "me") > 0
        assert front.heartbeat("front-0") <= front.now()
        Ledger.on(owner.books("users", fencing_token), BUDGET).charge(Gaussian(1e-3), "something")
        assert front.ledger("users") == []  # no menu shows it yet
        owner.publish(fencing_token, replace(FIRST_MENU, version=2))
        assert len(Ledger.on(front.books("users", None)).charges) == 1
        for read in (
            front.menus(1),
            front.id_blocks(1, 0),
            front.events(1),
            front.placements(),
            front.heartbeats(),
        ):
            assert read
        assert front.leaders()


def test_what_trainers_do_their_role_may(roles: Roles) -> None:
    with open_store(roles.address("a_trainer")) as trainer:
        fencing_token = begun(trainer)
        trainer.put(answered(1, 2, 3))
        assert said(trainer) == {number: b"said %d" % number for number in (1, 2, 3)}
        trainer.add_key(fencing_token, 1, 1, b"encrypted")
        trainer.drop_keys(fencing_token, 1, [1])
        trainer.stop_id_blocks(fencing_token, 1)
        trainer.publish(fencing_token, replace(FIRST_MENU, version=2, snapshot=b"new", gc_low_water_mark=2))
        assert trainer.snapshot(1) == b"new"
        trainer.allow(fencing_token, 1, 50, 0.0)
        Ledger.on(trainer.books("users", fencing_token), BUDGET).charge(Gaussian(1e-3), "something")
        trainer.heartbeat("trainer")
    assert roles.refused("a_trainer", "DROP TABLE diminuendo.ledger")


def test_private_tables_are_read_and_written_by_trainers_alone(roles: Roles) -> None:
    with open_store(roles.address("owner")) as store:
        begun(store)
        store.put(answered(1), [UserRound(1, ANNA, 1, 1)])
    for table in PRIVATE:
        for statement in (
            f"SELECT 1 FROM diminuendo.{table}",
            f"SELECT count(*) FROM diminuendo.{table}",
            f"INSERT INTO diminuendo.{table} DEFAULT VALUES",
            f"INSERT INTO diminuendo.{table} DEFAULT VALUES RETURNING *",
            f"UPDATE diminuendo.{table} SET placement = 1",
            f"DELETE FROM diminuendo.{table}",
            f"TRUNCATE diminuendo.{table}",
            f"COPY diminuendo.{table} TO STDOUT",
            f"EXPLAIN ANALYZE SELECT 1 FROM diminuendo.{table}",
        ):
            assert roles.refused("a_front", statement), statement
    assert said_by_statistics(roles, "a_front") == []


def test_which_rounds_are_whose_no_function_tells_a_front_end(roles: Roles) -> None:
    """Of all functions that it may call, none gives more than one of her rounds, or of rounds that it did not name."""
    with open_store(roles.address("owner")) as store, open_store(roles.address("a_front")) as front:
        begun(store)
        store.put(answered(3, 4), [UserRound(1, ANNA, 2, number, b"key %d" % number) for number in (3, 4)])
        query = (
            "SELECT proname, pg_get_function_result(oid) FROM pg_proc WHERE pronamespace = 'diminuendo'::regnamespace "
            "AND has_function_privilege('a_front', oid, 'EXECUTE')"
        )
        may = dict(roles.server.sql(roles.database, query))
        assert may.keys() == set(CALLED)
        tables = {name for name, result in may.items() if "TABLE" in result or "SETOF" in result}
        assert tables - {"visible_id_blocks", "visible_ledger", "visible_releases"} == {
            "reserve_ids",
            "put",
        }
        assert may["erase_user"] == may["erase"] == "void"
        assert front.put([], [UserRound(1, ANNA, 2, 9, b"a guess")]) == [QuotaResult(False, 9)]
        anna = f"'\\x{ANNA.hex()}'"
        for statement in (
            "SELECT rounds FROM diminuendo.user_rounds",
            f"DELETE FROM diminuendo.user_rounds WHERE user_id = {anna}",
            f"SELECT * FROM diminuendo.user_rounds WHERE user_id = {anna} FOR UPDATE",
            "SELECT round FROM diminuendo.answers WHERE encrypted IS NULL",
        ):
            assert roles.refused("a_front", statement), statement
        with pytest.raises(asyncpg.UndefinedFunctionError):
            roles.server.sql(roles.database, f"SELECT diminuendo.rounds_of(1, {anna})", user="a_front")


def said_by_statistics(roles: Roles, who: str) -> list[object]:
    """What the planner knows of private columns, as far as somebody may see it."""
    roles.server.sql(roles.database, "ANALYZE diminuendo.answers", "SELECT 1")
    query = (
        f"SELECT tablename, attname FROM pg_stats WHERE schemaname = 'diminuendo' AND tablename IN {PRIVATE}"
    )
    assert roles.server.sql(roles.database, query), "the owner sees it"
    return list(roles.server.sql(roles.database, query, user=who))


@pytest.mark.slow
def test_front_ends_change_nothing_that_is_published(roles: Roles) -> None:
    with open_store(roles.address("owner")) as store:
        begun(store)
    columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'diminuendo'"
    for table in READ:
        assert not roles.refused("a_front", f"SELECT 1 FROM diminuendo.{table}")
    for table in {*WITHIN} - {*READ}:
        assert roles.refused("a_front", f"SELECT 1 FROM diminuendo.{table}"), table
    for table in (*PUBLIC, *WITHIN):
        (column,), *_ = roles.server.sql(roles.database, f"{columns} AND table_name = '{table}'")
        assert roles.refused("a_front", f"UPDATE diminuendo.{table} SET {column} = {column}"), table
        for statement in (
            f"DELETE FROM diminuendo.{table}",
            f"INSERT INTO diminuendo.{table} DEFAULT VALUES",
            f"LOCK TABLE diminuendo.{table} IN ROW EXCLUSIVE MODE",
        ):
            assert roles.refused("a_front", "BEGIN", statement), statement
    assert roles.refused(
        "a_front", "CREATE FUNCTION diminuendo.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'"
    )
    assert roles.refused("a_front", "CREATE TABLE diminuendo.mine (x integer)")


def test_front_ends_are_told_of_ledger_and_releases_what_is_shown_by_now(roles: Roles) -> None:
    def shown() -> list[int]:
        calls = ("visible_id_blocks(1, 0)", "visible_ledger('users', 0)", "visible_releases('users')")
        result = (
            roles.server.sql(roles.database, f"SELECT * FROM diminuendo.{call}", user="a_front")
            for call in calls
        )
        return [len(rows) for rows in result]

    with open_store(roles.address("owner")) as owner, open_store(roles.address("a_front")) as front:
        fencing_token = begun(owner)
        owner.reserve_ids(1, 5, 1.0, None)
        with Ledger.on(owner.books("users", fencing_token), BUDGET) as ledger:
            paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
            paid.once("0", lambda: np.arange(3), SECRET)
        later = owner.now() + 3600
        owner.publish(fencing_token, replace(FIRST_MENU, version=2, effective_at=later, gc_low_water_mark=5))
        assert shown() == [1, 0, 0]
        assert front.books("users", None).releases.names() == []
        assert front.ledger("users") == []
        owner.publish(fencing_token, replace(FIRST_MENU, version=3, gc_low_water_mark=5))
        assert shown() == [0, len(ledger.charges) + 2, 1]
        assert len(front.ledger("users")) == len(ledger.charges) + 2
        books = front.books("users", None)
        assert books.releases.names() == ["sum.0"]
        assert books.releases.has("sum.0")
        assert len(Ledger.on(books).charges) == len(ledger.charges)


@pytest.fixture
def hidden(roles: Roles) -> Roles:
    """A store with a line and a release that are not shown yet, and front ends who may make functions."""
    with open_store(roles.address("owner")) as owner:
        fencing_token = begun(owner)
        owner.reserve_ids(1, 5, 1.0, None)
        with Ledger.on(owner.books("users", fencing_token), BUDGET) as ledger:
            ledger.buy(Gaussian(1e-3), "sum", "of something").once("0", lambda: np.arange(3), SECRET)
        later = owner.now() + 3600
        owner.publish(
            fencing_token,
            replace(FIRST_MENU, version=2, effective_at=later, menu=b"planted", gc_low_water_mark=5),
        )
    roles.server.sql(roles.database, f"GRANT TEMPORARY ON DATABASE {roles.database} TO a_front", "SELECT 1")
    return roles


@pytest.mark.parametrize(
    ("table", "column", "call"),
    [
        ("id_blocks", "version", "visible_id_blocks(1, 0)"),
        ("ledger", "line", "visible_ledger('users', 0)"),
        ("releases", "body", "visible_releases('users')"),
    ],
)
def test_nothing_of_a_callers_own_is_run_on_what_is_not_shown(
    hidden: Roles, table: str, column: str, call: str
) -> None:
    """Neither a function that costs nothing, nor a cast that fails; and nobody is told how many rows were left out."""

    async def tried() -> tuple[int, list[str], str]:
        """How many rows are shown; on which values a function was run; and what EXPLAIN says."""
        db, messages = await asyncpg.connect(hidden.address("a_front")), list[str]()
        try:
            db.add_log_listener(lambda _, said: messages.append(said.message))
            await db.execute(
                "CREATE FUNCTION pg_temp.look(x anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS "
                "$$ BEGIN RAISE WARNING 'seen %', x; RETURN true; END $$"
            )
            rows = await db.fetch(f"SELECT * FROM diminuendo.{call} WHERE pg_temp.look({column})")
            await asyncio.sleep(0)
            told = await db.fetch(
                f"EXPLAIN ANALYZE SELECT * FROM diminuendo.{call} WHERE {column} IS NOT NULL"
            )
            return len(rows), messages, "\n".join(line for (line,) in told)
        finally:
            await db.close()

    shown, messages, explained = asyncio.run(tried())
    ((there,),) = hidden.server.sql(hidden.database, f"SELECT count(*) FROM diminuendo.{table}")
    assert table == "id_blocks" or shown < there, "something is hidden"
    assert len(messages) == shown
    assert "Removed" not in explained
    if table == "releases":  # a cast of what is hidden would fail, and say what it was
        failing = f"SELECT * FROM diminuendo.{call} WHERE name::integer > 5"
        assert hidden.server.sql(hidden.database, failing, user="a_front") == []


def test_nobody_makes_temporary_functions_and_who_cannot_see_to_that_says_so(
    roles: Roles, postgres_server: Server, database: str
) -> None:
    postgres_server.sql(database, f"REVOKE TEMPORARY ON DATABASE {database} FROM a_front", "SELECT 1")
    for who in ("a_front", "a_trainer"):
        assert roles.refused(who, "CREATE TEMPORARY TABLE mine (x integer)")
        assert roles.refused(who, "CREATE FUNCTION pg_temp.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    said = list[str]()
    make_roles(postgres_server.address(database), "our", said.append)
    assert said == []
    if not postgres_server.sql(database, "SELECT 1 FROM pg_roles WHERE rolname = 'tenant'"):
        postgres_server.sql(database, "CREATE ROLE tenant LOGIN CREATEROLE", "SELECT 1")
    own = postgres_server.database()
    postgres_server.sql(own, f"GRANT CREATE ON DATABASE {own} TO tenant", "SELECT 1")
    make_roles(postgres_server.address(own, "tenant"), "tenants", said.append)
    assert ["REVOKE TEMPORARY" in each for each in said] == [True]


def test_who_may_connect_holds_nobody_up_by_a_lock_of_its_own(roles: Roles) -> None:
    async def hold() -> asyncpg.Connection:
        db = await asyncpg.connect(roles.address("a_front"))
        for key in (1, 2):
            await db.execute(f"SELECT pg_advisory_lock(1684630889, {key})")
        return db

    with open_store(roles.address("owner")) as store, asyncio.Runner() as runner:
        fencing_token = begun(store)
        held = runner.run(hold())
        try:
            began = time.monotonic()
            store.put(answered(1))
            store.heartbeat("trainer")
            store.publish(fencing_token, replace(FIRST_MENU, version=2))
            assert time.monotonic() - began < 3
        finally:
            runner.run(held.close())
    for mode in ("ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE"):
        assert roles.refused("a_front", "BEGIN", f"LOCK TABLE diminuendo.writer_lock IN {mode} MODE")
    for call in ("join_writers", "write_barrier", "advance_clock"):
        assert roles.refused("a_front", f"SELECT diminuendo.{call}()")


def test_when_a_row_was_locked_is_not_read(roles: Roles) -> None:
    """A trainer locks its row whenever it writes, and that is noted in the row's system columns."""
    with open_store(roles.address("owner")) as store:
        begun(store)
    for table in READ:
        roles.server.sql(roles.database, f"SELECT * FROM diminuendo.{table}", user="a_front")
        for column in ("xmin", "xmax", "cmin", "ctid", "tableoid"):
            assert roles.refused("a_front", f"SELECT {column} FROM diminuendo.{table}"), (table, column)


def test_front_ends_say_that_they_are_well_under_names_of_front_ends_alone(roles: Roles) -> None:
    with open_store(roles.address("a_trainer")) as trainer, open_store(roles.address("a_front")) as front:
        placement(trainer)
        stopped = {
            "trainer-a-0": "well",
            "population users": "stopped",
            "settled by trainer-a-0": "",
            "front": "",
        }
        for name, note in stopped.items():
            trainer.heartbeat(name, note)
        noted = trainer.heartbeats()
        for name in (*stopped, "placement front", "trainer-front-0", " front-0"):
            with pytest.raises(StoreUnavailable, match="role may not"):
                front.heartbeat(name, "")
        with pytest.raises(StoreUnavailable, match="role may not"):
            front.heartbeat("front-0", "x" * 10_000)
        front.heartbeat("front-a-0", "{}")
        assert {name: each for name, each in trainer.heartbeats().items() if name != "front-a-0"} == noted


def test_what_a_front_end_reserves_and_reports_ends_and_can_be_read(roles: Roles) -> None:
    with open_store(roles.address("owner")) as store, open_store(roles.address("a_front")) as front:
        begun(store)
        call = "SELECT * FROM diminuendo.reserve_ids(1, 5, {}, NULL, NULL)"
        for seconds in ("'infinity'", "'nan'", "'-infinity'", "0", "NULL", "60.1", "1e9"):
            with pytest.raises(asyncpg.InvalidParameterValueError):
                roles.server.sql(roles.database, call.format(seconds), user="a_front")
        assert store.id_blocks(1, 0) == []
        assert front.reserve_ids(1, 5, 60.0, None) is not None
        call = "SELECT * FROM diminuendo.reserve_ids(1, 0, 1, 0, {})"
        lines = """
            'x'
            ''
            '[]'
            '{}'
            NULL
            '\\xff'
            '{"used":2.5}'
            '{"used":null}'
            '{"used":1,"types":["a"]}'
            ('{"used":1,"x":"' || repeat('x', 999) || '"}')::bytea
        """
        for said in lines.split("\n")[1:-1]:
            with pytest.raises(asyncpg.PostgresError) as refused:
                roles.server.sql(roles.database, call.format(said), user="a_front")
            assert (refused.value.sqlstate or "").startswith("22"), said
        assert [row.report for row in store.id_blocks(1, 0)] == [None]
        odd = (
            """'{"first":3,"used":7,"silent":[[1,2],[null,99]],"types":[1,null,2,3,4,5,6],"more":{"a":[]}}'"""
        )
        roles.server.sql(roles.database, call.format(odd), user="a_front")
        assert [row.report for row in store.id_blocks(1, 0)] == [Report(0, 5, (1, 2), (1, 0, 2, 3, 4))]


def test_numbers_and_times_of_what_operators_add_are_the_stores(roles: Roles) -> None:
    with open_store(roles.address("owner")) as store, open_store(roles.address("a_front")) as front:
        begun(store)
        for statement in (
            "INSERT INTO diminuendo.populations (name, spec) VALUES ('mine', '')",
            "INSERT INTO diminuendo.placements (name, population, spec, made_at) VALUES ('mine', 'users', '', 'nan')",
            "INSERT INTO diminuendo.placements (number, name, population, spec, made_at) "
            "VALUES (2, 'mine', 'users', '', 0)",
            "INSERT INTO diminuendo.counters (placement) VALUES (1)",
        ):
            assert roles.refused("a_front", statement), statement
        before = store.now()
        assert placement(front, "other") == 2
        assert [before <= row.made_at <= store.now() for row in store.placements(1)] == [True]


RIGHTS = """
SELECT what, grantee::regrole::text, privilege_type FROM (
    SELECT 'table ' || relname AS what, relacl AS rights FROM pg_class WHERE relnamespace = 'diminuendo'::regnamespace
    UNION ALL SELECT 'column ' || relname || '.' || attname, attacl FROM pg_attribute
        JOIN pg_class ON attrelid = pg_class.oid WHERE relnamespace = 'diminuendo'::regnamespace
    UNION ALL SELECT 'function ' || proname, proacl FROM pg_proc WHERE pronamespace = 'diminuendo'::regnamespace
    UNION ALL SELECT 'database', datacl FROM pg_database WHERE datname = current_database()
) AS found, aclexplode(rights) ORDER BY 1, 2, 3
"""


def test_roles_that_were_made_before_an_upgrade_have_the_rights_of_the_new_version(
    roles: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles.server.emptied(roles.database, tables=True)
    owner = roles.address("owner")
    open_store(owner).close()
    make_roles(owner, "our")
    roles.server.sql(
        roles.database,
        "GRANT SELECT ON ALL TABLES IN SCHEMA diminuendo TO our_front",
        "REVOKE EXECUTE ON FUNCTION diminuendo.reserve_ids FROM our_front",
        f"GRANT TEMPORARY ON DATABASE {roles.database} TO PUBLIC",
        "INSERT INTO diminuendo.populations (name, spec) VALUES ('users', '')",
        "INSERT INTO diminuendo.placements (name, population, spec, made_at) VALUES ('first', 'users', '', 5)",
        "INSERT INTO diminuendo.counters (placement) VALUES (1)",
        "SELECT 1",
    )
    monkeypatch.setattr(server, "STEPS", (*STEPS, "CREATE TABLE diminuendo.more (x integer)"))
    with pytest.raises(InvalidInput, match="as who owns the database"):
        open_store(roles.address("a_trainer"))
    open_store(owner).close()
    rights = roles.server.sql(roles.database, RIGHTS)
    assert ("function reserve_ids", "our_front", "EXECUTE") in rights
    assert ("database", "-", "TEMPORARY") not in rights
    make_roles(owner, "our")
    assert roles.server.sql(roles.database, RIGHTS) == rights
    with open_store(roles.address("a_trainer")) as trainer, open_store(roles.address("a_front")) as front:
        trainer.publish(trainer.acquire_leadership("users", "trainer-0"), FIRST_MENU)
        assert front.reserve_ids(1, 5, 1.0, None) is not None
        front.put(answered(1, 2), [UserRound(1, ANNA, 1, 1)])
        front.erase_user(1, ANNA)
        assert placement(front, "other") == 2
        assert said(trainer) == {2: b"said 2"}
        assert [row.name for row in front.placements()] == ["first", "other"]
        assert len(front.id_blocks(1, 0)) == 1
    roles.server.emptied(roles.database, tables=True)


def test_who_takes_statistics_from_everybody_takes_nothing_that_is_needed(
    postgres_server: Server, database: str, roles: Roles
) -> None:
    """What the page on PostgreSQL gives a superuser to run; in a database of its own, as it stays."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "postgres.md").read_text()
    (statement,) = re.findall("```text\n(DO .*?)```", page, re.DOTALL)
    own = roles._replace(database=postgres_server.database())
    make_roles(own.address("owner"), "our")
    asks = (
        "SELECT n_tup_ins FROM pg_stat_user_tables",
        "SELECT n_tup_ins FROM pg_stat_xact_user_tables",
        "SELECT pg_relation_size('diminuendo.answers')",
        "SELECT * FROM pg_locks",
        "SELECT pg_current_snapshot()",
        "SELECT pg_current_wal_insert_lsn()",
    )
    assert not any(own.refused("a_front", each) for each in asks)
    own.server.sql(own.database, statement, "SELECT 1")
    assert all(own.refused("a_front", each) for each in asks)
    with open_store(own.address("a_trainer")) as trainer, open_store(own.address("a_front")) as front:
        fencing_token = begun(trainer)
        assert front.reserve_ids(1, 5, 1.0, None) is not None
        front.put(answered(1), [UserRound(1, ANNA, 1, 1)])
        front.erase_user(1, ANNA)
        front.heartbeat("front-0")
        trainer.heartbeat("trainer-0")
        trainer.publish(fencing_token, replace(FIRST_MENU, version=2))
        assert len(front.id_blocks(1, 0)) == 1
    make_roles(own.address("owner"), "our")


def test_names_of_roles_are_plain(postgres_server: Server, database: str) -> None:
    for prefix in ("", "our; DROP", "Our", "x" * 50):
        with pytest.raises(InvalidInput, match="Names of roles"):
            make_roles(postgres_server.address(database), prefix)
