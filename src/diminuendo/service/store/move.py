"""Moving a store from its file to PostgreSQL: nothing is lost, and nothing goes on in both places.

1. The place to move to is marked: it is empty, and cannot be opened before all is there.
2. The file is marked, durably: from now on no process writes to it, not even one that has it open.
3. All of it is copied in one transaction, counted, compared with the file, and unmarked.

Killed before 2, the file is still the store. Killed later, it is neither, until the same move is run again; killed when
3 was committed, all is there. Two moves at once wait for each other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from diminuendo.errors import InvalidInput, LedgerDamaged
from diminuendo.service.store.postgres.schema import SCHEMA
from diminuendo.service.store.postgres.server import Db, PostgresServer
from diminuendo.service.store.sqlite_file import Moved, SqliteFile

COPIED = (
    "heartbeats", "populations", "placements", "trainers", "counters", "events", "menus", "allowed",
    "id_blocks", "answers", "user_rounds", "snapshot_parts", "trainer_keys", "ledger", "releases",
)  # fmt: skip
"""The tables, in an order in which whatever is referred to comes first."""
PUBLISHED = (
    "WHERE version = (SELECT max(version) FROM menus WHERE menus.placement = snapshot_parts.placement)"
)
NUMBERED = (("populations", "number"), ("placements", "number"), ("events", "seq"))
BEGIN = "BEGIN; SET LOCAL synchronous_commit = on"
LONGEST = 86_400.0
"""Seconds that a table may take."""


def move(path: Path, address: str, reached: Callable[[str], None] = lambda mark: None) -> dict[str, int]:
    """Move the store in that file to that address; by table, how many rows it has. `reached`: for tests."""
    if not path.exists():
        raise InvalidInput(f"There is no file {path} to move.")
    server = PostgresServer(address, filling=True)
    try:
        file = SqliteFile(path, moving=True)
        try:
            identity = server.run(lambda db: _marked(db, server.name, file.moved()), BEGIN)
            reached("target marked")
            _stop(file, Moved(server.name, identity))
            reached("source stopped")
            with file.reading() as db:
                return server.run(lambda to: _filled(to, db, reached), BEGIN)
        finally:
            file.close()
    finally:
        server.close()


async def _marked(db: Db, name: str, moved: Moved | None) -> str:
    """If the store there is empty, mark it so that no process opens it; its identity."""
    ((identity, filling),) = await db.fetch(f"SELECT identity, filling FROM {SCHEMA}.store FOR UPDATE")
    if moved is not None and moved.identity != identity:
        raise InvalidInput(f"This store was moved, or begun to be, to {moved.to}; it moves nowhere else.")
    if not filling and moved is not None:
        raise InvalidInput(f"This store was moved to {name} already, as a whole; name that one.")
    for table in COPIED:
        if await db.fetchval(f"SELECT 1 FROM {SCHEMA}.{table} LIMIT 1"):
            raise InvalidInput(f"There is a store in {name} already; move to a database that is empty.")
    await db.execute(f"UPDATE {SCHEMA}.store SET filling = true")
    return str(identity)


def _stop(file: SqliteFile, to: Moved) -> None:
    """Mark the file: nothing is written to it any more."""
    if file.moved() is None:
        with file.writing():
            file.execute("UPDATE clock SET moved = ?", json.dumps(to._asdict()))


async def _filled(to: Db, source: sqlite3.Connection, reached: Callable[[str], None]) -> dict[str, int]:
    """Copy all tables, and compare."""
    if not await to.fetchval(f"SELECT filling FROM {SCHEMA}.store FOR UPDATE"):
        raise InvalidInput("Another process has moved this store at the same time; it is there as a whole.")
    counts = {}
    for table in COPIED:
        columns = {name: kind for _, name, kind, *_ in source.execute(f"PRAGMA table_info({table})")}
        await to.copy_records_to_table(
            table,
            records=_rows(source, table, columns),
            columns=list(columns),
            schema_name=SCHEMA,
            timeout=LONGEST,
        )
        reached(f"{table} copied")
        counts[table] = await to.fetchval(f"SELECT count(*) FROM {SCHEMA}.{table}")
        ((there,),) = source.execute(f"SELECT count(*) FROM {table} {_which(table)}")
        if counts[table] != there:
            raise LedgerDamaged(f"{counts[table]} of {there} rows of {table} have arrived; move again.")
    lines = "SELECT population, seq, line FROM {}ledger ORDER BY population, seq"
    result = [tuple(row) for row in await to.fetch(lines.format(f"{SCHEMA}."))]
    if sorted(result) != sorted(source.execute(lines.format("")).fetchall()):
        raise LedgerDamaged("Lines of the ledger have not arrived as they were; move again.")
    for table, column in NUMBERED:
        counter = f"pg_get_serial_sequence('{SCHEMA}.{table}', '{column}')"
        await to.execute(f"SELECT setval({counter}, max({column})) FROM {SCHEMA}.{table}")
    ((at,),) = source.execute("SELECT at FROM clock")
    await to.execute(f"UPDATE {SCHEMA}.clock SET at = $1, ahead = greatest(0, $1 - {SCHEMA}.wall())", at)
    await to.execute(f"UPDATE {SCHEMA}.store SET filling = false")
    reached("verified")
    return counts


def _rows(source: sqlite3.Connection, table: str, columns: dict[str, str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, as PostgreSQL takes them."""
    for row in source.execute(f"SELECT {', '.join(columns)} FROM {table} {_which(table)}"):
        yield tuple(
            _value(name, kind, value) for (name, kind), value in zip(columns.items(), row, strict=True)
        )


def _which(table: str) -> str:
    """Of snapshots those that were published."""
    return PUBLISHED if table == "snapshot_parts" else ""


def _value(name: str, kind: str, value: Any) -> Any:
    if name == "rounds":
        return json.loads(value)
    if isinstance(value, str) and kind == "blob":
        return value.encode()  # SQLite stores whatever type it is given
    return value
