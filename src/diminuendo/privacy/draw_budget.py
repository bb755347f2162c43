"""A draw budget: private draws are paid for before they are made, in instalments.

Compiled code counts what it uses and stops where what was paid for ends; then the next instalment is charged to the
ledger, or refused. Without a ledger there is one instalment, the whole run. How much is used depends on rounds and
public randomness only, never on feedback.

Draws may be of several experts of which a user touches one, by public randomness: then an instalment pays for the
same number of draws of *each*, and each has its own count. A learner that goes on from a snapshot cannot know what was
drawn since, so it counts what was left of the last instalment as used up, for every expert, and pays again: with the
same ledger, nothing is drawn that was not paid for, however often it is restored.
"""

from __future__ import annotations

import numpy as np

from diminuendo._numba import inline
from diminuendo.errors import InvalidInput, refuse_copies
from diminuendo.privacy.events import Selections
from diminuendo.privacy.ledger import Ledger
from diminuendo.types import Ints

INSTALMENTS = 100
"""In how many parts a whole run is paid for: few enough to write to a disk, small enough to lose one in a crash."""

UNLIMITED = 1 << 62
"""What stands for the number of draws that are paid for where nothing is paid."""


class DrawBudget:
    """Pays for up to `total` uses, each of `draws` draws within `span`; of each of `experts`."""

    __getstate__ = refuse_copies

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
        """None: uses are counted, and nothing is charged."""
        self.paid: Ints = np.zeros(experts, dtype=np.int64)

    def __repr__(self) -> str:
        return f"<DrawBudget: {self.paid.max()} of {self.total} paid>"

    def event(self, uses: int) -> Selections:
        """What `uses` uses cost."""
        return Selections(uses * self.draws, self.span)

    def pay(self, wanted: int, expert: int = 0) -> None:
        """Charge for the next instalment if use number `wanted` of an expert is not paid for."""
        if wanted < self.paid[expert]:
            return
        if wanted >= self.total:
            raise InvalidInput(f"All {self.total} private draws that there may be were made.")
        instalment = self.total - int(self.paid.min())  # all of it without a ledger
        if self.ledger is not None:
            instalment = min(instalment, -(-self.total // INSTALMENTS))
            self.ledger.charge(
                self.event(instalment), f"private draws, {instalment} more", secure=self.secure
            )
        # Of no expert more than there may be, though after a restart they differ.
        np.minimum(self.paid + instalment, self.total, out=self.paid)

    def restored(self, used: Ints) -> None:
        """Go on where each expert has made `used` uses; what was paid for beyond that may be used up."""
        self.paid[:] = used


@inline
def paid_for(paid: Ints, expert: int, used: int) -> bool:
    """Whether one more use is paid for."""
    return bool(used < paid[expert])
