"""Items of lazy experts: what people gain is added up exactly, out of sight, and the experts' items are published.

After each batch every expert keeps its item or draws another (experts/lazy.py); after the first all of them draw. Which
items they hold, and how often each has drawn, is what is published: drawn once, kept by the ledger, and then seen. An
expert that has drawn as often as it may keeps its item for good.

Guarantee  docs/maths/lazy.md, Theorem Z3. Coins and draws of the whole run are paid for when this is made.
Assumes    nothing about people: gains are clipped to [0, 1], in whole ticks. Whoever answers after her batch has
           closed has said nothing.
Excludes   timing, and the memory of the process: totals are what people said.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from diminuendo.errors import InvalidInput, OverBudget, refuse_copies
from diminuendo.experts.lazy import NOTHING, another, keeps
from diminuendo.privacy.events import Event
from diminuendo.privacy.ledger import Ledger
from diminuendo.privacy.process_guard import all_or_nothing
from diminuendo.randomness.words import SecretRandomness
from diminuendo.sums.clip import Clip
from diminuendo.sums.private_sum import RunningSum
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

ITEM_TICKS = 1 << 16
"""Whole numbers to one unit of gain."""


class LazyItems(RunningSum):
    """A running sum of gains, slot by slot, of which the items that k lazy experts hold are published."""

    __getstate__ = refuse_copies

    def __init__(
        self,
        n_items: int,
        slots: int,
        *,
        schedule: Schedule,
        rate: float,
        most: int,
        event: Event,
        ledger: Ledger,
        name: str,
    ) -> None:
        size = slots * n_items
        clip = Clip("l2", bound=math.sqrt(size) + 1, ticks=ITEM_TICKS)  # longer than anything: it never acts
        super().__init__(size, clip, schedule, across=slots)
        self.n_items, self.rate, self.event = n_items, rate, event
        self.most = most
        """How often each expert may draw."""
        self._per_tick, self._sizes = rate / ITEM_TICKS, schedule.sizes
        self._totals = np.zeros((slots, n_items), dtype=np.int64)
        self._held, self._drawn = np.full(slots, NOTHING), np.zeros(slots, dtype=np.int64)
        self.last: Floats = np.zeros(size)
        """1 where an expert holds an item, else 0; as it was published last."""
        about = (
            f"items of {slots} experts among {n_items}, {len(schedule)} times in {schedule.rounds} rounds, "
        )
        self._paid = ledger.buy(event, name, about + f"rate {rate!r}, {most} draws each")

    def release(self, secret: SecretRandomness) -> Floats:
        """Close the batch and publish what experts hold from now on. If it fails, nothing has happened."""
        with self._releasing, all_or_nothing(self._arrays()):
            number = self.batch
            if number >= len(self.schedule):
                raise OverBudget(f"All {len(self.schedule)} releases that were paid for have been made.")
            with self._lock:  # who comes to this batch from now on comes too late
                closed, batch = self._cells, self._cells.entries().reshape(self._totals.shape)
            found = self._paid.once(f"{number:06d}", lambda: self._next(batch, number, secret), secret)
            self._take_over(found)
            self._totals += batch
            with self._lock:
                self._open_next()
        closed.array[...] = 0
        return self.last

    def _next(self, batch: Ints, number: int, secret: SecretRandomness) -> Ints:
        """(2, k): which items experts hold from now on, and how often they have drawn."""
        held, drawn = self._held.copy(), self._drawn.copy()
        rounds = self._sizes[number]
        for slot, gains in enumerate(batch):
            fixed = drawn[slot] >= self.most  # asked first: then no coin is tossed
            if fixed or (
                held[slot] != NOTHING
                and keeps(int(held[slot]), gains, rounds, ITEM_TICKS, self._per_tick, secret)
            ):
                continue
            held[slot] = another(self._totals[slot] + gains, self._per_tick, secret)
            drawn[slot] += 1
        return np.stack([held, drawn])

    def _take_over(self, found: Ints) -> None:
        """From now on experts hold these items; `found` may be what was published before a crash."""
        if found.shape != (2, len(self._held)) or not self._could_be(*found):
            raise InvalidInput(f"What was published as {self._paid.name!r} before is of another size.")
        self._held[:], self._drawn[:] = found
        self._show()

    def _show(self) -> None:
        """What follows from the items that are held."""
        self.last = np.zeros(self.size)
        if (self._held != NOTHING).all():
            self.last[np.arange(len(self._held)) * self.n_items + self._held] = 1.0

    def _could_be(self, held: Ints, drawn: Ints) -> bool:
        """Whether experts could hold these items after that many draws."""
        items = ((held >= NOTHING) & (held < self.n_items)).all()
        return bool(items and ((drawn >= 0) & (drawn <= self.most)).all())

    def deviation(self, release: int) -> float:
        """None: items are published as they are."""
        return 0.0

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of one that was made with the same arguments."""
        super().restore(snapshot)
        self._show()

    def _facts(self) -> tuple[Any, ...]:
        return (*super()._facts(), self.rate, self._paid.name)

    def _arrays(self) -> list[Any]:
        return [self._totals, self._held, self._drawn]
