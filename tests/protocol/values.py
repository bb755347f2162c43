"""What the model of the service is made of: values that can be compared and kept. No code of the service is used.

Time is counted in whole steps. Rounds are counted from 0 on in each population, which has one placement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Label = tuple[Any, ...]
"""What happens next, in words and numbers: ("trainer", 0, 0), ("answer", 1, 0, 3), ("lost after", "trainer", 0, 0)."""


class Setup(NamedTuple):
    """A small world: who is there, how long things take, and which mistakes are planted."""

    fronts: int = 2
    trainers: int = 2
    populations: int = 1
    blocks: int = 2
    """Blocks of rounds that are planned, one after the other."""
    rounds: int = 2
    """Rounds of the first block; others have one less where little was in flight when they were planned."""
    id_block: int = 1
    """Rounds of an ID block."""
    lasts: int = 1
    deadline: int = 1
    within: int = 0
    """An answer has the time of its arrival, where it is stored within this time; who settles rounds waits for it."""
    publish_interval: int = 2
    publish_delay: int = 1
    takeover: int = 2
    """A leader that has not beaten for so long may be followed by another."""
    fencing_tokens: int = 9
    """So many leaders one after the other, and no more."""
    until: int = 9
    """Time ends here."""
    named: bool = False
    """Everybody is the same user, who has a name, and one visit."""
    erasures: int = 0
    faults: int = 1
    kinds: frozenset[str] = frozenset({"crash", "lost before", "lost after"})
    """Which faults there are: those, and "delay", "repeat", "set back", "jump", "put back"."""
    fine: bool = False
    """Whether the trainer writes its time and reads ID blocks in two calls, as the service does, or in one; and whether
    front ends show rounds one by one, or all of an ID block at once."""
    skews: tuple[int, ...] = (0, 0)
    """What the clocks of front ends and trainers are wrong by."""
    mistakes: frozenset[str] = frozenset()


class Plan(NamedTuple):
    """What a block shows; `shuffle` stands for its coins."""

    block: int
    first: int
    end: int
    shuffle: int


class Value(NamedTuple):
    """What was released of a block: whose answers, how many came, by which plan, and noise."""

    name: str
    counted: tuple[int, ...]
    came: int
    plan: Plan | None
    noise: int


class Menu(NamedTuple):
    """One menu, with everything released that it is made of."""

    version: int
    plan: Plan
    effective: int
    values: tuple[Value, ...]
    key: int
    fencing_token: int


class IdBlock(NamedTuple):
    """Rounds from `first` to before `end`, and what became of them."""

    first: int
    end: int
    version: int
    at: int
    expires: int
    used: int | None = None
    reported: int = 0


class Answer(NamedTuple):
    """An answer, encrypted to a key; `gone`: a tombstone."""

    round: int
    at: int
    key: int
    counts: bool
    gone: bool = False


class Learned(NamedTuple):
    """What a snapshot holds."""

    version: int = 0
    settled: int = 0
    counted: tuple[int, ...] = ()
    came: int = 0
    plans: tuple[Plan, ...] = ()
    """Of blocks that are not released."""
    values: tuple[Value, ...] = ()
    keys: tuple[tuple[int, int | None], ...] = ()
    """Keys that are still needed, and since when each is not the newest; None: nobody knows yet."""


class Checkpoint(NamedTuple):
    """What the store keeps of one population."""

    fencing_token: int = 0
    leader: int | None = None
    next: int = 0
    gc_low_water_mark: int = 0
    menus: tuple[Menu, ...] = ()
    id_blocks: tuple[IdBlock, ...] = ()
    answers: tuple[Answer, ...] = ()
    rounds_of_users: tuple[int, ...] = ()
    """Rounds of the one who has a name that count."""
    ledger: tuple[tuple[str, int], ...] = ()
    """What was charged for, noise 0, and what was drawn, with its noise."""
    releases: tuple[Value, ...] = ()
    plans: tuple[Plan, ...] = ()
    snapshot: Learned | None = None


class Front(NamedTuple):
    """A front end."""

    id_block: IdBlock | None = None
    next: int = 0
    until: int = 0
    """By its own clock, which does not jump."""
    report: tuple[int, int] | None = None
    """What became of an ID block, not yet handed over."""
    highest: int = 0
    back: bool = False
    own: int = 0
    """A counter of its own, for the mistake of having one."""


class Job(NamedTuple):
    """What a trainer is at with one population; what it holds in memory."""

    at: str = "idle"
    fencing_token: int = 0
    tries: int = 0
    """How often it began again in this fencing token."""
    learned: Learned = Learned()
    ledger: tuple[tuple[str, int], ...] = ()
    until: int = 0
    id_blocks: tuple[IdBlock, ...] = ()
    moment: int = 0
    """The public time of what is being published."""
    drew: bool = False
    value: Value | None = None
    effective: int = 0
    planned: int = 0
    key: int = 0
    before: frozenset[int] = frozenset()


class Ghost(NamedTuple):
    """What nobody in the world knows as a whole, and promises are about; of one population."""

    shown: tuple[tuple[int, bool], ...] = ()
    """Rounds that were shown, and whether an answer counts."""
    acknowledged: tuple[tuple[int, int], ...] = ()
    """Rounds whose answer was acknowledged, and when."""
    stored: tuple[tuple[int, int], ...] = ()
    """Of each round when its first answer arrived, by the store's clock; where it was stored too late, when it was."""
    erased: tuple[tuple[int, int], ...] = ()
    id_blocks: tuple[IdBlock, ...] = ()
    seen: tuple[Value, ...] = ()
    """Releases that somebody outside has seen."""
    plans: tuple[Plan, ...] = ()
    """Plans that somebody outside has seen."""
    rolled_back: bool = False
    slips: int = 0
    """Publications that were late for their public time."""


class World(NamedTuple):
    """Everything there is at one moment."""

    time: int
    now: int
    """What the store's clock says."""
    kept_time: int
    """The last public time that was written."""
    heartbeats: tuple[int, ...]
    store: tuple[Checkpoint, ...]
    fronts: tuple[tuple[Front, ...], ...]
    """By front end and population."""
    trainers: tuple[tuple[Job, ...], ...]
    keys: tuple[frozenset[int], ...]
    """The trainers' folder: their secret keys, by population ..."""
    notes: tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
    """... and the ledger as it was at the last publication, with the fencing token that noted it."""
    ghosts: tuple[Ghost, ...]
    loose: tuple[Label, ...] = ()
    """Calls that are still on their way while who called has given up."""
    copy: tuple[Checkpoint, ...] | None = None
    faults: int = 0


class Broken(Exception):
    """A promise is broken; its words say which."""


def put(values: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """The same values but for one."""
    return (*values[:place], value, *values[place + 1 :])
