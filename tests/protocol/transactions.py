"""The store of the model: each call is one transaction, from a world to the next one and a reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.protocol.values import Answer, Kept, Label, Learned, Lease, Menu, Plan, Setup, Value, World, put

ERROR, SUPERSEDED, REFUSED = "error", "superseded", "refused"
"""Replies: the store was away, or so it seemed; another trainer leads; it does not fit what is there."""


def executed(setup: Setup, world: World, call: Label) -> tuple[World, Any]:
    """The world after a call, and what is replied."""
    name, where, *given = call
    return CALLS[name](setup, world, where, *given)


def _written(world: World, where: int, kept: Kept, *, public: bool = True) -> World:
    time = max(world.kept_time, world.now) if public else world.kept_time
    return world._replace(store=put(world.store, where, kept), kept_time=time)


# Trainers.


def lead(setup: Setup, world: World, where: int, trainer: int) -> tuple[World, Any]:
    """Lead from now on, unless somebody does who is well."""
    kept = world.store[where]
    if kept.leader is not None:
        mine = kept.leader == trainer and "who is named leads" not in setup.mistakes
        beat = (
            max(world.beats)
            if "anybody's beat is the leader's" in setup.mistakes
            else world.beats[kept.leader]
        )
        if not mine and beat + setup.takeover > world.now:
            return world, REFUSED
    if kept.epoch >= setup.epochs:
        return world, REFUSED
    epoch = kept.epoch + ("lead without a new epoch" not in setup.mistakes or kept.epoch == 0)
    world = world._replace(beats=put(world.beats, trainer, world.now))
    return _written(world, where, kept._replace(epoch=epoch, leader=trainer)), epoch


def begin(setup: Setup, world: World, where: int) -> tuple[World, Any]:
    """The ledger, and the last snapshot."""
    return world, (world.store[where].ledger, world.store[where].snapshot, world.store[where].menus)


def beat(setup: Setup, world: World, where: int, trainer: int) -> tuple[World, Any]:
    """Write a time, before which nothing public is written any more."""
    world = world._replace(
        beats=put(world.beats, trainer, world.now), kept_time=max(world.kept_time, world.now)
    )
    return world, world.now


def leases(setup: Setup, world: World, where: int, first: int) -> tuple[World, Any]:
    """All leases from that round on."""
    return world, tuple(each for each in world.store[where].leases if each.first >= first)


def look(setup: Setup, world: World, where: int, trainer: int, first: int) -> tuple[World, Any]:
    """Both at once."""
    world, until = beat(setup, world, where, trainer)
    return world, (until, leases(setup, world, where, first)[1])


def answers(setup: Setup, world: World, where: int, first: int, end: int) -> tuple[World, Any]:
    """What was said to these rounds."""
    return world, tuple(
        each for each in world.store[where].answers if first <= each.round < end and not each.gone
    )


def append(
    setup: Setup, world: World, where: int, epoch: int, place: int, line: tuple[str, int]
) -> tuple[World, Any]:
    """One more line of the ledger, at its place."""
    kept = world.store[where]
    if kept.epoch != epoch:
        return world, SUPERSEDED
    if place != len(kept.ledger):
        return world, REFUSED
    return _written(world, where, kept._replace(ledger=(*kept.ledger, line))), True


def keep(setup: Setup, world: World, where: int, epoch: int, value: Value) -> tuple[World, Any]:
    """A release, unless there is one of that name."""
    kept = world.store[where]
    if kept.epoch != epoch:
        return world, SUPERSEDED
    if any(each.name == value.name for each in kept.releases):
        return world, True
    return _written(world, where, kept._replace(releases=(*kept.releases, value))), True


def back(setup: Setup, world: World, where: int, name: str) -> tuple[World, Any]:
    """The release of that name, as it is kept."""
    result = [each for each in world.store[where].releases if each.name == name]
    return world, result[0] if result else REFUSED


def plan(setup: Setup, world: World, where: int, epoch: int, new: Plan) -> tuple[World, Any]:
    """The plan of a block: this one, unless there is one."""
    kept = world.store[where]
    if kept.epoch != epoch:
        return world, SUPERSEDED
    result = [each for each in kept.plans if each.block == new.block]
    if result:
        return world, result[0]
    return _written(world, where, kept._replace(plans=(*kept.plans, new))), new


def now(setup: Setup, world: World, where: int) -> tuple[World, Any]:
    """What the clock says."""
    return world, world.now


def publish(
    setup: Setup, world: World, where: int, epoch: int, menu: Menu, learned: Learned
) -> tuple[World, Any]:
    """Menu, snapshot and deletions at once, by whoever leads. Where its time is over, it is the next whole tick."""
    kept = world.store[where]
    if kept.epoch != epoch and "epoch not checked at publish" not in setup.mistakes:
        return world, SUPERSEDED
    if menu.version != len(kept.menus) + 1:
        return world, REFUSED
    if menu.effective < world.now and not {"tick before commit", "effective when ready"} & setup.mistakes:
        menu = menu._replace(effective=-(-world.now // setup.tick) * setup.tick)
    after = kept._replace(menus=(*kept.menus, menu), snapshot=learned)
    return _written(world, where, _forgotten(setup, after, learned.settled)), world.now


def forget(setup: Setup, world: World, where: int, epoch: int, settled: int) -> tuple[World, Any]:
    """Answers to rounds before that one, alone: nobody should."""
    kept = world.store[where]
    if kept.epoch != epoch:
        return world, SUPERSEDED
    left = tuple(each for each in kept.answers if each.round >= settled or each.gone)
    return _written(world, where, kept._replace(answers=left)), True


def _forgotten(setup: Setup, kept: Kept, settled: int) -> Kept:
    return kept._replace(
        answers=tuple(each for each in kept.answers if each.round >= settled or each.gone),
        leases=tuple(each for each in kept.leases if each.end > settled),
        forgotten=max(settled, kept.forgotten),
    )


# Front ends.


def lease(
    setup: Setup, world: World, where: int, size: int, report: tuple[int, int] | None, own: int | None
) -> tuple[World, Any]:
    """What became of the last lease, and the next rounds by the menu in effect; with the menu."""
    kept = world.store[where]
    if report is not None:
        first, used = report
        kept = kept._replace(
            leases=tuple(
                each._replace(used=used, reported=world.now)
                if each.first == first and each.used is None
                else each
                for each in kept.leases
            )
        )
    menu = in_effect(kept, world.now)
    result: Lease | None = None
    if menu is not None:
        first = max(kept.next if own is None else own, menu.plan.first)
        if first < menu.plan.end:
            end = min(first + size, menu.plan.end)
            result = Lease(first, end, menu.version, world.now, world.now + setup.lasts)
            rows = [each for each in kept.leases if each.first != first]
            kept = kept._replace(next=max(end, kept.next), leases=(*sorted([*rows, result]),))
    if result is None and report is None:
        return world, (None, menu)
    return _written(world, where, kept), (result, menu)


def in_effect(kept: Kept, at: int) -> Menu | None:
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
        if row is None or row[0] < kept.forgotten:
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
        lead, begin, beat, leases, look, answers, append, keep, back, plan, now, publish, forget, lease, visit, refund,
        store, erase,
    )
}  # fmt: skip
