"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong. Mended, it is made by the same code with nothing wrong, so that
what an audit finds is the fault and not how it was planted. Never for use.

Planted faults that no shift of a sum shows: randomness that is none, and things told beside slates.

More of them, and the table of all, are in faults.py. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar
from unittest import mock

import numpy as np

from diminuendo.audit.subjects import Subject
from diminuendo.experts.hedge import new_hedge
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.old_learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.exploring import NOBODY, BanditExperts
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.released.boosted import Boosted
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.randomness import noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.randomness.coins import Coins, SeededCoins
from diminuendo.randomness.words import USED, SecretRandomness
from diminuendo.sums.chains import release as chain
from diminuendo.sums.chains import running as chain_sums
from diminuendo.sums.clip import clip_all
from diminuendo.types import FEEDBACKS, Floats, Items, Objective, Words


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
        before, made = int(self._secret.view.used[USED]), int(self._made[0])
        super()._release_due()
        used = self._secret.view.used
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
        number = self._decisions.round_at(place)
        batch = self.schedule.batch_of(number)
        if self.broken and batch >= 2 and number + 1 == self.schedule.ends[batch]:
            self._last = answer, self._decisions.rows[place].copy(), int(self._words[place])

    def _release_due(self) -> None:
        made = int(self._made[0])
        super()._release_due()
        if self._last is not None and self._made[0] > made and self._sum.batch < len(self.schedule) - 1:
            gains = np.asarray(self._asked(*self._last), dtype=np.float64)
            self._last = None
            if gains.shape == (self._size,):
                self._sum._marks[1] -= 1  # or the sum would refuse more people than came
                self._sum.add(gains, batch=self._sum.batch)


class RateDoubled(Planted, FiDp):
    """Forgets that full information moves some scores up and others down: the rate is twice what was paid for."""

    def _start(self) -> None:
        self._experts = new_hedge(self.n_items, self.slots, self.rate * (2 if self.broken else 1))


class BanditRateDoubled(Planted, BanditDp):
    """Twice the rate that was paid for."""

    def _start(self) -> None:
        BanditExperts._start(self)
        self._experts = new_hedge(self.n_items, self.slots, self.rate * (2 if self.broken else 1))


class WordsUsedAgain(Planted, FiDp):
    """The place in the secret words is not kept: all rounds draw with the same."""

    def _draw(self, row: Items, probe: Items) -> bool:
        done = super()._draw(row, probe)
        if done and self.broken:
            self._secret.view.used[USED] = 0
        return done


class NoiseUsedAgain(Planted, Boosted):
    """Randomness is made anew for each release, from one seed that was meant for tests."""

    def _release_due(self) -> None:
        if self.broken:
            self._secret = SecretRandomness(SeededCoins(7))
        super()._release_due()


class ExploresWhenUnhappy(Planted, BanditDp):
    """Explores more often after somebody was unhappy."""

    def _learn(self, place: int, answer: float) -> None:
        super()._learn(place, answer)
        share = 1.0 - min(1.0, answer) if self.broken else self.exploring
        self._fixed = self._fixed._replace(share=share)


class RedrawsOnArrival(Planted, BanditDp):
    """Experts draw anew when the answer to an exploration has come, not when it was made."""

    _later = NOBODY

    def _draw(self, row: Items, probe: Items) -> bool:
        done = super()._draw(row, probe)
        if done and self.broken:
            self._later = int(self._exploring.due[0])
            self._exploring.due[0] = NOBODY
        return done

    def _learn(self, place: int, answer: float) -> None:
        super()._learn(place, answer)
        if self.broken:
            self._exploring.due[0] = self._later


class LearnsTwice(Planted, FiDp):
    """Counts every answer when it comes and again when it is filed."""

    def _learn(self, place: int, answer: Any) -> None:
        super()._learn(place, answer)
        if self.broken:
            super()._learn(place, answer)


