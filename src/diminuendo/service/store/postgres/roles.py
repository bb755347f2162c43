"""Roles of the PostgreSQL store, so that SQL itself keeps apart who may do what.

    front      what front ends do: read what is public, add what operators add, and call functions that lease rounds,
               keep answers, count visits and erase. It has no right to any private table, not even to put into it.
    audit      reads what is shown by now.
    trainer    everything but to change tables: that is for whoever owns them.

They are groups without a password: whoever logs in is a member of one. PostgreSQL tells everybody who may connect how
many rows each table has, about; so all three are for people inside the wall, and others get a key of the service.
"""

from __future__ import annotations

import re

from diminuendo.errors import InvalidInput
from diminuendo.service.store.postgres.schema import PUBLIC, SHOWN
from diminuendo.service.store.postgres.server import BEGIN, Db, PostgresServer

ROLES = ("front", "audit", "trainer")
PREFIX = re.compile(r"[a-z][a-z0-9_]{0,39}")
CALLED = (
    "instant", "shown", "forgets", "writing", "settle", "tick", "beat", "add_event", "lease", "put", "erase",
    "erase_person",
)  # fmt: skip
"""Functions that front ends call."""


def grants(prefix: str) -> list[str]:
    """The statements that give each role what it may do, and nothing else."""
    front, audit, trainer = names = [f"{prefix}_{role}" for role in ROLES]
    every, public = ", ".join(names), ", ".join(f"diminuendo.{table}" for table in (*PUBLIC, *SHOWN))
    called = ", ".join(f"diminuendo.{name}" for name in CALLED)
    return [
        f"REVOKE ALL ON ALL TABLES IN SCHEMA diminuendo FROM {every}",
        f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA diminuendo FROM {every}",
        f"GRANT USAGE ON SCHEMA diminuendo TO {every}",
        f"GRANT SELECT ON {public} TO {front}, {audit}",
        f"GRANT SELECT, INSERT, UPDATE (reply), DELETE ON diminuendo.requests TO {front}",
        f"GRANT SELECT ON diminuendo.menus, diminuendo.beats TO {front}",
        f"GRANT INSERT ON diminuendo.populations, diminuendo.placements TO {front}",
        f"GRANT INSERT (placement) ON diminuendo.counters TO {front}",
        f"GRANT EXECUTE ON FUNCTION {called} TO {front}",
        f"GRANT EXECUTE ON FUNCTION diminuendo.instant, diminuendo.shown, diminuendo.forgets TO {audit}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA diminuendo TO {trainer}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA diminuendo TO {trainer}",
    ]


def make_roles(address: str, prefix: str = "diminuendo") -> list[str]:
    """Make the three roles where there are none, and give each what it may do; their names."""
    if not PREFIX.fullmatch(prefix):
        raise InvalidInput(f"Names of roles begin with small letters, digits and _; got {prefix!r}.")
    names = [f"{prefix}_{role}" for role in ROLES]

    async def make(db: Db) -> None:
        for name in names:
            if not await db.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
                await db.execute(f"CREATE ROLE {name} NOLOGIN")
        for statement in grants(prefix):
            await db.execute(statement)

    server = PostgresServer(address)
    try:
        server.run(make, BEGIN)
    finally:
        server.close()
    return names
