"""Sums over the users of one release along a chain of items, in whole numbers.

A query is a function of users' rows and of public facts alone: weights of batches, factors of items, and the chain so
far. Sums are whole numbers, so they are exact in any order: whichever way users are split into blocks, in whatever
process a block is queried, and however often a query is computed again, the same is published, bit for bit. Noise and
the ledger know nothing of blocks (release.py, swap.py, cells.py).

What is left of users along a chain is remembered between two queries, in 16 bits an entry where ticks fit. It is a
memo: any other chain is walked from its start. A query goes to those whom an item moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from diminuendo._numba import inline, kernel
from diminuendo.errors import refuse_copies
from diminuendo.sums.clip import Clip, Rule, clip_row
from diminuendo.sums.greedy_queries.query_weights import clip_weighted
from diminuendo.types import EMPTY_SLOT, Floats, Ints

Prefix = tuple[Ints, ...]
"""Step by step the item that joined the chain of each type; EMPTY_SLOT: none."""

EASE = 1.4
"""A user is first scaled so that their singletons are at most this long: then what they count hardly depends on how
well the slate serves them already."""


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
        """All users once, some after the others: their places, and (parts, entries), what theirs would add around a
        slate. There is but one part, the whole slate, where it is the same without any of its items."""
        ...


class Participants(Protocol):
    """The users of one release as they were when it began. Every result is a sum over users, without noise."""

    def sums(self, prefix: Prefix, whose: Ints, many: int) -> Ints:
        """(many, items): what is left after a chain, at first the singles; `whose`: the row of each type, -1: none."""
        ...

    def losses(self, prefix: Prefix, joining: Ints, questions: Ints, many: int) -> Ints:
        """(many, items): what is lost as one more item joins the chain of each type, in the row of its question."""
        ...

    def swap(self, slate: Ints) -> Ints:
        """(1 + slots, items): what is said around a slate."""
        ...

    def counts(self, of_type: Ints, size: int, unit: int) -> Ints:
        """How often each value is there, by weights, times `unit`; `of_type`: the value of each type, -1: none."""
        ...


class PrefixWalk:
    """Users who lie side by side; each method adds to a total. `begin`: gives a walk from the empty slate on."""

    __getstate__ = refuse_copies

    def __init__(self, users: Answers, begin: Callable[[], Walk], clip: Clip, factors: Floats) -> None:
        self._users, self._begin, self._clip, self._factors = users, begin, clip, factors
        self._steps: list[bytes] | None = None  # how far they have come; None: nowhere yet
        self._next: tuple[bytes, list[tuple[Moved, NDArray[Any]]]] | None = None

    def __repr__(self) -> str:
        return "<PrefixWalk>"

    def add_left(self, prefix: Prefix, whose: Ints, total: Ints) -> None:
        """What is left of all users after a prefix."""
        self._go_along(prefix)
        add_left(self._users, self._left, whose, total)

    def add_lost(self, prefix: Prefix, joining: Ints, questions: Ints, total: Ints) -> None:
        """What all users lose as one more item joins a prefix."""
        self._go_along(prefix)
        users = self._users
        for moved, after in self._step(joining):
            who = moved.who
            starts, items, before = _of_some(users, who, self._left)
            whose = questions[users.types[who]]
            add_losses(starts, items, before, after, users.weights[who], whose, total)

    def add_swap(self, slate: Ints, total: Ints) -> None:
        """What all users say around a slate, each user clipped as one vector."""
        place = np.full(len(self._factors), -1, dtype=np.int64)
        shown = np.flatnonzero(slate != EMPTY_SLOT)
        place[slate[shown]] = shown
        rule, ease = self._clip.rule, EASE * self._clip.bound
        for who, gains in self._begin().swap(slate.tolist()):
            some = _only(self._users, who)
            most = len(total) * int(np.diff(some.starts).max(initial=0))
            room = np.empty(most), np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
            add_swap(rule, some, gains, self._factors, place, ease, *room, total.reshape(-1))

    def add_counts(self, of_type: Ints, unit: int, total: Ints) -> None:
        """How often each value is there."""
        count_values(of_type[self._users.types], self._users.weights, unit, total)

    def _go_along(self, prefix: Prefix) -> None:
        """Come to the end of this chain: from where users are, if it goes on from there."""
        wanted = [joining.tobytes() for joining in prefix]
        if self._steps is None or wanted[: len(self._steps)] != self._steps:
            self._walk, self._next = self._begin(), None
            self._left, self._scales = clipped(self._users, self._clip, self._factors)
            self._steps = []
        for joining in prefix[len(self._steps) :]:
            for moved, after in self._step(joining):
                rolled_back(self._users.starts, moved.who, after, self._left)
                self._walk.join(moved.further)
            self._steps.append(joining.tobytes())
            self._next = None

    def _step(self, joining: Ints) -> list[tuple[Moved, NDArray[Any]]]:
        """Whom one more item moves, and what these have left then, entry by entry."""
        key = joining.tobytes()
        if self._next is None or self._next[0] != key:
            self._next = (
                key,
                [self._fallen(moved, joining) for moved in self._walk.moved_by(joining, self._users.types)],
            )
        return self._next[1]

    def _fallen(self, moved: Moved, joining: Ints) -> tuple[Moved, NDArray[Any]]:
        users, who = self._users, moved.who
        starts, items, before = _of_some(users, who, self._left)
        after = np.empty_like(before)
        said = moved.gains, self._factors, self._clip.ceiling, joining[users.types[who]]
        fall(starts, items, self._scales[who], *said, before, after)
        return moved._replace(gains=moved.gains[:0]), after


def clipped(users: Answers, clip: Clip, factors: Floats) -> tuple[NDArray[Any], Floats]:
    """What users say, times the factors of their items, clipped to ticks; and by what each was multiplied."""
    kind = np.int16 if clip.largest <= np.iinfo(np.int16).max else np.int32
    size, longest = users.starts[-1] - users.starts[0], int(np.diff(users.starts).max(initial=0))
    ticks, scales = np.zeros(size, dtype=kind), np.empty(len(users.weights))
    room = np.empty(longest), np.empty(longest, dtype=np.int64)
    clip_weighted(clip.rule, users.starts, users.items, users.values, factors, *room, ticks, scales)
    return ticks, scales


def _only(users: Answers, who: Ints) -> Answers:
    """Some users, side by side."""
    starts, items, values = _of_some(users, who, users.values[users.starts[0] : users.starts[-1]])
    return Answers(starts, items, values, users.weights[who], users.types[who])


def _of_some(users: Answers, who: Ints, left: NDArray[Any]) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
    """The entries of some users, side by side: where each begins, items, and what is left."""
    starts = np.concatenate([[0], np.cumsum(users.starts[who + 1] - users.starts[who])])
    items, before = np.empty(starts[-1], dtype=users.items.dtype), np.empty(starts[-1], dtype=left.dtype)
    side_by_side(users.starts, users.items, who, left, items, before)
    return starts, items, before


@kernel
def side_by_side(
    starts: Ints, items: NDArray[Any], who: Ints, left: NDArray[Any], out: NDArray[Any], before: NDArray[Any]
) -> None:
    """The entries of some users, one after the other."""
    base, at = starts[0], 0
    for number in range(len(who)):
        for j in range(starts[who[number]], starts[who[number] + 1]):
            out[at], before[at] = items[j], left[j - base]
            at += 1


@kernel
def rolled_back(starts: Ints, who: Ints, after: NDArray[Any], left: NDArray[Any]) -> None:
    """From now on these users have left what is in `after`, side by side."""
    base, at = starts[0], 0
    for number in range(len(who)):
        for j in range(starts[who[number]], starts[who[number] + 1]):
            left[j - base] = after[at]
            at += 1


@kernel
def add_left(users: Answers, ticks: NDArray[Any], whose: Ints, total: Ints) -> None:
    """Add all users' units to the row of the total of their type, if any, each as often as their weight says."""
    starts, items, base = users.starts, users.items, users.starts[0]
    for user in range(len(starts) - 1):
        row = whose[users.types[user]]
        if row >= 0:
            weight = np.int64(users.weights[user])
            for j in range(starts[user], starts[user + 1]):
                total[row, items[j]] += weight * ticks[j - base]


