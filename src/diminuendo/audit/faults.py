"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong. Mended, it is made by the same code with nothing wrong, so that
what an audit finds is the fault and not how it was planted. Never for use.

Here are faults in what learners publish, and in what surrounds them; those in draws are in draw_faults.py; last comes
the table of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from diminuendo.audit.draw_faults import DRAW_FAULTS, Fault, duplicates_counted
from diminuendo.audit.subjects import Subject
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.setting import Setting
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
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


class PublicAsSecret(SeededCoins):
    """The public words of some coins, for secret ones."""

    def __init__(self, coins: Coins) -> None:
        super().__init__(0)
        self._coins = coins

    def secret(self, count: int) -> Words:
        """The next public words."""
        return self._coins.public(count)


def public_noise(policy: Any, broken: bool) -> None:
    """Noise is drawn from public coins, so whoever knows them takes it off again."""
    if broken:
        policy.frame.secret = SecretRandomness(PublicAsSecret(policy.frame.coins))


def propensity_tells(policy: Any, broken: bool) -> None:
    """The chance that is reported follows what was said but not published yet."""
    propensity = policy.propensity

    def tells(row: Items) -> float:
        told = propensity(row) or 0.0
        return told / (1 + float(policy._counts.exact().sum())) if broken else told

    policy.propensity = tells


def scale_follows_answers(policy: Any, broken: bool) -> None:
    """Noise is larger where people are happy."""
    counts = policy._counts
    scale, release = counts.scale, counts.release

    def releases(secret: SecretRandomness) -> Floats:
        happy = broken and counts.exact().sum() > 0
        counts.scale = lambda sensitivity: scale(sensitivity) * (2 if happy else 1)
        published: Floats = release(secret)
        return published

    counts.release = releases


def refuses_when_unhappy(policy: Any, broken: bool) -> None:
    """A check that was meant for tests stops the run when payoffs add up to too little."""
    learn, admit, unhappy = policy.learn, policy.frame.admit, [False]

    def learns(place: int, answer: float) -> None:
        learn(place, answer)
        unhappy[0] = broken and answer <= 0

    def admits(rounds: int) -> None:
        admit(rounds)
        if unhappy[0]:
            raise ArithmeticError("payoffs are too small")

    policy.learn, policy.frame.admit = learns, admits


def plans_on_answers(policy: Any, broken: bool) -> None:
    """Puts a slate aside as soon as somebody dislikes it, before anything was published."""
    learn = policy.learn

    def learns(place: int, answer: float) -> None:
        learn(place, answer)
        if broken and answer <= 0:
            shown = policy._blocks[-1]
            others = np.roll(shown.block.slates, 1, axis=1)
            menu = replace(shown.menu, slates=others)
            policy._blocks[-1] = shown._replace(block=shown.block._replace(slates=others), menu=menu)
            policy._chooser = menu.chooser()

    policy.learn = learns


def words_given_back(policy: Any, broken: bool) -> None:
    """After a release the place in the secret words goes back, by all but one: the next has nearly the same noise."""
    release, secret = policy.release, policy.frame.secret

    def releases() -> None:
        before = int(secret.view.used[USED])
        release()
        if broken and secret.view.used[USED] > before + 1:
            secret.view.used[USED] = before + 1

    policy.release = releases


def noise_used_again(policy: Any, broken: bool) -> None:
    """Randomness is made for each release from one seed that was meant for tests."""
    release = policy.release

    def releases() -> None:
        if broken:
            policy.frame.secret = SecretRandomness(SeededCoins(7))
        release()

    policy.release = releases


