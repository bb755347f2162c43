"""The desk: which decisions are out, and may still be answered.

Answers may come late, out of order, twice or never. A decision expires when `patience` further rounds have
been chosen, a public fact; the first answer before that counts. The desk itself says nothing about
who answered: an answer that no longer counts looks like one that does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import EMPTY_SLOT, Decision, Ints, Items

NO_PROBE = -1


class Desk:
    """A ring of the last `patience` decisions."""

    def __init__(self, slots: int, patience: int) -> None:
        self.patience = _validate.positive_int(patience, "patience")
        self.issued: Ints = np.zeros(1, dtype=np.int64)
        self.rows: Items = np.full((self.patience, slots), EMPTY_SLOT, dtype=np.int32)
        self.probes: Items = np.full((self.patience, 3), NO_PROBE, dtype=np.int32)
        self.waiting: NDArray[np.bool_] = np.zeros(self.patience, dtype=np.bool_)

    def issue(self, row: Items, probe: Items) -> Decision:
        """Hand out the next decision: `row` is shown (EMPTY_SLOT skipped), `probe` starts with slot and item."""
        number = int(self.issued[0])
        place = number % self.patience
        self.rows[place], self.probes[place], self.waiting[place] = row, probe, True
        self.issued[0] = number + 1
        shown = tuple(int(item) for item in row if item != EMPTY_SLOT)
        return Decision(number, shown, None if probe[0] == NO_PROBE else (int(probe[0]), int(probe[1])))

    def look(self, decision: Decision) -> int | None:
        """Where a decision lies that may still be answered; None where it was answered already or has expired."""
        issued = int(self.issued[0])
        if not 0 <= decision.round < issued:
            raise InvalidInput(
                f"Round {decision.round} was never chosen here ({issued} rounds so far). "
                "Answer with the decision that choose() returned, to the learner that returned it."
            )
        place = decision.round % self.patience
        if decision.round < issued - self.patience or not self.waiting[place]:
            return None
        if decision.slate != tuple(int(item) for item in self.rows[place] if item != EMPTY_SLOT):
            raise InvalidInput(
                f"Round {decision.round} showed another slate. Answer with the decision that choose() returned, "
                "to the learner that returned it."
            )
        return place

    def close(self, place: int) -> None:
        """The decision has its answer."""
        self.waiting[place] = False

    def pass_by(self, rounds: int) -> None:
        """`rounds` decisions were made and answered without coming to the desk."""
        first = int(self.issued[0])
        last = first + rounds
        self.waiting[np.arange(max(first, last - self.patience), last) % self.patience] = False
        self.issued[0] = last
