"""What can be done wrong in draws of items from secret scores, and with answers that are learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diminuendo.experts.hedge import new_hedge
from diminuendo.learners.hedge.exploring import NOBODY
from diminuendo.randomness.words import USED
from tests.audit.faults.planted import after


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
    """An epoch is over when enough users have answered, not when enough have come."""
    _due_on_answers(policy, broken, lambda rounds: policy._n_slates[0] < policy.epochs.of(rounds))


def batch_ends_on_answers(policy: Any, broken: bool) -> None:
    """A batch is over when enough users have answered, not when enough have come."""
    plan = policy.plan

    def due(rounds: int) -> bool:
        return bool(policy._position.made < min(plan.releases, plan.schedule.closed_by(rounds)))

    _due_on_answers(policy, broken, due)


def _due_on_answers(policy: Any, broken: bool, due: Callable[[int], bool]) -> None:
    answers: list[Any] = []
    after(policy, "learn", lambda *given: answers.append(given))
    policy.due = lambda: bool(due(len(answers) if broken else policy.frame.rounds))
