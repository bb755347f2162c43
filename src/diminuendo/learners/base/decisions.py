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
from diminuendo.types import EMPTY_SLOT, Decision, Ints, Items, Slate, decided

NO_PROBE = -1


class Desk:
    """A ring of the last `patience` decisions."""

    def __init__(self, slots: int, patience: int) -> None:
        self.patience = _validate.positive_int(patience, "patience")
        self.issued: Ints = np.zeros(1, dtype=np.int64)
        self._rows: Items = np.full((self.patience, slots), EMPTY_SLOT, dtype=np.int32)
        self.probes: Items = np.full((self.patience, 3), NO_PROBE, dtype=np.int32)
        self.waiting: NDArray[np.bool_] = np.zeros(self.patience, dtype=np.bool_)
        self._lives: Ints = np.zeros(self.patience, dtype=np.int64)  # of decisions, as in types.Decision
        self.life = 0
        self._handed: dict[int, tuple[Decision, Items]] = {}  # by place; not yet in `_rows` and `_lives`

    @property
    def rows(self) -> Items:
        """The slots of all decisions on the desk."""
        self._write()
        return self._rows

    @property
    def lives(self) -> Ints:
        """Of all decisions on the desk."""
        self._write()
        return self._lives

    def _write(self) -> None:
        """What was handed out into arrays: only when somebody wants them, who holds the learner's lock."""
        for place, (decision, row) in self._handed.items():
            self._rows[place], self._lives[place] = row, decision.life
        self._handed.clear()

    def row_at(self, place: int) -> Items:
        """The slots of the decision at that place; to be read only."""
        handed = self._handed.get(place)
        row: Items = self._rows[place] if handed is None else handed[1]
        return row

    def issue(
        self,
        row: Items,
        probe: Items | None,
        counts: bool = True,
        propensity: float | None = None,
        slate: Slate | None = None,
    ) -> Decision:
        """Hand out the next decision: `row` is shown (EMPTY_SLOT skipped), `probe` starts with slot and item.

        Where the answer does not count, the decision is as one that has its answer already. `slate`: what `row` shows,
        from those who know. The desk keeps `row` itself, which must not change any more.
        """
        number = self.issued.item(0)
        place, probed = number % self.patience, None
        if probe is not None and probe.item(0) != NO_PROBE:
            self.probes[place] = probe
            probed = probe.item(0), probe.item(1)
        elif self.probes.item(place, 0) != NO_PROBE:  # most rounds have none, as those before them
            self.probes[place] = NO_PROBE
        decision = decided(number, shown(row) if slate is None else slate, probed, propensity, self.life)
        self._handed[place], self.waiting[place] = (decision, row), counts
        self.issued[0] = number + 1
        return decision

    def look(self, decision: Decision) -> int | None:
        """Where a decision lies that may still be answered; None where it was answered already or has expired."""
        issued, number = self.issued.item(0), decision.round
        if not 0 <= number < issued:
            raise InvalidInput(
                f"Round {decision.round} was never chosen here ({issued} rounds so far). "
                "Answer with the decision that choose() returned, to the learner that returned it."
            )
        if number < issued - self.patience:
            return None
        place = number % self.patience
        handed = self._handed.get(place)
        if handed is None:
            slate, life = shown(self._rows[place]), self._lives.item(place)
        elif handed[0] is decision:  # nearly always
            return place if self.waiting.item(place) else None
        else:
            slate, life = handed[0].slate, handed[0].life
        if decision.slate != slate:  # asked first: what is said must not depend on who answered
            raise InvalidInput(
                f"Round {decision.round} showed another slate. Answer with the decision that choose() returned, "
                "to the learner that returned it."
            )
        mine = self.waiting.item(place) and decision.life == life
        return place if mine else None  # one of before a crash came too late

    def close(self, place: int) -> None:
        """The decision has its answer."""
        self.waiting[place] = False

    def row(self, decision: Decision) -> Items:
        """The slots of a decision that has not expired, -1 where a slot is empty."""
        if not max(0, self.issued[0] - self.patience) <= decision.round < self.issued[0]:
            raise InvalidInput(f"Round {decision.round} has expired, or was never chosen here.")
        return self.row_at(decision.round % self.patience).copy()

    def pass_by(self, rows: Items) -> None:
        """These decisions were made and answered without coming to the desk."""
        last = int(self.issued[0]) + len(rows)
        self._write()
        recent = rows[-self.patience :]
        first = (last - len(recent)) % self.patience
        ahead = min(len(recent), self.patience - first)  # the rest goes round, to the first places
        self._rows[first : first + ahead], self._rows[: len(recent) - ahead] = recent[:ahead], recent[ahead:]
        for places in (slice(first, first + ahead), slice(len(recent) - ahead)):
            self.probes[places], self.waiting[places], self._lives[places] = NO_PROBE, False, self.life
        self.issued[0] = last

    def check(self, n_items: int) -> None:
        """Refuse a desk, as restored from a snapshot, that could not have come about."""
        sound = self.issued[0] >= 0 and self.rows.min() >= EMPTY_SLOT and self.rows.max() < n_items
        slots = self.rows.shape[1]
        probed = self.probes[self.probes[:, 0] != NO_PROBE]
        inside = (probed >= 0).all() and (probed[:, 0] < slots).all() and (probed[:, 1] < n_items).all()
        if not (sound and inside):
            raise InvalidInput("The snapshot holds decisions that could not have been made; it was altered.")


def round_at(desk: Desk, place: int) -> int:
    """The round whose decision lies at that place of the desk."""
    last: int = desk.issued.item(0) - 1
    return last - (last - place) % desk.patience


def shown(row: Items) -> tuple[int, ...]:
    """The items of a row, without its empty slots."""
    items: list[int] = row.tolist()
    return tuple(item for item in items if item != EMPTY_SLOT) if EMPTY_SLOT in items else tuple(items)