@kernel
def add_losses(
    starts: Ints,
    items: NDArray[Any],
    left: NDArray[Any],
    after: NDArray[Any],
    weights: NDArray[Any],
    whose: Ints,
    total: Ints,
) -> None:
    """Add to their rows of the total what these users lose, each as often as their weight says."""
    for user in range(len(starts) - 1):
        weight = np.int64(weights[user])
        for j in range(starts[user], starts[user + 1]):
            total[whose[user], items[j]] += weight * (left[j] - after[j])


@kernel
def fall(
    starts: Ints,
    items: NDArray[Any],
    scales: Floats,
    gains: Floats,
    factors: Floats,
    ceiling: float,
    joined: Ints,
    left: NDArray[Any],
    after: NDArray[Any],
) -> None:
    """What users have left after an item has joined, each user's own of `joined`.

    What is left never rises and never falls below 0, so all losses together are at most what was there.
    """
    for user in range(len(starts) - 1):
        for j in range(starts[user], starts[user + 1]):
            if items[j] == joined[user] or not gains[j] > 0.0:
                after[j] = 0
            else:
                gain = factors[items[j]] * min(gains[j], ceiling)
                after[j] = min(left[j], int(scales[user] * gain))


@kernel
def count_values(values: Ints, weights: NDArray[Any], unit: int, total: Ints) -> None:
    """Add `unit` for each user, as often as their weight says, to their value, if it is known."""
    for user in range(len(values)):
        if values[user] >= 0:
            total[values[user]] += unit * np.int64(weights[user])


@kernel
def add_swap(
    rule: Rule,
    users: Answers,
    gains: Floats,
    factors: Floats,
    place: Ints,
    ease: float,
    row: Floats,
    at: Ints,
    ticks: Ints,
    total: Ints,
) -> None:
    """Add what these users say, each clipped as one vector; `gains`: (parts, entries).

    What an item adds lies between 0 and what it is worth by itself.
    """
    begin, n_items = users.starts[0], len(factors)
    for user in range(len(users.starts) - 1):
        low, high = users.starts[user], users.starts[user + 1]
        square, size = 0.0, 0
        for j in range(low, high):
            single = factors[users.items[j]] * users.values[j]
            square += single * single
        scale = min(1.0, ease / math.sqrt(square)) if square > 0.0 else 0.0
        for j in range(low, high):
            item, most = users.items[j], users.values[j]
            slot, weight = place[item], factors[item] * scale
            rest = _between(gains[0, j - begin], most) if slot < 0 else 0.0
            if rest > 0.0:
                row[size], at[size] = weight * rest, item
                size += 1
            for part in range(1, gains.shape[0]):
                if slot < 0 or slot == part - 1:
                    kept = _between(gains[part, j - begin], most) - rest
                    if kept > 0.0:
                        row[size], at[size] = weight * kept, part * n_items + item
                        size += 1
        clip_row(rule, row, 0, size, ticks)
        for j in range(size):
            total[at[j]] += int(users.weights[user]) * ticks[j]


@inline
def _between(gain: float, most: float) -> float:
    """A gain cut to what it can be; 0 where it is not a number."""
    return min(gain, most) if gain > 0.0 else 0.0
