"""Exploring the model: every order of events in small worlds, breadth first; random orders in larger ones."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.protocol.values import Broken, Label, Setup, World
from tests.protocol.worlds import after, beginning, possible


class Found(NamedTuple):
    """What came of it: how many states there were, and where a promise was broken, how one gets there."""

    states: int
    broken: str = ""
    path: tuple[Label, ...] = ()
    whole: bool = True
    """Whether all states were looked at, and not only the first ones."""


def alike(setup: Setup, world: World) -> int:
    """A number that two worlds share where all that can come of them is the same.

    Of when something was stored or reported it matters alone whether that was in time; of beats, whether they are old;
    of the last public time, whether clocks are set back; of ID blocks that are released, nothing.
    """
    store, ghosts = [], []
    for kept, ghost in zip(world.store, world.ghosts, strict=True):
        ends = {
            number: each.expires + setup.deadline for each in ghost.id_blocks for number in range(*each[:2])
        }
        done = max([each.plan.end for each in kept.releases if each.plan], default=0)
        store.append(
            (
                *kept[:5],
                tuple((*each[:6], each.reported <= each.expires + setup.deadline) for each in kept.id_blocks),
                kept.answers
                if setup.erasures
                else tuple((row[0], row[1] <= ends.get(row[0], 0), *row[2:]) for row in kept.answers),
                *kept[7:],
            )
        )
        ghosts.append(
            (
                ghost.shown,
                tuple((n, at <= ends.get(n, 0)) for n, at in ghost.acknowledged),
                ghost.erased,
                ghost.seen,
                ghost.plans,
                ghost.rolled_back,
                tuple(
                    (n, at if setup.erasures else at <= ends.get(n, 0)) for n, at in ghost.stored if n >= done
                ),
                tuple(
                    (*each[:6], each.reported <= each.expires + setup.deadline)
                    for each in ghost.id_blocks
                    if each.end > done
                ),
            )
        )
    return hash(
        (
            world.time,
            world.now,
            world.kept_time if "set back" in setup.kinds else 0,
            tuple(min(setup.takeover, world.now - heartbeat) for heartbeat in world.heartbeats)
            if setup.trainers > 1
            else 0,
            tuple(store),
            world.fronts,
            world.trainers,
            world.keys,
            world.notes,
            tuple(ghosts),
            world.loose,
            world.copy,
            world.faults,
        )
    )


def everything(setup: Setup, most: int = 10**9) -> Found:
    """All states that can be reached, up to so many, in the order of how many events lead to them."""
    first = beginning(setup)
    came: dict[int, tuple[int, Label]] = {}
    known, front = {alike(setup, first)}, [first]
    while front:
        coming: list[World] = []
        for world in front:
            here = alike(setup, world)
            for label in possible(setup, world):
                try:
                    then = after(setup, world, label)
                except Broken as broken:
                    return Found(len(known), str(broken), (*_path(came, here), label))
                number = alike(setup, then)
                if number not in known:
                    if len(known) >= most:
                        return Found(len(known), whole=False)
                    known.add(number)
                    came[number] = here, label
                    coming.append(then)
        front = coming
    return Found(len(known))


def _path(came: dict[int, tuple[int, Label]], number: int) -> list[Label]:
    result: list[Label] = []
    while number in came:
        number, label = came[number]
        result.append(label)
    return result[::-1]


WEIGHTS = {"publish_interval": 1.0, "trainer": 4.0, "ask": 1.0, "show": 2.0, "answer": 1.0, "arrives": 0.3}
"""How often what happens, where it may; faults and all else more seldom."""
SELDOM, MOODS = 0.04, (0.05, 1.0, 1.0, 3.0)
"""How often faults happen; and how fast somebody is for a while."""


def walk(setup: Setup, seed: int, steps: int = 300) -> Found:
    """One random order of events, of those that change something; everybody is slow or fast for a while."""
    rng, world, path = random.Random(seed), beginning(setup), list[Label]()
    moods: dict[Label, float] = {}
    still = 0
    while len(path) < steps and still < 30:
        if rng.random() < 0.02:
            moods = {}
        labels, weights = possible(setup, world), list[float]()
        for label in labels:
            who = label[:2]
            if who not in moods:
                moods[who] = rng.choice(MOODS) if label[0] in ("trainer", "ask", "publish_interval") else 1.0
            weights.append(WEIGHTS.get(str(label[0]), SELDOM) * moods[who])
        label = rng.choices(labels, weights)[0]
        try:
            then = after(setup, world, label)
        except Broken as broken:
            return Found(len(path) + 1, str(broken), (*path, label))
        still += 1
        if then != world:
            world, still = then, 0
            path.append(label)
    return Found(len(path), path=tuple(path))


def replayed(setup: Setup, path: tuple[Label, ...]) -> World:
    """The world that a path leads to."""
    world = beginning(setup)
    for label in path:
        world = after(setup, world, label)
    return world
