"""The store: the one place where something is remembered, and what everybody asks of it.

    with open_store("sqlite:service.db") as store:
        store.lease(placement, 500, 5.0, None)

Any store passes tests/service/store_contract.py; a new one is one file here and one entry of `STORES`. Calls block, and
may come from any thread; what a call has written is durable when it returns, or nothing of it happened: then it raised
`StoreUnavailable`, and may be tried again.

A placement is known by its number. Rounds are counted from 0 on in each placement, and handed out once by `lease`.
Times are those of the store's clock: once written, by whatever process, none is followed by an earlier one. Answers and
erasures do not move it: where a wall clock is set back, it goes on from what is public.

Answers are stored in groups, so how long one waits to be stored depends on who else answers. Hence an answer has the
time at which it arrived, as long as it is stored within `STORED_WITHIN`: whoever settles rounds waits for so long.

How long a trainer takes depends on what users said, so what it writes is shown at public times and not before. A menu
is shown once it is in effect, and with it all lines that its population's ledger had when it was published, and what
was released on them. A line that no menu shows, since whoever wrote it was killed or its placement has failed, is shown
at the beginning of the second day after it was written. `ledger` and books without an epoch keep to that; whoever reads
`menus` leaves out what is to come. Who reads a database by SQL reads views that do so, or is inside the wall.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from diminuendo.errors import InvalidInput
from diminuendo.service.records import Report

STORED_WITHIN = 1.0
"""Seconds after it has arrived within which an answer is stored with the time of its arrival; later, with the time at
which it is stored. So once a time is written down, no answer is stored any more with one that is this much earlier."""
NO_PLACEMENT = 0
"""The number of none: answers to it are left out, and take as long as others."""
DAY = 86_400.0
"""Seconds: lines that no menu shows are shown at a whole one of these; operators' requests are remembered as long."""

if TYPE_CHECKING:  # front ends open stores, and import nothing that is compiled
    from diminuendo.privacy.books import Books


Beat = tuple[float, str]
"""When somebody was well, and a public note."""
NO_BEAT: Beat = (0.0, "")


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
class Lease:
    """Rounds from `first` to before `end`, for whoever asked, to be shown by the menu of that version."""

    first: int
    end: int
    version: int
    at: float
    """When it was taken."""
    expires_at: float
    """Rounds that were not shown by then never are."""


@dataclass(frozen=True)
class LeaseRow(Lease):
    """A lease as the trainer sees it, with what its front end said became of it, if it did."""

    report: Report | None = None
    reported_at: float | None = None
    """When it said so: whoever reads leases twice leaves out what was said later than the first time."""


@dataclass(frozen=True)
class VisitRow:
    """One round of somebody who has a name, to be counted before her slate is shown."""

    placement: int
    user_id: bytes
    """What stands for her: 16 bytes, made with a key that is not in the store."""
    max_rounds_per_user: int
    """How many rounds of hers count."""
    round: int
    key: bytes = b""
    """What the client calls this request, so that it can be sent again."""


@dataclass(frozen=True)
class Counted:
    """What became of a visit."""

    counts: bool
    """Whether her answer in that round counts."""
    round: int
    """Her round: that of the visit, or, where its key is that of her last one, the round of before."""


@dataclass(frozen=True)
class AnswerRow:
    """One answer, sealed to the trainer."""

    placement: int
    round: int
    sealed: bytes
    at: float = -math.inf
    """When it arrived, by the store's clock; where that is not known, or was too long ago, when it was stored."""


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

    epoch: int
    """Later than that of whoever led before; nobody led in any other."""
    name: str
    """Nobody, where it is empty: the last one handed it over."""


