"""What each role of the PostgreSQL store may do, in SQL; what the roles are for is said in roles.py.

Roles may read the columns of a table, one by one. A role that may read a table as a whole also reads what PostgreSQL
notes beside each row, such as who locked it last, and so when a trainer wrote. Front ends write by functions alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from diminuendo.service.store.postgres.schema import PUBLIC

if TYPE_CHECKING:
    from diminuendo.service.store.postgres.server import Db

ROLES = ("front", "trainer")
"""How the names of roles end."""
CALLED = (
    "instant", "visible_id_blocks", "visible_ledger", "visible_releases", "heartbeat", "add_population",
    "add_placement", "add_event",
    "reserve_ids", "put", "erase", "erase_user",
)  # fmt: skip
"""Functions that front ends call."""
READ = (*PUBLIC, "menus", "heartbeats")
"""Tables that front ends read."""
COLUMNS = """
SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped
"""
MADE = f"""
SELECT grantee::regrole::text FROM pg_namespace, aclexplode(nspacl)
WHERE nspname = 'diminuendo' AND grantee::regrole::text ~ '^[a-z][a-z0-9_]*_({"|".join(ROLES)})$' ORDER BY 1
"""
"""Roles of ours that were made before."""
OWNS = "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
TEMPORARY = "SELECT has_database_privilege('public', current_database(), 'TEMPORARY')"


async def give(db: Db, name: str) -> None:
    """Give a role what it may do, and nothing else; which one it is, its name ends with."""
    for what in ("TABLES", "FUNCTIONS"):
        await db.execute(f"REVOKE ALL ON ALL {what} IN SCHEMA diminuendo FROM {name}")
    await db.execute(f"GRANT USAGE ON SCHEMA diminuendo TO {name}")
    if name.endswith("_trainer"):
        await db.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA diminuendo TO {name}")
        await db.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA diminuendo TO {name}")
        return
    for table in READ:
        columns = await db.fetchval(COLUMNS, f"diminuendo.{table}")
        await db.execute(f"GRANT SELECT ({columns}) ON diminuendo.{table} TO {name}")
    called = ", ".join(f"diminuendo.{each}" for each in CALLED)
    await db.execute(f"GRANT EXECUTE ON FUNCTION {called} TO {name}")


async def give_again(db: Db) -> None:
    """Give roles that were made before what they may do now."""
    names = [name for (name,) in await db.fetch(MADE)]
    for name in names:
        await give(db, name)
    if names:
        await keep_temporary(db)


async def keep_temporary(db: Db) -> bool:
    """Revoke the right to make functions and tables for a session from the public, if this role may do that;
    whether that is so now. Such functions could be run on rows that their author may not read."""
    if await db.fetchval(OWNS):
        await db.execute(
            f"REVOKE TEMPORARY ON DATABASE {await db.fetchval('SELECT quote_ident(current_database())')} FROM PUBLIC"
        )
    return not await db.fetchval(TEMPORARY)
