"""Routes for administrators and auditors: placements, items, versions, ledgers, erasures. All replies are public."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from diminuendo.service.api import bodies
from diminuendo.service.api.problems import Problem
from diminuendo.service.api.wire import Receive, Scope, after, body, decoded
from diminuendo.service.front.front import Front
from diminuendo.service.front.placement import Placement
from diminuendo.service.records import ItemsChanged, PublicMenu, read
from diminuendo.service.store import EventRow, MenuRow
from diminuendo.service.store.fencing import CLOSED, is_closed

ITEM_CHANGE = msgspec.json.Decoder(bodies.ItemChange)
ERASURE = msgspec.json.Decoder(bodies.Erasure)
CLOSED_NOTE = (
    "The store was restored from a copy: this placement learns and publishes nothing more, and the whole budget of "
    "its population counts as spent. The placement {} replaces it, with a budget of its own."
)
"""What `/guarantee` adds for a closed placement."""


@dataclass(frozen=True)
class Request:
    """One request to a route other than decisions and feedback."""

    front: Front
    scope: Scope
    receive: Receive
    path_params: dict[str, str]

    async def decode(self, decoder: msgspec.json.Decoder[Any]) -> Any:
        """The body."""
        return decoded(decoder, await body(self.scope, self.receive))

    def place(self) -> Placement:
        """The placement in the path."""
        result = self.front.by_name.get(self.path_params["placement"])
        if result is None:
            raise Problem("placement")
        return result


async def placements(request: Request) -> bodies.PlacementList:
    """All placements."""
    await request.front.look()
    return bodies.PlacementList([bodies.Named(name) for name in request.front.by_name])


async def placement(request: Request) -> bodies.PlacementBody:
    """One placement and its state."""
    place, front = request.place(), request.front
    current = place.in_effect()
    events = await front.ask(front.store.events, place.number)
    menu = None if current is None else _version(current[0], place)
    return bodies.PlacementBody(place.name, place.row.made_at, place.spec, menu, sorted(retired(events)))


def retired(events: Iterable[EventRow]) -> set[str]:
    """Items that are not shown after these events."""
    result = set[str]()
    for event in events:
        if event.kind == "items":
            change = read(ItemsChanged, event.body) or ItemsChanged()
            result = (result | set(change.retire)) - set(change.appear)
    return result


async def items(request: Request) -> None:
    """Items appear or retire. A change that is already in effect is not recorded again, so a retry is harmless."""
    place, front = request.place(), request.front
    change: bodies.ItemChange = await request.decode(ITEM_CHANGE)
    for field, names in (("appear", change.appear), ("retire", change.retire)):
        if not place.items.keys() >= set(names):
            raise Problem("field", f"/{field}")
    if set(change.appear) & set(change.retire):
        raise Problem("field", "/retire")
    absent = retired(await front.ask(front.store.events, place.number))
    appear = sorted(set(change.appear) & absent)
    retire = sorted(set(change.retire) - absent)
    if len(place.items) - len(absent) + len(appear) - len(retire) < place.spec.slots:
        raise Problem("field", "/retire")
    if appear or retire:
        event = msgspec.json.encode(bodies.ItemChange(appear, retire, change.why))
        await front.ask(front.store.add_event, place.number, "items", event, "admin")
        front.log.say("operator", front=front.name, placement=place.name, did="items")


async def versions(request: Request) -> bodies.VersionList:
    """Menus in effect now or before, by version."""
    place, front, seen = request.place(), request.front, after(request.scope)
    rows = await front.ask(front.store.menus, place.number, seen)
    now = front.clock()
    result = [_version(row, place) for row in rows if row.effective_at <= now]
    return bodies.VersionList(result, result[-1].version if result else seen)


def _version(row: MenuRow, place: Placement) -> bodies.VersionBody:
    menu = msgspec.json.decode(row.body, type=PublicMenu)
    leading = [None if item < 0 else place.spec.items[item] for item in menu.fallback]
    return bodies.VersionBody(
        row.version,
        row.effective_at,
        menu.releases,
        menu.head,
        leading,
        len(menu.slates),
        menu.remembers_from,
    )


async def ledger(request: Request) -> bodies.LedgerBody:
    """Lines of a population's ledger."""
    front, seen, name = request.front, after(request.scope), request.path_params["population"]
    if name not in await front.ask(front.store.populations):
        raise Problem("population")
    lines = [line.decode().rstrip("\n") for line in await front.ask(front.store.ledger, name, seen)]
    return bodies.LedgerBody(lines, seen + len(lines))


async def guarantee(request: Request) -> bodies.GuaranteeBody:
    """The guarantee as a sentence to quote, and its parameters; both come with the first menu."""
    from diminuendo.privacy.sentence import guarantee_sentence  # front ends load it only if somebody asks

    place = request.place()
    current = place.in_effect()
    if current is None:
        raise Problem("unavailable")
    known = current[1].menu.guarantee
    sentence = guarantee_sentence(known, max_rounds_per_user=place.spec.max_rounds_per_user)
    note = CLOSED_NOTE.format(place.name.partition(CLOSED)[0]) if is_closed(place.name) else ""
    return bodies.GuaranteeBody(sentence, known, note)


async def erasures(request: Request) -> None:
    """Erase feedback by a token or a user ID; the reply is the same whatever was stored."""
    front = request.front
    erasure: bodies.Erasure = await request.decode(ERASURE)
    if (erasure.token is None) == (erasure.user_id is None):
        raise Problem("field", "/token")
    if erasure.token is not None:
        place, shown = front.serving.shown(erasure.token)
        await front.ask(front.store.erase, place.number, [shown.round] if shown.round >= 0 else [])
    else:
        assert erasure.user_id is not None
        if erasure.placement is None or erasure.placement not in front.by_name:
            raise Problem("placement")
        place = front.by_name[erasure.placement]
        await front.ask(front.store.erase_user, place.number, front.serving.user_id(erasure.user_id))
