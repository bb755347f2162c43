"""What the two policies of slates share: the plan's noise, items that come and go, and the fallback slate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.frame import Frame
from diminuendo.learners.base.menu import Chooser
from diminuendo.learners.base.policy import MenuPolicy
from diminuendo.learners.health import Signal
from diminuendo.learners.slates.builder import SlateBuilder
from diminuendo.learners.slates.planner import SlatePlanner
from diminuendo.learners.slates.questions import KnownBeforehand, Noise, Questions
from diminuendo.privacy.budget import Budget
from diminuendo.privacy.events import Laplace
from diminuendo.sums.private_counts import Counts
from diminuendo.types import Items

HIDDEN = 2
"""How much one answer moves hidden cells, in units: one where it was, and one where it might have been."""


class QuestionPolicy(MenuPolicy):
    """Plans blocks of slates, and publishes users' answers to one question each; `asked` is what was asked for."""

    purpose, remote_rounds = "one question to each user", True
    signal: Signal

    def __init__(
        self, frame: Frame, budget: Budget, counts: Counts, questions: Questions, known: KnownBeforehand
    ) -> None:
        if frame.horizon is None:  # there would be no bound on one user's rounds
            raise InvalidInput(f"{frame.name!r} plans for a number of rounds; give a horizon.")
        self.frame, self.reader, self._horizon = frame, questions.reader, frame.horizon
        self.budget = budget if counts.noisy else None
        self._epsilon = budget.epsilon
        self._counts, self._questions, self._builder = counts, questions, SlateBuilder(known.items)
        self.items, self._known = known.items, known

    def _planner(self, hidden: bool = False) -> SlatePlanner:
        frame, questions, counts = self.frame, self._questions, self._counts
        cost = HIDDEN if hidden else 1
        scales = {each: self._scale(HIDDEN if hidden else each) for each in questions.sensitivities}
        noise = Noise(float(counts.event.epsilon) / cost, scales, counts.noisy)
        return SlatePlanner(
            frame.n_items, frame.slots, self._horizon, questions, noise,
            ahead=frame.feedback_window.ahead, response_rate=frame.feedback_window.response_rate,
            builder=self._builder, prior=self._known.prior,
        )  # fmt: skip

    def _scale(self, sensitivity: int) -> float:
        return self._counts.scale(sensitivity) / self._counts.ticks

    @property
    def events(self) -> Laplace | None:
        """What the whole run costs one round: as much as one block, for none is in two."""
        return self._counts.event if self._counts.noisy else None

    @property
    def chooser(self) -> Chooser:
        """Shows each round its slate."""
        return self._chooser

    def appear(self, items: Iterable[int]) -> None:
        """These items are available from now on, and are tried from the next block on."""
        self.items.appear(items, 0)
        self._items_changed()

    def retire(self, items: Iterable[int]) -> None:
        """These items are not shown any more."""
        self.items.retire(items, 0)
        self._items_changed()

    @abstractmethod
    def _items_changed(self) -> None:
        """Blocks end now, if one of their slates has items that are gone, or lacks pinned ones."""

    @abstractmethod
    def _shown_out(self) -> bool:
        """Whether all rounds of all blocks have been chosen, and others are to come."""

    @abstractmethod
    def filler(self, kind: int = 0) -> Items:
        """The fallback slate of a user of context id `kind`, where no round of a block can be had."""

    def fill(self, row: Items) -> bool:
        """The leading slate of the last block; where none leads, its first; before there is a block, any items."""
        if not self._shown_out():
            return False
        row[:] = self.filler(int(self.frame.coming[0]) if len(self.frame.coming) else 0)
        self.leave_out(row[None, :], self.frame.coming[:1])
        return True

    def config(self) -> dict[str, Any]:
        """The epsilon that was asked for, and what is known of items beforehand."""
        open_ = {} if self._counts.noisy else {"private": False}
        return {"epsilon": self._epsilon} | self._known.config() | open_
