r"""Bandit feedback in balanced blocks: only the payoff of the slate comes back, and regret is bounded all the same.

`bandit-blocks` tries an item behind the slots before its own and shows nothing after it, as ordered experts need it.
`bandit-blocks-full` tries it in place of one slot and keeps the others: a slate stays whole, and a probe loses at most
what one slot adds. Its experts draw independently of each other, may name the same item, and are held to one half.

Regret     at most `bound`, of order k (N log N)^(1/3) T^(2/3) (docs/maths/blocks.md, Theorem K2), for people who do not
           react to slates; with Laplace noise, for people who react to nothing but what was published before their
           block. For `bandit-blocks-full`: `bound_to_half`, to half of the best slate (Theorem K3), for the latter.
           For few people bounds may exceed what there is to gain; then they say nothing.
Guarantee  docs/maths/blocks.md, Theorem K1.
Assumes    for regret: people are monotone submodular, with values in [0, 1]. For privacy: nothing.
References Streeter & Golovin (2008), NIPS 21, for experts that explore; Agarwal & Singh (2017), ICML, for noise as part
           of gains; Kalai & Vempala (2005), JCSS 71, for noise of which only the law in each round matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from diminuendo.learners.base.feedback import read_payoff
from diminuendo.learners.probing import draw as blocks_draw
from diminuendo.learners.probing import schedule
from diminuendo.learners.probing.exact import OpenBlocks
from diminuendo.learners.probing.learner import Blocks
from diminuendo.learners.probing.private import PrivateBlocks
from diminuendo.learners.probing.schedule import SHARE, Theorem
from diminuendo.streams.people import People
from diminuendo.types import Decision, FeedbackKind, Floats, Ints, Items


class _Payoffs(Blocks):
    """A cell is worth the payoff of the slate with which it was probed."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"bandit"})
    theorem: ClassVar[Callable[[int], Theorem]] = staticmethod(schedule.short)
    way: ClassVar[int] = blocks_draw.SHORT

    def _read(self, decision: Decision, feedback: Any) -> float:
        return read_payoff(self, feedback)

    def _worth(self, row: Items, probe: Items, answer: float) -> float:
        return answer

    def _worths(self, people: People, rounds: Ints, slates: Items, probes: Items) -> Floats:
        out = np.empty(len(rounds))
        blocks_draw.payoffs(people.table, rounds, slates, np.empty(people.largest_state), out)
        return out


class _FullPayoffs(_Payoffs):
    """The slate stays full while an item is tried."""

    theorem: ClassVar[Callable[[int], Theorem]] = staticmethod(schedule.full)
    way: ClassVar[int] = blocks_draw.FULL
    reacting: ClassVar[bool] = True

    @property
    def bound_to_half(self) -> float:
        """What is proved of the expected regret of the whole run to half of the best slate."""
        return super().bound

    @property
    def bound(self) -> float:
        """What follows for the regret to (1 - 1/e) of the best slate, which is of order T."""
        return self.bound_to_half + (SHARE - 0.5) * self.plan.horizon


class BanditBlocks(_Payoffs, PrivateBlocks):
    """Probes end the slate."""

    name: ClassVar[str] = "bandit-blocks"
    summary: ClassVar[str] = (
        "Hedge experts that probe in balanced blocks, published with noise; bandit; private; proved"
    )


class BanditBlocksFull(_FullPayoffs, PrivateBlocks):
    """Probes keep the other slots."""

    name: ClassVar[str] = "bandit-blocks-full"
    summary: ClassVar[str] = (
        "as bandit-blocks, and slates stay full while items are tried; private; proved to half of the best"
    )


class OpenBanditBlocks(_Payoffs, OpenBlocks):
    """Probes end the slate; no noise."""

    name: ClassVar[str] = "bandit-blocks-open"
    summary: ClassVar[str] = "bandit-blocks without noise; not private; proved"


class OpenBanditBlocksFull(_FullPayoffs, OpenBlocks):
    """Probes keep the other slots; no noise."""

    name: ClassVar[str] = "bandit-blocks-full-open"
    summary: ClassVar[str] = "bandit-blocks-full without noise; not private; proved to half of the best"