@dataclass(frozen=True)
class Change:
    """The latest that happened to a placement since some time."""

    leased: int = 0
    """Rounds before this one were leased; 0 where none was since then."""
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
    """Rounds that may be leased are before this; None: no limit but `most`."""
    most: int
    """No round from this one on may be leased, whatever the menu says: the horizon, or what memory was made for."""
    effective_at: float
    snapshot: bytes
    """All that was learned, sealed."""
    forget_before: int
    """Answers of rounds before this one are in the snapshot or published, and are deleted; so are their leases, once a
    menu that forgets them is in effect: until then they can be read."""
    tick: float = 0.0
    """Where it is not there by `effective_at`, it takes effect at the next whole one of these; 0: at once."""


class Store(Protocol):
    """What everybody asks of a store."""

    def now(self) -> float:
        """What the store's clock says, in seconds."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...

    # Public facts, by operators.

    def add_population(self, name: str, spec: bytes) -> None:
        """A new population; refused where there is one of that name."""
        ...

    def populations(self) -> dict[str, bytes]:
        """By name, the facts of each."""
        ...

    def add_placement(self, name: str, population: str, spec: bytes) -> int:
        """A new placement of a population, and its number; refused where there is one of that name."""
        ...

    def placements(self, after: int = 0) -> list[PlacementRow]:
        """All of them, in the order in which they were made; or those after the one of that number."""
        ...

    def add_event(self, placement: int, kind: str, body: bytes, by: str) -> int:
        """Write down what an operator does, and hand out no further round by any menu so far; its number."""
        ...

    def events(self, placement: int, after: int = 0) -> list[EventRow]:
        """What operators did after the event of that number, in order."""
        ...

    def remember_request(self, key: str, digest: bytes, reply: bytes) -> tuple[bytes, bytes]:
        """An operator's request by its Idempotency-Key: digest and reply of the first that came with it."""
        ...

    def end_request(self, key: str, reply: bytes) -> None:
        """What came of an operator's request, in place of the reply that is remembered."""
        ...

    def history(self) -> list[str]:
        """The populations, of those that are not closed, of which something was paid for, published or handed out."""
        ...

    def adopt(self) -> list[str]:
        """Close these populations for good, with their placements, and begin new ones of the same names, facts and
        placements (adopt.py); the names that they are closed under. Nobody else may use the store meanwhile."""
        ...

    # Front ends.

    def menus(self, placement: int, after: int = 0) -> list[MenuRow]:
        """Menus later than that version, in order; also those that take effect later."""
        ...

    def published(self, since: float) -> tuple[float, dict[int, int]]:
        """By number the placements of which menus were published at that time or later; of each the last version. To
        ask costs as much for a thousand placements as for one, where nothing happened.

        Before it, since when to ask the next time: what is not told of by then is published at that time or later.
        """
        ...

    def lease(self, placement: int, count: int, seconds: float, report: Report | None) -> Lease | None:
        """The next rounds, at most `count`, for `seconds`; none where the menu in effect has no round left.

        The menu is the latest in effect; rounds before its first one that nobody has leased are never shown.
        `report`: what became of the lease before; kept in the same transaction. A `count` of 0 hands it over alone.
        """
        ...

    def put(self, answers: Sequence[AnswerRow], visits: Sequence[VisitRow] = ()) -> list[Counted]:
        """Count visits and keep answers, all in one transaction. Of each round the first answer is kept; a second one
        changes nothing and looks the same. What became of the visits, in order.

        Each answer has the time that it comes with, unless that is to come, or was more than `STORED_WITHIN` ago.

        What is no answer or no visit, or is of no placement, or of a round that is forgotten, is left out and takes
        nothing else along."""
        ...

    def erase(self, placement: int, rounds: Iterable[int]) -> None:
        """Answers to these rounds are gone, and none is taken any more: a tombstone stays."""
        ...

    def erase_user(self, placement: int, user_id: bytes) -> None:
        """As `erase`, for the rounds of somebody who has a name: those that count, and her last one. Which they are is
        told to nobody; how often she came stays counted."""
        ...

    # The trainer.

    def lead(self, population: str, trainer: str, after: int | None = None) -> int:
        """Be the one trainer of a population from now on; its epoch, later than the last by a random step: where a
        store was put back, no epoch is again one that it has forgotten.

        Whoever led it before writes nothing of it any more: epochs of `publish`, `stop_leases`, `allow`, `keep_key`,
        `drop_keys` and `books` are those of the population that it is about. `after`: refused (`Superseded`) unless
        the last epoch is that one, 0 where nobody led so far. A trainer without a name is nobody: so it is handed over.
        """
        ...

    def leaders(self) -> dict[str, Leader]:
        """By population who leads it; those that nobody ever led are not in it."""
        ...

    def changed(self, since: float) -> tuple[float, dict[int, Change]]:
        """By number the placements that were made at that time or later, or of which rounds were leased since then, or
        that operators changed; of each the latest. To ask costs nothing where nothing happened.

        Before it, since when to ask the next time: what is not told of by then is written at that time or later.
        """
        ...

    def beat(self, name: str, note: str = "") -> float:
        """Say that somebody is well, with a public note; when that was. Nothing is written earlier after that, but for
        answers: these by `STORED_WITHIN` at most."""
        ...

    def beat_after(self, name: str, note: str, last: Beat) -> float | None:
        """The same, in one transaction with a look at the last beat of that name: None, and nothing is written, unless
        it was that one; `NO_BEAT` where there was none."""
        ...

    def beats(self) -> dict[str, Beat]:
        """Who was well when, last."""
        ...

    def leases(self, placement: int, first: int) -> list[LeaseRow]:
        """All leases from the one that begins with round `first` on, in order; none that a menu in effect forgets."""
        ...

    def answers(self, placement: int, first: int, end: int) -> Iterator[AnswerRow]:
        """What was answered to rounds from `first` to before `end`, in the order of rounds; no tombstones."""
        ...

    def erased(self, placement: int, first: int, end: int) -> list[tuple[int, float]]:
        """Rounds with a tombstone, and since when."""
        ...

    def stop_leases(self, epoch: int, placement: int) -> int:
        """No further round is handed out until a menu that is published later is in effect; the next one to be.

        As when something is written down that an operator does; again, since menus may have been published meanwhile.
        """
        ...

    def publish(self, epoch: int, publication: Publication) -> float:
        """Menu, limits, snapshot and deletions, at once; when it takes effect. Refused (`Superseded`) where another
        trainer leads.

        A large snapshot takes its time, and a trainer may be held up: a menu that is there too late for its time takes
        effect at the next tick, and never when it is ready. Tombstones stay. Refused, too, is a version that is not one
        more than the last.
        """
        ...

    def allow(self, epoch: int, placement: int, past: int, effective_at: float) -> None:
        """From that time on rounds before `past` may be leased by the last menu, and by none published before it.

        Between two publications rounds are settled, and as many others may be handed out: without this a batch of
        more rounds than may be in flight would never end. Refused (`Superseded`) where another trainer leads.
        """
        ...

    def keep_key(self, epoch: int, placement: int, number: int, sealed: bytes) -> None:
        """Keep the secret half of a key of the trainer, sealed; in place of what is there under that number."""
        ...

    def kept_keys(self, placement: int) -> dict[int, bytes]:
        """By number, the sealed halves of a placement's keys that were not dropped."""
        ...

    def drop_keys(self, epoch: int, placement: int, numbers: Iterable[int]) -> None:
        """Throw these halves away; those that are not there are no mistake."""
        ...

    def snapshot(self, placement: int) -> bytes | None:
        """The last one that was published, sealed; None where there is none."""
        ...

    def ledger(self, population: str, after: int = 0) -> list[bytes]:
        """The lines of a population's ledger that are shown by now, but for the first `after`, as they stand in it."""
        ...

    def books(self, population: str, epoch: int | None) -> Books:
        """The ledger of a population and what was released on it; without an epoch what is shown by now, to be read."""
        ...


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
