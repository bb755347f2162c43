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
from diminuendo.types import EMPTY_SLOT, FEEDBACKS, NEVER, Decision, FeedbackKind, Ints, Items, Progress


def replay(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    persons: Sequence[Identity] | NDArray[Any] | None = None,
    late: Ints | None = None,
) -> Items:
    """The slates `learner` shows to `stream`, (people, slots), -1 for an empty slot; `persons`: who they are.

    `late`: how many further rounds are chosen before each of them answers; NEVER for those who do not.
    """
    if isinstance(stream, People) and (late is None or learner.waits):
        return learner.replay(stream, progress, persons=persons, late=late)
    return loop(learner, stream, feedback, progress, persons=persons, late=late)


def loop(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    persons: Sequence[Identity] | NDArray[Any] | None = None,
    late: Ints | None = None,
) -> Items:
    """Choose and observe round by round, as a service would: for streams of functions, and to check `replay`."""
    kind = feedback or next(kind for kind in FEEDBACKS if kind in learner.reads)
    slates = np.full((len(stream), learner.slots), EMPTY_SLOT, dtype=np.int32)
    on_the_way: dict[int, list[tuple[Decision, Any]]] = {}  # answers, by the round after which they come
    for t in range(len(stream)):
        decision = learner.choose(None if persons is None else persons[t])
        row, person = learner.row_of(decision), stream[t]
        said: Any = person if kind == "full" else None
        if kind == "bandit":
            said = person.value(decision.slate)
        elif kind == "click":
            said = stream.click(t, decision.slate)
        after = 0 if late is None else int(late[t])
        if after != NEVER:
            on_the_way.setdefault(t + after, []).append((decision, said))
        for answer in on_the_way.pop(t, []):
            learner.observe(*answer)
        slates[t] = row
        if progress:
            progress(1)
    return slates
