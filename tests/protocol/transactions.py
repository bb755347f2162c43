"""The store of the model: each call is one transaction, from a world to the next one and a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.protocol.values import (
    Answer,
    Checkpoint,
    IdBlock,
    Label,
    Learned,
    Menu,
    Plan,
    Setup,
    Value,
    World,
    put,
)

ERROR, SUPERSEDED, REFUSED = "error", "superseded", "refused"
"""Replies: the store was away, or so it seemed; another trainer leads; it does not fit what is there."""


def executed(setup: Setup, world: World, call: Label) -> tuple[World, Any]:
    """The world after a call, and what is replied."""
    name, where, *given = call
    return CALLS[name](setup, world, where, *given)


def _written(world: World, where: int, kept: Checkpoint, *, public: bool = True) -> World:
    time = max(world.kept_time, world.now) if public else world.kept_time
    return world._replace(store=put(world.store, where, kept), kept_time=time)


# Trainers.


def acquire_leadership(setup: Setup, world: World, where: int, trainer: int) -> tuple[World, Any]:
    """Lead from now on, unless somebody does who is well."""
    kept = world.store[where]
    if kept.leader is not None:
        mine = kept.leader == trainer and "who is named leads" not in setup.mistakes
        heartbeat = (
            max(world.heartbeats)
            if "anybody's beat is the leader's" in setup.mistakes
            else world.heartbeats[kept.leader]
        )
        if not mine and heartbeat + setup.takeover > world.now:
            return world, REFUSED
    if kept.fencing_token >= setup.fencing_tokens:
        return world, REFUSED
    fencing_token = kept.fencing_token + (
        "lead without a new fencing token" not in setup.mistakes or kept.fencing_token == 0
    )
    world = world._replace(heartbeats=put(world.heartbeats, trainer, world.now))
    return _written(world, where, kept._replace(fencing_token=fencing_token, leader=trainer)), fencing_token


def begin(setup: Setup, world: World, where: int) -> tuple[World, Any]:
    """The ledger, and the last snapshot."""
    return world, (world.store[where].ledger, world.store[where].snapshot, world.store[where].menus)


def heartbeat(setup: Setup, world: World, where: int, trainer: int) -> tuple[World, Any]:
    """Write a time, before which nothing public is written any more."""
    world = world._replace(
        heartbeats=put(world.heartbeats, trainer, world.now), kept_time=max(world.kept_time, world.now)
    )
    return world, world.now


def id_blocks(setup: Setup, world: World, where: int, first: int) -> tuple[World, Any]:
    """All ID blocks from that round on."""
    return world, tuple(each for each in world.store[where].id_blocks if each.first >= first)


def look(setup: Setup, world: World, where: int, trainer: int, first: int) -> tuple[World, Any]:
    """Both at once."""
    world, until = heartbeat(setup, world, where, trainer)
    return world, (until, id_blocks(setup, world, where, first)[1])


def answers(setup: Setup, world: World, where: int, first: int, end: int) -> tuple[World, Any]:
    """What was said to these rounds."""
    return world, tuple(
        each for each in world.store[where].answers if first <= each.round < end and not each.gone
    )


def append(
    setup: Setup, world: World, where: int, fencing_token: int, place: int, line: tuple[str, int]
) -> tuple[World, Any]:
    """One more line of the ledger, at its place."""
    kept = world.store[where]
    if kept.fencing_token != fencing_token:
        return world, SUPERSEDED
    if place != len(kept.ledger):
        return world, REFUSED
    return _written(world, where, kept._replace(ledger=(*kept.ledger, line))), True


def keep(setup: Setup, world: World, where: int, fencing_token: int, value: Value) -> tuple[World, Any]:
    """A release, unless there is one of that name."""
    kept = world.store[where]
    if kept.fencing_token != fencing_token:
        return world, SUPERSEDED
    if any(each.name == value.name for each in kept.releases):
        return world, True
    return _written(world, where, kept._replace(releases=(*kept.releases, value))), True


def back(setup: Setup, world: World, where: int, name: str) -> tuple[World, Any]:
    """The release of that name, as it is kept."""
    result = [each for each in world.store[where].releases if each.name == name]
    return world, result[0] if result else REFUSED


def plan(setup: Setup, world: World, where: int, fencing_token: int, new: Plan) -> tuple[World, Any]:
    """The plan of a block: this one, unless there is one."""
    kept = world.store[where]
    if kept.fencing_token != fencing_token:
        return world, SUPERSEDED
    result = [each for each in kept.plans if each.block == new.block]
    if result:
        return world, result[0]
    return _written(world, where, kept._replace(plans=(*kept.plans, new))), new


def now(setup: Setup, world: World, where: int) -> tuple[World, Any]:
    """What the clock says."""
    return world, world.now


def publish(
    setup: Setup, world: World, where: int, fencing_token: int, menu: Menu, learned: Learned
) -> tuple[World, Any]:
    """Menu, snapshot and deletions at once, by whoever leads. Where its time is over, it is the next whole tick."""
    kept = world.store[where]
    if kept.fencing_token != fencing_token and "fencing token not checked at publish" not in setup.mistakes:
        return world, SUPERSEDED
    if menu.version != len(kept.menus) + 1:
        return world, REFUSED
    if menu.effective < world.now and not {"tick before commit", "effective when ready"} & setup.mistakes:
        menu = menu._replace(effective=-(-world.now // setup.publish_interval) * setup.publish_interval)
    after = kept._replace(menus=(*kept.menus, menu), snapshot=learned)
    return _written(world, where, _forgotten(setup, after, learned.settled)), world.now


def forget(setup: Setup, world: World, where: int, fencing_token: int, settled: int) -> tuple[World, Any]:
    """Answers to rounds before that one, alone: nobody should."""
    kept = world.store[where]
    if kept.fencing_token != fencing_token:
        return world, SUPERSEDED
    left = tuple(each for each in kept.answers if each.round >= settled or each.gone)
    return _written(world, where, kept._replace(answers=left)), True


def _forgotten(setup: Setup, kept: Checkpoint, settled: int) -> Checkpoint:
    return kept._replace(
        answers=tuple(each for each in kept.answers if each.round >= settled or each.gone),
        id_blocks=tuple(each for each in kept.id_blocks if each.end > settled),
        gc_low_water_mark=max(settled, kept.gc_low_water_mark),
    )


# Front ends.


def reserve_ids(
    setup: Setup, world: World, where: int, size: int, report: tuple[int, int] | None, own: int | None
) -> tuple[World, Any]:
    """What became of the last ID block, and the next rounds by the menu in effect; with the menu."""
    kept = world.store[where]
    if report is not None:
        first, used = report
        kept = kept._replace(
            id_blocks=tuple(
                each._replace(used=used, reported=world.now)
                if each.first == first and each.used is None
                else each
                for each in kept.id_blocks
            )
        )
    menu = in_effect(kept, world.now)
    result: IdBlock | None = None
    if menu is not None:
        first = max(kept.next if own is None else own, menu.plan.first)
        if first < menu.plan.end:
            end = min(first + size, menu.plan.end)
            result = IdBlock(first, end, menu.version, world.now, world.now + setup.lasts)
            rows = [each for each in kept.id_blocks if each.first != first]
            kept = kept._replace(next=max(end, kept.next), id_blocks=(*sorted([*rows, result]),))
    if result is None and report is None:
        return world, (None, menu)
    return _written(world, where, kept), (result, menu)


def in_effect(kept: Checkpoint, at: int) -> Menu | None:
    """The latest menu that has taken effect."""
    result = [each for each in kept.menus if each.effective <= at]
    return result[-1] if result else None


def visit(setup: Setup, world: World, where: int, number: int) -> tuple[World, Any]:
    """Whether that round of hers counts: the first one does."""
    kept = world.store[where]
    counts = not kept.rounds_of_users
    if counts:
        world = _written(world, where, kept._replace(rounds_of_users=(number,)), public=False)
    return world, counts


def refund(setup: Setup, world: World, where: int, number: int) -> tuple[World, Any]:
    """Give a visit back: nobody should."""
    kept = world.store[where]
    left = tuple(each for each in kept.rounds_of_users if each != number)
    return _written(world, where, kept._replace(rounds_of_users=left), public=False), True


def store(setup: Setup, world: World, where: int, rows: tuple[Any, ...], at: int | None) -> tuple[World, Any]:
    """Answers, in a group. Of each round the first is kept; one that is none is left out and takes nothing along."""
    kept, result = world.store[where], list(world.store[where].answers)
    if "a bad row takes its group along" in setup.mistakes and None in rows:
        return world, ERROR
    for row in rows:
        if row is None or row[0] < kept.gc_low_water_mark:
            continue
        number, key, counts = row
        if all(each.round != number for each in result) or "second answers are kept" in setup.mistakes:
            result.append(Answer(number, _arrived(setup, world, at), key, counts))
    return _written(world, where, kept._replace(answers=(*sorted(result),)), public=False), True


def _arrived(setup: Setup, world: World, at: int | None) -> int:
    """The time of an answer that is stored now."""
    if at is None or "answers have the time of their group" in setup.mistakes:
        return world.now
    there = world.now - setup.within <= at <= world.now
    return at if there or "deadline by the front end's clock" in setup.mistakes else world.now


def erase(setup: Setup, world: World, where: int, number: int) -> tuple[World, Any]:
    """The answer is gone, and a tombstone stays."""
    kept = world.store[where]
    rows = [each for each in kept.answers if each.round != number]
    gone = [each for each in kept.answers if each.round == number and each.gone]
    if "no tombstone" not in setup.mistakes:
        rows += gone or [Answer(number, world.now, 0, False, True)]
    return _written(world, where, kept._replace(answers=(*sorted(rows),)), public=False), True


CALLS: dict[str, Callable[..., tuple[World, Any]]] = {
    each.__name__: each
    for each in (
        acquire_leadership, begin, heartbeat, id_blocks, look, answers, append, keep, back, plan, now, publish,
        forget, reserve_ids, visit,
        refund, store, erase,
    )
}  # fmt: skip
