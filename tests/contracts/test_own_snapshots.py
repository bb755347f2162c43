"""A learner's own snapshot is never refused: whatever epsilon, however many answer, in the midst of a run."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from diminuendo import Contexts, FeedbackWindow, SeededSource, Setting, Users, restore
from diminuendo.contract.case import Case
from diminuendo.errors import OutOfRange
from diminuendo.objectives import NoisyOr
from tests.contracts.test_learner_contract import cases
from tests.kit.slow import is_variant

N, K, ROUNDS, STEP = 4, 2, 40, 7
EAGER = Users(NoisyOr(), np.tile([1.0, 1.0, 0.5, 0.0], (ROUNDS, 1)))
"""Everybody answers, and wants most of what there is."""
WORLDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "more answer than was said": {"feedback_window": FeedbackWindow(rounds=1, response_rate=0.01)},
    "private contexts": {"contexts": Contexts(group=2, private=True)},
}
PRIVATE = [
    pytest.param(case, marks=pytest.mark.slow if is_variant(case.kind.name) else [], id=repr(case))
    for case in cases()
    if case.kind.private
]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("case", PRIVATE)
def test_own_snapshots_are_restored_and_go_on_alike(case: Case, epsilon: float, world: str) -> None:
    if "contexts" in WORLDS[world] and not case.kind.takes("contexts"):
        return
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutOfRange)
            setting = Setting(N, K, ROUNDS, case.feedback, epsilon, **WORLDS[world])
            learner = case.kind.for_setting(setting, rng=SeededSource(seed))
        for first in range(0, ROUNDS - STEP, STEP):
            some = slice(first, first + STEP)
            known: dict[str, Any] = (
                {"contexts": np.arange(STEP)[:, None] % 2} if "contexts" in WORLDS[world] else {}
            )
            learner.replay(EAGER[some], **known)
            kept = learner.snapshot()
            twins = [restore(kept, rng=SeededSource(9)) for _ in range(2)]
            assert twins[0].snapshot() == kept
        both = [
            twin.replay(EAGER[ROUNDS - 4 :], **{name: value[:4] for name, value in known.items()})
            for twin in twins
        ]
        np.testing.assert_array_equal(both[0], both[1])
        assert twins[0].snapshot() == twins[1].snapshot()
