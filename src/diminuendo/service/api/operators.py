"""What operators and auditors ask: placements, populations, items, releases, ledgers. All of it is public."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_hex
from typing import Any

import msgspec

from diminuendo.errors import InvalidInput, StoreUnavailable
from diminuendo.service.api import bodies
from diminuendo.service.api.planning import planned
from diminuendo.service.api.problems import Problem
from diminuendo.service.api.unfit import Unfit, unfit_placement, unfit_population
from diminuendo.service.api.wire import Receive, Scope, after, body, decoded, header
from diminuendo.service.front.front import Front
from diminuendo.service.front.placement import Placement
from diminuendo.service.records import (
    ItemsChanged,
    PlacementSpec,
    PlanQuestion,
    PopulationSpec,
    PublicMenu,
    read,
)
from diminuendo.service.store import EventRow, MenuRow
from diminuendo.service.store.fencing import CLOSED, is_closed

ENCODE = msgspec.json.encode
ERASURE = msgspec.json.Decoder(bodies.Erasure)
LONGEST_KEY = 200
ENDED, GIVEN_UP = b"", 60.0
"""What is remembered of a request that is not under way any more; seconds after which one is not that has not ended."""


@dataclass(frozen=True)
class Asked:
    """One request of an operator."""

    front: Front
    scope: Scope
    receive: Receive
    named: dict[str, str]
    """What the path names."""
    begun: list[str] = field(default_factory=list)
    """The Idempotency-Key that it came with, while it is under way."""

    async def said(self, kind: type[Any]) -> Any:
        """The body, as that kind; refused where its Idempotency-Key came with another one, or is under way."""
        written = await body(self.scope, self.receive)
        result = decoded(msgspec.json.Decoder(kind), written)
        if key := header(self.scope, b"idempotency-key"):
            if len(key) > LONGEST_KEY:
                raise Problem("size")
            digest = sha256(self.scope["path"].encode() + b"\0" + written).digest()
            store, name, now = self.front.store, key.decode("latin-1"), self.front.clock()
            mine = f"{now} {token_hex(8)}".encode()
            first, said = await self.front.ask(store.remember_request, name, digest, mine)
            if first != digest:
                raise Problem("reused")
            if said not in (mine, ENDED) and float(said.split()[0]) > now - GIVEN_UP:
                raise Problem("begun")
            if said != mine:
                await self.front.ask(store.end_request, name, mine)
            self.begun.append(name)
        return result

    async def ended(self) -> None:
        """Whoever sends it again is served again: what was done is found, and not done twice."""
        for name in self.begun:
            with suppress(StoreUnavailable):  # then it ends by itself
                await self.front.ask(self.front.store.end_request, name, ENDED)

    @property
    def again(self) -> bool:
        """Whether this may be a request that was sent before."""
        return bool(header(self.scope, b"idempotency-key"))

    def place(self) -> Placement:
        """The placement that the path names."""
        result = self.front.by_name.get(self.named["placement"])
        if result is None:
            raise Problem("placement")
        return result


async def placements(asked: Asked) -> bodies.PlacementList:
    """All placements."""
    await asked.front.look()
    return bodies.PlacementList([bodies.Made(name) for name in asked.front.by_name])


async def placement(asked: Asked) -> bodies.PlacementBody:
    """One placement, and how it stands."""
    place, front = asked.place(), asked.front
    result = place.in_effect()
    events = await front.ask(front.store.events, place.number)
    menu = None if result is None else _release(result[0], place)
    return bodies.PlacementBody(place.name, place.row.made_at, place.spec, menu, sorted(gone(events)))


def gone(events: list[EventRow]) -> set[str]:
    """Items that are not shown, by what operators did."""
    result = set[str]()
    for event in events:
        if event.kind == "items":
            change = read(ItemsChanged, event.body) or ItemsChanged()
            result = (result | set(change.retire)) - set(change.appear)
    return result


async def items(asked: Asked) -> None:
    """Items appear or retire. What is so already is not written down again."""
    place, front = asked.place(), asked.front
    change: bodies.ItemChange = await asked.said(bodies.ItemChange)
    for what, names in (("appear", change.appear), ("retire", change.retire)):
        if not place.items.keys() >= set(names):
            raise Problem("field", f"/{what}")
    if set(change.appear) & set(change.retire):
        raise Problem("field", "/retire")
    absent = gone(await front.ask(front.store.events, place.number))
    appear = sorted(set(change.appear) & absent)
    retire = sorted(set(change.retire) - absent)
    if len(place.items) - len(absent) + len(appear) - len(retire) < place.spec.slots:
        raise Problem("field", "/retire")
    if appear or retire:
        written = ENCODE(bodies.ItemChange(appear, retire, change.why))
        await front.ask(front.store.add_event, place.number, "items", written, "operate")
        front.log.say("operator", front=front.name, placement=place.name, did="items")


async def new_population(asked: Asked) -> bodies.Made:
    """A new population, with a ledger of its own."""
    front, said = asked.front, await asked.said(bodies.NewPopulation)
    told = PopulationSpec(said.epsilon, said.delta, said.max_rounds_per_user)
    _check(unfit_population(told))
    spec = ENCODE(told)
    await _made(asked, front.store.add_population, said.name, (spec,))
    kept = (await front.ask(front.store.populations)).get(said.name)
    if kept != spec:
        raise Problem("taken")
    front.log.say("operator", front=front.name, population=said.name, did="population")
    return bodies.Made(said.name)


async def new_placement(asked: Asked) -> bodies.Made:
    """A new placement; refused, before anything is paid, where no learner can be made for it."""
    front, said = asked.front, await asked.said(bodies.NewPlacement)
    _check(unfit_placement(said.spec), "/facts")
    question = await _question(front, said.name, said.spec)
    if question.population is None:
        raise Problem("population")
    if said.name not in front.by_name and (await planned(question)).refused is not None:
        raise Problem("plan")
    spec = ENCODE(said.spec)
    await _made(asked, front.store.add_placement, said.name, (said.spec.population, spec))
    await front.look()
    result = front.by_name.get(said.name)
    if result is None or result.row.spec != spec:
        raise Problem("taken")
    front.log.say("operator", front=front.name, placement=said.name, did="placement")
    return bodies.Made(said.name)


async def _question(front: Front, name: str, spec: PlacementSpec) -> PlanQuestion:
    """Whether there can be such a placement beside those that its population has."""
    await front.look()
    kept = (await front.ask(front.store.populations)).get(spec.population)
    others = {
        place.name: place.spec
        for place in front.by_name.values()
        if place.row.population == spec.population and place.name != name
    }
    return PlanQuestion(spec, name, read(PopulationSpec, kept), others)


def _check(unfit: Unfit, under: str = "") -> None:
    """What can be told at once to be wrong; the rest is said by who makes the learner."""
    for what, _ in unfit:
        raise Problem("field", f"{under}/{what}")


async def _made(asked: Asked, make: Callable[..., Any], name: str, given: tuple[Any, ...]) -> None:
    """Make it; where there is one of that name, that is fine for a request that may have been sent before."""
    try:
        await asked.front.ask(make, name, *given)
    except InvalidInput:
        if not asked.again:
            raise Problem("taken") from None


async def releases(asked: Asked) -> bodies.ReleaseList:
    """Menus in effect now or before, by version."""
    place, front, seen = asked.place(), asked.front, after(asked.scope)
    rows = await front.ask(front.store.menus, place.number, seen)
    now = front.clock()
    result = [_release(row, place) for row in rows if row.effective_at <= now]
    return bodies.ReleaseList(result, result[-1].version if result else seen)


def _release(row: MenuRow, place: Placement) -> bodies.ReleaseBody:
    menu = msgspec.json.decode(row.body, type=PublicMenu)
    leading = [None if item < 0 else place.spec.items[item] for item in menu.fallback]
    return bodies.ReleaseBody(
        row.version,
        row.effective_at,
        menu.releases,
        menu.head,
        leading,
        len(menu.slates),
        menu.remembers_from,
    )


async def ledger(asked: Asked) -> bodies.LedgerBody:
    """The lines of a population's ledger."""
    front, seen, name = asked.front, after(asked.scope), asked.named["population"]
    if name not in await front.ask(front.store.populations):
        raise Problem("population")
    lines = [line.decode().rstrip("\n") for line in await front.ask(front.store.ledger, name, seen)]
    return bodies.LedgerBody(lines, seen + len(lines))


