"""Public: what may leave a store, as typed views, and nothing else. Dashboard and API read through this.

`Reads` is all that is asked of a store, so a type checker sees that nobody looks at answers, snapshots or visits from
here. What never changes is read once: menus, lines of ledgers, events.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Protocol

from diminuendo.service.accounts import Account
from diminuendo.service.records import ItemsChanged, NoisyCount, PlacementSpec, PublicMenu, read
from diminuendo.service.store import STORED_WITHIN, EventRow, IdBlockRow, MenuRow, PlacementRow

if TYPE_CHECKING:
    from diminuendo.privacy.books import Books

WELL, DELAY, GONE = 15.0, 60.0, 3600.0
"""Seconds: until then somebody is well who said so, until then merely late, and then not expected any more."""
POINTS = 400
"""Of how many moments it is remembered how many rounds had been handed out."""
NOT_SAID = "not said"
"""A column of which nothing is known."""

Slate = tuple[int, ...]


class Reads(Protocol):
    """What may be asked of a store by those who show things: all of it is public."""

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
    """One menu of the past, or the one that is shown: what it leads with."""

    version: int
    effective_at: float
    first: int
    slate: Slate
    releases: int
    head: str
    remembers_from: int = 0


@dataclass(frozen=True)
class Change:
    """What differs between the slates that two menus lead with."""

    moment: Moment
    came: Slate
    left: Slate
    moved: Slate


@dataclass(frozen=True)
class Segment:
    """Users who are shown the same."""

    users: tuple[str, ...]
    """Their types, in words."""
    slate: Slate
    own: Slate
    """What they are shown that the leading slate does not have."""


@dataclass
class PlacementView:
    """What may be known of a placement."""

    row: PlacementRow
    spec: PlacementSpec
    history: list[Moment] = field(default_factory=list)
    """Menus that are or were in effect, in order."""
    menu: PublicMenu | None = None
    """The one that is in effect."""
    rounds: int = 0
    """How many were handed out."""
    points: list[tuple[float, int]] = field(default_factory=list)
    """When how many had been."""
    last_expires: float = 0.0
    """When the last lease ends."""
    events: list[EventRow] = field(default_factory=list)
    retired: set[str] = field(default_factory=set)
    """Items that are not shown any more, or not now."""
    waits: bool = False
    """Whether something went wrong with it, so that the trainer tries again later."""
    stopped: bool = False
    """Whether nothing is released in its population any more, since the store was rolled back."""
    response_count: NoisyCount | None = None
    """How many answered, about, where that is published."""

    def named(self, item: int) -> str:
        """The shop's name of an item."""
        return self.spec.items[item] if 0 <= item < len(self.spec.items) else f"item {item}"

    @property
    def slate(self) -> Slate:
        """What is led with now."""
        return self.history[-1].slate if self.history else ()

    @property
    def shown_since(self) -> Moment | None:
        """The first menu since which the leading slate is what it is."""
        result = None
        for moment in reversed(self.history):
            if moment.slate != self.slate:
                break
            result = moment
        return result

    @property
    def over(self) -> bool:
        """Whether all rounds that it was made for are handed out."""
        return self.spec.rounds is not None and self.rounds >= self.spec.rounds

    @property
    def to_go(self) -> int:
        """How many rounds this menu still has to hand out, where it has an end."""
        end = self.menu.end if self.menu is not None else None
        return 0 if end is None else max(0, end - self.rounds)

    @property
    def changes(self) -> list[Change]:
        """What changed from menu to menu, the last first; menus that lead with the same are left out."""
        result = []
        for before, after in pairwise(self.history):
            if before.slate != after.slate:
                old, new = (
                    {item: slot for slot, item in enumerate(one.slate) if item >= 0}
                    for one in (before, after)
                )
                moved = tuple(item for item in new if item in old and old[item] != new[item])
                came, left = (
                    tuple(item for item in one if item not in other)
                    for one, other in ((new, old), (old, new))
                )
                result.append(Change(after, came, left, moved))
        return result[::-1]

    @property
    def drifts(self) -> list[Moment]:
        """Menus with which something was forgotten, since tastes have changed."""
        return [
            after for before, after in pairwise(self.history) if after.remembers_from > before.remembers_from
        ]

    @property
    def shares(self) -> list[tuple[Slate, float]]:
        """Where several slates take turns in a block: each with its share of the rounds, the most frequent first."""
        if self.menu is None or self.menu.kind != "rounds" or not self.menu.shown:
            return []
        result = Counter(self.menu.shown).most_common()
        return [(self.menu.slates[row], many / len(self.menu.shown)) for row, many in result]

    @property
    def segments(self) -> list[Segment]:
        """Types of users with what they are shown, those that are shown the same together."""
        menu = self.menu
        if menu is None or menu.kind not in ("types", "groups"):
            return []
        rows = (
            list(menu.slates)
            if menu.kind == "types"
            else [menu.slates[Counter(menu.decks[group]).most_common(1)[0][0]] for group in menu.groups]
        )
        result: dict[Slate, list[str]] = {}
        for words, row in zip(self._types(), rows, strict=False):
            result.setdefault(row, []).append(words)
        whole = set(self.slate)
        made = [
            Segment(tuple(users), row, tuple(item for item in row if item >= 0 and item not in whole))
            for row, users in result.items()
        ]
        return sorted(made, key=lambda one: -len(one.users))

    def next_menu(self, now: float) -> tuple[float | None, str]:
        """When the next menu takes effect at the earliest, if that is known, and why then."""
        spec, menu = self.spec, self.menu
        if self.over:
            return None, "All planned rounds are assigned; one last menu may come."
        wait = spec.deadline + STORED_WITHIN + spec.publish_delay
        if menu is None:
            return None, "It comes when the trainer has created the learner."
        if menu.end is None or self.to_go:
            rounds = f" after {self.to_go:,} more rounds," if self.to_go else ""
            return (
                None,
                f"It comes{rounds} at least {wait:,.0f} seconds after the last round that it learns from.",
            )
        earliest = max(now, self.last_expires + wait)
        return math.ceil(earliest / spec.publish_interval) * spec.publish_interval, (
            "All rounds of this menu are assigned; feedback counts until the deadline."
        )

    def _types(self) -> list[str]:
        """All types in words, in the order of their numbers: of each column first that nothing is known."""
        columns = [
            [f"{name} {value}" for value in (NOT_SAID, *values)]
            for name, values in self.spec.contexts.items()
        ]
        return [", ".join(values) for values in product(*columns)]


