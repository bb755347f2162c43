"""What users of a release said, side by side in memory, and how they are queried along a growing slate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from diminuendo.types import Floats, Ints


class Answers(NamedTuple):
    """Singleton values of some users, one user after the other; all of it secret. Others may lie around them."""

    starts: Ints
    """Where each user's entries begin, and at last where they end."""
    items: NDArray[Any]
    values: Floats
    """What each item is worth by itself."""
    weights: NDArray[Any]
    """Of each user in this release."""
    types: NDArray[Any]
    """Context id of each user (streams/contexts.py); 0 without contexts."""

    def __repr__(self) -> str:
        return "<Answers>"


class Moved(NamedTuple):
    """Some users whom an item moves."""

    who: Ints
    """Their places, rising."""
    gains: Floats
    """What each of their entries would add, once the item has joined."""
    further: Any
    """Their state then: the walk's own affair."""

    def __repr__(self) -> str:
        return "<Moved>"


class Walk(Protocol):
    """Users who can be queried along a growing slate, from the empty one on."""

    def moved_by(self, joining: Ints, types: NDArray[Any]) -> Iterator[Moved]:
        """Whom the item of their type moves, some after the others; `joining`: of each type, EMPTY_SLOT for none."""
        ...

    def join(self, further: Any) -> None:
        """Some have come so far (see Moved)."""
        ...

    def swap(self, slate: Sequence[int]) -> Iterator[tuple[Ints, Floats]]:
        """Everybody once, some after the others: their places, and (parts, entries), what theirs would add around a
        slate. There is but one part, the whole slate, where it is the same without any of its items."""
        ...
