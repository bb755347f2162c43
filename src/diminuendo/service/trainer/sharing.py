"""Which populations a trainer leads: of all trainers that are well, each about as many as the others.

Every trainer comes to it by itself, from what the store says of all of them: who was well when, and who leads what. It
takes what nobody leads, up to its share; what it has beyond that it hands over, where somebody has two less. Of several
who want the same the store lets one be the first. A share that its trainer does not take, since it is busy, is soon
taken by anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from diminuendo.service.store import Leader

TRAINERS = "trainer"
"""Names of trainers begin with it."""
SILENT = 10.0
"""Seconds, by the store's clock, after which a trainer that has not beaten leads nothing any more."""
NOBODYS = 3.0
"""Seconds after which a population without a leader is taken by whoever sees it."""

NOBODY = Leader(0, "")
"""Who led a population that nobody ever led."""

Beats = Mapping[str, tuple[float, str]]


class Shares(NamedTuple):
    """What a trainer is to do."""

    take: list[tuple[str, int]]
    """Populations, and the epoch of whoever led each last."""
    give: list[str]
    """Populations to be handed over."""


def well(beats: Beats, now: float) -> list[str]:
    """The trainers that have beaten lately, by name. One that has stopped says so by an empty note."""
    return sorted(
        name for name, (at, note) in beats.items() if name.startswith(TRAINERS) and note and now - at < SILENT
    )


class Sharing:
    """What one trainer knows of all populations: since when it has seen each without a leader."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: dict[str, float] = {}

    def look(
        self,
        populations: Iterable[str],
        leaders: Mapping[str, Leader],
        beats: Beats,
        mine: Mapping[str, int],
        own: Iterable[str],
        now: float,
    ) -> Shares:
        """What is to be done now. `mine`: what it leads. `own`: what somebody of its name led, who is no more."""
        names = list(populations)
        trainers = sorted({*well(beats, now), self._name})
        rank, many = trainers.index(self._name), len(trainers)
        share = len(names) // many + (rank < len(names) % many)
        before = {name: leaders.get(name, NOBODY) for name in names}
        free = [name for name in names if name not in mine and before[name].name not in trainers]
        self._since = {name: self._since.get(name, now) for name in free}
        first = rank * (len(free) // many) + min(
            rank, len(free) % many
        )  # so that trainers that begin together begin with others
        free = free[first:] + free[:first]
        long = [name for name in free if now - self._since[name] >= NOBODYS]
        back = [name for name in own if name in before and name not in mine]
        room = max(0, share - len(mine) - len(back))
        take = dict.fromkeys([*back, *free[:room], *long])
        led = Counter(leader.name for leader in before.values())
        uneven = (
            len(mine) - min((led[name] for name in trainers if name != self._name), default=len(mine)) > 1
        )
        give = list(mine)[share:] if uneven and not take else []
        return Shares([(name, before[name].epoch) for name in take], give)
