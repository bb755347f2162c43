"""Roles of the PostgreSQL store, so that SQL itself keeps apart who may do what.

    front      what front ends do: read what is public, add what operators add, and call functions that ID block rounds,
               keep answers, count visits and erase. It has no right to any private table, not even to put into it.
    trainer    everything but to change tables, which their owner does.

They are groups without a password: logins are members of one. PostgreSQL tells any role that may connect how
many rows each table has, about, and when others write; the reports of front ends are believed, and front ends hold
others up when they stop within a transaction. So both roles belong to the trusted computing base, front logins
for the machines of front ends alone, and others get a key of the service.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from diminuendo.errors import InvalidInput
from diminuendo.service.store.postgres.rights import ROLES, give, keep_temporary
from diminuendo.service.store.postgres.server import BEGIN, Db, PostgresServer

PREFIX = re.compile(r"[a-z][a-z0-9_]{0,39}")
TEMPORARY = (
    "Every role that may connect may make temporary tables and functions, and this role may not change that: let the "
    "database's owner run `diminuendo roles`, or REVOKE TEMPORARY ON DATABASE .. FROM PUBLIC."
)


def make_roles(
    address: str, prefix: str = "diminuendo", say: Callable[[str], None] = lambda text: None
) -> list[str]:
    """Make the two roles where there are none, and give each what it may do; their names.

    `say` is told what could not be done.
    """
    if not PREFIX.fullmatch(prefix):
        raise InvalidInput(f"Names of roles begin with small letters, digits and _; got {prefix!r}.")
    names = [f"{prefix}_{role}" for role in ROLES]

    async def make(db: Db) -> bool:
        for name in names:
            if not await db.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
                await db.execute(f"CREATE ROLE {name} NOLOGIN")
            await give(db, name)
        return await keep_temporary(db)

    server = PostgresServer(address)
    try:
        if not server.run(make, BEGIN):
            say(TEMPORARY)
    finally:
        server.close()
    return names
