"""Replay: a learner against a whole stream, compiled where the stream can be.

With the same coins this gives, slate for slate, what the loop of choose and observe gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.visits import Identity
from diminuendo.streams.people import People, Stream
from diminuendo.types import EMPTY_SLOT, FEEDBACKS, FeedbackKind, Items, Progress


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
    """Choose and observe round by round, as a service would: for streams of functions, and to check `replay`."""
    kind = feedback or next(kind for kind in FEEDBACKS if kind in learner.reads)
    slates = np.full((len(stream), learner.slots), EMPTY_SLOT, dtype=np.int32)
    for t in range(len(stream)):
        decision = learner.choose(None if persons is None else persons[t])
        row, person = learner.row_of(decision), stream[t]
        said: Any = person if kind == "full" else None
        if kind == "bandit":
            said = person.value(decision.slate)
        elif kind == "click":
            said = stream.click(t, decision.slate)
        learner.observe(decision, said)
        slates[t] = row
        if progress:
            progress(1)
    return slates
