"""Replay: a learner against a whole stream, compiled where the stream can be.

With the same randomness this gives, slate for slate, what the loop of choose and observe gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.contribution_bound import Identity
from diminuendo.learners.base.feedback import simulate_feedback
from diminuendo.learners.base.feedback_window import NO_FEEDBACK_WINDOW, FeedbackWindow
from diminuendo.learners.base.learner import Learner
from diminuendo.streams.exclusions import exclusions_of
from diminuendo.streams.users import Stream, Users
from diminuendo.types import (
    EMPTY_SLOT,
    FEEDBACKS,
    NEVER,
    Decision,
    FeedbackKind,
    Ints,
    Items,
    Progress,
)


def replay(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    user_ids: Sequence[Identity] | NDArray[Any] | None = None,
    delay: Ints | None = None,
    contexts: Any = None,
    exclude: Any = None,
) -> Items:
    """Return the slates that a learner shows to a stream, learning from each user.

    Compiled for streams of a family. With the same randomness the result equals the loop of `choose` and `observe` bit
    for bit.

    Parameters
    ----------
    learner : Learner
        It goes on from where it is, and has learned when this returns.
    stream : Stream
        Users, in order.
    feedback : {"full", "bandit", "click"}, optional
        For learners that read several kinds.
    progress : callable, optional
        Called with numbers of rounds just finished.
    user_ids : sequence, optional
        Identity of each round's user, if users may own several rounds.
    delay : array of int, optional
        How many further rounds are chosen before each user responds; -1 if they never do.
    contexts : optional
        What is known of each user, as `Stream.with_contexts` takes it. By default what the stream says.
    exclude : sequence of items or scipy sparse array, optional
        What each user excludes, if the learner was made with exclusions.

    Returns
    -------
    ndarray of int, shape (n_users, slots)
        -1 is an empty slot.

    Raises
    ------
    InvalidInput
        If the stream does not fit the learner.

    Examples
    --------
    >>> import diminuendo as dim
    >>> users = dim.msweb()[:2_000]
    >>> setting = dim.Setting(users.n_items, slots=5, rounds=len(users), feedback="full")
    >>> learner = dim.make("private", setting, rng=dim.SeededSource(0))
    >>> slates = dim.replay(learner, users)
    >>> slates.shape, round(float(users.values(slates).mean()), 3)
    ((2000, 5), 0.663)
    """
    more: dict[str, Any] = {"user_ids": user_ids, "delay": delay, "contexts": contexts, "exclude": exclude}
    if isinstance(stream, Users) and (delay is None or learner.waits):
        return learner.replay(stream, progress, **more)
    return loop(learner, stream, feedback, progress, **more)


def loop(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    user_ids: Sequence[Identity] | NDArray[Any] | None = None,
    delay: Ints | None = None,
    contexts: Any = None,
    exclude: Any = None,
) -> Items:
    """Choose and observe round by round, as a service would: for streams of functions, and to check `replay`."""
    usual: FeedbackKind = next(kind for kind in FEEDBACKS if kind in learner.reads)
    kind = feedback or usual
    slates = np.full((len(stream), learner.slots), EMPTY_SLOT, dtype=np.int32)
    on_the_way: dict[int, list[tuple[Decision, Any]]] = {}  # answers, by the round after which they come
    columns, types = learner.contexts, learner.types_of(stream, contexts)
    excluded = exclusions_of(exclude, len(stream), learner.n_items)
    for t in range(len(stream)):
        context = None if columns is None else columns.said(types.item(t))
        own = None if exclude is None else excluded.of(t)
        decision = learner.choose(None if user_ids is None else user_ids[t], context=context, exclude=own)
        row, said = learner.row_of(decision), simulate_feedback(stream, t, decision.slate, kind)
        after = 0 if delay is None else int(delay[t])
        if after != NEVER:
            on_the_way.setdefault(t + after, []).append((decision, said))
        for answer in on_the_way.pop(t, []):
            learner.observe(*answer)
        slates[t] = row
        if progress:
            progress(1)
    return slates


MEANS_WAITED = 3
"""Where lateness is exponential, answers are waited for this many times the mean: all but one in twenty come."""


@dataclass(frozen=True)
class Delay:
    """How late users of a simulation answer, and the share of them who do."""

    rounds: int = 0
    """An answer comes when this many further users have been chosen for."""
    spread: bool = False
    """Whether `rounds` is the mean of an exponential law, and not that of every user."""
    response_rate: float = 1.0

    def __str__(self) -> str:
        return f"exponential:{self.rounds}" if self.spread else str(self.rounds)

    @property
    def feedback_window(self) -> FeedbackWindow:
        """The feedback window of learners that plan for it."""
        if not self.rounds and self.response_rate == 1:
            return NO_FEEDBACK_WINDOW
        return FeedbackWindow(
            rounds=self.rounds * (MEANS_WAITED if self.spread else 1), response_rate=self.response_rate
        )

    def drawn(self, users: int, seed: int) -> Ints | None:
        """How many further rounds are chosen before each of them answers, NEVER for who does not; None: all at once."""
        if self.feedback_window == NO_FEEDBACK_WINDOW:
            return None
        chance = np.random.default_rng((seed, self.rounds, users))
        delay = np.full(users, self.rounds, dtype=np.int64)
        if self.spread:
            delay = np.floor(chance.exponential(self.rounds, users)).astype(np.int64)
        return np.where(chance.random(users) < self.response_rate, delay, NEVER)

    def said(self) -> str:
        """In words, for the title of a table; empty if all users respond at once."""
        words = []
        if self.rounds:
            words.append(f"answers {'about ' if self.spread else ''}{self.rounds:,} rounds late")
        if self.response_rate < 1:
            words.append(f"{100 * self.response_rate:g} % answer")
        return ", ".join(words)


def as_delay(said: str | int, response_rate: float = 1.0) -> Delay:
    """What was said of it: 0, for at once; a number of rounds, as 1000; or their mean, as exponential:1000.

    `response_rate`: the share of users who answer.
    """
    text = str(said).strip()
    spread, number = text.startswith("exponential:"), text.removeprefix("exponential:")
    if not number.isdecimal() or (spread and int(number) == 0):
        raise InvalidInput(
            "delay is a number of rounds, as 1000, or their mean where chance decides, as exponential:1000; "
            f"got {said!r}."
        )
    return Delay(int(number), spread, FeedbackWindow(response_rate=response_rate).response_rate)


AT_ONCE = Delay()
"""All users respond before the next one arrives."""
