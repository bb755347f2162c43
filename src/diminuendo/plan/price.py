"""Prices: the loss of a learner at several epsilons, simulated on synthetic users.

The learner itself runs, with a seeded randomness source, on users of the public model (model.py). Its loss is the share
of greedy's reward in hindsight that it does not reach.

Half way is a formula where the learner publishes sums (model.py). Where bandit or click feedback comes back it is
read off the runs: the first stretch of users whose slates earn half way from random choice to greedy, on average over
runs and under the model's own probabilities. Each stretch is a tenth as long as all before it, or 50 users.

A run of many users, or of many items, is forecast from a short one (`short_run`). Where users say all they want (full
feedback), noise is put in proportion to users. Noise on sums has a deviation of sigma users, and the largest among N
items is about sigma sqrt(2 log N); so with Gaussian cost mu = sqrt(2) / sigma the short run gets

    mu' = mu (T / T') sqrt(log N' / log N),    and as its epsilon what mu' is worth at the same delta.

For learners that draw from secret scores it is the rate times the score that counts, and the rate goes like
mu / sqrt(T): there mu' = mu sqrt(T / T'). What is scaled errs on the safe side, by a few thousandths: fewer users are
a worse sample.

Where little comes back (bandit and click feedback), it is the first users that are simulated, 40,000 or more, with the
same epsilon; those who come after them are taken to fare as the last eighth of them did. That errs on the safe side: in
truth learning goes on. Of more than `MOST_TRIED` items the most wanted ones are simulated, with as much fewer users:
what it takes to try an item does not depend on the others. That errs on the hopeful side: among fewer items fewer look
good by chance.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from diminuendo.errors import InvalidInput, NoSignal, OutOfRange
from diminuendo.learners import LEARNERS
from diminuendo.learners.base.feedback_window import NO_FEEDBACK_WINDOW, FeedbackWindow, as_feedback_window
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.replay import Delay, replay
from diminuendo.learners.base.setting import Setting
from diminuendo.offline import greedy
from diminuendo.plan.first_look import FirstLook, first_look
from diminuendo.plan.model import PublicModel, half_way
from diminuendo.plan.noise import noise, releases_of
from diminuendo.privacy import curves
from diminuendo.privacy.events import Selections
from diminuendo.randomness import SeededSource
from diminuendo.streams.users import Users
from diminuendo.types import FeedbackKind, Floats, Ints, Progress

MOST_USERS, MOST_ITEMS = 20_000, 500
"""How many users and items are simulated at most with full feedback."""
MOST_SHOWN, MOST_TRIED = 40_000, 1_000
"""How many users and items are simulated at most with bandit and click feedback."""
MOST_CELLS = 20_000_000
"""Fast learners are simulated with more users, up to this many users times items."""
LARGEST_MU, LARGEST_EPSILON = 30.0, 500.0
"""Noise of a twentieth of a user and less: more of it would change nothing, and be beyond floating point."""
LAST = 8
"""The last one in this many users stands for those who come later."""

EPSILONS: dict[FeedbackKind, tuple[float, ...]] = {
    "full": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "bandit": (0.1, 0.3, 1.0, 3.0, 10.0),
    "click": (0.1, 0.3, 1.0, 3.0, 10.0),
}
"""Unless others are asked for. A run with bandit or click feedback takes longer, so there are fewer."""
SEEDS, FEW_ITEMS = 2, 100
"""How many runs there are for each epsilon; but one where little comes back about more items than FEW_ITEMS."""
STRETCH = 50
"""How many users the first stretches have in which half way is looked for."""


@dataclass(frozen=True)
class Price:
    """Forecast for one epsilon, under the public model of users.

    Attributes
    ----------
    epsilon : float
        Privacy budget.
    losses : tuple of float
        For each simulated run, the share of greedy's reward in hindsight that is lost.
    apart : float, optional
        By how many users two items must differ to be told apart at the last release; for learners that release one
        number per slate, two slates at the first release.
    half_way : int, optional
        After how many users half of the way from random slates to hindsight is made; None if never.
    look : FirstLook, optional
        What the first slates take and show.

    """

    epsilon: float
    losses: tuple[float, ...]
    apart: float | None
    half_way: int | None
    look: FirstLook | None = None

    @property
    def loss(self) -> float:
        """The mean of `losses`."""
        return sum(self.losses) / len(self.losses)

    def as_json(self) -> dict[str, Any]:
        """Return the price as plain values, as files hold it."""
        look = None if self.look is None else self.look.as_json()
        return vars(self) | {"loss": self.loss, "losses": list(self.losses), "look": look}


def prices(
    name: str,
    setting: Setting,
    cares_about: float,
    epsilons: Sequence[float] | None = None,
    progress: Callable[[str, int], Progress] | None = None,
) -> tuple[Price, ...]:
    """The learner of that name at every epsilon, and at the setting's own; where it cannot be made there is no row.

    With a public sample the users of the sample are simulated: to all others the same happens (docs/maths/late.md, L4).
    """
    one_in, whole, setting = setting.sample, setting.rounds, in_sample(setting)
    budgets = sorted({*(EPSILONS[setting.feedback] if epsilons is None else epsilons), setting.epsilon})
    model = PublicModel(setting.n_items, cares_about)
    simulated = short_run(name, setting).setting
    seeds = SEEDS if setting.feedback == "full" or simulated.n_items <= FEW_ITEMS else 1
    crowd = [_sample(model, simulated, seed) for seed in range(seeds)]
    work = len(budgets) * len(crowd)
    tick = progress("trying epsilons on made-up users", work) if progress else lambda done: None
    result = []
    for epsilon in budgets:
        at = replace(setting, epsilon=epsilon)
        short = short_run(name, at)
        try:
            priced_learner, ready = (
                _made(name, at),
                [_made(name, short.setting, sample.seed) for sample in crowd],
            )
        except InvalidInput:  # this epsilon is beyond what the learner can be made for; others are not
            tick(len(crowd))
            continue
        losses, worths = [], []
        for learner, sample in zip(ready, crowd, strict=True):
            loss, worth = _run(learner, short, sample)
            losses.append(loss)
            worths.append(worth)
            tick(1)
        plan, look = releases_of(priced_learner), first_look(priced_learner)
        resolution = noise(plan, cares_about) or look
        if plan is None:
            half = _half_way(np.mean(worths, axis=0), model, at, short)
        else:
            half = half_way(plan, model, at.slots, as_feedback_window(at.feedback_window))
        half = None if half is None else min(whole, half * one_in)
        result.append(
            Price(epsilon, tuple(losses), None if resolution is None else resolution.apart, half, look)
        )
    return tuple(result)


def in_sample(setting: Setting) -> Setting:
    """The setting of the users of the public sample alone: users outside are shown what these are shown."""
    return replace(setting, rounds=-(-setting.rounds // setting.sample), sample=1)


def random_loss(setting: Setting, cares_about: float) -> float:
    """What random choice loses under the public model."""
    model = PublicModel(setting.n_items, cares_about)
    return 1 - model.random(setting.slots) / model.greedy(setting.slots)


class ShortRun(NamedTuple):
    """What is simulated, and what of."""

    setting: Setting
    later: int
    """How many more users like the last of them come afterwards."""
    each: float | None
    """For how many users of the long run one of these stands; None where that cannot be said, as noise differs."""

    def mean(self, values: Floats) -> float:
        """Over the whole run, from what each user was worth in the short one."""
        last = values[-math.ceil(len(values) / LAST) :].mean() if self.later else 0.0
        return float((values.sum() + self.later * last) / (len(values) + self.later))

    def said(self, whole: Setting) -> str:
        """What of the whole run is simulated, in words; nothing where all of it is."""
        result = ""
        if whole.feedback != "full" and self.setting.n_items < whole.n_items:
            result += (
                f" Losses are simulated with the {self.setting.n_items:,} most wanted things and as much fewer users, "
                "which is hopeful."
            )
        if self.later:
            result += (
                f" {self.setting.rounds:,} users are simulated, and those after them are taken to fare as the last "
                "eighth of these, which is cautious."
            )
        return result


def short_run(name: str, setting: Setting) -> ShortRun:
    """The short run of that learner that stands for a long one; the run itself where it is short."""
    if setting.feedback == "full" or _pays_by_the_draw(name, setting):
        short = _with_noise(name, setting)
        return ShortRun(short, 0, 1.0 if short is setting else None)
    items = min(setting.n_items, max(MOST_TRIED, setting.slots))
    alike = math.ceil(setting.rounds * items / setting.n_items)
    quick = not LEARNERS[name].slow
    rounds = min(alike, max(MOST_SHOWN, MOST_CELLS // items if quick else 0))
    feedback_window = _in_flight(setting, items / setting.n_items)
    short = replace(setting, n_items=items, rounds=rounds, feedback_window=feedback_window)
    return ShortRun(short, alike - rounds, setting.n_items / items)


def _pays_by_the_draw(name: str, setting: Setting) -> bool:
    """Whether it draws from secret scores in every round, and so pays more the more users come."""
    return isinstance(_made(name, setting).events, Selections)


def _with_noise(name: str, setting: Setting) -> Setting:
    """Fewer users, and noise in proportion."""
    rounds, items = min(setting.rounds, MOST_USERS), min(setting.n_items, max(MOST_ITEMS, setting.slots))
    if (rounds, items) == (setting.rounds, setting.n_items):
        return setting
    factor = setting.rounds / rounds
    if _pays_by_the_draw(name, setting):
        factor = math.sqrt(factor)
    else:
        factor *= math.sqrt(math.log(max(2, items)) / math.log(max(2, setting.n_items)))
    if setting.delta == 0:
        epsilon = min(LARGEST_EPSILON, setting.epsilon * factor)
    else:
        mu = min(LARGEST_MU, factor * curves.gaussian_mu(setting.epsilon, setting.delta))
        epsilon = curves.gaussian_epsilon(mu, setting.delta)
    feedback_window = _in_flight(setting, rounds / setting.rounds)
    kept = None if setting.retention is None else max(1, setting.retention * rounds // setting.rounds)
    return replace(
        setting,
        n_items=items,
        rounds=rounds,
        epsilon=epsilon,
        feedback_window=feedback_window,
        retention=kept,
    )


class _Sample(NamedTuple):
    """Made-up users, who are the same for every epsilon."""

    seed: int
    users: Users
    appeal: Floats
    """The probability that one of them wants each item."""
    best: float
    """What hindsight earns from them."""


def _sample(model: PublicModel, short: Setting, seed: int) -> _Sample:
    users = model.users(short.rounds, seed, items=short.n_items)
    appeal = model.dealt(seed, items=short.n_items)
    return _Sample(seed, users, appeal, greedy(users, short.slots).value)


def _made(name: str, setting: Setting, seed: int | None = None) -> Learner:
    """A learner; that it is out of range was said once, of the setting itself, and is not said again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        return LEARNERS[name].for_setting(setting, rng=None if seed is None else SeededSource(seed))


