"""Two worlds of the model that differ in what one user does: what may be seen is the same, but for noisy values.

Public events are the same in both: time, who asks for rounds, when others answer. She answers in one world and not in
the other (or says something that is no answer). How long a trainer takes, and when it is killed, differs, as that may
depend on what users said: it is done before the allowance of a release is over, and what then takes effect, who is
handed which round, how large blocks are, whose answers are acknowledged and counted may not tell.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.protocol import training
from tests.protocol.transactions import executed
from tests.protocol.values import Broken, Label, Setup, World
from tests.protocol.worlds import after, asked, beginning, possible

PAIRED = Setup(
    fronts=2, trainers=1, blocks=4, rounds=3, id_block=2, publish_interval=4, publish_delay=3, deadline=1,
    within=1, until=60, faults=99,
    kinds=frozenset({"crash"}),
)  # fmt: skip
MISTAKES = {
    "in flight is issued minus answered": "what may be seen differs",
    "effective when ready": "what may be seen differs",
    "a bad row takes its group along": "what may be seen differs",
    "deadline ignored": "others' answers are counted otherwise",
    "answers have the time of their group": "others' answers are counted otherwise",
}
"""What two worlds find, and how."""


class Pair(NamedTuple):
    """What came of it: the number of events, what differed, and whether it says anything: nobody was late."""

    steps: int
    broken: str = ""
    counts: bool = True


def played(setup: Setup, seed: int, steps: int = 60) -> Pair:
    """Two worlds by one seed."""
    public = random.Random(seed)
    private = [random.Random(f"{seed} {side}") for side in range(2)]
    worlds, her_round = [beginning(setup), beginning(setup)], public.randrange(5)
    bad = public.random() < 0.5
    said: list[set[int]] = [set(), set()]
    for step in range(steps):
        event = public.random()
        labels: list[Label] = []
        if event < 0.35:
            labels = [("publish_interval",)]
        elif event < 0.75:
            front = public.randrange(setup.fronts)
            labels = [("show", front, 0), ("ask", front, 0)]
        whole = labels == [("publish_interval",)] and worlds[0].now % 2 == 1
        worlds = [_trained(setup, world, rng, whole) for world, rng in zip(worlds, private, strict=True)]
        share, group = public.random(), public.random() < 0.5
        try:
            for side, world in enumerate(worlds):
                for label in labels:
                    if label in possible(setup, world):
                        world = after(setup, world, label)
                        break
                if not labels:
                    world, kept = _answered(setup, world, her_round, side, bad, share, group)
                    said[side] |= kept
                worlds[side] = world
        except Broken as broken:
            return Pair(step, str(broken))
        views = [view(world, her_round) for world in worlds]
        if any(world.ghosts[0].slips for world in worlds):
            return Pair(step, counts=False)
        if views[0][0] != views[1][0] or said[0] - {her_round} != said[1] - {her_round}:
            return Pair(step, "what may be seen differs")
        if views[0][1] != views[1][1]:
            return Pair(step, "others' answers are counted otherwise")
    return Pair(steps)


def _trained(setup: Setup, world: World, rng: random.Random, whole: bool) -> World:
    """The trainer does some of what it can; or all of it, as it must now and then to be in time."""
    for _ in range(500):
        if not whole and rng.random() < 0.2:
            break
        if rng.random() < 0.01:
            world = after(setup, world, ("crash", "trainer", 0))
        before = world
        try:
            world = after(setup, world, ("trainer", 0, 0))
        except Broken:  # in one world alone it would be noticed too; here it is to be seen by comparing
            world = _unjudged(setup, world)
        idle = world.trainers[0][0].at == before.trainers[0][0].at == "look"
        if world == before or (idle and not setup.fine):
            break
    return world


def _unjudged(setup: Setup, world: World) -> World:
    call = asked(setup, world, ("trainer", 0, 0))
    assert call is not None
    changed, reply = executed(setup, world, call)
    return training.received(setup, changed, 0, 0, reply)


def _answered(
    setup: Setup, world: World, her_round: int, side: int, bad: bool, share: float, group: bool
) -> tuple[World, set[int]]:
    """Somebody answers, or two at once; she does in the first world alone, or says what is none.

    The group that she is in is stored later.
    """
    ghost, kept = world.ghosts[0], world.store[0]
    waiting = [number for number, _ in ghost.shown if number not in dict(ghost.acknowledged)]
    if not waiting or not kept.menus:
        return world, set()
    at = int(share * len(waiting))
    key, counting, rows = kept.menus[-1].key, dict(ghost.shown), list[Any]()
    numbers = waiting[at : at + 1 + group]
    for number in numbers:
        if number == her_round and side:
            rows += [None] if bad else []
        else:
            rows.append((number, key, counting[number]))
    stored = world._replace(now=world.now + (her_round in numbers and not side))
    changed, reply = executed(setup, stored, ("store", 0, tuple(rows), world.now))
    if reply is not True:
        return world, set()
    ghost = ghost._replace(
        acknowledged=(*sorted([*ghost.acknowledged, *((number, world.now) for number in numbers)]),)
    )
    return changed._replace(now=world.now, ghosts=(ghost,)), set(numbers)


def view(world: World, her_round: int) -> tuple[Any, Any]:
    """What may be seen by now; and of the values in it, whose answers but for hers."""
    kept = world.store[0]
    menus = [each for each in kept.menus if each.effective <= world.now]
    values = menus[-1].values if menus else ()
    public = (
        tuple((each.version, each.plan[:3], each.effective) for each in menus), kept.next,
        tuple(each[:5] for each in world.ghosts[0].id_blocks),
        tuple((each.name, each.came) for each in values), world.ghosts[0].shown,
    )  # fmt: skip
    return public, tuple(tuple(number for number in each.counted if number != her_round) for each in values)


def found(mistake: str, seeds: int = 300) -> int | None:
    """The first pair that finds it."""
    setup = PAIRED._replace(mistakes=frozenset({mistake}))
    return next((seed for seed in range(seeds) if played(setup, seed).broken == MISTAKES[mistake]), None)
