"""Learners that are told everything."""

from __future__ import annotations

from typing import Any, ClassVar

from diminuendo.errors import unless_ctrl_c
from diminuendo.learners.base.feedback import checked_objective
from diminuendo.learners.base.old_learner import Learner
from diminuendo.objectives.family import GainBuffer, Table, new_gain_buffer
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.person import compiled
from diminuendo.types import Decision, FeedbackKind


class FullInformation(Learner):
    """Reads an objective, and has a bag for its gains."""

    reads: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})
    _held: GainBuffer | None = None

    def _bag(self, leaves: int) -> GainBuffer:
        """Room for the gains of a person of so many leaves."""
        if self._held is None or len(self._held.items) < leaves * self.n_items:
            self._held = new_gain_buffer(self.n_items, leaves)
        return self._held

    def _read(self, decision: Decision, feedback: Any) -> Any:
        """(table, row, leaves), as kernels walk it along the slate that was shown."""
        objective = checked_objective(self, feedback)
        try:
            return compiled(objective, decision.slate)
        except BaseException as error:  # whatever goes wrong inside, it is what this person said: nothing
            unless_ctrl_c(error)
            return compiled(Oracle(lambda chosen: 0.0, self.n_items), decision.slate)


Read = tuple[Table, int, int]
"""What `_read` makes of an objective."""
