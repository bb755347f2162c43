r"""Ranked clicks: only the slot that was clicked first comes back; experts that probe in balanced blocks, and a bound.

A probe puts the item that is tried into its slot; those from there on move down, and the last drops out. (If the item
was there already, further down, it moves up and nothing drops out.) Whether just that slot is clicked says, on average,
what the item adds to the slots before it: one bit, for the one cell that coins chose.

Regret     at most `bound`, of order (k N log N)^(1/3) T^(2/3) for many slots, for people who do not react to slates;
           with Laplace noise, for people who react to nothing but what was published before their block
           (docs/maths/blocks.md, Theorem K4). For few people it may exceed what there is to gain, and says nothing.
Guarantee  docs/maths/blocks.md, Theorem K1.
Assumes    for regret: people click slot i first with probability f(first i items) - f(first i - 1 items), f monotone
           submodular with values in [0, 1]; payoff is whether anything is clicked. For privacy: nothing.
References Radlinski, Kleinberg & Joachims (2008), ICML, for ranked experts that learn from clicks; Streeter & Golovin
           (2008), NIPS 21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from diminuendo.learners.base.feedback import read_click
from diminuendo.learners.probing import draw, schedule
from diminuendo.learners.probing.exact import OpenBlocks
from diminuendo.learners.probing.learner import Blocks
from diminuendo.learners.probing.private import PrivateBlocks
from diminuendo.learners.probing.schedule import Theorem
from diminuendo.streams.people import People
from diminuendo.types import Decision, FeedbackKind, Floats, Ints, Items


class _Clicks(Blocks):
    """A cell is worth whether the item that was put in was the first to be clicked."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"click"})
    theorem: ClassVar[Callable[[int], Theorem]] = staticmethod(schedule.inserted)
    way: ClassVar[int] = draw.INSERTED

    def _read(self, decision: Decision, feedback: Any) -> int:
        return read_click(self, decision, feedback)

    def _worth(self, row: Items, probe: Items, answer: int) -> float:
        return float(answer == probe[0] and row[probe[0]] == probe[1])

    def _worths(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        first, last = int(rounds[0]), int(rounds[-1]) + 1
        clicked = people.first_clicks(slates[first:last], first)[rounds - first]
        slots, items = probes[:, 0], probes[:, 1]
        found: Floats = ((clicked == slots) & (slates[rounds, slots] == items)).astype(np.float64)
        return found


class RankedClicks(_Clicks, PrivateBlocks):
    """Clicks, with noise."""

    name: ClassVar[str] = "ranked-clicks"
    summary: ClassVar[str] = (
        "Hedge experts that probe one slot at a time and read clicks, published with noise; private; proved"
    )


class OpenRankedClicks(_Clicks, OpenBlocks):
    """Clicks, without noise."""

    name: ClassVar[str] = "ranked-clicks-open"
    summary: ClassVar[str] = "ranked-clicks without noise; not private; proved"
