"""Answers at the door: what people may say where not everything is told, and what it counts as."""

from __future__ import annotations

from typing import Any

import numpy as np

from diminuendo.errors import WrongFeedback
from diminuendo.learners.learner import Learner
from diminuendo.streams.clicks import NO_CLICK
from diminuendo.types import Decision


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