@dataclass(frozen=True)
class Health:
    """Who was well when."""

    name: str
    age: float | None
    """Seconds since it said so; None where it never did."""
    busy: float = 0.0
    """Seconds for which it may be busy and say nothing: how long it takes is nobody's business, nor is its age."""

    @property
    def state(self) -> str:
        """`well`, `late` or `away`."""
        if self.age is None or self.age > DELAY + self.busy:
            return "away"
        return "well" if self.age <= WELL + self.busy else "late"


class Public:
    """The public side of a store."""

    def __init__(self, store: Reads) -> None:
        self._store, self._lock = store, threading.Lock()
        self._accounts: dict[str, Account] = {}
        self._views: dict[int, PlacementView] = {}
        self._menus: dict[int, list[MenuRow]] = {}
        self._id_block: dict[int, int] = {}

    def now(self) -> float:
        """What the store's clock says."""
        return self._store.now()

    def populations(self) -> dict[str, dict[str, Any]]:
        """By name, the facts of each."""
        return {name: read(dict[str, Any], spec) or {} for name, spec in self._store.populations().items()}

    def account(self, population: str) -> Account:
        """What the ledger of a population says."""
        content = self._store.books(population, None).lines.read()
        with self._lock:
            result = self._accounts.get(population, Account()).read(content)
            self._accounts[population] = result
        return result

    def size_of(self, population: str, release: str) -> int | None:
        """How many numbers were published under that name; None where they are not kept."""
        kept = self._store.books(population, None).releases
        return int(kept.once(release, _not_here).size) if kept.has(release) else None

    def placements(self) -> list[PlacementView]:
        """All of them, in the order in which they were made."""
        rows, now = self._store.placements(), self.now()
        with self._lock:
            return [view for row in rows if (view := self._view(row, now)) is not None]

    def placement(self, name: str) -> PlacementView | None:
        """The placement of that name, if there is one."""
        row, now = next((row for row in self._store.placements() if row.name == name), None), self.now()
        with self._lock:
            return None if row is None else self._view(row, now)

    def health(self) -> list[Health]:
        """Trainers, then front ends: who was well, how long ago; of each kind those of the last hour, or the last."""
        heartbeats, now = self._store.heartbeats(), self.now()
        spec = [read(PlacementSpec, row.spec) for row in self._store.placements()]
        busy = max(
            (each.publish_delay + each.publish_interval for each in spec if each is not None), default=0.0
        )
        known = [
            Health(name, max(0.0, now - at), busy)
            for name, (at, _) in sorted(heartbeats.items())
            if "#" not in name
        ]
        result = list[Health]()
        for kind in ("trainer", "front"):
            those = sorted(
                (one for one in known if one.name.startswith(kind)), key=lambda one: one.age or 0.0
            )
            lately = [one for one in those if (one.age or 0.0) < GONE]
            result += sorted(lately, key=lambda one: one.name) or those[:1]
        return result

    def stopped(self) -> dict[str, str]:
        """By population in which nothing is released any more, why."""
        kind = "population "
        return {
            name.removeprefix(kind): note
            for name, (_, note) in self._store.heartbeats().items()
            if name.startswith(kind) and note
        }

    def _view(self, row: PlacementRow, now: float) -> PlacementView | None:
        """What is known of a placement, brought up to date; None where its facts cannot be read."""
        number = row.number
        if number not in self._views:
            if (spec := read(PlacementSpec, row.spec)) is None:
                return None
            self._views[number] = PlacementView(row, spec)
            self._menus[number], self._id_block[number] = [], 0
        view = self._views[number]
        for event in self._store.events(number, view.events[-1].seq if view.events else 0):
            view.events.append(event)
            if event.kind == "items":
                change = read(ItemsChanged, event.body) or ItemsChanged()
                view.retired |= set(change.retire)
                view.retired -= set(change.appear)
        heartbeats = self._store.heartbeats()
        view.waits = bool(heartbeats.get(f"placement {row.name}", (0.0, ""))[1])
        view.stopped = bool(heartbeats.get(f"population {row.population}", (0.0, ""))[1])
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
                view.history.append(_moment(row, menu))
        if view.menu is not None:
            view.rounds, view.response_count = max(view.rounds, view.menu.first), view.menu.response_count

    def _read_id_blocks(self, view: PlacementView) -> None:
        known = self._id_block[view.row.number]
        for id_block in self._store.id_blocks(view.row.number, known):
            if not view.points or id_block.end > view.points[-1][1]:
                view.points.append((id_block.at, id_block.end))
            view.rounds = max(view.rounds, id_block.end)
            view.last_expires = max(view.last_expires, id_block.expires_at)
            self._id_block[view.row.number] = id_block.first
        if len(view.points) > 2 * POINTS:
            view.points[:POINTS] = view.points[:POINTS:2]


def _moment(row: MenuRow, menu: PublicMenu) -> Moment:
    slate = menu.slates[0] if menu.kind == "one" and menu.slates else menu.fallback
    return Moment(
        row.version, row.effective_at, menu.first, slate, menu.releases, menu.head, menu.remembers_from
    )


def _not_here() -> Any:
    raise LookupError("It was kept a moment ago.")


def worded(names: Sequence[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
