r"""Boosted: one leader on fractions of items, one private sum of N entries whatever k is, a bound against adversaries.

A point x of [0, 1]^N with sum k says how likely each item is shown; slates are drawn from it by pivotal rounding. For
each person public coins draw a level z and a set R, each item with probability z x_a. She contributes what each item
adds to R, or what R would lose without it. That vector, averaged, is a direction in which the point should move: to
follow it comes as close to (1 - 1/e) of the best slate as greedy would, with one sum in place of k. Sums are
published batch by batch, each with noise of its own, and the leader's rate follows what following has cost.

Regret     at most `bound`, of order k sqrt(T log(N/k) sqrt(N) / epsilon), for any people whatever, each of whom may
           react to all that was published before (docs/maths/released.md, Theorem R2). With `clip` the bound is for
           people whose gains are no longer than that.
Guarantee  docs/maths/released.md, Theorem R1.
Assumes    for regret: people are monotone submodular, with values in [0, 1]. For privacy: nothing.
References Zhang, Deng, Chen, Hu & Yang (2022), NeurIPS 35, for boosting; Agarwal & Singh (2017), ICML, for noise as
           part of the gains; Steele, Lea & Flood (2014), OOPSLA, for spelling coins from a word.
"""

from __future__ import annotations

import math

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.experts.capped_simplex import LeaderState, leader, running, spread, step_cost
from diminuendo.learners.released.menu import PointMenu
from diminuendo.sums.schedule import Schedule
from diminuendo.types import ONE_MINUS_1_OVER_E, Floats, Ints

LENGTH = 8.0
"""People in a batch, in units of the noise. The bound is least at 2, and 1.46 times that at 8, where fewer releases
put four times less noise into the sums."""


class BoostedLeader:
    """A leader on the capped simplex: the point that follows what was published, at a rate that following has set.

    `cost`: what following has cost so far. `ends`: running sums of the point; None: the uniform point.
    `leader_state`: what `leader` says of the last release, once there was one.
    """

    def __init__(
        self,
        n_items: int,
        slots: int,
        schedule: Schedule,
        cost: float | None = None,
        ends: Ints | None = None,
        leader_state: LeaderState | None = None,
    ) -> None:
        self.n_items, self.slots, self.schedule = n_items, slots, schedule
        self._spread = spread(n_items, slots)
        self._cost = np.array(
            [self._spread if cost is None else cost]
        )  # at first, so that the first rate is 1
        uniform = np.broadcast_to(slots / n_items, n_items)
        self._ends = running(uniform, slots) if ends is None else ends
        self._leader_state = leader_state

    @property
    def rate(self) -> float:
        """How fast the leader follows: the slower, the more following has cost."""
        return float(self._spread / self._cost[0])

    def menu(self, first: int, end: int | None, words: int) -> PointMenu:
        """Slates from the point."""
        return PointMenu(self.n_items, self.slots, first, end, words, self._ends)

    def following(self, before: Floats, published: Floats) -> BoostedLeader:
        """The leader that follows what was published, at a rate that what the step has cost has slowed down."""
        if self.n_items == self.slots:
            return self
        sums, step = ONE_MINUS_1_OVER_E * before, ONE_MINUS_1_OVER_E * (published - before)
        cost = step_cost(sums, step, self.slots, self.rate, self._leader_state)
        return self._leading(published, float(self._cost[0] + cost))

    def restored(self, n_releases: int, published: Floats) -> BoostedLeader:
        """The leader of what was published last, with the cost that the snapshot holds."""
        if not (self._spread <= self._cost[0] < math.inf):
            raise InvalidInput("The snapshot holds a cost that could not have come about; it was altered.")
        if n_releases == 0 or self.n_items == self.slots:
            return self
        return self._leading(published, float(self._cost[0]))

    def _leading(self, published: Floats, cost: float) -> BoostedLeader:
        point, state = leader(ONE_MINUS_1_OVER_E * published, self.slots, float(self._spread / cost))
        ends = running(point, self.slots)
        return BoostedLeader(self.n_items, self.slots, self.schedule, cost, ends, state)

    def arrays(self) -> tuple[Floats]:
        """What following has cost so far."""
        return (self._cost,)

    def bound(self, deviations: tuple[float, float], ticks: int) -> float:
        """Theorem R2."""
        n, k, sizes = self.n_items, self.slots, self.schedule.sizes
        if n == k:
            return 0.0
        noise, longest = ONE_MINUS_1_OVER_E * deviations[0], ONE_MINUS_1_OVER_E * max(sizes)
        steps = k / 2 * sum((ONE_MINUS_1_OVER_E * size) ** 2 / 4 + noise**2 for size in sizes)
        most = k * (longest + 2 * noise * math.sqrt(2 * math.log(2 * n * len(sizes))))
        rounding = k * ONE_MINUS_1_OVER_E * (self.schedule.rounds + 2 * len(sizes) + 2) / ticks
        return float(
            2 * math.sqrt(2 * self._spread * steps) + 2 * max(most, self._spread) + 2 * k * noise + rounding
        )
