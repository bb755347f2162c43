"""Experts: each chooses one slot, and sees gains, never an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from diminuendo._plugins import Table
from diminuendo.experts.hedge import Hedge
from diminuendo.randomness.words import SecretRandomness
from diminuendo.types import Floats


class Expert(Protocol):
    """Protocol of experts: choose an item in every round, then learn what every item would have gained.

    Feedback may arrive late, out of order or never. Everything that an expert carries from round to round is in its
    `state`, and it has no randomness of its own.

    Attributes
    ----------
    n_items : int
        Number of items.

    See Also
    --------
    Hedge : the expert of the paper.
    diminuendo.extend.register : makes an expert known by name.
    """

    n_items: int

    def draw(self, secret: SecretRandomness) -> int:
        """Return an item, from 0 to `n_items` - 1, drawn with secret randomness alone."""
        ...

    def learn(self, gains: Floats, drawn: int) -> None:
        """Learn from one round.

        Parameters
        ----------
        gains : ndarray of float, shape (n_items,)
            Gain of every item. Values outside [0, 1] count as the nearest end, NaN as 0.
        drawn : int
            The item that was shown in that round.

        Raises
        ------
        InvalidInput
            Unless there is one gain per item.
        """
        ...

    def state(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays that make up what was learned. Snapshots store them, and fill them in place."""
        ...

    def restored(self) -> None:
        """Rebuild what follows from the state, which was filled in."""
        ...


EXPERTS = Table[Callable[[int], Expert]]("expert", {"hedge": Hedge})
"""Every kind of expert by name, those of plugins included: what makes one for a number of items. An entry brings
contract tests, and `OrderedExperts(..., expert=name)`."""

__all__ = ["EXPERTS", "Expert", "Hedge"]
