"""The vocabulary: what the rest of the package means by its words.

An item is an integer from 0 to n_items - 1. A slate is the items shown to one person, in slot
order. An objective is what one person feels about a slate: monotone, submodular, in [0, 1], and 0
for the empty slate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Items: TypeAlias = NDArray[np.int32]
Words: TypeAlias = NDArray[np.uint64]

Slate: TypeAlias = tuple[int, ...]
SlateLike: TypeAlias = Sequence[int] | NDArray[np.integer]

FeedbackKind: TypeAlias = Literal["full", "bandit", "click"]
FEEDBACKS: tuple[FeedbackKind, ...] = ("full", "bandit", "click")
"""What may come back: the person's objective; one number, the payoff; which slot was clicked first, or None."""

EMPTY_SLOT = -1
"""In an array of slates, a slot in which nothing is shown."""

NEVER = -1
"""Among how late people answer: this one does not."""

ONE_MINUS_1_OVER_E = 1 - math.exp(-1)
"""What greedy keeps of the best possible, and what the regret of this field is measured against."""

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of rounds (or people, or bytes) just finished."""


@runtime_checkable
class Objective(Protocol):
    """What one person feels about a slate."""

    @property
    def n_items(self) -> int:
        """How many items there are to choose from."""
        ...

    def value(self, slate: SlateLike) -> float:
        """f(slate), in [0, 1]."""
        ...

    def gains(self, prefix: SlateLike) -> Floats:
        """f(prefix + a) - f(prefix) for every item a; shape (n_items,)."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What `choose` returns: the slate to show, and the ticket with which to answer."""

    round: int
    """Counts from 0; together with the learner it names this decision."""
    slate: Slate
    """Distinct items in slot order."""
    probe: tuple[int, int] | None = None
    """(slot, item) where this round was chosen by a coin in order to learn; a public fact."""
    propensity: float | None = None
    """With what probability this slate was shown, where that is public: given all that was published before and the
    rounds so far. None where it would tell what is secret, where people may exclude items, and where a deal of before a
    restart goes on."""
    life: int = field(default=0, repr=False)
    """Names the learner that chose, from its making or restoring on. After a crash rounds are counted from the last
    snapshot, and a number alone would name two people's rounds."""
