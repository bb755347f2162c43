"""Who may write: what somebody writes as the trainer of a population is refused once another one leads it."""

from __future__ import annotations

import secrets
from typing import NamedTuple, Self

from diminuendo.errors import LedgerDamaged, Superseded

STEP = 2**40
"""Epochs go up by a random step of at most this: after a store was put back to an older state, those that follow are
others than those it has forgotten, and a trainer that slept meanwhile leads in none of them. A population has room for
millions of epochs."""

CLOSED = "~"
"""Stands in the names of populations that are closed for good, and of their placements (adopt.py), and in no other."""


def is_closed(name: str) -> bool:
    """Whether a population or placement of that name is closed."""
    return CLOSED in name


class Led(NamedTuple):
    """What somebody writes as the trainer of a population, in its epoch."""

    population: str
    epoch: int
    lines: int = 0
    """How many lines its ledger has, as far as is known; 0 where nobody has looked ..."""
    last: bytes = b""
    """... and the last of those, which names all before it."""

    def knows(self, lines: int, last: bytes) -> Self:
        """The same, when that many lines have been read or written."""
        return self._replace(lines=lines, last=last)

    def check(self, epoch: int, line: bytes | None) -> None:
        """Refuse where the last epoch is another one, or the ledger has another line, or none, in place of the last."""
        _refuse_closed(self.population)
        if self.epoch != epoch:
            raise Superseded(
                f"Epoch {self.epoch} of population {self.population!r} is over: the last one is {epoch}. Whoever leads "
                "it now goes on; this trainer writes nothing of it."
            )
        if self.lines and line != self.last:
            raise LedgerDamaged(
                f"The ledger of population {self.population!r} has not line {self.lines} as this trainer knows it: the "
                "store was put back to an older state while it ran, and what was drawn since is lost. Nothing more is "
                "drawn. Put the newest one back; or begin new populations, with a new store, for users to come."
            )


def next_epoch(population: str, last: int, after: int | None) -> int:
    """The epoch of whoever leads from now on; refused where it was to be after another one than the last, and where
    the population is closed."""
    _refuse_closed(population)
    if after is not None and after != last:
        raise Superseded(
            f"Population {population!r} was led in epoch {last} last, and not {after}: somebody was faster."
        )
    return last + 1 + secrets.randbelow(STEP)


def _refuse_closed(population: str) -> None:
    if is_closed(population):
        raise Superseded(f"Population {population!r} is closed: nothing more is drawn or published in it.")
