"""A release that fails at any statement: the next try goes on, and everything is as if nothing had failed.

Learners that plan slates may end instead: then they say so, and the last snapshot goes on.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, Oracle, SeededSource, Setting
from diminuendo.errors import InvalidInput
from diminuendo.learners import epoch_greedy
from diminuendo.learners.slates.blocks import numbers_per_slate, sensitivity_of
from diminuendo.learners.slates.open_blocks import OpenBlock
from diminuendo.learners.slates.policy import SlatePolicy
from diminuendo.objectives.user import User
from diminuendo.privacy.ledger import Ledger
from diminuendo.randomness import noise, rounded_normal
from diminuendo.streams import taste_groups
from diminuendo.types import Decision, Ints
from tests.kit.slow import MECHANISMS, mostly_slow, rows_mostly_slow
from tests.learners.test_late import BATCHED

N, SLOTS, ROUNDS = 6, 2, 120
USERS = taste_groups(ROUNDS, N, groups=3, items_per_group=2, seed=1)
PARTS = ("/diminuendo/learners/", "/diminuendo/sums/", "/diminuendo/privacy/", "/diminuendo/streams/walks.py")
AFTERWARDS = 40
"""Rounds after the release that fails; something is published in them."""
NAMES = [name for name in BATCHED if LEARNERS[name].private]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that a second draw of what nobody saw is the same; but what is published shows its scale."""

    def shifted(values: Ints, scale: float, secret: object) -> Ints:
        return np.array(values) + round(scale)

    def best(scores: Ints, rate: float, secret: object) -> int:
        return int(np.argmax(scores))

    monkeypatch.setattr(rounded_normal, "rounded_normal", shifted)
    monkeypatch.setattr(noise, "laplace", shifted)
    monkeypatch.setattr(epoch_greedy, "select", best)


def answers(frame: Any) -> bool:
    """Whether a user's own code is running."""
    while frame is not None and frame.f_code.co_name != "call_untrusted":
        frame = frame.f_back
    return frame is not None


@contextmanager
def failing_at(statement: int) -> Iterator[list[int]]:
    """Memory runs out before that statement of ours, counted from 1; how many there were."""
    seen = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if not any(part in path for part in PARTS) or (event == "call" and answers(frame)):
            return None  # what fails while a user answers is what she said
        if event == "line":
            # A statement that ends a `with` has nothing that could fail.
            text = linecache.getline(path, frame.f_lineno).strip()
            if (
                not text.startswith(("with ", "raise", "except", "finally"))
                and "array[...] = kept" not in text
            ):
                seen[0] += 1
                if seen[0] == statement:
                    raise MemoryError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


def worth(user: User, items: frozenset[int]) -> float:
    return user.value(sorted(items))


def made(name: str, feedback_window: int | None) -> Learner:
    kind = min(LEARNERS[name].reads)
    setting = Setting(N, SLOTS, ROUNDS, kind, epsilon=50.0, delta=1e-6, feedback_window=feedback_window)
    return LEARNERS[name].for_setting(setting, rng=SeededSource(1))


def said(learner: Learner, number: int, decision: Decision) -> Any:
    """What she says: of rewards and clicks, yes or no, every third time."""
    if "full" in learner.reads:
        user = USERS[number]
        return user if number % 9 else Oracle(partial(worth, user), N)
    yes = number % 3 == 0
    return float(yes) if "bandit" in learner.reads else (0 if yes else None)


def ledger_of(learner: Learner) -> Ledger:
    policy: Any = learner.policy
    for owner in ("_rewards._sum", "experts", "_counts", ""):
        result = policy
        for part in owner.split("."):
            result = getattr(result, part, None) if part else result
        if result is not None:
            ledger: Ledger = result._paid._ledger
            return ledger
    raise AssertionError


def published(learner: Learner) -> dict[str, list[int]]:
    ledger = ledger_of(learner)
    return {drawn.name: ledger._kept.once(drawn.name, no_draw).tolist() for drawn in ledger.drawn}


def no_draw() -> Ints:
    raise AssertionError("it was drawn before")


