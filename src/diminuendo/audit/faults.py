"""Planted faults: learners that break their promise in one small place, as programmers do. Audits must find them all.

Each is a shipped learner with one thing done wrong to its policy, or to what surrounds it. Mended, it is made by the
same code with nothing wrong, so that what an audit finds is the fault and not how it was planted. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from diminuendo.audit import context_faults as typed
from diminuendo.audit import exclusion_faults as excluding
from diminuendo.audit.subjects import Subject, changed
from diminuendo.audit.variants import PRIVATE, PUBLIC, types_part_early
from diminuendo.experts.hedge import new_hedge
from diminuendo.learners.base.entry import AnyEntry
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.exploring import NOBODY
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.learners.overlap.recipes import OverlapGreedy, OverlapSums
from diminuendo.learners.released.variants import Boosted
from diminuendo.learners.slates.clicks import SlateClicks
from diminuendo.learners.slates.totals import SlateTotals
from diminuendo.randomness import noise
from diminuendo.randomness import rounded_normal as normal
from diminuendo.randomness.coins import Coins, SeededCoins
from diminuendo.randomness.words import USED, SecretRandomness
from diminuendo.streams.contexts import Contexts
from diminuendo.sums.chains import release as chain
from diminuendo.sums.chains import running as chain_sums
from diminuendo.sums.chains.focus import FULL, Focus, clip_focused
from diminuendo.types import EMPTY_SLOT, Floats, Items, Objective, Words


def nothing(policy: Any, broken: bool) -> None:
    """The fault is in what surrounds the learner."""


@dataclass(frozen=True)
class Fault:
    """A learner, and what is done wrong to it."""

    learner: AnyEntry
    plant: Callable[[Any, bool], None] = nothing
    """Changes a policy; only if it is told to, so that it is broken."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """What else is wrong with the world while the learner lives."""
    contexts: Contexts | None = None
    """What is known of people when they come."""
    mended: Callable[[], AbstractContextManager[None]] = nullcontext
    """What surrounds it where nothing is wrong."""
    exclusions: bool = False
    """Whether people exclude items."""

    def subject(self, name: str, *, broken: bool) -> Subject:
        """The learner with its fault; or, not broken, made by the same code with nothing wrong."""
        around = self.around if broken else self.mended
        name = name if broken else f"{name}, mended"
        return changed(
            name,
            self.learner,
            lambda policy: self.plant(policy, broken),
            around,
            self.contexts,
            self.exclusions,
        )


def in_contexts(
    contexts: Contexts,
    plant: Callable[[Any, bool], None] = nothing,
    around: Callable[[], AbstractContextManager[None]] = types_part_early,
) -> Fault:
    """A fault of overlap greedy that shows where people have contexts."""
    return Fault(OverlapGreedy, plant, around, contexts, types_part_early)


def after(policy: Any, name: str, then: Callable[..., None]) -> None:
    """Let `then` follow each call of that method; it is given what came of the call, and its arguments."""
    method = getattr(policy, name)

    def both(*given: Any) -> Any:
        came = method(*given)
        then(came, *given)
        return came

    setattr(policy, name, both)


# In draws of items from secret scores.


def rate_doubled(policy: Any, broken: bool) -> None:
    """Experts learn at twice the rate that was paid for: up and down are forgotten to be two directions."""
    frame = policy.frame
    policy._experts = new_hedge(frame.n_items, frame.slots, policy.rate * (2 if broken else 1))


def words_used_again(policy: Any, broken: bool) -> None:
    """The place in the secret words is not kept: all rounds draw with the same."""

    def forget(done: bool, *given: Any) -> None:
        if done and broken:
            policy.frame.secret.view.used[USED] = 0

    after(policy, "draw", forget)


def explores_when_unhappy(policy: Any, broken: bool) -> None:
    """Explores more often after somebody was unhappy."""
    share = policy.rules.share

    def explore(_: None, place: int, answer: float) -> None:
        policy.rules = policy.rules._replace(share=1.0 - min(1.0, answer) if broken else share)

    after(policy, "learn", explore)


def redraws_on_arrival(policy: Any, broken: bool) -> None:
    """Experts draw again when the answer to an exploration has come, not when it was made."""
    later = [NOBODY]

    def put_off(done: bool, *given: Any) -> None:
        if done and broken:
            later[0], policy._exploring.due[0] = int(policy._exploring.due[0]), NOBODY

    def make_due(*given: Any) -> None:
        if broken:
            policy._exploring.due[0] = later[0]

    after(policy, "draw", put_off)
    after(policy, "learn", make_due)


def learns_twice(policy: Any, broken: bool) -> None:
    """Counts every answer when it comes and again when it is filed."""
    learn = policy.learn

    def again(_: None, place: int, answer: Any) -> None:
        if broken:
            learn(place, answer)

    after(policy, "learn", again)


def duplicates_counted(policy: Any, broken: bool) -> None:
    """Forgets to close a round once it was answered: whoever answers again is counted again."""
    decisions = policy.frame.decisions
    decisions.close = (lambda place: None) if broken else decisions.close


def epoch_ends_on_answers(policy: Any, broken: bool) -> None:
    """An epoch is over when enough people have answered, not when enough have come."""
    _due_on_answers(policy, broken, lambda rounds: policy._made[0] < policy.epochs.of(rounds))


def batch_ends_on_answers(policy: Any, broken: bool) -> None:
    """A batch is over when enough people have answered, not when enough have come."""
    _due_on_answers(policy, broken, policy.released.due)


def _due_on_answers(policy: Any, broken: bool, due: Callable[[int], bool]) -> None:
    answers: list[Any] = []
    after(policy, "learn", lambda *given: answers.append(given))
    policy.due = lambda: bool(due(len(answers) if broken else policy.frame.rounds))


# In what is published.


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
    unhappy = [False]

    def note(_: None, place: int, answer: float) -> None:
        unhappy[0] = broken and answer <= 0

    def refuse(_: None, rounds: int) -> None:
        if unhappy[0]:
            raise ArithmeticError("payoffs are too small")

    after(policy, "learn", note)
    after(policy.frame, "admit", refuse)


def plans_on_answers(policy: Any, broken: bool) -> None:
    """Puts a slate aside as soon as somebody dislikes it, before anything was published."""

    def put_aside(_: None, place: int, answer: float) -> None:
        if broken and answer <= 0:
            shown = policy._blocks[-1]
            others = np.roll(shown.block.slates, 1, axis=1)
            menu = replace(shown.menu, slates=others)
            policy._blocks[-1] = shown._replace(block=shown.block._replace(slates=others), menu=menu)
            policy._chooser = menu.chooser()

    after(policy, "learn", put_aside)


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
    frame, released, last = policy.frame, policy.released, list[tuple[Objective, Items, int]]()

    def keep(_: None, place: int, answer: Objective) -> None:
        number = frame.decisions.round_at(place)
        batch = released.schedule.batch_of(number)
        if broken and batch >= 2 and number + 1 == released.schedule.ends[batch]:
            last[:] = [(answer, frame.decisions.rows[place].copy(), int(policy._words[place]))]

    def count(_: None) -> None:
        if last and released.sum.batch < len(released.schedule) - 1:
            gains = np.asarray(policy._laws[-1][1].of_function(*last.pop()), dtype=np.float64)
            if gains.shape == (released.size,):
                released.sum._marks[1] -= 1  # or the sum would refuse more people than came
                released.sum.add(gains, batch=released.sum.batch)

    after(policy, "learn", keep)
    after(policy, "release", count)


# In what a release is asked.


def weights_from_answers(policy: Any, broken: bool) -> None:
    """What is much wanted by the people who are asked now has a low weight in the same release."""
    values = policy._memory._values

    def weights(focus: Focus) -> Focus:
        people = values._answers(np.ones(1, dtype=np.int64))
        wanted = np.bincount(people.items, people.values, values.n_items)
        return focus._replace(weights=np.where(wanted >= 1, FULL // 4, FULL)) if broken else focus

    _in_focus(values, weights)


def singles_out_of_focus(policy: Any, broken: bool) -> None:
    """All weights are low, which is allowed."""
    _in_focus(
        policy._memory._values, lambda focus: focus._replace(weights=np.full_like(focus.weights, FULL // 4))
    )


def _in_focus(values: Any, chosen: Callable[[Focus], Focus]) -> None:
    focused = values.focused
    values.focused = lambda number, weights, sigmas, focus, secret: focused(
        number, weights, sigmas, chosen(focus), secret
    )


def two_under_one_number(policy: Any, broken: bool) -> None:
    """A slate that is asked around, early, is checked by a chain at the same release, and only one of them is paid."""
    memory, shown = policy._memory, policy._shown
    bought, begin = memory._values._bought, memory.begin_around
    shown.settled = lambda occasion: occasion.number > occasion.first and (shown.slate != EMPTY_SLOT).all()

    def both(number: int, first: int, slate: Items, focus: Focus) -> Any:
        if broken:
            checked = memory.begin_release(number, first, focus)
            checked.singles()
            checked.rest()
        return begin(number, first, slate, focus)

    memory.begin_around = both
    if broken:
        memory._values._bought = lambda number, weights, sigmas, about: bought(
            number, weights, sigmas, "people"
        )


# In what surrounds a learner.


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
    real = clip_focused

    def clip(rule: Any, *rest: Any) -> None:
        kind, bound, ceiling, ticks, limit, signed = rule
        real((kind, 8 * bound, ceiling, ticks, 8 * limit, signed), *rest)

    with mock.patch.object(chain_sums, "clip_focused", clip):
        yield


@contextmanager
def without_minimum() -> Iterator[None]:
    """Rows are what items lose when one joins, also where they gain: nothing keeps them within the singles."""
    with _falling(lambda factors: factors):
        yield


@contextmanager
def rising_weights() -> Iterator[None]:
    """Rows are in full focus, whatever singles were in, and nothing keeps them within those."""
    with _falling(np.ones_like):
        yield


@contextmanager
def _falling(weighed: Callable[[Floats], Floats]) -> Iterator[None]:
    """What is left after an item joined is not compared with what there was; `weighed`: what becomes of its factors."""

    def fall(
        starts: Any,
        items: Any,
        scales: Any,
        gains: Any,
        asked: Any,
        factors: Floats,
        ceiling: float,
        joined: Any,
        left: Any,
        after: Any,
    ) -> None:
        said = weighed(factors)[items] * np.minimum(gains, ceiling)
        for person in np.flatnonzero(asked):
            for j in range(starts[person], starts[person + 1]):
                here = items[j] != joined[person] and gains[j] > 0
                after[j] = int(scales[person] * said[j]) if here else 0

    with mock.patch.object(chain, "fall", fall):
        yield


PLANTED: dict[str, Fault] = {
    "noise halved (boosted)": Fault(Boosted, around=halved),
    "noise halved (slate-totals)": Fault(SlateTotals, around=halved),
    "clipping left out (overlap-sums)": Fault(OverlapSums, around=unclipped),
    "running minimum left out (overlap-greedy)": Fault(OverlapGreedy, around=without_minimum),
    "rising weights without a bound (overlap-greedy)": Fault(
        OverlapGreedy, singles_out_of_focus, rising_weights
    ),
    "weights from what people said (overlap-greedy)": Fault(OverlapGreedy, weights_from_answers),
    "an around and a chain under one number (overlap-greedy)": Fault(OverlapGreedy, two_under_one_number),
    "two chains (overlap-greedy)": in_contexts(PRIVATE, typed.two_chains),
    "exact counts of private contexts (overlap-greedy)": in_contexts(PRIVATE, typed.exact_counts),
    "batch closed on one value (overlap-greedy)": in_contexts(PRIVATE, typed.batch_ends_on_a_value),
    "only cells with people (overlap-greedy)": in_contexts(PRIVATE, around=typed.only_cells_with_people),
    "moved and still in the old cell (overlap-greedy)": in_contexts(
        PUBLIC, around=typed.still_in_the_old_cell
    ),
    "types from what people said (overlap-greedy)": in_contexts(PUBLIC, typed.counts_follow_answers),
    "stand-ins by public coins (overlap-greedy)": Fault(
        OverlapGreedy, excluding.stand_ins_by_public_coins, exclusions=True
    ),
    "rounds with exclusions refunded (overlap-greedy)": Fault(
        OverlapGreedy, excluding.refunded_rounds, exclusions=True
    ),
    "noise used again (boosted)": Fault(Boosted, noise_used_again),
    "secret words in part used again (boosted)": Fault(Boosted, words_given_back),
    "noise from public coins (slate-totals)": Fault(SlateTotals, public_noise),
    "propensity tells (slate-totals)": Fault(SlateTotals, propensity_tells),
    "scale decided by data (slate-totals)": Fault(SlateTotals, scale_follows_answers),
    "refusal decided by data (slate-totals)": Fault(SlateTotals, refuses_when_unhappy),
    "last of a batch counted again (boosted)": Fault(Boosted, last_counted_again),
    "slates decided by data (slate-totals)": Fault(SlateTotals, plans_on_answers),
    "duplicates counted (slate-clicks)": Fault(SlateClicks, duplicates_counted),
    "batch closed on answers (boosted)": Fault(Boosted, batch_ends_on_answers),
    "rate doubled (fi-dp)": Fault(FiDp, rate_doubled),
    "rate doubled (bandit-dp)": Fault(BanditDp, rate_doubled),
    "answers counted twice (fi-dp)": Fault(FiDp, learns_twice),
    "secret words used again (fi-dp)": Fault(FiDp, words_used_again),
    "exploration decided by data (bandit-dp)": Fault(BanditDp, explores_when_unhappy),
    "redraw decided by data (bandit-dp)": Fault(BanditDp, redraws_on_arrival),
    "duplicates counted (fi-dp)": Fault(FiDp, duplicates_counted),
    "epoch closed on answers (epoch-greedy)": Fault(EpochGreedy, epoch_ends_on_answers),
}
"""What is wrong, in which learner; how that is done, and what surrounds it."""

FAULTS: dict[str, Subject] = {name: fault.subject(name, broken=True) for name, fault in PLANTED.items()}
"""All of which an audit must find."""
