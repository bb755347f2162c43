"""Random: k distinct items, uniformly, for everybody. The floor that every learner must clear.

Guarantee  slates are drawn before and without anything people say, so they are (0, 0)-private.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from diminuendo._numba import inline, kernel
from diminuendo.learners.base.learner import Learner
from diminuendo.privacy.budget import Guarantee, perfect_privacy
from diminuendo.randomness.words import UNFINISHED, PublicWords, begin, below, undo
from diminuendo.streams.people import People
from diminuendo.types import FEEDBACKS, Decision, FeedbackKind, Items


class RandomSlates(Learner):
    """Shows k distinct items at random."""

    name: ClassVar[str] = "random"
    reads: ClassVar[frozenset[FeedbackKind]] = frozenset(FEEDBACKS)
    summary: ClassVar[str] = "k distinct items at random; learns nothing; the floor to clear"

    @property
    def guarantee(self) -> Guarantee:
        """Perfect: slates do not depend on anybody."""
        return perfect_privacy("slates are drawn without looking at feedback", self.coins.secure)

    def _draw(self, row: Items, probe: Items) -> bool:
        return bool(draw_random(self.n_items, row, self._public.view))

    def _propensity(self, row: Items) -> float:
        return 1 / math.perm(self.n_items, self.slots)

    def _read(self, decision: Decision, feedback: Any) -> None:
        return None

    def _learn(self, place: int, answer: None) -> None:
        return None

    def _replay(self, people: People, slates: Items, done: int) -> int:
        return int(draw_random_slates(self.n_items, slates, done, self._public.view))


@inline
def _distinct(n_items: int, row: Items, coins: PublicWords) -> bool:
    """k of n without replacement in random order (Floyd's sampling, then a shuffle)."""
    begin(coins)
    k = len(row)
    for i in range(k):
        item = below(n_items - k + i + 1, coins)
        if item == UNFINISHED:
            undo(coins)
            return False
        for j in range(i):
            if row[j] == item:
                item = n_items - k + i
                break
        row[i] = item
    for i in range(k - 1, 0, -1):
        j = below(i + 1, coins)
        if j == UNFINISHED:
            undo(coins)
            return False
        row[i], row[j] = row[j], row[i]
    return True


@kernel
def draw_random(n_items: int, row: Items, coins: PublicWords) -> bool:
    """One random slate; False, nothing used, to be resumed."""
    return _distinct(n_items, row, coins)


@kernel
def draw_random_slates(n_items: int, slates: Items, done: int, coins: PublicWords) -> int:
    """Random slates from `done` on; how far it came."""
    while done < slates.shape[0] and _distinct(n_items, slates[done], coins):
        done += 1
    return done
