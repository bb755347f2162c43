"""A release that fails at any statement: the next try goes on, and everything is as if nothing had failed."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from diminuendo import LEARNERS, Learner, Oracle, SeededCoins
from diminuendo.objectives.person import Person
from diminuendo.randomness import rounded_normal
from diminuendo.streams import taste_groups

N, ROUNDS = 8, 120
PEOPLE = taste_groups(ROUNDS, N, groups=3, items_per_group=3, seed=1)
PARTS = ("/diminuendo/learners/", "/diminuendo/sums/", "/diminuendo/privacy/", "/diminuendo/streams/walks.py")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise, so that a second draw of what nobody saw is the same."""
    monkeypatch.setattr(rounded_normal, "rounded_normal", lambda values, sigma, secret: np.array(values))


def answers(frame: Any) -> bool:
    """Whether a person's own code is running."""
    while frame is not None and frame.f_code.co_name != "said_by":
        frame = frame.f_back
    return frame is not None


@contextmanager
def failing_at(statement: int) -> Iterator[list[int]]:
    """Memory runs out before that statement of ours, counted from 1; how many there were."""
    seen = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        path = frame.f_code.co_filename
        if not any(part in path for part in PARTS) or (event == "call" and answers(frame)):
            return None  # what fails while a person answers is what she said
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


def worth(person: Person, items: frozenset[int]) -> float:
    return person.value(sorted(items))


def run(name: str, release: int, statement: int) -> tuple[Any, int]:
    """All slates, all that was published, and how many statements the release had that fails once, at `statement`."""
    learner: Learner = LEARNERS[name](N, 3, horizon=ROUNDS, epsilon=50.0, delta=1e-6, coins=SeededCoins(1))
    slates, made, count = [], 0, 0
    for number in range(ROUNDS):
        if learner.due():
            made += 1
            if made == release:
                with failing_at(statement) as seen, suppress(MemoryError):
                    learner.release()
                count = seen[0]
        decision = learner.choose()
        slates.append(decision.slate)
        person = PEOPLE[number]
        learner.observe(decision, person if number % 9 else Oracle(partial(worth, person), N))
    policy: Any = learner.policy
    ledger = policy._payoffs._sum._paid._ledger
    published = {
        drawn.name: (drawn.digest, ledger._kept._kept[drawn.name].tolist()) for drawn in ledger.drawn
    }
    LEARNERS[name].restore(learner.snapshot())
    return (slates, published, [charge.note for charge in ledger.charges]), count


EVERY = pytest.param(1, marks=pytest.mark.slow)


@pytest.mark.parametrize("step", [37, EVERY])
@pytest.mark.parametrize("release", [1, 3])
@pytest.mark.parametrize("name", ["overlap-greedy", "overlap-sums"])
def test_a_release_that_fails_at_any_statement_is_as_if_it_had_not(
    name: str, release: int, step: int
) -> None:
    expected, statements = run(name, release, 0)
    assert statements > 300
    for statement in range(release, statements + 1, step):
        found, _ = run(name, release, statement)
        assert found == expected, f"statement {statement}"
