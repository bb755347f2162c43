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

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diminuendo.errors import InvalidInput
from diminuendo.service.records import Report

if TYPE_CHECKING:
    from diminuendo.service.store.sql import Store

STORED_WITHIN = 1.0
"""Seconds after it has arrived within which an answer is stored with the time of its arrival; later, with the time at
which it is stored. So once a time is written down, no answer is stored any more with one that is this much earlier."""
NO_PLACEMENT = 0
"""The number of no placement: feedback to it is left out, and takes as long as others."""
DAY = 86_400.0
"""Seconds: lines that no menu shows are shown at a whole one of these."""


Heartbeat = tuple[float, str]
"""When a process was well, and a public note."""
NO_HEARTBEAT: Heartbeat = (0.0, "")
TRAINERS, FRONT_ENDS, INSTANCE = "trainer", "front", "#"
"""How the names of heartbeats begin, and what stands before the suffix of one trainer process."""


@dataclass(frozen=True)
class PlacementRow:
    """One placement, as it was made."""

    number: int
    name: str
    population: str
    spec: bytes
    """PlacementSpec as JSON."""
    made_at: float


@dataclass(frozen=True)
class MenuRow:
    """One menu, as it was published."""

    version: int
    body: bytes
    """PublicMenu as JSON."""
    effective_at: float


@dataclass(frozen=True)
class IdBlock:
    """Rounds from `first` to before `end`, reserved for one front end, to be shown by the menu of that version."""

    first: int
    end: int
    version: int
    at: float
    """When it was taken."""
    expires_at: float
    """Rounds that were not shown by then never are."""


@dataclass(frozen=True)
class IdBlockRow(IdBlock):
    """An ID block as the trainer sees it, with the report of its front end, if there is one."""

    report: Report | None = None
    reported_at: float | None = None
    """When the report came: a trainer that reads ID blocks twice ignores reports that came after the first time."""


@dataclass(frozen=True)
class UserRound:
    """One round of a user, to be counted before the slate is shown."""

    placement: int
    user_id: bytes
    """The pseudonym: 16 bytes, made with a key that is not in the store."""
    max_rounds_per_user: int
    """How many rounds of one user count."""
    round: int
    key: bytes = b""
    """The Idempotency-Key of the request, hashed."""


@dataclass(frozen=True)
class QuotaResult:
    """What became of a round of a user."""

    counts: bool
    """Whether a response in that round counts."""
    round: int
    """The round to show: the new one or, if the request repeats the last one by its key, that of the last one."""


@dataclass(frozen=True)
class AnswerRow:
    """One response, encrypted to the trainer."""

    placement: int
    round: int
    encrypted: bytes
    at: float = -math.inf
    """When it arrived, by the store's clock; if that is not known, or was too long ago, when it was stored."""


@dataclass(frozen=True)
class EventRow:
    """Something public that an operator did: items that appear or retire."""

    seq: int
    placement: int
    at: float
    kind: str
    body: bytes
    by: str


@dataclass(frozen=True)
class Leader:
    """Who leads a population."""

    fencing_token: int
    """Larger than that of all earlier leaders."""
    name: str
    """Empty if the last leader has released it."""


@dataclass(frozen=True)
class Change:
    """The latest that happened to a placement since some time."""

    reserved: int = 0
    """Rounds before this one were reserved; 0 where none was since then."""
    event: int = 0
    """The number of the last thing an operator did; 0 where it was before."""


@dataclass(frozen=True)
class Publication:
    """All that a trainer writes at once."""

    placement: int
    menu: bytes
    """PublicMenu as JSON; its version is one more than the last."""
    version: int
    first: int
    end: int | None
    """Rounds that may be reserved are before this; None: no limit but `most`."""
    most: int
    """No round from this one on may be reserved, whatever the menu says: the horizon, or what memory was made for."""
    effective_at: float
    snapshot: bytes
    """All that was learned, encrypted."""
    gc_low_water_mark: int
    """Answers of rounds before this one are in the snapshot or published, and are deleted; so are their ID
    blocks, once a menu that forgets them is in effect: until then they can be read."""
    publish_interval: float = 0.0
    """Where it is not there by `effective_at`, it takes effect at the next whole one of these; 0: at once."""


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
