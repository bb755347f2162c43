"""What people of one batch are asked when they come, where each type of people has a chain of its own.

A *question* is an item that joins, and the set of items that were there before; or a set alone, for what is left after
it. Types whose chains have a question in common share it, and there is one sum of what they say to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.errors import InvalidInput
from diminuendo.sums.chains.running import NO_ITEM, Question
from diminuendo.types import Floats, Ints


class AskedByType(NamedTuple):
    """The chains of one batch, all of it public."""

    chains: Ints
    """(chains, longest): each chain once, its items in order, NO_ITEM after the last."""
    of_type: Ints
    """For each type the number of its chain."""
    questions: tuple[Question, ...]
    """Each once, however many chains have it."""
    steps: Ints
    """(chains, longest + 1): which question each item of a chain is; and at last the rest. -1: none."""

    def people_of(self, types: Floats) -> Floats:
        """How many people are asked each question, given how many people are of each type."""
        by_chain = np.bincount(self.of_type, types, len(self.chains))
        found = np.zeros(len(self.questions))
        chain, step = np.nonzero(self.steps >= 0)
        np.add.at(found, self.steps[chain, step], by_chain[chain])
        return found


def asked_by_type(each: Ints, n_items: int) -> AskedByType:
    """What people are asked; `each`: (types, longest) items of each type's chain in order, NO_ITEM after the last."""
    chains, of_type = np.unique(each, axis=0, return_inverse=True)
    return asked_along(chains, of_type.reshape(-1).astype(np.int32), n_items)


def asked_along(chains: Ints, of_type: Ints, n_items: int) -> AskedByType:
    """What people are asked along these chains, of which each type has one; refuses what is no chain."""
    longest = chains.shape[1]
    ordered = np.sort(chains, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_ITEM)
    gaps = (chains[:, 1:] != NO_ITEM) & (chains[:, :-1] == NO_ITEM)
    known = ((chains >= NO_ITEM) & (chains < n_items)).all()
    if twice.any() or gaps.any() or not known or of_type.min() < 0 or of_type.max() >= len(chains):
        raise InvalidInput(f"A chain is {longest} different items at most, one after the other.")
    numbers: dict[Question, int] = {}
    steps: Ints = np.full((len(chains), longest + 1), -1, dtype=np.int64)
    for number, chain in enumerate(chains.tolist()):
        items = [item for item in chain if item != NO_ITEM]
        asked = [Question(item, tuple(sorted(items[:step]))) for step, item in enumerate(items)]
        if len(items) == longest:
            asked.append(Question(NO_ITEM, tuple(sorted(items))))
        steps[number, : len(asked)] = [numbers.setdefault(question, len(numbers)) for question in asked]
    return AskedByType(chains.astype(np.int64), of_type, tuple(numbers), steps)
