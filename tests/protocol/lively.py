"""Whether the model goes on: once trouble has ended, everything is released and seen within so many times."""

from __future__ import annotations

import random

from tests.protocol.explore import Found, walk
from tests.protocol.mistakes import LARGE
from tests.protocol.transactions import in_effect
from tests.protocol.values import Setup, World
from tests.protocol.worlds import after, beginning, possible

LIVELY = LARGE._replace(blocks=3, until=10**6, populations=2)
MISTAKES = ("who is named leads", "anybody's beat is the leader's", "who is refused gives up")
BOUND = 40
"""Times: a leader that is gone is waited for (4), an ID block that is out expires and settles (3), and each of
3 blocks is
reserved out, settles (3) and takes effect at a tick after its allowance (3), while the next one is under way:
16, and as much again and more, since who has a turn when is random."""


def stands_still(setup: Setup, seed: int, trouble: int = 60) -> int | None:
    """How long it took after trouble has ended until all blocks were released and seen; None: it never came to that.

    One of the trainers never comes back, whatever it led.
    """
    result: Found = walk(setup, seed, trouble)
    world = beginning(setup)
    for label in result.path:
        world = after(setup, world, label)
    world, rng = world._replace(faults=0, loose=()), random.Random(seed)
    away = rng.randrange(setup.trainers)
    for time in range(BOUND):
        if over(setup, world):
            return time
        for _ in range(12):
            actors = [
                label
                for label in possible(setup, world)
                if label[0] in ("ask", "show") or (label[0] == "trainer" and label[1] != away)
            ]
            for label in sorted(actors, key=lambda each: rng.random()):
                if label in possible(setup, world):
                    world = after(setup, world, label)
        world = after(setup, world, ("publish_interval",))
    return None


def over(setup: Setup, world: World) -> bool:
    """Whether everything was released, and what is in effect says so."""
    menus = [in_effect(kept, world.now) for kept in world.store]
    return all(menu is not None and len(menu.values) == setup.blocks for menu in menus)


def found(mistake: str, seeds: int = 300) -> int | None:
    """The first walk after which it stands still."""
    setup = LIVELY._replace(mistakes=frozenset({mistake}))
    return next((seed for seed in range(seeds) if stands_still(setup, seed) is None), None)
