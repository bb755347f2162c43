"""What people of a release said, in groups that lie side by side in memory, and how those of a group are asked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from diminuendo.types import Floats, Ints


class Answers(NamedTuple):
    """What some people said, one after the other; all of it secret. Others may lie before and after them."""

    starts: Ints
    """Where each person's entries begin, and at last where they end."""
    items: NDArray[Any]
    values: Floats
    """What each item is worth to her by itself."""
    weights: NDArray[Any]
    """Of each person in this release."""
    types: NDArray[Any]
    """What is known of each person, as a number (streams/contexts.py); 0 where there are no contexts."""

    def __repr__(self) -> str:
        return "<Answers>"


class Moved(NamedTuple):
    """Some people of a group whom an item moves."""

    who: Ints
    """Their places in the group, rising."""
    gains: Floats
    """What each of their entries would add, once it has joined."""
    further: Any
    """How far they have come then: the walk's own affair."""

    def __repr__(self) -> str:
        return "<Moved>"


class Walk(Protocol):
    """People of a group who can be asked what items would add along a growing slate."""

    def moved_by(self, joining: Ints, types: NDArray[Any]) -> Iterator[Moved]:
        """Whom her item moves, some after the others; `joining`: of each type, EMPTY_SLOT for none."""
        ...

    def join(self, further: Any) -> None:
        """Some have come so far (see Moved)."""
        ...

    def around(self, slate: Sequence[int]) -> Iterator[tuple[Ints, Floats]]:
        """Everybody once, some after the others: their places, and (parts, entries), what theirs would add around a
        slate. There is but one part, the whole slate, where it is the same without any of its items."""
        ...


class Group(NamedTuple):
    """People who lie side by side, and how to ask them; None where whoever asks brings the answers along."""

    people: Answers
    walk: Walk | None = None

    def __repr__(self) -> str:
        return "<Group>"
