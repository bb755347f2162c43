"""Replay: a learner against a whole stream, compiled where the stream can be.

With the same coins this gives, slate for slate, what the loop of choose and observe gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.learner import Learner
from diminuendo.learners.quota import Identity
from diminuendo.streams.people import People, Stream
from diminuendo.types import EMPTY_SLOT, FeedbackKind, Items, Progress


def replay(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    persons: Sequence[Identity] | NDArray[Any] | None = None,
) -> Items:
    """The slates `learner` shows to `stream`, (people, slots), -1 for an empty slot; `persons`: who they are."""
    if isinstance(stream, People):
        return learner.replay(stream, progress, persons=persons)
    return loop(learner, stream, feedback, progress, persons=persons)


def loop(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    persons: Sequence[Identity] | NDArray[Any] | None = None,
) -> Items:
    """The same round by round, as a service would: for streams of Python functions, and to check `replay`."""
    kind = feedback or ("full" if "full" in learner.reads else "bandit")
    slates = np.full((len(stream), learner.slots), EMPTY_SLOT, dtype=np.int32)
    for t in range(len(stream)):
        decision = learner.choose(None if persons is None else persons[t])
        row, person = learner.row_of(decision), stream[t]
        learner.observe(decision, person if kind == "full" else person.value(decision.slate))
        slates[t] = row
        if progress:
            progress(1)
    return slates
