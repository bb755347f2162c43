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
        self.lives: Ints = np.zeros(self.patience, dtype=np.int64)  # of decisions, as in types.Decision
        self.life = 0

    def issue(
        self, row: Items, probe: Items, counts: bool = True, propensity: float | None = None
    ) -> Decision:
        """Hand out the next decision: `row` is shown (EMPTY_SLOT skipped), `probe` starts with slot and item.

        Where the answer does not count, the decision is as one that has its answer already.
        """
        number = self.issued.item(0)
        place = number % self.patience
        slot = probe.item(0)
        self.rows[place], self.waiting[place], self.lives[place] = row, counts, self.life
        if (
            slot != NO_PROBE or self.probes.item(place, 0) != NO_PROBE
        ):  # most rounds have none, as those before them
            self.probes[place] = probe
        self.issued[0] = number + 1
        probed = None if slot == NO_PROBE else (slot, probe.item(1))
        return Decision(number, shown(row), probed, propensity, self.life)

    def look(self, decision: Decision) -> int | None:
        """Where a decision lies that may still be answered; None where it was answered already or has expired."""
        issued = self.issued.item(0)
        if not 0 <= decision.round < issued:
            raise InvalidInput(
                f"Round {decision.round} was never chosen here ({issued} rounds so far). "
                "Answer with the decision that choose() returned, to the learner that returned it."
            )
        if decision.round < issued - self.patience:
            return None
        place = decision.round % self.patience
        if decision.slate != shown(
            self.rows[place]
        ):  # asked first: what is said must not depend on who answered
            raise InvalidInput(
                f"Round {decision.round} showed another slate. Answer with the decision that choose() returned, "
                "to the learner that returned it."
            )
        mine = self.waiting[place] and decision.life == self.lives[place]
        return place if mine else None  # one of before a crash came too late

    def close(self, place: int) -> None:
        """The decision has its answer."""
        self.waiting[place] = False

    def row(self, decision: Decision) -> Items:
        """The slots of a decision that has not expired, -1 where a slot is empty."""
        if not max(0, self.issued[0] - self.patience) <= decision.round < self.issued[0]:
            raise InvalidInput(f"Round {decision.round} has expired, or was never chosen here.")
        row: Items = self.rows[decision.round % self.patience].copy()
        return row

    def pass_by(self, rows: Items) -> None:
        """These decisions were made and answered without coming to the desk."""
        last = int(self.issued[0]) + len(rows)
        recent = rows[-self.patience :]
        first = (last - len(recent)) % self.patience
        ahead = min(len(recent), self.patience - first)  # the rest goes round, to the first places
        self.rows[first : first + ahead], self.rows[: len(recent) - ahead] = recent[:ahead], recent[ahead:]
        for places in (slice(first, first + ahead), slice(len(recent) - ahead)):
            self.probes[places], self.waiting[places], self.lives[places] = NO_PROBE, False, self.life
        self.issued[0] = last

    def check(self, n_items: int) -> None:
        """Refuse a desk, as restored from a snapshot, that could not have come about."""
        sound = self.issued[0] >= 0 and self.rows.min() >= EMPTY_SLOT and self.rows.max() < n_items
        slots = self.rows.shape[1]
        probed = self.probes[self.probes[:, 0] != NO_PROBE]
        inside = (probed >= 0).all() and (probed[:, 0] < slots).all() and (probed[:, 1] < n_items).all()
        if not (sound and inside):
            raise InvalidInput("The snapshot holds decisions that could not have been made; it was altered.")


def shown(row: Items) -> tuple[int, ...]:
    """The items of a row, without its empty slots."""
    items: list[int] = row.tolist()
    return tuple(item for item in items if item != EMPTY_SLOT) if EMPTY_SLOT in items else tuple(items)