def _run(learner: Learner, short: ShortRun, sample: _Sample) -> tuple[float, Floats]:
    """What is lost to hindsight; and what the slate of each round is worth under the model."""
    # No synthetic user returns.
    each = np.arange(len(sample.users)) if short.setting.max_rounds_per_user > 1 else None
    delay = _late(as_feedback_window(short.setting.feedback_window), len(sample.users), sample.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoSignal)  # synthetic users respond
        slates = replay(learner, sample.users, short.setting.feedback, user_ids=each, delay=delay)
    misses = 1 - np.append(sample.appeal, 0.0)[slates]  # an empty slot is -1, with appeal 0
    worth: Floats = 1 - misses.prod(axis=1)
    earned = short.mean(sample.users.values(slates))
    return float(1 - earned / sample.best) if sample.best > 0 else 0.0, worth


def _late(feedback_window: FeedbackWindow, users: int, seed: int) -> Ints | None:
    """Users respond at the deadline or not at all: earlier responses make no difference."""
    if feedback_window == NO_FEEDBACK_WINDOW:
        return None
    return Delay(feedback_window.ahead, response_rate=feedback_window.response_rate).drawn(users, seed)


def _in_flight(setting: Setting, share: float) -> FeedbackWindow:
    """The setting's patience, where only a share of users comes in the same time."""
    feedback_window = as_feedback_window(setting.feedback_window)
    return replace(
        feedback_window,
        rounds=None if feedback_window.rounds is None else round(feedback_window.rounds * share),
    )


def _half_way(worth: Floats, model: PublicModel, setting: Setting, short: ShortRun) -> int | None:
    """After how many users the slates of the next stretch earn half way from random choice to greedy, or more."""
    low, high = model.random(setting.slots), model.greedy(setting.slots)
    if setting.feedback == "full" or short.each is None or high - low < 1e-9:
        return None
    begin = 0
    while begin < len(worth):
        end = begin + max(STRETCH, begin // 10)
        if worth[begin:end].mean() >= (low + high) / 2:
            return round(begin * short.each)
        begin = end
    return None
