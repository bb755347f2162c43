"""The noisy response count: for operators who ask whether feedback arrives. It is charged to the ledger.

That a user responds is as private as the response, so responses are not counted in the open. If a placement sets a part
of its population's budget aside (`response_count`), each response adds one to a sum, which is published a few times
(sums/private_sum.py), beside how many rounds could have been answered. What is left of the budget is the learner's.
"""

from __future__ import annotations

import numpy as np
import scipy

from diminuendo.learners.base.frame import LONGEST
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness.words import SecretRandomness
from diminuendo.service.records import NoisyCount, PlacementSpec
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import PrivateSum
from diminuendo.sums.schedule import Schedule, equal, geometric
from diminuendo.types import Ints

TIMES, FIRST, GROWTH = 24, 256, 1.5
"""How often it is published, if the number of users is known; else the first time, in rounds, and how they grow."""


class ResponseCount:
    """The sum of one placement; nothing at all where no budget was set aside for it."""

    def __init__(self, spec: PlacementSpec, ledger: Ledger) -> None:
        self._sum: PrivateSum | None = None
        if spec.response_count:
            self._sum = PrivateSum(
                1, schedule=_schedule(spec.rounds), cost=ledger.budget.share(spec.response_count), ledger=ledger,
                clip=Clip("l1" if ledger.budget.delta == 0 else "l2", ticks=1), name="response_count",
            )  # fmt: skip

    def add(self, rounds: Ints) -> None:
        """Count responses to these rounds, each once, before they are published."""
        if self._sum is not None:
            batches = np.searchsorted(self._sum.schedule.ends, rounds, side="right")
            for batch in np.unique(batches).tolist():
                if batch < len(self._sum.schedule):
                    many = int((batches == batch).sum())
                    self._sum.add_rows(scipy.sparse.csr_array(np.ones((many, 1))), batch=batch)

    def published(self, settled: int, secret: SecretRandomness) -> NoisyCount | None:
        """What is published now that `settled` rounds are settled; None where nothing is due."""
        result, total = None, self._sum
        while total is not None and total.left and total.batch < total.schedule.closed_by(settled):
            end = total.schedule.ends[total.batch]
            about = float(total.release(secret)[0])
            result = NoisyCount(round(about, 1), end, round(total.deviation(total.batch), 1))
        return result

    def snapshot(self) -> bytes:
        """What was added so far; as private as who answered."""
        return b"" if self._sum is None else self._sum.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        if self._sum is not None and snapshot:
            self._sum.restore(snapshot)

    @property
    def cost(self) -> list[Event]:
        """What it costs, for who adds up costs beforehand."""
        return [] if self._sum is None else [self._sum.event]


def _schedule(users: int | None) -> Schedule:
    return equal(users, min(users, TIMES)) if users else geometric(LONGEST, FIRST, GROWTH)
