"""The meter: private draws are paid for before they are made, a stretch at a time.

Compiled code counts what it uses and stops where what was paid for ends; then the next stretch is charged to the
ledger, or refused. How much is used depends on rounds and public coins only, never on what people said.

A learner that goes on from a snapshot cannot know what was drawn since, so it counts what was left of the last stretch
as used up, and pays anew: with the same ledger, nothing is drawn that was not paid for, however often it is restored.
"""

from __future__ import annotations

import numpy as np

from diminuendo._jit import inline
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.types import Ints

STRETCHES = 100
"""A whole run is paid for in so many parts: few enough to write to a disk, small enough to lose one in a crash."""

UNLIMITED = 1 << 62


class Meter:
    """Pays for up to `total` uses, each of `draws` draws within `span`; `free`: only counts, no price is fixed."""

    def __init__(
        self,
        total: int,
        draws: int,
        span: float,
        budget: Budget,
        ledger: Ledger | None,
        *,
        free: bool = False,
    ) -> None:
        self.total, self.draws, self.span, self.free = total, draws, span, free
        self.own = ledger is None
        self.ledger = Ledger(budget) if ledger is None else ledger
        self.paid: Ints = np.zeros(1, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<Meter: {self.paid[0]} of {self.total} paid>"

    def event(self, uses: int) -> Selections:
        """What so many uses cost."""
        return Selections(uses * self.draws, self.span)

    def pay(self, wanted: int) -> None:
        """Charge for the next stretch if use number `wanted` is not paid for."""
        if self.free:
            self.paid[0] = self.total
        elif self.paid[0] <= wanted < self.total:
            stretch = min(self.total - wanted, -(-self.total // STRETCHES))
            self.ledger.charge(self.event(stretch), f"private draws, {stretch} more")
            self.paid[0] = wanted + stretch

    def restored(self, used: int) -> None:
        """Go on where `used` uses were made; on a ledger of one's own they are charged for again."""
        if self.own and used and not self.free:
            self.ledger.charge(self.event(used), f"private draws, {used} before the snapshot")
        self.paid[0] = used


@inline
def paid_for(paid: Ints, used: int) -> bool:
    """Whether one more use is paid for."""
    return bool(used < paid[0])
