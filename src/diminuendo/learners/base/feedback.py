"""Answers at the door: what people may say where not everything is told, and what it counts as.

Learners that are told everything: the person's objective, at the door and as compiled code reads it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from diminuendo.errors import InvalidInput, WrongFeedback, unless_ctrl_c
from diminuendo.learners.base.learner import Learner
from diminuendo.objectives.family import GainBuffer, Table, new_gain_buffer
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.person import Person, compiled
from diminuendo.streams.clicks import NO_CLICK
from diminuendo.types import Decision, FeedbackKind, Objective


def read_payoff(learner: Learner, feedback: Any) -> float:
    """Bandit feedback at the door: one number, counted as the nearest in [0, 1]."""
    if type(feedback) is float and 0.0 <= feedback <= 1.0:  # nearly always
        return feedback
    if isinstance(feedback, bool) or not isinstance(feedback, (int, float, np.integer, np.floating)):
        raise WrongFeedback(
            f"{learner.name!r} learns from one number: give observe() the payoff in [0, 1], "
            f"not {type(feedback).__name__}."
        )
    return float(min(max(feedback, 0), 1))  # before it is a float: whole numbers may be too large for one


def read_click(learner: Learner, decision: Decision, feedback: Any) -> int:
    """Feedback at the door: the position in the slate that was clicked first; None where nothing was."""
    if feedback is None:
        return NO_CLICK
    position = int(feedback) if type(feedback) is int or isinstance(feedback, np.integer) else NO_CLICK
    if not 0 <= position < len(decision.slate):
        raise WrongFeedback(
            f"{learner.name!r} learns from clicks: give observe() the position in decision.slate that was clicked "
            f"first, from 0 to {len(decision.slate) - 1}, or None where nothing was; got {feedback!r}."
        )
    return position


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


def checked_objective(learner: Learner, feedback: Any) -> Objective:
    """An objective over the learner's items, or an error."""
    known = type(feedback) is Person and type(feedback.index) is int
    if not known and not isinstance(feedback, Objective):  # asked last: to look for methods takes long
        raise WrongFeedback(
            f"{learner.name!r} learns from full information: give observe() the person's objective "
            f"(with value() and gains()), not {type(feedback).__name__}."
        )
    if not known and isinstance(feedback, Person):
        raise WrongFeedback(
            "A Person comes from People or person(); for an objective of your own write a class with n_items, "
            "value() and gains(), not derived from Person."
        )
    if feedback.n_items != learner.n_items:
        raise InvalidInput(f"The learner has {learner.n_items} items, the objective {feedback.n_items}.")
    objective: Objective = feedback
    return objective
