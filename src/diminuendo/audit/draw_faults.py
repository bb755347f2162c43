"""Planted faults in learners that draw items from secret scores; the table of all faults is in faults.py.

Each takes a learner as it is shipped and does one thing wrong to its policy; or, not broken, the same thing right, so
that what an audit finds is the fault and not how it was planted. Never for use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diminuendo.experts.hedge import new_hedge
from diminuendo.learners.base.entry import Entry
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.epoch_greedy import EpochGreedy
from diminuendo.learners.hedge.bandit_dp import BanditDp
from diminuendo.learners.hedge.exploring import NOBODY
from diminuendo.learners.hedge.fi_dp import FiDp
from diminuendo.randomness.words import USED
from diminuendo.types import Items


@dataclass(frozen=True)
class Fault:
    """A learner, and what is done wrong to it."""

    learner: Entry[...]
    plant: Callable[[Any, bool], None]
    """Changes a policy; only if it is told to, so that it is broken."""

    def planted(self, learner: Learner, broken: bool) -> Learner:
        """The learner, broken or not."""
        self.plant(learner.policy, broken)
        return learner


def rate_doubled(policy: Any, broken: bool) -> None:
    """Experts learn at twice the rate that was paid for: up and down are forgotten to be two directions."""
    frame = policy.frame
    policy._experts = new_hedge(frame.n_items, frame.slots, policy.rate * (2 if broken else 1))


def words_used_again(policy: Any, broken: bool) -> None:
    """The place in the secret words is not kept: all rounds draw with the same."""
    draw = policy.draw

    def draws(row: Items, probe: Items) -> bool:
        done = bool(draw(row, probe))
        if done and broken:
            policy.frame.secret.view.used[USED] = 0
        return done

    policy.draw = draws


def explores_when_unhappy(policy: Any, broken: bool) -> None:
    """Explores more often after somebody was unhappy."""
    learn, share = policy.learn, policy.rules.share

    def learns(place: int, answer: float) -> None:
        learn(place, answer)
        policy.rules = policy.rules._replace(share=1.0 - min(1.0, answer) if broken else share)

    policy.learn = learns


def redraws_on_arrival(policy: Any, broken: bool) -> None:
    """Experts draw again when the answer to an exploration has come, not when it was made."""
    draw, learn, later = policy.draw, policy.learn, [NOBODY]

    def draws(row: Items, probe: Items) -> bool:
        done = bool(draw(row, probe))
        if done and broken:
            later[0], policy._exploring.due[0] = int(policy._exploring.due[0]), NOBODY
        return done

    def learns(place: int, answer: float) -> None:
        learn(place, answer)
        if broken:
            policy._exploring.due[0] = later[0]

    policy.draw, policy.learn = draws, learns


def learns_twice(policy: Any, broken: bool) -> None:
    """Counts every answer when it comes and again when it is filed."""
    learn = policy.learn

    def learns(place: int, answer: Any) -> None:
        for _ in range(2 if broken else 1):
            learn(place, answer)

    policy.learn = learns


def duplicates_counted(policy: Any, broken: bool) -> None:
    """Forgets to close a round once it was answered: whoever answers again is counted again."""
    decisions = policy.frame.decisions
    decisions.close = (lambda place: None) if broken else decisions.close


def epoch_ends_on_answers(policy: Any, broken: bool) -> None:
    """An epoch is over when enough people have answered, not when enough have come."""
    learn, answers = policy.learn, [0]

    def learns(place: int, answer: Any) -> None:
        answers[0] += 1
        learn(place, answer)

    def due() -> bool:
        return bool(policy._made[0] < policy.epochs.of(answers[0] if broken else policy.frame.rounds))

    policy.learn, policy.due = learns, due


DRAW_FAULTS: dict[str, Fault] = {
    "rate doubled (fi-dp)": Fault(FiDp, rate_doubled),
    "rate doubled (bandit-dp)": Fault(BanditDp, rate_doubled),
    "answers counted twice (fi-dp)": Fault(FiDp, learns_twice),
    "secret words used again (fi-dp)": Fault(FiDp, words_used_again),
    "exploration decided by data (bandit-dp)": Fault(BanditDp, explores_when_unhappy),
    "redraw decided by data (bandit-dp)": Fault(BanditDp, redraws_on_arrival),
    "duplicates counted (fi-dp)": Fault(FiDp, duplicates_counted),
    "epoch closed on answers (epoch-greedy)": Fault(EpochGreedy, epoch_ends_on_answers),
}
"""What is wrong, in which learner, and how that is done."""
