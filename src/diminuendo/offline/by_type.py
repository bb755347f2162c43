"""Greedy in hindsight with a slate for each type of people: what contexts could be worth, and how much of it is chance.

A *type* is what is known of somebody when she comes (streams/contexts.py). Greedy on each type's people alone overfits:
a type of three people gets a slate made for these three. So the same is done with labels that say nothing, people's own
dealt out again at random; what that earns above one slate for everybody is chance, and only the rest is knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.offline.greedy import Hindsight, greedy
from diminuendo.streams.people import People, Stream
from diminuendo.types import Ints

SHUFFLE = 9
"""The seed by which labels are dealt out again."""


@dataclass(frozen=True)
class HindsightByType:
    """A slate for each type, chosen with all people known."""

    value: float
    """Mean over people of what the slate of each one's type is worth to her."""
    slates: dict[int, Hindsight]
    """By type, of those that came."""
    people: dict[int, int]
    """How many came of each."""


def greedy_by_type(
    stream: Stream, slots: int, types: Ints | None = None, *, method: str = "lazy"
) -> HindsightByType:
    """Hindsight greedy on the people of each type; `types`: other types than those of the stream."""
    known = stream.types if types is None else types
    if known is None or not isinstance(stream, People):
        raise InvalidInput(
            f"Nothing is known of the people of {stream.name}; give people.with_contexts(contexts, table)."
        )
    if len(known) != len(stream):
        raise InvalidInput(f"types must have one for each of {len(stream):,} people; got {len(known):,}.")
    order = np.argsort(known, kind="stable")
    came, starts = np.unique(known[order], return_index=True)
    slates, people = {}, {}
    for kind, rows in zip(came.tolist(), np.split(order, starts[1:]), strict=True):
        slates[kind] = greedy(stream[rows], slots, method=method)
        people[kind] = len(rows)
    earned = sum(people[kind] * slates[kind].value for kind in slates)
    return HindsightByType(earned / max(1, len(stream)), slates, people)


def shuffled(types: Ints, seed: int = SHUFFLE) -> Ints:
    """The same types, dealt out again: as many people of each, and no knowledge."""
    return np.random.default_rng(seed).permutation(types)
