"""Readers: validate feedback before anything is changed, and turn it into what a policy learns from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from diminuendo._validate import as_floats
from diminuendo.errors import DiminuendoError, InvalidInput, WrongFeedback
from diminuendo.learners.base.frame import Frame
from diminuendo.objectives.family import Table
from diminuendo.objectives.oracle import Oracle
from diminuendo.objectives.user import User, compiled
from diminuendo.privacy.process_guard import call_untrusted
from diminuendo.streams.clicks import NO_CLICK
from diminuendo.streams.users import Stream
from diminuendo.types import FEEDBACKS, Decision, FeedbackKind, Floats, Objective, Slate


class Reader(Protocol):
    """Protocol of readers: validate feedback before anything is changed.

    Attributes
    ----------
    kinds : frozenset of {"full", "bandit", "click"}
        What it reads.
    """

    kinds: ClassVar[frozenset[FeedbackKind]]

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> Any:
        """The answer that a policy learns from; raises before anything is changed."""
        ...


class Objectives:
    """Reader of full information: the user's objective, as an `Objective`."""

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> Objective:
        """An objective over the learner's items."""
        return checked_objective(frame, feedback)


CompiledObjective: TypeAlias = tuple[Table, int, int]
"""A table, a row of it, and the number of matrices that its family has: an objective as kernels walk it."""


class CompiledObjectives:
    """Full information, as kernels walk it along the slate that was shown."""

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> CompiledObjective:
        """(table, row, leaves) of an objective over the learner's items."""
        objective = checked_objective(frame, feedback)
        said = call_untrusted(lambda: compiled(objective, decision.slate))
        return said or compiled(Oracle(lambda chosen: 0.0, frame.n_items), decision.slate)


class Singles:
    """Reader of full information as singleton values: an array of what each item adds to the empty slate.

    Zeros if the objective returns anything but a number for each item.
    """

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> Floats:
        """What each item adds to the empty slate; zeros unless the objective returns a number for each item."""
        objective = checked_objective(frame, feedback)
        result = call_untrusted(lambda: as_floats(objective.gains(())))
        return np.zeros(frame.n_items) if result is None or result.shape != (frame.n_items,) else result


class Supergradients:
    """Full information, of which only a supergradient of the concave relaxation at a public point is learned.

    Parameters
    ----------
    point : callable
        Returns the point, an array of shape (n_items,) that depends on releases and public facts alone.

    Notes
    -----
    The answer is a vector in [0, 1]^n_items: `User.supergradient(point())`. An objective that is only a function has
    no relaxation that few queries tell. It counts as its singleton values, which are at least its marginal gains, and a
    function that raises or returns anything but numbers counts as zeros.

    Examples
    --------
    In a policy with a menu `SlatesFromPoint`:

    >>> import numpy as np
    >>> from diminuendo.extend import Supergradients
    >>> reader = Supergradients(lambda: np.full(10, 0.3))
    >>> sorted(reader.kinds)
    ['full']
    """

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"full"})

    def __init__(self, point: Callable[[], Floats]) -> None:
        self._point = point

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> Floats:
        """The slope of the objective's relaxation at the point."""
        objective = checked_objective(frame, feedback)
        if type(objective) is User:
            return objective.supergradient(self._point())[1]
        return Singles()(frame, decision, objective)


class Rewards:
    """Reader of bandit feedback: the reward of the slate, clipped to [0, 1]."""

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"bandit"})

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> float:
        """The reward, as the nearest number in [0, 1]."""
        return read_reward(frame, feedback)


class Clicks:
    """Reader of click feedback: the position of the first click, -1 for None."""

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset({"click"})

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> int:
        """The position that was clicked first, or NO_CLICK."""
        return read_click(frame, decision, feedback)


class Anything:
    """Reader for learners that learn nothing: every feedback counts as None."""

    kinds: ClassVar[frozenset[FeedbackKind]] = frozenset(FEEDBACKS)

    def __call__(self, frame: Frame, decision: Decision, feedback: Any) -> None:
        """Whatever was said counts as nothing."""


def simulate_feedback(stream: Stream, user: int, slate: Slate, kind: FeedbackKind) -> Any:
    """What a user of a stream says to a slate, by the kind of feedback."""
    if kind == "click":
        return stream.click(user, slate)
    return stream[user] if kind == "full" else stream[user].value(slate)


def read_reward(frame: Frame, feedback: Any) -> float:
    """Validate bandit feedback: one number, counted as the nearest in [0, 1]."""
    if isinstance(feedback, bool) or not isinstance(feedback, (int, float, np.integer, np.floating)):
        raise WrongFeedback(
            f"{frame.name!r} learns from one number: give observe() the reward in [0, 1], "
            f"not {type(feedback).__name__}."
        )
    return float(min(max(feedback, 0), 1))  # before it is a float: whole numbers may be too large for one


def read_click(frame: Frame, decision: Decision, feedback: Any) -> int:
    """Validate click feedback: the position in the slate that was clicked first; None where nothing was."""
    if feedback is None:
        return NO_CLICK
    position = int(feedback) if type(feedback) is int or isinstance(feedback, np.integer) else NO_CLICK
    if not 0 <= position < len(decision.slate):
        raise WrongFeedback(
            f"{frame.name!r} learns from clicks: give observe() the position in decision.slate that was clicked "
            f"first, from 0 to {len(decision.slate) - 1}, or None where nothing was."
        )
    return position


def refusal(error: Exception) -> str:
    """Why feedback was refused, without anything of what it says."""
    return str(error) if isinstance(error, DiminuendoError) else "what was said cannot be read."


def checked_objective(frame: Frame, feedback: Any) -> Objective:
    """An objective over the learner's items, or an error."""
    known = type(feedback) is User and type(feedback.index) is int
    if known:  # asked first: to look for methods takes long
        n_items: Any = feedback.n_items
    else:
        n_items = call_untrusted(lambda: feedback.n_items if isinstance(feedback, Objective) else None)
    fits = (known and n_items == frame.n_items) or call_untrusted(lambda: bool(n_items == frame.n_items))
    if n_items is None:
        raise WrongFeedback(
            f"{frame.name!r} learns from full information: give observe() the user's objective "
            f"(with value() and gains()), not {type(feedback).__name__}."
        )
    if not known and issubclass(type(feedback), User):
        raise WrongFeedback(
            "A User comes from Users or user(); for an objective of your own write a class with n_items, "
            "value() and gains(), not derived from User."
        )
    if not fits:
        raise InvalidInput(f"The learner has {frame.n_items} items, the objective another number of them.")
    objective: Objective = feedback.checked() if known else feedback
    return objective
