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
from typing import Any, ClassVar

import numpy as np

from diminuendo._numba import kernel
from diminuendo.errors import InvalidInput
from diminuendo.experts.capped_simplex import Lead, draw_pivotal, leader, running, spread, step_cost
from diminuendo.learners.base import propensity
from diminuendo.learners.released.boosted_people import pour_people, spell
from diminuendo.learners.released.contribution import Sheet
from diminuendo.learners.released.learner import TICKS, ReleasedSums
from diminuendo.objectives.family import Table
from diminuendo.randomness.shares import GuideTable, guided
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below_masked, undo
from diminuendo.sums.batch import BatchView
from diminuendo.types import Floats, Ints, Items, Objective

SHARE = 1 - math.exp(-1)
"""1 - 1/e: the weight of what people contribute, and what can be had of the best slate."""
LENGTH = 8.0
"""People in a batch, in units of the noise. The bound is least at 2, and 1.46 times that at 8, where fewer releases
put four times less noise into the sums."""
WORD = 1 << 62
"""A public word is a number below this ..."""
WORD_MASK = np.uint64(WORD - 1)
"""... for which random words are cut with this."""


class Boosted(ReleasedSums):
    """A leader on the capped simplex that follows one boosted sum."""

    name: ClassVar[str] = "boosted"
    strategy: ClassVar[str] = "independent"
    summary: ClassVar[str] = (
        "one noisy sum of N numbers, followed carefully; full information; private; proved against adversaries"
    )

    @property
    def _size(self) -> int:
        return self.n_items

    def _batch_length(self) -> int:
        return math.ceil(LENGTH * self.noise)

    def _start(self) -> None:
        self._spread = spread(self.n_items, self.slots)
        self._cost = np.array([self._spread])  # what following has cost so far; the first rate is 1
        self._led: Lead | None = None  # what `leader` says of `_sums`, once there was a release
        self._draw_by(np.broadcast_to(self.slots / self.n_items, self.n_items))

    @property
    def bound(self) -> float:
        """Theorem R2."""
        n, k, sizes = self.n_items, self.slots, self.schedule.sizes
        if n == k:
            return 0.0
        noise, longest = SHARE * self._sum.deviation(1), SHARE * max(sizes)
        steps = k / 2 * sum((SHARE * size) ** 2 / 4 + noise**2 for size in sizes)
        most = k * (longest + 2 * noise * math.sqrt(2 * math.log(2 * n * len(sizes))))
        rounding = k * SHARE * (self.horizon + 2 * len(sizes) + 2) / TICKS
        return float(
            2 * math.sqrt(2 * self._spread * steps) + 2 * max(most, self._spread) + 2 * k * noise + rounding
        )

    def _follow(self, published: Floats) -> None:
        if self.n_items > self.slots:
            before = self._sums
            sums, step = SHARE * before, SHARE * (published - before)
            self._cost += step_cost(sums, step, self.slots, self._rate, self._led)
            self._move(published)

    @property
    def _rate(self) -> float:
        return float(self._spread / self._cost[0])

    def _move(self, published: Floats) -> None:
        point, self._led = leader(SHARE * published, self.slots, self._rate)
        self._draw_by(point)

    def _draw_by(self, point: Floats) -> None:
        """Draw slates from this point from now on: of it, running sums are kept."""
        ends = running(point, self.slots)
        self._ends, self._guide = ends, guided(ends[:, None])
        self._most = int(np.diff(ends).max())

    def _draw_rows(self, slates: Items, done: int, until: int, words: Ints) -> int:
        return int(_draw_slates(self._guide, slates, done, until, words, self._public.view))

    def _propensity(self, row: Items) -> float:
        return float(propensity.pivotal(self._ends, row))

    def _pour(
        self, table: Table, first: int, last: int, slates: Items, words: Ints, sheet: Sheet, into: BatchView
    ) -> int:
        return int(pour_people(table, first, last, self._ends, self._most, words, sheet, into))

    def _asked(self, person: Objective, row: Items, word: int) -> Floats:
        out = np.zeros(self.n_items)
        spell(self._ends, word, out)
        chosen = [int(item) for item in np.flatnonzero(out)]
        worth = person.value(chosen) if chosen else 0.0
        out = np.array(person.gains(chosen), dtype=np.float64)
        for item in chosen:
            out[item] = worth - person.value([other for other in chosen if other != item])
        return out

    def _state(self) -> Any:
        return *super()._state(), self._cost

    def _restored(self) -> None:
        super()._restored()
        if not (self._spread <= self._cost[0] < math.inf):
            raise InvalidInput("The snapshot holds a cost that could not have come about; it was altered.")
        if self._made[0] and self.n_items > self.slots:
            self._move(self._sums)


@kernel
def _draw_slates(
    guide: GuideTable, slates: Items, done: int, until: int, words: Ints, coins: PublicWords
) -> int:
    """Slates by pivotal rounding, and a public word for each of them; how far it came."""
    while done < until:
        begin(coins)
        going = draw_pivotal(guide, slates[done], coins)
        word = below_masked(WORD, WORD_MASK, coins) if going else UNFINISHED
        if word == UNFINISHED:
            undo(coins)
            return done
        words[done] = word
        done += 1
    return done
