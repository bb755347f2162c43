"""Slate totals: learns from one number per person what slates are worth. For bandit feedback in practice.

Each person is shown one slate of the open block, and her payoff is added to that slate's total, which is published once
with noise. A total about a whole slate has no more noise than one about a single item, whatever the number of items,
slots and people; which item it was is worked out from totals of slates that overlap.

Guarantee  (epsilon, 0), whatever people say (docs/maths/counts.md, Theorem B2).
Regret     no bound. `bandit-blocks` has one.
Assumes    for learning: people much alike in the long run, with values that a few numbers can tell (model.py).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.feedback import read_payoff
from diminuendo.learners.slates.exact import OpenTwin
from diminuendo.learners.slates.learner import SlateLearner
from diminuendo.streams.people import People
from diminuendo.types import Decision, FeedbackKind, Ints, Items


class SlateTotals(SlateLearner):
    """Slates, their published totals, and beliefs."""

    name: ClassVar[str] = "slate-totals"
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"bandit"})
    summary: ClassVar[str] = "one noisy total per slate, and beliefs about items; bandit; private, delta = 0"
    ticks: ClassVar[int] = 1 << 10

    def _read(self, decision: Decision, feedback: Any) -> float:
        return read_payoff(self, feedback)

    def _answers(self, people: People, first: int, slates: Items) -> NDArray[Any]:
        return people.values_of(slates, first)

    def _add(self, slates: Ints, answers: NDArray[Any]) -> None:
        told = np.clip(np.nan_to_num(answers, nan=0.0), 0.0, 1.0)
        self._counts.add(slates, np.floor(told * self.ticks).astype(np.int64))

    def _add_one(self, slate: int, answer: float) -> None:
        if not 0.0 <= answer <= 1.0:
            answer = 1.0 if answer > 1.0 else 0.0  # what is not a number says nothing
        self._counts.add_one(slate, int(answer * self.ticks))


class OpenSlateTotals(OpenTwin, SlateTotals):
    """The same without noise."""

    name: ClassVar[str] = "slate-totals-open"
    summary: ClassVar[str] = "slate totals without noise: what privacy costs; bandit; not private"
