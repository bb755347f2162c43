"""The draw_budget: private draws are paid for before they are made, a stretch at a time.

Compiled code counts what it uses and stops where what was paid for ends; then the next stretch is charged to the
ledger, or refused. Without a ledger there is one stretch, the whole run. How much is used depends on rounds and public
coins only, never on what people said.

Draws may be of several experts of whom a person touches one, decided by public coins: then a stretch pays for so many
draws of *each*, and each has its own count. A learner that goes on from a snapshot cannot know what was drawn since, so
it counts what was left of the last stretch as used up, for every expert, and pays anew: with the same ledger, nothing
is drawn that was not paid for, however often it is restored.
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import inline
from diminuendo.errors import InvalidInput
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.types import Ints

STRETCHES = 100
"""A whole run is paid for in so many parts: few enough to write to a disk, small enough to lose one in a crash."""

UNLIMITED = 1 << 62


class DrawBudget:
    """Pays for up to `total` uses, each of `draws` draws within `span`; of each of `experts`."""

    def __init__(
        self,
        total: int,
        draws: int,
        span: float,
        ledger: Ledger | None,
        *,
        experts: int = 1,
        secure: bool = True,
    ) -> None:
        self.total, self.draws, self.span, self.secure = total, draws, span, secure
        self.ledger = ledger
        """None: uses are counted, and nobody is charged."""
        self.paid: Ints = np.zeros(experts, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<DrawBudget: {self.paid.max()} of {self.total} paid>"

    def event(self, uses: int) -> Selections:
        """What so many uses cost."""
        return Selections(uses * self.draws, self.span)

    def pay(self, wanted: int, expert: int = 0) -> None:
        """Charge for the next stretch if use number `wanted` of an expert is not paid for."""
        if wanted < self.paid[expert]:
            return
        if wanted >= self.total:
            raise InvalidInput(f"All {self.total} private draws that there may be were made.")
        stretch = self.total - int(self.paid.min())  # all of it, where nobody is charged
        if self.ledger is not None:
            stretch = min(stretch, -(-self.total // STRETCHES))
            self.ledger.charge(self.event(stretch), f"private draws, {stretch} more", secure=self.secure)
        np.minimum(
            self.paid + stretch, self.total, out=self.paid
        )  # of none more, though after a restart they differ

    def restored(self, used: Ints) -> None:
        """Go on where so many uses of each expert were made; what was paid for beyond that may be used up."""
        self.paid[:] = used


@inline
def paid_for(paid: Ints, expert: int, used: int) -> bool:
    """Whether one more use is paid for."""
    return bool(used < paid[expert])