class Reopened(Planted):
    """Forgets to close a round once it was answered: whoever answers again is counted again."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        close = self._decisions.close
        vars(self._decisions)["close"] = (lambda place: None) if self.broken else close


class DuplicatesCounted(Reopened, SlateClicks):
    """Of clicks."""


class DuplicatesDrawn(Reopened, FiDp):
    """Of objectives, where slates are drawn."""


class ClosesOnAnswers(Planted, Boosted):
    """A batch is over when enough people have answered, not when enough have come."""

    _answers = 0

    def _release_due(self) -> None:
        come = self._answers if self.broken else self.rounds
        while self._made[0] < min(self.schedule.closed_by(come), len(self.schedule) - 1):
            self._published = self._sum.release(self._secret)
            self._follow(self._published)
            self._sums[:] = self._published
            self._made[0], self._published = self._made[0] + 1, None

    def _learn(self, place: int, answer: Objective) -> None:
        self._answers += 1
        super()._learn(place, answer)


class EpochEndsOnAnswers(Planted, EpochGreedy):
    """The same where slates are drawn."""

    _answers = 0

    def _release_due(self) -> None:
        while self._made[0] < self.epochs.of(self._answers if self.broken else self.rounds):
            self._release(int(self._made[0]))

    def _learn(self, place: int, answer: Objective) -> None:
        self._answers += 1
        super()._learn(place, answer)


class PlansOnAnswers(Planted, SlateTotals):
    """Puts a slate aside as soon as somebody dislikes it, before anything was published."""

    def _learn(self, place: int, answer: float) -> None:
        super()._learn(place, answer)
        if self.broken and answer <= 0:
            self._block = self._block._replace(slates=np.roll(self._block.slates, 1, axis=1))


class Boosts(Planted, Boosted):
    """For faults in what surrounds a learner."""


class Totals(Planted, SlateTotals):
    """For faults in what surrounds a learner."""


@contextmanager
def halved() -> Iterator[None]:
    """All noise has half the scale that was paid for."""

    def half(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda values, scale, secret: real(values, scale / 2, secret)

    with (
        mock.patch.object(noise, "laplace", half(noise.laplace)),
        mock.patch.object(normal, "rounded_normal", half(normal.rounded_normal)),
    ):
        yield


@contextmanager
def unclipped() -> Iterator[None]:
    """Wishes may be longer than those that noise is made for."""
    real = clip_all

    def clip(rule: Any, *rest: Any) -> None:
        kind, bound, ceiling, ticks, limit, signed = rule
        real((kind, 8 * bound, ceiling, ticks, 8 * limit, signed), *rest)

    with mock.patch.object(chain_sums, "clip_all", clip):
        yield


@contextmanager
def without_minimum() -> Iterator[None]:
    """Rows are what items lose when one joins, also where they gain: nothing keeps them within the singles."""

    def now(starts: Any, items: Any, scales: Any, gains: Any, asked: Any, ceiling: float, joined: int) -> Any:
        for person in np.flatnonzero(asked):
            for j in range(starts[person], starts[person + 1]):
                here = items[j] != joined and gains[j] > 0
                yield person, j, int(scales[person] * min(gains[j], ceiling)) if here else 0

    def lose(starts: Any, items: Any, left: Any, weights: Any, *more: Any) -> None:
        for person, j, stays in now(starts, items, *more[:-1]):
            more[-1][items[j]] += weights[person] * (left[j] - stays)

    def fall(starts: Any, items: Any, left: Any, *more: Any) -> None:
        for _, j, stays in now(starts, items, *more):
            left[j] = stays

    with mock.patch.multiple(chain, _lose=lose, _fall=fall):
        yield


def subject(
    name: str,
    learner: type[Planted] | Entry[...],
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    *,
    broken: bool = True,
) -> Subject:
    """A learner with its fault; or, not broken, the same with nothing wrong. Of an entry the fault is around it."""

    def make(setting: Setting, coins: Coins) -> Learner:
        if isinstance(learner, Entry):
            return learner.for_setting(setting, coins=coins)  # type: ignore[return-value]
        made: Any = type(learner.__name__, (learner,), {"broken": broken})
        found: Learner = made.for_setting(setting, coins=coins)
        return found

    feedback = next(kind for kind in FEEDBACKS if kind in learner.reads)
    return Subject(name if broken else f"{name}, mended", feedback, make, around if broken else nullcontext)


PLANTED: dict[str, tuple[Any, ...]] = {
    "noise halved (boosted)": (Boosts, halved),
    "noise halved (slate-totals)": (Totals, halved),
    "rate doubled (fi-dp)": (RateDoubled,),
    "rate doubled (bandit-dp)": (BanditRateDoubled,),
    "clipping left out (overlap-sums)": (OverlapSums, unclipped),
    "running minimum left out (overlap-greedy)": (OverlapGreedy, without_minimum),
    "answers counted twice (fi-dp)": (LearnsTwice,),
    "secret words used again (fi-dp)": (WordsUsedAgain,),
    "noise used again (boosted)": (NoiseUsedAgain,),
    "secret words in part used again (boosted)": (WordsGivenBack,),
    "noise from public coins (slate-totals)": (PublicNoise,),
    "propensity tells (slate-totals)": (PropensityTells,),
    "scale decided by data (slate-totals)": (ScaleFollowsAnswers,),
    "refusal decided by data (slate-totals)": (RefusesWhenUnhappy,),
    "last of a batch counted again (boosted)": (LastCountedAgain,),
    "exploration decided by data (bandit-dp)": (ExploresWhenUnhappy,),
    "redraw decided by data (bandit-dp)": (RedrawsOnArrival,),
    "slates decided by data (slate-totals)": (PlansOnAnswers,),
    "duplicates counted (slate-clicks)": (DuplicatesCounted,),
    "duplicates counted (fi-dp)": (DuplicatesDrawn,),
    "batch closed on answers (boosted)": (ClosesOnAnswers,),
    "epoch closed on answers (epoch-greedy)": (EpochEndsOnAnswers,),
}
"""What is wrong, in which learner; and how that is done: a class, and what surrounds it."""

FAULTS: dict[str, Subject] = {name: subject(name, *how) for name, how in PLANTED.items()}
"""All of which an audit must find."""
MENDED: dict[str, Subject] = {name: subject(name, *how, broken=False) for name, how in PLANTED.items()}
"""The same with nothing wrong, none of which an audit may accuse."""
