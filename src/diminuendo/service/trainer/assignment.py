"""The assignment of populations to trainers: all trainers that are well lead about equally many.

Every trainer computes it by itself, from the heartbeats and leaders that the store has. It acquires populations without
a leader, up to its share. It hands over what it has beyond that, if another trainer has two less. If several want the
same population, the store lets one be the first. A share that its trainer does not acquire, because it is busy, is soon
acquired by another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from diminuendo.service.store import INSTANCE, TRAINERS, Leader

SILENT = 10.0
"""Seconds, by the store's clock, without a heartbeat after which a trainer leads nothing any more."""
NOBODYS = 3.0
"""Seconds after which any trainer acquires a population without a leader."""

NOBODY = Leader(0, "")
"""The leader of a population that never had one."""

Heartbeats = Mapping[str, tuple[float, str]]


class Shares(NamedTuple):
    """What a trainer is to do."""

    take: list[tuple[str, int]]
    """Populations, each with the last fencing token."""
    give: list[str]
    """Populations to be handed over."""


def well(heartbeats: Heartbeats, now: float) -> list[str]:
    """The trainers with a recent heartbeat, by name. A trainer that stops deletes its own."""
    return sorted(
        name
        for name, (at, _) in heartbeats.items()
        if name.startswith(TRAINERS) and INSTANCE in name and now - at < SILENT
    )


class Assignment:
    """What one trainer knows of all populations: since when each has had no leader."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: dict[str, float] = {}

    def look(
        self,
        populations: Iterable[str],
        leaders: Mapping[str, Leader],
        heartbeats: Heartbeats,
        mine: Collection[str],
        now: float,
    ) -> Shares:
        """What is to be done now. `mine`: the populations that it leads, as far as it knows."""
        names = list(populations)
        trainers = sorted({*well(heartbeats, now), self._name})
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
        back = [
            name for name in names if name not in mine and before[name].name == self._name
        ]  # a lost reply
        room = max(0, share - len(mine) - len(back))
        take = dict.fromkeys([*back, *free[:room], *long])
        fence = Counter(leader.name for leader in before.values())
        uneven = (
            len(mine) - min((fence[name] for name in trainers if name != self._name), default=len(mine)) > 1
        )
        give = list(mine)[share:] if uneven and not take else []
        return Shares([(name, before[name].fencing_token) for name in take], give)
