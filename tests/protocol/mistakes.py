"""Planted mistakes: each a small switch in the model, with the world in which it is looked for and what it breaks."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.explore import walk
from tests.protocol.values import Setup

CALLS = frozenset({"crash", "lost before", "lost after", "delay", "repeat"})
CLOCKS = frozenset({"set back", "jump"})
LARGE = Setup(
    blocks=3,
    rounds=3,
    id_block=2,
    deadline=1,
    takeover=4,
    until=40,
    faults=3,
    kinds=CALLS | CLOCKS,
    fine=True,
    erasures=1,
)
"""For random walks."""
NAMED = LARGE._replace(named=True)
RESTORED = LARGE._replace(faults=2, kinds=frozenset({"crash", "put back"}), erasures=0)
KEYS = Setup(fronts=1, trainers=1, blocks=4, publish_interval=1, publish_delay=0, faults=0, until=30)
NOTES = Setup(
    rounds=1,
    publish_interval=1,
    publish_delay=0,
    deadline=0,
    until=20,
    fencing_tokens=4,
    kinds=frozenset({"put back"}),
)
CRASHES = LARGE._replace(trainers=1, kinds=frozenset({"crash"}), erasures=0)
SKEWED = LARGE._replace(skews=(0, -2, 2))
HELD_UP = KEYS._replace(within=2, faults=6, kinds=frozenset({"delay"}))


WORLDS = {
    "large": LARGE, "named": NAMED, "restored": RESTORED, "keys": KEYS, "notes": NOTES, "skewed": SKEWED,
    "two populations": LARGE._replace(populations=2), "held up": HELD_UP, "held up, and more": LARGE._replace(within=1),
}  # fmt: skip
TINY = Setup(
    fronts=1,
    trainers=1,
    blocks=1,
    deadline=0,
    publish_interval=1,
    publish_delay=0,
    takeover=1,
    until=3,
    fencing_tokens=2,
    faults=0,
)
SMALL = {
    "one trainer, a block of two rounds": TINY,
    "one trainer, a block of one round, one fault of any call": TINY._replace(rounds=1, faults=1, kinds=CALLS),
    "one trainer, a block of one round, an answer that is held up": TINY._replace(
        rounds=1, within=1, faults=1, kinds=frozenset({"delay"}), until=5
    ),
    "two trainers, a block of one round": TINY._replace(trainers=2, rounds=1),
    "two trainers, a block of one round, one crash": TINY._replace(
        trainers=2, rounds=1, faults=1, kinds=frozenset({"crash"})
    ),
    "two front ends, two trainers, two blocks, one fault": Setup(
        rounds=1, deadline=0, publish_interval=1, publish_delay=0, takeover=1, until=4, fencing_tokens=3, kinds=CALLS
    ),
    "two front ends, one trainer, a store that is put back": Setup(
        trainers=1, rounds=1, deadline=0, publish_interval=1, publish_delay=0, takeover=1, until=8, fencing_tokens=3,
        kinds=frozenset({"put back"}),
    ),
}  # fmt: skip
"""Worlds of which all states are looked at, as far as one likes."""


class Mistake(NamedTuple):
    """One mistake."""

    name: str
    breaks: str
    """What is said of it."""
    setup: Setup = LARGE
    walk: int = 0
    """The first walk that finds it, so that the quick suite need not look for it."""


MISTAKES = [
    Mistake("fencing token not checked at publish", "somebody published who does not lead any more"),
    Mistake("lead without a new fencing token", "somebody published who does not lead any more"),
    Mistake("used as drawn", "a menu is made of another release than the one that is kept"),
    Mistake("charged when it was seen", "a release was seen that nobody has paid for", walk=17),
    Mistake("answers deleted first", "an answer that was in time is not counted", CRASHES, walk=1345),
    Mistake("keys dropped before publishing", "the last snapshot cannot be opened", walk=775),
    Mistake("only the newest key is kept", "an answer that was in time is not counted"),
    Mistake("a key is old before it is", "an answer that was in time is not counted", KEYS, walk=356),
    Mistake("acknowledged before it is kept", "an answer that was in time is not counted", walk=125),
    Mistake("second answers are kept", "an answer was counted twice", walk=2),
    Mistake("no tombstone", "an answer is counted that was erased before", walk=2),
    Mistake("deadline ignored", "an answer is counted that was not in time", walk=8),
    Mistake(
        "deadline by the front end's clock", "an answer is counted that was not in time", SKEWED, walk=16
    ),
    Mistake("deadline by the trainer's clock", "an answer that was in time is not counted", SKEWED, walk=42),
    Mistake(
        "nobody waits for what is being stored",
        "an answer that was in time is not counted",
        HELD_UP,
        walk=2266,
    ),
    Mistake("late reports are heard", "how many came does not follow from what was said in time"),
    Mistake(
        "ID blocks read before the time is written",
        "how many came does not follow from what was said in time",
        walk=40,
    ),
    Mistake("front ends count rounds themselves", "a round was handed out twice"),
    Mistake("visits counted at the answer", "more rounds of hers count than she has visits", NAMED),
    Mistake("visits are given back", "more rounds of hers count than she has visits", NAMED, walk=21),
    Mistake("a plan is made anew", "a block is released by another plan than it was shown by"),
    Mistake("effective when ready", "a menu takes effect when it is ready"),
    Mistake("tick before commit", "a menu takes effect when it is ready", walk=10),
    Mistake("heads are not compared", "two releases of one name were seen", NOTES, walk=472),
    Mistake("whoever is superseded notes its head", "two releases of one name were seen", NOTES, walk=472),
    Mistake("seen when it is kept", "two releases of one name were seen", NOTES, walk=10),
]
"""What one world shows. What only two worlds do is in pairs.py, what stands still in lively.py."""


def found(mistake: Mistake, seeds: int = 5_000) -> tuple[int | None, int]:
    """The first walk that finds it, and how many events there were until then."""
    setup, events = mistake.setup._replace(mistakes=frozenset({mistake.name})), 0
    for seed in range(seeds):
        came = walk(setup, seed)
        events += came.states
        if came.broken == mistake.breaks:
            return seed, events
    return None, events
