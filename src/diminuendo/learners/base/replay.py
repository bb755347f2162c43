"""Replay: a learner against a whole stream, compiled where the stream can be.

With the same coins this gives, slate for slate, what the loop of choose and observe gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from diminuendo.errors import InvalidInput
from diminuendo.learners.base.feedback import said_to
from diminuendo.learners.base.learner import Learner
from diminuendo.learners.base.patience import NO_PATIENCE, Patience
from diminuendo.learners.base.visits import Identity
from diminuendo.streams.exclusions import exclusions_of
from diminuendo.streams.people import People, Stream
from diminuendo.types import (
    EMPTY_SLOT,
    FEEDBACKS,
    NEVER,
    Decision,
    FeedbackKind,
    Floats,
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
    persons: Sequence[Identity] | NDArray[Any] | None = None,
    late: Ints | None = None,
    contexts: Any = None,
    exclude: Any = None,
) -> Items:
    """The slates `learner` shows to `stream`, (people, slots), -1 for an empty slot; `persons`: who they are.

    `late`: how many further rounds are chosen before each of them answers; NEVER for those who do not.
    `contexts`: what is known of them; without it, what the stream says.
    `exclude`: what each of them is not shown, where the learner was made with exclusions.
    """
    more: dict[str, Any] = {"persons": persons, "late": late, "contexts": contexts, "exclude": exclude}
    if isinstance(stream, People) and (late is None or learner.waits):
        return learner.replay(stream, progress, **more)
    return loop(learner, stream, feedback, progress, **more)


class Played(NamedTuple):
    """What became of one piece of a stream."""

    slates: Items
    payoffs: Floats


def replay_in_pieces(
    learner: Learner, pieces: Iterable[People], progress: Progress | None = None
) -> Iterator[Played]:
    """The slates that `learner` shows to people who come in pieces (streams/pieces.py), and their payoffs.

    As `replay` shows them to all of them at once; but only one piece need be there at a time, besides what the learner
    keeps. Whatever needs the whole stream, as hindsight does, is not to be had.
    """
    for people in pieces:
        slates = learner.replay(people, progress)
        yield Played(slates, people.values(slates))


def loop(
    learner: Learner,
    stream: Stream,
    feedback: FeedbackKind | None = None,
    progress: Progress | None = None,
    *,
    persons: Sequence[Identity] | NDArray[Any] | None = None,
    late: Ints | None = None,
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
        decision = learner.choose(None if persons is None else persons[t], context=context, exclude=own)
        row, said = learner.row_of(decision), said_to(stream, t, decision.slate, kind)
        after = 0 if late is None else int(late[t])
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
class Lateness:
    """How late people of a simulation answer, and the share of them who do."""

    rounds: int = 0
    """An answer comes when this many further people have been chosen for."""
    spread: bool = False
    """Whether `rounds` is the mean of an exponential law, and not everybody's."""
    answering: float = 1.0

    def __str__(self) -> str:
        return f"exponential:{self.rounds}" if self.spread else str(self.rounds)

    @property
    def patience(self) -> Patience:
        """What learners are told: until when to wait, and how many answer."""
        if not self.rounds and self.answering == 1:
            return NO_PATIENCE
        return Patience(rounds=self.rounds * (MEANS_WAITED if self.spread else 1), answering=self.answering)

    def drawn(self, people: int, seed: int) -> Ints | None:
        """How many further rounds are chosen before each of them answers, NEVER for who does not; None: all at once."""
        if self.patience == NO_PATIENCE:
            return None
        chance = np.random.default_rng((seed, self.rounds, people))
        late = np.full(people, self.rounds, dtype=np.int64)
        if self.spread:
            late = np.floor(chance.exponential(self.rounds, people)).astype(np.int64)
        return np.where(chance.random(people) < self.answering, late, NEVER)

    def said(self) -> str:
        """In words, for the title of a table; nothing where everybody answers at once."""
        words = []
        if self.rounds:
            words.append(f"answers {'about ' if self.spread else ''}{self.rounds:,} rounds late")
        if self.answering < 1:
            words.append(f"{100 * self.answering:g} % answer")
        return ", ".join(words)


def as_lateness(said: str | int, answering: float = 1.0) -> Lateness:
    """What was said of it: 0, for at once; a number of rounds, as 1000; or their mean, as exponential:1000.

    `answering`: the share of people who answer.
    """
    text = str(said).strip()
    spread, number = text.startswith("exponential:"), text.removeprefix("exponential:")
    if not number.isdecimal() or (spread and int(number) == 0):
        raise InvalidInput(
            "late is a number of rounds, as 1000, or their mean where chance decides, as exponential:1000; "
            f"got {said!r}."
        )
    return Lateness(int(number), spread, Patience(answering=answering).answering)


AT_ONCE = Lateness()
"""Everybody answers before the next person comes."""