def last_counted_again(policy: Any, broken: bool) -> None:
    """From the third batch on, the last person of a batch is counted again in the next."""
    frame, released = policy.frame, policy.released
    learn, release, last = policy.learn, policy.release, list[tuple[Objective, Items, int]]()

    def learns(place: int, answer: Objective) -> None:
        learn(place, answer)
        number = frame.decisions.round_at(place)
        batch = released.schedule.batch_of(number)
        if broken and batch >= 2 and number + 1 == released.schedule.ends[batch]:
            last[:] = [(answer, frame.decisions.rows[place].copy(), int(policy._words[place]))]

    def releases() -> None:
        release()
        if last and released.sum.batch < len(released.schedule) - 1:
            gains = np.asarray(policy._laws[-1][1].of_function(*last.pop()), dtype=np.float64)
            if gains.shape == (released.size,):
                released.sum._marks[1] -= 1  # or the sum would refuse more people than came
                released.sum.add(gains, batch=released.sum.batch)

    policy.learn, policy.release = learns, releases


def batch_ends_on_answers(policy: Any, broken: bool) -> None:
    """A batch is over when enough people have answered, not when enough have come."""
    learn, answers = policy.learn, [0]

    def learns(place: int, answer: Objective) -> None:
        answers[0] += 1
        learn(place, answer)

    def due() -> bool:
        return bool(policy.released.due(answers[0] if broken else policy.frame.rounds))

    policy.learn, policy.due = learns, due


def nothing(policy: Any, broken: bool) -> None:
    """The fault is in what surrounds the learner."""


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

    def fall(
        starts: Any, items: Any, scales: Any, gains: Any, asked: Any, ceiling: float, joined: int, left: Any
    ) -> None:
        for person in np.flatnonzero(asked):
            for j in range(starts[person], starts[person + 1]):
                here = items[j] != joined and gains[j] > 0
                left[j] = int(scales[person] * min(gains[j], ceiling)) if here else 0

    with mock.patch.object(chain, "fall", fall):
        yield


def subject(
    name: str,
    fault: Fault,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
    *,
    broken: bool = True,
) -> Subject:
    """A learner with its fault; or, not broken, made by the same code with nothing wrong."""

    def make(setting: Setting, coins: Coins) -> Learner:
        return fault.planted(fault.learner.for_setting(setting, coins=coins), broken)

    feedback = next(kind for kind in FEEDBACKS if kind in fault.learner.reads)
    return Subject(name if broken else f"{name}, mended", feedback, make, around if broken else nullcontext)


PLANTED: dict[str, tuple[Any, ...]] = {
    "noise halved (boosted)": (Fault(Boosted, nothing), halved),
    "noise halved (slate-totals)": (Fault(SlateTotals, nothing), halved),
    "clipping left out (overlap-sums)": (Fault(OverlapSums, nothing), unclipped),
    "running minimum left out (overlap-greedy)": (Fault(OverlapGreedy, nothing), without_minimum),
    "noise used again (boosted)": (Fault(Boosted, noise_used_again),),
    "secret words in part used again (boosted)": (Fault(Boosted, words_given_back),),
    "noise from public coins (slate-totals)": (Fault(SlateTotals, public_noise),),
    "propensity tells (slate-totals)": (Fault(SlateTotals, propensity_tells),),
    "scale decided by data (slate-totals)": (Fault(SlateTotals, scale_follows_answers),),
    "refusal decided by data (slate-totals)": (Fault(SlateTotals, refuses_when_unhappy),),
    "last of a batch counted again (boosted)": (Fault(Boosted, last_counted_again),),
    "slates decided by data (slate-totals)": (Fault(SlateTotals, plans_on_answers),),
    "duplicates counted (slate-clicks)": (Fault(SlateClicks, duplicates_counted),),
    "batch closed on answers (boosted)": (Fault(Boosted, batch_ends_on_answers),),
} | {name: (fault,) for name, fault in DRAW_FAULTS.items()}
"""What is wrong, in which learner; how that is done, and what surrounds it."""

FAULTS: dict[str, Subject] = {name: subject(name, *how) for name, how in PLANTED.items()}
"""All of which an audit must find."""
MENDED: dict[str, Subject] = {name: subject(name, *how, broken=False) for name, how in PLANTED.items()}
"""These learners with nothing wrong; an audit may accuse none of them."""