CLOSED_NOTE = (
    "Its store was restored from a copy: nothing more is learned or published here, and the whole budget of its "
    "population counts as spent. The placement {} has begun in its place, with a budget of its own."
)
"""What is said of the promise of a placement that is closed."""


async def guarantee(asked: Asked) -> bodies.GuaranteeBody:
    """What is promised, as a sentence to quote."""
    result = await promised(asked.place().spec)
    if result.plan is None:
        raise Problem("busy")
    rest = {name: fact for name, fact in result.plan.items() if name != "sentence"}
    place = asked.place()
    if is_closed(place.name):
        rest["closed"] = CLOSED_NOTE.format(place.name.partition(CLOSED)[0])
    return bodies.GuaranteeBody(result.plan["sentence"], rest)


async def promised(spec: PlacementSpec) -> bodies.PlanBody:
    """What a placement of these facts promises."""
    for name, said in unfit_placement(spec):
        return bodies.PlanBody(None, f"{name}: {said}")
    return await planned(PlanQuestion(spec))


async def erasures(asked: Asked) -> None:
    """Somebody's answers go, by a token or by her name; the reply is the same whatever there was."""
    front = asked.front
    said = decoded(ERASURE, await body(asked.scope, asked.receive))
    if (said.token is None) == (said.user_id is None):
        raise Problem("field", "/token")
    if said.token is not None:
        place, shown = front.serving.shown(said.token)
        await front.ask(front.store.erase, place.number, [shown.round] if shown.round >= 0 else [])
    else:
        if said.user_id is None or said.placement is None or said.placement not in front.by_name:
            raise Problem("placement")
        place = front.by_name[said.placement]
        await front.ask(front.store.erase_user, place.number, front.serving.user_id(said.user_id))
