"""Planted faults that no shift of a sum shows: randomness that is none, and things told beside slates.

More of them, and the table of all, are in faults.py. Never for use.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from diminuendo.learners.boosted import Boosted
from diminuendo.learners.desk import round_at
from diminuendo.learners.learner import Learner
from diminuendo.learners.slate_totals import SlateTotals
from diminuendo.randomness.coins import Coins, SeededCoins
from diminuendo.randomness.words import USED, SecretRandomness
from diminuendo.types import Floats, Items, Objective, Words


class Planted(Learner):
    """A learner with a fault in it."""

    broken: ClassVar[bool] = True


class PublicAsSecret(SeededCoins):
    """The public words of some coins, for secret ones."""

    def __init__(self, coins: Coins) -> None:
        super().__init__(0)
        self._coins = coins

    def secret(self, count: int) -> Words:
        """The next public words."""
        return self._coins.public(count)


class PublicNoise(Planted, SlateTotals):
    """Noise is drawn from public coins, so whoever knows them takes it off again."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        if self.broken:
            self._secret = SecretRandomness(PublicAsSecret(self.coins))


class WordsGivenBack(Planted, Boosted):
    """After a release the place in the secret words goes back, by all but one: the next has nearly the same noise."""

    def _release_due(self) -> None:
        before, made = int(self._secret.handful.used[USED]), int(self._made[0])
        super()._release_due()
        used = self._secret.handful.used
        if self.broken and self._made[0] > made and used[USED] > before + 1:
            used[USED] = before + 1


class PropensityTells(Planted, SlateTotals):
    """The chance that is reported follows what was said but not published yet."""

    def _propensity(self, row: Items) -> float:
        told = super()._propensity(row) or 0.0
        return told / (1 + float(self._counts.exact().sum())) if self.broken else told


class ScaleFollowsAnswers(Planted, SlateTotals):
    """Noise is larger where people are happy."""

    def _release(self) -> Floats:
        happy = self.broken and self._counts.exact().sum() > 0
        real = self._counts.scale
        vars(self._counts)["scale"] = lambda apart: real(apart) * (2 if happy else 1)
        try:
            return super()._release()
        finally:
            del vars(self._counts)["scale"]


class RefusesWhenUnhappy(Planted, SlateTotals):
    """A check that was meant for tests stops the run when payoffs add up to too little."""

    def _learn(self, place: int, answer: float) -> None:
        super()._learn(place, answer)
        self._unhappy = self.broken and answer <= 0

    def _admit(self, rounds: int) -> None:
        super()._admit(rounds)
        if getattr(self, "_unhappy", False):
            raise ArithmeticError("payoffs are too small")


class LastCountedAgain(Planted, Boosted):
    """From the third batch on, the last person of a batch is counted again in the next."""

    _last: tuple[Objective, Items, int] | None = None

    def _learn(self, place: int, answer: Objective) -> None:
        super()._learn(place, answer)
        number = round_at(self._desk, place)
        batch = self.schedule.batch_of(number)
        if self.broken and batch >= 2 and number + 1 == self.schedule.ends[batch]:
            self._last = answer, self._desk.row_at(place).copy(), int(self._words[place])

    def _release_due(self) -> None:
        made = int(self._made[0])
        super()._release_due()
        if self._last is not None and self._made[0] > made and self._sum.batch < len(self.schedule) - 1:
            gains = np.asarray(self._asked(*self._last), dtype=np.float64)
            self._last = None
            if gains.shape == (self._size,):
                self._sum._marks[1] -= 1  # or the sum would refuse more people than came
                self._sum.add(gains, batch=self._sum.batch)
