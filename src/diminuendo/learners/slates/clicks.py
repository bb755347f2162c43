"""Slate clicks: learns from who clicked first. For click feedback in practice.

As slate totals, but a person can be asked more than one thing, one at a time: whether one of the first e slots was
clicked, which moves one count by at most 1; or which slot was, which moves two counts by 1 and needs noise of twice the
scale in each. What is asked is decided with the slate, by public facts: whatever should teach most. Order does not
change what a slate pays, so items that were shown to few people so far come first, where most people look.

Guarantee  (epsilon, 0), whatever people click, and whether they do (docs/maths/counts.md, Theorem B2).
Regret     no bound. `ranked-clicks` has one.
Assumes    for learning: people who read from the top (streams/clicks.py), much alike in the long run.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.feedback import read_click
from diminuendo.learners.slates.blocks import WHICH
from diminuendo.learners.slates.exact import OpenTwin
from diminuendo.learners.slates.learner import SlateLearner
from diminuendo.learners.slates.likelihood import ROUNDING
from diminuendo.learners.slates.posterior import KEPT
from diminuendo.streams.clicks import NO_CLICK
from diminuendo.streams.people import People
from diminuendo.types import Decision, FeedbackKind, Floats, Ints, Items


class SlateClicks(SlateLearner):
    """Slates, their published clicks, and beliefs."""

    name: ClassVar[str] = "slate-clicks"
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"click"})
    summary: ClassVar[str] = "noisy clicks per slate, and beliefs about items; click; private, delta = 0"
    ticks: ClassVar[int] = 1

    def _ask(self, slate: Items, people: int) -> tuple[Items, int]:
        ordered = slate[np.argsort(self._beliefs.heard.shown[slate], kind="stable")]
        return ordered, best_question(
            self._beliefs.chances(ordered), people, self._counts.scale(1), self._counts.scale(2)
        )

    def _retests(self, leader: Items, people: int, few: int) -> list[tuple[Items, int]]:
        """One rival each in front of leading items: all look at it, and only the last of those behind is missing."""
        found: dict[int, Items] = {}
        for back in range(min(KEPT, people // few)):
            for rival in self._beliefs.rivals(back, leader)[:1]:
                found[int(rival)] = np.concatenate([[rival], leader[:-1]]).astype(np.int32)
        return [(slate, people // max(1, len(found))) for slate in found.values()]

    def _read(self, decision: Decision, feedback: Any) -> int:
        return read_click(self, decision, feedback)

    def _answers(self, people: People, first: int, slates: Items) -> Ints:
        return people.first_clicks(slates, first)

    def _add(self, slates: Ints, answers: NDArray[Any]) -> None:
        asked = self._block.questions[slates]
        yes = (answers != NO_CLICK) & ((asked == WHICH) | (answers < asked))
        cells = self._starts[slates] + np.where(asked == WHICH, answers, 0)
        self._counts.add(cells[yes], np.ones(np.count_nonzero(yes), dtype=np.int64))

    def _add_one(self, slate: int, answer: int) -> None:
        asked = self._block.questions.item(slate)
        if answer != NO_CLICK and (asked == WHICH or answer < asked):
            self._counts.add_one(self._starts.item(slate) + (answer if asked == WHICH else 0), 1)


class OpenSlateClicks(OpenTwin, SlateClicks):
    """The same without noise."""

    name: ClassVar[str] = "slate-clicks-open"
    summary: ClassVar[str] = "slate clicks without noise: what privacy costs; click; not private"


def best_question(chances: Floats, people: int, bit: float, which: float) -> int:
    """What should teach most: WHICH, or e for one of the first e slots. By draws of click chances up to each slot.

    What a count teaches is measured by half the logarithm of how much its forecast varies more than it would by chance
    and noise alone: the information in it, were all of it Gaussian.
    """
    slots = np.diff(chances, axis=1, prepend=0.0)
    first_slots = _information(chances, people, bit)
    each_slot = _information(slots, people, which)
    return WHICH if each_slot.sum() > first_slots.max() else int(first_slots.argmax()) + 1


def _information(chances: Floats, people: int, scale: float) -> Floats:
    mean = np.clip(chances.mean(axis=0), 0.0, 1.0)
    chance = people * mean * (1 - mean) + 2 * scale**2 + ROUNDING
    return np.asarray(0.5 * np.log1p(people**2 * chances.var(axis=0) / chance))
