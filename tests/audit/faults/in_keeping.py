"""What can be done wrong where users are forgotten, or a public sample of them is learned from; planted into overlap
greedy (`PLANTED`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diminuendo.learners.overlap.memory import answer_of
from diminuendo.privacy.process_guard import call_untrusted
from diminuendo.types import Floats, Ints, Objective
from tests.audit.faults.planted import after

ROOM = 3
"""How many users are kept, where that is what decides who is."""


def coin_by_answers(policy: Any, broken: bool) -> None:
    """After each response, sampling of later users is inverted."""
    sample, answers = policy.frame.sample, [0]
    heads = sample.heads

    def count(*given: Any) -> None:
        answers[0] += broken

    def thrown(first: int, users: int) -> Any:
        result = heads(first, users)
        return ~result if answers[0] % 2 else result

    after(policy, "learn", count)
    sample.heads = thrown


def reservoir(policy: Any, broken: bool) -> None:
    """The sample is drawn among answers, as reservoirs are: who answers may take the place of somebody who did before,
    and each who is left stands for as many as have answered."""
    memory, rng, rounds, heard = policy._memory, np.random.default_rng(5), list[int](), [0]
    everybody = memory._participants

    def replace(number: int) -> None:
        rounds.append(number)
        heard[0] += 1
        if broken and len(rounds) > ROOM:
            memory.erase(np.array([rounds.pop(int(rng.integers(ROOM)))]))

    def asked(weights: Ints, factors: Floats) -> Any:
        return everybody(weights * max(1, heard[0] // ROOM), factors)

    _whenever_somebody_is_kept(policy, replace)
    if broken:
        memory._participants = asked


def forgotten_by_answers(policy: Any, broken: bool) -> None:
    """Users are forgotten each time that enough have answered, not when enough have come."""
    plan, answers = policy.plan, list[int]()
    kept_from = plan.kept_from

    def kept(number: int) -> int:
        enough = answers[: len(answers) - len(answers) % ROOM]
        return plan.schedule.batch_of(enough[-1]) if broken and enough else int(kept_from(number))

    _whenever_somebody_is_kept(policy, answers.append)
    object.__setattr__(plan, "kept_from", kept)


def forgotten_and_still_asked(policy: Any, broken: bool) -> None:
    """Who is too old is not charged for any more, and is asked as if nothing had been said of that."""
    memory = policy._memory
    everybody = memory._participants

    def asked(weights: Ints, factors: Floats) -> Any:
        return everybody(np.where(weights == 0, weights.max(), weights), factors)

    if broken:
        memory._participants, memory.forget = asked, lambda before: None


def last_counted_again(policy: Any, broken: bool) -> None:
    """The last user of a batch is stored again in the next one."""
    memory, schedule = policy._memory, policy.plan.schedule

    def store_again(_: None, place: int, answer: Objective) -> None:
        number, row = policy.frame.decisions.round_at(place), policy.frame.decisions.rows[place]
        batch = schedule.batch_of(number)
        if not broken or number + 1 != schedule.ends[batch] or batch + 1 == len(schedule):
            return
        said = call_untrusted(lambda: answer_of(answer, row, policy.frame.n_items))
        if said is not None:
            memory._values.added -= 1  # or more users would be refused than there is room for
            memory.keep(answer, batch + 1, said=said.singletons)

    after(policy, "learn", store_again)


def _whenever_somebody_is_kept(policy: Any, then: Callable[[int], None]) -> None:
    memory = policy._memory

    def learned(place: int, answer: Objective) -> None:
        before = len(memory)
        policy._learn(place, answer, policy.frame.decisions.round_at(place))
        if len(memory) > before:
            then(policy.frame.decisions.round_at(place))

    policy.learn = learned
