"""Retention: nobody is kept for more rounds than was said, and what is charged is what is asked."""

from __future__ import annotations

import gc
import itertools
import math
import random
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo.errors import InvalidInput
from diminuendo.learners import LEARNERS, Learner, Setting
from diminuendo.learners.base.replay import loop, replay
from diminuendo.learners.overlap.participants import StoredParticipants, Terms, answers_of
from diminuendo.learners.overlap.recipes import CLIP
from diminuendo.learners.overlap.schedule import MOST_BATCHES, overlap_plan
from diminuendo.objectives import Oracle
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import NormalColumns
from diminuendo.privacy.ledger import Ledger
from diminuendo.streams import Users, taste_groups

WORLD = Setting(6, 2, 240, "full", 4.0)


def some_users(n_items: int, many: int, seed: int) -> Users:
    return taste_groups(many, n_items, groups=3, items_per_group=3, seed=seed)


def made(retention: int | None, setting: Setting = WORLD, **more: Any) -> Learner:
    return dim.make("overlap-greedy", setting, rng=dim.SeededSource(3), retention=retention, **more)


def test_a_plan_asks_who_is_young_enough_and_every_batch_pays_within_the_budget() -> None:
    """By brute force over batches, in fractions."""
    draw = random.Random(5)
    for _ in range(40):
        rounds = draw.randrange(2, 4000)
        retention = draw.randrange(2 * math.ceil(rounds / MOST_BATCHES), 2 * rounds)
        budget = Budget(draw.choice((0.3, 1.0, 5.0)), 1e-6, accountant="continuous-gaussian")
        plan = overlap_plan(50, rounds, budget, CLIP, retention)
        ends, begun = plan.schedule.ends, (0, *plan.schedule.ends)
        assert max(plan.schedule.sizes) <= max(1, retention // 2)
        for b in range(plan.releases):
            young = [j for j in range(b + 1) if ends[b] - begun[j] <= retention]
            assert set(np.flatnonzero(plan.weights[b])) <= set(young)
            assert plan.weights[b, b] > 0
            assert plan.kept_from(b) == young[0]
        assert plan.kept_from(plan.releases) == len(ends), "after the last release nobody is needed"
        each = [
            sum(Fraction(shift) / Fraction(s) ** 2 for shift, s in zip(plan.shifts, both, strict=True))
            for both in plan.sigmas
        ]
        for j in range(plan.releases):
            paid = sum(int(plan.weights[b, j]) ** 2 * each[b] for b in range(plan.releases))
            whole = Fraction(budget.limit) - Fraction(plan.drift.mu) ** 2
            # Weights are rounded down, by less than 1 in 4096 where a batch is asked often.
            assert 0.97 * whole <= paid <= whole


def test_a_retention_longer_than_the_run_changes_nothing_that_is_shown() -> None:
    users = some_users(6, 240, seed=2)
    plain, long = made(None), made(2 * WORLD.rounds)
    assert (replay(plain, users) == replay(long, users)).all()
    assert plain.parameters | {"retention": 480} == long.parameters


@pytest.mark.parametrize("retention", [8, 40, 100])
def test_what_a_release_is_charged_is_what_it_asks(retention: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batch by batch: a column of the ledger is above 0 where users have a weight, and covers its square."""
    asked: list[dict[int, int]] = []
    begin = StoredParticipants.__init__

    def noted(self: StoredParticipants, blocks: Any, functions: Any, terms: Terms, engine: Any) -> None:
        users = [answers_of(block, terms).weights.tolist() for block in blocks]
        batches = [block.spec.batches.tolist() for block in blocks]
        asked.append(dict(zip(itertools.chain(*batches), itertools.chain(*users), strict=True)))
        begin(self, blocks, functions, terms, engine)

    monkeypatch.setattr(StoredParticipants, "__init__", noted)
    setting = Setting(6, 2, 240, "full", 4.0)
    ledger = Ledger(dim.budget_for("overlap-greedy", setting))
    learner = made(retention, ledger=ledger)
    loop(learner, some_users(6, 240, seed=1))
    plan: Any = learner.policy.plan  # type: ignore[attr-defined]
    assert len(asked) == plan.releases > 3
    for number, weights in enumerate(asked):
        charged = ledger.cost_of(f"users-{number:06d}")
        assert isinstance(charged, NormalColumns)
        one = sum(
            Fraction(shift) / Fraction(s) ** 2
            for shift, s in zip(plan.shifts, plan.sigmas[number], strict=True)
        )
        for batch, weight in weights.items():
            column = Fraction(charged.squares[batch]) if batch < len(charged.squares) else Fraction(0)
            assert column >= weight**2 * one
        old = [batch for batch, square in enumerate(charged.squares) if square == 0]
        assert not set(old) & {batch for batch, weight in weights.items() if weight}
    totals = np.zeros(len(plan.schedule))
    for number in range(plan.releases):
        squares = ledger.cost_of(f"users-{number:06d}").squares  # type: ignore[union-attr]
        totals[: len(squares)] += np.array(squares, dtype=np.float64)
    assert totals.max() <= ledger.budget.limit


class Somebody:
    """A function that knows when it was last asked."""

    def __init__(self, wanted: int, asked: Callable[[], None]) -> None:
        self._wanted, self._asked = wanted, asked

    def __call__(self, slate: frozenset[int]) -> float:
        self._asked()
        return float(self._wanted in slate)


def test_nobody_is_in_memory_or_asked_for_longer_than_was_said() -> None:
    retention, rounds = 40, WORLD.rounds
    learner, now, last_asked = made(retention), [0], dict[int, int]()
    alive = dict[int, weakref.ref[Somebody]]()
    longest = 0
    for t in range(rounds):
        now[0] = t
        decision = learner.choose()

        def note(number: int = t) -> None:
            last_asked[number] = now[0]

        somebody = Somebody(t % 6, note)
        alive[t] = weakref.ref(somebody)
        learner.observe(decision, Oracle(somebody, 6))
        del somebody
        kept = [number for number, one in alive.items() if one() is not None]
        if any(t - number >= retention for number in kept):  # unless they only wait to be collected
            gc.collect()
            kept = [number for number, one in alive.items() if one() is not None]
        longest = max(longest, *(t - number for number in kept), 0)
        assert all(t - number < retention for number in kept)
    assert longest > retention // 2, "and users are not forgotten much sooner"
    assert all(asked - number <= retention for number, asked in last_asked.items())
    assert max(asked - number for number, asked in last_asked.items()) > retention // 2


def test_nobody_older_is_in_a_snapshot_and_what_comes_too_late_is_not_kept() -> None:
    users = some_users(6, 240, seed=1)
    learner, retention = made(60), 60
    decisions = [learner.choose()]  # answered when her batch is forgotten
    loop(learner, users[:150])
    memory: Any = learner.policy._memory  # type: ignore[attr-defined]
    before = len(memory)
    learner.observe(decisions[0], users[0])
    assert len(memory) == before
    again = dim.restore(learner.snapshot(), rng=dim.SeededSource(9))
    schedule = again.policy.plan.schedule  # type: ignore[attr-defined]
    begun = (0, *schedule.ends)
    result: Any = again.policy._memory  # type: ignore[attr-defined]
    assert len(result) == before > 0
    assert all(begun[batch] >= 151 - retention for batch in result.users.batches)
    assert again.parameters["retention"] == retention
    loop(again, users[150:239])
    assert len(result) == 0, "after the last release nobody is needed any more"


def test_a_batch_that_is_asked_alone_is_not_taken_for_changed_tastes(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash it was charged for its own batch alone, as if tastes had changed: that tells nothing here."""
    learner = made(2, Setting(6, 2, 40, "full", 4.0))
    policy: Any = learner.policy
    assert policy.plan.kept_from(10) >= 9
    monkeypatch.setattr(policy._memory, "charged_from", lambda number: number)
    monkeypatch.setattr(policy._drift, "changed", lambda earned, deviation: False)
    alone = [number for number in range(policy.plan.releases) if policy.plan.kept_from(number) == number]
    loop(learner, some_users(6, 40, seed=1))
    begins = policy._position.memory_begins
    assert begins not in alone or begins == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"retention": 100, "horizon": None}, "how many rounds there will be at most"),
        ({"retention": 3, "rounds": 10_000}, "keep users for at least 20 rounds"),
        ({"retention": 0}, "retention"),
        ({"retention": 1.5}, "retention"),
    ],
)
def test_what_cannot_be_kept_to_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        dim.make("overlap-greedy", WORLD, **given)


def test_whoever_keeps_users_and_cannot_forget_them_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'epoch-greedy' keeps users.*'private'"):
        dim.make("epoch-greedy", WORLD, retention=100)
    for name, entry in LEARNERS.items():
        if not entry.advice.keeps_users and "full" in entry.reads:
            dim.make(name, WORLD, retention=100)  # nobody is kept, so nobody for too long
