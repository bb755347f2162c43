"""The world of the model: what may happen next, and what is so afterwards. A pause is what does not happen yet."""

from __future__ import annotations

from typing import Any

from tests.protocol import fronts, training
from tests.protocol.judging import judged
from tests.protocol.transactions import ERROR, executed
from tests.protocol.values import Checkpoint, Front, Ghost, Job, Label, Setup, World, put

LOST = ("lost before", "lost after", "delay", "repeat")
"""What may become of a call: it never arrives; its reply does not; it arrives when nobody waits any more; or twice."""


def beginning(setup: Setup) -> World:
    """Nothing has happened yet."""
    many = setup.populations
    return World(
        0, 0, 0, (0,) * setup.trainers, (Checkpoint(),) * many, ((Front(),) * many,) * setup.fronts,
        ((Job(),) * many,) * setup.trainers, (frozenset(),) * many, ((0, ()),) * many, (Ghost(),) * many,
        faults=setup.faults,
    )  # fmt: skip


def possible(setup: Setup, world: World) -> list[Label]:
    """Everything that may happen next, always in the same order."""
    places = range(setup.populations)
    actors: list[Label] = [("trainer", number, where) for number in range(setup.trainers) for where in places]
    for number in range(setup.fronts):
        for where in places:
            actors += fronts.may(setup, world, number, where)
    for where in places:
        ghost = world.ghosts[where]
        if len(ghost.erased) < setup.erasures:
            asked = dict(ghost.erased)
            actors += [("erase", where, number) for number, _ in ghost.shown if number not in asked]
        if "visits are given back" in setup.mistakes:
            delay = [
                number
                for number, counts in ghost.shown
                if counts and number in world.store[where].rounds_of_users
            ]
            actors += [
                ("refund", where, number) for number in delay if number not in dict(ghost.acknowledged)
            ]
    result = list(actors)
    if world.time < setup.until:
        result.append(("publish_interval",))
    result += [("arrives", place) for place in range(len(world.loose))]
    if world.copy is None and "put back" in setup.kinds:
        result.append(("copy",))
    if world.faults:
        result += _faults(setup, world, actors)
    return result


def _faults(setup: Setup, world: World, actors: list[Label]) -> list[Label]:
    kinds, result = setup.kinds, list[Label]()
    for actor in actors:
        if asked(setup, world, actor) is not None:
            result += [(kind, *actor) for kind in LOST if kind in kinds]
    if "crash" in kinds:
        result += [
            ("crash", "trainer", number)
            for number in range(setup.trainers)
            if any(job.at != "idle" for job in world.trainers[number])
        ]
        result += [
            ("crash", "front", number)
            for number in range(setup.fronts)
            if any(mine != Front() for mine in world.fronts[number])
        ]
    if "put back" in kinds and world.copy is not None:
        result.append(("put back",))
    if "set back" in kinds and world.now > world.kept_time:
        result.append(("set back",))
    if "jump" in kinds:
        result.append(("jump",))
    return result


def asked(setup: Setup, world: World, actor: Label) -> Label | None:
    """The call that somebody is about to make; None where it needs none."""
    match actor[0]:
        case "trainer":
            return training.call(setup, world, *actor[1:])
        case "erase" | "refund":
            return actor
    return fronts.call(setup, world, actor)


def after(setup: Setup, world: World, label: Label) -> World:
    """The world after something happened; raises `Broken` where a promise is broken by it."""
    return judged(setup, world, _after(setup, world, label))


def _after(setup: Setup, world: World, label: Label) -> World:
    match label[0]:
        case "publish_interval":
            return world._replace(time=world.time + 1, now=world.now + 1)
        case "arrives":
            left = (*world.loose[: label[1]], *world.loose[label[1] + 1 :])
            return executed(setup, world._replace(loose=left), world.loose[label[1]])[0]
        case "copy":
            return world._replace(copy=world.store)
        case "put back":
            assert world.copy is not None
            ghosts = tuple(each._replace(rolled_back=True) for each in world.ghosts)
            return world._replace(store=world.copy, ghosts=ghosts, faults=world.faults - 1)
        case "set back":
            return world._replace(now=world.kept_time, faults=world.faults - 1)
        case "jump":
            return world._replace(now=world.now + 3, faults=world.faults - 1)
        case "crash":
            world = world._replace(faults=world.faults - 1)
            if label[1] == "trainer":
                gone = (Job(),) * setup.populations
                return world._replace(trainers=put(world.trainers, label[2], gone))
            return world._replace(fronts=put(world.fronts, label[2], (Front(),) * setup.populations))
        case "lost before" | "lost after" | "delay" | "repeat":
            return _lost(setup, world._replace(faults=world.faults - 1), label[0], label[1:])
    call = asked(setup, world, label)
    if call is None:
        return _told(setup, world, label, None)
    changed, reply = executed(setup, world, call)
    return _told(setup, changed, label, reply)


def _lost(setup: Setup, world: World, kind: str, actor: Label) -> World:
    call = asked(setup, world, actor)
    assert call is not None
    if kind == "delay":
        world = world._replace(loose=(*world.loose, call))
    reply: Any = ERROR
    if kind in ("lost after", "repeat"):
        world, said = executed(setup, world, call)
        if kind == "repeat":
            reply, world = said, world._replace(loose=(*world.loose, call))
    return _told(setup, world, actor, reply)


def _told(setup: Setup, world: World, actor: Label, reply: Any) -> World:
    match actor[0]:
        case "trainer":
            if world.trainers[actor[1]][actor[2]].at in ("drop", "gone"):
                return training.alone(setup, world, *actor[1:])
            return training.received(setup, world, actor[1], actor[2], reply)
        case "erase":
            _, where, number = actor
            if reply == ERROR:
                return world
            ghost = world.ghosts[where]
            ghost = ghost._replace(erased=(*ghost.erased, (number, world.now)))
            return world._replace(ghosts=put(world.ghosts, where, ghost))
        case "refund":
            return world
    return fronts.received(setup, world, actor, reply)
