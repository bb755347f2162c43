"""High-water marks of front ends: a store that lacks what they have seen was rolled back to an older state.

A trainer on such a store would draw again, with other noise, what users have seen. In the note of its heartbeat a front
end says which menu of each placement it shows, and the head that the ledger had then. If a front end has seen a later
menu than there is, or a head that is not in the ledger, nothing more is released in that population, and a public note
says so. The note stays, since the front end may be gone tomorrow.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from diminuendo.service.records import read
from diminuendo.service.store import FRONT_ENDS, Store

LISTENS = 3.0
"""Seconds for which a trainer that begins to lead listens before it pays for anything: longer than front ends are
silent (front/front.py)."""
STOPPED = (
    "stopped: front ends have seen what is not in this store. It was rolled back to an older state, and nothing more "
    "is released here. Put the newest store back; or begin a new population, for users to come."
)

Seen = dict[str, tuple[int, str]]
"""By placement the version of a menu and the head of the ledger that it names."""


class HighWaterMarks:
    """What front ends say that they have seen; each note is read once."""

    def __init__(self) -> None:
        self._read: dict[str, float] = {}
        self._seen: dict[str, Seen] = {}

    def read(self, heartbeats: Mapping[str, tuple[float, str]]) -> None:
        """Read what is new."""
        for name, (at, note) in heartbeats.items():
            if name.startswith(FRONT_ENDS) and self._read.get(name) != at:
                self._read[name] = at
                self._seen[name] = (
                    read(Seen, note) or {}
                )  # nothing of another version, or of no front end of ours

    def of(self, placement: str) -> set[tuple[int, str]]:
        """Versions and heads of a placement that front ends have seen."""
        return {seen[placement] for seen in self._seen.values() if placement in seen}


class LedgerHeads:
    """The heads of a population's ledger, for the trainer of that fencing token; read when one is missing."""

    def __init__(self, store: Store, population: str, fencing_token: int) -> None:
        self._store, self._population, self._fencing_token = store, population, fencing_token
        self._heads: set[str] = set()

    def has(self, head: str) -> bool:
        """Whether the ledger in the store has, or had, that head; also in a line that is not shown to others yet:
        the clock of a front end may be a moment ahead."""
        if head not in self._heads:
            lines = self._store.books(self._population, self._fencing_token).lines.read().splitlines()
            self._heads.update(msgspec.json.decode(line)["hash"] for line in lines)
        return head in self._heads
