"""Greedy in hindsight over a file that is read in pieces: the same slate, in one pass for each slot and one more.

A pass adds up, over people in their order, what they make of the slate so far and what each item would add to it. Sums
go on from piece to piece as if there were one, so slate and value are, to the last bit, those of `greedy` on all people
at once; gains are those of its method `plain`. Only one piece is in memory, and the state of its people.

What the best slate is worth is not searched for. It is at most F(S) plus the k largest gains given S, for every S that
greedy passes (`data_bound`), and all of that is at hand.
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
    """People who come in pieces, as often as they are asked for (streams/pieces.py)."""

    n_items: int

    @property
    def people(self) -> int:
        """How many there are in all."""
        ...


def greedy_in_pieces(
    pieces: InPieces, slots: int, *, rules: SlateRules | None = None, progress: Progress | None = None
) -> tuple[Hindsight, Bracket]:
    """Hindsight greedy, and bounds on the best slate: what greedy earns, and what no slate exceeds.

    `rules`: what the slate must keep to. `progress` is called with the people of a piece in each pass.
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
