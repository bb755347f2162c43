"""A PostgreSQL database of a site whose processes log in each as itself, and which notes who publishes what.

Trainer 0 is the role trainer_0, and so on; front ends are the owner. Triggers in a schema of their own note, in the
transaction of whoever writes a menu, a line or a release, who that is and who leads. Whoever writes can be held up
there for a moment, within its transaction or at its commit, so that it can be stopped in the midst of it.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import asyncpg

from tests.kit.postgres import Server
from tests.service.judge import Write

WATCH = """
CREATE SCHEMA watch;
CREATE TABLE watch.writes (seq bigserial, kind text, name text, who text, led jsonb);
CREATE TABLE watch.held (kind text, moment text);
CREATE FUNCTION watch.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO watch.writes (kind, name, who, led) SELECT TG_ARGV[0], to_jsonb(NEW) ->> TG_ARGV[1], session_user,
        (SELECT to_jsonb(trainers) FROM diminuendo.trainers WHERE population = 'everybody');
    RETURN NULL;
END $$;
CREATE FUNCTION watch.hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    PERFORM pg_sleep(2) FROM watch.held WHERE kind = TG_ARGV[0] AND moment = TG_ARGV[1];
    RETURN NULL;
END $$;
"""
WATCHED = """
CREATE TRIGGER notes AFTER INSERT OR UPDATE ON diminuendo.{table}
    FOR EACH ROW EXECUTE FUNCTION watch.note('{kind}', '{name}');
CREATE TRIGGER within AFTER INSERT ON diminuendo.{table}
    FOR EACH ROW EXECUTE FUNCTION watch.hold('{kind}', 'within');
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON diminuendo.{table} DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION watch.hold('{kind}', 'at commit');
"""
KINDS = {"menu": ("menus", "version"), "line": ("ledger", "seq"), "release": ("releases", "name")}
Moment = Literal["within", "at commit"]
TRAINERS = 3
"""There are roles for so many."""
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""What is said by a server that recovers."""


class Database:
    """A new database of a server."""

    def __init__(self, server: Server) -> None:
        self.server, self.name = server, server.database()
        there = {name for (name,) in self.sql("SELECT rolname FROM pg_roles")}
        for number in range(TRAINERS):
            if role(number) not in there:
                self.sql(f"CREATE ROLE {role(number)} LOGIN IN ROLE owner", "SELECT 1")

    def address(self, who: str = "owner") -> str:
        """For somebody."""
        return self.server.address(self.name, who)

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Some statements of the owner; what the last one found."""
        return self.server.sql(self.name, *statements)

    def watch(self) -> None:
        """Note from now on who publishes; once there are tables."""
        triggers = [
            WATCHED.format(kind=kind, table=table, name=name) for kind, (table, name) in KINDS.items()
        ]
        self.sql(WATCH, *triggers, "SELECT 1")

    def writes(self) -> list[Write]:
        """Who has written what, in order."""
        result = self.sql("SELECT kind, name, who, led::text FROM watch.writes ORDER BY seq")
        return [
            Write(str(kind), str(name), str(who), role_of(fence["name"]), fence["fencing_token"])
            for kind, name, who, text in result
            for fence in [json.loads(str(text))]
        ]

    @contextmanager
    def holding(self, kind: str, moment: Moment) -> Iterator[None]:
        """Whoever writes such a thing is held up for two seconds."""
        self.sql(f"INSERT INTO watch.held VALUES ('{kind}', '{moment}')", "SELECT 1")
        try:
            yield
        finally:
            self.sql("DELETE FROM watch.held", "SELECT 1")

    def held(self) -> str:
        """Who is held up."""
        result = self.sql(
            f"SELECT usename FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND {self._ours}"
        )
        return str(result[0][0]) if result else ""

    @property
    def _ours(self) -> str:
        return f"datname = '{self.name}' AND pid <> pg_backend_pid()"

    def end(self, who: str) -> int:
        """End all connections of somebody; how many there were."""
        ended = (
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{who}' AND {self._ours}"
        )
        return len(self.sql(ended))

    def end_one(self, rng: random.Random) -> int:
        """End some connection; how many there were, none while the server recovers."""
        try:
            which = self._backend(rng)
            return 0 if which is None else len(self.sql(f"SELECT pg_terminate_backend({which})"))
        except AWAY:
            return 0

    def kill_one(self, rng: random.Random) -> int:
        """Kill -9 of the process of some connection: all of them end, and the server recovers."""
        try:
            if (which := self._backend(rng)) is None:
                return 0
            os.kill(which, signal.SIGKILL)
        except (*AWAY, ProcessLookupError):
            return 0
        return 1

    def _backend(self, rng: random.Random) -> int | None:
        result = self.sql(f"SELECT pid FROM pg_stat_activity WHERE {self._ours} ORDER BY pid")
        return int(str(rng.choice(result)[0])) if result else None


def role(number: int) -> str:
    """The role of a trainer, by its number on its machine."""
    return f"trainer_{number}"


def role_of(trainer: str) -> str:
    """The role of a trainer, by its name; nobody's is none."""
    return role(int(trainer.partition("#")[0].rpartition("-")[2])) if trainer else ""
