"""The read model of the dashboard: what is public in a store, as typed views.

`Reads` is all that is used of a store, so the type checker shows that feedback, snapshots and quotas are not read here.
What never changes is read once: menus, ledger lines, events.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Protocol

from diminuendo.service.dashboard.accounts import Account
from diminuendo.service.records import ItemsChanged, NoisyCount, PlacementSpec, PublicMenu, read
from diminuendo.service.store import (
    NO_HEARTBEAT,
    STORED_WITHIN,
    EventRow,
    Heartbeat,
    IdBlockRow,
    MenuRow,
    PlacementRow,
)

if TYPE_CHECKING:
    from diminuendo.privacy.books import Books

HEALTHY, LATE, GONE = 15.0, 60.0, 3600.0
"""Seconds since a heartbeat: healthy until the first, late until the second, forgotten after the third."""
POINTS = 400
"""Points of the chart of impressions, about."""
UNKNOWN = "unknown"
"""The category of a feature that is not known."""

Slate = tuple[int, ...]


class Reads(Protocol):
    """The public reads of a store."""

    def now(self) -> float: ...
    def populations(self) -> dict[str, bytes]: ...
    def placements(self) -> list[PlacementRow]: ...
    def menus(self, placement: int, after: int = 0) -> list[MenuRow]: ...
    def id_blocks(self, placement: int, first: int) -> list[IdBlockRow]: ...
    def events(self, placement: int, after: int = 0) -> list[EventRow]: ...
    def heartbeats(self) -> dict[str, tuple[float, str]]: ...
    def books(self, population: str, fencing_token: int | None) -> Books: ...


@dataclass(frozen=True)
class Moment:
    """One menu, past or current: its leading slate and what it is based on."""

    version: int
    effective_at: float
    first: int
    slate: Slate
    releases: int
    head: str
    remembers_from: int = 0


@dataclass(frozen=True)
class Change:
    """The difference between the leading slates of two menus."""

    moment: Moment
    added: Slate
    removed: Slate
    moved: Slate


@dataclass(frozen=True)
class Segment:
    """Contexts with the same slate."""

    contexts: tuple[str, ...]
    slate: Slate
    own: Slate
    """Its items that the leading slate does not have."""


@dataclass
class PlacementView:
    """The public state of a placement."""

    row: PlacementRow
    spec: PlacementSpec
    history: list[Moment] = field(default_factory=list)
    """Menus that are or were in effect, in order."""
    menu: PublicMenu | None = None
    """The one in effect."""
    impressions: int = 0
    """How many were assigned."""
    points: list[tuple[float, int]] = field(default_factory=list)
    """Times, and how many had been assigned by then."""
    last_expires: float = 0.0
    """When the last ID block expires."""
    events: list[EventRow] = field(default_factory=list)
    retired: set[str] = field(default_factory=set)
    """Items that are not shown."""
    failed: bool = False
    """Whether the trainer failed here and retries."""
    stopped: bool = False
    """Whether releases have stopped in its population, because the store was rolled back."""
    responses: NoisyCount | None = None
    """The noisy response count, where it is published."""

    def named(self, item: int) -> str:
        """The name of an item."""
        return self.spec.items[item] if 0 <= item < len(self.spec.items) else f"item {item}"

    @property
    def slate(self) -> Slate:
        """The leading slate."""
        return self.history[-1].slate if self.history else ()

    @property
    def shown_since(self) -> Moment | None:
        """The first menu since which the leading slate has not changed."""
        result = None
        for moment in reversed(self.history):
            if moment.slate != self.slate:
                break
            result = moment
        return result

    @property
    def over(self) -> bool:
        """Whether all planned impressions are assigned."""
        return self.spec.rounds is not None and self.impressions >= self.spec.rounds

    @property
    def to_go(self) -> int:
        """How many impressions the menu has left, if it has an end."""
        end = self.menu.end if self.menu is not None else None
        return 0 if end is None else max(0, end - self.impressions)

    @property
    def changes(self) -> list[Change]:
        """Changes of the leading slate, the last first."""
        result = []
        for before, after in pairwise(self.history):
            if before.slate != after.slate:
                old, new = (
                    {item: slot for slot, item in enumerate(one.slate) if item >= 0}
                    for one in (before, after)
                )
                added, removed = tuple(i for i in new if i not in old), tuple(i for i in old if i not in new)
                moved = tuple(i for i in new if i in old and old[i] != new[i])
                result.append(Change(after, added, removed, moved))
        return result[::-1]

    @property
    def drifts(self) -> list[Moment]:
        """Menus with which older data was dropped, because published values showed drift."""
        return [
            after for before, after in pairwise(self.history) if after.remembers_from > before.remembers_from
        ]

    @property
    def shares(self) -> list[tuple[Slate, float]]:
        """Where several slates alternate in a block: each with its share of impressions, the largest first."""
        if self.menu is None or self.menu.kind != "rounds" or not self.menu.shown:
            return []
        counts = Counter(self.menu.shown).most_common()
        return [(self.menu.slates[row], many / len(self.menu.shown)) for row, many in counts]

    @property
    def segments(self) -> list[Segment]:
        """Contexts by their slate, the largest segment first."""
        menu = self.menu
        if menu is None or menu.kind not in ("types", "groups"):
            return []
        rows = (
            list(menu.slates)
            if menu.kind == "types"
            else [menu.slates[Counter(menu.decks[group]).most_common(1)[0][0]] for group in menu.groups]
        )
        contexts: dict[Slate, list[str]] = {}
        for context, row in zip(self._contexts(), rows, strict=False):
            contexts.setdefault(row, []).append(context)
        whole = set(self.slate)
        result = [
            Segment(tuple(those), row, tuple(item for item in row if item >= 0 and item not in whole))
            for row, those in contexts.items()
        ]
        return sorted(result, key=lambda one: -len(one.contexts))

    def next_menu(self, now: float) -> tuple[float | None, str]:
        """The earliest time of the next menu, if it is known, and the reason."""
        spec, menu = self.spec, self.menu
        if self.over:
            return None, "All planned impressions are assigned; one last menu may come."
        wait = spec.deadline + STORED_WITHIN + spec.publish_delay
        if menu is None:
            return None, "It comes when the trainer has created the learner."
        if menu.end is None or self.to_go:
            more = f" after {self.to_go:,} more impressions," if self.to_go else ""
            return (
                None,
                f"It comes{more} at least {wait:,.0f} seconds after the last impression it learns from.",
            )
        earliest = max(now, self.last_expires + wait)
        return math.ceil(earliest / spec.publish_interval) * spec.publish_interval, (
            "All impressions of this menu are assigned; feedback counts until the deadline."
        )

    def _contexts(self) -> list[str]:
        """All contexts in words, by context ID: of each feature first that it is unknown."""
        features = [
            [f"{name} {value}" for value in (UNKNOWN, *values)] for name, values in self.spec.contexts.items()
        ]
        return [", ".join(values) for values in product(*features)]


@dataclass(frozen=True)
class Health:
    """The last heartbeat of a process."""

    name: str
    age: float | None
    """Seconds; None if there was none."""
    busy: float = 0.0
    """Seconds for which a healthy process may be silent: the duration of releases is private."""

    @property
    def state(self) -> str:
        """`healthy`, `late` or `away`."""
        if self.age is None or self.age > LATE + self.busy:
            return "away"
        return "healthy" if self.age <= HEALTHY + self.busy else "late"


@dataclass(frozen=True)
class State:
    """What one page shows, read once."""

    now: float
    placements: list[PlacementView]
    health: list[Health]
    """Trainers, then front ends: those of the last hour, or else the last."""
    stopped: dict[str, str]
    """Populations whose releases have stopped, with the reason."""


class Public:
    """The public side of a store."""

    def __init__(self, store: Reads) -> None:
        self._store, self._lock = store, threading.Lock()
        self._accounts: dict[str, Account] = {}
        self._views: dict[int, PlacementView] = {}
        self._menus: dict[int, list[MenuRow]] = {}
        self._id_block: dict[int, int] = {}

    def populations(self) -> list[str]:
        """Their names."""
        return list(self._store.populations())

    def account(self, population: str) -> Account:
        """The account of a population."""
        content = self._store.books(population, None).lines.read()
        with self._lock:
            result = self._accounts.get(population, Account()).read(content)
            self._accounts[population] = result
        return result

    def size_of(self, population: str, release: str) -> int | None:
        """How many numbers a release has; None if they are not stored."""
        releases = self._store.books(population, None).releases
        return int(releases.once(release, _missing).size) if releases.has(release) else None

    def state(self, placement: str | None = None) -> State:
        """The state of the site, with all placements or one."""
        now, rows, heartbeats = self._store.now(), self._store.placements(), self._store.heartbeats()
        with self._lock:
            for row in rows:
                if row.number not in self._views and (spec := read(PlacementSpec, row.spec)) is not None:
                    self._views[row.number] = PlacementView(row, spec)
                    self._menus[row.number], self._id_block[row.number] = [], 0
            busy = max(
                (view.spec.publish_delay + view.spec.publish_interval for view in self._views.values()),
                default=0.0,
            )
            views = [
                self._update(self._views[row.number], now, heartbeats)
                for row in rows
                if row.number in self._views and placement in (None, row.name)
            ]
        kind = "population "
        stopped = {
            name.removeprefix(kind): b[1] for name, b in heartbeats.items() if name.startswith(kind) and b[1]
        }
        return State(now, views, _health(heartbeats, now, busy), stopped)

    def _update(self, view: PlacementView, now: float, heartbeats: dict[str, Heartbeat]) -> PlacementView:
        row = view.row
        for event in self._store.events(row.number, view.events[-1].seq if view.events else 0):
            view.events.append(event)
            if event.kind == "items":
                change = read(ItemsChanged, event.body) or ItemsChanged()
                view.retired = (view.retired | set(change.retire)) - set(change.appear)
        view.failed = bool(heartbeats.get(f"placement {row.name}", NO_HEARTBEAT)[1])
        view.stopped = bool(heartbeats.get(f"population {row.population}", NO_HEARTBEAT)[1])
        self._read_menus(view, now)
        self._read_id_blocks(view)
        return view

    def _read_menus(self, view: PlacementView, now: float) -> None:
        waiting = self._menus[view.row.number]
        last = waiting[-1].version if waiting else view.history[-1].version if view.history else 0
        waiting += self._store.menus(view.row.number, last)
        while waiting and waiting[0].effective_at <= now:
            row = waiting.pop(0)
            if (menu := read(PublicMenu, row.body)) is not None:
                view.menu = menu
                slate = menu.slates[0] if menu.kind == "one" and menu.slates else menu.fallback
                view.history.append(
                    Moment(
                        row.version,
                        row.effective_at,
                        menu.first,
                        slate,
                        menu.releases,
                        menu.head,
                        menu.remembers_from,
                    )
                )
        if view.menu is not None:
            view.impressions = max(view.impressions, view.menu.first)
            view.responses = view.menu.response_count

    def _read_id_blocks(self, view: PlacementView) -> None:
        for id_block in self._store.id_blocks(view.row.number, self._id_block[view.row.number]):
            if not view.points or id_block.end > view.points[-1][1]:
                view.points.append((id_block.at, id_block.end))
            view.impressions = max(view.impressions, id_block.end)
            view.last_expires = max(view.last_expires, id_block.expires_at)
            self._id_block[view.row.number] = id_block.first
        if len(view.points) > 2 * POINTS:
            view.points[:POINTS] = view.points[:POINTS:2]


def _health(heartbeats: dict[str, Heartbeat], now: float, busy: float) -> list[Health]:
    result = list[Health]()
    for kind in ("trainer", "front"):
        ages = sorted(
            (max(0.0, now - at), name) for name, (at, _) in heartbeats.items() if name.startswith(kind)
        )
        recent = [each for each in ages if each[0] < GONE] or ages[:1]
        result += sorted((Health(name, age, busy) for age, name in recent), key=lambda one: one.name)
    return result


def _missing() -> Any:
    raise LookupError("The release was stored a moment ago.")


def abbreviated(names: Sequence[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
