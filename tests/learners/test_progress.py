"""What can be seen of a replay while it runs: it moves at public strides, whatever is said and drawn."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from diminuendo import LEARNERS, Learner, NoisyOr, SeededSource, Setting, Users
from diminuendo.errors import OutOfRange
from diminuendo.learners import with_variants
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.ledger import Ledger
from tests.kit.slow import mostly_slow

ROUNDS = 60_000


class TwoSeeds(SeededSource):
    """Always the same public coins, and secret words that differ."""

    def __init__(self, secret: int) -> None:
        super().__init__(1)
        self.secret = SeededSource(secret).secret  # type: ignore[method-assign]


def made(name: str, secret: int = 1, *, on_ledger: bool = False) -> Learner:
    entry = LEARNERS[name]
    kind: Any = next(kind for kind in ("full", "bandit", "click") if kind in entry.reads)
    setting = Setting(2, 1, ROUNDS, kind, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRange)
        learner = entry.for_setting(setting, rng=TwoSeeds(secret))
        if on_ledger and learner.budget is not None:
            budget = Budget(100.0, learner.budget.delta, accountant=learner.budget.accountant)
            learner = entry.for_setting(setting, rng=TwoSeeds(secret), ledger=Ledger(budget))
    return learner


def crowd(first: int) -> Users:
    """Everybody wants item 1, but the first user: she wants what is said here."""
    wanted = np.ones(ROUNDS, dtype=np.int64)
    wanted[0] = first
    return Users(
        NoisyOr(), scipy.sparse.csr_array((np.ones(ROUNDS), wanted, np.arange(ROUNDS + 1)), (ROUNDS, 2))
    )


SECRETLY = [
    name
    for name, entry in ((name, LEARNERS[name]) for name in with_variants())
    if entry.private and not isinstance(made(name).policy, MenuPolicy)  # else slates follow from public facts
]


def test_some_draw_secretly() -> None:
    assert {"fi-dp", "fi-pure", "bandit-dp", "bandit-dp:draw=direct"} <= set(SECRETLY)


@pytest.mark.parametrize("on_ledger", mostly_slow([False, True], [True]))
@pytest.mark.parametrize("name", SECRETLY)
def test_progress_says_nothing_of_what_was_said_or_drawn(name: str, on_ledger: bool) -> None:
    """Where secret words run out depends on scores, and so on the first answer; what is reported does not."""
    told = []
    for first, secret in itertools.product((0, 1), (1, 2)):
        learner = made(name, secret, on_ledger=on_ledger)
        seen: list[Any] = []

        def tell(done: int, learner: Learner = learner, seen: list[Any] = seen) -> None:
            seen.append((done, learner.rounds, repr(learner)))

        learner.replay(crowd(first), tell)
        told.append(seen)
    assert told[0] == told[1] == told[2] == told[3]
    assert sum(done for done, *_ in told[0]) == ROUNDS
