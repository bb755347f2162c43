"""Roles of the PostgreSQL store: each does what it must, and SQL refuses it everything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import asyncpg
import numpy as np
import pytest

from diminuendo.errors import InvalidInput, StoreUnavailable
from diminuendo.privacy import Ledger
from diminuendo.privacy.events import Gaussian
from diminuendo.service.records import Report
from diminuendo.service.store import Counted, VisitRow, open_store
from diminuendo.service.store.postgres.roles import CALLED, make_roles
from diminuendo.service.store.postgres.schema import PRIVATE, PUBLIC, SHOWN, WITHIN
from tests.kit.postgres import Server
from tests.kit.slow import mostly_slow
from tests.service.store_contract import ANNA, BUDGET, FIRST_MENU, SECRET, answered, begun, placement, said


class Roles(NamedTuple):
    """A store, and somebody of each role."""

    server: Server
    database: str

    def address(self, who: str) -> str:
        return self.server.address(self.database, who)

    def refused(self, who: str, statement: str) -> bool:
        """Whether somebody may not do that."""
        try:
            self.server.sql(self.database, statement, user=who)
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
    query = "SELECT {0}name FROM pg_{0}s WHERE schemaname = 'diminuendo'"
    tables, views = (roles.server.sql(roles.database, query.format(kind)) for kind in ("table", "view"))
    assert sorted(name for (name,) in tables) == sorted((*PUBLIC, *WITHIN, *PRIVATE))
    assert sorted(name for (name,) in views) == sorted(SHOWN)


def test_what_front_ends_do_their_role_may(roles: Roles) -> None:
    with open_store(roles.address("owner")) as owner, open_store(roles.address("a_front")) as front:
        epoch = begun(owner)
        assert placement(front, "other") == 2
        front.add_population("others", b"{}")
        lease = front.lease(1, 5, 1.0, None)
        assert lease is not None
        front.lease(1, 5, 1.0, Report(0, 5))
        visits = [VisitRow(1, ANNA, 1, 0), VisitRow(1, ANNA, 1, 1)]
        assert front.put(answered(0, 1, 2), visits) == [Counted(True, 0), Counted(False, 1)]
        assert front.put(answered(0)) == []
        front.erase_person(1, ANNA)
        assert said(owner) == {2: b"said 2"}
        assert front.add_event(1, "items", b"{}", "me") > 0
        assert front.remember_request("k", b"1", b"2") == (b"1", b"2")
        front.end_request("k", b"3")
        assert front.beat("front-0") <= front.now()
        Ledger.on(owner.books("people", epoch), BUDGET).charge(Gaussian(1e-3), "something")
        assert front.ledger("people") == []  # no menu shows it yet
        owner.publish(epoch, replace(FIRST_MENU, version=2))
        assert len(Ledger.on(front.books("people", None)).charges) == 1
        for read in (front.menus(1), front.leases(1, 0), front.events(1), front.placements(), front.beats()):
            assert read
        assert front.leaders()


def test_what_trainers_do_their_role_may(roles: Roles) -> None:
    with open_store(roles.address("a_trainer")) as trainer:
        epoch = begun(trainer)
        trainer.put(answered(1, 2, 3))
        assert said(trainer) == {number: b"said %d" % number for number in (1, 2, 3)}
        trainer.keep_key(epoch, 1, 1, b"sealed")
        trainer.drop_keys(epoch, 1, [1])
        trainer.stop_leases(epoch, 1)
        trainer.publish(epoch, replace(FIRST_MENU, version=2, snapshot=b"new", forget_before=2))
        assert trainer.snapshot(1) == b"new"
        trainer.allow(epoch, 1, 50, 0.0)
        Ledger.on(trainer.books("people", epoch), BUDGET).charge(Gaussian(1e-3), "something")
        trainer.beat("trainer")
    assert roles.refused("a_trainer", "DROP TABLE diminuendo.ledger")


@pytest.mark.parametrize("who", mostly_slow(["a_front", "a_audit"], ["a_front"]))
def test_private_tables_are_read_and_written_by_trainers_alone(roles: Roles, who: str) -> None:
    with open_store(roles.address("owner")) as store:
        begun(store)
        store.put(answered(1), [VisitRow(1, ANNA, 1, 1)])
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
            assert roles.refused(who, statement), statement
    assert said_by_statistics(roles, who) == []


def test_which_rounds_are_whose_no_function_tells_a_front_end(roles: Roles) -> None:
    """Of all functions that it may call, none gives more than one of her rounds, or of rounds that it did not name."""
    with open_store(roles.address("owner")) as store, open_store(roles.address("a_front")) as front:
        begun(store)
        store.put(answered(3, 4), [VisitRow(1, ANNA, 2, number, b"key %d" % number) for number in (3, 4)])
        query = (
            "SELECT proname, pg_get_function_result(oid) FROM pg_proc WHERE pronamespace = 'diminuendo'::regnamespace "
            "AND has_function_privilege('a_front', oid, 'EXECUTE')"
        )
        may = dict(roles.server.sql(roles.database, query))
        assert may.keys() == set(CALLED)
        assert {name for name, found in may.items() if "TABLE" in found or "SETOF" in found} == {
            "lease",
            "put",
        }
        assert may["erase_person"] == may["erase"] == "void"
        assert front.put([], [VisitRow(1, ANNA, 2, 9, b"a guess")]) == [Counted(False, 9)]
        anna = f"'\\x{ANNA.hex()}'"
        for statement in (
            "SELECT rounds FROM diminuendo.visits",
            f"DELETE FROM diminuendo.visits WHERE person = {anna}",
            f"SELECT * FROM diminuendo.visits WHERE person = {anna} FOR UPDATE",
            "SELECT round FROM diminuendo.answers WHERE sealed IS NULL",
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
def test_front_ends_and_auditors_change_nothing_that_is_published(roles: Roles) -> None:
    with open_store(roles.address("owner")) as store:
        begun(store)
    columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'diminuendo'"
    for who in ("a_front", "a_audit"):
        for table in (*PUBLIC, *SHOWN):
            assert not roles.refused(who, f"SELECT 1 FROM diminuendo.{table}")
        for table in (*PUBLIC, *WITHIN):
            (column,), *_ = roles.server.sql(roles.database, f"{columns} AND table_name = '{table}'")
            assert roles.refused(who, f"UPDATE diminuendo.{table} SET {column} = {column}"), table
            if table != "requests":
                assert roles.refused(who, f"DELETE FROM diminuendo.{table}"), table
            if table not in ("requests", "populations", "placements", "counters"):
                assert roles.refused(who, f"INSERT INTO diminuendo.{table} DEFAULT VALUES"), table
        assert roles.refused(who, "INSERT INTO diminuendo.counters (placement, next) VALUES (1, 0)")
        assert roles.refused(
            who, "CREATE FUNCTION diminuendo.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'"
        )
        assert roles.refused(who, "CREATE TABLE diminuendo.mine (x integer)")
    for table in WITHIN:
        assert roles.refused("a_audit", f"SELECT 1 FROM diminuendo.{table}"), table


def test_auditors_read_what_is_shown_by_now_and_call_nothing_that_writes(roles: Roles) -> None:
    def shown(view: str) -> int:
        ((many,),) = roles.server.sql(
            roles.database, f"SELECT count(*) FROM diminuendo.{view}", user="a_audit"
        )
        return int(many)

    with open_store(roles.address("owner")) as owner, open_store(roles.address("a_audit")) as audit:
        epoch = begun(owner)
        owner.lease(1, 5, 1.0, None)
        with Ledger.on(owner.books("people", epoch), BUDGET) as ledger:
            paid = ledger.buy(Gaussian(1e-3), "sum", "of something")
            paid.once("0", lambda: np.arange(3), SECRET)
        later = owner.now() + 3600
        owner.publish(epoch, replace(FIRST_MENU, version=2, effective_at=later, forget_before=5))
        assert [shown(view) for view in SHOWN] == [1, 1, 0, 0]
        owner.publish(epoch, replace(FIRST_MENU, version=3, forget_before=5))
        assert [shown(view) for view in SHOWN] == [2, 0, len(ledger.charges) + 2, 1]
        assert len(audit.ledger("people")) == len(ledger.charges) + 2
        assert audit.books("people", None).releases.names() == ["sum.0"]
        assert audit.now() > 0
        calls: list[Callable[[], object]] = [
            lambda: audit.lease(1, 5, 1.0, None),
            lambda: audit.put(answered(1)),
            lambda: audit.erase(1, [1]),
            lambda: audit.erase_person(1, ANNA),
            lambda: audit.beat("me"),
            lambda: audit.add_population("mine", b""),
            lambda: audit.add_event(1, "items", b"", "me"),
            lambda: audit.lead("people", "me"),
            lambda: audit.menus(1),
        ]
        for refused in calls:
            with pytest.raises(StoreUnavailable, match="role may not"):
                refused()


def test_names_of_roles_are_plain(postgres_server: Server, database: str) -> None:
    for prefix in ("", "our; DROP", "Our", "x" * 50):
        with pytest.raises(InvalidInput, match="Names of roles"):
            make_roles(postgres_server.address(database), prefix)
