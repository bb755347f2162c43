"""The feedback window: how long feedback is waited for, and how many users respond. Public, and set beforehand.

A decision may be answered until its *deadline*. With `rounds=r`, feedback is in time if at most r further rounds have
been chosen when it arrives; with `seconds=s`, if at most s seconds have passed since its slate was chosen. Rounds whose
deadline has passed are *closed*; the others are open, whether they were answered or not, because who responds is as
private as the response. What is published about a batch of rounds is published when all of them are closed. Until then
users are shown what follows from earlier releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from diminuendo import _validate
from diminuendo.errors import InvalidInput
from diminuendo.types import NEVER, Ints

LONGEST = 10**9
"""Rounds of a feedback window, at most: decisions are remembered for as long."""
REMEMBERED = 10_000
"""How many of the last decisions are remembered, unless the window says otherwise."""


@dataclass(frozen=True)
class FeedbackWindow:
    """The feedback window: until when feedback on a decision counts, and how many users respond.

    Parameters
    ----------
    rounds : int, optional
        Feedback counts if at most this many further rounds have been chosen when it arrives; 0: before the next one
        is.
    seconds : float, optional
        Feedback counts for this many seconds after the slate was chosen, inclusive. Not together with `rounds`.
    in_flight : int, default 10_000
        Without `rounds`: how many decisions are remembered. Older ones are closed, however recent.
    expected_pending : int, optional
        With `seconds`: about how many decisions are open at a time. By default `in_flight`.
    response_rate : float, default 1.0
        Share of users who respond at all, above 0 and at most 1. A guess that was not made from these users'
        feedback.
    clock : callable, optional
        With `seconds`: returns the time in seconds, as `time.time`. Its readings are public.

    Raises
    ------
    InvalidInput
        If a number is out of range, both units are given, or seconds come without a clock.

    Notes
    -----
    A round is closed once its window has passed, whether or not its user responded: who responds is as private as
    what they say. What is published about a batch is published when all of its rounds are closed. Waiting costs no
    privacy (Theorem L1 of docs/maths/late.md).

    Examples
    --------
    >>> import diminuendo as dim
    >>> window = dim.FeedbackWindow(rounds=1_000, response_rate=0.3)
    >>> setting = dim.Setting(n_items=50, slots=3, rounds=20_000, feedback="bandit", feedback_window=window)
    >>> dim.make("private", setting).feedback_window.rounds
    1000

    """

    rounds: int | None = None
    seconds: float | None = None
    in_flight: int = REMEMBERED
    expected_pending: int | None = field(
        default=None, repr=False
    )  # runs that were kept are named by the rest
    response_rate: float = 1.0
    clock: Callable[[], float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.rounds is not None and self.seconds is not None:
            raise InvalidInput("A feedback window is in rounds or in seconds, not in both.")
        checked: dict[str, Any] = {"in_flight": _validate.positive_int(self.in_flight, "in_flight")}
        if self.rounds is not None:
            checked["rounds"] = _validate.whole(self.rounds, 0, LONGEST, "feedback_window")
        if self.expected_pending is not None:
            checked["expected_pending"] = _validate.positive_int(self.expected_pending, "expected_pending")
        if self.seconds is not None:
            checked["seconds"] = _validate.positive_float(self.seconds, "seconds")
        checked["response_rate"] = _validate.positive_float(self.response_rate, "response_rate")
        if checked["response_rate"] > 1:
            raise InvalidInput(f"response_rate is a share of users, at most 1; got {self.response_rate}.")
        if (self.seconds is not None or self.clock is not None) and not callable(self.clock):
            raise InvalidInput(
                "A feedback window in seconds needs a clock, a function that tells the time in seconds, as time.time; "
                f"got {self.clock!r}."
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def remembered(self) -> int:
        """The number of decisions that are remembered; no decision that is still open is forgotten."""
        return self.in_flight if self.rounds is None else self.rounds + 1

    @property
    def ahead(self) -> int:
        """About how many rounds are chosen between the last round of a batch and the release about it."""
        if self.seconds is not None:
            return self.in_flight if self.expected_pending is None else self.expected_pending
        return 0 if self.rounds is None else self.rounds

    def config(self) -> int | dict[str, Any] | None:
        """Return the window as a snapshot holds it, None for the default."""
        if self == NO_FEEDBACK_WINDOW:
            return None
        if self == FeedbackWindow(rounds=self.rounds):
            return self.rounds
        parts = {
            name: getattr(self, name)
            for name in ("rounds", "seconds", "in_flight", "expected_pending", "response_rate")
        }
        return {name: value for name, value in parts.items() if value is not None}


NO_FEEDBACK_WINDOW = FeedbackWindow()
"""No waiting for feedback, and all users respond."""

Patient: TypeAlias = FeedbackWindow | int | None
"""A window, its number of rounds, or None for the default."""


def as_feedback_window(said: Patient) -> FeedbackWindow:
    """A FeedbackWindow of any of these."""
    if isinstance(said, FeedbackWindow):
        return said
    return NO_FEEDBACK_WINDOW if said is None else FeedbackWindow(rounds=said)


def answered_in_time(
    delay: Any,
    rounds: int,
    feedback_window: int | None,
    learner: str,
    sampled: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_] | None:
    """Which users respond before their deadline: all that delay changes if feedback is used after rounds are closed.

    `delay`: how many further users come before each answers; None where all answer at once, and so in time.
    `feedback_window`: in rounds; None if the learner of that name does not wait, so that no feedback may be
    late. `sampled`: who has a round, where there is a public sample.
    """
    if delay is None:
        return None
    delay = delay if sampled is None else rounds_late(delay, sampled)
    delay = _validate.numbers(delay, "delay", None)
    if delay.shape != (rounds,) or not np.issubdtype(delay.dtype, np.integer):
        raise InvalidInput(f"delay must be a whole number for each of {rounds:,} users; got {delay.shape}.")
    if feedback_window is None:
        if delay.any():
            raise InvalidInput(
                f"{learner!r} learns from answers in the order in which they come, so that late ones cannot be "
                "replayed at once; use loop(), or make it with feedback_window in rounds, if it publishes in batches."
            )
        return np.ones(rounds, dtype=np.bool_)
    in_time: NDArray[np.bool_] = (delay >= 0) & (delay <= feedback_window)
    return in_time


def rounds_late(delay: Any, sampled: NDArray[np.bool_]) -> Any:
    """How many rounds of the sample are chosen before each user answers, where `delay` further users are.

    What is no such list is returned as it is, to be refused where lists are read.
    """
    if np.shape(delay) != sampled.shape or not np.issubdtype(np.asarray(delay).dtype, np.integer):
        return delay
    waits: Ints = np.asarray(delay, dtype=np.int64)
    so_far, last = np.cumsum(sampled), len(sampled) - 1
    after = np.minimum(np.arange(len(sampled)) + np.maximum(waits, 0), last)
    return np.where(waits < 0, NEVER, so_far[after] - so_far)


def feedback_window_in(feedback_window: FeedbackWindow, one_in: int) -> FeedbackWindow:
    """A window given in users, in rounds of a sample of them: three deviations more than are expected."""
    if feedback_window.rounds is None or one_in == 1:
        return feedback_window
    expected = feedback_window.rounds / one_in
    rounds = int(np.ceil(expected + 3 * np.sqrt(expected)))
    return FeedbackWindow(rounds=rounds, response_rate=feedback_window.response_rate)
