"""Fencing: a trainer's writes to a population are refused once another trainer leads it."""

from __future__ import annotations

import secrets
from typing import NamedTuple, Self

from diminuendo.errors import LedgerDamaged, Superseded

STEP = 2**40
"""Fencing tokens grow by a random step of at most this, so that a restored database cannot reissue one that a paused
trainer still holds. A population has room for millions of them."""

CLOSED = "~"
"""Stands in the names of populations that are closed for good, and of their placements (adopt.py), and in no other."""


def is_closed(name: str) -> bool:
    """Whether a population or placement of that name is closed."""
    return CLOSED in name


class FencedWrite(NamedTuple):
    """What must hold for a trainer to write."""

    population: str
    fencing_token: int
    lines: int = 0
    """How many entries its ledger has, as far as is known; 0 if this trainer has not looked ..."""
    last: bytes = b""
    """... and the last of those, which names all before it."""

    def knows(self, lines: int, last: bytes) -> Self:
        """The same, when that many entries have been read or written."""
        return self._replace(lines=lines, last=last)

    def check(self, fencing_token: int, line: bytes | None) -> None:
        """Refuse if the last fencing token is another one, or the ledger has another entry, or none, in place of the
        last."""
        _refuse_closed(self.population)
        if self.fencing_token != fencing_token:
            raise Superseded(
                f"The fencing token {self.fencing_token} of population {self.population!r} is superseded: the last one "
                f"is {fencing_token}. Another trainer leads it now; this one writes nothing of it."
            )
        if self.lines and line != self.last:
            raise LedgerDamaged(
                f"The ledger of population {self.population!r} lacks line {self.lines} as this trainer knows it: the "
                "store was rolled back to an older state while it ran, and what was drawn since is lost. Nothing more "
                "is drawn. Put the newest one back; or begin new populations, with a new store, for users to come."
            )


def next_fencing_token(population: str, last: int, after: int | None) -> int:
    """The fencing token of the next leader; refused if it was to follow another one than the last, and if the
    population is closed."""
    _refuse_closed(population)
    if after is not None and after != last:
        raise Superseded(
            f"The last fencing token of population {population!r} is {last}, and not {after}: another "
            "trainer was first."
        )
    return last + 1 + secrets.randbelow(STEP)


def _refuse_closed(population: str) -> None:
    if is_closed(population):
        raise Superseded(f"Population {population!r} is closed: nothing more is drawn or published in it.")
