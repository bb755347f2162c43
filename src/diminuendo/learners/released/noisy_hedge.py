r"""Noisy Hedge: k ordered experts, each of which draws by its own sums of gains, published with noise.

Expert i draws the item of slot i in proportion to exp(rate * its published sums), anew for each person, among the items
that are not shown yet. A person contributes, for every slot, what each item would have added to the slots before it:
k N numbers, published together batch by batch in buffered sums, whose noise hardly grows with the number of releases.

Regret     at most `bound`, of order sqrt(k T log N) once batches are short, plus k^(3/2) sqrt(N) log T / epsilon for
           noise, which does not grow like T; for people who do not react to slates (docs/maths/released.md,
           Theorem R3). With `clip` the bound is for people whose gains, all slots together, are no longer than that.
Guarantee  docs/maths/released.md, Theorem R1.
Assumes    for regret: people are monotone submodular, with values in [0, 1]. For privacy: nothing.
References Streeter & Golovin (2008), NIPS 21; Kalai & Vempala (2005), JCSS 71, for noise of which only the law in each
           round matters; Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), FOCS, for buffered sums.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo.learners.released.hedge_bound import curvature, noise_cost
from diminuendo.learners.released.menu import ExpertsInTurn
from diminuendo.randomness.shares import softmax
from diminuendo.sums.schedule import Schedule
from diminuendo.types import Floats, Ints

WORK = 32
"""A batch has one person for this many entries of the sum: publishing then takes a few dozen numbers a person."""
LEAST = 16
"""A batch has this many people at least, since a release takes as long as a few dozen rounds whatever its size."""


def people_in_a_batch(size: int, horizon: int) -> int:
    """The size of batches for a sum of `size` entries: releases are frequent, and still cheap."""
    return math.ceil(max(LEAST, size / WORK, horizon / most_releases(horizon)))


def most_releases(rounds: int) -> int:
    """The number of releases that buffered sums of `rounds` people have room for in 64 bits."""
    return 1 << 16 if rounds <= 1 << 21 else 1 << 12


def hedge_rate(n_items: int, slots: int, schedule: Schedule) -> float:
    """The rate for which the bound is least, noise apart."""
    squares = sum(size**2 for size in schedule.sizes)
    return min(1.0, math.sqrt(2 * slots * math.log(max(2, n_items)) / squares))


class NoisyExperts:
    """k Hedge experts on the sums that were published last. `ends`: running sums of their shares; None: all alike."""

    def __init__(
        self, n_items: int, slots: int, schedule: Schedule, rate: float, ends: Ints | None = None
    ) -> None:
        self.n_items, self.slots, self.schedule, self.rate = n_items, slots, schedule, rate
        self._ends = softmax(np.zeros((slots, n_items))) if ends is None else ends

    def menu(self, first: int, end: int | None, words: int) -> ExpertsInTurn:
        """Expert after expert, by their shares."""
        return ExpertsInTurn(self.n_items, self.slots, first, end, words, self._ends)

    def following(self, before: Floats, published: Floats) -> NoisyExperts:
        """Experts on what was published."""
        ends = softmax(self.rate * published.reshape(self.slots, self.n_items))
        return NoisyExperts(self.n_items, self.slots, self.schedule, self.rate, ends)

    def restored(self, n_releases: int, published: Floats) -> NoisyExperts:
        """Experts on what was published last."""
        return self.following(published, published)

    def arrays(self) -> tuple[()]:
        """Nothing: all of it is in what was published."""
        return ()

    def bound(self, deviations: tuple[float, float], ticks: int) -> float:
        """Theorem R3."""
        logarithm, longest = math.log(max(2, self.n_items)), self.rate * max(self.schedule.sizes)
        squares = sum(size**2 for size in self.schedule.sizes)
        noise = noise_cost(self.rate, deviations[1], self.n_items)
        rounding = (self.slots + 3 * self.rate) * self.schedule.rounds / ticks
        return float(
            self.slots * (logarithm / self.rate + noise)
            + self.rate * curvature(self.slots, longest) * squares
            + rounding
        )
