"""What a trainer publishes in a PostgreSQL store: menu, limits, snapshot and deletions, in one transaction."""

from __future__ import annotations

import math

from diminuendo.errors import InvalidInput
from diminuendo.service.store import Publication
from diminuendo.service.store.given import PART
from diminuendo.service.store.postgres.server import Db


async def last_version(db: Db, placement: int) -> int:
    """The version of the last menu that was published; 0 where there is none."""
    result = await db.fetchval("SELECT max(version) FROM diminuendo.menus WHERE placement = $1", placement)
    return result or 0


async def publish(db: Db, population: str, new: Publication) -> float:
    """All of it, for a placement of that population; when it takes effect."""
    number, before = new.placement, new.forget_before
    if new.version != (last := await last_version(db, number)) + 1:
        raise InvalidInput(f"Menu {new.version} does not follow {last}, the last one; publish {last + 1}.")
    for part, first in enumerate(range(0, max(1, len(new.snapshot)), PART)):
        await db.execute(
            "INSERT INTO diminuendo.snapshot_parts VALUES ($1, $2, $3, $4)",
            *(number, new.version, part, new.snapshot[first : first + PART]),
        )
    await db.execute(
        "DELETE FROM diminuendo.snapshot_parts WHERE placement = $1 AND version <> $2", number, new.version
    )
    await forget(db, new)
    await db.execute(  # after all that takes its time: whoever leases waits for it
        "UPDATE diminuendo.counters SET forgotten = greatest(forgotten, $2) WHERE placement = $1",
        *(number, before),
    )
    at, effective = await db.fetchval("SELECT diminuendo.tick()"), new.effective_at
    if new.tick and effective < at:
        effective = math.ceil(at / new.tick) * new.tick
    past = new.most if new.end is None else min(new.end, new.most)
    await db.execute(
        "INSERT INTO diminuendo.menus (placement, version, first, past, effective_at, body, forgets, at, lines) "
        "SELECT $1, $2, $3, $4, $5, $6, $7, $8, coalesce(max(seq) + 1, 0) FROM diminuendo.ledger "
        "WHERE population = $9",
        *(number, new.version, new.first, past, effective, new.menu, before, at, population),
    )
    await db.execute(  # of what is in effect: when something was published is nobody's business
        "DELETE FROM diminuendo.leases WHERE placement = $1 AND past <= diminuendo.forgets($1)", number
    )
    await db.execute(
        "DELETE FROM diminuendo.allowed WHERE placement = $1 AND version < (SELECT max(version) "
        "FROM diminuendo.menus WHERE placement = $1 AND effective_at <= diminuendo.instant())",
        number,
    )
    return effective


async def forget(db: Db, new: Publication) -> None:
    """Delete the answers that are in its snapshot, or were published."""
    await db.execute(
        "DELETE FROM diminuendo.answers WHERE placement = $1 AND round < $2 AND sealed IS NOT NULL",
        *(new.placement, new.forget_before),
    )
