"""Experts: each chooses one slot, and sees gains, never an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from diminuendo._plugins import Table
from diminuendo.experts.hedge import Hedge
from diminuendo.experts.lazy import Lazy
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats


class Expert(Protocol):
    """Chooses an item in every round, and learns afterwards what every item would have gained.

    Answers may come late, out of order or never, so `learn` is told which item of that round was shown. Everything that
    an expert carries from round to round is in its `state`, and it has no randomness of its own.
    """

    n_items: int

    def draw(self, secret: SecretRandomness) -> int:
        """An item, from 0 to n_items - 1."""
        ...

    def learn(self, gains: Floats, drawn: int) -> None:
        """Every item's gain in one round; `drawn`: the item that was shown in it.

        Values outside [0, 1] count as the nearest end, NaN as 0; anything but one gain per item is refused.
        """
        ...

    def state(self) -> tuple[NDArray[Any], ...]:
        """The arrays that make up what was learned: they are written down, and filled in again in place."""
        ...

    def restored(self) -> None:
        """Rebuild what follows from the state, which was filled in."""
        ...


EXPERTS = Table[Callable[[int], Expert]]("expert", {"hedge": Hedge, "lazy": Lazy})
"""Every kind of expert by name, those of plugins included: what makes one for a number of items. An entry brings
contract tests, and `OrderedExperts(..., expert=name)`."""

__all__ = ["EXPERTS", "Expert", "Hedge", "Lazy"]
