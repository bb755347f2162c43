"""Adopting a store that was restored from a copy: every population that it has used is closed, and a new one begins.

A copy does not know what was published, paid for and handed out after it was made. To go on in its populations would
draw again what users have seen, with other noise. So each population that has a history is closed, and a new one of the
same name, spec and placements begins, with a ledger and a budget of its own. In one transaction, in either store:

- The old population is called `name~1`, the next one that is closed `name~2`, and so are its placements. No other name
  may have a ~ in it. No trainer leads such a population (fencing.py), so nothing is ever drawn or published in
  it again.
- Its menus, ledger and releases stay, to be read. Its snapshots, keys, visits and feedback are deleted, no round of it
  is handed out, and feedback to its rounds is not kept.
- The leader of the population of that name leads neither of them. The notes of front ends are deleted.
- Items that have retired are retired in the new placements.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec

from diminuendo.service.records import ItemsChanged, PlacementSpec, read
from diminuendo.service.store.fencing import CLOSED, STEP, is_closed

if TYPE_CHECKING:
    from diminuendo.service.store.sql import Script

NOTE = (
    "closed: its store was restored from a copy, and what was published after that copy is not known. Count the whole "
    "budget as spent. The population {} has begun in its place, with a budget of its own: users of both have both."
)
FORGOTTEN = 2**62
"""Feedback to rounds before this one is not kept."""
HISTORY = """
SELECT (SELECT count(*) FROM diminuendo.ledger WHERE population = $1) + (SELECT count(*) FROM
diminuendo.releases WHERE population = $1)
+ (SELECT count(*) FROM diminuendo.placements JOIN diminuendo.menus ON placement = number WHERE population = $1)
+ (SELECT count(*) FROM diminuendo.placements JOIN diminuendo.counters ON placement = number WHERE population =
$1 AND next > 0)
"""
DELETED = ("answers", "user_rounds", "snapshot_parts", "trainer_keys", "allowed")


def history() -> Script[list[str]]:
    """The populations, of those that are not closed, of which something was paid for, published or handed out."""
    result = list[str]()
    for (name,) in (yield "SELECT name FROM diminuendo.populations ORDER BY number", ()):
        if not is_closed(name):
            ((many,),) = yield HISTORY, (name,)
            result += [name] if many else []
    return result


def adoption() -> Script[list[str]]:
    """Close those, and begin new ones in their place; the names that they are closed under."""
    ((at,),) = yield "SELECT diminuendo.advance_clock()", ()
    closed = list[str]()
    for name in (yield from history()):
        number = 1
        while (
            yield "SELECT 1 FROM diminuendo.populations WHERE name = $1", (old := f"{name}{CLOSED}{number}",)
        ):
            number += 1
        yield (
            "INSERT INTO diminuendo.populations (name, spec) SELECT $1, spec FROM diminuendo.populations "
            "WHERE name = $2",
            (old, name),
        )
        for row in (
            yield (
                "SELECT number, name, spec FROM diminuendo.placements WHERE population = $1 ORDER BY number",
                (name,),
            )
        ):
            placement, placed, its_spec = row
            yield from _replaced(placement, placed, its_spec, name, old, number, at)
        for table in ("ledger", "releases"):
            yield f"UPDATE diminuendo.{table} SET population = $1 WHERE population = $2", (old, name)
        yield (
            "UPDATE diminuendo.trainers SET fencing_token = fencing_token + $1, name = '' WHERE population = $2",
            (_step(), name),
        )
        yield "DELETE FROM diminuendo.heartbeats WHERE name = $1", (f"population {name}",)
        yield (
            "INSERT INTO diminuendo.heartbeats (name, at, note) VALUES ($1, $2, $3)",
            (f"population {old}", at, NOTE.format(name)),
        )
        closed.append(old)
    yield "DELETE FROM diminuendo.heartbeats WHERE name LIKE 'front%'", ()
    return closed


def _replaced(
    placement: int, name: str, spec: bytes, population: str, old: str, number: int, at: float
) -> Script[None]:
    """One placement of a population that is closed, and the new one."""
    known = read(PlacementSpec, spec)
    its = spec if known is None else msgspec.json.encode(msgspec.structs.replace(known, population=old))
    yield (
        "UPDATE diminuendo.placements SET name = $1, population = $2, spec = $3 WHERE number = $4",
        (f"{name}{CLOSED}{number}", old, its, placement),
    )
    for table in DELETED:
        yield f"DELETE FROM diminuendo.{table} WHERE placement = $1", (placement,)
    yield (
        "UPDATE diminuendo.counters SET gc_low_water_mark = $1, stopped = (SELECT coalesce(max(version), 0) "
        "FROM diminuendo.menus "
        "WHERE placement = $2) WHERE placement = $2",
        (FORGOTTEN, placement),
    )
    yield "DELETE FROM diminuendo.heartbeats WHERE name = $1", (f"placement {name}",)
    ((new,),) = yield (
        "INSERT INTO diminuendo.placements (name, population, spec, made_at) VALUES ($1, $2, $3, $4) RETURNING number",
        (name, population, spec, at),
    )
    yield "INSERT INTO diminuendo.counters (placement) VALUES ($1)", (new,)
    retired = set[str]()
    for (body,) in (
        yield (
            "SELECT body FROM diminuendo.events WHERE placement = $1 AND kind = 'items' ORDER BY seq",
            (placement,),
        )
    ):
        change = read(ItemsChanged, body) or ItemsChanged()
        retired = (retired | set(change.retire)) - set(change.appear)
    if retired:
        body = msgspec.json.encode(ItemsChanged(retire=sorted(retired), why="retired before"))
        yield (
            "INSERT INTO diminuendo.events (placement, at, kind, body, by) VALUES ($1, $2, 'items', $3, 'adopt')",
            (new, at, body),
        )


def _step() -> int:
    return 1 + secrets.randbelow(STEP)
