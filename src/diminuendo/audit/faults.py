"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong. Mended, it is made by the same code with nothing wrong, so that
what an audit finds is the fault and not how it was planted. Never for use.

Planted faults that no shift of a sum shows: randomness that is none, and things told beside slates.

More of them, and the table of all, are in faults.py. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
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
from diminuendo.learners.overlap.running import OverlapSums
from diminuendo.learners.overlap.stored import OverlapGreedy
from diminuendo.learners.released.variants import Boosted
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


@dataclass(frozen=True)
class Fault:
    """A learner of the table in which one thing is broken once it was made; mended, nothing is."""

    entry: Entry[...]
    break_it: Callable[[Any], None] = lambda learner: None


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


class PlansOnAnswers(Planted, SlateTotals):
    """Puts a slate aside as soon as somebody dislikes it, before anything was published."""

    def _learn(self, place: int, answer: float) -> None:
        super()._learn(place, answer)
        if self.broken and answer <= 0:
            self._block = self._block._replace(slates=np.roll(self._block.slates, 1, axis=1))


def give_words_back(learner: Any) -> None:
    """After a release the place in the secret words goes back, by all but one: the next has nearly the same noise."""
    policy, secret = learner.policy, learner.policy.frame.secret
    real = policy.release

    def release() -> None:
        before = int(secret.view.used[USED])
        real()
        if secret.view.used[USED] > before + 1:
            secret.view.used[USED] = before + 1

    policy.release = release


def use_noise_again(learner: Any) -> None:
    """Randomness is made anew for each release, from one seed that was meant for tests."""
    policy = learner.policy
    real = policy.release

    def release() -> None:
        policy.frame.secret = SecretRandomness(SeededCoins(7))
        real()

    policy.release = release


def count_the_last_again(learner: Any) -> None:
    """From the third batch on, the last person of a batch is counted again in the next."""
    policy, frame, released = learner.policy, learner.policy.frame, learner.policy.released
    learn, real, last = policy.learn, policy.release, list[tuple[Objective, Items, int]]()

    def learn_and_keep(place: int, answer: Objective) -> None:
        learn(place, answer)
        number = frame.decisions.round_at(place)
        batch = released.schedule.batch_of(number)
        if batch >= 2 and number + 1 == released.schedule.ends[batch]:
            last[:] = [(answer, frame.decisions.rows[place].copy(), int(policy._words[place]))]

    def release() -> None:
        real()
        if last and released.sum.batch < len(released.schedule) - 1:
            gains = np.asarray(policy._gains.of_function(*last.pop()), dtype=np.float64)
            if gains.shape == (released.size,):
                released.sum._marks[1] -= 1  # or the sum would refuse more people than came
                released.sum.add(gains, batch=released.sum.batch)

    policy.learn, policy.release = learn_and_keep, release


def close_batches_on_answers(learner: Any) -> None:
    """A batch is over when enough people have answered, not when enough have come."""
    policy, answers = learner.policy, [0]
    learn = policy.learn

    def learn_and_count(place: int, answer: Objective) -> None:
        answers[0] += 1
        learn(place, answer)

    policy.learn, policy.due = learn_and_count, lambda: policy.released.due(answers[0])


def end_epochs_on_answers(learner: Any) -> None:
    """An epoch is over, and a slate is drawn, when enough people have answered, not when enough have come."""
    policy, answers = learner.policy, [0]
    learn = policy.learn

    def learn_and_count(place: int, answer: Objective) -> None:
        answers[0] += 1
        learn(place, answer)

    policy.learn, policy.due = learn_and_count, lambda: policy._made[0] < policy.epochs.of(answers[0])


class Totals(Planted, SlateTotals):
    """For faults in what surrounds a learner."""


class Keeps(Planted, OverlapGreedy):
    """For faults in what surrounds a learner."""


class Sums(Planted, OverlapSums):
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
    learner: type[Planted] | Fault,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    *,
    broken: bool = True,
) -> Subject:
    """A learner with its fault; or, not broken, the same with nothing wrong."""

    def make(setting: Setting, coins: Coins) -> Any:
        if isinstance(learner, Fault):
            whole = learner.entry.for_setting(setting, coins=coins)
            if broken:
                learner.break_it(whole)
            return whole
        made: Any = type(learner.__name__, (learner,), {"broken": broken})
        found: Learner = made.for_setting(setting, coins=coins)
        return found

    reads = learner.entry.reads if isinstance(learner, Fault) else learner.reads
    feedback = next(kind for kind in FEEDBACKS if kind in reads)
    return Subject(name if broken else f"{name}, mended", feedback, make, around if broken else nullcontext)


PLANTED: dict[str, tuple[Any, ...]] = {
    "noise halved (boosted)": (Fault(Boosted), halved),
    "noise halved (slate-totals)": (Totals, halved),
    "rate doubled (fi-dp)": (RateDoubled,),
    "rate doubled (bandit-dp)": (BanditRateDoubled,),
    "clipping left out (overlap-sums)": (Sums, unclipped),
    "running minimum left out (overlap-greedy)": (Keeps, without_minimum),
    "answers counted twice (fi-dp)": (LearnsTwice,),
    "secret words used again (fi-dp)": (WordsUsedAgain,),
    "noise used again (boosted)": (Fault(Boosted, use_noise_again),),
    "secret words in part used again (boosted)": (Fault(Boosted, give_words_back),),
    "noise from public coins (slate-totals)": (PublicNoise,),
    "propensity tells (slate-totals)": (PropensityTells,),
    "scale decided by data (slate-totals)": (ScaleFollowsAnswers,),
    "refusal decided by data (slate-totals)": (RefusesWhenUnhappy,),
    "last of a batch counted again (boosted)": (Fault(Boosted, count_the_last_again),),
    "exploration decided by data (bandit-dp)": (ExploresWhenUnhappy,),
    "redraw decided by data (bandit-dp)": (RedrawsOnArrival,),
    "slates decided by data (slate-totals)": (PlansOnAnswers,),
    "duplicates counted (slate-clicks)": (DuplicatesCounted,),
    "duplicates counted (fi-dp)": (DuplicatesDrawn,),
    "batch closed on answers (boosted)": (Fault(Boosted, close_batches_on_answers),),
    "epoch closed on answers (epoch-greedy)": (Fault(EpochGreedy, end_epochs_on_answers),),
}
"""What is wrong, in which learner; and how that is done: a class, and what surrounds it."""

FAULTS: dict[str, Subject] = {name: subject(name, *how) for name, how in PLANTED.items()}
"""All of which an audit must find."""
MENDED: dict[str, Subject] = {name: subject(name, *how, broken=False) for name, how in PLANTED.items()}
"""The same with nothing wrong, none of which an audit may accuse."""