def run(name: str, feedback_window: int | None, release: int, statement: int) -> tuple[Any, int]:
    """What was seen and published, and how many statements the release had that fails once, at `statement`."""
    learner = made(name, feedback_window)
    slates, blocks, releases, count, end = list[tuple[int, ...]](), dict[int, OpenBlock](), 0, 0, ROUNDS
    for number in range(ROUNDS):
        if number == end:
            break
        if learner.due():
            releases += 1
            if releases == release:
                before = learner.snapshot()
                with failing_at(statement) as seen, suppress(MemoryError):
                    learner.release()
                count, end = seen[0], number + AFTERWARDS
                learner = gone_on(learner, before)
        decision = learner.choose()
        slates.append(decision.slate)
        learner.observe(decision, said(learner, number, decision))
        if isinstance(learner.policy, SlatePolicy):
            blocks |= enumerate(learner.policy._blocks, learner.policy._counts.number)
    LEARNERS[name].restore(learner.snapshot())
    if blocks:
        check_counts(learner, blocks)
        return None, count
    return (slates, published(learner), [charge.note for charge in ledger_of(learner).charges]), count


def gone_on(learner: Learner, before: bytes) -> Learner:
    """The learner; or, where it has ended, one that goes on from the snapshot before, with the same ledger."""
    with suppress(InvalidInput):  # a release is under way
        LEARNERS[learner.name].restore(learner.snapshot())
    if not learner._frame.guard.broken:
        return learner
    assert isinstance(learner.policy, SlatePolicy), "only those who plan slates may end"
    for refused in (learner.choose, learner.release, learner.snapshot):
        with pytest.raises(InvalidInput, match="restore"):
            refused()
    return LEARNERS[learner.name].restore(before, rng=SeededSource(1))


def check_counts(learner: Learner, blocks: dict[int, OpenBlock]) -> None:
    """Every lot holds what the users of its block said, each once, with the noise of its questions."""
    result, counts = published(learner), slates_of(learner)._counts
    lots = [part for part in result if not part.endswith(".plan")]
    assert lots
    for lot in lots:
        block, menu, *_ = blocks[int(lot.removeprefix(f"{learner.name}."))]
        cells = np.repeat(sensitivity_of(block.questions), numbers_per_slate(block.questions, SLOTS))
        scales = sum(round(counts.scale(int(each))) for each in cells)
        yes = sum(number % 3 == 0 for number in range(menu.first, menu.first + len(menu.assigned)))
        assert sum(result[lot]) == yes * counts.ticks + scales


def slates_of(learner: Learner) -> SlatePolicy:
    assert isinstance(learner.policy, SlatePolicy)
    return learner.policy


EVERY = pytest.param(1, marks=pytest.mark.slow)
RNG_IN_TURN = ("lazy-hedge",)
"""Who tosses several coins for one release: between two of them words are used up, and nothing is published yet."""


CASES = [(name, *case) for name in NAMES for case in ((2, None), (3, 20))]
"""Which learner, the number of the release that fails, and patience."""
QUICK = rows_mostly_slow([(*case, None) for case in CASES], [(name, 3, 20, None) for name in MECHANISMS])
SLOW = [
    pytest.param(*case, 1, marks=pytest.mark.slow)
    for case in CASES
    if case[2] or not case[0].startswith("overlap")
]
"""At every statement; one of the longest releases is enough of a learner."""


@pytest.mark.parametrize(("name", "release", "feedback_window", "step"), [*QUICK, *SLOW])
def test_a_release_that_fails_at_any_statement_is_as_if_it_had_not(
    name: str, release: int, feedback_window: int | None, step: int | None
) -> None:
    (expected, statements), others = run(name, feedback_window, release, 0), 0
    assert statements > 100
    for statement in range(release, statements + 1, step or statements // 5):
        result, _ = run(name, feedback_window, release, statement)
        if name in RNG_IN_TURN and result != expected:  # coins that were tossed before are tossed anew
            assert len(result[0]) == len(expected[0])
            assert (set(result[1]), result[2]) == (set(expected[1]), expected[2]), f"statement {statement}"
            others += 1
            continue
        assert result == expected, f"statement {statement}"
    assert others < 5


@pytest.mark.parametrize("step", [None, EVERY])
@pytest.mark.parametrize("name", mostly_slow(NAMES, MECHANISMS))
def test_a_round_that_fails_at_any_statement_is_over_or_never_was(name: str, step: int | None) -> None:
    """What was drawn for it may be lost; others go on, and a snapshot is read."""

    def cut(statement: int) -> int:
        learner = made(name, 7)
        for number in range(50):
            if number == 33:
                with failing_at(statement) as seen, suppress(MemoryError):
                    learner.choose(release=False)
                LEARNERS[name].restore(learner.snapshot())
            decision = learner.choose()
            learner.observe(decision, said(learner, number, decision))
        assert 50 <= learner.rounds <= 51
        LEARNERS[name].restore(learner.snapshot())
        return seen[0]

    statements = cut(0)
    for statement in range(1, statements + 1, step or statements // 5):
        cut(statement)
