"""What a round is: which rows of a table belong together, whose they are, and in which order rounds come.

A person who comes back is another round: what she orders in May is not known in March. So rows of one person are one
round only if that is what somebody says, or if nothing in the table tells her visits apart. Else rounds are orders,
where there is a column of them, or sessions: rows of a person without a long pause between them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from diminuendo.streams.read_as import GAP, Round
from diminuendo.types import Ints

MINUTE, DAY = 60 * 10**6, 24 * 60 * 60 * 10**6
"""In microseconds."""


class Rounds(NamedTuple):
    """Which round each row belongs to, numbered in the order in which they come, and whose each round is."""

    of_row: Ints
    person: Ints


def usual(person: Ints, order: Ints | None, ticks: Ints | None) -> Round:
    """What a round is where nobody says so: orders or sessions, if there are more of them than people."""
    if len(person) == 0:
        return Round("person")
    if order is not None:
        return Round("order") if _several(person, order) else Round("person")
    if ticks is not None and _several(person, sessions(person, ticks, GAP)):
        return Round("session")
    return Round("person")


def rounds_of(asked: Round, person: Ints, order: Ints | None, ticks: Ints | None) -> Rounds:
    """The rounds of these rows: of each its person, and perhaps its order and when it was, in microseconds."""
    if asked.kind == "person":
        together = person
    elif asked.kind == "order":
        assert order is not None
        together = _pairs(person, order)
    else:
        assert ticks is not None
        together = (
            _pairs(person, ticks // DAY) if asked.kind == "day" else sessions(person, ticks, asked.minutes)
        )
    return _in_order(together, person, ticks)


def sessions(person: Ints, ticks: Ints, minutes: float) -> Ints:
    """A number for each session: rows of one person with no longer pause between them."""
    order = np.lexsort((ticks, person))
    pause = np.diff(ticks[order]) > minutes * MINUTE
    begins = np.concatenate([[True], (np.diff(person[order]) != 0) | pause])
    found = np.empty(len(person), dtype=np.int64)
    found[order] = np.cumsum(begins) - 1
    return found


def _several(person: Ints, visit: Ints) -> bool:
    """Whether somebody has more than one visit."""
    first = _first_rows(person)
    return bool((visit != visit[first[person]]).any())


def _pairs(person: Ints, other: Ints) -> Ints:
    """A number for each pair that is there."""
    numbers = np.unique(other, return_inverse=True)[1].astype(np.int64)
    pairs = person * (int(numbers.max(initial=0)) + 1) + numbers
    dense: Ints = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return dense


def _first_rows(numbers: Ints) -> Ints:
    """The first row of each of these numbers from 0 on; -1 where there is none."""
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several, the one that is written last stays
    return first


def _in_order(together: Ints, person: Ints, ticks: Ints | None) -> Rounds:
    """Numbered by the time of their first rows; without times, or at the same time, by where these stand."""
    first = _first_rows(together)
    there = np.flatnonzero(first >= 0)
    if ticks is None:
        order = there[np.argsort(first[there])]
    else:
        earliest = np.full(len(first), np.iinfo(np.int64).max)
        np.minimum.at(earliest, together, ticks)
        order = there[np.lexsort((first[there], earliest[there]))]
    place = np.empty(len(first), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Rounds(place[together], person[first[order]])
