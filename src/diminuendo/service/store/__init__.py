"""The store: the one place where anything is durable.

    with open_store("sqlite:service.db") as store:
        store.reserve_ids(placement, 500, 5.0, None)

Any store passes tests/service/store_contract.py. Calls block, and may come from any thread. When a call
returns, what it
has written is durable. If it raises `StoreUnavailable`, nothing of it happened, and it may be tried again.

A placement is known by its number. The rounds of a placement are counted from 0, and each is handed out once, by
`reserve_ids`. Timestamps come from the store and are monotonic across processes. Feedback and erasures do not advance
the clock: if a wall clock is set back, the store's clock goes on from the latest public time.

Feedback is stored in groups, so how long a response waits depends on who else responds. Hence a response has the time
of its arrival if it is stored within `STORED_WITHIN` seconds, and trainers wait for so long before they close rounds.

How long a trainer takes depends on what users responded, so its writes become visible at public times only. A menu is
visible once it is in effect, and with it all entries that its population's ledger had when it was published, and their
releases. An entry that no menu shows, because its trainer was killed or its placement has failed, becomes
visible at the
beginning of the second day after it was written. `ledger`, and `books` without a fencing token, keep to that;
callers of `menus` leave out what is not in effect yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from diminuendo.errors import InvalidInput
from diminuendo.service.store.rows import (
    DAY,
    FRONT_ENDS,
    INSTANCE,
    NO_HEARTBEAT,
    NO_PLACEMENT,
    STORED_WITHIN,
    TRAINERS,
    AnswerRow,
    Change,
    EventRow,
    Heartbeat,
    IdBlock,
    IdBlockRow,
    Leader,
    MenuRow,
    PlacementRow,
    Publication,
    QuotaResult,
    UserRound,
)
from diminuendo.service.store.sql import Store

__all__ = [
    "DAY",
    "FRONT_ENDS",
    "INSTANCE",
    "NO_HEARTBEAT",
    "NO_PLACEMENT",
    "STORED_WITHIN",
    "STORES",
    "TRAINERS",
    "AnswerRow",
    "Change",
    "EventRow",
    "Heartbeat",
    "IdBlock",
    "IdBlockRow",
    "Leader",
    "MenuRow",
    "PlacementRow",
    "Publication",
    "QuotaResult",
    "Store",
    "UserRound",
    "find_store",
    "open_store",
]


def _sqlite(place: str) -> Store:
    from diminuendo.service.store.sqlite import SqliteStore

    return SqliteStore(place)


def _postgres(place: str) -> Store:
    from diminuendo.service.store.postgres import PostgresStore

    return PostgresStore(f"postgresql:{place}")


STORES: dict[str, Callable[[str], Store]] = {"sqlite": _sqlite, "postgresql": _postgres}
"""By the scheme of its address, how a store is opened; a place without a scheme is a file of SQLite."""


def open_store(address: str) -> Store:
    """The store at an address like `sqlite:service.db` or `postgresql://host/name`; made where there is none yet."""
    scheme, place = _parts(address)
    return STORES[scheme](place)


def find_store(address: str) -> Store | None:
    """The store at that address, or None where there is none yet. Nothing is created."""
    scheme, place = _parts(address)
    if scheme == "sqlite":
        path = Path(place)
        return _sqlite(place) if path.exists() and path.stat().st_size else None
    from diminuendo.service.store.postgres import find_postgres

    return find_postgres(f"postgresql:{place}")


def _parts(address: str) -> tuple[str, str]:
    result = re.fullmatch(r"([a-z]+):(.+)", address)
    scheme, place = result.groups() if result else ("sqlite", address)
    if scheme not in STORES:
        raise InvalidInput(f"Addresses of stores begin with {', '.join(STORES)} and a colon; got {scheme!r}.")
    return scheme, place
