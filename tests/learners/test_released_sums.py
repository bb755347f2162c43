"""Learners on released sums: what hostile people can move, what is paid for, and that nothing is drawn twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diminuendo as dim
from diminuendo import Functions, Oracle, People, SeededCoins, Setting
from diminuendo.errors import InvalidInput, LedgerInUse, OverBudget
from diminuendo.learners.base.replay import loop
from diminuendo.learners.released.variants import Boosted, NoisyHedge
from diminuendo.privacy.accountants import ACCOUNTANTS
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import ContinuousGaussian
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import SecretRandomness
from diminuendo.randomness import rounded_normal as normal
from diminuendo.streams import taste_groups
from diminuendo.types import Ints
from tests.kit.families import families, specimens

KINDS: list[Any] = [Boosted, NoisyHedge]
BUDGET = Budget(1.0, 1e-6, accountant="continuous-gaussian")
Script = list[tuple[Ints, float, Ints]]


def made(kind: Any, n: int, k: int, rounds: int, seed: int = 1, **more: Any) -> Any:
    return kind(n, k, horizon=rounds, epsilon=1.0, delta=1e-6, coins=SeededCoins(seed), **more)


# What one person can move, along a common view.


@contextmanager
def published(script: Script, again: bool) -> Iterator[None]:
    """Write down what noise is about to cover; the second time publish what was published the first time."""
    original, place = normal.rounded_normal, iter(range(10**6))

    def sampler(values: Ints, sigma: float, secret: SecretRandomness) -> Ints:
        if not again:
            script.append((values.copy(), sigma, original(values, sigma, secret)))
            return script[-1][2]
        j = next(place)
        before, deviation, out = script[j]
        assert deviation == sigma
        script[j] = (values - before, sigma, out)
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normal, "rounded_normal", sampler)
        yield


def hostile(random: np.random.Generator, n: int, erratic: bool) -> Oracle | None:
    """Any function of a set: huge, negative, missing, not submodular, or erratic; sometimes nobody answers."""
    kind = int(random.integers(6 if erratic else 5))
    table = random.choice([0.0, 1.0, 0.5, -3.0, 1e300, np.nan, np.inf], size=1 << n)
    if kind == 0:
        return None
    if kind == 1:
        table = np.array([float(s.bit_count() >= 2) for s in range(1 << n)])  # nothing alone, all in pairs
    if kind == 2:
        table = np.array([float(s > 0) for s in range(1 << n)])

    def value(chosen: frozenset[int]) -> float:
        return float(random.random() if kind == 5 else table[sum(1 << item for item in chosen)])

    return Oracle(value, n)


def moved(kind: Any, n: int, k: int, streams: list[list[Any]], seed: int, **more: Any) -> Fraction:
    """Squared shifts over squared deviations, all releases together."""
    script: Script = []
    with np.errstate(all="ignore"):
        for again, stream in enumerate(streams):
            with published(script, again=again == 1):
                learner = made(kind, n, k, len(stream), seed, **more)
                for person in stream:
                    decision = learner.choose()
                    if person is not None:
                        learner.observe(decision, person)
    assert len(script) == len(learner.policy.released.schedule) - 1 > 5
    return sum(
        (
            Fraction(int((shift.astype(object) ** 2).sum())) / Fraction(sigma) ** 2
            for shift, sigma, _ in script
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_hostile_people_move_no_more_than_is_charged(kind: Any, seed: int, clip: float | None) -> None:
    random = np.random.default_rng(seed)
    n, rounds = 4, 40
    others = [hostile(random, n, erratic=False) for _ in range(rounds)]
    victim = int(random.integers(rounds // 2))
    streams = [[*others[:victim], hostile(random, n, erratic=True), *others[victim + 1 :]] for _ in range(2)]
    event = made(kind, n, 3, rounds, clip=clip).events
    assert isinstance(event, ContinuousGaussian)
    assert moved(kind, n, 3, streams, seed, clip=clip) <= Fraction(event.mu) ** 2 <= BUDGET.limit


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_can_move_nearly_all_that_is_charged(kind: Any) -> None:
    """Somebody for whom every item adds 1, in the first batch, against nobody: the charge is not idle."""
    n, rounds = 5, 40
    anything = Oracle(lambda chosen: float(len(chosen)), n)  # not in [0, 1]: every gain is 1
    nobody = [None] * (rounds - 1)
    share = moved(kind, n, 1, [[anything, *nobody], [None, *nobody]], 1) / BUDGET.limit
    assert 0.999 < share <= 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [1, 2, 9, 300, 20_000])
def test_the_budget_is_used_and_not_exceeded(kind: Any, rounds: int) -> None:
    for epsilon in (0.1, 1.0, 10.0):
        learner = kind(50, 3, horizon=rounds, epsilon=epsilon, delta=1e-6)
        limit = Budget(epsilon, 1e-6, accountant="continuous-gaussian").limit
        cost = ACCOUNTANTS["continuous-gaussian"].tally(learner.events).total  # type: ignore[attr-defined]
        assert 0.99 * float(limit) < cost <= limit
        assert learner.guarantee.epsilon <= epsilon
        assert learner.policy.released.schedule.rounds == rounds


# Replay, ledgers, crashes.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clip", [None, 0.7])
@families
def test_replay_is_the_loop(name: str, kind: Any, clip: float | None) -> None:
    for specimen, n, matrices in specimens(name):
        people = People(specimen, tuple(np.tile(np.asarray(m), (30, 1)) for m in matrices), n)
        quick, slow = (made(kind, n, 2, len(people), clip=clip) for _ in range(2))
        slates = quick.replay(people)
        np.testing.assert_array_equal(slates, loop(slow, people), err_msg=repr(specimen))
        np.testing.assert_array_equal(quick.policy.released.published, slow.policy.released.published)
        assert all(len(set(row)) == 2 for row in slates.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_functions_say_the_same_as_rows(kind: Any) -> None:
    people = taste_groups(60, 8, groups=2, items_per_group=3)
    functions = Functions([lambda s, t=t: people[t].value(sorted(s)) for t in range(60)], 8)  # type: ignore[misc]
    one, other = (made(kind, 8, 2, 60) for _ in range(2))
    dim.replay(one, people)
    dim.replay(other, functions)
    mine, theirs = one.policy.released, other.policy.released
    assert np.abs(mine.sum._cells.entries() - theirs.sum._cells.entries()).max() <= 60, (
        "a tick for each person at most"
    )
    np.testing.assert_allclose(mine.published, theirs.published, atol=60 / mine.clip.ticks)


@pytest.mark.parametrize("kind", KINDS)
def test_releases_are_paid_for_and_survive_a_crash(kind: Any, tmp_path: Path) -> None:
    people = taste_groups(600, 12, groups=4, items_per_group=5, seed=1)
    with Ledger.open(tmp_path / "ledger", BUDGET) as ledger:
        first = kind(12, 3, horizon=600, epsilon=1.0, delta=1e-6, ledger=ledger)
        first.replay(people[:200])
        kept = first.snapshot()
        first.replay(people[200:400])
        sums, spent = np.asarray(first.policy.released.published), ledger.spent()
    with Ledger.open(tmp_path / "ledger") as again:
        second = kind.restore(kept, ledger=again)
        second.replay(people[200:400])
        np.testing.assert_array_equal(second.policy.released.published, sums, "as published, not drawn again")
        second.replay(people[400:])
        assert again.spent() == spent <= 1.0
    with pytest.raises(InvalidInput, match="paid for on a ledger"):
        kind.restore(kept)


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_that_failed_is_made_at_the_next_round(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = made(kind, 8, 2, 100)
    failed: list[bool] = []
    original = normal.rounded_normal

    def once(*args: Any) -> Any:
        if not failed:
            failed.append(True)
            raise OSError("disk full")
        return original(*args)

    people, first = (
        taste_groups(100, 8, groups=2, items_per_group=3),
        learner.policy.released.schedule.ends[0],
    )
    learner.replay(people[:first])
    monkeypatch.setattr(normal, "rounded_normal", once)
    with pytest.raises(OSError, match="disk full"):
        learner.choose()
    assert learner.rounds == first
    learner.replay(people[first:])
    released = learner.policy.released
    assert released.n_releases[0] == released.sum.batch == len(released.schedule) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_answers_after_their_batch_count_for_nothing(kind: Any) -> None:
    learner, other = made(kind, 8, 2, 100), made(kind, 8, 2, 100)
    wants = dim.person(dim.NoisyOr(), {3: 1.0, 5: 0.5}, n_items=8)
    for each in (learner, other):
        decisions = [each.choose() for _ in range(each.policy.released.schedule.ends[0] + 1)]
        if each is learner:
            each.observe(decisions[0], wants)
            each.observe(decisions[1], Oracle(lambda chosen: 1 / 0, 8))  # has said nothing
    assert learner.policy.released.sum._cells.entries().sum() == 0
    np.testing.assert_array_equal(learner.policy.released.published, other.policy.released.published)
    learner.observe(learner.choose(), wants)
    assert learner.policy.released.sum._cells.entries().sum() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_doors(kind: Any) -> None:
    good: dict[str, Any] = {"horizon": 40, "epsilon": 1.0, "delta": 1e-6}
    for wrong, message in (
        ({"delta": 0.0}, "delta"),
        ({"clip": 0.0}, "clip must be"),
        ({"clip": True}, "clip must be"),
        ({"ledger": 5}, "Ledger"),
    ):
        with pytest.raises(InvalidInput, match=message):
            kind(8, 2, **(good | wrong))
    with pytest.raises(InvalidInput, match="40 rounds"):
        kind(8, 2, **good).replay(taste_groups(41, 8, groups=2, items_per_group=3))
    small = Ledger(Budget(0.1, 1e-6, accountant="continuous-gaussian"))
    with pytest.raises((OverBudget, LedgerInUse)):
        kind(8, 2, **good, ledger=small)
    assert kind.for_setting(Setting(8, 2, 40, "full")).parameters["clip"] is None
