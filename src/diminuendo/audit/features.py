"""Features: what an attacker looks at, as columns of numbers, one row for each view.

    slates      how often each slot showed each item, soon after the victim, at last, and in all; how often it showed
                what she was shown, or asked about, herself; how often slates changed
    published   every number; what changed from one publication to the next; how many there were; and the number that
                stands where her item was, in case she was asked about one

`words` are views cut to pieces that can be compared as a whole: everything that was shown after her, and what was shown
next beside what she was shown. Nothing here is tuned to a learner; the classifiers find out what matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diminuendo.audit.subjects import View
from diminuendo.types import EMPTY_SLOT, Floats

SOON = 4
"""So many rounds after the victim are looked at by themselves."""
NUMBERS = 48
"""Of what is published so many numbers are looked at: the first ones, in which a victim who comes first is found."""


@dataclass(frozen=True)
class Reader:
    """Reads views into columns. What sizes there are is learned from some views, and kept for all others."""

    n_items: int
    victim: int
    sizes: tuple[int, ...]
    """How many numbers each publication has."""

    @classmethod
    def of(cls, views: Sequence[View], n_items: int, victim: int) -> Reader:
        """For views like these."""
        most = max(len(view.published) for view in views)
        sizes = tuple(
            max(view.published[place].size for view in views if place < len(view.published))
            for place in range(most)
        )
        return cls(n_items, victim, sizes)

    def columns(self, views: Sequence[View]) -> Floats:
        """(views, columns)."""
        return np.hstack([self._shown(views), self._published(views)])

    def words(self, views: Sequence[View]) -> list[list[bytes]]:
        """For each kind of word, that of every view."""
        after = self.victim + 1
        whole = [view.slates[after:].tobytes() + view.probes[after:].tobytes() for view in views]
        return [
            [view.slates.tobytes() + view.probes.tobytes() for view in views],
            whole,
            [
                view.probes[self.victim].tobytes() + view.slates[self.victim : after + 1].tobytes()
                for view in views
            ],
        ]

    def _shown(self, views: Sequence[View]) -> Floats:
        slates = np.stack([view.slates for view in views])  # (views, rounds, slots)
        probes = np.stack([view.probes for view in views])  # (views, rounds, 2)
        hers, asked = slates[:, self.victim, :], probes[:, self.victim, 1]
        later, probed = slates[:, self.victim + 1 :], probes[:, self.victim + 1 :, 1]
        found = []
        for rounds in (later[:, :1], later[:, -1:], later[:, :SOON], later):
            for item in (EMPTY_SLOT, *range(self.n_items)):
                found.append((rounds == item).sum(axis=1))
            found.append((rounds == hers[:, None, :]).sum(axis=1))
            known = (asked != EMPTY_SLOT)[:, None, None]
            found.append(((rounds == asked[:, None, None]) & known).sum(axis=1))
        found.append((slates[:, 1:] != slates[:, :-1]).sum(axis=1))
        found.append((probed != EMPTY_SLOT).sum(axis=1)[:, None])
        found.append((asked != EMPTY_SLOT)[:, None])
        return np.hstack(found).astype(np.float64)

    def _published(self, views: Sequence[View]) -> Floats:
        table = np.zeros((len(views), sum(self.sizes)))
        at_hers = np.zeros((len(views), len(self.sizes)))
        for row, view in enumerate(views):
            start = 0
            asked = view.probes[self.victim]
            for place, (size, numbers) in enumerate(zip(self.sizes, view.published, strict=False)):
                flat = numbers.reshape(-1)[:size].astype(np.float64)
                table[row, start : start + len(flat)] = flat
                start += size
                cell = asked[0] * self.n_items + asked[1] if len(flat) > self.n_items else asked[1]
                if asked[1] != EMPTY_SLOT and cell < len(flat):
                    at_hers[row, place] = flat[cell]
        starts = np.cumsum((0, *self.sizes))
        changes = [
            table[:, starts[place] : starts[place + 1]] - table[:, starts[earlier] : starts[earlier + 1]]
            for place, size in enumerate(self.sizes)
            for earlier in range(place - 1, -1, -1)
            if self.sizes[earlier] == size
        ]
        count = np.array([[len(view.published)] for view in views], dtype=np.float64)
        kept = [part[:, :NUMBERS] for part in (table, at_hers, np.hstack([*changes, count]))]
        return np.hstack([*kept, count])
