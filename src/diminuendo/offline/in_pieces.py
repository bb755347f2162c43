"""Greedy in hindsight over a stream that is read in pieces: the same slate, in one pass for each slot and one more.

Sums go on from piece to piece, so slate and value equal, to the last bit, those of `greedy` on all users at once; gains
equal those of its method `plain`. Only one piece is in memory. The optimum is not searched for: `data_bound` bounds it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from diminuendo import _validate
from diminuendo.offline.exact import Bracket
from diminuendo.offline.fitting import FittedRules
from diminuendo.offline.greedy import Hindsight, top_sum
from diminuendo.offline.rules import SlateRules, as_rules
from diminuendo.offline.total import PeopleTotal
from diminuendo.streams.people import People
from diminuendo.types import EMPTY_SLOT, Floats, Items, Progress


class InPieces(Iterable[People], Protocol):
    """People who come in pieces, as often as they are asked for (streams/tables/pieces.py)."""

    n_items: int

    @property
    def people(self) -> int:
        """How many there are in all."""
        ...


def greedy_in_pieces(
    pieces: InPieces, slots: int, *, rules: SlateRules | None = None, progress: Progress | None = None
) -> tuple[Hindsight, Bracket]:
    """Return greedy in hindsight, and bounds on the best slate, of a stream that is read in pieces.

    Parameters
    ----------
    pieces : iterable of People
        Can be iterated several times, once for each slot and once more.
    slots : int
        Number of items in the slate.
    rules : SlateRules, optional
        What the slate must satisfy.
    progress : callable, optional
        Called with the number of users of each piece, in each pass.

    Returns
    -------
    Hindsight
        The same slate and value, bit for bit, as `greedy` of all users at once; gains as of its method "plain".
    Bracket
        From the value of that slate to the bound of `data_bound`.

    Examples
    --------
    >>> import diminuendo as dim
    >>> from diminuendo.offline import greedy_in_pieces
    >>> class Halves:
    ...     users = dim.msweb()[:2_000]
    ...     n_items, people = users.n_items, len(users)
    ...     def __iter__(self):
    ...         return iter((self.users[:1_000], self.users[1_000:]))
    >>> best, bounds = greedy_in_pieces(Halves(), slots=3)
    >>> best.slate == dim.greedy(Halves.users, 3).slate, bounds.lower == best.value <= bounds.upper
    (True, True)
    """
    began, people = time.perf_counter(), max(1, pieces.people)
    fitted = FittedRules(as_rules(rules), pieces.n_items, _validate.slots(slots, pieces.n_items))
    slate: Items = np.full(fitted.slots, EMPTY_SLOT, dtype=np.int32)
    everything, prefix, added, bound = (
        np.ones(pieces.n_items, dtype=np.bool_),
        list[int](),
        list[float](),
        math.inf,
    )
    while True:
        value, gains = _passed(pieces, prefix, progress)
        bound = min(bound, value + top_sum(gains, fitted.slots))
        picked = fitted.pick(gains, slate, everything)
        if picked is None:
            break
        slot, item = picked
        slate[slot] = item
        prefix.append(item)
        added.append(float(gains[item]))
    found = Hindsight(
        tuple(slate[slate != EMPTY_SLOT].tolist()), value / people, tuple(gain / people for gain in added)
    )
    upper = max(found.value, min(1.0, bound / people))  # nobody has more than 1 of any slate
    return found, Bracket(found.value, upper, found.slate, time.perf_counter() - began, "greedy")


def _passed(pieces: InPieces, prefix: list[int], progress: Progress | None) -> tuple[float, Floats]:
    """F(prefix), and what each item would add, over everybody."""
    value, gains = 0.0, np.zeros(pieces.n_items)
    for people in pieces:
        here = PeopleTotal(people)
        for item in prefix:
            here.add(item)
        value = here.value(value)
        here.add_gains(gains)
        if progress:
            progress(len(people))
    gains[prefix] = 0.0
    return value, gains
